//! Prepared statements of MariaDB and MySQL: encoding of parameters, decoding of rows.

use super::packet::{self, Reader, write_length_prefixed};
use super::results::{ResultHandler, descriptions};
use super::{Capabilities, EXECUTE};
use crate::rows::{Cell, Encoding, ResultSet};
use crate::socket::Socket;
use crate::value::wrong_parameter_count;
use crate::{SqlError, Value};
use std::io::Write;

/// Types, as in `enum_field_types`.
mod column_type {
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const NULL: u8 = 6;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const NEWDECIMAL: u8 = 246;
    pub(super) const VAR_STRING: u8 = 253;
}

const IS_UNSIGNED: u16 = 1 << 5;

/// The most bytes of converted cells in an answer. A double of eight bytes can have 330 digits.
const MOST_CONVERTED: usize = 64 * 1024 * 1024;

/// A prepared statement.
pub(super) struct PreparedStatement {
    id: u32,
    /// The type of each parameter as it was last sent.
    parameter_types: Vec<u8>,
    /// True if the server has these types from an earlier execution.
    types_are_sent: bool,
    formats: Vec<BinaryFormat>,
    encodings: Vec<Encoding>,
}

/// How the binary protocol encodes the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BinaryFormat {
    /// This many bytes.
    Fixed(usize),
    /// A length-encoded string.
    LengthPrefixed,
    Float,
    Double,
    Date,
    /// With this many fractional digits of a second.
    DateTime(u8),
    Time(u8),
}

impl PreparedStatement {
    /// Reads the response to COM_STMT_PREPARE.
    pub(super) fn read(socket: &mut Socket, capabilities: Capabilities) -> Result<PreparedStatement, SqlError> {
        let (_, content) = packet::next(socket)?;
        let mut reader = Reader::new(socket.input(), content.clone());
        if reader.u8()? != 0 {
            return Err(packet::error(socket.input(), content));
        }
        let id = reader.u32()?;
        let (columns, parameters) = (reader.u16()?.into(), reader.u16()?.into());
        let parameter_types = vec![column_type::NULL; parameters];
        let mut prepared = PreparedStatement {
            id,
            parameter_types,
            types_are_sent: false,
            formats: Vec::new(),
            encodings: Vec::new(),
        };
        descriptions(socket, capabilities, parameters, |_| Ok(()))?;
        descriptions(socket, capabilities, columns, |description| prepared.add_column(description))?;
        Ok(prepared)
    }

    pub(super) fn columns(&self) -> &[Encoding] {
        &self.encodings
    }

    /// Writes COM_STMT_EXECUTE.
    #[inline]
    pub(super) fn bind(&mut self, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), SqlError> {
        if values.len() != self.parameter_types.len() {
            return Err(wrong_parameter_count(self.parameter_types.len(), values.len()));
        }
        out.push(EXECUTE);
        out.extend_from_slice(&self.id.to_le_bytes());
        // No cursor, one iteration.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if values.is_empty() {
            return Ok(());
        }
        let nulls = out.len();
        out.resize(nulls + values.len().div_ceil(8), 0);
        for (number, value) in values.iter().enumerate() {
            let column_type = match value {
                Value::Null => {
                    out[nulls + number / 8] |= 1 << (number % 8);
                    continue; // of any type
                }
                Value::Int(_) => column_type::LONGLONG,
                Value::Decimal(_) => column_type::NEWDECIMAL,
                Value::Text(_) => column_type::VAR_STRING,
            };
            self.types_are_sent &= self.parameter_types[number] == column_type;
            self.parameter_types[number] = column_type;
        }
        self.write_types(out);
        for value in values {
            match value {
                Value::Null => {}
                Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Decimal(number) => write_display(number, out),
                Value::Text(text) => write_length_prefixed(text.as_bytes(), out),
            }
        }
        Ok(())
    }

    /// Writes the types of the parameters, if they differ from those the server has.
    fn write_types(&mut self, out: &mut Vec<u8>) {
        out.push(u8::from(!self.types_are_sent));
        if !self.types_are_sent {
            out.extend(self.parameter_types.iter().flat_map(|column_type| [*column_type, 0]));
        }
        self.types_are_sent = true;
    }

    /// Sends the types again next time: a command that failed may not have reached the server.
    pub(super) fn resend_types(&mut self) {
        self.types_are_sent = false;
    }

    fn clear_columns(&mut self) {
        self.formats.clear();
        self.encodings.clear();
    }

    fn add_column(&mut self, mut description: Reader<'_>) -> Result<(), SqlError> {
        // Catalogue, database, table, column, both with their own names.
        for _ in 0..6 {
            description.length_prefixed()?;
        }
        // A length, the character set, and the width.
        description.bytes(1 + 2 + 4)?;
        let (column_type, flags, decimals) = (description.u8()?, description.u16()?, description.u8()?);
        let (format, encoding) = column(column_type, flags & IS_UNSIGNED != 0, decimals);
        self.formats.push(format);
        self.encodings.push(encoding);
        Ok(())
    }
}

