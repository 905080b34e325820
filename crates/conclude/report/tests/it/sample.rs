//! A study like that of inputQ against mutex, with results that arithmetic makes up.

use plimsoll_analysis::Input;
use plimsoll_model::factor::{Factor, Level, Role, combinations};
use plimsoll_model::host::{Host, Version};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{ErrorKind, SequenceCheck, Subject, Tally};
use plimsoll_model::result::{
    GeneratorRow, LoadResult, LoadSecond, LoadSummary, LoadTiming, PooledLoads, StartResult, StartSummary, StartTiming,
    Steadiness, VariantSystems,
};
use plimsoll_model::sample::ProcessSample;
use plimsoll_model::start::{Design, Load, PhaseLengths, Start, Turns, Validity};
use plimsoll_model::study::{Decision, FloorRule, GeneratorSpec, Origin, ReportSpec, StudyFacts};
use plimsoll_model::units::{Instant, Nanos, Processors};
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;
use std::time::Duration;

const REPEATS: u32 = 5;
const SECONDS: i64 = 10;

/// Numbers between 0 and 1 that look random and are the same everywhere.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / f64::from(1_u32 << 24)
    }

    /// About normal around 1, with this relative standard deviation.
    pub(crate) fn around_one(&mut self, sd: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.share()).sum();
        1.0 + (sum - 6.0) * sd
    }
}

/// The true values behind a trial.
struct Truth {
    users: f64,
    rate: f64,
    call: f64,
    connect: Option<f64>,
}

/// Two modes × three numbers of users × two ways to connect, five repeats, each block with a
/// duplicate of the baseline. Trial 8 is void, the system of trial 20 gave wrong replies, and 1,000 users see errors.
pub(crate) fn study() -> Input {
    let facts = facts();
    let plan = plan(&facts);
    let mut noise = Noise(42);
    let mut starts = starts(&plan, &mut noise);
    let reason = "the generator was the limit: its busiest thread used 97 % of a processor, above 90 %".to_owned();
    starts[7].loads[0].summary.validity = Validity::Void(vec![reason]);
    let check = SequenceCheck { replies: 40_000, largest: 39_998, repeated: 2, ..SequenceCheck::default() };
    let load = &mut starts[19].loads[0].summary;
    load.replies.sequences.insert("increment".to_owned(), check);
    load.validity = Validity::Failed(vec!["wrong replies to `increment`: 2 repeated".to_owned()]);
    starts[2].loads[0].summary.warnings = vec!["the generator's loop stalled for 131 ms".to_owned()];
    Input {
        facts,
        plan,
        starts,
        origin: Origin::Measured,
        host: host(),
        versions: versions(),
        problems: Vec::new(),
        complete: true,
        declared: true,
    }
}

/// The same with one way to connect, three variants, and a condition that is a word.
pub(crate) fn three_variants() -> Input {
    let mut input = study();
    let text = |text: &str| Level::Text(text.to_owned());
    input.facts.factors[0].levels.push(text("racy"));
    input.facts.factors[1] =
        Factor { name: "storage".to_owned(), levels: vec![text("local disk"), text("nfs")], role: Role::Condition };
    input.facts.factors.truncate(2);
    input.facts.report.axis = None;
    input.facts.load = "closed loop, 50 users, no think time".to_owned();
    input.facts.workload = "gRPC to {counter.address}: increment; connections: per user; time-out 10s".to_owned();
    input.plan = plan(&input.facts);
    let mut noise = Noise(7);
    input.starts = starts(&input.plan, &mut noise);
    for load in input.starts.iter_mut().map(|start| &mut start.loads[0].summary).filter(|one| one.load.variant == 2) {
        load.validity = Validity::Failed(vec!["wrong replies to `increment`".to_owned()]);
    }
    input
}

