//! How long statements take, noted by each user alone.

use plimsoll_oltp::Watch;
use plimsoll_sql::SqlError;
use std::time::Instant;

/// What one user's runs of a statement took.
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

/// Times the statements of one transaction.
pub(super) struct Stopwatch<'a> {
    pub(super) times: &'a mut [StatementTimes],
    /// Whether the transaction belongs to the measure phase.
    pub(super) measured: bool,
}

impl Watch for Stopwatch<'_> {
    fn statement(&mut self, statement: usize, work: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<(), SqlError> {
        let begun = Instant::now();
        let result = work();
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.times[statement].add(took, self.measured, result.is_err());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::record::ErrorKind;
    use std::time::Duration;

    #[test]
    fn only_the_measure_phase_is_timed_and_everything_is_counted() {
        let mut times = [StatementTimes::default(); 2];
        let pause = Duration::from_millis(2);
        Stopwatch { times: &mut times, measured: false }.statement(1, &mut || Ok(())).expect("no failure");
        let mut measured = Stopwatch { times: &mut times, measured: true };
        let failed = measured.statement(1, &mut || {
            std::thread::sleep(pause);
            Err(SqlError::new(ErrorKind::Deadlock, "deadlock"))
        });
        assert_eq!(failed.unwrap_err().kind, ErrorKind::Deadlock);
        let StatementTimes { runs, measured, total, longest, failed } = times[1];
        assert_eq!((runs, measured, failed), (2, 1, 1));
        assert!(total == longest && u128::from(total) >= pause.as_nanos());
        assert_eq!(times[0], StatementTimes::default());
    }
}
