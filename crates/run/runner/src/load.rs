//! The loads on a start: prepares one, or two that run at the same time, offers them, and judges their results.

use crate::databases::{self, Counters};
use crate::feedback::Feedback;
use crate::generator::{JobMessage, JobUnderWay, PreparedWorkload};
use crate::host::HostError;
use crate::objective::{ObjectiveWatch, broken_in_spite_of, limits_without_values};
use crate::run::{Context, EventSink};
use crate::running_variant::RunningVariant;
use crate::samplers::Samplers;
use crate::start::{Abort, Fault, phase};
use crate::target;
use crate::validity::{self, Judgement, Watch};
use plimsoll_bundle::BundleError;
use plimsoll_model::event::{Event, Second};
use plimsoll_model::job::{Begin, Job, JobError, JobRecord, Report, SetUp, WorkFacts};
use plimsoll_model::load::{Joining, LoadModel, LoadProfile, Profile, Stop, WHOLE};
use plimsoll_model::objective::{Judged, Passed};
use plimsoll_model::record::Subject;
use plimsoll_model::result::{LoadSummary, LoadTiming, Replies, Steadiness};
use plimsoll_model::sample::Samples;
use plimsoll_model::start::{Load, Phase, PhaseLengths, Start, Validity};
use plimsoll_model::units::{self, Nanos, UnixTime};
use plimsoll_model::workload::Steps;
use plimsoll_plan::Control;
use plimsoll_study::TrialSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// How often the systems are checked while load runs.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// The counts of a load.
#[derive(Default)]
pub(crate) struct LoadOutcome {
    pub(crate) iterations: u64,
    pub(crate) errors: u64,
    /// True if the systems answered as expected: see [`Watch::worked`].
    pub(crate) worked: bool,
    /// True if a system ended before anything was measured, or the load was not offered because one had. By chance that
    /// happens once.
    pub(crate) ended_early: bool,
    /// The subjects that a script has recorded.
    pub(crate) subjects: BTreeSet<Subject>,
}

/// A finished load.
pub(crate) struct FinishedLoad {
    pub(crate) summary: LoadSummary,
    pub(crate) outcome: LoadOutcome,
    /// The begin of its measure phase.
    pub(crate) zero: Instant,
    /// A failure for each database that ended its sessions.
    pub(crate) lost: Vec<String>,
}

/// A load that is next on a start.
#[derive(Clone, Copy)]
pub(crate) struct NextLoad<'a> {
    pub(crate) start: &'a Start,
    pub(crate) load: &'a Load,
    /// The begin of the measure phase of the start's first load, if there was one: the clock of the start counts from
    /// there.
    pub(crate) first_zero: Option<Instant>,
    /// True if a later load of the start is for the same variant.
    pub(crate) stays: bool,
    pub(crate) sampler: &'a Samplers,
}

/// Why loads could not be offered.
pub(crate) struct LoadFault {
    pub(crate) fault: Fault,
    /// The variant whose load it was; none where it was all of them.
    pub(crate) variant: Option<usize>,
}

impl<E: Into<Fault>> From<E> for LoadFault {
    fn from(error: E) -> Self {
        LoadFault { fault: error.into(), variant: None }
    }
}

