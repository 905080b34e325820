//! One load on a start: prepare it, offer it, judge.

use crate::databases;
use crate::run::Context;
use crate::start::{Broken, Fault, RunningVariant, Tell, phase};
use crate::target;
use crate::validity::{self, Judgement, Watch};
use plimsoll_bundle::StartWriter;
use plimsoll_generator::{Job, Prepared, RunRecord};
use plimsoll_model::event::{Event, Second};
use plimsoll_model::load::LoadModel;
use plimsoll_model::record::{Interval, Subject, Tally};
use plimsoll_model::result::{GeneratorRow, LoadSecond, LoadSummary, LoadTiming, Replies, Steadiness, Work};
use plimsoll_model::sample::DatabaseSample;
use plimsoll_model::start::{Load, Phase, PhaseLengths, Start};
use plimsoll_model::storage::StorageFacts;
use plimsoll_model::units::{self, Nanos};
use plimsoll_model::workload::Steps;
use plimsoll_system::Running;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
    /// What databases counted, on the clock of the start.
    pub(crate) counters: Vec<DatabaseSample>,
    /// Which databases ended their sessions, as failures.
    pub(crate) lost: Vec<String>,
}

/// Offers `load` to the systems of a variant. `first_zero` is the begin of the measure phase of the
/// start's first load, if there was one.
pub(crate) fn offer(
    context: &Context<'_>,
    start: &Start,
    running: &mut RunningVariant,
    load: &Load,
    first_zero: Option<Instant>,
    writer: &mut StartWriter,
    tell: &mut Tell<'_>,
) -> Result<Offered, Fault> {
    running.spec.load.warmup = load.lengths.warmup;
    let prepared = prepare(context, running)?;
    databases::check_users(&running.databases, &running.spec.workload.steps, running.spec.load.most_users())?;
    running.facts = databases::facts(&running.databases, &running.spec.workload.steps)?;
    let looks = databases::look(&running.databases)?;
    let (mut record, watch) = run(context, start, running, load, &prepared, writer, tell)?;
    let (mut counters, lost) = databases::seen(looks, &running.databases, &record);
    if let Some(work) = record.sql.take() {
        databases::add_work(&mut running.facts, &running.spec.workload.steps, work);
    }
    let zero = on_clock_of_start(record.zero, first_zero.unwrap_or(record.zero));
    for sample in &mut counters {
        sample.variant = running.variant;
        sample.at += zero.0 as f64 / 1e9;
    }
    let judgement = judge(context, running, &record, &watch);
    let worked = watch.worked() && record.broken.is_empty() && (record.stopped.is_none() || !watch.measured_nothing());
    let zero_instant = record.zero;
    let summary = sum_up(running, load, zero, record, &watch, judgement);
    let outcome = LoadOutcome { iterations: watch.iterations, errors: watch.errors, worked, subjects: watch.subjects };
    Ok(Offered { summary, outcome, zero: zero_instant, counters, lost })
}

/// Compiles the workload for the systems that are up.
fn prepare(context: &Context<'_>, running: &RunningVariant) -> Result<Prepared, Fault> {
    let target = running.spec.workload.target.as_ref();
    let address = target.map(|target| target::address(context.study, target)).transpose().map_err(Fault::Failed)?;
    let workload = databases::placed(&running.spec.workload, &running.databases).map_err(Fault::Failed)?;
    Prepared::new(&workload, address).map_err(|error| Fault::Failed(error.to_string()))
}