/// The same with conditions that differ in a sign alone, and a measure whose name differs from another's in a sign alone.
pub(crate) fn told_apart_by_signs() -> Input {
    let mut input = study();
    input.facts.factors[2] = Factor {
        name: "nice".to_owned(),
        levels: ["5", "-5"].map(|level| Level::Text(level.to_owned())).into(),
        role: Role::Condition,
    };
    input.facts.report.measures =
        ["request_duration:a/b.p95", "request_duration:a-b.p95"].map(|one| one.parse().expect("a measure")).into();
    input.plan = plan(&input.facts);
    input.starts = starts(&input.plan, &mut Noise(7));
    input
}

/// Both modes and the duplicate in turns on each start, in an order that changes; no condition.
pub(crate) fn in_turns() -> Input {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1]];
    let mut input = study();
    input.facts.factors.truncate(1);
    input.facts.report.axis = None;
    input.facts.load = "closed loop, 50 users, no think time".to_owned();
    input.facts.workload = "gRPC to {counter.address}: increment; connections: per user; time-out 10s".to_owned();
    input.plan = plan(&input.facts);
    let turns = Turns { count: 12, settle: Duration::from_millis(100), slice: Duration::from_millis(500) };
    input.plan.design = Design::Turns(turns);
    input.plan.starts.retain(|start| start.variants == [0]);
    for (number, start) in (1..).zip(&mut input.plan.starts) {
        (start.number, start.position, start.variants) = (number, 1, vec![0, 1, 2]);
    }
    let mut noise = Noise(3);
    input.starts =
        input.plan.starts.iter().map(|start| start_in_turns(&input.plan, start, &ORDERS, &mut noise)).collect();
    input
}

fn start_in_turns(plan: &Plan, start: &Start, orders: &[[usize; 3]; 6], noise: &mut Noise) -> StartResult {
    let mut pooled = PooledLoads::default();
    let places = (1..=plan.turns()).flat_map(|turn| {
        let order = orders[((turn * 5 + start.number) % 6) as usize];
        order.map(|variant| (turn, variant))
    });
    for (place, (turn, variant)) in (0..).zip(places) {
        let alone = Start { variants: vec![variant], ..start.clone() };
        let mut slice = result(plan, &alone, noise).loads.remove(0);
        slice.summary.load.turn = turn;
        slice.summary.timing = LoadTiming { zero: Instant(place * 700_000_000), window: Nanos(500_000_000) };
        pooled.add(&slice);
    }
    let mut result = empty_result(start);
    result.summary.timing.took = Nanos(37 * 1_000_000_000);
    let systems = |variant| VariantSystems { variant, ..result.summary.systems[0].clone() };
    result.summary.systems = (0..3).map(systems).collect();
    result.loads = pooled.finish();
    result
}

/// The mutex alone, with nothing to compare it with, at three numbers of users.
pub(crate) fn one_system() -> Input {
    let mut input = study();
    input.facts.title = "mutex under load".to_owned();
    input.facts.question = "How long do calls take behind a mutex?".to_owned();
    input.facts.factors = vec![input.facts.factors[1].clone()];
    input.facts.report.axis = None;
    input.facts.workload = "gRPC to {counter.address}: increment; connections: per user; time-out 10s".to_owned();
    input.facts.commands.truncate(1);
    input.plan = Plan { with_duplicate: false, ..plan(&input.facts) };
    input.plan.starts.retain(|start| start.variants == [0]);
    for (number, start) in (1..).zip(&mut input.plan.starts) {
        (start.number, start.block, start.position) = (number, number, 1);
    }
    input.starts = starts(&input.plan, &mut Noise(11));
    input
}

/// One variant, no condition, one repeat.
pub(crate) fn smallest() -> Input {
    let mut input = study();
    input.facts.factors[0].levels.truncate(1);
    input.facts.factors.truncate(1);
    input.facts.report = ReportSpec::default();
    input.plan = Plan { repeats: 1, with_duplicate: false, ..plan(&input.facts) };
    input.plan.starts.truncate(1);
    input.starts = starts(&input.plan, &mut Noise(7));
    input
}

