//! SQL workloads: TPC-C, sysbench's OLTP tests, and a study's own SQL. For each, the transactions of
//! users, the data that they need, and the conditions that the data must meet afterwards.
//!
//! [`compile`] makes a [`SqlWorkload`], once for a load. Each user is a [`SqlUser`] of it, with a
//! connection of its own. [`load`] fills an empty database; [`conditions`] checks one that was used.

mod compile;
mod dataset;
#[cfg(test)]
mod fingerprint;
mod loader_pool;
mod own;
mod rollback;
mod sbtest;
mod tpcc;
mod workload;

pub use compile::compile;
pub use dataset::{conditions, load, tables};
pub use workload::{SqlUser, SqlWorkload, StatementName, StatementObserver, TransactionEnd};
