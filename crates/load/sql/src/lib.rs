//! Blocking clients of PostgreSQL, MariaDB and MySQL.
//!
//! A connection belongs to one thread, which makes the call and times it, without a runtime or a pool
//! in between. Statements are prepared once. Their parameters and rows use the binary or text format of
//! the protocol, and a statement takes one write and usually one read. Rare statements
//! (schemas, settings, statistics, checks) go as text, by [`Connection::query`] and
//! [`Connection::batch`]; rows are loaded by [`Connection::bulk`].
//!
//! The crate `postgres-protocol` encodes and decodes the rare messages of PostgreSQL, and
//! authenticates. The protocol of MariaDB and MySQL is written here as a whole.

mod bulk;
mod cancel;
mod connection;
mod error;
mod limits;
mod mariadb;
mod placeholders;
mod postgresql;
mod rows;
mod session;
mod socket;
mod value;

pub use bulk::BulkLoad;
pub use connection::{Connection, Statement};
pub use error::SqlError;
pub use limits::CallLimits;
pub use placeholders::placeholders;
pub use rows::{Rows, TextRows};
pub use session::SessionId;
pub use value::{Decimal, Value};
