//! Whether a trial counts: the rules, as pure functions of what was recorded.

use crate::steady::{Steady, Ticks};
use plimsoll_model::database::{Condition, DatabaseFacts, MixLine};
use plimsoll_model::load::LoadProfile;
use plimsoll_model::record::{ErrorKind, Interval, RecordedPhase, SequenceCheck, Subject};
use plimsoll_model::result::Headroom;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::trial::Validity;
use plimsoll_model::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A loop that did not look for new events for this long delays what it measures by as much.
const LONG_STALL: Nanos = Nanos(100_000_000);

/// What the generator found over the whole trial, as far as it matters for the verdict on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// What kept the generator from doing its work.
    pub(crate) faults: &'a [String],
    /// The checks over all replies, by request.
    pub(crate) sequences: &'a BTreeMap<String, SequenceCheck>,
    /// A text for each kind of error, by subject.
    pub(crate) examples: &'a BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// Why users stopped before the load was over, if they did.
    pub(crate) stopped: Option<&'a str>,
    /// What is known of the databases, with what must hold of their data.
    pub(crate) databases: &'a [DatabaseFacts],
}

impl Record<'_> {
    /// One of the errors in words, of the subjects that begin so; a request's before a connection's,
    /// which it repeats.
    fn example(&self, subject: &str) -> &str {
        let of_subject = self.examples.iter().rev().filter(|(name, _)| name.starts_with(subject));
        let mut texts = of_subject.flat_map(|(_, kinds)| kinds.values());
        texts.next().map_or("nothing is known of why", String::as_str)
    }
}

/// What is found of a trial: whether it counts, and from where on it is steady.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) validity: Validity,
    /// From where on the measure phase is steady; none where it never is, and where that was not judged.
    pub(crate) steady_from: Option<Nanos>,
    /// Whether it is void for want of a steady state and of nothing else.
    pub(crate) unsteady: bool,
    /// Why it was not judged whether it is steady, though load is meant to be.
    pub(crate) unjudged: Option<String>,
    pub(crate) headroom: Headroom,
}

impl Judgement {
    /// The same of a trial that has failed for these reasons too.
    pub(crate) fn failed_also(self, reasons: Vec<String>) -> Judgement {
        if reasons.is_empty() {
            return self;
        }
        let reasons = [reasons, self.validity.reasons().to_vec()].concat();
        Judgement { validity: Validity::Failed(reasons), steady_from: None, unsteady: false, ..self }
    }
}

/// What is gathered from the intervals of a trial while they pass.
#[derive(Debug)]
pub(crate) struct Watch {
    window_seconds: i64,
    /// The longest that the measure phase may take.
    limit: Nanos,
    warmup: Nanos,
    /// Whether the warm-up is longer already, because an earlier attempt found no steady state.
    extended: bool,
    /// Only where load is meant to be steady.
    ticks: Option<Ticks>,
    /// CPU time of the busiest thread over the measure phase.
    busiest: Nanos,
    lateness: hdrhistogram::Histogram<u64>,
    longest_stall: Nanos,
    /// Whether users run a script, which names its requests itself and need not make any.
    script: bool,
    /// What a script has measured, whose names nobody knows before.
    pub(crate) subjects: BTreeSet<Subject>,
    pub(crate) iterations: u64,
    failed_iterations: u64,
    /// Exchanges of each request, and those of them that failed, unless in conflict with one another.
    requests: BTreeMap<String, (u64, u64)>,
    pub(crate) errors: u64,
    saturated: u64,
    /// Exchanges for which a disk had no room.
    without_room: u64,
}

impl Watch {
    /// For a trial under this load, `extended` where its warm-up is longer than the study says.
    pub(crate) fn new(load: &LoadProfile, extended: bool) -> Watch {
        Watch {
            window_seconds: Nanos::from(load.stop.limit()).0.div_ceil(1_000_000_000) as i64,
            limit: load.stop.limit().into(),
            warmup: load.warmup.into(),
            extended,
            ticks: Ticks::of(load),
            busiest: Nanos(0),
            lateness: plimsoll_model::record::histogram(),
            longest_stall: Nanos(0),
            script: false,
            subjects: BTreeSet::new(),
            iterations: 0,
            failed_iterations: 0,
            requests: BTreeMap::new(),
            errors: 0,
            saturated: 0,
            without_room: 0,
        }
    }