/// Offers loads at the same time, each to the systems of its variant.
pub(crate) fn offer(
    context: &Context<'_>,
    loads: Vec<(NextLoad<'_>, &mut RunningVariant)>,
    tell: &mut EventSink<'_>,
) -> Result<Vec<FinishedLoad>, LoadFault> {
    let of = |variant: usize| move |fault: Fault| LoadFault { fault, variant: Some(variant) };
    let mut begun = Vec::new();
    for (next, running) in loads {
        begun.push(LoadUnderWay::prepare(context, next, running).map_err(of(next.load.variant))?);
    }
    begun.iter_mut().for_each(|load| load.begin(context));
    // Each gets an equal part of the time between two checks.
    let wait = CHECK_EVERY / begun.len().max(1) as u32;
    while begun.iter().any(|load| load.ended.is_none()) {
        for load in &mut begun {
            load.follow(wait, tell)?;
        }
        if context.interrupted.is_set() || begun.iter().any(LoadUnderWay::has_lost_a_system) {
            begun.iter_mut().for_each(LoadUnderWay::stop);
        }
    }
    for load in &begun {
        tell(&Event::LoadFinished { start: load.next.start.number, load: load.next.load.number })?;
    }
    if context.interrupted.is_set() {
        return Err(Fault::Abort(Abort::Interrupted).into());
    }
    if let Some(lost) = begun.iter().find_map(LoadUnderWay::lost_host) {
        return Err(lost.into());
    }
    let mut finished = Vec::new();
    // The clock of the start begins with the first of its loads that measured.
    let mut first_zero = begun.iter().find_map(|load| load.next.first_zero);
    for load in begun {
        let variant = load.next.load.variant;
        let load = load.finish(context, first_zero, tell).map_err(of(variant))?;
        first_zero.get_or_insert(load.zero);
        finished.push(load);
    }
    Ok(finished)
}

/// Sets how long the load takes, and of a search its level. A slice ends after its time, whatever ends a load of this study
/// otherwise; after the first one its users are there already.
fn set_profile(profile: &mut LoadProfile, context: &Context<'_>, load: &Load) {
    profile.warmup = load.lengths.warmup;
    let joining = if let LoadModel::Closed { users, .. } = &profile.model { users.joining } else { None };
    if !context.plan.design.is_trials() || load.rung.is_some() {
        profile.stop = Stop::After(load.lengths.measure);
    }
    match (&mut profile.model, load.rung) {
        (LoadModel::Closed { users, .. }, Some(rung)) => *users = Profile::constant(rung.level.round().max(1.0)),
        (LoadModel::Open { rate, .. }, Some(rung)) => *rate = Profile::constant(rung.level),
        (_, None) => {}
    }
    if let LoadModel::Closed { users, .. } = &mut profile.model {
        let joins = load.turn == 1 || load.rung.is_some();
        let from = -load.lengths.warmup.as_secs_f64();
        users.joining = joining.filter(|_| joins).map(|joining| Joining { from, ..joining });
    }
}

/// Compiles the workload for the running systems.
fn prepare(context: &Context<'_>, running: &RunningVariant) -> Result<Box<dyn PreparedWorkload>, Fault> {
    let target = running.spec.workload.target.as_ref();
    let elsewhere = addresses_elsewhere(context, running)?;
    let address = target.map(|target| target::address(context.study, target, &elsewhere));
    let address = address.transpose().map_err(Fault::Failed)?;
    let mut workload = databases::with_endpoint(&running.spec.workload, &running.databases).map_err(Fault::Failed)?;
    if let Steps::Script(script) = &mut workload.steps {
        script.allowed.extend(elsewhere.iter().map(|address| address.ip().to_string()));
    }
    Ok(context.generator.prepare(&workload, address)?)
}

/// The addresses of the systems of a variant that run on other hosts: the run has started them, so it may load them.
fn addresses_elsewhere(context: &Context<'_>, running: &RunningVariant) -> Result<Vec<SocketAddr>, HostError> {
    let elsewhere = running.spec.systems.iter().filter_map(|system| Some((system.on.as_ref()?, system.port?)));
    let address = |(label, port): (&String, u16)| {
        let place = context.host(label)?.place(Path::new(""));
        Ok(SocketAddr::new(place.address, port))
    };
    elsewhere.map(address).collect()
}

/// The most users that any load on this start may have.
fn most_users(context: &Context<'_>, start: &Start, profile: &LoadProfile) -> u32 {
    let search = context.plan.searches.get(start.condition).map(|search| search.range).filter(|range| range.of_users);
    search.map_or_else(|| profile.most_users(), |range| range.most as u32)
}

/// Adds to the refusal of the largest load of a search the key that makes it smaller.
fn naming_most(fault: Fault, searches: bool) -> Fault {
    match fault {
        Fault::Failed(reason) if searches => Fault::Failed(format!("{reason}; `load.most` is the largest of a search")),
        fault => fault,
    }
}

/// A load between its preparation and its end.
struct LoadUnderWay<'a> {
    next: NextLoad<'a>,
    running: &'a mut RunningVariant,
    prepared: Box<dyn PreparedWorkload>,
    samplers: Vec<Counters>,
    progress: LoadProgress<'a>,
    /// None before it begins, and after it has ended.
    job: Option<Box<dyn JobUnderWay>>,
    ended: Option<Result<JobRecord, JobError>>,
}

