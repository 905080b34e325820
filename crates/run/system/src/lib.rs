//! The system under test: build, start, wait until ready, stop; nothing outlives the run.
//!
//! Every command of a study runs under a *warden*: this same program, started again in a session
//! of its own, which starts the command, adopts whatever the command leaves behind, and holds one
//! end of a socket pair, the control channel. When the control channel ends, because Plimsoll asked for a stop
//! or because it died in whatever way, the warden kills every descendant before it ends itself.
//!
//! ```text
//! Plimsoll ──control channel──> warden ──> the command ──> its children
//!                          └── adopts orphans (PR_SET_CHILD_SUBREAPER)
//! ```
//!
//! Three more nets lie under that one. The command itself dies with its warden
//! (`PR_SET_PDEATHSIG`). If a warden is killed, Plimsoll finds what it left by a mark in the
//! environment of every process. And a warden shows in a process list as `warden`, so that an
//! impatient `pkill -9 plimsoll` does not take the cleaner with the mess.
//!
//! What no process can clean up: work that the command hands to a daemon which was there before,
//! such as a container that `docker run` asks for.
//!
//! [`Launcher`] is the way in; [`check_commands`], [`free_port`] and [`check_port_free`] tell
//! beforehand what would go wrong.

pub mod warden;

mod command;
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
