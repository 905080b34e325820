//! Users of scripts on the threads of the generator: they are made there, then started together. They may have several
//! loads, one after the other.

use super::RunContext;
use super::network::Network;
use super::user::{CallError, Called, CalledFunction, ScriptUser, ThreadHost};
use super::user_ids::UserId;
use super::users::Users;
use plimsoll_engine::clock::{Clock, nanos};
use plimsoll_engine::event_loop;
use plimsoll_engine::event_loop::context::{LaterLoad, LoopContext};
use plimsoll_engine::job::Steering;
use plimsoll_engine::offer::{Offer, Offering, SharedQuota};
use plimsoll_engine::recorder::{Findings, Recorder, ThreadReport};
use plimsoll_engine::schedule::ThreadShare;
use plimsoll_engine::threads::{ThreadLoad, ThreadSeries, on_threads_in_series};
use plimsoll_javascript::{Argument, End, Parked, Request, ResultFormat, Vm, Wakeup, fibre};
use plimsoll_k6::operations::K6;
use plimsoll_k6::user::RunState;
use plimsoll_k6::user::User;
use plimsoll_k6::user::{Purpose, Recording};
use plimsoll_k6_run::checks::Checks;
use plimsoll_k6_run::metrics::Sinks;
use plimsoll_model::job::{Begin, JobError, Report};
use plimsoll_model::load::{LoadModel, Share};
use plimsoll_model::record::Interval;
use plimsoll_model::units::{Instant, Processors, UnixTime};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};

/// Users that call one function, with their load.
pub(super) struct ScenarioUsers {
    pub(super) offering: Offering,
    pub(super) function: String,
    /// The arguments of the function, as JSON.
    pub(super) arguments: Vec<String>,
    pub(super) result: ResultFormat,
    pub(super) scenario: Option<usize>,
    /// The numbers of all users.
    pub(super) ids: Ids,
    /// The number of users that are made before the clock starts.
    pub(super) made_before: u64,
}

/// The numbers of users, `__VU`.
pub(super) enum Ids {
    /// One after the other, from this one. All of the users are new.
    From(u64),
    /// These.
    Listed(Vec<UserId>),
}

impl Ids {
    /// The number of the user at an index.
    fn at(&self, index: u64) -> UserId {
        match self {
            Ids::From(first) => UserId { id: first + index, is_new: true },
            Ids::Listed(ids) => ids[index as usize],
        }
    }
}

/// Users with their first load.
pub(super) struct Load<'a> {
    pub(super) common: &'a RunContext<'a>,
    pub(super) scenarios: &'a [ScenarioUsers],
    /// The share of this machine.
    pub(super) share: Share,
    pub(super) threads: usize,
    pub(super) cpus: Option<&'a Processors>,
    /// Receives copies of samples while it runs.
    pub(super) copies: Option<Sender<SampleCopy>>,
}

/// One load, for a thread.
#[derive(Clone)]
pub(super) struct OneLoad(Arc<SharedLoad>);

/// One load, as all threads share it.
struct SharedLoad {
    /// The load of each scenario.
    offerings: Vec<Offering>,
    quotas: Vec<SharedQuota>,
    /// When warm-up begins.
    begin: (Begin, Steering),
    /// True if the users stay for a later load.
    stays: bool,
    /// Set by the first thread that is ready when all are.
    clock: OnceLock<Result<Clock, JobError>>,
    ready: Barrier,
}

/// The threads of users, which take one load after the other.
pub(super) struct Series<'a> {
    load: &'a Load<'a>,
    threads: &'a ThreadSeries<OneLoad>,
}

/// The samples of a thread so far.
pub(super) struct SampleCopy {
    pub(super) thread: usize,
    pub(super) sinks: Sinks,
}