fn column(column_type: u8, is_unsigned: bool, decimals: u8) -> (BinaryFormat, Encoding) {
    let whole =
        |width| (BinaryFormat::Fixed(width), if is_unsigned { Encoding::Unsigned } else { Encoding::LittleEndian });
    match column_type {
        column_type::TINY => whole(1),
        column_type::SHORT | column_type::YEAR => whole(2),
        column_type::LONG | column_type::INT24 => whole(4),
        column_type::LONGLONG => whole(8),
        column_type::FLOAT => (BinaryFormat::Float, Encoding::Converted),
        column_type::DOUBLE => (BinaryFormat::Double, Encoding::Converted),
        column_type::DATE => (BinaryFormat::Date, Encoding::Converted),
        column_type::DATETIME | column_type::TIMESTAMP => (BinaryFormat::DateTime(decimals), Encoding::Converted),
        column_type::TIME => (BinaryFormat::Time(decimals), Encoding::Converted),
        0 | column_type::NEWDECIMAL => (BinaryFormat::LengthPrefixed, Encoding::DecimalText),
        _ => (BinaryFormat::LengthPrefixed, Encoding::Text),
    }
}

/// Writes a value of less than 251 characters as a length-encoded string.
fn write_display(value: &impl std::fmt::Display, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0);
    write!(out, "{value}").expect("memory takes every write");
    out[start] = (out.len() - start - 1) as u8;
}

/// Keeps the first result with rows. Only procedures give more.
pub(super) struct FirstResult<'a> {
    prepared: &'a mut PreparedStatement,
    result: &'a mut ResultSet,
    results: usize,
}

impl<'a> FirstResult<'a> {
    pub(super) fn new(prepared: &'a mut PreparedStatement, result: &'a mut ResultSet) -> FirstResult<'a> {
        FirstResult { prepared, result, results: 0 }
    }
}

impl ResultHandler for FirstResult<'_> {
    #[inline]
    fn begin(&mut self, columns: usize, with_metadata: bool) -> Result<(), SqlError> {
        self.results += 1;
        if self.results == 1 && with_metadata {
            self.prepared.clear_columns();
        } else if self.results == 1 && columns != self.prepared.formats.len() {
            return Err(SqlError::protocol("the columns of a statement have changed, and are not described"));
        }
        Ok(())
    }

    fn column(&mut self, description: Reader<'_>) -> Result<(), SqlError> {
        if self.results == 1 { self.prepared.add_column(description) } else { Ok(()) }
    }

    #[inline]
    fn row(&mut self, mut row: Reader<'_>) -> Result<(), SqlError> {
        if self.results > 1 {
            return Ok(());
        }
        row.u8()?;
        let formats = &self.prepared.formats;
        // The first two bits of the NULL bitmap are reserved.
        let nulls = row.bytes((formats.len() + 2).div_ceil(8))?;
        for (number, format) in formats.iter().enumerate() {
            let bit = number + 2;
            let is_null = nulls[bit / 8] >> (bit % 8) & 1 == 1;
            let cell = if is_null { Cell::NULL } else { cell(*format, &mut row, &mut self.result.converted)? };
            self.result.cells.push(cell);
        }
        self.result.end_row()
    }

    #[inline]
    fn changed(&mut self, rows: u64) {
        self.result.affected = rows;
    }
}

/// The next cell of a row. Binary dates, times and floats are converted to text in `converted`.
#[inline]
fn cell(format: BinaryFormat, row: &mut Reader<'_>, converted: &mut Vec<u8>) -> Result<Cell, SqlError> {
    let length = match format {
        BinaryFormat::Fixed(width) => width,
        BinaryFormat::LengthPrefixed => row.number()? as usize,
        _ => {
            let start = converted.len();
            write_text(format, row, converted)?;
            if converted.len() > MOST_CONVERTED {
                let detail = format!("the answer has more than {MOST_CONVERTED} bytes as text; ask for less at once");
                return Err(SqlError::protocol(detail));
            }
            return Ok(Cell::new(start, converted.len() - start));
        }
    };
    let start = row.at();
    row.bytes(length)?;
    Ok(Cell::new(start, length))
}

