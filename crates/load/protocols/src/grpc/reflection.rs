//! Fetches message types from a server by gRPC reflection. The connection closes before any load is sent.

use super::caller::{CallError, Caller};
use super::status_name;
use plimsoll_engine::transport::Dialer;
use plimsoll_grpc::reflection::{Inquiry, PATHS};
use plimsoll_grpc::status::UNIMPLEMENTED;
use prost_reflect::DescriptorPool;
use std::time::{Duration, Instant};

/// Fetches the types of these services.
pub(super) fn fetch_types(
    dialer: &Dialer,
    authority: &str,
    services: &[&str],
    timeout: Duration,
) -> Result<DescriptorPool, String> {
    let mut caller = Caller::connect(dialer, authority, &[], Instant::now() + timeout).map_err(in_words)?;
    let mut inquiry = Inquiry::about(services.iter().copied());
    let mut versions = PATHS.iter().peekable();
    while let Some(question) = inquiry.question() {
        let answer = loop {
            let path =
                versions.peek().ok_or("the server has no reflection; name its .proto files as `proto` instead")?;
            match caller.call(path, &question) {
                Err(CallError::Status(UNIMPLEMENTED, _)) => versions.next(),
                answered => break answered.map_err(in_words)?,
            };
        };
        inquiry.take(&answer)?;
    }
    inquiry.pool()
}

fn in_words(error: CallError) -> String {
    match error {
        CallError::Status(code, _) => {
            format!("expected gRPC status OK from the server's reflection, found {}", status_name(code))
        }
        CallError::Broken(why) => format!("failed to ask for reflection: {why}"),
    }
}
