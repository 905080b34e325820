//! The generator against servers with known answers: same requests on the wire, same counts.

mod accounts;
mod flow;
mod grpc;
mod held;
mod http;
mod job;
mod script;
mod socket;
mod sql;
mod storage;
#[path = "../support/mod.rs"]
mod support;
