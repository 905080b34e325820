//! The pool of connections to the database.

use crate::error::RequestError;
use deadpool_postgres::{Manager, ManagerConfig, Object, PoolError, RecyclingMethod};
use std::io::{Write, stdout};
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};

/// What a request may wait for a connection without a line about it.
const SHORT: Duration = Duration::from_millis(10);

/// Connections to the database, of which each is one request's at a time.
#[derive(Clone)]
pub(crate) struct Pool(deadpool_postgres::Pool);

impl Pool {
    /// Opens `size` connections at once. So a request that waits later waits for another one, not for a connection to
    /// open.
    ///
    /// # Errors
    /// When one of them does not open.
    pub(crate) async fn open(config: &Config, size: usize) -> Result<Pool, PoolError> {
        // A connection that broke is noticed without asking it, which would be a round trip for every request.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), NoTls, recycling);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(size).build().expect("it has no timeouts");
        let mut opened = Vec::new();
        for _ in 0..size {
            opened.push(pool.get().await?);
        }
        drop(opened);
        Ok(Pool(pool))
    }

    /// A connection, as soon as one is free. It prints a line when that took long.
    ///
    /// # Errors
    /// When a connection broke, and no other one opens.
    pub(crate) async fn acquire(&self) -> Result<Object, RequestError> {
        let begin = Instant::now();
        let connection = self.0.get().await?;
        let waited = begin.elapsed();
        if waited > SHORT {
            // Nobody may be reading.
            let _ = writeln!(stdout(), "waited {} ms for a connection", waited.as_millis());
        }
        Ok(connection)
    }
}
