//! Samples the usage of systems and host once a second, reads the metrics that systems expose, and describes the host.
//!
//! [`Sampler`] reads `/proc` on a thread of its own while a trial runs. A sample covers the span
//! since the one before: CPU, IO and context switches are what was used in it, memory, threads
//! and files are what there was at its end. [`host_facts`] describes the machine once a run.
//!
//! What the numbers include, and what they cannot:
//!
//! - CPU of processes that ended in a span is counted, as their parents report it once they have
//!   waited for them. It is lost where a parent ignores `SIGCHLD`, and so is their IO.
//! - Resident memory is the sum over processes. Memory that they share by intent (a database's buffers)
//!   counts once, as much of it as the process has that has touched most; pages of a program's file count
//!   for each.
//! - IO is what reached storage or its page cache's write side, not what a cached read gave. It
//!   is 0 where the kernel does not let it be read (another user's process).
//! - Context switches of threads that ended within a span are lost.
//! - The clock frequency is what the kernel says at that instant. A virtual machine may say a fixed
//!   number, or none.
//! - Counts of a series that systems expose are followed for each set of labels, before they are summed. Where there are
//!   more sets than series are kept, the others count as one: it seems to begin anew when one of them goes away.
//! - Numbers of CPU come in ticks of the kernel, usually 10 ms.
//! - A second in which this process lacks descriptors to look at the others has no sample. The next one covers it.

mod cgroup;
pub mod exposition;
mod facts;
mod frequency;
mod host;
mod lateness;
mod machine_state;
mod others;
mod sampler;
mod scraper;
mod selection;
mod snapshot;
mod sockets;
mod usage;
mod waits;

pub use facts::{allowed_processors, host_facts, host_name, network};
pub use lateness::{UnknownLateness, WakeupLateness, lateness};
pub use machine_state::{MachineState, machine_state, memory_available, most_open_files, processors};
pub use others::{UseByOthers, other_processes};
pub use sampler::{LastSamples, Sampler, SystemPart, Target};
pub use snapshot::Roots;
pub use sockets::{TcpSockets, tcp_sockets};
pub use waits::Waits;
