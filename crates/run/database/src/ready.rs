//! Waits until a server answers.

use crate::error::DatabaseError;
use plimsoll_model::database::Endpoint;
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{CallLimits, Connection, SqlError};
use plimsoll_system::Running;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// How long one statement may take.
const STATEMENT: Duration = Duration::from_secs(600);

/// What a wait for a server depends on.
pub(crate) struct ReadyWait<'a> {
    /// The server, if the run has started it.
    pub(crate) running: Option<&'a Running>,
    pub(crate) within: Duration,
    pub(crate) interrupted: &'a AtomicBool,
}

impl ReadyWait<'_> {
    /// Whether to go on.
    fn check(&self) -> Result<(), DatabaseError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(DatabaseError::Interrupted);
        }
        Ok(self.running.map_or(Ok(()), Running::check)?)
    }
}

/// Connects, as soon as the server lets somebody in. Later calls end when `over` is set.
pub(crate) fn connect(
    endpoint: &Endpoint,
    waiting: &ReadyWait<'_>,
    over: Arc<AtomicBool>,
) -> Result<Connection, DatabaseError> {
    let deadline = Instant::now() + waiting.within;
    loop {
        waiting.check()?;
        let error = match Connection::open(endpoint, CallLimits::timeout(ATTEMPT)) {
            Ok(_) => return open(endpoint, CallLimits { cancelled: over, ..CallLimits::timeout(STATEMENT) }),
            Err(error) => error,
        };
        if !heals(&error) {
            return Err(DatabaseError::Failed(error.to_string()));
        }
        if Instant::now() >= deadline {
            waiting.check()?;
            return Err(not_ready(waiting, &error));
        }
        thread::sleep(PAUSE);
    }
}

/// Whether it may be otherwise in a while: nobody listens yet, or the server does not let anybody in
/// yet. A password stays wrong, and a database missing.
fn heals(error: &SqlError) -> bool {
    matches!(error.kind, ErrorKind::Connect | ErrorKind::Timeout)
}

fn not_ready(waiting: &ReadyWait<'_>, error: &SqlError) -> DatabaseError {
    let advice = match waiting.running {
        Some(running) => format!("give it longer by `ready_within`; {}", running.last_output()),
        None if error.kind == ErrorKind::Timeout => {
            "correct `url`: what listens there may be no such server".to_owned()
        }
        None => "start it, or correct `url`".to_owned(),
    };
    let within = waiting.within.as_secs_f64();
    DatabaseError::Failed(format!("the server was not ready within {within:.1} s: {error}; {advice}"))
}

/// Opens one more connection to a server that is ready.
pub(crate) fn open(endpoint: &Endpoint, limits: CallLimits) -> Result<Connection, DatabaseError> {
    Connection::open(endpoint, limits).map_err(|error| DatabaseError::Failed(error.to_string()))
}

/// Runs `work` with a flag that is set when `interrupted` is: what waits for a server looks at the
/// flag alone.
pub(crate) fn with_interruption<T>(interrupted: &AtomicBool, work: impl FnOnce(Arc<AtomicBool>) -> T) -> T {
    let over = Arc::new(AtomicBool::new(false));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if interrupted.load(Ordering::Relaxed) {
                    over.store(true, Ordering::Relaxed);
                }
                thread::sleep(PAUSE);
            }
        });
        let _done = SetWhenDropped(&done); // also by a panic, which would wait for the thread for ever
        work(Arc::clone(&over))
    })
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_reaches_what_waits_for_a_server() {
        let interrupted = AtomicBool::new(false);
        let seen = with_interruption(&interrupted, |over| {
            assert!(!over.load(Ordering::Relaxed));
            interrupted.store(true, Ordering::Relaxed);
            while !over.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
            }
            true
        });
        assert!(seen);
    }
}
