//! What clients of gRPC need besides a connection: the statuses that a client sets itself, the reflection protocol,
//! by which a server describes its services, and types: from what it describes, or from `.proto` files.

pub mod proto_files;
mod public_imports;
pub mod reflection;
pub mod status;
pub mod types;