fn facts() -> StudyFacts {
    let text = |text: &str| Level::Text(text.to_owned());
    let measure = |text: &str| text.parse().expect("a measure");
    StudyFacts {
        title: "inputQ against mutex".to_owned(),
        question: "Does serialising through a channel cost more than a mutex?".to_owned(),
        factors: vec![
            Factor {
                name: "mode".to_owned(),
                levels: vec![text("mutex"), text("inputQ")],
                role: Role::Compared { baseline: 0 },
            },
            Factor {
                name: "users".to_owned(),
                levels: [10, 100, 1000].map(Level::Integer).into(),
                role: Role::Condition,
            },
            Factor {
                name: "connect".to_owned(),
                levels: vec![text("per user"), text("every iteration")],
                role: Role::Condition,
            },
        ],
        decide: vec![
            Decision { measure: measure("iteration_duration.p95"), margin: 0.1 },
            Decision { measure: measure("iterations.rate"), margin: 0.05 },
        ],
        floor_rule: FloorRule::default(),
        report: ReportSpec {
            measures: ["request_duration.p95", "cpu.avg", "memory.max"].map(measure).into(),
            axis: Some("users".to_owned()),
            comments: Some(
                "The question is that of a study of 2023 <with k6>.\n\nHere every cell has repeats.".to_owned(),
            ),
            action_items: vec!["Keep the mutex & measure again with 8 cores".to_owned()],
        },
        protocol: Protocol::Grpc,
        open_load: false,
        load: "closed loop, {users} users, no think time".to_owned(),
        mean_think: Some(0.0),
        workload: "gRPC to {counter.address}: increment; connections: {connect}; time-out 10s".to_owned(),
        generator: GeneratorSpec {
            threads: 1,
            cpus: Some(Processors(vec![1])),
            max_cpu: 0.9,
            max_lateness: Duration::from_millis(10),
        },
        systems: vec!["counter".to_owned()],
        metrics: Vec::new(),
        commands: ["mutex", "inputQ"].map(|mode| vec![format!("counter: ./counter -mode {mode}")]).into(),
        loopback: true,
        file: "counter.toml".to_owned(),
        profile: None,
        quick: false,
        design_reason: String::new(),
        can_take_turns: true,
        soak: false,
        objective: None,
    }
}

/// Blocks in the study's order, every second one the other way round.
pub(crate) fn plan(facts: &StudyFacts) -> Plan {
    let variants = combinations(facts.factors.iter().filter(|factor| factor.is_compared()));
    let conditions = combinations(facts.factors.iter().filter(|factor| !factor.is_compared()));
    let mut starts = Vec::new();
    for repeat in 1..=REPEATS {
        for condition in 0..conditions.len() {
            let block = (repeat - 1) * conditions.len() as u32 + condition as u32 + 1;
            // One past the variants is the duplicate.
            for place in 0..=variants.len() {
                let variants = vec![if block.is_multiple_of(2) { variants.len() - place } else { place }];
                let (number, position) = (starts.len() as u32 + 1, place as u32 + 1);
                let (attempt, extended) = (1, false);
                starts.push(Start { number, block, repeat, attempt, extended, position, condition, variants });
            }
        }
    }
    let lengths = PhaseLengths {
        warmup: Duration::from_secs(2),
        measure: Duration::from_secs(SECONDS as u64),
        drain: Duration::from_secs(5),
    };
    Plan {
        seed: 42,
        repeats: REPEATS,
        lengths: vec![lengths; conditions.len()],
        variants,
        conditions,
        starts,
        design: Design::Trials,
        with_duplicate: true,
        given_time: None,
        searches: Vec::new(),
        spare_blocks: 0,
        looks: Vec::new(),
    }
}