/// Runs the load, whose seconds go to the bundle as they pass.
fn run(
    context: &Context<'_>,
    start: &Start,
    running: &RunningVariant,
    load: &Load,
    prepared: &Prepared,
    writer: &mut StartWriter,
    tell: &mut Tell<'_>,
) -> Result<(RunRecord, Watch), Fault> {
    let spec = &running.spec;
    let is_script = matches!(spec.workload.steps, Steps::Script(_));
    let mut watch = Watch::new(&spec.load, start.extended).of_script(is_script);
    let mut trouble = None;
    let mut phases = PhaseTeller::new(start, load.lengths);
    let note = writer.objects_note();
    let unnoted = std::cell::RefCell::new(None);
    let (over, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let console = writer.console_path(load.number);
    let record = std::thread::scope(|scope| {
        scope.spawn(|| break_off_when_needed(&running.systems, context.interrupted, &stop, &over));
        let job = Job {
            load: &spec.load,
            generator: &context.facts.generator,
            seed: context.plan.seed ^ u64::from(start.block),
            share: plimsoll_generator::WHOLE,
            interrupted: &stop,
            on_place: &|place| {
                if let Err(error) = note.write(place) {
                    unnoted.replace(Some(error));
                }
            },
            console: Some(console),
        };
        let mut on_interval = |interval: Interval| {
            watch.see(&interval);
            let written = writer
                .interval(&interval)
                .and_then(|()| phases.follow(interval.second, tell))
                .and_then(|()| tell(&second_passed(start, load, &interval)));
            if let Err(error) = written {
                trouble.get_or_insert(error);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let record = prepared.run(&job, &mut on_interval);
        over.store(true, Ordering::Relaxed);
        record
    });
    let unnoted = unnoted.into_inner().or(note.remove().err());
    if let Some(error) = trouble.or(unnoted) {
        return Err(Fault::Broken(Broken::Bundle(error)));
    }
    if context.interrupted.load(Ordering::Relaxed) {
        return Err(Fault::Broken(Broken::Interrupted));
    }
    Ok((record.map_err(|error| Fault::Failed(error.to_string()))?, watch))
}

/// Breaks the load off when the run is interrupted, or when a system has died: more load would
/// only measure a refusal.
fn break_off_when_needed(systems: &[Running], interrupted: &AtomicBool, stop: &AtomicBool, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let died = || systems.iter().any(|system| system.check().is_err());
        if interrupted.load(Ordering::Relaxed) || died() {
            stop.store(true, Ordering::Relaxed);
            return;
        }
        std::thread::sleep(CHECK_EVERY);
    }
}

fn judge(context: &Context<'_>, running: &RunningVariant, record: &RunRecord, watch: &Watch) -> Judgement {
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
    mut record: RunRecord,
    watch: &Watch,
    judgement: Judgement,
) -> LoadSummary {
    // Another load would come to the same end.
    record.warnings.extend(record.stopped.take().filter(|_| !watch.measured_nothing()));
    let left_behind = left_behind(record.storage.as_ref());
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
        work: Work::of(record.storage, record.script),
    }
}

/// An instant on the clock of the start.
fn on_clock_of_start(instant: Instant, first_zero: Instant) -> units::Instant {
    units::Instant(0).after(instant.saturating_duration_since(first_zero).into())
}

/// Objects that could not be removed.
fn left_behind(storage: Option<&StorageFacts>) -> Vec<String> {
    let texts = storage.into_iter().flat_map(|storage| &storage.left_behind);
    texts.map(|text| format!("left behind: {text}")).collect()
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

    fn follow(&mut self, second: i64, tell: &mut Tell<'_>) -> Result<(), plimsoll_bundle::BundleError> {
        while let Some((_, begun, length)) = self.ahead.pop_if(|(first, ..)| *first <= second) {
            tell(&phase(self.start, begun, Some(length)))?;
        }
        Ok(())
    }
}

/// One second of load, as the rows that the bundle gets.
fn second_passed(start: &Start, load: &Load, interval: &Interval) -> Event {
    let by_subject = interval.by_subject();
    let mut requests = Tally::default();
    let of_requests = by_subject.iter().filter(|(subject, _)| matches!(subject, Subject::Request(_)));
    of_requests.for_each(|(_, tally)| requests.merge(tally));
    let median = (requests.count() > 0).then(|| Nanos(requests.service.value_at_quantile(0.5)).seconds());
    let row = |(subject, tally): (&&Subject, &Tally)| LoadSecond::of(load.number, interval.second, subject, tally);
    Event::SecondPassed(Box::new(Second {
        start: start.number,
        load: load.number,
        second: interval.second,
        ended: by_subject.iter().map(row).collect(),
        iterations: by_subject.get(&Subject::Iteration).map_or(0, Tally::count),
        errors: requests.failed(),
        median,
        generator: GeneratorRow::of(load.number, interval),
    }))
}
