//! A statement that MariaDB has prepared: how its parameters go out, and its rows come in.

use super::packet::{self, Reader, put_counted};
use super::results::{Sink, descriptions};
use super::{Abilities, EXECUTE};
use crate::rows::{Cell, Encoding, Reply};
use crate::value::wrong_count;
use crate::wire::Wire;
use crate::{SqlError, Value};
use std::io::Write;

/// Types, as in `enum_field_types`.
mod kind {
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

/// A prepared statement.
pub(super) struct Prepared {
    id: u32,
    /// The type of each parameter, as the server knows it from the last time.
    kinds: Vec<u8>,
    /// Whether the server knows them.
    are_known: bool,
    shapes: Vec<Shape>,
    encodings: Vec<Encoding>,
}

/// How the cells of a column lie in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// So many bytes.
    Fixed(usize),
    /// After their length.
    Counted,
    Float,
    Double,
    Date,
    /// With so many places of a second.
    DateTime(u8),
    Time(u8),
}

impl Prepared {
    /// Reads the answer to the command that prepares it.
    pub(super) fn read(wire: &mut Wire, abilities: Abilities) -> Result<Prepared, SqlError> {
        let (_, content) = packet::next(wire)?;
        let mut reader = Reader::new(wire.input(), content.clone());
        if reader.u8()? != 0 {
            return Err(packet::error(wire.input(), content));
        }
        let id = reader.u32()?;
        let (columns, parameters) = (reader.u16()?.into(), reader.u16()?.into());
        let kinds = vec![kind::NULL; parameters];
        let mut prepared = Prepared { id, kinds, are_known: false, shapes: Vec::new(), encodings: Vec::new() };
        descriptions(wire, abilities, parameters, |_| Ok(()))?;
        descriptions(wire, abilities, columns, |description| prepared.add_column(description))?;
        Ok(prepared)
    }

    pub(super) fn columns(&self) -> &[Encoding] {
        &self.encodings
    }

    /// Writes the command that runs it.
    #[inline]
    pub(super) fn bind(&mut self, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), SqlError> {
        if values.len() != self.kinds.len() {
            return Err(wrong_count(self.kinds.len(), values.len()));
        }
        out.push(EXECUTE);
        out.extend_from_slice(&self.id.to_le_bytes());
        // No cursor, and once.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if values.is_empty() {
            return Ok(());
        }
        let nulls = out.len();
        out.resize(nulls + values.len().div_ceil(8), 0);
        for (number, value) in values.iter().enumerate() {
            let kind = match value {
                Value::Null => {
                    out[nulls + number / 8] |= 1 << (number % 8);
                    continue; // of any type
                }
                Value::Int(_) => kind::LONGLONG,
                Value::Decimal(_) => kind::NEWDECIMAL,
                Value::Text(_) => kind::VAR_STRING,
            };
            self.are_known &= self.kinds[number] == kind;
            self.kinds[number] = kind;
        }
        self.put_kinds(out);
        for value in values {
            match value {
                Value::Null => {}
                Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Decimal(number) => put_short(number, out),
                Value::Text(text) => put_counted(text.as_bytes(), out),
            }
        }
        Ok(())
    }

    /// Types follow where the server does not know them.
    fn put_kinds(&mut self, out: &mut Vec<u8>) {
        out.push(u8::from(!self.are_known));
        if !self.are_known {
            out.extend(self.kinds.iter().flat_map(|kind| [*kind, 0]));
        }
        self.are_known = true;
    }

    /// After a command that failed, perhaps before the server has read it.
    pub(super) fn forget_kinds(&mut self) {
        self.are_known = false;
    }

    fn forget_columns(&mut self) {
        self.shapes.clear();
        self.encodings.clear();
    }

    fn add_column(&mut self, mut description: Reader<'_>) -> Result<(), SqlError> {
        // Catalogue, database, table, column, both with their own names.
        for _ in 0..6 {
            description.counted()?;
        }
        // A length, the character set, and the width.
        description.bytes(1 + 2 + 4)?;
        let (kind, flags, decimals) = (description.u8()?, description.u16()?, description.u8()?);
        let (shape, encoding) = column(kind, flags & IS_UNSIGNED != 0, decimals);
        self.shapes.push(shape);
        self.encodings.push(encoding);
        Ok(())
    }
}

fn column(kind: u8, is_unsigned: bool, decimals: u8) -> (Shape, Encoding) {
    let whole = |width| (Shape::Fixed(width), if is_unsigned { Encoding::Unsigned } else { Encoding::LittleEndian });
    match kind {
        kind::TINY => whole(1),
        kind::SHORT | kind::YEAR => whole(2),
        kind::LONG | kind::INT24 => whole(4),
        kind::LONGLONG => whole(8),
        kind::FLOAT => (Shape::Float, Encoding::Made),
        kind::DOUBLE => (Shape::Double, Encoding::Made),
        kind::DATE => (Shape::Date, Encoding::Made),
        kind::DATETIME | kind::TIMESTAMP => (Shape::DateTime(decimals), Encoding::Made),
        kind::TIME => (Shape::Time(decimals), Encoding::Made),
        0 | kind::NEWDECIMAL => (Shape::Counted, Encoding::Digits),
        _ => (Shape::Counted, Encoding::Text),
    }
}

