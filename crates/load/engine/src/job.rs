//! Jobs that threads of this process run, and the records of their results.

use crate::clock::{Clock, nanos};
use crate::recorder::Findings;
use plimsoll_model::job::{Job, JobRecord, Report, WorkFacts};
use plimsoll_model::load::Stop;
use plimsoll_model::record::{Account, ErrorKind, SequenceRecorder};
use plimsoll_model::units::{Instant, Nanos, UnixTime};
use plimsoll_model::workload::Steps;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Jobs that come one after the other, and what listens to them.
pub trait Jobs {
    /// Waits for the next job; none if there is no more.
    fn next(&mut self) -> Option<Job>;

    /// A report of the job that runs.
    fn report(&mut self, report: Report);

    /// The job that ran has ended.
    fn ended(&mut self, record: JobRecord);

    /// The caller's decisions about the job that runs.
    fn steering(&self) -> Steering {
        Steering::default()
    }
}

/// The caller's decisions about a load while it gets ready and runs: when it begins, where that is told
/// ([`Begin::WhenTold`](plimsoll_model::job::Begin)), and how many users there are and when it ends, where a control loop
/// changes that. Clones belong to the same load.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<Decisions>);

#[derive(Default)]
struct Decisions {
    users: AtomicU64,
    begin: Mutex<Option<UnixTime>>,
    /// True once the users of all other generators have ended.
    others_ended: Mutex<bool>,
    /// Wakes those who wait for one of these.
    told: Condvar,
    others_told: Condvar,
    /// Tells the caller that the users are ready.
    on_ready: Option<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decisions").field("users", &self.users).field("begin", &self.begin).finish_non_exhaustive()
    }
}

impl Steering {
    /// This number of users means that the load is over. There are never so many.
    const OVER: u64 = u64::MAX;

    /// The time after which a load that waits for its begin looks for an interruption.
    const POLL_EVERY: Duration = Duration::from_millis(20);

    /// The steering of a load that waits for its begin: `on_ready` is called when its users are ready, and
    /// [`Steering::begin_at`] is the answer.
    pub fn awaiting(on_ready: impl Fn() + Send + Sync + 'static) -> Steering {
        Steering(Arc::new(Decisions { on_ready: Some(Box::new(on_ready)), ..Decisions::default() }))
    }

    /// Sets the number of users from now on.
    pub fn set_users(&self, users: u32) {
        self.0.users.store(u64::from(users), Ordering::Relaxed);
    }

    /// Ends the load: no more iterations begin.
    pub fn end(&self) {
        self.0.users.store(Steering::OVER, Ordering::Relaxed);
    }

    /// Names the instant at which the load begins.
    pub fn begin_at(&self, begin: UnixTime) {
        *self.0.begin.lock().unwrap_or_else(PoisonError::into_inner) = Some(begin);
        self.0.told.notify_all();
    }

    /// The users of all other generators have ended.
    pub fn others_ended(&self) {
        *self.0.others_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.others_told.notify_all();
    }

    /// Waits until the users of all other generators have ended, unless it is interrupted.
    pub fn wait_for_others(&self, interrupted: &AtomicBool) {
        let mut ended = self.0.others_ended.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended && !interrupted.load(Ordering::Relaxed) {
            let waited = self.0.others_told.wait_timeout(ended, Steering::POLL_EVERY);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// True once the load is to end: no more iterations begin.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.users().is_none()
    }

    /// The number of users; none once the load is over.
    pub(crate) fn users(&self) -> Option<u64> {
        Some(self.0.users.load(Ordering::Relaxed)).filter(|users| *users != Steering::OVER)
    }

    /// Says that the users are ready, and waits to be told when the load begins; none if it is interrupted meanwhile.
    pub(crate) fn ready(&self, interrupted: &AtomicBool) -> Option<UnixTime> {
        if let Some(tell) = &self.0.on_ready {
            tell();
        }
        let mut begin = self.0.begin.lock().unwrap_or_else(PoisonError::into_inner);
        while begin.is_none() && !interrupted.load(Ordering::Relaxed) {
            let waited = self.0.told.wait_timeout(begin, Steering::POLL_EVERY);
            begin = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *begin
    }
}

/// A job that this process runs.
#[derive(Clone, Copy)]
pub struct LocalJob<'a> {
    /// The job.
    pub job: &'a Job,
    /// The caller's decisions about it.
    pub steering: &'a Steering,
    /// The caller sets this to stop the job.
    pub interrupted: &'a AtomicBool,
}

impl LocalJob<'_> {
    /// True once the job must stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Makes the record of the job from the findings of its threads.
    #[must_use]
    pub fn record(&self, findings: Vec<Findings>, steps: &Steps, clock: Clock) -> JobRecord {
        let stop = self.job.load.stop;
        let limit = nanos(stop.limit());
        let last_done = findings.iter().filter_map(|found| found.last_done).max();
        let all_stopped = findings.iter().all(|found| found.all_stopped);
        let window = match stop {
            Stop::After(_) | Stop::Soak(_) if !all_stopped => limit,
            // The phase ends with the last iteration, unless time ran out first.
            _ => last_done.map_or(limit, |at| at.0.clamp(1, limit)),
        };
        let mut examples: BTreeMap<String, BTreeMap<ErrorKind, String>> = BTreeMap::new();
        for (subject, kinds) in findings.iter().flat_map(|found| &found.examples) {
            let known = examples.entry(subject.clone()).or_default();
            kinds.iter().for_each(|(kind, text)| {
                known.entry(*kind).or_insert_with(|| text.clone());
            });
        }
        let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
        for (subject, account) in findings.iter().flat_map(|found| &found.accounts) {
            accounts.entry(subject.clone()).or_default().merge(account);
        }
        let unbalanced: Vec<String> = findings.iter().flat_map(unbalanced).collect();
        // Several threads may have the same warning.
        let warnings: BTreeSet<&String> = findings.iter().flat_map(|found| &found.warnings).collect();
        let warnings = warnings.into_iter().cloned().collect();
        let numbers = numbers(&findings, steps);
        JobRecord {
            zero: clock.unix(Instant(0)),
            window: Nanos(window.unsigned_abs()),
            sequences: numbers.iter().map(|(name, numbers)| (name.clone(), numbers.check())).collect(),
            // Whoever merges the shares of several generators needs the numbers themselves.
            numbers: if self.job.share.of > 1 { numbers } else { BTreeMap::new() },
            error_examples: examples,
            accounts,
            faults: findings.into_iter().flat_map(|found| found.faults).chain(unbalanced).collect(),
            broken: Vec::new(),
            warnings,
            stopped: None,
            interrupted: self.is_interrupted(),
            facts: WorkFacts::None,
            agents: Vec::new(),
        }
    }
}