    /// The same for users that run a script, or do not.
    pub(crate) fn of_script(self, script: bool) -> Watch {
        Watch { script, ..self }
    }

    /// Takes note of a second.
    pub(crate) fn see(&mut self, interval: &Interval) {
        if (0..self.window_seconds).contains(&interval.second) {
            self.busiest.0 += interval.generator.cpu_busiest.0;
            self.lateness.add(&interval.generator.lateness).expect("a growing histogram takes what an equal one holds");
            self.longest_stall = self.longest_stall.max(interval.generator.stall);
        }
        if let Some(ticks) = &mut self.ticks {
            ticks.see(interval);
        }
        for ((phase, subject), tally) in &interval.tallies {
            if self.script && *phase == RecordedPhase::Measure && !self.subjects.contains(subject) {
                self.subjects.insert(subject.clone());
            }
            match (phase, subject) {
                (RecordedPhase::Warmup, _)
                | (_, Subject::Connect | Subject::Part(..) | Subject::Check(_) | Subject::Custom(..)) => {}
                (RecordedPhase::Measure, Subject::Iteration) => {
                    self.iterations += tally.count();
                    self.failed_iterations += tally.failed();
                }
                (RecordedPhase::Measure, Subject::Request(name)) => {
                    let (made, wrong) = self.requests.entry(name.clone()).or_default();
                    *made += tally.count();
                    // Of a step that is made a few times in a trial, all may have been in conflict.
                    *wrong += tally.errors.iter().filter(|(kind, _)| !kind.is_conflict()).map(|(_, n)| n).sum::<u64>();
                    self.errors += tally.failed();
                    self.saturated += tally.saturated;
                    self.without_room += tally.errors.get(&ErrorKind::Space).copied().unwrap_or_default();
                }
            }
        }
    }

    fn exchanges(&self) -> u64 {
        self.requests.values().map(|(made, _)| made).sum()
    }

    /// Whether no exchange ended, and no iteration of users that need not make any.
    pub(crate) fn measured_nothing(&self) -> bool {
        self.exchanges() == 0 && (!self.script || self.iterations == 0)
    }

    /// The name that all exchanges have, after a comma.
    fn of_one_name(&self) -> String {
        let mut names = self.requests.iter().filter(|(_, (made, _))| *made > 0).map(|(name, _)| name);
        match (names.next(), names.next()) {
            (Some(only), None) => format!(", each of `{only}`"),
            _ => String::new(),
        }
    }

    /// How many exchanges failed, where that is all that there were.
    fn no_exchange_right(&self) -> Option<u64> {
        let all = self.exchanges();
        (all > 0 && self.errors == all).then_some(all)
    }

    /// How many iterations failed, where that is all that there were: a script may throw, and a flow wait in vain,
    /// though every exchange goes right.
    fn no_iteration_right(&self) -> Option<u64> {
        (self.iterations > 0 && self.failed_iterations == self.iterations).then_some(self.iterations)
    }

    /// The requests of which not one went as expected, though they were made. A script may well ask for what
    /// is not there, and name each request anew.
    fn never_right(&self) -> impl Iterator<Item = (&String, u64)> {
        let wrong = self.requests.iter().filter(|(_, (made, failed))| !self.script && made == failed && *made > 0);
        wrong.map(|(name, (made, _))| (name, *made))
    }

    /// Whether some of every request went as expected, or none was made, and some iteration did.
    pub(crate) fn worked(&self) -> bool {
        self.no_exchange_right().is_none() && self.never_right().next().is_none() && self.no_iteration_right().is_none()
    }

