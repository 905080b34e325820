//! Carries out the plan of a study: builds, then one start after another, each with its systems, its loads and its
//! telemetry. It emits [`Event`](plimsoll_model::event::Event)s, from which the bundle is written.
//!
//! [`preflight`] finds faults before anything is started. [`run`] does the rest; it can be interrupted at any instant
//! without leaving a process behind.

mod databases;
mod disk_space;
mod ending;
mod feedback;
pub mod generator;
pub mod host;
mod keys;
mod load;
mod memory;
mod objective;
mod outcome;
mod preflight;
mod programs;
mod run;
mod running_variant;
mod sampled;
mod samplers;
mod scripts;
mod start;
mod steady;
mod target;
mod validity;
mod written_files;

pub use ending::{Ending, RunError};
pub use plimsoll_database::expected_size;
pub use preflight::{
    PreflightFault, databases, hosts, notes, preflight, remove_left_over_data, systems_of_containers, systems_on,
    workloads,
};
pub use programs::arguments;
pub use run::{EventSink, LookAt, Run, run};
pub use sampled::target;
pub use written_files::FilesOfSystem;
