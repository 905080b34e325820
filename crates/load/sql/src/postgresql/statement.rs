//! A statement that PostgreSQL has prepared, and the messages that run it.

use super::messages::{self, encoded, read_until_ready};
use crate::rows::Encoding;
use crate::socket::Socket;
use crate::value::{parse_decimal, wrong_parameter_count};
use crate::{SqlError, Value};
use bytes::BytesMut;
use plimsoll_model::record::ErrorKind;
use postgres_protocol::message::{backend, frontend};
use postgres_protocol::{IsNull, Oid};
use std::io::Write;

// Types of the catalogue, as in pg_type.dat.
const INT8: Oid = 20;
const INT2: Oid = 21;
const INT4: Oid = 23;
const BPCHAR: Oid = 1042;
const NUMERIC: Oid = 1700;

const TEXT_FORMAT: i16 = 0;
const BINARY_FORMAT: i16 = 1;

/// A prepared statement.
pub(super) struct PreparedStatement {
    /// The start of `Bind`, from its tag to the number of parameters.
    bind_prefix: Vec<u8>,
    parameters: Vec<Parameter>,
    /// The rest of `Bind`, `Execute`, and `Sync`.
    suffix: Vec<u8>,
    pub(super) columns: Vec<Encoding>,
    /// How many bytes of `suffix` belong to `Bind`.
    bind_suffix_length: usize,
}

/// How a parameter is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    /// An integer of this many bytes, binary.
    Integer(usize),
    Text,
}

impl PreparedStatement {
    /// Prepares a statement under the name `s` and its number.
    pub(super) fn new(socket: &mut Socket, number: usize, sql: &str) -> Result<PreparedStatement, SqlError> {
        let name = format!("s{number}");
        let mut out = BytesMut::new();
        encoded(frontend::parse(&name, &crate::placeholders::numbered(sql), [], &mut out))?;
        encoded(frontend::describe(b'S', &name, &mut out))?;
        frontend::sync(&mut out);
        socket.begin();
        socket.send(&out)?;
        let (mut parameters, mut columns) = (Vec::new(), Vec::new());
        read_until_ready(socket, |tag, input, body| {
            match tag {
                backend::PARAMETER_DESCRIPTION_TAG => parameters = messages::parameters(input, body)?,
                backend::ROW_DESCRIPTION_TAG => columns = messages::columns(input, body)?,
                _ => {}
            }
            Ok(())
        })?;
        let columns: Vec<Encoding> = columns.into_iter().map(|(_, oid)| column(oid)).collect();
        PreparedStatement::with_encoded_messages(&name, parameters.into_iter().map(parameter).collect(), columns)
    }

    /// Encodes everything but the parameters once. `postgres-protocol` writes a `Bind` without
    /// parameters, which [`PreparedStatement::bind`] inserts.
    fn with_encoded_messages(
        name: &str,
        parameters: Vec<Parameter>,
        columns: Vec<Encoding>,
    ) -> Result<PreparedStatement, SqlError> {
        let formats = parameters.iter().map(|parameter| match parameter {
            Parameter::Integer(_) => BINARY_FORMAT,
            Parameter::Text => TEXT_FORMAT,
        });
        let results = columns.iter().map(|column| match column {
            Encoding::BigEndian => BINARY_FORMAT,
            _ => TEXT_FORMAT,
        });
        let mut bind = BytesMut::new();
        let nothing = std::iter::empty::<()>();
        let written = frontend::bind("", name, formats, nothing, |(), _| Ok(IsNull::Yes), results, &mut bind);
        written.map_err(|_| SqlError::new(ErrorKind::Sql, "it has too many parameters or columns"))?;
        let bind_suffix_length = 2 + 2 * columns.len();
        let mut suffix = bind.split_off(bind.len() - bind_suffix_length);
        encoded(frontend::execute("", 0, &mut suffix))?;
        frontend::sync(&mut suffix);
        let mut bind_prefix = bind.to_vec();
        let count = bind_prefix.len() - 2;
        bind_prefix[count..].copy_from_slice(&(parameters.len() as u16).to_be_bytes());
        Ok(PreparedStatement { bind_prefix, parameters, suffix: suffix.to_vec(), columns, bind_suffix_length })
    }

    /// Writes the messages that run the statement.
    #[inline]
    pub(super) fn bind(&self, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), SqlError> {
        if values.len() != self.parameters.len() {
            return Err(wrong_parameter_count(self.parameters.len(), values.len()));
        }
        out.extend_from_slice(&self.bind_prefix);
        for (parameter, value) in self.parameters.iter().zip(values) {
            match (parameter, value) {
                (_, Value::Null) => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                (Parameter::Integer(width), Value::Int(number)) => whole(*width, *number, out)?,
                (Parameter::Integer(width), _) => whole(*width, number(value)?, out)?,
                (Parameter::Text, _) => text(value, out),
            }
        }
        // The length of a message does not count its tag.
        let length = out.len() + self.bind_suffix_length - 1;
        let length =
            i32::try_from(length).map_err(|_| SqlError::new(ErrorKind::Sql, "its parameters have over 2 GB"))?;
        out[1..5].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.suffix);
        Ok(())
    }
}

