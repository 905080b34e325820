//! The generator: virtual users and arrivals against a system, every exchange recorded.
//!
//! [`Prepared::new`] compiles a workload once and finds whatever is wrong with it before any load
//! is sent; [`Prepared::run`] offers a load profile and hands over one
//! [`Interval`](plimsoll_model::record::Interval) a second. In between lies one loop
//! ([`engine`]), written over a [`schedule`], a stop rule, and what users do: the steps of a
//! [`protocol`], which is a sans-IO state machine ([`http`], [`grpc`], [`flow`]), or a [`script`].
//! Calls that block have a loop of their own, with a thread for each user ([`blocking`]): those of
//! [`storage`] and [`sql`].

mod blocking;
mod clock;
mod engine;
mod flow;
pub mod grpc;
pub mod http;
mod ports;
pub mod protocol;
mod recorder;
mod run;
pub mod schedule;
pub mod script;
pub mod sequence;
mod sql;
mod storage;
mod timers;
mod tls;
mod transport;
mod websocket;

pub use flow::{Remark, remarks};
pub use run::{Job, PrepareError, Prepared, RunError, RunRecord, check};
pub use script::study::{metrics, notes, sources};
