//! A small study for the tests: `old` against `new`, one condition.

use crate::input::Input;
use plimsoll_model::factor::{Assignment, Factor, Level, Role};
use plimsoll_model::host::Host;
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::result::{
    LoadResult, LoadSecond, LoadSummary, LoadTiming, StartResult, StartSummary, StartTiming, Steadiness, TrialResult,
    VariantSystems,
};
use plimsoll_model::start::{Design, Load, PhaseLengths, Start, Validity};
use plimsoll_model::study::{Decision, FloorRule, GeneratorSpec, Origin, ReportSpec, StudyFacts};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;
use std::time::Duration;

/// The lengths of the phases of a load in tests.
const LENGTHS: PhaseLengths =
    PhaseLengths { warmup: Duration::ZERO, measure: Duration::from_secs(2), drain: Duration::ZERO };

/// A study of so many repeats; `make` gives the start of a number, from 1. The baseline has the
/// odd ones.
pub(crate) fn input(repeats: u32, make: impl Fn(u32) -> StartResult) -> Input {
    let of = |level: &str| Assignment(vec![("version".to_owned(), Level::Text(level.to_owned()))]);
    let starts: Vec<Start> = (1..=repeats * 2).map(numbered).collect();
    Input {
        facts: facts(),
        starts: starts.iter().map(|start| placed(make(start.number), start)).collect(),
        origin: Origin::Measured,
        plan: Plan {
            seed: 1,
            repeats,
            variants: vec![of("old"), of("new")],
            conditions: vec![Assignment::default()],
            starts,
            lengths: vec![LENGTHS],
            design: Design::Trials,
            with_duplicate: false,
            given_time: None,
            searches: Vec::new(),
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

/// A study of one system, so that nothing is compared.
pub(crate) fn describing(repeats: u32, make: impl Fn(u32) -> StartResult) -> Input {
    let mut input = input(repeats, make);
    input.plan.variants = vec![Assignment::default()];
    input.plan.starts.truncate(repeats as usize);
    input.starts.truncate(repeats as usize);
    for (result, place) in input.starts.iter_mut().zip(&mut input.plan.starts) {
        (place.variants, place.block, place.repeat) = (vec![0], place.number, place.number);
        *result = placed(result.clone(), place);
    }
    input
}

/// A start with one load of 1,000 iterations of one call: `scale` times 1, 2, … 100 ms, each ten
/// times, in a window of 2 s.
pub(crate) fn start(scale: f64) -> StartResult {
    let start = numbered(1);
    StartResult {
        folder: "starts/0001".to_owned(),
        loads: vec![load(Load { number: 1, variant: 0, turn: 1, beside: None, rung: None, lengths: LENGTHS }, scale)],
        summary: StartSummary {
            start,
            validity: Validity::Valid,
            warnings: Vec::new(),
            timing: StartTiming { started_unix_ms: 0, took: Nanos(3_000_000_000) },
            hosts: Vec::new(),
            systems: vec![systems(0)],
        },
        processes: Vec::new(),
        host: Vec::new(),
        databases: Vec::new(),
        waits: Vec::new(),
        metrics: Vec::new(),
    }
}

/// A start of both variants, each with a load like that of [`start`]; the second one's measure phase
/// begins so many seconds after the first one's.
pub(crate) fn two_variants_on_one_start(seconds: i64) -> StartResult {
    let mut result = start(1.0);
    result.summary.start.variants = vec![0, 1];
    result.summary.systems.push(systems(1));
    let mut second = load(Load { number: 2, variant: 1, turn: 1, beside: None, rung: None, lengths: LENGTHS }, 1.0);
    second.summary.timing.zero = Instant(seconds * 1_000_000_000);
    result.loads.push(second);
    result
}

fn systems(variant: usize) -> VariantSystems {
    VariantSystems {
        variant,
        ready_after: Nanos(1_000_000),
        processors: None,
        bound_to: BTreeMap::new(),
        databases: Vec::new(),
    }
}

fn load(load: Load, scale: f64) -> LoadResult {
    let mut tally = Tally { bytes_out: 1000, bytes_in: 2000, ..Tally::default() };
    for milliseconds in 1..=100 {
        tally.service.record_n((f64::from(milliseconds) * scale * 1e6) as u64, 10).expect("in range");
    }
    let timing = LoadTiming { zero: Instant(0), window: Nanos(2_000_000_000) };
    let steadiness = Steadiness { from: Some(Nanos(0)), ..Steadiness::default() };
    let mut result = LoadResult {
        summary: LoadSummary { timing, steadiness, ..LoadSummary::not_offered(load) },
        cut: 0,
        tallies: [(Subject::Iteration, tally.clone()), (Subject::Request("call".to_owned()), tally)].into(),
        seconds: Vec::new(),
        generator: Vec::new(),
        slices: Vec::new(),
        rungs: Vec::new(),
        recoveries: Vec::new(),
    };
    with_second(&mut result, 0, 50);
    with_second(&mut result, 1, 50);
    result
}

/// The load of a start that has one.
pub(crate) fn only_trial(start: &StartResult) -> TrialResult<'_> {
    start.trials().next().expect("a load")
}

/// Adds a second in which `count` iterations of one call ended, with 10 bytes out for each.
pub(crate) fn with_second(load: &mut LoadResult, second: i64, count: u64) {
    for (subject, bytes_out) in [(Subject::Iteration, 0), (Subject::Request("call".to_owned()), count * 10)] {
        load.seconds.push(LoadSecond { count, bytes_out, ..LoadSecond::empty(second, subject) });
    }
}

/// The same start with one load, at a place of a plan.
pub(crate) fn placed(mut result: StartResult, place: &Start) -> StartResult {
    let variant = place.variants[0];
    result.loads[0].summary.load.variant = variant;
    result.summary.systems[0].variant = variant;
    result.processes.iter_mut().for_each(|sample| sample.variant = variant);
    result.databases.iter_mut().for_each(|sample| sample.variant = variant);
    result.summary.timing.started_unix_ms = i64::from(place.number) * 3_000;
    result.summary.start = place.clone();
    result
}

fn numbered(number: u32) -> Start {
    let (block, variants) = (number.div_ceil(2), vec![usize::from(number.is_multiple_of(2))]);
    let (position, extended, condition) = (2 - number % 2, false, 0);
    Start { number, block, repeat: block, attempt: 1, extended, position, condition, variants }
}

/// The starts of so many variants under so many conditions; every second block runs the other way
/// round.
pub(crate) fn blocks(variants: usize, conditions: usize, repeats: u32) -> Vec<Start> {
    let mut starts = Vec::new();
    for repeat in 1..=repeats {
        for condition in 0..conditions {
            let block = (repeat - 1) * conditions as u32 + condition as u32 + 1;
            for place in 0..variants {
                let variants = vec![if repeat.is_multiple_of(2) { variants - 1 - place } else { place }];
                let (number, position) = (starts.len() as u32 + 1, place as u32 + 1);
                let (attempt, extended) = (1, false);
                starts.push(Start { number, block, repeat, attempt, extended, position, condition, variants });
            }
        }
    }
    starts
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
        metrics: Vec::new(),
        commands: vec![vec!["web: ./web --version old".to_owned()], vec!["web: ./web --version new".to_owned()]],
        loopback: false,
        file: "study.toml".to_owned(),
        profile: None,
        quick: false,
        design_reason: String::new(),
        can_take_turns: true,
        soak: false,
        objective: None,
    }
}

/// The same study with a duplicate of the baseline in each block, whose start `make` gives for a
/// block.
pub(crate) fn with_duplicate(mut input: Input, make: impl Fn(u32) -> StartResult) -> Input {
    input.plan.with_duplicate = true;
    for block in 1..=input.plan.repeats {
        let first = input.plan.starts[(block as usize - 1) * 2].clone();
        let number = input.plan.starts.len() as u32 + 1;
        let start = Start { number, position: 3, variants: vec![2], ..first };
        let mut result = placed(make(block), &start);
        result.summary.timing.started_unix_ms = i64::from(block) * 6_000 + 1;
        input.plan.starts.push(start);
        input.starts.push(result);
    }
    input
}
