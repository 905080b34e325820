//! Users of a SQL workload: connections, retries, and the durations of statements.

mod session;
mod times;

use plimsoll_engine::blocking::{BlockingWorkload, Call, Failure};
use plimsoll_engine::schedule::Random;
use plimsoll_feed::RandomSource;
use plimsoll_model::database::{Endpoint, SqlFacts, StatementFacts};
use plimsoll_model::load::{Share, WHOLE};
use plimsoll_model::record::{Durations, ErrorKind};
use plimsoll_model::sql::{Retry, Sql, SqlWork, TPCC_STEPS};
use plimsoll_oltp::{SqlUser, SqlWorkload, TransactionEnd};
use plimsoll_sql::{CallLimits, SessionId, SqlError};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use times::{SharedDurations, StatementTimer, StatementTimes};

/// How long a request to cancel a statement may take. The user runs no transaction meanwhile.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// A SQL workload whose statements and parameters were checked.
pub struct CompiledSql {
    sql: Sql,
    timeout: Duration,
}

impl CompiledSql {
    /// Checks the workload without any connection.
    pub fn new(sql: &Sql, timeout: Duration) -> Result<CompiledSql, String> {
        plimsoll_oltp::compile(sql, 0, WHOLE)?;
        Ok(CompiledSql { sql: sql.clone(), timeout })
    }

    /// The workload for the users of a load, none of them connected yet.
    pub fn users(&self, seed: u64, share: Share) -> Result<Arc<SqlUsers>, String> {
        let workload = plimsoll_oltp::compile(&self.sql, seed, share)?;
        SqlUsers::new(&self.sql, workload, self.timeout).map(Arc::new)
    }
}

/// A SQL workload as the generator runs it, shared by the users of a load.
pub struct SqlUsers {
    sql: Sql,
    endpoint: Endpoint,
    workload: Box<dyn SqlWorkload>,
    statements: usize,
    timeout: Duration,
    /// The isolation level in force, set by the first user that reads it.
    isolation: OnceLock<String>,
    /// The number of connections opened so far.
    connections: AtomicU64,
    statistics: Arc<SharedStatistics>,
}

/// Statistics of all users.
struct SharedStatistics {
    /// Statistics of users whose load is over.
    counts: Mutex<UserStatistics>,
    durations: SharedDurations,
}

/// Statistics of a user, beside the records of its calls.
#[derive(Clone, Debug, Default)]
struct UserStatistics {
    statements: Vec<StatementTimes>,
    retries: [u64; ErrorKind::ALL.len()],
    /// The number of requests to cancel a statement.
    cancels: u64,
    /// The number of those that failed.
    cancels_failed: u64,
}

/// One user, and its connection.
pub struct ConnectedUser {
    index: u32,
    cancelled: Arc<AtomicBool>,
    /// The user of the workload, or the error by which it lost its connection.
    user: Result<Box<dyn SqlUser>, SqlError>,
    /// Bytes sent and received on the connection that are already recorded.
    bytes: (u64, u64),
    /// The step of the iteration under way.
    step: usize,
    /// The session of a statement that timed out: the server may still run it.
    timed_out_session: Option<SessionId>,
    counts: UserStatistics,
    /// Durations of statements that are not in the shared histograms yet.
    durations: Vec<(usize, u64)>,
    statistics: Arc<SharedStatistics>,
}

impl SqlUsers {
    fn new(sql: &Sql, workload: Box<dyn SqlWorkload>, timeout: Duration) -> Result<SqlUsers, String> {
        let nowhere =
            || format!("expected the database `{}` to run before its load, found no address of it", sql.database);
        Ok(SqlUsers {
            endpoint: sql.endpoint.clone().ok_or_else(nowhere)?,
            sql: sql.clone(),
            statistics: Arc::new(SharedStatistics::new(workload.statements().len())),
            statements: workload.statements().len(),
            workload,
            timeout,
            isolation: OnceLock::new(),
            connections: AtomicU64::new(0),
        })
    }

