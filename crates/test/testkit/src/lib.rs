//! Servers with known behaviour, on `127.0.0.1`, for measuring a load generator against the truth.
//!
//! [`http::Server`] replies to HTTP/1.1 as a test configures it: after a fixed delay, as a queue of known
//! theory, with a stall, or in violation of the protocol. [`grpc::Counter`] is the system of the gRPC study,
//! in a correct and an incorrect way. Both listen before `start` returns, keep a [`Record`] of
//! their requests, and stop when they are dropped. [`nfs::Server`] exports a directory by NFSv3.
//!
//! ```
//! use plimsoll_testkit::http::{Behaviour, Reply, Server};
//! use std::time::Duration;
//!
//! let slow = Behaviour::after(Duration::from_millis(10), Reply::of_size(100));
//! let server = Server::builder(Behaviour::at_once(Reply::of_size(2))).at("/slow", slow).start()?;
//! assert!(server.address().ip().is_loopback());
//! assert_eq!(server.record().requests(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Delays are timed by `timerfd`, not by tokio, whose timers tick once a millisecond. No reply
//! leaves before it is due. On two cores shared with its clients and with builds, replies left
//! late by 23 µs at the median and 85 µs at p99 with one client, and by 50 to 150 µs at the median
//! and 150 to 300 µs at p99 with ten clients whose replies are due together: one thread sends them
//! one after the other. [`http::Server::sojourns`] has how late each one was, so that a test can
//! compare a generator with what the server did, and not with what it should have done.

mod control_group;
mod memory;
mod mounted;
mod pause;
mod port;
mod record;
mod running;
mod skip;
mod tls;

pub mod chat;
#[cfg(feature = "database")]
pub mod database;
pub mod docker;
pub mod grpc;
pub mod http;
pub mod nats;
pub mod nfs;
pub mod proxy;
#[cfg(feature = "s3")]
pub mod s3;
pub mod sshfs;
pub mod websocket;

pub use control_group::{ControlGroup, Limit};
pub use memory::growth_of_memory;
pub use mounted::Mounted;
pub use port::ReservedPort;
pub use record::{Record, Request};
pub use skip::skipped;
pub use tls::PemFiles;
