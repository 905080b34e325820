//! Two bundles against each other, from end to end.

use super::*;
use crate::analyse;
use crate::finding::Severity;
use crate::testing::{input, start};
use crate::verdict::Outcome;
use plimsoll_model::host::Version;
use plimsoll_model::load::{LoadModel, Profile, Stop, Think};
use plimsoll_model::measure::Effect;
use plimsoll_model::objective::{Limit, Objective};
use plimsoll_model::start::{Design, Turns};
use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, StopSignal};
use plimsoll_model::workload::{Connect, HttpStep, Protocol, Steps, Target};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// A run whose trials take a multiple of 1, 2, … 100 ms, with a little noise; it began at `hour`.
/// `old` and `new` are separate programs, with a hash made of `old_hash` and `new_hash`.
struct Run {
    hour: i64,
    repeats: u32,
    old: (f64, char),
    new: (f64, char),
}

const FIRST: Run = Run { hour: 0, repeats: 5, old: (1.0, 'a'), new: (1.2, 'b') };

impl Run {
    fn input(&self) -> Input {
        let mut input = input(self.repeats, |number| {
            let scale = if number % 2 == 1 { self.old.0 } else { self.new.0 };
            // The noise of a block is that of both of its trials, and a little more.
            let noise = f64::from(number.div_ceil(2) % 3) / 500.0 + f64::from(number % 5) / 2000.0;
            start(scale * (1.0 + noise))
        });
        for trial in &mut input.starts {
            trial.summary.timing.started_unix_ms += self.hour * 3_600_000;
        }
        input.versions = [("old", self.old.1), ("new", self.new.1)]
            .map(|(level, hash)| Version {
                name: "web".to_owned(),
                program: format!("./{level}"),
                path: None,
                version: None,
                sha256: Some(hash.to_string().repeat(64)),
            })
            .into();
        input
    }
}

fn cells(input: &Input) -> Vec<ResolvedCell> {
    let variants = input.plan.variants.iter().map(|variant| ResolvedCell {
        variant: variant.clone(),
        condition: Assignment::default(),
        systems: vec![system(&variant.label())],
        databases: Vec::new(),
        workload: Workload {
            target: Some(Target { host: "127.0.0.1".to_owned(), port: 1, tls: None }),
            connect: Connect::PerUser,
            timeout: Duration::from_secs(10),
            steps: Steps::Http(vec![HttpStep {
                name: "call".to_owned(),
                method: "GET".to_owned(),
                path: "/".to_owned(),
                headers: Vec::new(),
                body: Vec::new(),
                status: None,
            }]),
        },
        load: LoadProfile {
            model: LoadModel::Closed { users: Profile::constant(10.0), think: Think::Constant(Duration::ZERO) },
            warmup: Duration::ZERO,
            stop: Stop::After(Duration::from_secs(2)),
            drain: Duration::ZERO,
        },
    });
    variants.collect()
}

fn system(level: &str) -> SystemSpec {
    SystemSpec {
        name: "web".to_owned(),
        on: None,
        dir: ".".into(),
        build: None,
        start: CommandLine(vec![format!("./{level}"), "--fast".to_owned()]),
        containers: None,
        inherit: None,
        env: [("POOL".to_owned(), "10".to_owned())].into(),
        ready: Ready { probe: Probe::Started, within: Duration::from_secs(1) },
        stop: StopPolicy { signal: StopSignal::Term, grace: Duration::from_secs(1) },
        cpus: None,
        version: None,
        port: Some(1),
        waits: BTreeMap::new(),
        metrics: None,
        files: None,
    }
}

/// The inputs and cells of two runs, to be changed before they are compared.
struct Two {
    inputs: [Input; 2],
    cells: [OrReason<Vec<ResolvedCell>>; 2],
}

impl Two {
    fn of(first: &Run, second: &Run) -> Two {
        let inputs = [first.input(), second.input()];
        let cells = inputs.each_ref().map(|input| Ok(cells(input)));
        Two { inputs, cells }
    }