/// Writes an integer of `width` bytes after its length.
#[inline]
fn whole(width: usize, number: i64, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let bytes = number.to_be_bytes();
    let spare = 64 - 8 * width as u32;
    if (number << spare) >> spare != number {
        return Err(SqlError::new(ErrorKind::Sql, format!("the parameter {number} does not fit into {width} bytes")));
    }
    out.extend_from_slice(&(width as i32).to_be_bytes());
    out.extend_from_slice(&bytes[8 - width..]);
    Ok(())
}

/// Writes a value as text after its length.
fn text(value: &Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match value {
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        _ => write!(out, "{value}").expect("memory takes every write"),
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// The integer that a decimal or a text stands for.
fn number(value: &Value<'_>) -> Result<i64, SqlError> {
    let text = value.to_string();
    let number = parse_decimal(&text, 0);
    number.ok_or_else(|| SqlError::new(ErrorKind::Sql, format!("the parameter `{text}` is no whole number")))
}

fn parameter(oid: Oid) -> Parameter {
    match oid {
        INT2 => Parameter::Integer(2),
        INT4 => Parameter::Integer(4),
        INT8 => Parameter::Integer(8),
        _ => Parameter::Text,
    }
}

fn column(oid: Oid) -> Encoding {
    match oid {
        INT2 | INT4 | INT8 => Encoding::BigEndian,
        NUMERIC => Encoding::DecimalText,
        BPCHAR => Encoding::BlankPadded,
        _ => Encoding::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decimal;

    fn bound(parameters: Vec<Parameter>, columns: Vec<Encoding>, values: &[Value<'_>]) -> Result<Vec<u8>, SqlError> {
        let mut out = Vec::new();
        PreparedStatement::with_encoded_messages("s7", parameters, columns)?.bind(values, &mut out)?;
        Ok(out)
    }

    /// `Bind`, `Execute` and `Sync` as the library writes them.
    fn expected(formats: &[i16], values: &[Option<&[u8]>], results: &[i16]) -> Vec<u8> {
        let mut out = BytesMut::new();
        let write = |value: &Option<&[u8]>, out: &mut BytesMut| match value {
            None => Ok(IsNull::Yes),
            Some(bytes) => {
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
        };
        let bind = frontend::bind("", "s7", formats.to_vec(), values, write, results.to_vec(), &mut out);
        assert!(bind.is_ok());
        frontend::execute("", 0, &mut out).unwrap();
        frontend::sync(&mut out);
        out.to_vec()
    }

    #[test]
    fn the_messages_are_those_of_the_library() {
        use Parameter::{Integer, Text};
        let price = Value::Decimal(Decimal { unscaled: -1234, scale: 2 });
        let values =
            [Value::Int(-2), Value::Int(3), Value::Int(4), Value::Null, price, Value::Text("ü"), Value::Int(5)];
        let parameters = vec![Integer(2), Integer(4), Integer(8), Integer(4), Text, Text, Text];
        let columns = vec![Encoding::BigEndian, Encoding::Text, Encoding::DecimalText];
        let cells: [Option<&[u8]>; 7] = [
            Some(&[0xff, 0xfe]),
            Some(&[0, 0, 0, 3]),
            Some(&[0, 0, 0, 0, 0, 0, 0, 4]),
            None,
            Some(b"-12.34"),
            Some("ü".as_bytes()),
            Some(b"5"),
        ];
        assert_eq!(bound(parameters, columns, &values), Ok(expected(&[1, 1, 1, 1, 0, 0, 0], &cells, &[1, 0, 0])));
        assert_eq!(bound(vec![], vec![], &[]), Ok(expected(&[], &[], &[])));
    }

    #[test]
    fn whole_numbers_are_taken_from_whatever_is_one() {
        let price = Value::Decimal(Decimal { unscaled: 500, scale: 2 });
        let five = bound(vec![Parameter::Integer(4)], vec![], &[Value::Int(5)]);
        assert_eq!(bound(vec![Parameter::Integer(4)], vec![], &[price]), five);
        assert_eq!(bound(vec![Parameter::Integer(4)], vec![], &[Value::Text("5")]), five);
        for value in [Value::Text("x"), Value::Decimal(Decimal { unscaled: 5, scale: 1 })] {
            assert_eq!(bound(vec![Parameter::Integer(4)], vec![], &[value]).unwrap_err().kind, ErrorKind::Sql);
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_not_cut() {
        for (width, number) in [(2, 32768), (2, -32769), (4, 1 << 31)] {
            let error = bound(vec![Parameter::Integer(width)], vec![], &[Value::Int(number)]).unwrap_err();
            assert!(error.detail.contains("does not fit"), "{}", error.detail);
        }
        for (width, number) in [(2, 32767), (2, -32768), (4, -1 << 31), (8, i64::MIN)] {
            assert!(bound(vec![Parameter::Integer(width)], vec![], &[Value::Int(number)]).is_ok());
        }
    }

    #[test]
    fn parameters_are_counted() {
        let error = bound(vec![Parameter::Text], vec![], &[]).unwrap_err();
        assert!(error.detail.contains("1 placeholders, but 0 parameters"), "{}", error.detail);
    }
}
