//! What clients of gRPC need besides a connection: the statuses that a client sets itself, and the reflection protocol,
//! by which a server describes its services.

pub mod reflection;
pub mod status;