fn write_text(format: BinaryFormat, row: &mut Reader<'_>, converted: &mut Vec<u8>) -> Result<(), SqlError> {
    let done = match format {
        BinaryFormat::Float => write!(converted, "{}", f32::from_bits(row.u32()?)),
        BinaryFormat::Double => {
            let (low, high) = (row.u32()?, row.u32()?);
            write!(converted, "{}", f64::from_bits(u64::from(high) << 32 | u64::from(low)))
        }
        BinaryFormat::Time(places) => {
            let value = DateTime::time(row)?;
            let sign = if value.is_negative { "-" } else { "" };
            let hours = u64::from(value.days) * 24 + u64::from(value.hour);
            write!(converted, "{sign}{hours:02}:{:02}:{:02}{}", value.minute, value.second, value.fraction(places))
        }
        _ => {
            let value = DateTime::date(row)?;
            let DateTime { year, month, days, hour, minute, second, .. } = value;
            let date = write!(converted, "{year:04}-{month:02}-{days:02}");
            match format {
                BinaryFormat::DateTime(places) => {
                    write!(converted, " {hour:02}:{minute:02}:{second:02}{}", value.fraction(places))
                }
                _ => date,
            }
        }
    };
    done.map_err(|error| SqlError::protocol(error.to_string()))
}

/// A date, a time, or both; absent parts are zero.
#[derive(Default)]
struct DateTime {
    is_negative: bool,
    year: u16,
    month: u8,
    days: u32,
    hour: u8,
    minute: u8,
    second: u8,
    micros: u32,
}

impl DateTime {
    fn date(row: &mut Reader<'_>) -> Result<DateTime, SqlError> {
        let length = row.u8()?;
        let mut value = DateTime::default();
        if length >= 4 {
            (value.year, value.month, value.days) = (row.u16()?, row.u8()?, row.u8()?.into());
        }
        value.clock(row, length >= 7, length >= 11)
    }

    fn time(row: &mut Reader<'_>) -> Result<DateTime, SqlError> {
        let length = row.u8()?;
        let mut value = DateTime::default();
        if length >= 8 {
            (value.is_negative, value.days) = (row.u8()? != 0, row.u32()?);
        }
        value.clock(row, length >= 8, length >= 12)
    }

    fn clock(mut self, row: &mut Reader<'_>, has_time: bool, has_micros: bool) -> Result<DateTime, SqlError> {
        if has_time {
            (self.hour, self.minute, self.second) = (row.u8()?, row.u8()?, row.u8()?);
        }
        if has_micros {
            self.micros = row.u32()?;
        }
        Ok(self)
    }

