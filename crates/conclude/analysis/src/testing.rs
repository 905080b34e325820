//! A small study for the tests: `old` against `new`, one condition.

use crate::Input;
use plimsoll_model::factor::{Assignment, Factor, Level, Role};
use plimsoll_model::host::Host;
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::result::{Headroom, LoadSecond, TrialResult, TrialSummary};
use plimsoll_model::study::{Decision, FloorRule, GeneratorSpec, ReportSpec, StudyFacts};
use plimsoll_model::trial::{Plan, Trial, TrialLength, Validity};
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;
use std::time::Duration;

/// A study of so many repeats; `make` gives the trial of a number, from 1. The baseline has the
/// odd ones.
pub(crate) fn input(repeats: u32, make: impl Fn(u32) -> TrialResult) -> Input {
    let of = |level: &str| Assignment(vec![("version".to_owned(), Level::Text(level.to_owned()))]);
    let trials: Vec<Trial> = (1..=repeats * 2).map(numbered).collect();
    let results = trials.iter().map(|trial| {
        let mut result = make(trial.number);
        result.summary.trial = *trial;
        result.summary.started_unix_ms = i64::from(trial.number) * 3_000;
        result
    });
    Input {
        facts: facts(),
        trials: results.collect(),
        plan: Plan {
            seed: 1,
            repeats,
            variants: vec![of("old"), of("new")],
            conditions: vec![Assignment::default()],
            trials,
            lengths: vec![TrialLength {
                warmup: Duration::ZERO,
                measure: Duration::from_secs(2),
                drain: Duration::ZERO,
            }],
            with_duplicate: false,
            spare_blocks: 0,
            looks: Vec::new(),
        },
        host: Host::default(),
        versions: Vec::new(),
        problems: Vec::new(),
        complete: true,
        declared: true,
    }
}

/// A trial with 1,000 iterations of one call: `scale` times 1, 2, … 100 ms, each ten times, in a
/// window of 2 s.
pub(crate) fn trial(scale: f64) -> TrialResult {
    let mut tally = Tally { bytes_out: 1000, bytes_in: 2000, ..Tally::default() };
    for milliseconds in 1..=100 {
        tally.service.record_n((f64::from(milliseconds) * scale * 1e6) as u64, 10).expect("in range");
    }
    let mut result = TrialResult {
        summary: TrialSummary {
            trial: numbered(1),
            validity: Validity::Valid,
            warnings: Vec::new(),
            started_unix_ms: 0,
            took: Nanos(3_000_000_000),
            ready_after: Nanos(1_000_000),
            window: Nanos(2_000_000_000),
            steady_from: Some(Nanos(0)),
            unsteady: false,
            unjudged: None,
            headroom: Headroom::default(),
            open_load: false,
            sequences: BTreeMap::new(),
            error_examples: BTreeMap::new(),
            storage: None,
            databases: Vec::new(),
            script: None,
        },
        cut: 0,
        tallies: [(Subject::Iteration, tally.clone()), (Subject::Request("call".to_owned()), tally)].into(),
        seconds: Vec::new(),
        generator: Vec::new(),
        processes: Vec::new(),
        host: Vec::new(),
        databases: Vec::new(),
    };
    with_second(&mut result, 0, 50);
    with_second(&mut result, 1, 50);
    result
}

/// Adds a second in which `count` iterations of one call ended, with 10 bytes out for each.
pub(crate) fn with_second(result: &mut TrialResult, second: i64, count: u64) {
    for (subject, bytes_out) in [(Subject::Iteration, 0), (Subject::Request("call".to_owned()), count * 10)] {
        result.seconds.push(LoadSecond { count, bytes_out, ..LoadSecond::empty(second, subject) });
    }
}

fn numbered(number: u32) -> Trial {
    let block = number.div_ceil(2);
    let variant = usize::from(number.is_multiple_of(2));
    Trial { number, block, repeat: block, attempt: 1, extended: false, position: 2 - number % 2, variant, condition: 0 }
}

fn facts() -> StudyFacts {
    let decide = |measure: &str, margin| Decision { measure: measure.parse().expect("a measure"), margin };
    StudyFacts {
        title: "old against new".to_owned(),
        question: "Is new slower than old?".to_owned(),
        factors: vec![Factor {
            name: "version".to_owned(),
            levels: vec![Level::Text("old".to_owned()), Level::Text("new".to_owned())],
            role: Role::Compared { baseline: 0 },
        }],
        decide: vec![decide("iteration_duration.p95", 0.1), decide("iterations.rate", 0.05)],
        floor_rule: FloorRule::default(),
        report: ReportSpec::default(),
        protocol: Protocol::Http,
        open_load: false,
        load: "closed loop, 10 users, no think time".to_owned(),
        mean_think: Some(0.0),
        workload: "one call".to_owned(),
        generator: GeneratorSpec { threads: 1, cpus: None, max_cpu: 0.9, max_lateness: Duration::from_millis(10) },
        systems: vec!["web".to_owned()],
        commands: vec![vec!["web: ./web --version old".to_owned()], vec!["web: ./web --version new".to_owned()]],
        loopback: false,
        profile: None,
        quick: false,
    }
}

/// The same study with a duplicate of the baseline in each block, whose trial `make` gives for a
/// block.
pub(crate) fn with_duplicate(mut input: Input, make: impl Fn(u32) -> TrialResult) -> Input {
    input.plan.with_duplicate = true;
    for block in 1..=input.plan.repeats {
        let first = input.plan.trials[(block as usize - 1) * 2];
        let number = input.plan.trials.len() as u32 + 1;
        let trial = Trial { number, position: 3, variant: 2, ..first };
        let mut result = make(block);
        result.summary.trial = trial;
        result.summary.started_unix_ms = i64::from(block) * 6_000 + 1;
        input.plan.trials.push(trial);
        input.trials.push(result);
    }
    input
}
