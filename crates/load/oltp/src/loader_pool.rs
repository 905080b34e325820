//! Loading over several connections at once.

use plimsoll_model::database::Endpoint;
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{CallLimits, Connection, SqlError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The longest that one statement may take: an index over all rows is one.
const PATIENCE: Duration = Duration::from_secs(6 * 3_600);

/// How often progress is told, and an interruption noticed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Loads data over as many connections as there are processors.
pub(crate) struct LoaderPool<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) interrupted: &'a AtomicBool,
}

impl LoaderPool<'_> {
    /// Does `work` with all `things`, each taken by whichever connection is free. Meanwhile `look` is
    /// called. The first failure ends all, and is given.
    pub(crate) fn each<T: Sync>(
        &self,
        things: &[T],
        work: &(dyn Fn(&mut Connection, &T) -> Result<(), SqlError> + Sync),
        look: &mut dyn FnMut(),
    ) -> Result<(), SqlError> {
        let (next, over) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
        let loaders = std::thread::available_parallelism().map_or(1, usize::from).min(things.len());
        let one_after_the_other = || {
            let mut connection = self.connect(&over)?;
            while let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
                if over.load(Ordering::Relaxed) {
                    return Err(SqlError::new(ErrorKind::Timeout, "loading was interrupted"));
                }
                work(&mut connection, thing)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let (sender, results) = channel();
            for _ in 0..loaders {
                let (sender, work) = (sender.clone(), &one_after_the_other);
                // Nobody listens any more once one has failed.
                scope.spawn(move || sender.send(work()));
            }
            drop(sender);
            let mut first = Ok(());
            loop {
                match results.recv_timeout(LOOK_EVERY) {
                    Ok(result) => first = first.and(result),
                    Err(RecvTimeoutError::Timeout) => look(),
                    Err(RecvTimeoutError::Disconnected) => return first,
                }
                over.fetch_or(first.is_err() || self.interrupted.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        })
    }

    fn connect(&self, over: &Arc<AtomicBool>) -> Result<Connection, SqlError> {
        Connection::open(self.endpoint, CallLimits { timeout: PATIENCE, cancelled: Arc::clone(over), deadline: None })
    }
}