    /// The facts of all loads that are over. `has_others` is true if the durations of other generators are to be added to
    /// those of statements.
    pub fn facts(&self, steps: &[&str], has_others: bool) -> SqlFacts {
        let (counts, durations) = (self.statistics.counts(), &self.statistics.durations);
        let names = self.workload.statements();
        let (untimed, none) = (StatementTimes::default(), StatementFacts::default);
        let statements = names.into_iter().enumerate().map(|(number, name)| {
            let StatementTimes { runs, measured, total, longest, failed } =
                *counts.statements.get(number).unwrap_or(&untimed);
            let (transaction, statement) = (steps[name.step].to_owned(), name.name);
            let counts = StatementFacts { transaction, statement, runs, measured, total, longest, failed, ..none() };
            let durations = durations.of(number);
            let facts = counts.of_durations(&durations);
            StatementFacts { durations: has_others.then_some(Durations(durations)), ..facts }
        });
        SqlFacts {
            workload: self.workload.description(),
            isolation: self.isolation.get().cloned().unwrap_or_default(),
            connections: self.connections.load(Ordering::Relaxed),
            statements: statements.collect(),
            retries: by_kind(&counts.retries),
            cancels: counts.cancels,
            cancels_failed: counts.cancels_failed,
            mix: self.workload.mix(),
        }
    }

    /// Connects a user, and prepares its statements.
    fn connect(&self, user: u32, cancelled: &Arc<AtomicBool>) -> Result<Box<dyn SqlUser>, SqlError> {
        let limits = CallLimits { cancelled: Arc::clone(cancelled), ..CallLimits::timeout(self.timeout) };
        let (connection, isolation) = session::open(&self.endpoint, limits, self.sql.isolation)?;
        self.isolation.get_or_init(|| isolation);
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.workload.user(user, connection)
    }

    /// How a transaction of this step must end.
    fn expected(&self, step: usize) -> TransactionEnd {
        match self.sql.work {
            SqlWork::Tpcc(_) if TPCC_STEPS[step] == "new_order_rollback" => TransactionEnd::RolledBack,
            _ => TransactionEnd::Committed,
        }
    }
}

impl BlockingWorkload for SqlUsers {
    type User = ConnectedUser;

    fn user(&self, user: u32, cancelled: &Arc<AtomicBool>) -> Result<ConnectedUser, Failure> {
        let mut connected = self.connect(user, cancelled).map_err(failure)?;
        let bytes = connected.connection().bytes();
        let counts = UserStatistics {
            statements: vec![StatementTimes::default(); self.statements],
            ..UserStatistics::default()
        };
        let (cancelled, statistics) = (Arc::clone(cancelled), Arc::clone(&self.statistics));
        let durations = Vec::new();
        Ok(ConnectedUser {
            index: user,
            cancelled,
            user: Ok(connected),
            bytes,
            step: 0,
            timed_out_session: None,
            counts,
            durations,
            statistics,
        })
    }

    /// Draws a transaction. A user that has lost its connection first opens a new one. If that fails, the
    /// iteration fails too, as a transaction of the step before.
    fn begin_iteration(&self, user: &mut ConnectedUser, random: &mut Random) -> Range<usize> {
        if user.user.is_err() {
            user.user = self.connect(user.index, &user.cancelled);
            user.bytes = user.user.as_mut().map_or((0, 0), |connected| connected.connection().bytes());
        }
        if let Ok(connected) = &mut user.user {
            user.step = connected.draw_transaction(&mut UserRandom(random));
        }
        user.step..user.step + 1
    }

    fn pauses(&self, user: &ConnectedUser) -> (Duration, Duration) {
        user.user.as_ref().map_or((Duration::ZERO, Duration::ZERO), |connected| connected.keying_and_think_time())
    }

    fn before_call(&self, user: &mut ConnectedUser, _step: usize) -> Result<(), Failure> {
        user.user.as_ref().map(|_| ()).map_err(|error| failure(error.clone()))
    }

