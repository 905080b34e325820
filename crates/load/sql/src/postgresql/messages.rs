//! Reads PostgreSQL's messages.
//!
//! Messages of a running statement are read in place; `postgres-protocol` parses the others.

use crate::SqlError;
use crate::socket::Socket;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use plimsoll_model::record::ErrorKind;
use postgres_protocol::Oid;
use postgres_protocol::message::backend::{self, Message};
use postgres_protocol::message::frontend;
use std::io;
use std::ops::Range;

/// The tag of the next message, and the range of its body in the input.
#[inline]
pub(super) fn next(socket: &mut Socket) -> Result<(u8, Range<usize>), SqlError> {
    let [tag, a, b, c, d] = socket.peek()?;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length < 4 || !is_known_tag(tag) {
        return Err(SqlError::protocol(format!("it does not speak PostgreSQL's protocol: a message of tag {tag}")));
    }
    let start = socket.take(length + 1)?;
    Ok((tag, start + 5..start + 1 + length))
}

/// All tags are letters, except those of ParseComplete, BindComplete and CloseComplete.
fn is_known_tag(tag: u8) -> bool {
    tag.is_ascii_alphabetic() || (b'1'..=b'3').contains(&tag)
}

/// Hands messages to `each` until ReadyForQuery, then returns the first error, so that the connection
/// stays usable. Skips asynchronous messages (notices, notifications, parameter status).
#[inline]
pub(super) fn read_until_ready(
    socket: &mut Socket,
    mut each: impl FnMut(u8, &[u8], Range<usize>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let mut failed = None;
    loop {
        let (tag, body) = next(socket)?;
        match tag {
            backend::READY_FOR_QUERY_TAG => return failed.map_or(Ok(()), Err),
            backend::ERROR_RESPONSE_TAG => {
                let (error, is_last) = error(socket.input(), body)?;
                if is_last {
                    return Err(SqlError { kind: ErrorKind::Closed, ..error });
                }
                failed.get_or_insert(error);
            }
            backend::COPY_IN_RESPONSE_TAG => refuse_to_copy(socket)?,
            backend::NOTICE_RESPONSE_TAG | backend::PARAMETER_STATUS_TAG | backend::NOTIFICATION_RESPONSE_TAG => {}
            _ => each(tag, socket.input(), body)?,
        }
    }
}

/// Parses the message whose body lies in that range.
pub(super) fn parsed(input: &[u8], body: Range<usize>) -> Result<Message, SqlError> {
    let mut bytes = BytesMut::from(&input[body.start - 5..body.end]);
    let message = Message::parse(&mut bytes).map_err(malformed)?;
    message.ok_or_else(|| SqlError::protocol("a message of PostgreSQL is cut short"))
}

/// The error of an ErrorResponse, and whether the server closes the connection after it.
pub(super) fn error(input: &[u8], body: Range<usize>) -> Result<(SqlError, bool), SqlError> {
    let Message::ErrorResponse(body) = parsed(input, body)? else {
        return Err(SqlError::protocol("an error of PostgreSQL is none"));
    };
    let (mut severity, mut code, mut message, mut more) = Default::default();
    let mut position = None;
    let mut fields = body.fields();
    while let Some(field) = fields.next().map_err(malformed)? {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'V' => severity = value,
            b'C' => code = value,
            b'M' => message = value,
            b'P' => position = value.parse().ok(),
            b'D' | b'H' => more = format!("{more}; {value}"),
            _ => {}
        }
    }
    let is_last = severity == "FATAL" || severity == "PANIC";
    let error = SqlError::from_sqlstate(&code, &format!("{message}{more}"));
    Ok((SqlError { position, ..error }, is_last))
}

/// The names and types of the columns in a RowDescription.
pub(super) fn columns(input: &[u8], body: Range<usize>) -> Result<Vec<(String, Oid)>, SqlError> {
    let Message::RowDescription(body) = parsed(input, body)? else { return Ok(Vec::new()) };
    body.fields().map(|field| Ok((field.name().to_owned(), field.type_oid()))).collect().map_err(malformed)
}

