//! A run of a script without a study, as k6 does it: `setup`, the scenarios, `teardown`.

use super::alone;
use super::blocked::Blocked;
use super::hosts::Hosts;
use super::network::{self, Reuse};
use super::rate_limit::RateLimit;
use super::systems::Systems;
use super::threads::{Ids, Load, LoadResult, SampleCopy, ScenarioUsers, allow_users};
use super::tls::TlsConfigurations;
use super::user::CallError;
use super::user_ids::user_ids;
use super::{Allowed, Console, Limits, LineSource, RunContext};
use plimsoll_engine::job::Steering;
use plimsoll_engine::offer::{K6Arrivals, Offering};
use plimsoll_engine::threads::allow_descriptors;
use plimsoll_javascript::{Level, Program, ResultFormat};
use plimsoll_k6::user::Purpose;
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::checks::Checks;
use plimsoll_k6_run::metrics::Sinks;
use plimsoll_k6_run::options::Options;
use plimsoll_k6_run::scenario::{self, Curve, Executor, Quota, Reserve, Scenario, Source};
use plimsoll_k6_run::threshold::Threshold;
use plimsoll_model::event::{Event, Second};
use plimsoll_model::job::{Begin, JobError, Report, SetUp};
use plimsoll_model::load::{Arrivals, LoadModel, Overflow, Profile, Shape, Share, Stage, Stop, Think, WHOLE};
use plimsoll_model::start::Phase;
use plimsoll_model::units::{Instant, Nanos, Processors};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The number of the only start of a run, and of the only load on it.
const ONLY: u32 = 1;

/// A script to run, and how to run it.
pub struct Run<'a> {
    /// The script.
    pub program: &'a Arc<Program>,
    /// Options, scenarios, metrics and environment. It also has the progress of the run.
    pub plan: &'a Arc<RunState>,
    /// The limits of a user.
    pub limits: Limits,
    /// The hosts that the script may send to.
    pub allowed: Allowed,
    /// Threads that run users.
    pub threads: usize,
    /// Processors that they are bound to; all when there is none.
    pub cpus: Option<&'a Processors>,
    /// The seed of everything random.
    pub seed: u64,
    /// Receives the lines of the console.
    pub console: Console,
    /// The caller sets this to stop the run; `teardown` still runs.
    pub interrupted: &'a AtomicBool,
    /// The part of the run that this process has.
    pub part: Part,
}

/// The part of a run that one of several generators has, or the whole of it.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its share of users, arrivals and iterations.
    pub share: Share,
    /// When the scenarios begin.
    pub begin: Begin,
    /// Tells it the instant of the begin, and when the users of all others have ended.
    pub steering: Steering,
    /// The generator that calls `setup` and `teardown`.
    pub set_up: SetUp,
}

impl Default for Part {
    /// The whole run.
    fn default() -> Part {
        Part { share: WHOLE, begin: Begin::default(), steering: Steering::default(), set_up: SetUp::Here }
    }
}

impl Part {
    /// True if other generators have parts of the run too.
    fn has_others(&self) -> bool {
        self.share.of > 1
    }
}

/// Observes a run.
pub trait Observer {
    /// Handles an event. The seconds of such a run have iterations and the state of the generator, but no rows: its
    /// metrics are samples.
    fn on_event(&mut self, event: &Event);

    /// Handles what `setup` returned, as JSON, where other generators need it too.
    fn on_set_up(&mut self, _data: Option<&str>) {}

    /// Handles the end of the scenarios of this part, where `teardown` waits for those of others.
    fn on_scenarios_ended(&mut self, _end: &End) {}