    fn call(&self, user: &mut ConnectedUser, step: usize, call: &mut Call) -> Result<(), Failure> {
        let ConnectedUser { user, counts, durations, bytes, timed_out_session, .. } = user;
        let Ok(connected) = user else { return Ok(()) };
        connected.connection().set_deadline(Some(call.deadline()));
        let UserStatistics { statements, retries, .. } = counts;
        let mut timer = StatementTimer { times: statements, pending: durations, measured: call.is_measured() };
        let result = run_with_retries(&self.sql.retry, retries, call, || connected.run_transaction(&mut timer));
        let (sent, received) = connected.connection().bytes();
        call.sent((sent - bytes.0) as usize);
        call.received((received - bytes.1) as usize);
        *bytes = (sent, received);
        match result {
            Ok(end) if end == self.expected(step) => Ok(()),
            Ok(end) => Err(unexpected_end(end)),
            Err(error) => {
                if error.kind == ErrorKind::Timeout {
                    *timed_out_session = connected.connection().session();
                }
                if error.is_fatal() {
                    *user = Err(error.clone());
                }
                Err(failure(error))
            }
        }
    }

    /// Cancels a statement that timed out. The server would otherwise go on with it, hold its locks, and
    /// disturb the transactions that follow.
    fn end_iteration(&self, user: &mut ConnectedUser) {
        self.statistics.durations.merge_if_many(&mut user.durations);
        if let Some(session) = user.timed_out_session.take() {
            let done = session.cancel(&self.endpoint, CANCEL_TIMEOUT);
            user.counts.cancels += 1;
            user.counts.cancels_failed += u64::from(done.is_err());
        }
    }

    fn load_ended(&self, user: &mut ConnectedUser) {
        user.hand_over();
    }
}

impl SharedStatistics {
    fn new(statements: usize) -> SharedStatistics {
        SharedStatistics { counts: Mutex::default(), durations: SharedDurations::new(statements) }
    }

    fn counts(&self) -> MutexGuard<'_, UserStatistics> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectedUser {
    /// Hands over the statistics. Only here may a user wait for another: its load has ended.
    fn hand_over(&mut self) {
        self.statistics.durations.merge(&mut self.durations);
        self.statistics.counts().merge(&self.counts);
        self.counts.clear();
    }
}

impl Drop for ConnectedUser {
    /// A user that panicked has not handed over.
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl UserStatistics {
    fn clear(&mut self) {
        *self = UserStatistics {
            statements: vec![StatementTimes::default(); self.statements.len()],
            ..UserStatistics::default()
        };
    }

    fn merge(&mut self, other: &UserStatistics) {
        self.statements.resize(other.statements.len(), StatementTimes::default());
        self.statements.iter_mut().zip(&other.statements).for_each(|(into, from)| into.merge(from));
        self.retries.iter_mut().zip(&other.retries).for_each(|(into, from)| *into += from);
        self.cancels += other.cancels;
        self.cancels_failed += other.cancels_failed;
    }
}

/// Makes attempts until one succeeds, or fails with an error that is not retried, or was the last one.
fn run_with_retries(
    retry: &Retry,
    retries: &mut [u64; ErrorKind::ALL.len()],
    call: &Call,
    mut attempt: impl FnMut() -> Result<TransactionEnd, SqlError>,
) -> Result<TransactionEnd, SqlError> {
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

fn unexpected_end(end: TransactionEnd) -> Failure {
    let detail = match end {
        TransactionEnd::Committed => {
            "expected the transaction to be rolled back as its input asks for, found it committed"
        }
        TransactionEnd::RolledBack => "expected the transaction to be committed, found it rolled back",
    };
    Failure::new(ErrorKind::Check, detail)
}

fn by_kind(counts: &[u64; ErrorKind::ALL.len()]) -> BTreeMap<ErrorKind, u64> {
    ErrorKind::ALL.into_iter().zip(*counts).filter(|(_, count)| *count > 0).collect()
}

fn failure(error: SqlError) -> Failure {
    Failure::new(error.kind, error.detail)
}

/// The random numbers of a user, as numbers of [0, 1) in place of (0, 1].
struct UserRandom<'a>(&'a mut Random);

impl RandomSource for UserRandom<'_> {
    fn unit(&mut self) -> f64 {
        1.0 - self.0.unit()
    }
}

#[cfg(test)]
mod tests;
