use super::*;
use plimsoll_model::database::Condition;
use plimsoll_model::load::{Arrivals, LoadModel, Overflow, Profile, Stop, Think};
use plimsoll_model::record::{Tally, Tick};
use std::time::Duration;

const WINDOW: Nanos = Nanos(2_000_000_000);

/// Ten users for `seconds`.
fn load(seconds: u64) -> LoadProfile {
    LoadProfile {
        model: LoadModel::Closed { users: Profile::constant(10.0), think: Think::Constant(Duration::ZERO) },
        warmup: Duration::ZERO,
        stop: Stop::After(Duration::from_secs(seconds)),
        drain: Duration::ZERO,
    }
}

fn generator() -> GeneratorSpec {
    GeneratorSpec { threads: 1, cpus: None, max_cpu: 0.7, max_lateness: Duration::from_millis(5) }
}

fn second(second: i64, cpu: f64, lateness: u64, errors: u64) -> Interval {
    let mut tally = Tally::default();
    tally.service.record_n(1000, 10).expect("in range");
    if errors > 0 {
        tally.errors.insert(ErrorKind::Status, errors);
    }
    let mut interval = Interval { second, ..Interval::default() };
    interval.tallies.insert((RecordedPhase::Measure, Subject::Request("call".to_owned())), tally.clone());
    interval.tallies.insert((RecordedPhase::Measure, Subject::Iteration), tally);
    interval.generator.cpu_busiest = Nanos((cpu * 1e9) as u64);
    interval.generator.lateness.record(lateness).expect("in range");
    interval
}

fn record<'a>(
    sequences: &'a BTreeMap<String, SequenceCheck>,
    examples: &'a BTreeMap<String, BTreeMap<ErrorKind, String>>,
) -> Record<'a> {
    Record { faults: &[], broken: &[], sequences, examples, stopped: None, databases: &[], agents: &[] }
}

fn judged(seconds: &[Interval]) -> Validity {
    let mut watch = Watch::new(&load(2), false);
    seconds.iter().for_each(|interval| watch.observe(interval));
    watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &BTreeMap::new())).validity
}

#[test]
fn a_step_whose_few_exchanges_were_all_in_conflict_is_not_a_wrong_one() {
    let of_step = |kind| {
        let mut interval = second(0, 0.1, 0, 0);
        let mut tally = Tally::default();
        tally.service.record(1000).expect("in range");
        tally.errors.insert(kind, 1);
        interval.tallies.insert((RecordedPhase::Measure, Subject::Request("rollback".to_owned())), tally);
        judged(&[interval])
    };
    assert!(matches!(of_step(ErrorKind::Sql), Validity::Failed(_)));
    assert!(!matches!(of_step(ErrorKind::Deadlock), Validity::Failed(_)));
}

#[test]
fn a_trial_in_order_counts() {
    assert_eq!(judged(&[second(0, 0.6, 1000, 1), second(1, 0.7, 1000, 0)]), Validity::Valid);
}

#[test]
fn a_busy_generator_voids_the_trial_and_more_threads_help_where_users_share_them() {
    for user_threads in [false, true] {
        let mut watch = Watch::new(&load(2), false).of_user_threads(user_threads);
        [second(0, 0.8, 0, 0), second(1, 0.9, 0, 0)].iter().for_each(|interval| watch.observe(interval));
        let judged = watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &BTreeMap::new())).validity;
        let Validity::Void(reasons) = judged else { panic!("not void") };
        assert!(reasons[0].contains("85 % of a processor"), "{reasons:?}");
        assert_eq!(reasons[0].contains("more threads"), !user_threads, "{reasons:?}");
    }
}

#[test]
fn a_disk_that_was_full_voids_the_trial() {
    let mut interval = second(0, 0.1, 0, 0);
    let call = (RecordedPhase::Measure, Subject::Request("call".to_owned()));
    interval.tallies.entry(call).or_default().errors.insert(ErrorKind::Space, 3);
    let Validity::Void(reasons) = judged(&[interval]) else { panic!("not void") };
    assert!(reasons[0].contains("3 of 10 exchanges failed"), "{reasons:?}");
}

