//! One load on a start: prepare it, offer it, judge.

use crate::databases;
use crate::generator::{JobMessage, PreparedWorkload};
use crate::run::{Context, Tell};
use crate::start::{Broken, Fault, RunningVariant, phase};
use crate::target;
use crate::validity::{self, Judgement, Watch};
use plimsoll_bundle::BundleError;
use plimsoll_model::event::{Event, Second};
use plimsoll_model::job::{Job, JobRecord, Report, WorkFacts};
use plimsoll_model::load::{LoadModel, WHOLE};
use plimsoll_model::record::Subject;
use plimsoll_model::result::{LoadSummary, LoadTiming, Replies, Steadiness};
use plimsoll_model::sample::Samples;
use plimsoll_model::start::{Load, Phase, PhaseLengths, Start};
use plimsoll_model::units::{self, Nanos, UnixTime};
use plimsoll_model::workload::Steps;
use plimsoll_telemetry::Sampler;
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

/// How often the systems are looked after while load runs.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// What was counted in a load.
#[derive(Default)]
pub(crate) struct LoadOutcome {
    pub(crate) iterations: u64,
    pub(crate) errors: u64,
    /// True if the systems answered at least one request as expected.
    pub(crate) worked: bool,
    /// What a script has measured.
    pub(crate) subjects: BTreeSet<Subject>,
}

/// A load that is over.
pub(crate) struct Offered {
    pub(crate) summary: LoadSummary,
    pub(crate) outcome: LoadOutcome,
    /// The begin of its measure phase.
    pub(crate) zero: Instant,
    /// Which databases ended their sessions, as failures.
    pub(crate) lost: Vec<String>,
}

/// The load that is next on a start.
#[derive(Clone, Copy)]
pub(crate) struct NextLoad<'a> {
    pub(crate) start: &'a Start,
    pub(crate) load: &'a Load,
    /// The begin of the measure phase of the start's first load, if there was one: the clock of the start counts from
    /// there.
    pub(crate) first_zero: Option<Instant>,
    pub(crate) sampler: &'a Sampler,
}

/// Offers a load to the systems of a variant.
pub(crate) fn offer(
    context: &Context<'_>,
    next: NextLoad<'_>,
    running: &mut RunningVariant,
    tell: &mut Tell<'_>,
) -> Result<Offered, Fault> {
    running.spec.load.warmup = next.load.lengths.warmup;
    let prepared = prepare(context, running)?;
    databases::check_users(&running.databases, &running.spec.workload.steps, running.spec.load.most_users())?;
    running.facts = databases::facts(&running.databases, &running.spec.workload.steps)?;
    let samplers = databases::sample(&running.databases)?;
    let Ran { mut record, watch, zero } = run(context, next, running, &*prepared, tell)?;
    let (mut counters, lost) = databases::stop_sampling(samplers, &running.databases, zero, record.window);
    if let WorkFacts::Sql(facts) = &mut record.facts {
        databases::add_work(&mut running.facts, &running.spec.workload.steps, std::mem::take(&mut **facts));
    }
    let zero_of_start = on_clock_of_start(zero, next.first_zero.unwrap_or(zero));
    for sample in &mut counters {
        sample.variant = running.variant;
        sample.at += zero_of_start.0 as f64 / 1e9;
    }
    let samples = Samples { databases: counters, ..Samples::default() };
    tell(&Event::Sampled { start: next.start.number, samples })?;
    let judgement = judge(context, running, &record, &watch);
    let worked = watch.worked() && record.broken.is_empty() && (record.stopped.is_none() || !watch.measured_nothing());
    let summary = sum_up(running, next.load, zero_of_start, record, &watch, judgement);
    let outcome = LoadOutcome { iterations: watch.iterations, errors: watch.errors, worked, subjects: watch.subjects };
    Ok(Offered { summary, outcome, zero, lost })
}

/// Compiles the workload for the systems that are up.
fn prepare(context: &Context<'_>, running: &RunningVariant) -> Result<Box<dyn PreparedWorkload>, Fault> {
    let target = running.spec.workload.target.as_ref();
    let address = target.map(|target| target::address(context.study, target)).transpose().map_err(Fault::Failed)?;
    let workload = databases::placed(&running.spec.workload, &running.databases).map_err(Fault::Failed)?;
    context.generator.prepare(&workload, address).map_err(Fault::Failed)
}

/// A job that came to its end.
struct Ran {
    record: JobRecord,
    watch: Watch,
    /// The begin of the measure phase.
    zero: Instant,
}

/// Runs the load, and tells of its course. It is broken off when the run is interrupted, or when a system has died: more
/// load would only measure a refusal.
fn run(
    context: &Context<'_>,
    next: NextLoad<'_>,
    running: &RunningVariant,
    prepared: &dyn PreparedWorkload,
    tell: &mut Tell<'_>,
) -> Result<Ran, Fault> {
    let spec = &running.spec;
    let is_script = matches!(spec.workload.steps, Steps::Script(_));
    let watch = Watch::new(&spec.load, next.start.extended).of_script(is_script);
    let mut course = Course { next, date: Date::now(), phases: PhaseTeller::new(next.start, next.load.lengths), watch };
    let mut job = prepared.begin(Job {
        load: spec.load.clone(),
        generator: context.facts.generator.clone(),
        seed: context.plan.seed ^ u64::from(next.start.block),
        share: WHOLE,
        begin: None,
    });
    let ended = loop {
        match job.next(CHECK_EVERY) {
            Some(JobMessage::Report(report)) => course.tell(report, tell)?,
            Some(JobMessage::Ended(ended)) => break ended,
            None => {}
        }
        if context.interrupted.is_set() || running.systems.iter().any(|system| system.check().is_err()) {
            job.stop();
        }
    };
    let (start, load) = (next.start.number, next.load.number);
    tell(&Event::LoadFinished { start, load })?;
    if context.interrupted.is_set() {
        return Err(Fault::Broken(Broken::Interrupted));
    }
    let record = ended.map_err(|error| Fault::Failed(error.to_string()))?;
    let zero = course.date.instant(record.zero);
    Ok(Ran { record, watch: course.watch, zero })
}