    fn compared(&self) -> Result<CrossRunComparison, NotComparable> {
        let analyses = self.inputs.each_ref().map(analyse);
        let run = |index: usize| ComparedRun {
            name: ["first", "second"][index].to_owned(),
            input: &self.inputs[index],
            analysis: &analyses[index],
            cells: self.cells[index].clone(),
            plimsoll: "0.1.0".to_owned(),
        };
        compare_runs(&run(0), &run(1))
    }

    fn whole(&self) -> CrossRunComparison {
        self.compared().expect("comparable")
    }

    fn refused(&self) -> Vec<String> {
        match self.compared() {
            Err(NotComparable::DifferentStudy(differences)) => differences.iter().map(ToString::to_string).collect(),
            other => panic!("not refused: {other:?}"),
        }
    }

    fn second_cells(&mut self) -> impl Iterator<Item = &mut ResolvedCell> {
        self.cells[1].as_mut().expect("cells").iter_mut()
    }
}

fn outcome(compared: &CrossRunComparison, measure: &str, variant: &str) -> Option<Outcome> {
    let row = compared.rows.iter().find(|row| row.measure.to_string() == measure && row.variant.label() == variant);
    row.expect("a row").verdict.as_ref().map(|verdict| verdict.outcome)
}

fn topics(compared: &CrossRunComparison) -> Vec<&'static str> {
    compared.findings.iter().map(|finding| finding.topic).collect()
}

const P95: &str = "iteration_duration.p95";

#[test]
fn where_one_program_differs_the_comparison_is_about_it() {
    // Both variants run the same new program.
    let second = Run { hour: 30, old: (1.5, 'c'), new: (1.2, 'b'), ..FIRST };
    let compared = Two::of(&FIRST, &second).whole();
    assert_eq!(compared.causes.len(), 1);
    assert!(
        compared
            .about()
            .starts_with("One thing differs, and the comparison is about it: program of web (./old): SHA-256 aaaa")
    );
    assert_eq!(compared.basis, Basis::Values, "the baseline itself differs");
    assert_eq!(outcome(&compared, P95, "old"), Some(Outcome::Worse));
    assert_eq!(outcome(&compared, P95, "new"), Some(Outcome::Equivalent));
    assert!(
        compared.answer[0].starts_with("Iterations, p95: the second is worse for old (+50.0 %, interval +"),
        "{:?}",
        compared.answer
    );
    let row = &compared.rows[0];
    let change = row.change.as_ref().expect("a change");
    assert!((change.value - 1.5).abs() < 0.02 && change.n == [5, 5], "{change:?}");
    assert!(row.against_baseline.is_none());
    assert!(compared.rest.iter().any(|row| row.exploratory.is_some_and(|one| one.stands_out)));
}

#[test]
fn where_only_another_variant_differs_drift_falls_out() {
    // The machine has become 20 % slower, and `new` is the same but for its hash.
    let second = Run { hour: 30, old: (1.2, 'a'), new: (1.44, 'c'), ..FIRST };
    let compared = Two::of(&FIRST, &second).whole();
    assert_eq!(compared.basis, Basis::RatiosToBaseline);
    assert_eq!(outcome(&compared, P95, "old"), None, "its change is the drift");
    assert_eq!(outcome(&compared, P95, "new"), Some(Outcome::Equivalent));
    let drift = compared.findings.iter().find(|finding| finding.topic == "drift").expect("told");
    assert!(drift.evidence[0].contains("+20.0 %"), "{drift:?}");
}

#[test]
fn where_nothing_differs_the_baseline_is_judged_too() {
    let compared = Two::of(&FIRST, &Run { hour: -30, ..FIRST }).whole();
    assert_eq!((compared.causes.len(), compared.basis), (0, Basis::RatiosToBaseline));
    let about = compared.about();
    assert!(about.starts_with("Nothing differs that the bundles know of"), "{about}");
    assert!(about.contains("The baseline itself stayed within the margin in iterations, p95 ("), "{about}");
    assert!(compared.is_all_equivalent());
    assert!(compared.rows.iter().all(|row| row.verdict.as_ref().is_some_and(|one| one.outcome == Outcome::Equivalent)));
    assert!(compared.rows.iter().any(|row| row.against_baseline.is_some()), "the baseline is the same");
    let times = compared.findings.iter().find(|finding| finding.topic == "different times").expect("always told");
    assert!(times.sentence.starts_with("The second is the older one: it had ended 29 h before"), "{times:?}");
}

