//! The protocols that users speak over sockets, as sans-IO state machines: bytes in, bytes out.

mod control_replies;
pub mod flow;
pub mod grpc;
pub mod http;
pub mod websocket;
