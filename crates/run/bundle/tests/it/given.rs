//! A small study and its starts, to be written into bundles.

use plimsoll_bundle::BundleWriter;
use plimsoll_model::agent::AgentRecord;
use plimsoll_model::database::{Condition, DatabaseFacts, MixLine, Setting, SqlFacts, StatementFacts};
use plimsoll_model::event::{Event, Second};
use plimsoll_model::exposed::{BucketCounts, MetricKind, MetricSample};
use plimsoll_model::factor::{Assignment, Factor, Level, Role};
use plimsoll_model::feedback::{AlertTime, FeedbackEnd, FeedbackRecord, FeedbackRules, UsersInWindow};
use plimsoll_model::host::{Host, LOCAL, Version};
use plimsoll_model::load::Share;
use plimsoll_model::look::Look;
use plimsoll_model::objective::{self, Judged, Passed, Reading};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{Account, ErrorKind, Interval, RecordedPhase, Subject, TICKS, Tally, Tick};
use plimsoll_model::result::{
    FinishedStart, Headroom, LoadResult, LoadSummary, LoadTiming, Replies, StartResult, StartSummary, StartTiming,
    Steadiness, VariantSystems, Work,
};
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample, Samples, WaitSample};
use plimsoll_model::script::ScriptFacts;
use plimsoll_model::start::{Load, PhaseLengths, Start, Validity};
use plimsoll_model::storage::{FileSystem, Operation, Residency, StorageFacts, StorageStep};
use plimsoll_model::study::{Decision, FloorRule, GeneratorSpec, ReportSpec, StudyFacts};

use plimsoll_model::units::{Instant, Nanos, Processors};
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

pub(crate) const STUDY: &str = "title = \"Größe, a/b\"\n";

/// A second in nanoseconds.
pub(crate) const SECOND: Nanos = Nanos(1_000_000_000);

pub(crate) fn facts() -> StudyFacts {
    let levels = vec![Level::Text("mutex".to_owned()), Level::Number(0.1)];
    StudyFacts {
        title: "Größe, a/b".to_owned(),
        question: "Which is faster?".to_owned(),
        factors: vec![Factor { name: "mode".to_owned(), levels, role: Role::Compared { baseline: 0 } }],
        decide: vec![Decision { measure: "iteration_duration.p95".parse().expect("a measure"), margin: 0.05 }],
        floor_rule: FloorRule::default(),
        report: ReportSpec::default(),
        protocol: Protocol::Http,
        open_load: false,
        load: "closed loop, 2 users".to_owned(),
        mean_think: Some(0.25),
        workload: "GET /".to_owned(),
        generator: GeneratorSpec { threads: 1, cpus: None, max_cpu: 0.9, max_lateness: Duration::from_millis(1) },
        systems: vec!["counter".to_owned()],
        metrics: Vec::new(),
        commands: vec![vec!["counter: ./counter".to_owned()]; 2],
        loopback: true,
        file: "counter.toml".to_owned(),
        profile: None,
        quick: false,
        design_reason: String::new(),
        can_take_turns: false,
        soak: false,
        objective: None,
    }
}

/// A plan of so many starts, each of one variant.
pub(crate) fn plan(starts: u32) -> Plan {
    let level = |level: Level| Assignment(vec![("mode".to_owned(), level)]);
    Plan {
        design: plimsoll_model::start::Design::Trials,
        seed: u64::MAX,
        repeats: starts.div_ceil(2),
        variants: vec![level(Level::Text("mutex".to_owned())), level(Level::Number(0.1))],
        conditions: vec![Assignment::default()],
        starts: (1..=starts).map(start).collect(),
        lengths: vec![lengths()],
        with_duplicate: false,
        given_time: None,
        searches: Vec::new(),
        spare_blocks: 1,
        looks: Vec::new(),
    }
}

/// The lengths of the phases of every load.
pub(crate) fn lengths() -> PhaseLengths {
    let second = Duration::from_secs(1);
    PhaseLengths { warmup: second, measure: 2 * second, drain: second }
}

pub(crate) fn start(number: u32) -> Start {
    let (block, position) = (number.div_ceil(2), 1 + (number - 1) % 2);
    let (attempt, extended, variants) = (1, false, vec![position as usize - 1]);
    Start { number, block, repeat: block, attempt, extended, position, condition: 0, variants }
}

pub(crate) fn host() -> Host {
    Host {
        machine: LOCAL.to_owned(),
        cpu_model: Some("a \"fast\" one".to_owned()),
        load_before: Some([0.1, 0.2, 1.0 / 3.0]),
        ..Host::default()
    }
}

pub(crate) fn versions() -> Vec<Version> {
    vec![Version {
        name: "counter".to_owned(),
        program: "./counter".to_owned(),
        path: None,
        version: Some("1.0\n".to_owned()),
        sha256: Some("ab".repeat(32)),
    }]
}