    /// Decides after each second if the run goes on.
    fn check(&mut self, _progress: &Progress) -> Go {
        Go::On
    }
}

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    /// How long scenarios have run.
    pub elapsed: Duration,
    /// All samples so far, every two seconds, if a threshold may end the run.
    pub sinks: Option<Sinks>,
    /// The number of users that are part of a scenario.
    pub users: u64,
    /// The number of users that were made.
    pub users_made: u64,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// It goes on.
    On,
    /// It ends at once.
    Abort,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// All samples, those of `setup` and `teardown` included.
    pub sinks: Sinks,
    /// All checks.
    pub checks: Checks,
    /// How long it took, with `setup` and `teardown`.
    pub elapsed: Duration,
    /// The duration of its scenarios.
    pub in_scenarios: Duration,
    /// What `setup` returned, as JSON.
    pub setup_data: Option<String>,
    /// How it ended.
    pub end: End,
    /// A message for each user that exceeded a limit.
    pub broken: Vec<String>,
    /// Faults that kept the generator from doing its work.
    pub faults: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// All its scenarios ended.
    Finished,
    /// The script ended it, with this message.
    Aborted(String),
    /// The observer ended it.
    Stopped,
    /// It was interrupted.
    Interrupted,
    /// A user could not load the script, for this reason.
    NotLoaded(String),
    /// `setup` failed, and nothing else was run.
    Setup(CallError),
    /// `teardown` failed.
    Teardown(CallError),
}

/// Runs a script.
///
/// # Errors
/// The machine does not allow what the run needs.
pub fn run(run: &Run<'_>, observer: &mut dyn Observer) -> Result<RunOutcome, JobError> {
    let time_under_load = scenario::longest(&run.plan.scenarios);
    observer.on_event(&Event::RunStarted { starts: 1, already_done: 0, time_under_load });
    let outcome = run.whole(observer);
    let complete = outcome.as_ref().is_ok_and(|outcome| outcome.end == End::Finished);
    observer.on_event(&Event::RunFinished { complete, decided_after: None });
    outcome
}