#[test]
fn where_nothing_differs_what_moved_is_drift_and_nothing_is_worse() {
    let second = Run { hour: 30, old: (1.3, 'a'), new: (1.56, 'b'), ..FIRST };
    let compared = Two::of(&FIRST, &second).whole();
    let about = compared.about();
    assert!(about.contains("The baseline itself moved by +30."), "{about}");
    assert!(about.ends_with("that is drift.") || about.contains(": that is drift. "), "{about}");
    assert_eq!(outcome(&compared, P95, "new"), Some(Outcome::Equivalent), "its ratio to the baseline is the same");
    assert!(!compared.is_all_equivalent(), "the baseline moved");
    let moved = compared.verdicts().filter(|verdict| compared.is_unexplained(verdict)).count();
    assert!(moved > 0 && compared.nothing_differs());
    // A ratio that moved is no variant that became worse either.
    let compared = Two::of(&FIRST, &Run { hour: 30, new: (1.8, 'b'), ..FIRST }).whole();
    let told = compared.answer.join(" ");
    assert!(told.contains("the second moved, although nothing known differs, for new (+50."), "{told}");
    assert!(!told.contains("worse") && !told.contains("better"), "{told}");
}

#[test]
fn generators_are_told_apart_by_their_names() {
    let second = Run { hour: 30, ..FIRST };
    let mut two = Two::of(&FIRST, &second);
    two.inputs[1].origin = plimsoll_model::study::Origin::Imported { tool: "k6".to_owned(), version: None };
    let causes = two.whole().causes;
    let k6 = causes.iter().find(|cause| cause.what == "generator").expect("a difference");
    assert_eq!((k6.first.as_str(), k6.second.as_str()), ("none", "k6"), "{causes:?}");
}

#[test]
fn what_is_never_the_same_is_told_aside() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    for (input, (load, memory)) in two.inputs.iter_mut().zip([(0.1, 8_000_000_000), (2.0, 7_950_000_000)]) {
        input.host.load_before = Some([load, 1.0, 1.0]);
        input.host.memory = Some(memory);
    }
    two.second_cells().for_each(|cell| cell.systems[0].start.0.push("--slow".to_owned()));
    let compared = two.whole();
    assert_eq!(compared.causes.len(), 1, "{:?}", compared.causes);
    let minor: Vec<String> = compared.minor.iter().map(ToString::to_string).collect();
    assert_eq!(
        minor,
        [
            "memory: 8.00 GB in the first, 7.95 GB in the second",
            "load average before the start: 0.10 in the first, 2.00 in the second",
        ]
    );
    two.inputs[1].host.memory = Some(4_000_000_000);
    assert_eq!(two.whole().causes.len(), 2, "half the memory is another machine");
}

#[test]
fn several_differences_cannot_be_told_apart() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    two.inputs[1].host.kernel = Some("Linux 7.0".to_owned());
    two.inputs[1].facts.generator.threads = 2;
    two.second_cells().for_each(|cell| cell.systems[0].start.0.push("--slow".to_owned()));
    two.second_cells().take(1).for_each(|cell| cell.systems[0].env.clear());
    let compared = two.whole();
    let causes: Vec<String> = compared.causes.iter().map(ToString::to_string).collect();
    assert_eq!(
        causes,
        [
            "start command of web (told for version = old; it differs for one other variant too): ./old --fast in the \
             first, ./old --fast --slow in the second",
            "variable POOL of web (version = old): 10 in the first, none in the second (of old alone)",
            "kernel: unknown in the first, Linux 7.0 in the second",
            "threads of the generator: 1 in the first, 2 in the second",
        ]
    );
    assert!(
        compared.about().starts_with("What made a difference cannot be told apart: 4 things differ: start command")
    );
    assert!(topics(&compared).contains(&"several things differ"));
}

