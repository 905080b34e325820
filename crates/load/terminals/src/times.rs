//! How long statements take: counted by each user alone, and filed for all of them together.

use hdrhistogram::Histogram;
use plimsoll_model::record::{LONGEST, histogram};
use plimsoll_oltp::Watch;
use plimsoll_sql::SqlError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A user that has noted so many durations files them, if nobody else files at present.
const MANY: usize = 512;

/// What one user's runs of a statement came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatementTimes {
    pub(super) runs: u64,
    /// Those in transactions of the measure phase, which `total` and `longest` are of.
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

/// A run of a statement in the measure phase: its number, and what it took.
type Duration = (usize, u64);

/// Durations of all users, statement by statement: a histogram for each user would take more memory
/// than the user.
pub(super) struct Durations(Mutex<Vec<Histogram<u64>>>);

impl Durations {
    pub(super) fn new(statements: usize) -> Durations {
        Durations(Mutex::new((0..statements).map(|_| histogram()).collect()))
    }

    /// Files what a user has noted, once that is much and nobody is in the way: users never wait here.
    pub(super) fn relieve(&self, noted: &mut Vec<Duration>) {
        if noted.len() >= MANY
            && let Ok(histograms) = self.0.try_lock()
        {
            file(histograms, noted);
        }
    }

    /// Files all that a user has noted, at its end.
    pub(super) fn close(&self, noted: &mut Vec<Duration>) {
        file(self.lock(), noted);
    }

    /// What so many per cent of a statement's runs took at most; none without runs.
    pub(super) fn percentile(&self, statement: usize, percent: f64) -> Option<u64> {
        let histograms = self.lock();
        let histogram = histograms.get(statement).filter(|histogram| !histogram.is_empty())?;
        Some(histogram.value_at_quantile(percent / 100.0))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Histogram<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn file(mut histograms: MutexGuard<'_, Vec<Histogram<u64>>>, noted: &mut Vec<Duration>) {
    for (statement, took) in noted.drain(..) {
        histograms[statement].record(took.min(LONGEST)).expect("a growing histogram takes an hour");
    }
}

/// Times the statements of one transaction.
pub(super) struct Stopwatch<'a> {
    pub(super) times: &'a mut [StatementTimes],
    pub(super) noted: &'a mut Vec<Duration>,
    /// True if the transaction belongs to the measure phase.
    pub(super) measured: bool,
}

impl Watch for Stopwatch<'_> {
    fn statement(&mut self, statement: usize, work: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<(), SqlError> {
        let begun = Instant::now();
        let result = work();
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.times[statement].add(took, self.measured, result.is_err());
        if self.measured {
            self.noted.push((statement, took));
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
        let (mut times, mut noted) = ([StatementTimes::default(); 2], Vec::new());
        let pause = std::time::Duration::from_millis(2);
        let mut warmup = Stopwatch { times: &mut times, noted: &mut noted, measured: false };
        warmup.statement(1, &mut || Ok(())).expect("no failure");
        let mut measured = Stopwatch { times: &mut times, noted: &mut noted, measured: true };
        let failed = measured.statement(1, &mut || {
            std::thread::sleep(pause);
            Err(SqlError::new(ErrorKind::Deadlock, "deadlock"))
        });
        assert_eq!(failed.unwrap_err().kind, ErrorKind::Deadlock);
        let StatementTimes { runs, measured, total, longest, failed } = times[1];
        assert_eq!((runs, measured, failed), (2, 1, 1));
        assert!(total == longest && u128::from(total) >= pause.as_nanos());
        assert_eq!(times[0], StatementTimes::default());
        assert_eq!(noted, [(1, total)]);
    }

    #[test]
    fn percentiles_are_of_the_statement_and_of_all_users() {
        let durations = Durations::new(2);
        for user in 0..4 {
            let mut noted: Vec<_> = (1..=250).map(|took| (1, (user * 250 + took) * 1_000)).collect();
            durations.close(&mut noted);
            assert!(noted.is_empty());
        }
        let near = |percent, micros: f64| {
            let found = durations.percentile(1, percent).expect("it was run") as f64 / 1_000.0;
            assert!((found / micros - 1.0).abs() < 0.002, "{percent} %: {found}");
        };
        near(50.0, 500.0);
        near(95.0, 950.0);
        near(99.0, 990.0);
        assert_eq!(durations.percentile(0, 50.0), None);
    }

    #[test]
    fn users_file_many_at_a_time_and_never_wait() {
        let durations = Durations::new(1);
        let mut noted = vec![(0, 5); MANY - 1];
        durations.relieve(&mut noted);
        assert_eq!(noted.len(), MANY - 1, "these are few");
        noted.push((0, u64::MAX));
        let busy = durations.lock();
        durations.relieve(&mut noted);
        assert_eq!(noted.len(), MANY, "somebody else files");
        drop(busy);
        durations.relieve(&mut noted);
        assert!(noted.is_empty());
        assert!(durations.percentile(0, 100.0).is_some_and(|longest| longest >= LONGEST));
    }
}
