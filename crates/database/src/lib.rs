//! Databases as systems: initialised and loaded once, kept as a snapshot, restored before every
//! trial, started with the study's settings, looked at while they run.
//!
//! [`Databases`] belongs to a run and knows what lies on the disk; [`Databases::stage`] readies one
//! database for one trial. Nothing of a server that was there before is touched: data lies in folders
//! that Plimsoll made and marked, and a folder without that mark is refused.

mod databases;
mod look;

pub use databases::{DatabaseError, Databases, OnData, Staged, check, remove_left};
pub use look::{Look, after, facts};