/// The short facts of a start and of its load.
pub(crate) fn finished(number: u32) -> FinishedStart {
    let start = start(number);
    let variant = start.variants[0];
    let load = load_summary(Load { number: 1, variant, turn: 1, beside: None, rung: None, lengths: lengths() });
    FinishedStart { summary: start_summary(start), loads: vec![load] }
}

/// The short facts of a start: one of its systems has a database.
pub(crate) fn start_summary(start: Start) -> StartSummary {
    let systems = |variant: &usize| VariantSystems {
        variant: *variant,
        ready_after: Nanos(1_234_567 + *variant as u64),
        processors: Some(Processors(vec![0, 2])),
        bound_to: BTreeMap::from([("web".to_owned(), Processors(vec![2]))]),
        databases: vec![database()],
    };
    StartSummary {
        systems: start.variants.iter().map(systems).collect(),
        hosts: vec![Host { machine: "far".to_owned(), processors: 4, ..Host::default() }],
        start,
        validity: Validity::Valid,
        warnings: vec!["a process was left behind, \"it\"".to_owned()],
        timing: StartTiming { started_unix_ms: 1_795_000_000_000, took: Nanos(4 * SECOND.0) },
    }
}

/// The short facts of a load whose measure phase is the first of its start.
pub(crate) fn load_summary(load: Load) -> LoadSummary {
    LoadSummary {
        load,
        validity: Validity::Valid,
        warnings: vec!["the host was busy, somewhat".to_owned()],
        timing: LoadTiming { zero: Instant(0), window: Nanos(2 * SECOND.0) },
        steadiness: Steadiness { from: Some(Nanos(0)), unsteady: false, unjudged: None },
        headroom: Headroom { busiest: 1.0 / 3.0, lateness: Nanos(12_345) },
        others: Some(0.25),
        others_elsewhere: [("east".to_owned(), 0.5)].into(),
        objective: Some(judged()),
        feedback: Some(feedback()),
        replies: Replies {
            open_load: false,
            sequences: [("increment".to_owned(), Default::default())].into(),
            error_examples: [("GET /a, b".to_owned(), [(ErrorKind::Status, "503, \"busy\"".to_owned())].into())].into(),
            accounts: [("request:GET /a, b".to_owned(), account())].into(),
        },
        work: Work::Storage(Box::new(storage())),
        agents: vec![agent()],
    }
}

/// The record of a control loop.
fn feedback() -> FeedbackRecord {
    let seconds = Duration::from_secs;
    FeedbackRecord {
        rules: FeedbackRules {
            step: 8,
            most: 500,
            rest: seconds(2),
            over: seconds(60),
            window: seconds(1800),
            flat: 0.2,
        },
        end: FeedbackEnd::Flat,
        reached: Some(40),
        first_alert: Some(71),
        window: Some(UsersInWindow { seconds: 1800, mean: 20.5, fewest: 8, most: 40, slope: -0.01, reversals: 7 }),
        alerts: vec![AlertTime { condition: objective::Condition::Errors, seconds: 9, first: true }],
    }
}

/// What a load showed of an objective.
fn judged() -> Judged {
    let condition = objective::Condition::Duration("request_duration.p95".parse().expect("a measure"));
    let readings = vec![Reading { condition, value: Some(0.25), bound: 0.2, held: false }];
    Judged {
        passed: Passed::No,
        readings,
        reasons: vec!["too slow".to_owned()],
        share_of_needed: 1.5,
        share_to_weigh: Some(0.5),
        strain: Some(2.5),
    }
}

/// The record of an agent.
fn agent() -> AgentRecord {
    AgentRecord {
        name: "east, first".to_owned(),
        share: Share { index: 1, of: 3 },
        users: 7,
        headroom: Headroom { busiest: 0.25, lateness: Nanos(54_321) },
        cpu: 0.5,
        stall: Nanos(1_000),
        sockets: Some(12),
        round_trip: Some(Nanos(200_000)),
        retransmitted: Some(3),
        clock_ahead: -1_500,
        clock_error: Nanos(90_000),
        reported: 123_456,
        lost: Some("nothing was heard of it".to_owned()),
    }
}

/// What became of requests.
fn account() -> Account {
    let failed = [(ErrorKind::Status, 2), (ErrorKind::Timeout, 1)].into();
    Account { carried: 1, sent: 9, answered: 5, failed, abandoned: 1, in_flight: 1 }
}

/// The facts of a script.
pub(crate) fn script() -> ScriptFacts {
    ScriptFacts { times: ["wait".to_owned()].into(), console: 12, left_out: 2, own_load: Vec::new() }
}

