//! Walks the plan of a study: builds, then trial after trial, each with its system, its load and
//! its telemetry, into a bundle. What happens is told as [`Event`](plimsoll_model::event::Event)s.
//!
//! [`preflight`] finds what would go wrong before anything is started; [`run`] does the rest and
//! can be interrupted at any instant without leaving a process behind.

mod databases;
mod keys;
mod preflight;
mod programs;
mod room;
mod run;
mod scripts;
mod steady;
mod target;
mod trial;
mod validity;

pub use plimsoll_database::expected_size;
pub use preflight::{Found, databases, notes, preflight};
pub use run::{Ending, Run, RunError, run};
