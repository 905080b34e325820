//! Users of a SQL workload: a connection each, what is tried again, and how long statements take.

mod session;
mod times;

use plimsoll_engine::blocking::{BlockingWorkload, Call, Failure};
use plimsoll_engine::schedule::Random;
use plimsoll_model::database::{Endpoint, SqlFacts, StatementFacts};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::{Retry, Sql, SqlWork, TPCC_STEPS};
use plimsoll_oltp::{Draw, Ended, Terminal, Workload};
use plimsoll_sql::{CallLimits, SessionId, SqlError};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use times::{Durations, StatementTimes, Stopwatch};

/// How long asking a server may take to end what nobody waits for: a user works for nobody meanwhile.
const CANCEL_WITHIN: Duration = Duration::from_secs(2);

/// A SQL workload in which nothing wrong was found.
pub struct CompiledSql {
    sql: Sql,
    timeout: Duration,
}

impl CompiledSql {
    /// Finds what is wrong without any connection.
    pub fn new(sql: &Sql, timeout: Duration) -> Result<CompiledSql, String> {
        plimsoll_oltp::workload(sql, 0)?;
        Ok(CompiledSql { sql: sql.clone(), timeout })
    }

    /// The users of a trial, none of them connected yet.
    pub fn users(&self, seed: u64, users: u32) -> Result<Arc<TerminalUsers>, String> {
        let workload = plimsoll_oltp::workload(&self.sql, seed)?;
        TerminalUsers::new(&self.sql, workload, self.timeout, users).map(Arc::new)
    }
}

/// The users of a trial.
pub struct TerminalUsers {
    sql: Sql,
    endpoint: Endpoint,
    workload: Box<dyn Workload>,
    statements: usize,
    timeout: Duration,
    users: u32,
    /// The isolation level in force, once a user has asked for it.
    isolation: OnceLock<String>,
    connections: AtomicU64,
    statistics: Arc<SharedStatistics>,
}

/// Statistics of all users.
struct SharedStatistics {
    /// Statistics of users that have ended.
    counts: Mutex<UserStatistics>,
    durations: Durations,
}

/// Statistics of a user, beside the records of its calls.
#[derive(Clone, Debug, Default)]
struct UserStatistics {
    statements: Vec<StatementTimes>,
    retries: [u64; ErrorKind::ALL.len()],
    /// How often the server was asked to end a statement, and how often that failed.
    cancels: u64,
    cancels_failed: u64,
}

/// One user.
pub struct TerminalUser {
    index: u32,
    over: Arc<AtomicBool>,
    /// What it works with, or why it has no connection.
    terminal: Result<Box<dyn Terminal>, SqlError>,
    /// Bytes out and in of the connection, as far as they are recorded.
    bytes: (u64, u64),
    /// The step of the iteration under way.
    step: usize,
    /// The session whose time was up: the server may still work for it.
    given_up: Option<SessionId>,
    counts: UserStatistics,
    /// What statements took, as far as it is not filed.
    durations: Vec<(usize, u64)>,
    statistics: Arc<SharedStatistics>,
}

impl TerminalUsers {
    fn new(sql: &Sql, workload: Box<dyn Workload>, timeout: Duration, users: u32) -> Result<TerminalUsers, String> {
        let nowhere =
            || format!("expected the database `{}` to run before its load, found no address of it", sql.database);
        Ok(TerminalUsers {
            endpoint: sql.endpoint.clone().ok_or_else(nowhere)?,
            sql: sql.clone(),
            statistics: Arc::new(SharedStatistics::new(workload.statements().len())),
            statements: workload.statements().len(),
            workload,
            timeout,
            users,
            isolation: OnceLock::new(),
            connections: AtomicU64::new(0),
        })
    }

    /// What is known of the work when all users have ended.
    pub fn facts(&self, steps: &[&str]) -> SqlFacts {
        let (counts, durations) = (self.statistics.counts(), &self.statistics.durations);
        let names = self.workload.statements();
        let untimed = StatementTimes::default();
        let statements = names.into_iter().enumerate().map(|(number, name)| {
            let StatementTimes { runs, measured, total, longest, failed } =
                *counts.statements.get(number).unwrap_or(&untimed);
            let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| durations.percentile(number, percent));
            let transaction = steps[name.step].to_owned();
            StatementFacts { transaction, statement: name.name, runs, measured, total, longest, p50, p95, p99, failed }
        });
        SqlFacts {
            workload: self.workload.in_words(),
            isolation: self.isolation.get().cloned().unwrap_or_default(),
            connections: self.connections.load(Ordering::Relaxed),
            statements: statements.collect(),
            retries: by_kind(&counts.retries),
            cancels: counts.cancels,
            cancels_failed: counts.cancels_failed,
            mix: self.workload.mix(),
        }
    }

    /// A new connection, ready for the user's transactions.
    fn connect(&self, user: u32, over: &Arc<AtomicBool>) -> Result<Box<dyn Terminal>, SqlError> {
        let limits = CallLimits { cancelled: Arc::clone(over), ..CallLimits::timeout(self.timeout) };
        let (connection, isolation) = session::open(&self.endpoint, limits, self.sql.isolation)?;
        self.isolation.get_or_init(|| isolation);
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.workload.terminal(user, self.users, connection)
    }

    /// How a transaction of the step must end.
    fn expected(&self, step: usize) -> Ended {
        match self.sql.work {
            SqlWork::Tpcc(_) if TPCC_STEPS[step] == "new_order_rollback" => Ended::RolledBack,
            _ => Ended::Committed,
        }
    }
}

impl BlockingWorkload for TerminalUsers {
    type User = TerminalUser;

