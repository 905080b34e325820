//! The response of a server, or the reason why there is none.

use crate::grpc::frame::error;
use crate::grpc::hpack::Field;
use std::fmt;

/// All header fields of a response, except its statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderFields {
    /// The fields before the body; `None` until they arrive. A response without a body may have none.
    pub head: Option<Vec<Field>>,
    /// The fields after the body.
    pub trailers: Vec<Field>,
    are_trailers: bool,
}

/// A response, as far as it arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// `:status`.
    pub status: Option<u16>,
    /// `grpc-status`.
    pub grpc_status: Option<u16>,
    /// `grpc-message`, as sent.
    pub grpc_message: Option<String>,
    /// The body, without the bytes that the caller has taken.
    pub body: Vec<u8>,
    /// All header fields, if the request is a stream.
    pub fields: Option<Box<HeaderFields>>,
}

/// Why a server ended a request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// It reset the stream, with this error.
    Reset(u32),
    /// It is going away, with this error, and has not processed the request.
    NotProcessed(u32),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            StreamError::Reset(code) => {
                write!(f, "the server reset the stream with HTTP/2 error {}", error::name(code))
            }
            StreamError::NotProcessed(code) => {
                let error = error::name(code);
                write!(f, "the server is going away (HTTP/2 error {error}) and did not take the request")
            }
        }
    }
}

impl Response {
    /// Prepares for a header block: the head, or the trailers if it ends the response.
    pub(super) fn expect_fields(&mut self, is_last: bool) {
        if let Some(fields) = &mut self.fields {
            fields.are_trailers = is_last;
            if !is_last {
                fields.head.get_or_insert_default();
            }
        }
    }

    pub(super) fn add_field(&mut self, name: &[u8], value: &[u8]) {
        let number = || std::str::from_utf8(value).ok()?.parse().ok();
        match name {
            b":status" => self.status = number(),
            b"grpc-status" => self.grpc_status = number(),
            b"grpc-message" => self.grpc_message = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                if let Some(fields) = &mut self.fields {
                    fields.latest().push((text(name), text(value)));
                }
            }
        }
    }
}

impl HeaderFields {
    fn latest(&mut self) -> &mut Vec<Field> {
        if self.are_trailers { &mut self.trailers } else { self.head.get_or_insert_default() }
    }
}
