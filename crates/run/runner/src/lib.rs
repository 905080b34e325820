//! Carries out the plan of a study: builds, then start after start, each with its systems, its loads
//! and its telemetry, into a bundle. What happens is told as [`Event`](plimsoll_model::event::Event)s.
//!
//! [`preflight`] finds what would go wrong before anything is started; [`run`] does the rest and
//! can be interrupted at any instant without leaving a process behind.

mod databases;
pub mod generator;
mod keys;
mod load;
mod preflight;
mod programs;
mod room;
mod run;
mod scripts;
mod start;
mod steady;
mod target;
mod validity;

pub use plimsoll_database::expected_size;
pub use preflight::{Found, databases, notes, preflight};
pub use run::{Ending, Run, RunError, Tell, run};
