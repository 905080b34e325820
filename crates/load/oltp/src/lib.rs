//! What users do with a database: TPC-C, sysbench's OLTP tests, and a study's own SQL. And what must
//! lie in it before, and hold of it afterwards.
//!
//! A [`Workload`] is made once for a trial; each user has a [`Terminal`] of it, with a connection of
//! its own. [`load`] fills an empty database; [`conditions`] looks at one that was used.

mod dataset;
mod distribution;
#[cfg(test)]
mod fingerprint;
mod loader_pool;
mod own;
mod rollback;
mod sbtest;
mod terminal;
mod tpcc;

pub use dataset::{conditions, load, tables};
pub use distribution::{Numbers, letters};
pub use terminal::{Draw, Ended, StatementName, Terminal, Watch, Workload, workload};