    /// Whether the trial counts. A wrong reply is the system's failure, whatever the generator
    /// did; a generator at its limit voids the rest, and so does load that should have been steady
    /// and was not.
    pub(crate) fn judge(&self, window: Nanos, generator: &GeneratorSpec, record: &Record<'_>) -> Judgement {
        let headroom = self.headroom(window);
        let unknown =
            Judgement { validity: Validity::Valid, steady_from: None, unsteady: false, unjudged: None, headroom };
        let failures = self.failures(record);
        if !failures.is_empty() {
            return Judgement { validity: Validity::Failed(failures), ..unknown };
        }
        let mut reasons = self.limits(headroom, generator, record.faults);
        reasons.extend(record.databases.iter().flat_map(|facts| &facts.work.mix).filter_map(wrong_input));
        let judgement = match self.ticks.as_ref().map(Ticks::judge) {
            None => unknown,
            // Seconds in which nobody had anything to do say nothing of the system.
            Some(_) if window < self.limit && record.stopped.is_some() => {
                Judgement { unjudged: record.stopped.map(str::to_owned), ..unknown }
            }
            Some(Steady::Unjudged(reason)) => Judgement { unjudged: Some(reason), ..unknown },
            Some(Steady::From(from)) => Judgement { steady_from: Some(from), ..unknown },
            Some(Steady::Never(evidence)) => {
                let unsteady = reasons.is_empty();
                reasons.push(self.never_steady(&evidence));
                Judgement { unsteady, ..unknown }
            }
        };
        let validity = if reasons.is_empty() { Validity::Valid } else { Validity::Void(reasons) };
        Judgement { validity, ..judgement }
    }

    fn never_steady(&self, evidence: &str) -> String {
        let advice = match self.extended {
            true => "it may never settle: look for what grows (a leak, a queue, a data set)",
            false => "let it warm up for longer (`load.warmup`)",
        };
        format!("no steady state after a warm-up of {} s: {evidence}; {advice}", self.warmup.seconds())
    }

    /// How near the generator came to its limits.
    fn headroom(&self, window: Nanos) -> Headroom {
        let busiest = if window.0 == 0 { 0.0 } else { self.busiest.seconds() / window.seconds() };
        Headroom { busiest, lateness: Nanos(self.lateness.value_at_quantile(0.99)) }
    }

    fn failures(&self, record: &Record<'_>) -> Vec<String> {
        let mut failures: Vec<String> = record
            .sequences
            .iter()
            .filter(|(_, check)| !check.holds())
            .map(|(name, check)| wrong_replies(name, check))
            .collect();
        if let Some(all) = self.no_exchange_right() {
            failures.push(format!("all {all} exchanges failed{}: {}", self.of_one_name(), record.example("")));
        } else if self.measured_nothing()
            && let Some(why) = record.stopped
        {
            failures.push(format!("nothing was measured: {why}"));
        } else if self.never_right().next().is_some() {
            let of = |(name, made): (&String, u64)| {
                format!("all {made} exchanges of `{name}` failed: {}", record.example(&format!("request:{name}")))
            };
            failures.extend(self.never_right().map(of));
        } else if let Some(all) = self.no_iteration_right() {
            failures.push(format!("all {all} iterations failed: {}", record.example("iteration")));
        }
        failures.extend(record.databases.iter().flat_map(wrong_data));
        failures
    }

    fn limits(&self, headroom: Headroom, generator: &GeneratorSpec, faults: &[String]) -> Vec<String> {
        let mut limits: Vec<String> =
            faults.iter().map(|fault| format!("the generator could not do its work: {fault}")).collect();
        if headroom.busiest > generator.max_cpu {
            limits.push(format!(
                "the generator was the limit: its busiest thread used {:.0} % of a processor, above {:.0} %; give it more \
                 threads, processors of its own, or less load (`generator`)",
                headroom.busiest * 100.0,
                generator.max_cpu * 100.0
            ));
        }
        if headroom.lateness > generator.max_lateness.into() {
            limits.push(format!(
                "the generator missed its schedule: 1 % of the work that was due started more than {:.1} ms late, above \
                 {:.1} ms",
                headroom.lateness.seconds() * 1e3,
                generator.max_lateness.as_secs_f64() * 1e3
            ));
        }
        if self.without_room > 0 {
            limits.push(format!(
                "a disk was full, or a quota used up, so that {} of {} exchanges failed: make room, or let the data lie \
                 elsewhere",
                self.without_room,
                self.exchanges()
            ));
        }
        if self.measured_nothing() {
            limits.push("nothing was measured: no exchange ended in the measure phase or its drain".to_owned());
        }
        limits
    }

