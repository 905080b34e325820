//! Servers with known answers, on `127.0.0.1`, for measuring a load generator against the truth.
//!
//! [`http::Server`] answers HTTP/1.1 as it is told: after a fixed delay, as a queue with a known
//! theory, with a stall, or against the rules. [`grpc::Counter`] is the system of the gRPC study,
//! in a correct and an incorrect way. Both listen before `start` returns, keep a [`Record`] of
//! what they saw, and stop when they are dropped.
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
//! Delays are timed by `timerfd`, not by tokio, whose timers tick once a millisecond: on an idle
//! machine a reply leaves 10 to 60 µs after the instant it is due, and never before.
//! [`http::Server::sojourns`] tells how late each one was.

mod pause;
mod record;
mod running;
mod tls;

pub mod grpc;
pub mod http;

pub use record::{Record, Request};
