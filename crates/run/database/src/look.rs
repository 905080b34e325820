//! What is looked at while a database runs, and after.

use crate::counters::{CounterQuery, Counters};
use crate::databases::Staged;
use crate::error::DatabaseError;
use crate::ready::{open, with_interruption};
use crate::safety;
use crate::settings::EffectiveSettings;
use plimsoll_model::database::{Address, Condition, Database, DatabaseFacts, Endpoint};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sample::DatabaseSample;
use plimsoll_model::sql::Transport;
use plimsoll_sql::{CallLimits, Connection};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at what a database counts once a second, from its start until it is stopped or dropped.
#[derive(Debug)]
pub struct Look {
    began: Instant,
    over: Arc<AtomicBool>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Seen>>,
}

/// What was seen of a database.
#[derive(Debug, Default)]
pub struct Seen {
    /// What it counted.
    pub samples: Vec<DatabaseSample>,
    /// Whether it ended the session that looks: it was stopped or restarted, or it recovered from a
    /// crash, which takes the sessions of all users.
    pub was_lost: bool,
}

impl Look {
    /// Begins, with a connection of its own.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn start(database: &Database, staged: &Staged) -> Result<Look, DatabaseError> {
        let over = Arc::new(AtomicBool::new(false));
        let failed = || DatabaseError::sql(&database.name, "look at the counters");
        let limits = CallLimits { cancelled: Arc::clone(&over), ..CallLimits::timeout(PATIENCE) };
        let mut connection = Connection::open(&staged.service(), limits).map_err(failed())?;
        let endpoint = endpoint(staged, Transport::Unix);
        let question = CounterQuery::new(&mut connection, &endpoint.database).map_err(failed())?;
        let began = Instant::now();
        let last = question.ask(&mut connection).map_err(failed())?;
        let (stop, stopped) = mpsc::channel();
        let series = Series {
            database: database.name.clone(),
            connection,
            question,
            began,
            at: began,
            last,
            samples: Vec::new(),
        };
        let thread = thread::Builder::new().name("look".to_owned()).spawn(move || series.follow(&stopped));
        let thread = thread.map_err(|error| DatabaseError::Failed(format!("failed to start a thread: {error}")))?;
        Ok(Look { began, over, stop: Some(stop), thread: Some(thread) })
    }

    /// What was seen until now, with samples until the end of the measure phase and instants from its
    /// start, `zero`. A server that has died gives those until then.
    #[must_use]
    pub fn stop(mut self, zero: Instant, window: Duration) -> Seen {
        self.stop = None;
        let shift = signed_seconds(self.began, zero);
        let mut seen = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        seen.samples.iter_mut().for_each(|sample| sample.at -= shift);
        // Users that leave tell what they have not told before: a peak that no second had.
        seen.samples.retain(|sample| sample.at <= window.as_secs_f64());
        seen
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.stop = None;
        self.over.store(true, Ordering::Relaxed); // whoever wants the last sample calls `stop`
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The samples so far, with instants from the first look.
struct Series {
    database: String,
    connection: Connection,
    question: CounterQuery,
    began: Instant,
    at: Instant,
    last: Counters,
    samples: Vec<DatabaseSample>,
}

impl Series {
    /// Looks at each whole second from the start until told to stop: a last look would be of a span
    /// too short for a rate, and only tells whether the session is still there.
    fn follow(mut self, stopped: &Receiver<()>) -> Seen {
        loop {
            let due = self.began + next_whole_second(self.began.elapsed());
            let wait = stopped.recv_timeout(due.saturating_duration_since(Instant::now()));
            let (is_last, now) = (wait != Err(RecvTimeoutError::Timeout), Instant::now());
            match self.question.ask(&mut self.connection) {
                Ok(counters) if !is_last => self.note(now, counters),
                Ok(_) => return Seen { samples: self.samples, was_lost: false },
                Err(error) => return Seen { samples: self.samples, was_lost: error.kind == ErrorKind::Closed },
            }
        }
    }

    /// Adds a sample of each counter, as it was at `now`.
    fn note(&mut self, now: Instant, counters: Counters) {
        let at = now.duration_since(self.began).as_secs_f64();
        for (counter, value) in counters.since(&self.last, now.duration_since(self.at)) {
            self.samples.push(DatabaseSample { at, database: self.database.clone(), variant: 0, counter, value });
        }
        (self.at, self.last) = (now, counters);
    }
}

/// When the next look is due: seconds that were missed are not made up for, so looks never drift.
fn next_whole_second(elapsed: Duration) -> Duration {
    EVERY * (u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX - 1) + 1)
}

/// Seconds from `from` to `to`, negative if `to` is the earlier one.
fn signed_seconds(from: Instant, to: Instant) -> f64 {
    to.checked_duration_since(from).map_or_else(|| -from.duration_since(to).as_secs_f64(), |span| span.as_secs_f64())
}