fn database() -> DatabaseFacts {
    let setting = Setting { name: "fsync".to_owned(), in_force: "off".to_owned(), ..Setting::default() };
    let condition = Condition { name: "1: w_ytd = sum(d_ytd)".to_owned(), holds: Some(true), ..Condition::default() };
    let work = SqlFacts {
        statements: vec![StatementFacts { statement: "update district".to_owned(), ..StatementFacts::default() }],
        retries: [(ErrorKind::Deadlock, 2)].into(),
        mix: vec![MixLine { name: "remote order lines".to_owned(), found: 1.0 / 3.0, ..MixLine::default() }],
        ..SqlFacts::default()
    };
    let (settings, conditions) = (vec![setting], vec![condition]);
    DatabaseFacts { name: "db, main".to_owned(), settings, work, conditions, ..DatabaseFacts::default() }
}

fn storage() -> StorageFacts {
    let steps = vec![StorageStep { name: "write, then sync".to_owned(), operation: Operation::Write }];
    let file_system =
        Some(FileSystem { kind: "ext4".to_owned(), options: "rw,relatime".to_owned(), ..FileSystem::default() });
    let residency = Some(Residency { pages: 25, cached: 24 });
    StorageFacts { size: 100_000, block: 1 << 20, steps, file_system, residency, ..StorageFacts::default() }
}

/// Three seconds of load: one of warm-up, two that are measured; every number follows from
/// `number`, so that what is read back can be told from what another start or load wrote.
pub(crate) fn intervals(number: u32) -> Vec<Interval> {
    let tally = |count: u64| {
        let mut tally = Tally { bytes_out: 10 * count, bytes_in: 100 * count, ..Tally::default() };
        tally.service.record_n(1_000_000 * u64::from(number), count).expect("it grows");
        tally.first_byte.record_n(900_000, count).expect("it grows");
        tally.errors.insert(ErrorKind::Status, 1);
        tally
    };
    let interval = |second: i64| {
        let phase = if second < 0 { RecordedPhase::Warmup } else { RecordedPhase::Measure };
        let request = Subject::Request("GET /a, b".to_owned());
        let tallies = [((phase, Subject::Iteration), tally(3)), ((phase, request), tally(6))].into();
        let mut ticks = [Tick::default(); TICKS];
        ticks[4] = Tick { iterations: 3, total: 3_000_000 * u64::from(number) };
        Interval { second, length: SECOND, tallies, ticks, ..Interval::default() }
    };
    [-1, 0, 1].map(interval).to_vec()
}

pub(crate) fn processes() -> Vec<ProcessSample> {
    vec![ProcessSample {
        at: 0.1,
        machine: LOCAL.to_owned(),
        system: "counter".to_owned(),
        cpu_cores: 1.0 / 3.0,
        ..ProcessSample::default()
    }]
}

pub(crate) fn host_series() -> Vec<HostSample> {
    vec![HostSample {
        at: -0.9,
        machine: LOCAL.to_owned(),
        cpu_cores: 0.7,
        memory_available: u64::MAX,
        frequency_mhz: Some(2_600.1),
        ..HostSample::default()
    }]
}

pub(crate) fn waits() -> Vec<WaitSample> {
    let (system, wait) = ("web, \"1\"".to_owned(), "pool".to_owned());
    vec![WaitSample { at: 0.5, system, variant: 1, wait, lines: 4511 }]
}

pub(crate) fn metrics() -> Vec<MetricSample> {
    let histogram = MetricSample {
        at: 0.5,
        system: "web, \"1\"".to_owned(),
        variant: 1,
        series: "api".to_owned(),
        label: "GET /a,b".to_owned(),
        kind: MetricKind::Histogram,
        value: 8.0,
        sum: Some(0.75),
        buckets: BucketCounts(vec![(0.1, 6.0), (f64::INFINITY, 8.0)]),
    };
    let gauge = MetricSample {
        label: String::new(),
        kind: MetricKind::Gauge,
        sum: None,
        buckets: BucketCounts::default(),
        ..histogram.clone()
    };
    vec![histogram, gauge]
}

pub(crate) fn counters() -> Vec<DatabaseSample> {
    let counter = |at, counter: &str, value| DatabaseSample {
        at,
        database: "db, main".to_owned(),
        variant: 0,
        counter: counter.to_owned(),
        value,
    };
    vec![counter(0.1, "commits", 1.0 / 3.0), counter(0.1, "Innodb_row_lock_time", 0.0)]
}

pub(crate) fn create(folder: &Path, starts: u32) -> BundleWriter {
    BundleWriter::create(folder, STUDY, &facts(), &plan(starts), &host()).expect("an empty folder")
}

pub(crate) fn resume(folder: &Path, starts: u32) -> BundleWriter {
    BundleWriter::resume(folder, STUDY, &facts(), &plan(starts)).expect("the same study")
}