impl Run<'_> {
    fn whole(&self, observer: &mut dyn Observer) -> Result<RunOutcome, JobError> {
        let users = |scenario: &Scenario| self.part.share.of_first(scenario.executor.most_vus());
        let users: u64 = self.plan.scenarios.iter().map(users).sum();
        allow_users(users)?;
        allow_descriptors(users)?;
        // Batches use more connections. A run without batches does not need this many, so a refusal is no error.
        let _ = allow_descriptors(users * self.plan.options.batch_per_host.unwrap_or(1));
        let network = Arc::new(self.network()?);
        let mut outcome = RunOutcome::new(self.plan);
        let exports = |name: &str| self.program.exports().iter().any(|export| export == name);
        let (options, Part { set_up, steering, .. }) = (&self.plan.options, &self.part);
        let calls_both = *set_up == SetUp::Here;
        if let SetUp::Elsewhere(data) = set_up {
            outcome.setup_data.clone_from(data);
        } else if exports("setup") && options.no_setup != Some(true) {
            observer.on_event(&phase(Phase::Setup));
            let timeout = options.setup_timeout.unwrap_or(Duration::MAX);
            match outcome.add(alone::call(self, &network, "setup", Vec::new(), timeout, self.interrupted)?) {
                Ok(data) => outcome.setup_data = data,
                Err(why) => outcome.end = self.ended(End::Setup(why)),
            }
        }
        if outcome.end == End::Finished {
            if calls_both && self.part.has_others() {
                observer.on_set_up(outcome.setup_data.as_deref());
            }
            observer.on_event(&phase(Phase::Measure));
            match self.scenarios(&network, &mut outcome, observer) {
                Err(JobError::Script(why)) => outcome.end = self.ended(End::NotLoaded(why)),
                // It was set up, and others may have begun.
                Err(late @ JobError::Late(_)) => {
                    outcome.faults.push(late.to_string());
                    outcome.end = self.ended(End::Stopped);
                }
                other => other?,
            }
            if self.part.has_others() {
                observer.on_scenarios_ended(&outcome.end);
            }
            if calls_both && exports("teardown") && options.no_teardown != Some(true) {
                if self.part.has_others() {
                    steering.wait_for_others(self.interrupted);
                }
                observer.on_event(&phase(Phase::Teardown));
                let timeout = options.teardown_timeout.unwrap_or(Duration::MAX);
                let data = outcome.setup_data.iter().cloned().collect();
                let called = alone::call(self, &network, "teardown", data, timeout, self.until_interrupted())?;
                match (outcome.add(called), &outcome.end) {
                    (Err(why), End::Finished) => outcome.end = self.ended(End::Teardown(why)),
                    // An earlier reason for the end of the run takes precedence.
                    (Err(why), _) => {
                        let text = format!("`teardown` failed: {}", why.render());
                        (self.console)(LineSource::Run, Level::Error, &text);
                    }
                    (Ok(_), _) => {}
                }
            }
        }
        self.tell_repeated(&network);
        Ok(outcome)
    }

    /// Says how many requests the server may have received twice. Metrics count them once, as those of k6 do.
    fn tell_repeated(&self, network: &network::Shared) {
        let repeated = network.repeated.load(Relaxed);
        if repeated > 0 {
            let text = format!(
                "sent again on another connection, because the server had closed the one that was kept: {repeated} \
                 requests, which metrics count once each"
            );
            (self.console)(LineSource::Run, Level::Warn, &text);
        }
    }

    fn scenarios(
        &self,
        network: &Arc<network::Shared>,
        outcome: &mut RunOutcome,
        observer: &mut dyn Observer,
    ) -> Result<(), JobError> {
        let (halt, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let Part { share, begin, steering, .. } = &self.part;
        let common = RunContext { steering: steering.clone(), ..self.common(network, self.interrupted, &halt) };
        let scenarios = self.scenario_users(outcome.setup_data.as_deref());
        let mut iterations_before = 0;
        let (sender, receiver) = channel();
        let aborts = |(_, thresholds): &(String, Vec<Threshold>)| thresholds.iter().any(|one| one.abort_on_fail);
        let copies = self.plan.options.thresholds.iter().flatten().any(aborts).then_some(sender);
        let threads = self.threads.max(1);
        let load = Load { common: &common, scenarios: &scenarios, share: *share, threads, cpus: self.cpus, copies };
        let mut copied = SampleCopies { receiver, before: outcome.sinks.clone(), latest: vec![None; threads] };
        let result = load.run((*begin, steering.clone()), &mut |report| {
            let Report::Second { interval, .. } = report else { return };
            let elapsed =
                Duration::from_secs(u64::try_from(interval.second).unwrap_or(0)) + Duration::from(interval.length);
            let [users, users_made, iterations] = self.counts();
            let ended = iterations - std::mem::replace(&mut iterations_before, iterations);
            let second = Second { iterations: ended, ..Second::of(ONLY, ONLY, Instant(0), *interval) };
            observer.on_event(&Event::SecondPassed(Box::new(second)));
            if observer.check(&Progress { elapsed, sinks: copied.merged(), users, users_made }) == Go::Abort {
                stopped.store(true, Relaxed);
                halt.store(true, Relaxed);
            }
        })?;
        let was_ended = stopped.load(Relaxed) || steering.is_over();
        outcome.end = self.ended(if was_ended { End::Stopped } else { End::Finished });
        outcome.in_scenarios = result.clock.zero().elapsed();
        let _ = outcome.add(result);
        Ok(())
    }

    /// The numbers of users in a scenario, of users that were made, and of iterations that ended.
    fn counts(&self) -> [u64; 3] {
        let counts = &self.plan.counts;
        [&counts.users, &counts.users_made, &counts.iterations].map(|count| count.load(Relaxed))
    }

    /// How a run ended: by the script, by an interruption, or else `otherwise`.
    fn ended(&self, otherwise: End) -> End {
        if let Some(message) = self.plan.abort.get() {
            End::Aborted(message.clone())
        } else if self.interrupted.load(Relaxed) {
            End::Interrupted
        } else {
            otherwise
        }
    }

    /// What interrupts a call after the load. Where the run was interrupted before, nothing does: the end was asked for, and
    /// the call is part of it.
    pub(super) fn until_interrupted(&self) -> &AtomicBool {
        static NEVER: AtomicBool = AtomicBool::new(false);
        if self.interrupted.load(Relaxed) { &NEVER } else { self.interrupted }
    }

    pub(super) fn common<'a>(
        &'a self,
        network: &Arc<network::Shared>,
        interrupted: &'a AtomicBool,
        halt: &'a AtomicBool,
    ) -> RunContext<'a> {
        RunContext {
            program: self.program,
            plan: self.plan,
            purpose: Purpose::Run,
            limits: self.limits,
            least_iteration: self.plan.options.min_iteration_duration.unwrap_or_default().into(),
            network: Arc::clone(network),
            names: Arc::default(),
            console: Arc::clone(&self.console),
            seed: self.seed,
            interrupted,
            halt,
            steering: Steering::default(),
            broken: Mutex::default(),
        }
    }

    pub(super) fn network(&self) -> Result<network::Shared, JobError> {
        // Generators without users send nothing.
        let share = with_users(&self.plan.scenarios, self.part.share);
        network::Shared::new(&self.plan.options, share, self.allowed.clone(), self.limits.vm.memory)
            .map_err(JobError::Users)
    }

    /// The users of all scenarios.
    fn scenario_users(&self, data: Option<&str>) -> Vec<ScenarioUsers> {
        let ids = user_ids(&self.plan.scenarios, self.threads.max(1) * self.part.share.of);
        let scenarios = self.plan.scenarios.iter().zip(ids).enumerate().map(|(index, (scenario, ids))| ScenarioUsers {
            offering: offering(scenario, self.seed),
            function: scenario.exec.clone(),
            arguments: data.iter().map(|data| (*data).to_owned()).collect(),
            result: ResultFormat::Nothing,
            scenario: Some(index),
            ids: Ids::Listed(ids),
            made_before: made_before(scenario),
        });
        scenarios.collect()
    }
}