    /// What a reader should know though the trial counts.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.longest_stall > LONG_STALL {
            let stall = self.longest_stall.seconds() * 1e3;
            warnings
                .push(format!("the generator's loop stalled for {stall:.0} ms; the longest durations may be its own"));
        }
        if self.errors > 0 && self.worked() {
            warnings.push(format!("{} of {} exchanges failed", self.errors, self.exchanges()));
        }
        if self.saturated > 0 {
            warnings.push(format!("{} durations over an hour are counted as an hour", self.saturated));
        }
        warnings
    }
}

fn wrong_replies(name: &str, check: &SequenceCheck) -> String {
    format!(
        "wrong replies to `{name}`: expected the numbers 1 to {} once each, found {} repeated, {} missing ({} calls had no \
         reply), {} replies without a number",
        check.largest, check.repeated, check.missing, check.unanswered, check.unreadable
    )
}

/// The conditions on the data of a database that do not hold: it, or what users did to it, is wrong.
fn wrong_data(facts: &DatabaseFacts) -> impl Iterator<Item = String> {
    let broken = facts.conditions.iter().filter(|condition| condition.holds == Some(false));
    broken.map(|condition| {
        let Condition { name, detail, .. } = condition;
        format!("wrong data in `{}`: consistency condition {name} does not hold: {detail}", facts.name)
    })
}

/// Says of what users were given to do that it is not what the specification asks for. That is the
/// generator's fault and not the system's: the trial is void.
fn wrong_input(line: &MixLine) -> Option<String> {
    let MixLine { name, n, found, low, high, holds } = line;
    (!holds).then(|| {
        format!("the generator gave users the wrong work: {name} expected from {low} to {high}, found {found} of {n}")
    })
}

