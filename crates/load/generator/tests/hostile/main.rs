//! Servers that write bytes by hand: broken, cut off, slow, without an end. However a case ends, it ends in time, with one
//! outcome of the expected kind, and within its memory.

mod cases;
mod drive;
mod floods;
mod grpc;
mod http;
mod mysql;
mod peer;
mod postgresql;
#[path = "../support/mod.rs"]
mod support;
mod websocket;