#[test]
fn warm_up_and_drain_do_not_count_against_the_generator() {
    let busy =
        [second(-1, 1.0, 9_000_000, 0), second(0, 0.1, 0, 0), second(1, 0.1, 0, 0), second(2, 1.0, 9_000_000, 0)];
    assert_eq!(judged(&busy), Validity::Valid);
}

#[test]
fn a_late_schedule_voids_the_trial() {
    assert!(matches!(judged(&[second(0, 0.1, 20_000_000, 0)]), Validity::Void(_)));
}

#[test]
fn in_a_closed_loop_few_that_begin_late_by_chance_void_nothing() {
    let judged = |load: &LoadProfile, work: u64, late: u64| {
        let mut interval = second(0, 0.1, 20_000_000, 0);
        interval.generator.lateness.record_n(20_000_000, late - 1).expect("in range");
        interval.generator.lateness.record_n(1_000, work - late).expect("in range");
        let mut watch = Watch::new(load, false);
        watch.observe(&interval);
        watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &BTreeMap::new())).validity
    };
    let closed = load(2);
    let open = LoadProfile {
        model: LoadModel::Open {
            rate: Profile::constant(250.0),
            arrivals: Arrivals::Poisson,
            max_users: 10,
            overflow: Overflow::Wait,
        },
        ..load(2)
    };
    for (load, work, late, counts) in [
        (&closed, 250, 9, true),
        (&closed, 250, 11, false),
        (&closed, 50, 4, true),
        (&closed, 50, 6, false),
        (&closed, 10_000, 90, true),
        (&closed, 10_000, 110, false),
        (&open, 250, 9, false),
    ] {
        let judged = judged(load, work, late);
        assert_eq!(judged.counts(), counts, "{late} of {work}: {judged:?}");
        if let (Validity::Void(reasons), 250, 11) = (&judged, work, late) {
            assert!(
                reasons[0].contains(": 4 % of the work that was due started more than 20.0 ms late"),
                "{reasons:?}"
            );
        }
    }
}

#[test]
fn an_agent_at_its_limit_voids_the_trial_by_name_however_idle_the_others_are() {
    let agent = |name: &str, busiest: f64, lateness: u64, clock_error: u64| AgentRecord {
        name: name.to_owned(),
        headroom: Headroom { busiest, lateness: Nanos(lateness) },
        clock_error: Nanos(clock_error),
        ..AgentRecord::default()
    };
    let judged = |agents: &[AgentRecord]| {
        let mut watch = Watch::new(&load(2), false);
        [0, 1].iter().for_each(|number| watch.observe(&second(*number, 0.1, 0, 0)));
        let (sequences, examples) = (BTreeMap::new(), BTreeMap::new());
        watch.judge(WINDOW, &generator(), &Record { agents, ..record(&sequences, &examples) }).validity
    };
    let idle = agent("a", 0.1, 1_000, 1_000);
    assert_eq!(judged(&[idle.clone(), agent("b", 0.6, 1_000, 1_000)]), Validity::Valid);
    let Validity::Void(reasons) = judged(&[idle.clone(), agent("b", 0.9, 20_000_000, 1_000)]) else {
        panic!("it counts")
    };
    let [busy, late] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(
        busy.starts_with("agent `b` was the limit: its busiest thread used 90 % of a processor, above 70 %"),
        "{busy}"
    );
    assert!(busy.ends_with("; share its load among more agents, or send less"), "{busy}");
    assert!(late.starts_with("agent `b` missed its schedule: "), "{late}");
    let warnings = unknown_clocks(&[idle, agent("b", 0.1, 0, 12_300_000)]);
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.starts_with("the clock of agent `b` is known only to ±12.3 ms"), "{warning}");
}

#[test]
fn a_system_that_only_fails_has_failed_for_a_reason() {
    let mut watch = Watch::new(&load(2), false);
    watch.observe(&second(0, 0.1, 0, 10));
    let refused = BTreeMap::from([(ErrorKind::Connect, "connection refused".to_owned())]);
    let examples = BTreeMap::from([("request:call".to_owned(), refused)]);
    let judged = watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &examples));
    assert_eq!(
        judged.validity,
        Validity::Failed(vec!["all 10 exchanges failed, each of `call`: connection refused".to_owned()])
    );
}