#[test]
fn what_does_not_mean_the_same_is_refused_with_every_reason() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    two.inputs[1].facts.protocol = Protocol::Grpc;
    two.inputs[1].facts.decide[0].margin = 0.05;
    for cell in two.second_cells() {
        cell.load.warmup = Duration::from_secs(3);
        cell.load.model =
            LoadModel::Closed { users: Profile::constant(20.0), think: Think::Constant(Duration::from_millis(5)) };
        cell.workload.connect = Connect::PerIteration;
        let Steps::Http(steps) = &mut cell.workload.steps else { panic!("HTTP") };
        steps[0].path = "/other".to_owned();
    }
    assert_eq!(
        two.refused(),
        [
            "protocol: HTTP/1.1 in the first, gRPC in the second",
            "margin of iteration_duration.p95: 10 % in the first, 5 % in the second",
            "warm-up: 0ns in the first, 3s in the second",
            "users: 10 in the first, 20 in the second",
            "think time: none in the first, 5ms in the second",
            "connections: one for each user in the first, one for each iteration in the second",
            "request of step `call`: GET / in the first, GET /other in the second",
        ]
    );
}

#[test]
fn other_measures_and_nothing_in_common_are_refused() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    two.inputs[1].facts.decide.truncate(1);
    let refused = two.refused();
    assert!(
        refused[0].starts_with("deciding measures: iteration_duration.p95, iterations.rate in the first"),
        "{refused:?}"
    );
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    for variant in &mut two.inputs[1].plan.variants {
        variant.0[0].0 = "edition".to_owned();
    }
    assert!(
        two.refused()[0].starts_with("variants, none of which both have: version = old | version = new in the first")
    );
}

#[test]
fn another_objective_is_refused() {
    let objective = |at_most: f64| {
        let measure = "request_duration.p95".parse().expect("a measure");
        Objective { limits: vec![Limit { measure, at_most }], errors: 0.01, achieved: 0.986 }
    };
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    for input in &mut two.inputs {
        input.facts.objective = Some(objective(0.05));
    }
    assert_eq!(two.whole().causes, []);
    two.inputs[1].facts.objective = Some(Objective { errors: 0.001, achieved: 0.994, ..objective(0.2) });
    let limits_and_errors = [
        "limits of the objective: request_duration.p95 at most 50ms in the first, request_duration.p95 at most 200ms in \
         the second",
        "errors that the objective allows: 1 % in the first, 0.1 % in the second",
    ];
    assert_eq!(two.refused(), limits_and_errors, "users that wait offer no more than is achieved");
    for input in &mut two.inputs {
        input.facts.open_load = true;
    }
    let refused = two.refused();
    assert_eq!(refused[..2], limits_and_errors);
    assert_eq!(
        refused[2..],
        ["arrivals that the objective asks to be finished: 98.6 % in the first, 99.4 % in the second"]
    );
    two.inputs[0].facts.objective = None;
    assert_eq!(
        two.refused(),
        ["limits of the objective: none in the first, request_duration.p95 at most 200ms in the second"]
    );
}

#[test]
fn another_design_is_refused_and_other_lengths_of_its_slices_are_told() {
    let turns = |count: u32, slice: u64| Turns {
        count,
        settle: Duration::from_millis(100),
        slice: Duration::from_millis(slice),
    };
    let designs = [
        (Design::Trials, "trials"),
        (Design::Turns(turns(8, 400)), "turns"),
        (Design::SideBySide(turns(8, 400)), "side by side"),
    ];
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    // Whether a study can still be read makes no difference to that.
    for cells in [Ok(cells(&two.inputs[0])), Err("it is empty".to_owned())] {
        two.cells[0] = cells;
        for (first, name) in designs {
            for (second, other) in designs {
                (two.inputs[0].plan.design, two.inputs[1].plan.design) = (first, second);
                if first == second {
                    assert_eq!(two.whole().causes, []);
                } else {
                    assert_eq!(two.refused(), [format!("design: {name} in the first, {other} in the second")]);
                }
            }
        }
        two.inputs[0].plan.design = Design::Turns(turns(8, 400));
        two.inputs[1].plan.design = Design::Turns(turns(12, 1000));
        let compared = two.whole();
        let told = |all: &[Difference]| all.iter().map(ToString::to_string).collect::<Vec<String>>();
        assert_eq!(told(&compared.causes), ["length of a slice: 400ms in the first, 1s in the second"]);
        assert_eq!(told(&compared.minor), ["turns on a start: 8 in the first, 12 in the second"]);
    }
}

