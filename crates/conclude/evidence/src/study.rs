//! Whole studies in memory, as a bundle would hold them: for simulations of the whole analysis, and
//! for tests with nonsensical input.

use crate::orders;
use crate::rules::FLOOR_RULE;
use plimsoll_analysis::Input;
use plimsoll_model::host::Host;
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::result::{
    GeneratorRow, LoadResult, LoadSecond, LoadSummary, LoadTiming, StartResult, StartSummary, StartTiming, Steadiness,
    VariantSystems,
};
use plimsoll_model::sample::{HostSample, ProcessSample};
use plimsoll_model::start::{Load, PhaseLengths, Start, Validity};
use plimsoll_model::study::{Decision, GeneratorSpec, Origin, ReportSpec, StudyFacts};
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;
use std::time::Duration;

/// The size of a study.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Variants, the baseline among them.
    pub variants: usize,
    /// Conditions.
    pub conditions: usize,
    /// Repeats.
    pub repeats: usize,
    /// Seconds of the measure phase of each trial.
    pub seconds: i64,
}

/// Margin of both measures that decide.
const MARGIN: f64 = 0.05;

/// Iterations in each trial.
pub const ITERATIONS: u64 = 1000;

/// A study of this shape, in the product's order for `seed`. `scale` gives the factor by which
/// everything in a trial takes longer than usual.
pub fn study(shape: Shape, seed: u64, scale: impl FnMut(&Start) -> f64) -> Input {
    let plan = orders::plan(shape.variants, shape.conditions, shape.repeats, seed);
    of_plan(plan, shape, scale)
}

/// A study with this plan.
pub fn of_plan(plan: Plan, shape: Shape, mut scale: impl FnMut(&Start) -> f64) -> Input {
    let starts = plan.starts.iter().map(|planned| start(planned, shape.seconds, scale(planned))).collect();
    Input {
        facts: facts(shape),
        starts,
        origin: Origin::Measured,
        plan,
        host: Host::default(),
        versions: Vec::new(),
        problems: Vec::new(),
        complete: true,
        declared: true,
    }
}

/// Reorders the trials so that all of a variant run before those of the next one, as in a manual
/// measurement: AAABBB.
pub fn one_after_the_other(input: &mut Input) {
    input.starts.sort_by_key(|result| (result.summary.start.variants.clone(), result.summary.start.number));
    for (place, result) in (0..).zip(&mut input.starts) {
        result.summary.timing.started_unix_ms = started(place);
    }
}

fn started(place: i64) -> i64 {
    1_760_000_000_000 + place * 30_000
}

/// A start with one load, in which iterations of one call take `scale` times 1, 2, … 100 ms, each
/// equally often.
#[must_use]
pub fn start(start: &Start, seconds: i64, scale: f64) -> StartResult {
    let variant = start.variants[0];
    let window = Nanos(u64::try_from(seconds).unwrap_or(0) * 1_000_000_000);
    StartResult {
        folder: format!("starts/{:04}", start.number),
        summary: StartSummary {
            start: start.clone(),
            validity: Validity::Valid,
            warnings: Vec::new(),
            timing: StartTiming {
                started_unix_ms: started(i64::from(start.number)),
                took: Nanos(window.0 + 1_000_000_000),
            },
            hosts: Vec::new(),
            systems: vec![VariantSystems {
                variant,
                ready_after: Nanos(1_000_000),
                processors: None,
                bound_to: BTreeMap::new(),
                databases: Vec::new(),
            }],
        },
        loads: vec![load(variant, window, seconds, scale)],
        processes: (0..seconds).map(|second| ProcessSample { variant, ..process(second, scale) }).collect(),
        databases: Vec::new(),
        waits: Vec::new(),
        metrics: Vec::new(),
        host: (0..seconds)
            .map(|second| HostSample { at: (second + 1) as f64, cpu_cores: 1.0, ..HostSample::default() })
            .collect(),
    }
}

fn load(variant: usize, window: Nanos, seconds: i64, scale: f64) -> LoadResult {
    let mut tally = Tally { bytes_out: ITERATIONS * 10, bytes_in: ITERATIONS * 20, ..Tally::default() };
    for milliseconds in 1..=100 {
        let nanoseconds = (f64::from(milliseconds) * scale * 1e6) as u64;
        tally.service.record_n(nanoseconds.max(1), ITERATIONS / 100).expect("below an hour");
    }
    let load = Load { number: 1, variant, turn: 1, beside: None, rung: None, lengths: PhaseLengths::default() };
    LoadResult {
        summary: LoadSummary {
            timing: LoadTiming { window, ..LoadTiming::default() },
            steadiness: Steadiness { from: Some(Nanos(0)), ..Steadiness::default() },
            ..LoadSummary::not_offered(load)
        },
        cut: 0,
        tallies: [Subject::Iteration, Subject::Connect, Subject::Request("call".to_owned())]
            .into_iter()
            .map(|subject| (subject, tally.clone()))
            .collect(),
        seconds: (0..seconds).flat_map(|second| rows(second, seconds, scale)).collect(),
        generator: (0..seconds).map(|second| GeneratorRow { second, users: 10, ..GeneratorRow::default() }).collect(),
        slices: Vec::new(),
        rungs: Vec::new(),
        recoveries: Vec::new(),
    }
}

fn rows(second: i64, seconds: i64, scale: f64) -> [LoadSecond; 3] {
    let ended = ITERATIONS as f64 / scale / seconds.max(1) as f64;
    [Subject::Iteration, Subject::Connect, Subject::Request("call".to_owned())].map(|subject| LoadSecond {
        count: ended as u64,
        bytes_out: (ended as u64).saturating_mul(10),
        bytes_in: (ended as u64).saturating_mul(20),
        mean: 50.5e6 * scale,
        ..LoadSecond::empty(second, subject)
    })
}

fn process(second: i64, scale: f64) -> ProcessSample {
    ProcessSample {
        at: (second + 1) as f64,
        system: "server".to_owned(),
        processes: 1,
        cpu_cores: 0.5 * scale,
        resident: (5e7 * scale) as u64,
        ..ProcessSample::default()
    }
}

fn facts(shape: Shape) -> StudyFacts {
    let decide = |measure: &str| Decision { measure: measure.parse().expect("a measure"), margin: MARGIN };
    StudyFacts {
        title: "v2 against v1".to_owned(),
        question: "Is it as fast?".to_owned(),
        factors: orders::factors(shape.variants, shape.conditions),
        decide: vec![decide("iteration_duration.p95"), decide("iterations.rate")],
        floor_rule: FLOOR_RULE,
        report: ReportSpec::default(),
        protocol: Protocol::Http,
        open_load: false,
        load: "closed loop, 10 users".to_owned(),
        mean_think: None,
        workload: "one call".to_owned(),
        generator: GeneratorSpec { threads: 1, cpus: None, max_cpu: 0.9, max_lateness: Duration::from_millis(10) },
        systems: vec!["server".to_owned()],
        metrics: Vec::new(),
        commands: Vec::new(),
        loopback: true,
        file: "study.toml".to_owned(),
        profile: None,
        quick: false,
        design_reason: String::new(),
        can_take_turns: false,
        soak: false,
        objective: None,
    }
}