impl<'a> LoadUnderWay<'a> {
    fn prepare(
        context: &Context<'_>,
        next: NextLoad<'a>,
        running: &'a mut RunningVariant,
    ) -> Result<LoadUnderWay<'a>, Fault> {
        set_profile(&mut running.spec.load, context, next.load);
        let prepared = match running.prepared.take() {
            Some(prepared) => prepared,
            None => {
                let prepared = prepare(context, running)?;
                let steps = &running.spec.workload.steps;
                let most = most_users(context, next.start, &running.spec.load);
                let checked = databases::check_users(&running.databases, steps, most);
                checked.map_err(|fault| naming_most(fault, next.load.rung.is_some()))?;
                running.facts = databases::facts(&running.databases, steps)?;
                prepared
            }
        };
        let samplers = databases::sample(&running.databases)?;
        let progress = LoadProgress::new(context, next, &running.spec);
        Ok(LoadUnderWay { next, running, prepared, samplers, progress, job: None, ended: None })
    }

    fn begin(&mut self, context: &Context<'_>) {
        let NextLoad { start, load, stays, .. } = self.next;
        // All variants of a block, and of a turn, are offered the same load. What is offered at the same time differs,
        // or both would send their requests at the same instants.
        let beside = load.beside.map_or(0, |_| load.variant as u64);
        self.progress.date = Date::now();
        let mut job = self.prepared.begin(Job {
            load: self.running.spec.load.clone(),
            generator: context.facts.generator.clone(),
            seed: context.plan.seed ^ u64::from(start.block) ^ (u64::from(load.turn - 1) << 32) ^ (beside << 48),
            share: WHOLE,
            begin: Begin::WhenReady,
            set_up: SetUp::Here,
            stays,
        });
        if let Some(feedback) = &self.progress.feedback {
            job.set_users(feedback.users());
        }
        self.job = Some(job);
    }

    /// Publishes what the job reports within `wait`.
    fn follow(&mut self, wait: Duration, tell: &mut EventSink<'_>) -> Result<(), BundleError> {
        match self.job.as_mut().and_then(|job| job.next(wait)) {
            Some(JobMessage::Report(report)) => {
                let control = self.progress.control(&report);
                self.progress.publish(report, tell)?;
                match (control, &mut self.job) {
                    (Some(Control::Users(users)), Some(job)) => job.set_users(users),
                    (Some(Control::End), Some(job)) => job.end(),
                    _ => {}
                }
            }
            Some(JobMessage::Ended(ended)) => {
                self.ended = Some(ended.map(|record| *record));
                self.job = None;
            }
            Some(JobMessage::Ready) | None => {}
        }
        Ok(())
    }

    /// True if a system has died: more load would only measure refused connections.
    fn has_lost_a_system(&self) -> bool {
        self.running.has_lost_a_system()
    }

    /// The loss of a host on which its systems run.
    fn lost_host(&self) -> Option<HostError> {
        let mut ended = self.running.systems.iter().filter_map(|system| system.check().err());
        ended.find(|error| matches!(error, HostError::Lost(_)))
    }

    fn stop(&mut self) {
        if let Some(job) = &mut self.job {
            job.stop();
        }
    }

    /// Summarises the load. `first_zero` is what the clock of the start counts from, if that is known already.
    fn finish(
        self,
        context: &Context<'_>,
        first_zero: Option<Instant>,
        tell: &mut EventSink<'_>,
    ) -> Result<FinishedLoad, Fault> {
        let LoadUnderWay { next, running, prepared, samplers, progress, ended, .. } = self;
        let mut record = ended.expect("the load is over").map_err(|error| match error {
            JobError::Lost(reason) => Fault::Abort(Abort::Agents(reason)),
            error => Fault::Failed(error.to_string()),
        })?;
        let (zero, watch) = (progress.date.instant(record.zero), progress.watch);
        running.prepared = Some(prepared);
        for (name, check) in &mut record.sequences {
            let largest = running.largest.entry(name.clone()).or_default();
            *check = std::mem::take(check).after(*largest);
            *largest = check.largest.max(*largest);
        }
        let (mut counters, lost) = databases::stop_sampling(samplers, &running.databases, zero, record.window);
        if let WorkFacts::Sql(facts) = &mut record.facts {
            databases::add_work(&mut running.facts, &running.spec.workload.steps, std::mem::take(&mut **facts));
        }
        let zero_of_start = on_clock_of_start(zero, first_zero.unwrap_or(zero));
        for sample in &mut counters {
            sample.variant = running.variant;
            sample.at += zero_of_start.0 as f64 / 1e9;
        }
        let samples = Samples { databases: counters, ..Samples::default() };
        tell(&Event::Sampled { start: next.start.number, samples })?;
        let judged = progress.objective.map(|objective| objective.judge(died(running).as_deref()));
        let feedback = progress.feedback.map(|feedback| feedback.record());
        let mut judgement = judge(context, running, &record, &watch);
        if next.load.rung.is_some()
            && let Some(judged) = &judged
        {
            judgement.validity = validity_in_search(&judgement, judged, watch.iterations);
        }
        let ended_early = next.load.rung.is_none() && running.has_lost_a_system() && watch.measured_nothing();
        let worked =
            watch.worked() && record.broken.is_empty() && (record.stopped.is_none() || !watch.measured_nothing());
        let summary =
            LoadSummary { feedback, ..sum_up(running, next.load, zero_of_start, record, &watch, (judgement, judged)) };
        let outcome = LoadOutcome {
            iterations: watch.iterations,
            errors: watch.errors,
            worked,
            ended_early,
            subjects: watch.subjects,
        };
        Ok(FinishedLoad { summary, outcome, zero, lost })
    }
}