#[test]
fn without_the_study_its_words_decide() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    two.cells[0] = Err("it is empty".to_owned());
    let compared = two.whole();
    assert_eq!(compared.unknown.len(), 1);
    assert!(topics(&compared).contains(&"not known"));
    assert!(compared.rows.iter().all(|row| row.against_baseline.is_none()), "how it was started is not known");
    two.inputs[1].facts.load = "closed loop, 20 users".to_owned();
    two.inputs[1].plan.lengths[0].warmup = Duration::from_secs(1);
    let refused = two.refused();
    assert!(refused[0].starts_with("load: closed loop, 10 users"), "{refused:?}");
    assert!(refused[1].starts_with("lengths at all trials: warm-up 0ns"), "{refused:?}");
}

#[test]
fn a_run_is_not_compared_with_itself() {
    assert_eq!(Two::of(&FIRST, &FIRST).compared(), Err(NotComparable::SameRun));
}

#[test]
fn few_repeats_have_no_verdict_and_no_values_are_void() {
    let two = Two::of(&FIRST, &Run { hour: 30, repeats: 1, ..FIRST });
    let compared = two.whole();
    let change = compared.rows[0].change.as_ref().expect("a change");
    assert_eq!(change.n, [5, 1]);
    assert_eq!(change.interval, Err("one repeat has no spread".to_owned()));
    assert_eq!(outcome(&compared, P95, "old"), Some(Outcome::Inconclusive));
    let mut two = two;
    two.inputs[1].starts.clear();
    let compared = two.whole();
    assert_eq!(outcome(&compared, P95, "old"), Some(Outcome::Void));
    assert!(compared.ran[1].is_none());
}

#[test]
fn zeros_have_no_ratio_and_say_so() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    for trial in &mut two.inputs[1].starts {
        trial.loads[0].seconds.clear();
    }
    let compared = two.whole();
    let row = compared.rows.iter().find(|row| row.measure.to_string() == "iterations.rate").expect("a row");
    assert_eq!(row.change, Err("a trial gave 0, which has no ratio, in second".to_owned()));
    assert_eq!(row.verdict.as_ref().expect("a verdict").outcome, Outcome::Void);
}

#[test]
fn what_only_one_has_is_left_out_by_name() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    two.inputs[1].plan.variants[1].0[0].1 = plimsoll_model::factor::Level::Text("newer".to_owned());
    let compared = two.whole();
    assert_eq!(compared.left_out, ["the variant new is in first only", "the variant newer is in second only"]);
    assert!(compared.rows.iter().all(|row| row.variant.label() == "old"));
}

#[test]
fn runs_at_the_same_time_disturb_one_another() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    for trial in &mut two.inputs[1].starts {
        trial.summary.timing.started_unix_ms -= 30 * 3_600_000 - 500;
    }
    let compared = two.whole();
    assert_eq!(compared.findings[0].severity, Severity::Problem);
    assert_eq!(compared.findings[0].topic, "at the same time");
}

#[test]
fn the_same_file_elsewhere_is_no_difference() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, ..FIRST });
    // As a wrapper script's program, found at another place.
    for (input, place) in two.inputs.iter_mut().zip(["/a/server", "/b/server"]) {
        let sha256 = Some("d".repeat(64));
        let (name, program) = ("web".to_owned(), place.to_owned());
        input.versions.push(Version { name, program, path: None, version: None, sha256 });
    }
    assert_eq!(two.whole().causes, []);
    two.inputs[1].versions[2].sha256 = Some("e".repeat(64));
    assert_eq!(two.whole().causes.len(), 2, "one not run in the second, one not in the first");
}

