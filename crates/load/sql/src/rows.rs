//! Rows of a result, decoded on access.

use crate::SqlError;
use crate::value::parse_decimal;
use plimsoll_model::record::ErrorKind;

/// The most cells of one result. NULL takes a bit or a few bytes on the wire, and more in memory.
const MOST_CELLS: usize = 4 * 1024 * 1024;

/// Rows as text, with the names of their columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Row by row, the cells; none for NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// The rows of a prepared statement, still encoded; valid until the connection's next call.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) columns: &'a [Encoding],
    pub(crate) result: &'a ResultSet,
}

/// How the cells of a column are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// A big-endian integer of the length of the cell.
    BigEndian,
    /// A little-endian integer.
    LittleEndian,
    /// An unsigned little-endian integer.
    Unsigned,
    /// A decimal number as text, with sign and point.
    DecimalText,
    /// Text padded with blanks, as in a CHAR column.
    BlankPadded,
    /// Text.
    Text,
    /// Text converted from a binary value, kept in [`ResultSet::converted`].
    Converted,
}

/// Offset and length of a cell in the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    start: u32,
    length: u32,
}

impl Cell {
    pub(crate) const NULL: Cell = Cell { start: 0, length: u32::MAX };

    /// A cell at `start`. Both fit into 32 bits, which bound the input.
    pub(crate) fn new(start: usize, length: usize) -> Cell {
        Cell { start: start as u32, length: length as u32 }
    }
}

/// The result of the last prepared statement. Its buffers are reused, so that running a statement does not
/// allocate.
#[derive(Debug, Default)]
pub(crate) struct ResultSet {
    /// Row by row.
    pub(crate) cells: Vec<Cell>,
    /// Texts of cells with [`Encoding::Converted`].
    pub(crate) converted: Vec<u8>,
    pub(crate) rows: usize,
    pub(crate) affected: u64,
}

impl ResultSet {
    /// Counts a row whose cells are added.
    ///
    /// # Errors
    /// The result has more cells than are kept.
    #[inline]
    pub(crate) fn end_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        at_most_cells(self.cells.len())
    }

    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.converted.clear();
        self.rows = 0;
        self.affected = 0;
    }
}

impl TextRows {
    /// Adds a row.
    ///
    /// # Errors
    /// There are more cells than are kept.
    pub(crate) fn add(&mut self, row: Vec<Option<String>>) -> Result<(), SqlError> {
        at_most_cells((self.rows.len() + 1) * row.len())?;
        self.rows.push(row);
        Ok(())
    }
}

fn at_most_cells(cells: usize) -> Result<(), SqlError> {
    if cells <= MOST_CELLS {
        return Ok(());
    }
    Err(SqlError::new(
        ErrorKind::Protocol,
        format!("the answer has more than {MOST_CELLS} cells; ask for less at once"),
    ))
}

impl<'a> Rows<'a> {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.result.rows
    }

    /// True if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows that were inserted, deleted, or found for an update, as the server reports it.
    #[must_use]
    pub fn affected(&self) -> u64 {
        self.result.affected
    }

    /// An integer; none for NULL.
    ///
    /// # Errors
    /// The column is no integer.
    pub fn int(&self, row: usize, column: usize) -> Result<Option<i64>, SqlError> {
        self.decimal(row, column, 0)
    }

    /// A number with a fixed point, in units of `10^-scale`; none for NULL.
    ///
    /// # Errors
    /// The column is no such number, or has more digits after the point.
    pub fn decimal(&self, row: usize, column: usize, scale: u8) -> Result<Option<i64>, SqlError> {
        let Some((encoding, bytes)) = self.cell(row, column)? else { return Ok(None) };
        let whole = match encoding {
            Encoding::BigEndian => big_endian(bytes),
            Encoding::LittleEndian => little_endian(bytes),
            Encoding::Unsigned => unsigned(bytes),
            Encoding::DecimalText => {
                let number = str::from_utf8(bytes).ok().and_then(|text| parse_decimal(text, scale));
                return number.map(Some).ok_or_else(|| wrong_type(row, column, bytes, "a number of that many places"));
            }
            Encoding::BlankPadded | Encoding::Text | Encoding::Converted => None,
        };
        let number = whole.and_then(|whole| whole.checked_mul(10_i64.checked_pow(scale.into())?));
        number.map(Some).ok_or_else(|| wrong_type(row, column, bytes, "a number"))
    }

    /// A text; none for NULL. Blanks at the end of a CHAR column are left out.
    ///
    /// # Errors
    /// The column is no text.
    pub fn text(&self, row: usize, column: usize) -> Result<Option<&'a str>, SqlError> {
        let Some((encoding, bytes)) = self.cell(row, column)? else { return Ok(None) };
        let text = match encoding {
            Encoding::BigEndian | Encoding::LittleEndian | Encoding::Unsigned => None,
            Encoding::BlankPadded => str::from_utf8(bytes).ok().map(|text| text.trim_end_matches(' ')),
            Encoding::DecimalText | Encoding::Text | Encoding::Converted => str::from_utf8(bytes).ok(),
        };
        text.map(Some).ok_or_else(|| wrong_type(row, column, bytes, "a text"))
    }

    fn cell(&self, row: usize, column: usize) -> Result<Option<(Encoding, &'a [u8])>, SqlError> {
        let (Some(encoding), true) = (self.columns.get(column), row < self.len()) else {
            let (rows, columns) = (self.len(), self.columns.len());
            let detail = format!("no row {row} and column {column} in an answer of {rows} rows and {columns} columns");
            return Err(SqlError::new(ErrorKind::Sql, detail));
        };
        let cell = self.result.cells[row * self.columns.len() + column];
        if cell.length == u32::MAX {
            return Ok(None);
        }
        let source = if *encoding == Encoding::Converted { self.result.converted.as_slice() } else { self.bytes };
        Ok(Some((*encoding, &source[cell.start as usize..][..cell.length as usize])))
    }
}