fn truth(plan: &Plan, start: &Start, noise: &mut Noise) -> Truth {
    let variant = start.variants[0];
    let assignment = plan.assignment(variant, start.condition);
    let users = match assignment.get("users") {
        Some(Level::Integer(users)) => *users as f64,
        _ => 50.0,
    };
    let slower = if variant == 1 { 1.03 + 0.05 * (users / 1000.0) } else { 1.0 };
    let call = (0.000_25 + users * 0.000_018) * slower * noise.around_one(0.012);
    let connect =
        (assignment.get("connect") == Some(&Level::Text("every iteration".to_owned()))).then_some(call * 2.5 + 0.0003);
    let rate = users / (call + connect.unwrap_or(0.0) + 0.000_01);
    Truth { users, rate, call, connect }
}

/// A result for each start of the plan.
pub(crate) fn starts(plan: &Plan, noise: &mut Noise) -> Vec<StartResult> {
    plan.starts.iter().map(|start| result(plan, start, noise)).collect()
}

fn result(plan: &Plan, start: &Start, noise: &mut Noise) -> StartResult {
    let mut truth = truth(plan, start, noise);
    let count = 4000;
    let weight = ((truth.rate * SECONDS as f64) / f64::from(count)).round().max(1.0) as u64;
    let mut tallies: BTreeMap<Subject, Tally> = BTreeMap::new();
    let call = Subject::Request("increment".to_owned());
    for _ in 0..count {
        let call_time = truth.call * skewed(noise);
        let connect_time = truth.connect.map(|mean| mean * skewed(noise));
        record(&mut tallies, &call, call_time, weight);
        if let Some(time) = connect_time {
            record(&mut tallies, &Subject::Connect, time, weight);
        }
        record(&mut tallies, &Subject::Iteration, call_time + connect_time.unwrap_or(0.0) + 0.000_01, weight);
    }
    // In a closed loop throughput follows from what iterations take.
    truth.rate = truth.users * 1e9 / tallies[&Subject::Iteration].service.mean();
    if truth.users > 900.0 && start.variants == [1] {
        tallies.get_mut(&call).expect("calls").errors.insert(ErrorKind::Timeout, 17);
    }
    let mut result = empty_result(start);
    let load = &mut result.loads[0];
    load.seconds = seconds(&truth, noise);
    load.generator = generator(&truth);
    load.tallies = tallies;
    result.processes = processes(&truth, start.variants[0], noise);
    result
}

/// A start with one load, in which nothing was recorded.
pub(crate) fn empty_result(start: &Start) -> StartResult {
    let load = LoadResult {
        summary: LoadSummary {
            timing: LoadTiming { window: Nanos(SECONDS as u64 * 1_000_000_000), ..LoadTiming::default() },
            steadiness: Steadiness { from: Some(Nanos(0)), ..Steadiness::default() },
            ..LoadSummary::not_offered(Load {
                number: 1,
                variant: 0,
                turn: 1,
                beside: None,
                rung: None,
                lengths: PhaseLengths::default(),
            })
        },
        cut: 0,
        tallies: BTreeMap::new(),
        seconds: Vec::new(),
        generator: Vec::new(),
        slices: Vec::new(),
        rungs: Vec::new(),
        recoveries: Vec::new(),
    };
    let systems = VariantSystems {
        variant: 0,
        ready_after: Nanos(80_000_000),
        processors: None,
        bound_to: BTreeMap::new(),
        databases: Vec::new(),
    };
    let summary = StartSummary {
        start: start.clone(),
        validity: Validity::Valid,
        warnings: Vec::new(),
        timing: StartTiming { took: Nanos(13_500_000_000), ..StartTiming::default() },
        hosts: Vec::new(),
        systems: vec![systems],
    };
    let result = StartResult {
        folder: format!("starts/{:04}", summary.start.number),
        summary,
        loads: vec![load],
        processes: Vec::new(),
        host: Vec::new(),
        databases: Vec::new(),
        waits: Vec::new(),
        metrics: Vec::new(),
    };
    placed(result, start)
}