/// Passes an event to a bundle.
pub(crate) fn tell(bundle: &mut BundleWriter, event: &Event) {
    bundle.on_event(event).expect("disk");
}

pub(crate) fn tell_versions(bundle: &mut BundleWriter, versions: &[Version]) {
    tell(bundle, &Event::VersionsFound { versions: versions.to_vec() });
}

pub(crate) fn decide(bundle: &mut BundleWriter, start: &Start) {
    tell(bundle, &Event::StartDecided { start: start.clone() });
}

pub(crate) fn look(bundle: &mut BundleWriter, look: &Look) {
    tell(bundle, &Event::LookTaken { look: look.clone(), spared: 0, time_spared: Duration::ZERO });
}

/// The run comes to its end.
pub(crate) fn end(bundle: &mut BundleWriter, decided_after: Option<u32>) {
    tell(bundle, &Event::RunFinished { complete: true, decided_after });
}

/// Begins a start.
pub(crate) fn begin_start(bundle: &mut BundleWriter, start: &Start) {
    let (variants, condition) = ("a".to_owned(), String::new());
    tell(bundle, &Event::StartBegun { start: start.clone(), variants, condition });
}

/// Adds seconds of a load whose measure phase begins at `zero` on the clock of the start.
pub(crate) fn add_seconds(bundle: &mut BundleWriter, load: u32, zero: Instant, intervals: &[Interval]) {
    for interval in intervals {
        tell(bundle, &Event::SecondPassed(Box::new(Second::of(1, load, zero, interval.clone()))));
    }
}

pub(crate) fn add_samples(bundle: &mut BundleWriter, samples: Samples) {
    tell(bundle, &Event::Sampled { start: 1, samples });
}

/// Adds lines of the console of a script.
pub(crate) fn add_lines(bundle: &mut BundleWriter, load: u32, lines: &str) {
    tell(bundle, &Event::ConsoleWritten { start: 1, load, lines: lines.to_owned() });
}

/// Seals the start under way.
pub(crate) fn seal_start(bundle: &mut BundleWriter, finished: &FinishedStart) {
    tell(bundle, &Event::ResultsComplete(Box::new(finished.clone())));
}

/// Begins a start and writes its load and the output of its system.
pub(crate) fn begin(bundle: &mut BundleWriter, number: u32) {
    begin_start(bundle, &start(number));
    fs::write(bundle.folder().output(number, "counter"), "listening\n").expect("a file");
    add_seconds(bundle, 1, Instant(0), &intervals(number));
}

pub(crate) fn seal(bundle: &mut BundleWriter, number: u32) {
    begin(bundle, number);
    add_samples(
        bundle,
        Samples {
            processes: processes(),
            host: host_series(),
            databases: counters(),
            waits: waits(),
            metrics: metrics(),
        },
    );
    seal_start(bundle, &finished(number));
}

/// A bundle whose run came to its end.
pub(crate) fn complete(folder: &Path, starts: u32) {
    let mut bundle = create(folder, starts);
    tell_versions(&mut bundle, &versions());
    (1..=starts).for_each(|number| seal(&mut bundle, number));
    end(&mut bundle, None);
}

/// The numbers of the starts that can be read.
pub(crate) fn numbers(contents: &plimsoll_bundle::Contents) -> Vec<u32> {
    contents.starts.iter().map(|start| start.summary.start.number).collect()
}

/// True if a problem speaks of `word`.
pub(crate) fn named(problems: &[String], word: &str) -> bool {
    problems.iter().any(|problem| problem.contains(word))
}

/// The short facts of a start as it was read.
pub(crate) fn facts_of(start: &StartResult) -> FinishedStart {
    let loads = start.loads.iter().map(|load| load.summary.clone()).collect();
    FinishedStart { summary: start.summary.clone(), loads }
}

/// Asserts that a start holds what [`seal`] wrote for its number.
pub(crate) fn assert_whole(start: &StartResult) {
    let number = start.summary.start.number;
    assert_eq!(facts_of(start), finished(number));
    assert_load(&start.loads[0], number);
    assert_eq!((&start.processes, &start.host), (&processes(), &host_series()));
    assert_eq!(start.databases, counters());
}

/// Asserts that a load holds what [`intervals`] has for `number`, and nothing else.
pub(crate) fn assert_load(load: &LoadResult, number: u32) {
    let iterations = &load.tallies[&Subject::Iteration];
    assert_eq!((iterations.count(), iterations.failed(), iterations.bytes_in), (6, 2, 600));
    assert!(iterations.service.equivalent(iterations.service.max(), 1_000_000 * u64::from(number)));
    assert_eq!(load.tallies[&Subject::Request("GET /a, b".to_owned())].count(), 12);
    assert_eq!((load.tallies.len(), load.seconds.len(), load.generator.len()), (2, 6, 3));
}
