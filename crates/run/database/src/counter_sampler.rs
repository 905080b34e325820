//! Samples the counters of a database once a second while load runs.

use crate::counters::{CounterQuery, Counters};
use crate::databases::PreparedDatabase;
use crate::error::DatabaseError;
use plimsoll_model::database::{Database, Engine};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sample::{DatabaseSample, next_whole_second, signed_seconds};
use plimsoll_sql::{CallLimits, Connection};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the queries of one sample may take.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Samples the counters of a database once a second, on a thread and a connection of its own, until
/// it is stopped or dropped.
#[derive(Debug)]
pub struct CounterSampler {
    engine: Engine,
    started: Instant,
    cancelled: Arc<AtomicBool>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Sampled>>,
}

/// The result of a sampling thread: its samples, and the rates over `last_span`, from the last sample to the end.
#[derive(Debug, Default)]
struct Sampled {
    series: CounterSeries,
    last: Vec<DatabaseSample>,
    last_span: Duration,
}

/// The shortest span over which a rate tells something.
const SHORTEST_SPAN: Duration = Duration::from_millis(100);

/// The samples of one database, and how its session ended.
#[derive(Debug, Default)]
pub struct CounterSeries {
    /// Rates and gauges in order of time.
    pub samples: Vec<DatabaseSample>,
    /// True if the server closed the sampler's session. It was stopped or restarted, or it recovered
    /// from a crash, which ends the sessions of all users.
    pub session_lost: bool,
}

impl CounterSampler {
    /// Connects to the database and starts to sample.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn start(database: &Database, prepared: &PreparedDatabase) -> Result<CounterSampler, DatabaseError> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let failed = || DatabaseError::sql(&database.name, "look at the counters");
        let limits = CallLimits { cancelled: Arc::clone(&cancelled), ..CallLimits::timeout(QUERY_TIMEOUT) };
        let mut connection = Connection::open(&prepared.service_endpoint(), limits).map_err(failed())?;
        let query = CounterQuery::new(&mut connection, &prepared.measured()).map_err(failed())?;
        let started = Instant::now();
        let last = query.run(&mut connection).map_err(failed())?;
        let (stop, stopped) = mpsc::channel();
        let sampling = Sampling {
            database: database.name.clone(),
            connection,
            query,
            started,
            last_at: started,
            last,
            samples: Vec::new(),
        };
        let thread = thread::Builder::new().name("counters".to_owned()).spawn(move || sampling.run(&stopped));
        let thread = thread.map_err(|error| DatabaseError::Failed(format!("failed to start a thread: {error}")))?;
        Ok(CounterSampler { engine: database.engine, started, cancelled, stop: Some(stop), thread: Some(thread) })
    }

    /// Stops, and returns the samples up to the end of the measure phase. Their instants count from
    /// its start, `zero`; `window` is its length. Of a server that died, samples end at its death. Where a measure phase is so
    /// short that none falls into it, one at its end has the rates over all of the load since the last.
    #[must_use]
    pub fn stop(mut self, zero: Instant, window: Duration) -> CounterSeries {
        self.stop = None;
        let shift = signed_seconds(self.started, zero);
        let ended = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let Sampled { mut series, last, last_span } = ended;
        series.samples.iter_mut().for_each(|sample| sample.at -= shift);
        // Sessions that end report what they had not reported yet: a peak that belongs to no second.
        let end = window.as_secs_f64();
        series.samples.retain(|sample| sample.at <= end);
        if last_span >= SHORTEST_SPAN && series.samples.iter().all(|sample| sample.at <= 0.0) {
            series.samples.extend(last.into_iter().map(|sample| DatabaseSample { at: end, ..sample }));
        }
        if self.engine != Engine::Postgresql && lack_commits(&series.samples) {
            series.samples.retain(|sample| sample.counter != "commits");
        }
        series
    }
}

/// True if rows were read or written and nobody has said COMMIT. MariaDB and MySQL count these statements alone: how
/// many transactions have committed by themselves is not known, and not zero.
fn lack_commits(samples: &[DatabaseSample]) -> bool {
    let grows = |name: &str| samples.iter().any(|sample| sample.counter == name && sample.value > 0.0);
    !grows("commits") && ["rows_read", "rows_written"].into_iter().any(grows)
}

impl Drop for CounterSampler {
    fn drop(&mut self) {
        self.stop = None;
        self.cancelled.store(true, Ordering::Relaxed); // only `stop` waits for the last sample
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The work of the sampler's thread.
struct Sampling {
    database: String,
    connection: Connection,
    query: CounterQuery,
    started: Instant,
    last_at: Instant,
    last: Counters,
    /// Samples so far, with instants from `started`.
    samples: Vec<DatabaseSample>,
}

impl Sampling {
    /// Samples at each whole second from the start until told to stop. The query at the stop shows if the session is still
    /// there. It comes after the load, so that it tells of rates alone: whatever is counted at an instant has ended by then.
    fn run(mut self, stopped: &Receiver<()>) -> Sampled {
        loop {
            let due = self.started + next_whole_second(self.started.elapsed());
            let wait = stopped.recv_timeout(due.saturating_duration_since(Instant::now()));
            let (is_last, now) = (wait != Err(RecvTimeoutError::Timeout), Instant::now());
            match self.query.run(&mut self.connection) {
                Ok(counters) if !is_last => self.add(now, counters),
                Ok(counters) => {
                    let last_span = now.duration_since(self.last_at);
                    let rates = counters.rates_since(&self.last, last_span);
                    let last = rates.into_iter().map(|(counter, value)| self.sample(0.0, counter, value)).collect();
                    return Sampled { series: self.ended(false), last, last_span };
                }
                Err(error) => {
                    return Sampled { series: self.ended(error.kind == ErrorKind::Closed), ..Sampled::default() };
                }
            }
        }
    }

    /// Adds a sample of each counter, as it was at `now`.
    fn add(&mut self, now: Instant, counters: Counters) {
        let at = now.duration_since(self.started).as_secs_f64();
        for (counter, value) in counters.since(&self.last, now.duration_since(self.last_at)) {
            let sample = self.sample(at, counter, value);
            self.samples.push(sample);
        }
        (self.last_at, self.last) = (now, counters);
    }

    fn sample(&self, at: f64, counter: String, value: f64) -> DatabaseSample {
        DatabaseSample { at, database: self.database.clone(), variant: 0, counter, value }
    }

    fn ended(self, session_lost: bool) -> CounterSeries {
        CounterSeries { samples: self.samples, session_lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_unknown_where_nobody_says_commit_and_zero_where_nothing_happens() {
        let lack = |counters: &[(&str, f64)]| {
            let sample = |&(counter, value): &(&str, f64)| DatabaseSample {
                at: 1.0,
                database: "db".to_owned(),
                variant: 0,
                counter: counter.to_owned(),
                value,
            };
            lack_commits(&counters.iter().map(sample).collect::<Vec<_>>())
        };
        assert!(lack(&[("commits", 0.0), ("rows_read", 0.0), ("rows_written", 9.0)]));
        assert!(lack(&[("commits", 0.0), ("rows_read", 5.0), ("commits", 0.0)]));
        assert!(!lack(&[("commits", 0.0), ("rows_written", 9.0), ("commits", 0.5)]), "a second without one is zero");
        assert!(!lack(&[("commits", 0.0), ("rows_read", 0.0), ("rows_written", 0.0)]));
    }
}