#[test]
fn a_script_names_its_requests_itself_and_need_not_make_any() {
    let of_some = |made: u64, script: bool, failed: u64, requests: &[(&str, u64)]| {
        let mut watch = Watch::new(&load(2), false).of_script(script);
        let mut interval = second(0, 0.1, 0, 0);
        interval.tallies.clear();
        let tally = |count: u64, failed: u64| {
            let mut tally = Tally::default();
            tally.service.record_n(1000, count).expect("in range");
            tally.errors.extend((failed > 0).then_some((ErrorKind::Script, failed)));
            tally
        };
        interval.tallies.insert((RecordedPhase::Measure, Subject::Iteration), tally(10, failed));
        for (name, failed) in requests {
            let subject = Subject::Request((*name).to_owned());
            interval.tallies.insert((RecordedPhase::Measure, subject), tally(made, *failed));
        }
        watch.observe(&interval);
        let thrown = BTreeMap::from([(ErrorKind::Script, "Error: x".to_owned())]);
        let examples = BTreeMap::from([("iteration".to_owned(), thrown)]);
        watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &examples)).validity
    };
    let of = |script, failed, requests: &[(&str, u64)]| of_some(5, script, failed, requests);
    assert_eq!(of(true, 10, &[]), Validity::Failed(vec!["all 10 iterations failed: Error: x".to_owned()]));
    assert!(of(true, 9, &[]).counts(), "a script need not make requests");
    assert!(matches!(of(true, 10, &[("/1", 0)]), Validity::Failed(_)), "nor fail in one");
    assert!(matches!(of(false, 10, &[("/1", 0)]), Validity::Failed(_)));
    assert!(of(true, 0, &[("/1", 5), ("/2", 0)]).counts(), "a name that is made five times may be one of many");
    let unknown = vec!["all 10 exchanges of `/1` failed: nothing is known of why".to_owned()];
    assert_eq!(of_some(10, true, 0, &[("/1", 10), ("/2", 0)]), Validity::Failed(unknown), "as a step of a flow");
    assert!(matches!(of(true, 0, &[("/1", 5)]), Validity::Failed(_)));
    assert!(matches!(of(false, 0, &[("/1", 5), ("/2", 0)]), Validity::Failed(_)));
    assert!(matches!(of(false, 0, &[]), Validity::Void(_)));
}

#[test]
fn a_request_that_never_goes_right_fails_the_trial_though_others_do() {
    let mut watch = Watch::new(&load(2), false);
    let mut interval = second(0, 0.9, 20_000_000, 0);
    let mut broken = Tally::default();
    broken.service.record_n(1000, 7).expect("in range");
    broken.errors.insert(ErrorKind::Io, 7);
    interval.tallies.insert((RecordedPhase::Measure, Subject::Request("read".to_owned())), broken);
    watch.observe(&interval);
    let examples = [("read", "pages stayed"), ("call", "something else"), ("read more", "another request's")]
        .map(|(name, text)| (format!("request:{name}"), BTreeMap::from([(ErrorKind::Io, text.to_owned())])));
    let judged = watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &examples.into()));
    let expected = "all 7 exchanges of `read` failed: pages stayed".to_owned();
    assert_eq!(judged.validity, Validity::Failed(vec![expected]), "whatever the generator did");
    assert!(!watch.worked());
}

#[test]
fn a_redirect_that_goes_round_is_told_though_its_first_exchanges_went_right() {
    let mut watch = Watch::new(&load(2), false);
    let mut interval = second(0, 0.1, 0, 2);
    let iterations = interval.tallies.get_mut(&(RecordedPhase::Measure, Subject::Iteration)).expect("iterations");
    iterations.errors = BTreeMap::from([(ErrorKind::Redirect, 10)]);
    let mut rarer = Tally::default();
    rarer.service.record_n(1000, 5).expect("in range");
    rarer.errors.insert(ErrorKind::Status, 1);
    interval.tallies.insert((RecordedPhase::Measure, Subject::Request("call 2".to_owned())), rarer);
    watch.observe(&interval);
    let examples = [("call", ErrorKind::Redirect, "another one to /loop"), ("call 2", ErrorKind::Status, "found 500")]
        .map(|(name, kind, text)| (format!("request:{name}"), BTreeMap::from([(kind, text.to_owned())])));
    let judged = watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &examples.into()));
    let expected = "all 10 iterations failed, as in `call`: another one to /loop".to_owned();
    assert_eq!(judged.validity, Validity::Failed(vec![expected]));
}