    fn user(&self, user: u32, over: &Arc<AtomicBool>) -> Result<TerminalUser, Failure> {
        let mut terminal = self.connect(user, over).map_err(failure)?;
        let bytes = terminal.connection().bytes();
        let counts = UserStatistics {
            statements: vec![StatementTimes::default(); self.statements],
            ..UserStatistics::default()
        };
        let (over, statistics) = (Arc::clone(over), Arc::clone(&self.statistics));
        let (terminal, durations) = (Ok(terminal), Vec::new());
        Ok(TerminalUser { index: user, over, terminal, bytes, step: 0, given_up: None, counts, durations, statistics })
    }

    /// Draws a transaction. A user that has lost its connection first makes a new one; where that
    /// fails, so will the transaction, under the name of the one before.
    fn begin_iteration(&self, user: &mut TerminalUser, random: &mut Random) -> Range<usize> {
        if user.terminal.is_err() {
            user.terminal = self.connect(user.index, &user.over);
            user.bytes = user.terminal.as_mut().map_or((0, 0), |terminal| terminal.connection().bytes());
        }
        if let Ok(terminal) = &mut user.terminal {
            user.step = terminal.draw(&mut Drawn(random));
        }
        user.step..user.step + 1
    }

    fn pauses(&self, user: &TerminalUser) -> (Duration, Duration) {
        user.terminal.as_ref().map_or((Duration::ZERO, Duration::ZERO), |terminal| terminal.waits())
    }

    fn before_call(&self, user: &mut TerminalUser, _step: usize) -> Result<(), Failure> {
        user.terminal.as_ref().map(|_| ()).map_err(|error| failure(error.clone()))
    }

    fn call(&self, user: &mut TerminalUser, step: usize, call: &mut Call) -> Result<(), Failure> {
        let TerminalUser { terminal, counts, durations, bytes, given_up, .. } = user;
        let Ok(ready) = terminal else { return Ok(()) };
        ready.connection().set_deadline(Some(call.deadline()));
        let UserStatistics { statements, retries, .. } = counts;
        let mut watch = Stopwatch { times: statements, noted: durations, measured: call.is_measured() };
        let result = persist(&self.sql.retry, retries, call, || ready.run(&mut watch));
        let (sent, received) = ready.connection().bytes();
        call.sent((sent - bytes.0) as usize);
        call.received((received - bytes.1) as usize);
        *bytes = (sent, received);
        match result {
            Ok(ended) if ended == self.expected(step) => Ok(()),
            Ok(ended) => Err(unexpected(ended)),
            Err(error) => {
                if error.kind == ErrorKind::Timeout {
                    *given_up = ready.connection().session();
                }
                if error.is_fatal() {
                    *terminal = Err(error.clone());
                }
                Err(failure(error))
            }
        }
    }

    /// Has the server end what the user no longer waits for: it would go on for nobody, with its locks,
    /// beside all that follows.
    fn end_iteration(&self, user: &mut TerminalUser) {
        self.statistics.durations.relieve(&mut user.durations);
        if let Some(session) = user.given_up.take() {
            let done = session.cancel(&self.endpoint, CANCEL_WITHIN);
            user.counts.cancels += 1;
            user.counts.cancels_failed += u64::from(done.is_err());
        }
    }
}

impl SharedStatistics {
    fn new(statements: usize) -> SharedStatistics {
        SharedStatistics { counts: Mutex::default(), durations: Durations::new(statements) }
    }

    fn counts(&self) -> MutexGuard<'_, UserStatistics> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TerminalUser {
    /// Hands over what was noted: here, because no user is to wait for another before its end.
    fn drop(&mut self) {
        self.statistics.durations.close(&mut self.durations);
        self.statistics.counts().merge(&self.counts);
    }
}

impl UserStatistics {
    fn merge(&mut self, other: &UserStatistics) {
        self.statements.resize(other.statements.len(), StatementTimes::default());
        self.statements.iter_mut().zip(&other.statements).for_each(|(into, from)| into.merge(from));
        self.retries.iter_mut().zip(&other.retries).for_each(|(into, from)| *into += from);
        self.cancels += other.cancels;
        self.cancels_failed += other.cancels_failed;
    }
}

/// Makes attempts until one succeeds, fails in a way that is not tried again, or was the last one.
fn persist(
    retry: &Retry,
    retries: &mut [u64; ErrorKind::ALL.len()],
    call: &Call,
    mut attempt: impl FnMut() -> Result<Ended, SqlError>,
) -> Result<Ended, SqlError> {
    let mut left = retry.attempts;
    loop {
        left = left.saturating_sub(1);
        match attempt() {
            Err(error) if left > 0 && retry.on.contains(&error.kind) && !error.is_fatal() && call.go_on().is_ok() => {
                retries[error.kind as usize] += 1;
            }
            result => return result,
        }
    }
}

fn unexpected(ended: Ended) -> Failure {
    let detail = match ended {
        Ended::Committed => "expected the transaction to be rolled back as its input asks for, found it committed",
        Ended::RolledBack => "expected the transaction to be committed, found it rolled back",
    };
    Failure::new(ErrorKind::Check, detail)
}

fn by_kind(counts: &[u64; ErrorKind::ALL.len()]) -> BTreeMap<ErrorKind, u64> {
    ErrorKind::ALL.into_iter().zip(*counts).filter(|(_, count)| *count > 0).collect()
}

fn failure(error: SqlError) -> Failure {
    Failure::new(error.kind, error.detail)
}

/// The numbers of a user, from 0 on instead of up to 1.
struct Drawn<'a>(&'a mut Random);

impl Draw for Drawn<'_> {
    fn unit(&mut self) -> f64 {
        1.0 - self.0.unit()
    }
}

#[cfg(test)]
mod tests;
