//! Waits until a server accepts connections.

use crate::error::DatabaseError;
use plimsoll_model::database::Endpoint;
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{CallLimits, Connection, SqlError};
use plimsoll_system::{Interrupt, Running};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of one attempt to connect.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// The timeout of one statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);

/// The parameters of a wait for a server.
pub(crate) struct ReadyWait<'a> {
    /// The server, if the run has started it.
    pub(crate) running: Option<&'a Running>,
    pub(crate) within: Duration,
    pub(crate) interrupt: &'a Interrupt,
}

impl ReadyWait<'_> {
    /// Fails once the wait is in vain: the run is interrupted, or the server has ended.
    fn check(&self) -> Result<(), DatabaseError> {
        if self.interrupt.is_set() {
            return Err(DatabaseError::Interrupted);
        }
        Ok(self.running.map_or(Ok(()), Running::check)?)
    }
}

/// Connects as soon as the server takes connections. An interrupt ends calls on the connection too.
pub(crate) fn connect(endpoint: &Endpoint, waiting: &ReadyWait<'_>) -> Result<Connection, DatabaseError> {
    let deadline = Instant::now() + waiting.within;
    loop {
        waiting.check()?;
        let error = match Connection::open(endpoint, CallLimits::timeout(ATTEMPT_TIMEOUT)) {
            Ok(_) => return open(endpoint, limits(STATEMENT_TIMEOUT, waiting.interrupt)),
            Err(error) => error,
        };
        if !is_temporary(&error) {
            return Err(DatabaseError::Failed(error.to_string()));
        }
        if Instant::now() >= deadline {
            waiting.check()?;
            return Err(not_ready(waiting, &error));
        }
        thread::sleep(PAUSE);
    }
}

/// True if a later attempt may succeed: nobody listens yet, or the server takes no connections yet. A
/// wrong password stays wrong, and a missing database missing.
fn is_temporary(error: &SqlError) -> bool {
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

/// The limits of calls that end after `timeout`, or at an interrupt.
pub(crate) fn limits(timeout: Duration, interrupt: &Interrupt) -> CallLimits {
    CallLimits { cancelled: Arc::clone(interrupt.flag()), ..CallLimits::timeout(timeout) }
}

/// Opens one more connection to a server that is ready.
pub(crate) fn open(endpoint: &Endpoint, limits: CallLimits) -> Result<Connection, DatabaseError> {
    Connection::open(endpoint, limits).map_err(|error| DatabaseError::Failed(error.to_string()))
}