    /// The decimal point and the fractional digits, if the column has any.
    fn fraction(&self, places: u8) -> String {
        match places {
            1..=6 => format!(".{}", &format!("{:06}", self.micros)[..usize::from(places)]),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal, Rows};
    use proptest::prelude::*;

    fn statement(parameters: usize, columns: &[(u8, bool, u8)]) -> PreparedStatement {
        let (formats, encodings) =
            columns.iter().map(|(column_type, sign, places)| column(*column_type, *sign, *places)).unzip();
        PreparedStatement {
            id: 9,
            parameter_types: vec![column_type::NULL; parameters],
            types_are_sent: false,
            formats,
            encodings,
        }
    }

    fn text_of(column_type: u8, places: u8, cell: &[u8]) -> String {
        let mut prepared = statement(0, &[(column_type, false, places)]);
        let (mut result, row) = (ResultSet::default(), [&[0, 0][..], cell].concat());
        let mut handler = FirstResult::new(&mut prepared, &mut result);
        handler.begin(1, false).unwrap();
        handler.row(Reader::new(&row, 0..row.len())).unwrap();
        let rows = Rows { bytes: &row, columns: prepared.columns(), result: &result };
        rows.text(0, 0).unwrap().unwrap().to_owned()
    }

    #[test]
    fn parameters_follow_their_types() {
        let price = Value::Decimal(Decimal { unscaled: -125, scale: 1 });
        let values = [Value::Int(-1), Value::Null, price, Value::Text("ab")];
        let mut out = Vec::new();
        statement(4, &[]).bind(&values, &mut out).unwrap();
        let expected: [&[u8]; 6] = [
            &[0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0],
            &[0b0010, 1],
            &[8, 0, 6, 0, 246, 0, 253, 0],
            &[0xff; 8],
            b"\x05-12.5",
            b"\x02ab",
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn types_are_sent_only_where_the_server_does_not_know_them() {
        let mut statement = statement(2, &[]);
        let sent = |statement: &mut PreparedStatement, values: [Value<'_>; 2]| {
            let mut out = Vec::new();
            statement.bind(&values, &mut out).unwrap();
            let types = out.split_off(11);
            (types[0] == 1).then(|| [types[1], types[3]])
        };
        assert_eq!(
            sent(&mut statement, [Value::Int(1), Value::Null]),
            Some([column_type::LONGLONG, column_type::NULL])
        );
        assert_eq!(sent(&mut statement, [Value::Int(2), Value::Null]), None);
        assert_eq!(
            sent(&mut statement, [Value::Int(2), Value::Text("a")]),
            Some([column_type::LONGLONG, column_type::VAR_STRING])
        );
        assert_eq!(sent(&mut statement, [Value::Null, Value::Null]), None);
        assert_eq!(sent(&mut statement, [Value::Text("b"), Value::Null]), Some([column_type::VAR_STRING; 2]));
        statement.resend_types();
        assert_eq!(sent(&mut statement, [Value::Text("b"), Value::Null]), Some([column_type::VAR_STRING; 2]));
    }

    #[test]
    fn texts_that_are_made_of_numbers_have_an_end() {
        let mut prepared = statement(0, &[(column_type::DOUBLE, false, 31); 64]);
        let mut result = ResultSet::default();
        let row = [vec![0; 10], 5e-324_f64.to_le_bytes().repeat(64)].concat();
        let mut handler = FirstResult::new(&mut prepared, &mut result);
        handler.begin(64, false).unwrap();
        let refused = std::iter::repeat_with(|| handler.row(Reader::new(&row, 0..row.len()))).find_map(Result::err);
        assert!(refused.unwrap().detail.contains("as text"));
        assert!(result.converted.len() < MOST_CONVERTED + 1000, "{} bytes", result.converted.len());
    }

    #[test]
    fn dates_and_times_become_text() {
        assert_eq!(text_of(column_type::DATE, 0, &[4, 0xea, 7, 11, 22]), "2026-11-22");
        assert_eq!(text_of(column_type::DATETIME, 0, &[7, 0xea, 7, 11, 22, 1, 2, 3]), "2026-11-22 01:02:03");
        assert_eq!(text_of(column_type::DATETIME, 3, &[4, 0xea, 7, 11, 22]), "2026-11-22 00:00:00.000");
        assert_eq!(
            text_of(column_type::TIMESTAMP, 6, &[11, 0xea, 7, 11, 22, 1, 2, 3, 5, 0, 0, 0]),
            "2026-11-22 01:02:03.000005"
        );
        assert_eq!(text_of(column_type::DATETIME, 0, &[0]), "0000-00-00 00:00:00");
        assert_eq!(text_of(column_type::TIME, 0, &[8, 1, 2, 0, 0, 0, 3, 4, 5]), "-51:04:05");
        assert_eq!(text_of(column_type::TIME, 2, &[12, 0, 0, 0, 0, 0, 3, 4, 5, 0x40, 0xe2, 1, 0]), "03:04:05.12");
        assert_eq!(text_of(column_type::DOUBLE, 0, &1.5_f64.to_le_bytes()), "1.5");
    }

    #[test]
    fn a_row_has_its_nulls_in_front() {
        let columns =
            [(column_type::LONG, false, 0), (column_type::VAR_STRING, false, 0), (column_type::TINY, true, 0)];
        let mut prepared = statement(0, &columns);
        let (mut result, row) = (ResultSet::default(), [0, 0b0000_1000, 0xfe, 0xff, 0xff, 0xff, 200]);
        let mut handler = FirstResult::new(&mut prepared, &mut result);
        handler.begin(3, false).unwrap();
        handler.row(Reader::new(&row, 0..row.len())).unwrap();
        let rows = Rows { bytes: &row, columns: prepared.columns(), result: &result };
        assert_eq!((rows.int(0, 0), rows.text(0, 1), rows.int(0, 2)), (Ok(Some(-2)), Ok(None), Ok(Some(200))));
    }

    proptest! {
        #[test]
        fn no_row_is_read_beyond_its_end(row in proptest::collection::vec(any::<u8>(), 0..60), parameter_types: [u8; 4]) {
            let mut prepared = statement(0, &parameter_types.map(|column_type| (column_type % 16, column_type > 127, column_type % 7)));
            let mut result = ResultSet::default();
            let mut handler = FirstResult::new(&mut prepared, &mut result);
            prop_assert!(handler.begin(4, false).is_ok());
            if handler.row(Reader::new(&row, 0..row.len())).is_ok() {
                let rows = Rows { bytes: &row, columns: prepared.columns(), result: &result };
                for column in 0..4 {
                    let _ = (rows.int(0, column), rows.text(0, column));
                }
            }
        }
    }
}
