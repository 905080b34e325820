//! Users of scripts, run from a table: no sockets, no clock but one that the tests wind.

mod common;
mod commonjs;
mod faults;
mod imports;
mod limits;
mod stops;
mod threads;
mod waiting;