/// The state of a load under way, which turns the reports of its job into events.
struct LoadProgress<'a> {
    next: NextLoad<'a>,
    date: Date,
    phases: PhaseEvents<'a>,
    watch: Watch,
    /// Where the study has an objective by which whole loads are judged.
    objective: Option<ObjectiveWatch>,
    /// Where a control loop changes the number of users.
    feedback: Option<Feedback>,
}

impl<'a> LoadProgress<'a> {
    fn new(context: &Context<'_>, next: NextLoad<'a>, spec: &TrialSpec) -> LoadProgress<'a> {
        let is_script = matches!(spec.workload.steps, Steps::Script(_));
        let user_threads = matches!(spec.workload.steps, Steps::Storage(_) | Steps::Sql(_));
        let in_turns = !context.plan.design.is_trials();
        let slice_of = in_turns.then(|| context.plan.label(next.load.variant));
        let watch = Watch::new(&spec.load, next.start.extended).of_script(is_script).of_user_threads(user_threads);
        let watch = watch.slice_of(slice_of);
        let watch = if next.load.rung.is_some() { watch.of_search() } else { watch };
        let is_open = matches!(spec.load.model, LoadModel::Open { .. });
        let objective = context.facts.objective.as_ref();
        let rules = spec.load.stop.feedback();
        let feedback = rules.zip(objective).map(|(rules, objective)| {
            let LoadModel::Closed { users, .. } = &spec.load.model else { unreachable!("a control loop is of users") };
            Feedback::new(rules, spec.load.stop.limit(), users.start as u32, objective.clone())
        });
        let objective = objective.filter(|_| rules.is_none());
        let objective =
            objective.map(|objective| ObjectiveWatch::new(objective, is_open, spec.load.stop.limit().into()));
        // The phases of slices, and of the loads of a search, are too short to follow: one event for all of them will do.
        let phases = match next.load.number {
            1 => PhaseEvents::new(next.start, next.load.lengths),
            _ if in_turns || next.load.rung.is_some() => PhaseEvents { start: next.start, ahead: Vec::new() },
            _ => PhaseEvents::new(next.start, next.load.lengths),
        };
        LoadProgress { next, date: Date::now(), phases, watch, objective, feedback }
    }

    /// The decision of a control loop after a second that the job reports.
    fn control(&mut self, report: &Report) -> Option<Control> {
        let Report::Second { interval, .. } = report else { return None };
        self.feedback.as_mut()?.second(interval)
    }

    fn publish(&mut self, report: Report, tell: &mut EventSink<'_>) -> Result<(), BundleError> {
        let (start, load) = (self.next.start.number, self.next.load.number);
        match report {
            Report::ObjectsPlaced(place) => tell(&Event::ObjectsPlaced { start, place }),
            Report::Console(lines) => tell(&Event::ConsoleWritten { start, load, lines }),
            // No study has a load of a script's own.
            Report::SetUp(_) | Report::OwnLoad(_) => Ok(()),
            Report::Second { zero, interval } => {
                self.watch.observe(&interval);
                if let Some(objective) = &mut self.objective {
                    objective.observe(&interval);
                }
                self.phases.follow(interval.second, tell)?;
                let zero = self.date.instant(zero);
                let first_zero = *self.next.first_zero.get_or_insert(zero);
                let second = Second::of(start, load, on_clock_of_start(zero, first_zero), *interval);
                let samples = self.next.sampler.take(first_zero);
                tell(&Event::SecondPassed(Box::new(Second { samples, ..second })))
            }
        }
    }
}

/// One instant on both the wall clock and the monotonic clock. It converts the date at which a measure phase began to
/// an instant.
#[derive(Clone, Copy)]
struct Date {
    unix: UnixTime,
    instant: Instant,
}

