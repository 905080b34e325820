//! Parameters and rows.

/// A parameter of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A whole number, of whatever size the column has.
    Int(i64),
    /// A number with a fixed point.
    Decimal(Decimal),
    /// A text; also for dates, in the form `2026-11-22 12:00:00`.
    Text(&'a str),
}

/// A number with a fixed point: `unscaled / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The digits.
    pub unscaled: i64,
    /// How many of them stand behind the point.
    pub scale: u8,
}

/// The rows that a statement gave, as they came; valid until the connection's next call.
pub trait Rows {
    /// How many rows.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows were changed, as the server says.
    fn affected(&self) -> u64;

    /// A whole number; none for NULL.
    ///
    /// # Errors
    /// The column is no whole number.
    fn int(&self, row: usize, column: usize) -> Result<Option<i64>, crate::SqlError>;

    /// A number with a fixed point, in units of `10^-scale`; none for NULL.
    ///
    /// # Errors
    /// The column is no such number, or has more digits behind the point.
    fn decimal(&self, row: usize, column: usize, scale: u8) -> Result<Option<i64>, crate::SqlError>;

    /// A text; none for NULL. Blanks at the end of a CHAR column are left out.
    ///
    /// # Errors
    /// The column is no text.
    fn text(&self, row: usize, column: usize) -> Result<Option<&str>, crate::SqlError>;
}
