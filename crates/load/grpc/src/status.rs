//! Status codes of gRPC that are made by a client itself; those of servers are whatever they send.

/// The call has succeeded.
pub const OK: u16 = 0;
/// Somebody gave it up.
pub const CANCELLED: u16 = 1;
/// Nobody knows why it failed.
pub const UNKNOWN: u16 = 2;
/// It took too long.
pub const DEADLINE_EXCEEDED: u16 = 4;
/// The client may not do that.
pub const PERMISSION_DENIED: u16 = 7;
/// Something is used up, or too large.
pub const RESOURCE_EXHAUSTED: u16 = 8;
/// There is no such method.
pub const UNIMPLEMENTED: u16 = 12;
/// What came breaks the rules.
pub const INTERNAL: u16 = 13;
/// There is no server now; a second attempt may find one.
pub const UNAVAILABLE: u16 = 14;
/// The client has not said who it is.
pub const UNAUTHENTICATED: u16 = 16;