/// A fault for each account of a thread that does not add up. Threads are looked at one by one, or one that counts too
/// many could hide another that counts too few.
fn unbalanced(found: &Findings) -> impl Iterator<Item = String> {
    let wrong = found.accounts.iter().filter(|(_, account)| !account.holds());
    wrong.map(|(subject, account)| format!("its account of `{subject}` does not add up: {account}"))
}

/// The numbers in the replies to each request that is checked for a sequence.
fn numbers(findings: &[Findings], steps: &Steps) -> BTreeMap<String, SequenceRecorder> {
    let Steps::Grpc { calls, .. } = steps else { return BTreeMap::new() };
    let checked = calls.iter().enumerate().filter(|(_, call)| call.sequence.is_some());
    checked
        .map(|(step, call)| {
            let mut whole = SequenceRecorder::default();
            findings.iter().for_each(|found| whole.merge(&found.sequences[step]));
            (call.name.clone(), whole)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::job::{Begin, SetUp};
    use plimsoll_model::load::{LoadModel, LoadProfile, Profile, Think, WHOLE};
    use plimsoll_model::study::GeneratorSpec;
    use std::time::Duration;

    fn job() -> Job {
        let think = Think::Constant(Duration::ZERO);
        Job {
            load: LoadProfile {
                model: LoadModel::Closed { users: Profile::constant(1.0), think },
                warmup: Duration::ZERO,
                stop: Stop::After(Duration::from_secs(1)),
                drain: Duration::ZERO,
            },
            generator: GeneratorSpec { threads: 2, cpus: None, max_cpu: 0.7, max_lateness: Duration::from_millis(5) },
            seed: 1,
            share: WHOLE,
            begin: Begin::WhenReady,
            set_up: SetUp::Here,
            stays: false,
        }
    }

    fn recorded(accounts: [Account; 2]) -> JobRecord {
        let findings = accounts.map(|account| Findings {
            accounts: BTreeMap::from([("request:page".to_owned(), account)]),
            ..Findings::default()
        });
        let (job, steering) = (job(), Steering::default());
        let local = LocalJob { job: &job, steering: &steering, interrupted: &AtomicBool::new(false) };
        local.record(findings.into(), &Steps::Http(Vec::new()), Clock::start(Duration::ZERO))
    }

    #[test]
    fn an_account_that_does_not_add_up_is_a_fault_with_its_figures() {
        let whole = Account { sent: 10, answered: 9, in_flight: 1, ..Account::default() };
        let record = recorded([whole.clone(), whole.clone()]);
        assert_eq!((record.accounts["request:page"].sent, record.faults), (20, vec![]));
        // One thread counts too few, another too many.
        let record = recorded([Account { sent: 11, ..whole.clone() }, Account { answered: 10, ..whole }]);
        let expected = [
            "its account of `request:page` does not add up: 11 sent, of which 9 were answered, 0 failed, 0 were given up and 1 \
             were under way at the end",
            "its account of `request:page` does not add up: 10 sent, of which 10 were answered, 0 failed, 0 were given up and \
             1 were under way at the end",
        ];
        assert_eq!(record.faults, expected);
    }
}