/// Something short as text, after its length.
fn put_short(value: &impl std::fmt::Display, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0);
    write!(out, "{value}").expect("memory takes every write");
    out[start] = (out.len() - start - 1) as u8;
}

/// Takes the first result with rows; another can only be that of a procedure.
pub(super) struct Execution<'a> {
    prepared: &'a mut Prepared,
    reply: &'a mut Reply,
    results: usize,
}

impl<'a> Execution<'a> {
    pub(super) fn new(prepared: &'a mut Prepared, reply: &'a mut Reply) -> Execution<'a> {
        Execution { prepared, reply, results: 0 }
    }
}

impl Sink for Execution<'_> {
    #[inline]
    fn begin(&mut self, columns: usize, are_new: bool) -> Result<(), SqlError> {
        self.results += 1;
        if self.results == 1 && are_new {
            self.prepared.forget_columns();
        } else if self.results == 1 && columns != self.prepared.shapes.len() {
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
        let shapes = &self.prepared.shapes;
        // Its first two bits mean nothing.
        let nulls = row.bytes((shapes.len() + 2).div_ceil(8))?;
        for (number, shape) in shapes.iter().enumerate() {
            let bit = number + 2;
            let is_null = nulls[bit / 8] >> (bit % 8) & 1 == 1;
            let cell = if is_null { Cell::NULL } else { cell(*shape, &mut row, &mut self.reply.made)? };
            self.reply.cells.push(cell);
        }
        self.reply.rows += 1;
        Ok(())
    }

    #[inline]
    fn changed(&mut self, rows: u64) {
        self.reply.affected = rows;
    }
}

/// The next cell of a row. What has no text of its own gets one in `made`.
#[inline]
fn cell(shape: Shape, row: &mut Reader<'_>, made: &mut Vec<u8>) -> Result<Cell, SqlError> {
    let length = match shape {
        Shape::Fixed(width) => width,
        Shape::Counted => row.number()? as usize,
        _ => {
            let start = made.len();
            write_text(shape, row, made)?;
            return Ok(Cell::new(start, made.len() - start));
        }
    };
    let start = row.at();
    row.bytes(length)?;
    Ok(Cell::new(start, length))
}

fn write_text(shape: Shape, row: &mut Reader<'_>, made: &mut Vec<u8>) -> Result<(), SqlError> {
    let done = match shape {
        Shape::Float => write!(made, "{}", f32::from_bits(row.u32()?)),
        Shape::Double => {
            let (low, high) = (row.u32()?, row.u32()?);
            write!(made, "{}", f64::from_bits(u64::from(high) << 32 | u64::from(low)))
        }
        Shape::Time(places) => {
            let moment = Moment::time(row)?;
            let sign = if moment.is_negative { "-" } else { "" };
            let hours = u64::from(moment.days) * 24 + u64::from(moment.hour);
            write!(made, "{sign}{hours:02}:{:02}:{:02}{}", moment.minute, moment.second, moment.fraction(places))
        }
        _ => {
            let moment = Moment::date(row)?;
            let Moment { year, month, days, hour, minute, second, .. } = moment;
            let date = write!(made, "{year:04}-{month:02}-{days:02}");
            match shape {
                Shape::DateTime(places) => {
                    write!(made, " {hour:02}:{minute:02}:{second:02}{}", moment.fraction(places))
                }
                _ => date,
            }
        }
    };
    done.map_err(|error| SqlError::protocol(error.to_string()))
}

/// A date, a time, or both; what does not come is zero.
#[derive(Default)]
struct Moment {
    is_negative: bool,
    year: u16,
    month: u8,
    days: u32,
    hour: u8,
    minute: u8,
    second: u8,
    micros: u32,
}

impl Moment {
    fn date(row: &mut Reader<'_>) -> Result<Moment, SqlError> {
        let length = row.u8()?;
        let mut moment = Moment::default();
        if length >= 4 {
            (moment.year, moment.month, moment.days) = (row.u16()?, row.u8()?, row.u8()?.into());
        }
        moment.clock(row, length >= 7, length >= 11)
    }

    fn time(row: &mut Reader<'_>) -> Result<Moment, SqlError> {
        let length = row.u8()?;
        let mut moment = Moment::default();
        if length >= 8 {
            (moment.is_negative, moment.days) = (row.u8()? != 0, row.u32()?);
        }
        moment.clock(row, length >= 8, length >= 12)
    }

    fn clock(mut self, row: &mut Reader<'_>, has_time: bool, has_micros: bool) -> Result<Moment, SqlError> {
        if has_time {
            (self.hour, self.minute, self.second) = (row.u8()?, row.u8()?, row.u8()?);
        }
        if has_micros {
            self.micros = row.u32()?;
        }
        Ok(self)
    }