/// The same start with one load, at a place of a plan.
pub(crate) fn placed(mut result: StartResult, place: &Start) -> StartResult {
    let variant = place.variants[0];
    result.loads[0].summary.load.variant = variant;
    result.summary.systems[0].variant = variant;
    result.processes.iter_mut().for_each(|sample| sample.variant = variant);
    result.databases.iter_mut().for_each(|sample| sample.variant = variant);
    result.summary.timing.started_unix_ms = 1_700_000_000_000 + i64::from(place.number) * 14_000;
    result.summary.start = place.clone();
    result
}

/// Around 1, with a tail to the right.
fn skewed(noise: &mut Noise) -> f64 {
    let long = if noise.share() > 0.97 { 2.0 + noise.share() * 3.0 } else { 0.0 };
    0.55 + 0.35 * noise.share() - 0.22 * (1.0 - noise.share()).ln() + long
}

fn record(tallies: &mut BTreeMap<Subject, Tally>, subject: &Subject, seconds: f64, weight: u64) {
    let tally = tallies.entry(subject.clone()).or_default();
    tally.service.record_n((seconds * 1e9) as u64, weight).expect("in range");
    if *subject != Subject::Iteration {
        tally.bytes_out += 150 * weight;
        tally.bytes_in += 120 * weight;
    }
}

fn seconds(truth: &Truth, noise: &mut Noise) -> Vec<LoadSecond> {
    let mut rows = Vec::new();
    for second in -2..SECONDS {
        let count = (truth.rate * noise.around_one(0.01)) as u64;
        let mean = (truth.call + truth.connect.unwrap_or(0.0)) * 1e9 * noise.around_one(0.04);
        let mut subjects = vec![(Subject::Iteration, 0, 0), (Subject::Request("increment".to_owned()), 150, 120)];
        if truth.connect.is_some() {
            subjects.push((Subject::Connect, 90, 60));
        }
        for (subject, out, back) in subjects {
            rows.push(LoadSecond {
                count,
                bytes_out: count * out,
                bytes_in: count * back,
                mean,
                p50: (mean * 0.9) as u64,
                p95: (mean * 1.6 * noise.around_one(0.05)) as u64,
                p99: (mean * 3.1) as u64,
                max: (mean * 6.0) as u64,
                ..LoadSecond::empty(second, subject)
            });
        }
    }
    rows
}

fn generator(truth: &Truth) -> Vec<GeneratorRow> {
    let row = |second| GeneratorRow {
        second,
        cpu_cores: 0.4,
        cpu_busiest: 0.4,
        users: truth.users as u64,
        in_flight: truth.users as u64,
        ..GeneratorRow::default()
    };
    (-2..SECONDS).map(row).collect()
}

fn processes(truth: &Truth, variant: usize, noise: &mut Noise) -> Vec<ProcessSample> {
    let inputq = if variant == 1 { 1.0 } else { 0.0 };
    let memory = 14e6 + truth.users * 9000.0 + inputq * 2e6;
    (-1..=SECONDS)
        .map(|second| ProcessSample {
            at: second as f64,
            system: "counter".to_owned(),
            variant,
            processes: 1,
            cpu_cores: (0.7 + 0.2 * (truth.users / 1000.0) + 0.04 * inputq) * noise.around_one(0.02),
            resident: (memory * (1.0 + second as f64 * 0.01)) as u64,
            threads: 8,
            ..ProcessSample::default()
        })
        .collect()
}

fn host() -> Host {
    Host {
        cpu_model: Some("AMD EPYC 7B13".to_owned()),
        processors: 2,
        memory: Some(8_200_000_000),
        kernel: Some("Linux 6.1.0 x86_64".to_owned()),
        distribution: Some("Debian 12".to_owned()),
        load_before: Some([0.12, 0.3, 0.41]),
        ..Host::default()
    }
}

fn versions() -> Vec<Version> {
    vec![Version {
        name: "counter".to_owned(),
        program: "./counter".to_owned(),
        path: None,
        version: Some("counter 1.0, grpc-go 1.71".to_owned()),
        sha256: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned()),
    }]
}