fn big_endian(bytes: &[u8]) -> Option<i64> {
    Some(match *bytes {
        [a, b] => i16::from_be_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_be_bytes([a, b, c, d]).into(),
        _ => i64::from_be_bytes(bytes.try_into().ok()?),
    })
}

fn little_endian(bytes: &[u8]) -> Option<i64> {
    Some(match *bytes {
        [a] => (a as i8).into(),
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        _ => i64::from_le_bytes(bytes.try_into().ok()?),
    })
}

fn unsigned(bytes: &[u8]) -> Option<i64> {
    let mut all = [0; 8];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    i64::try_from(u64::from_le_bytes(all)).ok()
}

fn wrong_type(row: usize, column: usize, bytes: &[u8], wanted: &str) -> SqlError {
    let found = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
    let detail = format!("column {column} of row {row} is not {wanted}: `{}`", found.escape_debug());
    SqlError::new(ErrorKind::Sql, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_cell<T>(encoding: Encoding, bytes: &[u8], look: impl Fn(Rows<'_>) -> T) -> T {
        let result = ResultSet { cells: vec![Cell::new(0, bytes.len())], rows: 1, ..ResultSet::default() };
        look(Rows { bytes, columns: &[encoding], result: &result })
    }

    #[test]
    fn whole_numbers_of_every_width_keep_their_sign() {
        let int = |encoding, bytes: &[u8]| with_cell(encoding, bytes, |rows| rows.int(0, 0).ok().flatten());
        assert_eq!(int(Encoding::BigEndian, &[0xff, 0xfe]), Some(-2));
        assert_eq!(int(Encoding::BigEndian, &(-3_i32).to_be_bytes()), Some(-3));
        assert_eq!(int(Encoding::BigEndian, &i64::MIN.to_be_bytes()), Some(i64::MIN));
        assert_eq!(int(Encoding::LittleEndian, &[0xff]), Some(-1));
        assert_eq!(int(Encoding::LittleEndian, &(-7_i32).to_le_bytes()), Some(-7));
        assert_eq!(int(Encoding::Unsigned, &[0xff]), Some(255));
        assert_eq!(int(Encoding::Unsigned, &u64::MAX.to_le_bytes()), None);
        assert_eq!(int(Encoding::DecimalText, b"-42"), Some(-42));
        assert_eq!(int(Encoding::DecimalText, b"42.00"), Some(42));
        assert_eq!(int(Encoding::DecimalText, b"42.01"), None);
        assert_eq!(int(Encoding::Text, b"42"), None);
    }

    #[test]
    fn a_whole_number_is_also_one_with_places() {
        let found = with_cell(Encoding::BigEndian, &12_i32.to_be_bytes(), |rows| rows.decimal(0, 0, 2));
        assert_eq!(found, Ok(Some(1200)));
    }

    #[test]
    fn blanks_at_the_end_are_kept_where_they_mean_something() {
        let text = |encoding| with_cell(encoding, b"ab  ", |rows| rows.text(0, 0).map(|text| text.map(str::to_owned)));
        assert_eq!(text(Encoding::BlankPadded), Ok(Some("ab".to_owned())));
        assert_eq!(text(Encoding::Text), Ok(Some("ab  ".to_owned())));
    }

    #[test]
    fn results_have_an_end() {
        let mut result = ResultSet { cells: vec![Cell::NULL; MOST_CELLS], ..ResultSet::default() };
        assert_eq!(result.end_row(), Ok(()));
        result.cells.push(Cell::NULL);
        assert_eq!(result.end_row().unwrap_err().kind, ErrorKind::Protocol);
        let mut rows = TextRows { columns: Vec::new(), rows: vec![Vec::new(); MOST_CELLS / 1024 - 1] };
        assert_eq!(rows.add(vec![None; 1024]), Ok(()));
        assert_eq!(rows.add(vec![None; 1024]).unwrap_err().kind, ErrorKind::Protocol);
    }

    #[test]
    fn null_is_none_whatever_the_column() {
        let result = ResultSet { cells: vec![Cell::NULL], rows: 1, ..ResultSet::default() };
        let rows = Rows { bytes: &[], columns: &[Encoding::BigEndian], result: &result };
        assert_eq!((rows.int(0, 0), rows.text(0, 0)), (Ok(None), Ok(None)));
    }

    #[test]
    fn what_is_not_there_is_an_error_that_says_what_is() {
        let error = with_cell(Encoding::Text, b"a", |rows| rows.text(1, 0).map(|_| ())).unwrap_err();
        assert!(error.detail.contains("1 rows and 1 columns"), "{}", error.detail);
    }
}