impl Date {
    fn now() -> Date {
        Date { unix: UnixTime::of(SystemTime::now()), instant: Instant::now() }
    }

    /// The instant of a date, which must not be earlier than this one.
    fn instant(self, date: UnixTime) -> Instant {
        self.instant + Duration::from(date.since(self.unix))
    }
}

fn judge(context: &Context<'_>, running: &RunningVariant, record: &JobRecord, watch: &Watch) -> Judgement {
    let record_of_validity = validity::Record {
        faults: &record.faults,
        broken: &record.broken,
        sequences: &record.sequences,
        examples: &record.error_examples,
        stopped: record.stopped.as_deref(),
        databases: &running.facts,
        agents: &record.agents,
    };
    watch.judge(record.window, &context.facts.generator, &record_of_validity)
}

/// What became of a system that has ended.
fn died(running: &RunningVariant) -> Option<String> {
    running.systems.iter().find_map(|system| system.check().err()).map(|error| error.to_string())
}

/// The validity of a load of a search. A system that ends under it has not carried it, which is a result. So has one that
/// breaks the objective by more than the generator was late: near its limit, a system takes processors from the generator.
/// A load that shows nothing of a limit fails the start, or the search would go up without end.
fn validity_in_search(judgement: &Judgement, judged: &Judged, iterations: u64) -> Validity {
    let without_values = limits_without_values(judged, iterations);
    if !without_values.is_empty() {
        return Validity::Failed(without_values).and(&judgement.validity);
    }
    let is_clear = judged.passed == Passed::No && broken_in_spite_of(judged, judgement.headroom.lateness);
    if judgement.only_late && is_clear { Validity::Valid } else { judgement.validity.clone() }
}

fn sum_up(
    running: &RunningVariant,
    load: &Load,
    zero: units::Instant,
    mut record: JobRecord,
    watch: &Watch,
    (judgement, objective): (Judgement, Option<Judged>),
) -> LoadSummary {
    // The users would stop for the same reason in another load too, so this is only a warning.
    record.warnings.extend(record.stopped.take().filter(|_| !watch.measured_nothing()));
    let left_behind = left_behind(&record.facts);
    LoadSummary {
        load: *load,
        validity: judgement.validity,
        warnings: [watch.warnings(), record.warnings, left_behind, validity::unknown_clocks(&record.agents)].concat(),
        timing: LoadTiming { zero, window: record.window },
        steadiness: Steadiness {
            from: judgement.steady_from,
            unsteady: judgement.unsteady,
            unjudged: judgement.unjudged,
        },
        headroom: judgement.headroom,
        others: None,
        others_elsewhere: BTreeMap::new(),
        objective,
        feedback: None,
        replies: Replies {
            open_load: matches!(running.spec.load.model, LoadModel::Open { .. }),
            sequences: record.sequences,
            error_examples: record.error_examples,
            accounts: record.accounts,
        },
        work: record.facts.into(),
        agents: record.agents,
    }
}

/// Converts an instant to the clock of the start.
fn on_clock_of_start(instant: Instant, first_zero: Instant) -> units::Instant {
    units::Instant(0).after(instant.saturating_duration_since(first_zero).into())
}

/// A warning for each object that could not be removed.
fn left_behind(facts: &WorkFacts) -> Vec<String> {
    let WorkFacts::Storage(storage) = facts else { return Vec::new() };
    storage.left_behind.iter().map(|text| format!("left behind: {text}")).collect()
}

/// Emits an event for each phase of the load when its first second passes.
struct PhaseEvents<'a> {
    start: &'a Start,
    /// The phases that have not begun, last one first, with their first second and length.
    ahead: Vec<(i64, Phase, Duration)>,
}

impl<'a> PhaseEvents<'a> {
    fn new(start: &'a Start, lengths: PhaseLengths) -> PhaseEvents<'a> {
        let PhaseLengths { warmup, measure, drain } = lengths;
        let mut ahead = vec![
            (Nanos::from(measure).0.div_ceil(1_000_000_000) as i64, Phase::Drain, drain),
            (0, Phase::Measure, measure),
        ];
        if !warmup.is_zero() {
            ahead.push((i64::MIN, Phase::Warmup, warmup));
        }
        PhaseEvents { start, ahead }
    }

    fn follow(&mut self, second: i64, tell: &mut EventSink<'_>) -> Result<(), BundleError> {
        while let Some((_, begun, length)) = self.ahead.pop_if(|(first, ..)| *first <= second) {
            tell(&phase(self.start, begun, Some(length)))?;
        }
        Ok(())
    }
}