/// The course of a load under way: what its job reports becomes events.
struct Course<'a> {
    next: NextLoad<'a>,
    date: Date,
    phases: PhaseTeller<'a>,
    watch: Watch,
}

impl Course<'_> {
    fn tell(&mut self, report: Report, tell: &mut Tell<'_>) -> Result<(), BundleError> {
        let (start, load) = (self.next.start.number, self.next.load.number);
        match report {
            Report::ObjectsPlaced(place) => tell(&Event::ObjectsPlaced { start, place }),
            Report::Console(lines) => tell(&Event::ConsoleWritten { start, load, lines }),
            Report::Second { zero, interval } => {
                self.watch.see(&interval);
                self.phases.follow(interval.second, tell)?;
                let zero = self.date.instant(zero);
                let first_zero = self.next.first_zero.unwrap_or(zero);
                let second = Second::of(start, load, on_clock_of_start(zero, first_zero), *interval);
                let samples = self.next.sampler.take(first_zero);
                tell(&Event::SecondPassed(Box::new(Second { samples, ..second })))
            }
        }
    }
}

/// The same instant by the machine's date and by its monotonic clock: with it, the date at which a measure phase began
/// becomes an instant.
#[derive(Clone, Copy)]
struct Date {
    unix: UnixTime,
    instant: Instant,
}

impl Date {
    fn now() -> Date {
        Date { unix: UnixTime::of(SystemTime::now()), instant: Instant::now() }
    }

    /// The instant of a date that is not earlier.
    fn instant(self, date: UnixTime) -> Instant {
        self.instant + Duration::from(date.since(self.unix))
    }
}

fn judge(context: &Context<'_>, running: &RunningVariant, record: &JobRecord, watch: &Watch) -> Judgement {
    let found = validity::Record {
        faults: &record.faults,
        broken: &record.broken,
        sequences: &record.sequences,
        examples: &record.error_examples,
        stopped: record.stopped.as_deref(),
        databases: &running.facts,
    };
    watch.judge(record.window, &context.facts.generator, &found)
}

fn sum_up(
    running: &RunningVariant,
    load: &Load,
    zero: units::Instant,
    mut record: JobRecord,
    watch: &Watch,
    judgement: Judgement,
) -> LoadSummary {
    // Another load would come to the same end.
    record.warnings.extend(record.stopped.take().filter(|_| !watch.measured_nothing()));
    let left_behind = left_behind(&record.facts);
    LoadSummary {
        load: *load,
        validity: judgement.validity,
        warnings: [watch.warnings(), record.warnings, left_behind].concat(),
        timing: LoadTiming { zero, window: record.window },
        steadiness: Steadiness {
            from: judgement.steady_from,
            unsteady: judgement.unsteady,
            unjudged: judgement.unjudged,
        },
        headroom: judgement.headroom,
        replies: Replies {
            open_load: matches!(running.spec.load.model, LoadModel::Open { .. }),
            sequences: record.sequences,
            error_examples: record.error_examples,
        },
        work: record.facts.into(),
    }
}

/// An instant on the clock of the start.
fn on_clock_of_start(instant: Instant, first_zero: Instant) -> units::Instant {
    units::Instant(0).after(instant.saturating_duration_since(first_zero).into())
}

/// Objects that could not be removed.
fn left_behind(facts: &WorkFacts) -> Vec<String> {
    let WorkFacts::Storage(storage) = facts else { return Vec::new() };
    storage.left_behind.iter().map(|text| format!("left behind: {text}")).collect()
}

/// Tells of the phases of load as their seconds pass.
struct PhaseTeller<'a> {
    start: &'a Start,
    /// The phases that have not begun, with their first second and length.
    ahead: Vec<(i64, Phase, Duration)>,
}

impl<'a> PhaseTeller<'a> {
    fn new(start: &'a Start, lengths: PhaseLengths) -> PhaseTeller<'a> {
        let PhaseLengths { warmup, measure, drain } = lengths;
        let mut ahead = vec![
            (Nanos::from(measure).0.div_ceil(1_000_000_000) as i64, Phase::Drain, drain),
            (0, Phase::Measure, measure),
        ];
        if !warmup.is_zero() {
            ahead.push((i64::MIN, Phase::Warmup, warmup));
        }
        PhaseTeller { start, ahead }
    }

    fn follow(&mut self, second: i64, tell: &mut Tell<'_>) -> Result<(), BundleError> {
        while let Some((_, begun, length)) = self.ahead.pop_if(|(first, ..)| *first <= second) {
            tell(&phase(self.start, begun, Some(length)))?;
        }
        Ok(())
    }
}
