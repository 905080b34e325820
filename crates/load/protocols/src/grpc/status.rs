//! The status of a call without `grpc-status`, which the gRPC specification derives from HTTP.

use super::frame::error;
use plimsoll_grpc::status::{
    CANCELLED, INTERNAL, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAUTHENTICATED, UNAVAILABLE, UNIMPLEMENTED, UNKNOWN,
};

/// The gRPC status of an HTTP status.
pub fn of_http(status: Option<u16>) -> u16 {
    match status {
        Some(400) => INTERNAL,
        Some(401) => UNAUTHENTICATED,
        Some(403) => PERMISSION_DENIED,
        Some(404) => UNIMPLEMENTED,
        Some(429 | 502..=504) => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

/// The gRPC status of the HTTP/2 error with which a stream was reset.
pub fn of_reset(code: u32) -> u16 {
    match code {
        error::REFUSED_STREAM => UNAVAILABLE,
        error::CANCEL => CANCELLED,
        error::ENHANCE_YOUR_CALM => RESOURCE_EXHAUSTED,
        error::INADEQUATE_SECURITY => PERMISSION_DENIED,
        // The specification omits two of these codes; gRPC's own libraries map them to this as well.
        error::NO_ERROR..=error::HTTP_1_1_REQUIRED => INTERNAL,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of `PROTOCOL-HTTP2.md`, section "Errors".
    #[test]
    fn resets_stand_for_what_the_specification_says() {
        let expected = [
            INTERNAL,
            INTERNAL,
            INTERNAL,
            INTERNAL,
            INTERNAL,
            INTERNAL,
            INTERNAL,
            UNAVAILABLE,
            CANCELLED,
            INTERNAL,
            INTERNAL,
            RESOURCE_EXHAUSTED,
            PERMISSION_DENIED,
            INTERNAL,
            UNKNOWN,
        ];
        let found: Vec<u16> = (0..15).map(of_reset).collect();
        assert_eq!(found, expected);
    }
}
