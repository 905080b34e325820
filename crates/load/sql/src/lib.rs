//! Connections to PostgreSQL, MariaDB and MySQL, whose calls block.
//!
//! A connection belongs to one thread, which makes the call and times it: there is no runtime and
//! no pool between. Statements are prepared once; their parameters and rows travel in the servers'
//! own encodings, and a statement takes one write and mostly one read. What is rare (loading,
//! settings, statistics, checks) goes by [`Connection::query`] and [`Connection::batch`], as text.
//!
//! Of PostgreSQL's protocol the rare messages are `postgres-protocol`'s. That of MariaDB and MySQL is
//! small enough to be written here: `mysql_common` would bring more packages than the protocol has
//! messages.

mod bulk;
mod cancel;
mod connection;
mod error;
mod mariadb;
mod placeholders;
mod postgresql;
mod rows;
mod value;
mod wire;

pub use bulk::Bulk;
pub use cancel::Session;
pub use connection::{Connection, Patience, Statement, Table};
pub use error::SqlError;
pub use placeholders::placeholders;
pub use rows::Rows;
pub use value::{Decimal, Value};
