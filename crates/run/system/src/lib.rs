//! The system under test: build, start, wait until ready, stop; nothing outlives the run.
//!
//! Every command of a study runs under a *warden*: this same program, started again in a session of its own.
//! The warden starts the command, adopts its orphans, and holds one end of a socket pair, the control channel.
//! The control channel ends when Plimsoll asks for a stop, or when it dies in any way. Then the warden kills
//! every descendant before it ends itself.
//!
//! ```text
//! Plimsoll ──control channel──> warden ──> the command ──> its children
//!                          └── adopts orphans (PR_SET_CHILD_SUBREAPER)
//! ```
//!
//! There are three more safeguards. The command itself dies with its warden (`PR_SET_PDEATHSIG`). If a warden
//! is killed, Plimsoll finds the remaining processes by a mark in their environment. And a warden shows in
//! process lists as `warden`, so that `pkill -9 plimsoll` does not kill it.
//!
//! Work that a command gives to an existing daemon is not below its warden. Containers that the study names as such
//! ([`Containers`](plimsoll_model::system::Containers)) are found by a label and removed all the same; those of a plain
//! `docker run` are not.
//!
//! [`Launcher`] is the entry point. [`check_commands`], [`free_port`] and [`check_port_free`] find problems
//! beforehand. An [`Interrupt`] ends all waiting.

pub mod warden;

mod command;
mod containers;
mod control_channel;
mod disk_space;
mod error;
mod exit;
mod interrupt;
mod launcher;
mod output;
mod port;
mod program;
mod random;
mod ready;
mod running;
mod tree;
mod watched;

pub use containers::check_containers;
pub use disk_space::free_space;
pub use error::SystemError;
pub use exit::Exit;
pub use interrupt::Interrupt;
pub use launcher::Launcher;
pub use output::LastOutput;
pub use port::{check_port_free, free_port};
pub use program::{check_command, check_commands, sha256};
pub use random::random_text;
pub use running::{Running, Stopped};
pub use warden::bounded_output::BoundedOutput;
pub use watched::Service;