/// What is known of the database, while it runs: version, settings in force and their risks.
///
/// # Errors
/// The server does not answer.
pub fn facts(database: &Database, staged: &Staged, transport: Transport) -> Result<DatabaseFacts, DatabaseError> {
    let endpoint = endpoint(staged, transport);
    let mut connection = open(&endpoint, CallLimits::timeout(PATIENCE))?;
    let unread = || DatabaseError::sql(&database.name, "read the settings");
    let in_force = EffectiveSettings::read(&mut connection).map_err(unread())?;
    let mut settings = safety::told(database.engine, &database.settings, &in_force);
    settings.extend(safety::tables(&mut connection).map_err(unread())?);
    Ok(DatabaseFacts {
        name: database.name.clone(),
        version: connection.version(),
        transport: match &endpoint.address {
            Address::Unix(_) => "UNIX socket".to_owned(),
            tcp => format!("TCP to {tcp}"),
        },
        isolation: isolation(&in_force),
        data: staged.data.clone(),
        restored: staged.restored.0.clone(),
        restore_seconds: staged.restore_seconds(),
        size: staged.size,
        settings,
        loaded: staged.loaded(),
        ..DatabaseFacts::default()
    })
}

/// Connections of Plimsoll's own while users are connected: that of [`Look`].
const OWN_CONNECTIONS: u32 = 1;
/// Connections that are worth having beside.
const ROOM: u32 = 4;

/// Fails if the server does not let in as many users at once as the load may have: each has a
/// connection of its own from the start.
///
/// # Errors
/// It lets in fewer, or does not answer.
pub fn check_connections(database: &Database, staged: &Staged, users: u32) -> Result<(), DatabaseError> {
    let mut connection = open(&endpoint(staged, Transport::Unix), CallLimits::timeout(PATIENCE))?;
    let in_force =
        EffectiveSettings::read(&mut connection).map_err(DatabaseError::sql(&database.name, "read the settings"))?;
    let most = in_force.get("max_connections").and_then(|most| most.shown.parse::<u32>().ok());
    let needed = users.saturating_add(OWN_CONNECTIONS);
    let Some(most) = most.filter(|most| *most < needed) else { return Ok(()) };
    Err(DatabaseError::Failed(format!(
        "{users} users take more than the {most} connections of the database `{}`\n\
         set its `max_connections` to {}, or give the load fewer `users` (in open load `max_users`)",
        database.name,
        needed.saturating_add(ROOM)
    )))
}

/// The isolation level of transactions that ask for none: `READ COMMITTED`.
fn isolation(in_force: &EffectiveSettings) -> String {
    let names = ["default_transaction_isolation", "transaction_isolation", "tx_isolation"];
    let level = names.iter().find_map(|name| in_force.get(name));
    level.map(|level| level.shown.to_uppercase().replace('-', " ")).unwrap_or_default()
}

/// What must hold of the data after the load, looked at for at most `within`.
///
/// # Errors
/// The server does not answer, or `interrupted` is set.
pub fn after(
    database: &Database,
    staged: &Staged,
    within: Duration,
    interrupted: &AtomicBool,
) -> Result<Vec<Condition>, DatabaseError> {
    let looked = with_interruption(interrupted, |over| {
        let limits = CallLimits { cancelled: over, ..CallLimits::timeout(within + PATIENCE) }; // it is ended by the server before
        let mut connection = open(&endpoint(staged, Transport::Unix), limits)?;
        plimsoll_oltp::conditions(&database.dataset, &mut connection, false, within)
            .map_err(DatabaseError::sql(&database.name, "look at the data"))
    });
    if interrupted.load(Ordering::Relaxed) { Err(DatabaseError::Interrupted) } else { looked }
}

fn endpoint(staged: &Staged, transport: Transport) -> Endpoint {
    staged.endpoint(transport).expect("what is staged can be reached")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_isolation_level_is_told_alike_for_all_servers() {
        for (name, value, told) in [
            ("default_transaction_isolation", "read committed", "READ COMMITTED"),
            ("tx_isolation", "REPEATABLE-READ", "REPEATABLE READ"),
            ("transaction_isolation", "SERIALIZABLE", "SERIALIZABLE"),
        ] {
            assert_eq!(isolation(&EffectiveSettings::of(&[(name, value)])), told);
        }
    }

    #[test]
    fn looks_are_due_at_whole_seconds_whatever_the_delay() {
        for (elapsed, due) in [(0, 1), (999, 1), (1000, 2), (1040, 2), (4100, 5)] {
            assert_eq!(next_whole_second(Duration::from_millis(elapsed)), Duration::from_secs(due), "{elapsed} ms");
        }
    }
}