impl network::Shared {
    /// The state that the users of this process share, as the options ask for it.
    ///
    /// # Errors
    /// An option has no meaning.
    pub(super) fn new(
        options: &Options,
        share: Share,
        allowed: Allowed,
        largest_body: usize,
    ) -> Result<network::Shared, String> {
        let reuse = match (options.no_connection_reuse, options.no_vu_connection_reuse) {
            (Some(true), _) => Reuse::Never,
            (_, Some(true)) => Reuse::WithinIterations,
            _ => Reuse::Always,
        };
        Ok(network::Shared {
            allowed,
            blocked: Blocked::read(
                options.block_hostnames.as_deref().unwrap_or_default(),
                options.blacklist_ips.as_deref().unwrap_or_default(),
            )?,
            hosts: Hosts::read(options.hosts.as_deref().unwrap_or_default())?,
            known: Arc::default(),
            rate_limit: RateLimit::new(options.rps.map(|most| share.of_first(most))),
            tls: TlsConfigurations::new(options.insecure_skip_tls_verify == Some(true), options.tls_version),
            reuse,
            largest_body,
            longest: Nanos(u64::MAX),
            systems: Systems::default(),
            repeated: AtomicU64::new(0),
        })
    }
}

impl RunOutcome {
    /// The outcome of a run that has no samples yet.
    pub(super) fn new(plan: &RunState) -> RunOutcome {
        RunOutcome {
            sinks: Sinks::new(&plan.registry),
            checks: Checks::default(),
            elapsed: Duration::ZERO,
            in_scenarios: Duration::ZERO,
            setup_data: None,
            end: End::Finished,
            broken: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Adds the results of users. Returns the result of their last call.
    fn add(&mut self, result: LoadResult) -> Result<Option<String>, CallError> {
        self.elapsed += result.clock.zero().elapsed();
        self.sinks.merge(&result.samples.sinks);
        self.checks.merge(&result.samples.checks);
        self.broken.extend(result.broken);
        self.faults.extend(result.findings.into_iter().flat_map(|found| found.faults));
        result.called
    }
}

/// The latest samples of each thread.
struct SampleCopies {
    receiver: Receiver<SampleCopy>,
    /// Samples from before the threads began: those of `setup`.
    before: Sinks,
    latest: Vec<Option<Sinks>>,
}

impl SampleCopies {
    /// The samples of `setup` and of all threads, if any are new.
    fn merged(&mut self) -> Option<Sinks> {
        let mut is_new = false;
        for SampleCopy { thread, sinks } in self.receiver.try_iter() {
            self.latest[thread] = Some(sinks);
            is_new = true;
        }
        is_new.then(|| {
            let mut merged = self.before.clone();
            self.latest.iter().flatten().for_each(|sinks| merged.merge(sinks));
            merged
        })
    }
}

fn phase(phase: Phase) -> Event {
    Event::PhaseStarted { start: ONLY, phase, length: None }
}

/// A generator among those that have users of any scenario.
pub(super) fn with_users(scenarios: &[Scenario], generator: Share) -> Share {
    let most = scenarios.iter().map(|scenario| scenario.executor.most_vus()).max().unwrap_or(0);
    generator.among_those_with(most)
}

/// Converts a scenario to an offering for the event loop.
fn offering(scenario: &Scenario, seed: u64) -> Offering {
    let offer = scenario.offer();
    let limit = offer.window;
    let (model, stop, graceful_ramp_down, k6_arrivals) = match offer.source {
        Source::Closed { users, graceful_ramp_down, quota } => {
            let stop = match quota {
                Quota::Unlimited => Stop::After(limit),
                Quota::Together(count) => Stop::Iterations { count, limit },
                Quota::Each(count) => Stop::IterationsPerUser { count, limit },
            };
            let think = Think::Constant(Duration::ZERO);
            (LoadModel::Closed { users: profile(&users), think }, stop, Some(graceful_ramp_down), None)
        }
        Source::Open { rate, users: Reserve { pre_allocated, most } } => {
            let (arrivals, overflow) = (Arrivals::Constant, Overflow::Drop);
            let max_users = u32::try_from(most).unwrap_or(u32::MAX);
            let after_a_gap = matches!(scenario.executor, Executor::RampingArrivalRate { .. });
            let k6_arrivals = K6Arrivals { in_turn: pre_allocated, after_a_gap };
            let model = LoadModel::Open { rate: profile(&rate), arrivals, max_users, overflow };
            (model, Stop::After(limit), None, Some(k6_arrivals))
        }
    };
    let start = Instant::default().after(offer.begin.into());
    Offering {
        model,
        stop,
        start,
        warmup: Duration::ZERO,
        drain: offer.drain,
        graceful_ramp_down,
        k6_arrivals,
        steering: None,
        seed,
    }
}

/// The number of users that are made before the clock starts.
fn made_before(scenario: &Scenario) -> u64 {
    match scenario.offer().source {
        Source::Closed { .. } => scenario.executor.most_vus(),
        Source::Open { users, .. } => users.pre_allocated,
    }
}

fn profile(Curve(points): &Curve) -> Profile {
    let stage = |pair: &[(Duration, f64)]| {
        let (length, target) = (pair[1].0 - pair[0].0, pair[1].1);
        Stage { length, target, shape: if length.is_zero() { Shape::Hold } else { Shape::Ramp } }
    };
    let start = points.first().map_or(0.0, |(_, value)| *value);
    Profile { start, stages: points.windows(2).map(stage).collect(), joining: None }
}