/// The results of users.
pub(super) struct LoadResult {
    pub(super) samples: Samples,
    /// A message for each user that exceeded a limit.
    pub(super) broken: Vec<String>,
    /// The result of the last call.
    pub(super) called: Called,
    pub(super) findings: Vec<Findings>,
    pub(super) clock: Clock,
}

/// Samples and checks.
pub(super) struct Samples {
    pub(super) sinks: Sinks,
    pub(super) checks: Checks,
}

impl Samples {
    pub(super) fn new(plan: &RunState) -> Samples {
        Samples { sinks: Sinks::new(&plan.registry), checks: Checks::default() }
    }

    pub(super) fn merge(&mut self, sinks: &Sinks, checks: &Checks) {
        self.sinks.merge(sinks);
        self.checks.merge(checks);
    }
}

impl Load<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// Users cannot be made, or the machine does not allow what the loop needs.
    pub(super) fn run(
        &self,
        begin: (Begin, Steering),
        reports: &mut dyn FnMut(Report),
    ) -> Result<LoadResult, JobError> {
        let mut ended = None;
        let offerings = self.scenarios.iter().map(|scenarios| scenarios.offering.clone()).collect();
        let (samples, called) = self.run_series(|series| ended = series.run(offerings, begin, false, reports))?;
        let (findings, clock) = ended.ok_or_else(|| JobError::Loop("a thread ended early".to_owned()))?;
        let called = called.unwrap_or(Err(CallError::Stopped));
        Ok(LoadResult { samples, broken: self.common.take_broken(), called, findings, clock })
    }

    /// Makes the users, which have the loads that `lead` runs, the first of them that of the scenarios. Returns the samples
    /// of all loads, and the result of the last call.
    ///
    /// # Errors
    /// Users cannot be made, or the machine does not allow what the loop needs.
    pub(super) fn run_series(&self, lead: impl FnOnce(&Series<'_>)) -> Result<(Samples, Option<Called>), JobError> {
        let result = Mutex::new((Samples::new(self.common.plan), None));
        let generate = |part, loads: Receiver<ThreadLoad<OneLoad>>| {
            let Ok(first) = loads.recv() else { return Ok(()) };
            let users = ThreadUsers::make(self, &first.load.0, part);
            // If this thread cannot take part, the others need not begin.
            self.common.halt.fetch_or(users.is_err(), Relaxed);
            let clock = first.load.start(self.common)?;
            let users = users?;
            let recording = Rc::clone(&users.recording);
            let called = users.run(self, part, (first, clock), loads)?;
            let (sinks, checks) = recording.take();
            let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
            result.0.merge(&sinks, &checks);
            result.1 = called.or(result.1.take());
            Ok(())
        };
        on_threads_in_series(self.share, self.threads, self.cpus, generate, |threads| {
            lead(&Series { load: self, threads });
        })?;
        Ok(result.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Series<'_> {
    /// Runs a load with these offerings, which begins as soon as the users are ready or when it is told, and after which they
    /// may stay. None if a thread has ended early: the reason comes as the error of [`Load::run_series`].
    pub(super) fn run(
        &self,
        offerings: Vec<Offering>,
        begin: (Begin, Steering),
        stays: bool,
        reports: &mut dyn FnMut(Report),
    ) -> Option<(Vec<Findings>, Clock)> {
        let Load { common, share, threads, .. } = self.load;
        let quotas = offerings.iter().map(|offering| SharedQuota::of(offering, *share)).collect();
        let (clock, ready) = (OnceLock::new(), Barrier::new(*threads));
        let shared = Arc::new(SharedLoad { offerings, quotas, begin, stays, clock, ready });
        let clock = || shared.clock.get().cloned()?.ok();
        let on_interval = &mut |interval: Interval| {
            // The clock has started before the first second is over.
            let zero = clock().map_or_else(UnixTime::default, |clock| clock.unix(Instant(0)));
            reports(Report::Second { zero, interval: Box::new(interval) });
        };
        let findings = self.threads.offer(&OneLoad(Arc::clone(&shared)), on_interval)?;
        let clock = clock()?;
        common.plan.counts.finished_parts.fetch_add(nanos(clock.zero().elapsed()).unsigned_abs(), Relaxed);
        Some((findings, clock))
    }
}

impl OneLoad {
    /// Waits until all threads are ready, and starts the clock.
    fn start(&self, common: &RunContext<'_>) -> Result<Clock, JobError> {
        let SharedLoad { ready, clock, begin, offerings, .. } = &*self.0;
        ready.wait();
        let warmup = offerings.iter().map(|offering| offering.warmup).max().unwrap_or_default();
        clock.get_or_init(|| Clock::when_ready(begin.0, &begin.1, warmup, common.interrupted)).clone()
    }

    /// The recorder of a thread.
    fn recorder(&self, load: &Load<'_>, clock: Clock, thread: usize, reports: Sender<ThreadReport>) -> Recorder {
        let offerings = &self.0.offerings;
        let is_open = offerings.iter().all(|offering| matches!(offering.model, LoadModel::Open { .. }));
        let ends = offerings.iter().map(|offering| offering.start.after(offering.stop.limit().into()));
        // When the last offer begins its last iteration.
        let window_end = ends.max().unwrap_or_default();
        let recorder = Recorder::new(&[], is_open, clock.first(), window_end, thread, reports);
        // A run without a study has its exchanges in its metrics.
        let recorder = if load.common.purpose == Purpose::Run { recorder.for_generator_only() } else { recorder };
        recorder.sharing(&load.common.names)
    }
}

/// The users of one thread, before the clock starts.
struct ThreadUsers {
    offers: Vec<Offer>,
    users: Vec<ScriptUser>,
    recording: Rc<Recording>,
    host: Rc<ThreadHost>,
}

impl ThreadUsers {
    fn make(load: &Load<'_>, shared: &SharedLoad, part: ThreadShare) -> Result<ThreadUsers, JobError> {
        let share = part.share();
        let common = load.common;
        let recording = Recording::new(common.plan, common.purpose);
        let host = Rc::new(ThreadHost::new(&common.console));
        let offer = |(offering, quota)| Offer::new(offering, quota, part);
        let offers: Vec<Offer> = shared.offerings.iter().zip(&shared.quotas).map(offer).collect();
        let mut users = Vec::new();
        let mut known: HashMap<u64, Rc<User>> = HashMap::new();
        for (index, (offer, scenarios)) in offers.iter().zip(load.scenarios).enumerate() {
            let made_before = share.of_first(scenarios.made_before);
            for place in 0..offer.len() as u64 {
                let UserId { id, is_new } = scenarios.ids.at(place * share.of as u64 + share.index as u64);
                let user = known.entry(id).or_insert_with(|| User::new(&recording, id, common.seed));
                let mut script_user = ScriptUser::new(Rc::clone(user), index, !is_new);
                // A user of an earlier scenario brings along what it has.
                if is_new && place < made_before && !common.interrupted.load(Relaxed) {
                    let unmade = |error| JobError::Users(format!("failed to make user {id}: {error}"));
                    load_now(common, script_user.make(common, &host).map_err(unmade)?, &host)?;
                }
                users.push(script_user);
            }
        }
        Ok(ThreadUsers { offers, users, recording, host })
    }

    /// Runs the first load, then the others. Returns the result of the last call.
    fn run(
        self,
        load: &Load<'_>,
        part: ThreadShare,
        (first, clock): (ThreadLoad<OneLoad>, Clock),
        later: Receiver<ThreadLoad<OneLoad>>,
    ) -> Result<Option<Called>, JobError> {
        self.host.clock.set(clock);
        let broke = |error: rustix::io::Errno| JobError::Loop(error.to_string());
        let (thread, stays) = (part.thread, first.load.0.stays);
        let recorder = first.load.recorder(load, clock, thread, first.reports);
        let context = LoopContext::new(clock, recorder, self.offers, load.common.halt).map_err(broke)?;
        let mut context = context.staying(stays);
        let network = Network::new(load.common.network.clone(), self.users.len(), &context).map_err(broke)?;
        let mut users = Users {
            common: load.common,
            host: self.host,
            recording: self.recording,
            network,
            users: self.users,
            calls: load.scenarios.iter().map(ScenarioUsers::calls).collect(),
            ready: VecDeque::new(),
            held: VecDeque::new(),
            copies: load.copies.clone().map(|copies| (thread, copies)),
            result: None,
            copied: Instant(0),
            was_aborted: load.common.plan.abort.get().is_some(),
            counted: 0,
        };
        event_loop::run(&mut context, &mut users).map_err(broke)?;
        for ThreadLoad { load: one, reports } in later {
            let clock = one.start(load.common)?;
            let recorder = one.recorder(load, clock, thread, reports);
            let SharedLoad { offerings, quotas, stays, .. } = &*one.0;
            // Only loads of a study have others after them, and these have one scenario.
            let (offering, quota, stays) = (&offerings[0], &quotas[0], *stays);
            context.go_on(LaterLoad { clock, recorder, offering, quota, part, stays }, &mut users);
            event_loop::run(&mut context, &mut users).map_err(broke)?;
        }
        Ok(users.result)
    }
}

impl ScenarioUsers {
    fn calls(&self) -> CalledFunction {
        // Each user parses the JSON once.
        let arguments = self.arguments.iter().map(|json| Argument::SharedJson(json.as_str().into())).collect();
        let (function, result, scenario) = (self.function.as_str().into(), self.result, self.scenario);
        CalledFunction { function, arguments, result, scenario }
    }
}

/// Checks that the process can have this many users.
///
/// # Errors
/// The process can have fewer users.
pub(super) fn allow_users(users: u64) -> Result<(), JobError> {
    let Ok(most) = fibre::most() else { return Ok(()) };
    if users <= most as u64 {
        return Ok(());
    }
    Err(JobError::Users(format!(
        "the load needs {users} users, but scripts have a stack each, of which this machine allows {most} \
         (half of `vm.max_map_count`); raise it (`sysctl -w vm.max_map_count={}`) or use fewer users",
        (users + 1000) * 2
    )))
}

/// Lets a user run its modules, which may wait for timers but not for the network.
fn load_now(common: &RunContext<'_>, vm: &mut Vm<K6>, host: &Rc<ThreadHost>) -> Result<(), JobError> {
    match run_modules(vm, host) {
        Parked::Over(_) => Ok(()),
        Parked::Ended(End::NotLoaded(exception)) => Err(JobError::Script(exception.to_string())),
        Parked::Ended(End::Limit(limit, place)) => {
            Err(JobError::Script(format!("while the script is loaded, {}", common.limits.exceeded(limit, place))))
        }
        Parked::Ended(End::Stopped) | Parked::Waiting => {
            Err(JobError::Script("the script waits while it is loaded for what never comes".to_owned()))
        }
    }
}

/// Runs the modules of a user, waiting for their timers on the calling thread.
pub(super) fn run_modules(vm: &mut Vm<K6>, host: &Rc<ThreadHost>) -> Parked {
    let mut timers = BTreeSet::new();
    let mut parked = vm.load();
    loop {
        while let Some(request) = vm.next_request() {
            match request {
                Request::Timer(id, due) => drop(timers.insert((due, id))),
                Request::Cancel(id) => timers.retain(|(_, timer)| *timer != id),
                // Native functions start no operation while a script is loaded.
                Request::Start(..) => {}
            }
        }
        let (Parked::Waiting, Some((due, id))) = (&parked, timers.pop_first()) else { return parked };
        std::thread::sleep(due.since(host.clock.get().now()).into());
        parked = vm.wake(id, Wakeup::Timer);
    }
}
