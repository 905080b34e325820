//! Jobs that threads of this process run, and the records of their results.

use crate::clock::{Clock, nanos};
use crate::recorder::Findings;
use crate::sequence::SequenceRecorder;
use plimsoll_model::job::{Job, JobRecord, Report, WorkFacts};
use plimsoll_model::load::Stop;
use plimsoll_model::record::{Account, ErrorKind, SequenceCheck};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Steps;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Jobs that come one after the other, and what listens to them.
pub trait Jobs {
    /// Waits for the next job; none if there is no more.
    fn next(&mut self) -> Option<Job>;

    /// A report of the job that runs.
    fn report(&mut self, report: Report);

    /// The job that ran has ended.
    fn ended(&mut self, record: JobRecord);

    /// The number of users of the job that runs, if a control loop changes it.
    fn steering(&self) -> Steering {
        Steering::default()
    }
}

/// The number of users of a load, where a control loop changes it while the load runs, and the end of that load. Clones belong
/// to the same load.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<AtomicU64>);

impl Steering {
    /// This value means that the load is over. There are never so many users.
    const OVER: u64 = u64::MAX;

    /// Sets the number of users from now on.
    pub fn set_users(&self, users: u32) {
        self.0.store(u64::from(users), Ordering::Relaxed);
    }

    /// Ends the load: no more iterations begin.
    pub fn end(&self) {
        self.0.store(Steering::OVER, Ordering::Relaxed);
    }

    /// The number of users; none once the load is over.
    pub(crate) fn users(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|users| *users != Steering::OVER)
    }
}

/// A job that this process runs.
#[derive(Clone, Copy)]
pub struct LocalJob<'a> {
    /// The job.
    pub job: &'a Job,
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
        JobRecord {
            zero: clock.unix(Instant(0)),
            window: Nanos(window.unsigned_abs()),
            sequences: sequences(&findings, steps),
            error_examples: examples,
            accounts,
            faults: findings.into_iter().flat_map(|found| found.faults).chain(unbalanced).collect(),
            broken: Vec::new(),
            warnings,
            stopped: None,
            interrupted: self.is_interrupted(),
            facts: WorkFacts::None,
        }
    }
}

/// A fault for each account of a thread that does not add up. Threads are looked at one by one, or one that counts too
/// many could hide another that counts too few.
fn unbalanced(found: &Findings) -> impl Iterator<Item = String> {
    let wrong = found.accounts.iter().filter(|(_, account)| !account.holds());
    wrong.map(|(subject, account)| format!("its account of `{subject}` does not add up: {account}"))
}

fn sequences(findings: &[Findings], steps: &Steps) -> BTreeMap<String, SequenceCheck> {
    let Steps::Grpc { calls, .. } = steps else { return BTreeMap::new() };
    let checked = calls.iter().enumerate().filter(|(_, call)| call.sequence.is_some());
    checked
        .map(|(step, call)| {
            let mut whole = SequenceRecorder::default();
            findings.iter().for_each(|found| whole.merge(&found.sequences[step]));
            (call.name.clone(), whole.check())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
            begin: None,
            stays: false,
        }
    }

    fn recorded(accounts: [Account; 2]) -> JobRecord {
        let findings = accounts.map(|account| Findings {
            accounts: BTreeMap::from([("request:page".to_owned(), account)]),
            ..Findings::default()
        });
        let local = LocalJob { job: &job(), interrupted: &AtomicBool::new(false) };
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
