//! What a server answers to a request, or why it does not.

use crate::grpc::frame::error;
use crate::grpc::hpack::Field;
use std::fmt;

/// All header fields of an answer, but its statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Those before the body; `None` until they have come, which they need not where there is none.
    pub head: Option<Vec<Field>>,
    /// Those behind it.
    pub trailers: Vec<Field>,
    are_trailers: bool,
}

/// What came back for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// `:status`.
    pub status: Option<u16>,
    /// `grpc-status`.
    pub grpc_status: Option<u16>,
    /// `grpc-message`, as sent.
    pub grpc_message: Option<String>,
    /// The body, or what of it was not taken yet.
    pub body: Vec<u8>,
    /// All header fields, where the answer is to a stream.
    pub fields: Option<Box<Fields>>,
}

/// Why a server gave a request up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It reset the stream, with this error.
    Reset(u32),
    /// It is going away, with this error, and has not begun with the request.
    NotTaken(u32),
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Dropped::Reset(code) => write!(f, "the server reset the stream with HTTP/2 error {}", error::name(code)),
            Dropped::NotTaken(code) => {
                let error = error::name(code);
                write!(f, "the server is going away (HTTP/2 error {error}) and did not take the request")
            }
        }
    }
}

impl Response {
    /// A header block comes: the head, unless it ends the answer.
    pub(super) fn expect_fields(&mut self, is_last: bool) {
        if let Some(fields) = &mut self.fields {
            fields.are_trailers = is_last;
            if !is_last {
                fields.head.get_or_insert_default();
            }
        }
    }

    pub(super) fn note(&mut self, name: &[u8], value: &[u8]) {
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

impl Fields {
    fn latest(&mut self) -> &mut Vec<Field> {
        if self.are_trailers { &mut self.trailers } else { self.head.get_or_insert_default() }
    }
}
