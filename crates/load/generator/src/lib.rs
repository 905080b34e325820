//! The generator: compiles a workload once, and runs it on the engine.
//!
//! [`Prepared::new`] finds everything that is wrong with a workload before any load is sent; [`Prepared::run`] runs a
//! [`Job`](plimsoll_model::job::Job) and reports one [`Interval`](plimsoll_model::record::Interval) a second;
//! [`Prepared::run_all`] runs several, one after the other, with the same users.

mod prepared;
mod protocol_users;

pub use plimsoll_engine::diagnostic::WorkloadDiagnostic;
pub use plimsoll_engine::job::{Jobs, Steering};
pub use plimsoll_protocols::flow::diagnostics;
pub use plimsoll_scripts as script;
pub use plimsoll_scripts::study::{hashes_of_copies, metrics, notes, project, sources};
pub use prepared::{PrepareError, Prepared, check};