fn judged_with(facts: &DatabaseFacts) -> Validity {
    let mut watch = Watch::new(&load(2), false);
    watch.observe(&second(0, 0.1, 0, 0));
    let (sequences, examples) = (BTreeMap::new(), BTreeMap::new());
    let record = Record { databases: std::slice::from_ref(facts), ..record(&sequences, &examples) };
    watch.judge(WINDOW, &generator(), &record).validity
}

fn condition(name: &str, holds: Option<bool>, detail: &str) -> Condition {
    Condition { name: name.to_owned(), holds, detail: detail.to_owned() }
}

#[test]
fn data_that_is_wrong_fails_a_start_and_data_not_looked_at_is_told() {
    let broken = condition("3: no gaps", Some(false), "district 1/7 has 2");
    let unseen = [condition("5: carriers", None, "60 s were up"), condition("6: lines", None, "60 s were up")];
    let facts = DatabaseFacts {
        name: "db".to_owned(),
        conditions: [vec![condition("1: sums", Some(true), ""), broken], unseen.to_vec()].concat(),
        ..DatabaseFacts::default()
    };
    let reason = "wrong data in `db`: consistency condition 3: no gaps does not hold: district 1/7 has 2";
    assert_eq!(wrong_data(&facts).collect::<Vec<_>>(), [reason]);
    let warning = "2 of 4 conditions on the data of `db` were not looked at: 60 s were up";
    assert_eq!(not_looked_at(&[facts]), [warning]);
    assert_eq!(not_looked_at(&[DatabaseFacts::default()]), Vec::<String>::new());
}

#[test]
fn wrong_input_voids_a_trial() {
    let line =
        |name: &str, holds| MixLine { name: name.to_owned(), n: 50_000, found: 0.5, low: 0.0095, high: 0.0105, holds };
    let mut facts = DatabaseFacts::default();
    facts.work.mix = vec![line("rollbacks", true), line("remote order lines", false)];
    let Validity::Void(reasons) = judged_with(&facts) else { panic!("not void") };
    assert_eq!(reasons.len(), 1);
    assert!(
        reasons[0].ends_with("remote order lines expected from 0.0095 to 0.0105, found 0.5 of 50000"),
        "{reasons:?}"
    );
}

#[test]
fn nothing_measured_is_void_and_failed_where_users_had_nothing_to_take() {
    assert!(matches!(judged(&[]), Validity::Void(_)));
    let (sequences, examples) = (BTreeMap::new(), BTreeMap::new());
    let record = Record { stopped: Some("all 3 rows were taken"), ..record(&sequences, &examples) };
    let validity = Watch::new(&load(2), false).judge(WINDOW, &generator(), &record).validity;
    assert_eq!(validity, Validity::Failed(vec!["nothing was measured: all 3 rows were taken".to_owned()]));
}

#[test]
fn users_that_broke_a_limit_of_their_script_fail_the_trial() {
    let mut watch = Watch::new(&load(2), false).of_script(true);
    watch.observe(&second(0, 0.1, 0, 0));
    let (sequences, examples) = (BTreeMap::new(), BTreeMap::new());
    let of = |broken: &[&str]| {
        let broken: Vec<String> = broken.iter().map(|text| (*text).to_owned()).collect();
        watch.judge(WINDOW, &generator(), &Record { broken: &broken, ..record(&sequences, &examples) }).validity
    };
    assert!(of(&[]).counts());
    assert_eq!(of(&["user 2 ran on"]), Validity::Failed(vec!["user 2 ran on".to_owned()]));
    let several = "user 2 ran on (the first of 3 users)".to_owned();
    assert_eq!(of(&["user 2 ran on", "user 3", "user 4"]), Validity::Failed(vec![several]));
}

