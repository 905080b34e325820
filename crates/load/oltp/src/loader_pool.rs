//! Loading over several connections at once.

use plimsoll_model::database::Endpoint;
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{CallLimits, Connection, SqlError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long one statement may take. Building an index over all rows is one statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(6 * 3_600);

/// How often progress is reported, and an interruption noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Loads data over as many connections as there are processors.
pub(crate) struct LoaderPool<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) interrupted: &'a AtomicBool,
}

impl LoaderPool<'_> {
    /// Calls `work` once for each of `items`, on whichever connection is free, and `report` every 100 ms
    /// meanwhile. The first failure stops all connections, and is returned.
    pub(crate) fn run_all<T: Sync>(
        &self,
        items: &[T],
        work: &(dyn Fn(&mut Connection, &T) -> Result<(), SqlError> + Sync),
        report: &mut dyn FnMut(),
    ) -> Result<(), SqlError> {
        let (next, stopped) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
        let loaders = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
        let take_items = || {
            let mut connection = self.connect(&stopped)?;
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stopped.load(Ordering::Relaxed) {
                    return Err(SqlError::new(ErrorKind::Timeout, "loading was interrupted"));
                }
                work(&mut connection, item)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let (sender, results) = channel();
            for _ in 0..loaders {
                let (sender, work) = (sender.clone(), &take_items);
                // Nobody listens any more once one has failed.
                scope.spawn(move || sender.send(work()));
            }
            drop(sender);
            let mut first = Ok(());
            loop {
                match results.recv_timeout(POLL_INTERVAL) {
                    Ok(result) => first = first.and(result),
                    Err(RecvTimeoutError::Timeout) => report(),
                    Err(RecvTimeoutError::Disconnected) => return first,
                }
                stopped.fetch_or(first.is_err() || self.interrupted.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        })
    }

    fn connect(&self, stopped: &Arc<AtomicBool>) -> Result<Connection, SqlError> {
        Connection::open(
            self.endpoint,
            CallLimits { timeout: STATEMENT_TIMEOUT, cancelled: Arc::clone(stopped), deadline: None },
        )
    }
}
