//! The messages of `counter.incrementCounter/increment`.

use crate::message::{Value, fields, frame, put_bytes, take_message};
use crate::reply::{INTERNAL, INVALID_ARGUMENT, Status, UNIMPLEMENTED};
use bytes::Bytes;

/// The path of the method.
pub const PATH: &str = "/counter.incrementCounter/increment";

/// The `value` of the `incrementBy` in a request's body: the last one in it, or zero without one.
///
/// # Errors
/// The status to refuse the call with, when the body is no such message or the value is negative.
pub fn decode(mut body: Vec<u8>) -> Result<i64, Status> {
    let message = take_message(&mut body).map_err(|fault| Status::new(UNIMPLEMENTED, fault))?;
    let message = message.ok_or_else(|| Status::new(INTERNAL, "expected a message, found the end of the stream"))?;
    let fields = fields(&message).ok_or_else(|| Status::new(INTERNAL, "expected an incrementBy, found other bytes"))?;
    let value = fields.iter().rev().find_map(|field| match field {
        // protobuf sends a negative int32 as ten bytes: its low 32 bits are the number.
        (1, Value::Varint(number)) => Some(*number as i32),
        _ => None,
    });
    match value.unwrap_or(0) {
        value @ 0.. => Ok(value.into()),
        _ => Err(Status::new(INVALID_ARGUMENT, "Value cannot be negative")),
    }
}

/// The reply that tells `sum`, framed.
#[must_use]
pub fn encode(sum: i64) -> Bytes {
    let mut status = Vec::new();
    put_bytes(&mut status, 1, format!("Incremented value is {sum}").as_bytes());
    frame(&status)
}