#[test]
fn a_name_that_was_found_elsewhere_comes_with_both_paths() {
    let mut two = Two::of(&FIRST, &Run { hour: 30, old: (1.0, 'c'), ..FIRST });
    for (input, path) in two.inputs.iter_mut().zip(["/opt/a/old", "/opt/b/old"]) {
        input.versions[0].path = Some(path.to_owned());
    }
    let causes = two.whole().causes;
    let [cause] = causes.as_slice() else { panic!("one program differs: {causes:?}") };
    assert!(cause.first.ends_with("…, /opt/a/old") && cause.second.ends_with("…, /opt/b/old"), "{cause:?}");
}

#[test]
fn swapping_the_bundles_inverts_the_change() {
    let second = Run { hour: 30, old: (1.5, 'c'), new: (1.1, 'b'), ..FIRST };
    let (there, back) = (Two::of(&FIRST, &second).whole(), Two::of(&second, &FIRST).whole());
    for (one, other) in there.rows.iter().zip(&back.rows) {
        let (one, other) = (one.change.as_ref().expect("a change"), other.change.as_ref().expect("a change"));
        assert!((one.value * other.value - 1.0).abs() < 1e-9);
        let (one, other) = (one.interval.as_ref().expect("an interval"), other.interval.as_ref().expect("an interval"));
        assert!((one.low * other.high - 1.0).abs() < 1e-9);
    }
}

proptest! {
    #[test]
    fn whatever_the_values_nothing_is_nan(
        scales in prop::collection::vec(prop_oneof![Just(0.000_001), 0.001..1000.0_f64], 16),
        repeats in (1..5_u32, 1..5_u32),
        void in prop::collection::vec(any::<bool>(), 16),
    ) {
        let make = |repeats: u32, hour: i64| {
            let mut input = input(repeats, |number| start(scales[number as usize % 16]));
            for (index, trial) in input.starts.iter_mut().enumerate() {
                trial.summary.timing.started_unix_ms += hour * 3_600_000;
                if void[(index + hour as usize) % 16] {
                    trial.summary.validity = plimsoll_model::start::Validity::Void(vec!["a reason".to_owned()]);
                }
            }
            input
        };
        let inputs = [make(repeats.0, 0), make(repeats.1, 7)];
        let cells = inputs.each_ref().map(|input| Ok(cells(input)));
        let compared = Two { inputs, cells }.whole();
        for row in compared.rows.iter().chain(&compared.rest) {
            for change in [Some(&row.change), row.against_baseline.as_ref()].into_iter().flatten().flatten() {
                prop_assert!(change.value.is_finite());
                prop_assert!(change.interval.as_ref().map_or(true, |one| !one.low.is_nan() && !one.high.is_nan()));
                prop_assert!(change.p.is_none_or(|p| (0.0..=1.0).contains(&p)));
            }
        }
    }
}

#[test]
fn the_values_beside_a_change_between_runs_are_those_it_is_made_of() {
    let mut two = Two::of(&FIRST, &Run { hour: 24, new: (1.5, 'c'), ..FIRST });
    for (index, result) in two.inputs.iter_mut().flat_map(|input| &mut input.starts).enumerate() {
        let calls = plimsoll_model::record::Subject::Request("call".to_owned());
        let tally = result.loads[0].tallies.get_mut(&calls).expect("requests");
        tally.errors.insert(plimsoll_model::record::ErrorKind::Timeout, 1 + index as u64 % 7);
    }
    let compared = two.whole();
    let mut held = 0;
    for row in compared.rows.iter().chain(&compared.rest) {
        let (Ok(change), [Some(first), Some(second)]) = (&row.change, row.centres()) else { continue };
        let made = match row.measure.effect() {
            Effect::Ratio => second / first,
            Effect::Difference => second - first,
        };
        assert!(
            (made - change.value).abs() <= 1e-9 * made.abs().max(1e-9),
            "{made} and {} in {}",
            change.value,
            row.measure
        );
        held += 1;
    }
    assert!(held > 20, "{held}");
}