/// The types of the parameters in a ParameterDescription.
pub(super) fn parameters(input: &[u8], body: Range<usize>) -> Result<Vec<Oid>, SqlError> {
    let Message::ParameterDescription(body) = parsed(input, body)? else { return Ok(Vec::new()) };
    body.parameters().collect().map_err(malformed)
}

/// Calls `each` with the range of every cell of a DataRow; none for NULL.
#[inline]
pub(super) fn cells(
    input: &[u8],
    body: Range<usize>,
    mut each: impl FnMut(Option<Range<usize>>),
) -> Result<(), SqlError> {
    let cut = || SqlError::protocol("a row of PostgreSQL is cut short");
    let bytes = &input[..body.end];
    let (count, mut at) = (bytes.get(body.start..body.start + 2).ok_or_else(cut)?, body.start + 2);
    for _ in 0..u16::from_be_bytes([count[0], count[1]]) {
        let length = bytes.get(at..at + 4).ok_or_else(cut)?;
        let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        at += 4;
        let Ok(length) = usize::try_from(length) else {
            each(None);
            continue;
        };
        if at + length > body.end {
            return Err(cut());
        }
        each(Some(at..at + length));
        at += length;
    }
    Ok(())
}

fn refuse_to_copy(socket: &mut Socket) -> Result<(), SqlError> {
    let mut message = BytesMut::new();
    encoded(frontend::copy_fail("rows are loaded by `bulk`", &mut message))?;
    socket.send(&message)
}

/// Wraps the error for a value that no message can hold: with a NUL, or too long.
pub(super) fn encoded(done: io::Result<()>) -> Result<(), SqlError> {
    done.map_err(|error| SqlError::new(ErrorKind::Sql, format!("it cannot be sent: {error}")))
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn malformed(error: io::Error) -> SqlError {
    SqlError::protocol(format!("a message of PostgreSQL cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(body: &[u8]) -> Result<Vec<Option<Range<usize>>>, SqlError> {
        let mut all = Vec::new();
        cells(body, 0..body.len(), |cell| all.push(cell))?;
        Ok(all)
    }

    #[test]
    fn cells_lie_one_after_the_other() {
        let row = [0, 3, 0, 0, 0, 2, 7, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(found(&row), Ok(vec![Some(6..8), None, Some(16..16)]));
    }

    #[test]
    fn a_row_that_is_cut_short_is_refused() {
        let row = [0, 1, 0, 0, 0, 2, 7, 8];
        for length in 0..row.len() {
            assert!(found(&row[..length]).is_err(), "of {length} bytes");
        }
    }

    #[test]
    fn an_error_tells_whether_the_connection_ends() {
        let message = |severity: &str| format!("E\0\0\0\0V{severity}\0C57P01\0Mterminating\0\0").into_bytes();
        for (severity, ends) in [("FATAL", true), ("ERROR", false)] {
            let mut bytes = message(severity);
            bytes[4] = bytes.len() as u8 - 1;
            let (error, is_last) = error(&bytes, 5..bytes.len()).unwrap();
            assert_eq!((is_last, error.code.as_str()), (ends, "57P01"));
        }
    }

    proptest! {
        #[test]
        fn no_row_is_read_beyond_its_end(body in proptest::collection::vec(0_u8..3, 0..40)) {
            for cell in found(&body).into_iter().flatten().flatten() {
                prop_assert!(cell.end <= body.len());
            }
        }

        #[test]
        fn nonsense_is_no_error_message(content in proptest::collection::vec(any::<u8>(), 0..40)) {
            let length = (content.len() as u32 + 4).to_be_bytes();
            let bytes = [b"E", &length[..], &content].concat();
            let _ = error(&bytes, 5..bytes.len());
        }
    }
}