/// Says of which databases not every condition was looked at.
pub(crate) fn not_looked_at(databases: &[DatabaseFacts]) -> Vec<String> {
    let warning = |facts: &DatabaseFacts| {
        let mut left = facts.conditions.iter().filter(|condition| condition.holds.is_none()).peekable();
        let why = left.peek()?.detail.clone();
        let (count, all) = (left.count(), facts.conditions.len());
        Some(format!("{count} of {all} conditions on the data of `{}` were not looked at: {why}", facts.name))
    };
    databases.iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::load::{LoadModel, Profile, Stop, Think};
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
        Record { faults: &[], sequences, examples, stopped: None, databases: &[] }
    }

    fn judged(seconds: &[Interval]) -> Validity {
        let mut watch = Watch::new(&load(2), false);
        seconds.iter().for_each(|interval| watch.see(interval));
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
    fn a_busy_generator_voids_the_trial() {
        let Validity::Void(reasons) = judged(&[second(0, 0.8, 0, 0), second(1, 0.9, 0, 0)]) else { panic!("not void") };
        assert!(reasons[0].contains("85 % of a processor"), "{reasons:?}");
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
    fn a_system_that_only_fails_has_failed_for_a_reason() {
        let mut watch = Watch::new(&load(2), false);
        watch.see(&second(0, 0.1, 0, 10));
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
        let of = |script: bool, failed: u64, requests: &[(&str, u64)]| {
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
                interval.tallies.insert((RecordedPhase::Measure, subject), tally(5, *failed));
            }
            watch.see(&interval);
            let thrown = BTreeMap::from([(ErrorKind::Script, "Error: x".to_owned())]);
            let examples = BTreeMap::from([("iteration".to_owned(), thrown)]);
            watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &examples)).validity
        };
        assert_eq!(of(true, 10, &[]), Validity::Failed(vec!["all 10 iterations failed: Error: x".to_owned()]));
        assert!(of(true, 9, &[]).counts(), "a script need not make requests");
        assert!(matches!(of(true, 10, &[("/1", 0)]), Validity::Failed(_)), "nor fail in one");
        assert!(matches!(of(false, 10, &[("/1", 0)]), Validity::Failed(_)));
        assert!(of(true, 0, &[("/1", 5), ("/2", 0)]).counts(), "and may ask for what is not there");
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
        watch.see(&interval);
        let examples = [("read", "pages stayed"), ("call", "something else")]
            .map(|(name, text)| (format!("request:{name}"), BTreeMap::from([(ErrorKind::Io, text.to_owned())])));
        let judged = watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &examples.into()));
        let expected = "all 7 exchanges of `read` failed: pages stayed".to_owned();
        assert_eq!(judged.validity, Validity::Failed(vec![expected]), "whatever the generator did");
        assert!(!watch.worked());
    }

    fn judged_with(facts: &DatabaseFacts) -> Validity {
        let mut watch = Watch::new(&load(2), false);
        watch.see(&second(0, 0.1, 0, 0));
        let (sequences, examples) = (BTreeMap::new(), BTreeMap::new());
        let record = Record { databases: std::slice::from_ref(facts), ..record(&sequences, &examples) };
        watch.judge(WINDOW, &generator(), &record).validity
    }

    fn condition(name: &str, holds: Option<bool>, detail: &str) -> Condition {
        Condition { name: name.to_owned(), holds, detail: detail.to_owned() }
    }

    #[test]
    fn data_that_is_wrong_fails_a_trial_and_data_not_looked_at_is_told() {
        let broken = condition("3: no gaps", Some(false), "district 1/7 has 2");
        let unseen = [condition("5: carriers", None, "60 s were up"), condition("6: lines", None, "60 s were up")];
        let facts = DatabaseFacts {
            name: "db".to_owned(),
            conditions: [vec![condition("1: sums", Some(true), ""), broken], unseen.to_vec()].concat(),
            ..DatabaseFacts::default()
        };
        let reason = "wrong data in `db`: consistency condition 3: no gaps does not hold: district 1/7 has 2";
        assert_eq!(judged_with(&facts), Validity::Failed(vec![reason.to_owned()]));
        let warning = "2 of 4 conditions on the data of `db` were not looked at: 60 s were up";
        assert_eq!(not_looked_at(&[facts]), [warning]);
        assert_eq!(not_looked_at(&[DatabaseFacts::default()]), Vec::<String>::new());
    }

    #[test]
    fn wrong_input_voids_a_trial() {
        let line = |name: &str, holds| MixLine {
            name: name.to_owned(),
            n: 50_000,
            found: 0.5,
            low: 0.0095,
            high: 0.0105,
            holds,
        };
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
    fn wrong_replies_fail_a_trial_even_with_a_busy_generator() {
        let mut watch = Watch::new(&load(2), false);
        watch.see(&second(0, 2.0, 0, 0));
        let check = SequenceCheck { replies: 10, largest: 9, repeated: 1, ..SequenceCheck::default() };
        let sequences = BTreeMap::from([("increment".to_owned(), check)]);
        let judged = watch.judge(WINDOW, &generator(), &record(&sequences, &BTreeMap::new()));
        let Validity::Failed(reasons) = judged.validity else { panic!("not failed") };
        assert!(reasons[0].contains("1 repeated"), "{reasons:?}");
    }

    /// Twenty seconds in which iterations take longer and longer, with a generator this busy.
    fn never_steady(cpu: f64, errors: u64, extended: bool) -> Judgement {
        let mut watch = Watch::new(&load(20), extended);
        for number in 0..20 {
            let mut interval = second(number, cpu, 0, errors);
            for (tick, ticked) in interval.ticks.iter_mut().enumerate() {
                let took = 10_000_000 + (number as u64 * 10 + tick as u64) * 100_000;
                *ticked = Tick { iterations: 1_000_000_000 / took, total: 1_000_000_000 };
            }
            watch.see(&interval);
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
        [second(0, 0.2, 1000, 0), second(1, 0.4, 2000, 0)].iter().for_each(|interval| watch.see(interval));
        let judged = watch.judge(WINDOW, &generator(), &record(&BTreeMap::new(), &BTreeMap::new()));
        assert!((judged.headroom.busiest - 0.3).abs() < 1e-9);
        assert_eq!(judged.headroom.lateness, Nanos(2000));
        assert!(judged.unjudged.is_some(), "two seconds are too short");
    }
}
