//! The modules that scripts for k6 import, and the global objects of k6.

pub(crate) mod core;
pub(crate) mod crypto;
pub(crate) mod data;
pub(crate) mod encoding;
pub(crate) mod execution;
pub(crate) mod experimental;
pub(crate) mod globals;
pub(crate) mod grpc;
pub(crate) mod html;
pub(crate) mod http;
mod listeners;
pub(crate) mod metrics;
pub(crate) mod secrets;
mod socket_session;
pub(crate) mod timers;
pub(crate) mod websockets;
pub(crate) mod ws;