#[test]
fn what_stopped_a_user_for_good_is_told_once() {
    let mut watch = Watch::new(&load(2), false).of_script(true);
    let mut interval = second(0, 0.1, 0, 0);
    let iterations = interval.tallies.get_mut(&(RecordedPhase::Measure, Subject::Iteration)).expect("iterations");
    iterations.errors.insert(ErrorKind::Limit, iterations.count());
    watch.observe(&interval);
    let examples = [("iteration".to_owned(), [(ErrorKind::Limit, "user 1 ran on".to_owned())].into())].into();
    let (sequences, broken) = (BTreeMap::new(), ["user 1 ran on".to_owned(), "user 2 ran on".to_owned()]);
    let of = |broken| watch.judge(WINDOW, &generator(), &Record { broken, ..record(&sequences, &examples) }).validity;
    let told = ["all 10 iterations failed", "user 1 ran on (the first of 2 users)"];
    assert_eq!(of(&broken), Validity::Failed(told.map(str::to_owned).into()));
    assert_eq!(of(&[]), Validity::Failed(vec!["all 10 iterations failed: user 1 ran on".to_owned()]));
}

#[test]
fn wrong_replies_fail_a_trial_even_with_a_busy_generator() {
    let mut watch = Watch::new(&load(2), false);
    watch.observe(&second(0, 2.0, 0, 0));
    let check = SequenceCheck { replies: 10, largest: 9, repeated: 1, ..SequenceCheck::default() };
    let sequences = BTreeMap::from([("increment".to_owned(), check)]);
    let judged = watch.judge(WINDOW, &generator(), &record(&sequences, &BTreeMap::new()));
    let Validity::Failed(reasons) = judged.validity else { panic!("not failed") };
    assert!(reasons[0].contains("1 repeated"), "{reasons:?}");
}

/// Judges twenty seconds in which iterations take longer and longer, with a generator this busy.
fn never_steady(cpu: f64, errors: u64, extended: bool) -> Judgement {
    let mut watch = Watch::new(&load(20), extended);
    for number in 0..20 {
        let mut interval = second(number, cpu, 0, errors);
        for (tick, ticked) in interval.ticks.iter_mut().enumerate() {
            let took = 10_000_000 + (number as u64 * 10 + tick as u64) * 100_000;
            *ticked = Tick { iterations: 1_000_000_000 / took, total: 1_000_000_000 };
        }
        watch.observe(&interval);
    }
    watch.judge(Nanos(20_000_000_000), &generator(), &record(&BTreeMap::new(), &BTreeMap::new()))
}

#[test]
fn a_trial_that_never_becomes_steady_is_void_and_marked() {
    let judged = never_steady(0.1, 0, false);
    let Validity::Void(reasons) = &judged.validity else { panic!("{judged:?}") };
    assert!(reasons[0].starts_with("no steady state after a warm-up of 0 s: "), "{reasons:?}");
    assert!(reasons[0].ends_with("let it warm up for longer (`load.warmup`)"), "{reasons:?}");
    assert!(judged.unsteady && judged.steady_from.is_none());
}

#[test]
fn what_a_longer_warm_up_did_not_help_is_not_advised_to_have_one() {
    let judged = never_steady(0.1, 0, true);
    let Validity::Void(reasons) = &judged.validity else { panic!("{judged:?}") };
    assert!(reasons[0].ends_with("look for what grows (a leak, a queue, a data set)"), "{reasons:?}");
    assert!(judged.unsteady);
}

#[test]
fn a_longer_warm_up_does_not_help_a_generator_at_its_limit_or_a_system_that_fails() {
    let busy = never_steady(0.9, 0, false);
    assert!(matches!(&busy.validity, Validity::Void(reasons) if reasons.len() == 2), "{busy:?}");
    assert!(!busy.unsteady);
    let failing = never_steady(0.1, 10, false);
    assert!(matches!(failing.validity, Validity::Failed(_)), "{failing:?}");
    assert!(!failing.unsteady);
}

#[test]
fn how_near_the_generator_came_to_its_limits_is_kept() {
    let mut watch = Watch::new(&load(2), false);
    [second(0, 0.2, 1000, 0), second(1, 0.4, 2000, 0)].iter().for_each(|interval| watch.observe(interval));
    let judged = watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &BTreeMap::new()));
    assert!((judged.headroom.busiest - 0.3).abs() < 1e-9);
    assert_eq!(judged.headroom.lateness, Nanos(2000));
    assert!(judged.unjudged.is_some(), "two seconds are too short");
}
