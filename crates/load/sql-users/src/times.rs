//! The durations of statements: collected by each user alone, and merged into histograms of all users.

use hdrhistogram::Histogram;
use plimsoll_model::record::{LONGEST, histogram};
use plimsoll_oltp::StatementObserver;
use plimsoll_sql::SqlError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The number of durations from which a user merges them, if no other user does at present.
const MANY: usize = 512;

/// Counts and times of one statement, for one user or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatementTimes {
    pub(super) runs: u64,
    /// Runs in transactions of the measure phase. `total` and `longest` are theirs, in nanoseconds.
    pub(super) measured: u64,
    pub(super) total: u64,
    pub(super) longest: u64,
    pub(super) failed: u64,
}

impl StatementTimes {
    pub(super) fn merge(&mut self, other: &StatementTimes) {
        self.runs += other.runs;
        self.measured += other.measured;
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
        self.failed += other.failed;
    }

    fn add(&mut self, took: u64, measured: bool, failed: bool) {
        let (count, measured_time) = if measured { (1, took) } else { (0, 0) };
        let (longest, failed) = (measured_time, u64::from(failed));
        self.merge(&StatementTimes { runs: 1, measured: count, total: measured_time, longest, failed });
    }
}

/// A run of a statement in the measure phase: the number of the statement, and nanoseconds.
type Duration = (usize, u64);

/// Histograms of the durations of each statement, shared by all users. A histogram per user would take
/// more memory than the user itself.
pub(super) struct SharedDurations(Mutex<Vec<Histogram<u64>>>);

impl SharedDurations {
    pub(super) fn new(statements: usize) -> SharedDurations {
        SharedDurations(Mutex::new((0..statements).map(|_| histogram()).collect()))
    }

    /// Merges the durations of a user if they are many and no other user merges: users never wait here.
    pub(super) fn merge_if_many(&self, pending: &mut Vec<Duration>) {
        if pending.len() >= MANY
            && let Ok(histograms) = self.0.try_lock()
        {
            record_all(histograms, pending);
        }
    }

    /// Merges all durations of a user, at its end.
    pub(super) fn merge(&self, pending: &mut Vec<Duration>) {
        record_all(self.lock(), pending);
    }

    /// A statement's durations in nanoseconds.
    pub(super) fn of(&self, statement: usize) -> Histogram<u64> {
        self.lock()[statement].clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Histogram<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record_all(mut histograms: MutexGuard<'_, Vec<Histogram<u64>>>, pending: &mut Vec<Duration>) {
    for (statement, took) in pending.drain(..) {
        histograms[statement].record(took.min(LONGEST)).expect("a growing histogram takes an hour");
    }
}

/// Times the statements of one transaction.
pub(super) struct StatementTimer<'a> {
    pub(super) times: &'a mut [StatementTimes],
    pub(super) pending: &'a mut Vec<Duration>,
    /// True if the transaction belongs to the measure phase.
    pub(super) measured: bool,
}

impl StatementObserver for StatementTimer<'_> {
    fn statement(&mut self, statement: usize, work: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<(), SqlError> {
        let begun = Instant::now();
        let result = work();
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.times[statement].add(took, self.measured, result.is_err());
        if self.measured {
            self.pending.push((statement, took));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::record::ErrorKind;

    #[test]
    fn only_the_measure_phase_is_timed_and_everything_is_counted() {
        let (mut times, mut pending) = ([StatementTimes::default(); 2], Vec::new());
        let pause = std::time::Duration::from_millis(2);
        let mut warmup = StatementTimer { times: &mut times, pending: &mut pending, measured: false };
        warmup.statement(1, &mut || Ok(())).expect("no failure");
        let mut measured = StatementTimer { times: &mut times, pending: &mut pending, measured: true };
        let failed = measured.statement(1, &mut || {
            std::thread::sleep(pause);
            Err(SqlError::new(ErrorKind::Deadlock, "deadlock"))
        });
        assert_eq!(failed.unwrap_err().kind, ErrorKind::Deadlock);
        let StatementTimes { runs, measured, total, longest, failed } = times[1];
        assert_eq!((runs, measured, failed), (2, 1, 1));
        assert!(total == longest && u128::from(total) >= pause.as_nanos());
        assert_eq!(times[0], StatementTimes::default());
        assert_eq!(pending, [(1, total)]);
    }

    #[test]
    fn percentiles_are_of_the_statement_and_of_all_users() {
        let durations = SharedDurations::new(2);
        for user in 0..4 {
            let mut pending: Vec<_> = (1..=250).map(|took| (1, (user * 250 + took) * 1_000)).collect();
            durations.merge(&mut pending);
            assert!(pending.is_empty());
        }
        let near = |percent, micros: f64| {
            let found = durations.of(1).value_at_quantile(percent / 100.0) as f64 / 1_000.0;
            assert!((found / micros - 1.0).abs() < 0.002, "{percent} %: {found}");
        };
        near(50.0, 500.0);
        near(95.0, 950.0);
        near(99.0, 990.0);
        assert!(durations.of(0).is_empty());
    }

    #[test]
    fn users_merge_many_at_a_time_and_never_wait() {
        let durations = SharedDurations::new(1);
        let mut pending = vec![(0, 5); MANY - 1];
        durations.merge_if_many(&mut pending);
        assert_eq!(pending.len(), MANY - 1, "these are few");
        pending.push((0, u64::MAX));
        let busy = durations.lock();
        durations.merge_if_many(&mut pending);
        assert_eq!(pending.len(), MANY, "another user merges");
        drop(busy);
        durations.merge_if_many(&mut pending);
        assert!(pending.is_empty());
        assert!(durations.of(0).max() >= LONGEST);
    }
}
