//! Databases as systems: initialised and loaded once, kept as a snapshot, restored before every
//! trial, started with the study's settings, looked at while they run.
//!
//! [`Databases`] belongs to a run and knows what lies on the disk; [`Databases::stage`] readies one
//! database for one trial. Nothing of a server that was there before is touched: data lies in folders
//! that Plimsoll made and marked, and a folder without that mark is refused.

mod account;
mod counters;
mod data_builder;
mod data_folder;
mod databases;
mod disk;
mod engine;
mod error;
mod external;
mod look;
mod mark;
mod programs;
mod ready;
mod rejected_settings;
mod room;
mod run_program;
mod safety;
mod scratch;
mod settings;
mod shared_memory;
mod tables;

pub use databases::{Databases, OnData, Staged, check};
pub use error::DatabaseError;
pub use look::{Look, Seen, after, check_connections, facts};
pub use room::{check_room, expected_size};
pub use safety::set_by_load;
pub use scratch::remove_left;
