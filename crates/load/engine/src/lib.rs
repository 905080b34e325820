//! The engine: offers load over sockets and by calls that block, and records every exchange.
//!
//! A [`schedule`] says when work is due. Users of a [`protocol`] (a sans-IO state machine) and of scripts run in the
//! [`event_loop`] of their thread; users whose calls block have a thread each ([`blocking`]). A [`recorder`] records
//! their exchanges, and emits one [`Interval`](plimsoll_model::record::Interval) a second.

pub mod blocking;
pub mod clock;
pub mod diagnostic;
pub mod event_loop;
pub mod job;
pub mod offer;
pub mod pool;
mod ports;
pub mod protocol;
pub mod recorder;
pub mod schedule;
pub mod sockets;
pub mod threads;
pub mod timers;
pub mod tls;
pub mod transport;
