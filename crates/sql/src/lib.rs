//! Connections to PostgreSQL and MariaDB, whose calls block.
//!
//! A connection belongs to one thread, which makes the call and times it: there is no runtime and
//! no pool between. Statements are prepared once; their parameters and rows travel in the servers'
//! own encodings. What is rare (loading, settings, statistics, checks) goes by [`Connection::query`]
//! and [`Connection::batch`], as text.

mod connection;
mod error;
mod value;

pub use connection::{Bulk, Connection, Patience, Statement, Table};
pub use error::SqlError;
pub use value::{Decimal, Rows, Value};