    /// The point and what stands behind it, where the column has places for it.
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

    fn statement(parameters: usize, columns: &[(u8, bool, u8)]) -> Prepared {
        let (shapes, encodings) = columns.iter().map(|(kind, sign, places)| column(*kind, *sign, *places)).unzip();
        Prepared { id: 9, kinds: vec![kind::NULL; parameters], are_known: false, shapes, encodings }
    }

    fn text_of(kind: u8, places: u8, cell: &[u8]) -> String {
        let mut prepared = statement(0, &[(kind, false, places)]);
        let (mut reply, row) = (Reply::default(), [&[0, 0][..], cell].concat());
        let mut execution = Execution::new(&mut prepared, &mut reply);
        execution.begin(1, false).unwrap();
        execution.row(Reader::new(&row, 0..row.len())).unwrap();
        let rows = Rows { bytes: &row, columns: prepared.columns(), reply: &reply };
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
        let sent = |statement: &mut Prepared, values: [Value<'_>; 2]| {
            let mut out = Vec::new();
            statement.bind(&values, &mut out).unwrap();
            let types = out.split_off(11);
            (types[0] == 1).then(|| [types[1], types[3]])
        };
        assert_eq!(sent(&mut statement, [Value::Int(1), Value::Null]), Some([kind::LONGLONG, kind::NULL]));
        assert_eq!(sent(&mut statement, [Value::Int(2), Value::Null]), None);
        assert_eq!(sent(&mut statement, [Value::Int(2), Value::Text("a")]), Some([kind::LONGLONG, kind::VAR_STRING]));
        assert_eq!(sent(&mut statement, [Value::Null, Value::Null]), None);
        assert_eq!(sent(&mut statement, [Value::Text("b"), Value::Null]), Some([kind::VAR_STRING; 2]));
        statement.forget_kinds();
        assert_eq!(sent(&mut statement, [Value::Text("b"), Value::Null]), Some([kind::VAR_STRING; 2]));
    }

    #[test]
    fn dates_and_times_become_text() {
        assert_eq!(text_of(kind::DATE, 0, &[4, 0xea, 7, 11, 22]), "2026-11-22");
        assert_eq!(text_of(kind::DATETIME, 0, &[7, 0xea, 7, 11, 22, 1, 2, 3]), "2026-11-22 01:02:03");
        assert_eq!(text_of(kind::DATETIME, 3, &[4, 0xea, 7, 11, 22]), "2026-11-22 00:00:00.000");
        assert_eq!(
            text_of(kind::TIMESTAMP, 6, &[11, 0xea, 7, 11, 22, 1, 2, 3, 5, 0, 0, 0]),
            "2026-11-22 01:02:03.000005"
        );
        assert_eq!(text_of(kind::DATETIME, 0, &[0]), "0000-00-00 00:00:00");
        assert_eq!(text_of(kind::TIME, 0, &[8, 1, 2, 0, 0, 0, 3, 4, 5]), "-51:04:05");
        assert_eq!(text_of(kind::TIME, 2, &[12, 0, 0, 0, 0, 0, 3, 4, 5, 0x40, 0xe2, 1, 0]), "03:04:05.12");
        assert_eq!(text_of(kind::DOUBLE, 0, &1.5_f64.to_le_bytes()), "1.5");
    }

    #[test]
    fn a_row_has_its_nulls_in_front() {
        let columns = [(kind::LONG, false, 0), (kind::VAR_STRING, false, 0), (kind::TINY, true, 0)];
        let mut prepared = statement(0, &columns);
        let (mut reply, row) = (Reply::default(), [0, 0b0000_1000, 0xfe, 0xff, 0xff, 0xff, 200]);
        let mut execution = Execution::new(&mut prepared, &mut reply);
        execution.begin(3, false).unwrap();
        execution.row(Reader::new(&row, 0..row.len())).unwrap();
        let rows = Rows { bytes: &row, columns: prepared.columns(), reply: &reply };
        assert_eq!((rows.int(0, 0), rows.text(0, 1), rows.int(0, 2)), (Ok(Some(-2)), Ok(None), Ok(Some(200))));
    }

    proptest! {
        #[test]
        fn no_row_is_read_beyond_its_end(row in proptest::collection::vec(any::<u8>(), 0..60), kinds: [u8; 4]) {
            let mut prepared = statement(0, &kinds.map(|kind| (kind % 16, kind > 127, kind % 7)));
            let mut reply = Reply::default();
            let mut execution = Execution::new(&mut prepared, &mut reply);
            prop_assert!(execution.begin(4, false).is_ok());
            if execution.row(Reader::new(&row, 0..row.len())).is_ok() {
                let rows = Rows { bytes: &row, columns: prepared.columns(), reply: &reply };
                for column in 0..4 {
                    let _ = (rows.int(0, column), rows.text(0, column));
                }
            }
        }
    }
}
