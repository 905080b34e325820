//! One attempt at a transaction. It runs each statement through a [`StatementObserver`], and checks the
//! result.

use crate::workload::{StatementObserver, TransactionEnd};
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{Connection, Rows, SqlError, Statement, Value};

/// A statement of a transaction: its short name, and its text.
pub(super) type NamedStatement = (&'static str, &'static str);

/// Declares the statements of a transaction, in the order of their first use: the list `STATEMENTS`, and
/// the enumeration `Sql` of their indexes in it.
macro_rules! statements {
    ($($which:ident: $name:literal, $text:literal;)*) => {
        #[derive(Clone, Copy)]
        enum Sql { $($which),* }

        impl From<Sql> for usize {
            fn from(which: Sql) -> usize {
                which as usize
            }
        }

        /// The statements of the transaction.
        pub(super) const STATEMENTS: &[$crate::tpcc::attempt::NamedStatement] = &[$(($name, $text)),*];
    };
}
pub(super) use statements;

/// One attempt at a transaction.
pub(super) struct Attempt<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) observer: &'a mut dyn StatementObserver,
    /// The transaction's statements, and their prepared forms.
    pub(super) named: &'static [NamedStatement],
    pub(super) prepared: &'a [Statement],
    /// The number that BEGIN has among all statements of the workload. The transaction's own
    /// statements follow, then COMMIT and ROLLBACK.
    pub(super) first: usize,
}

impl Attempt<'_> {
    /// Runs BEGIN.
    pub(super) fn begin(&mut self) -> Result<(), SqlError> {
        self.control(0, "BEGIN")
    }

    /// Runs COMMIT.
    pub(super) fn commit(&mut self) -> Result<TransactionEnd, SqlError> {
        self.control(self.named.len() + 1, "COMMIT").map(|()| TransactionEnd::Committed)
    }

    /// Runs ROLLBACK.
    pub(super) fn roll_back(&mut self) -> Result<TransactionEnd, SqlError> {
        self.control(self.named.len() + 2, "ROLLBACK").map(|()| TransactionEnd::RolledBack)
    }

    fn control(&mut self, number: usize, text: &str) -> Result<(), SqlError> {
        self.observer.statement(self.first + number, &mut || self.connection.batch(text))
    }

    /// Runs a statement, and reads its result with `read`.
    pub(super) fn read<T>(
        &mut self,
        which: impl Into<usize>,
        parameters: &[Value<'_>],
        mut read: impl FnMut(&Rows<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let which = which.into();
        let mut result = None;
        self.observer.statement(self.first + 1 + which, &mut || {
            result = Some(read(&self.connection.execute(self.prepared[which], parameters)?)?);
            Ok(())
        })?;
        Ok(result.expect("an observer calls its work"))
    }

    /// Does the same with a statement that must give one row.
    pub(super) fn read_one<T>(
        &mut self,
        which: impl Into<usize>,
        parameters: &[Value<'_>],
        mut read: impl FnMut(&Rows<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let which = which.into();
        let name = self.named[which].0;
        self.read(which, parameters, |rows| match rows.len() {
            1 => read(rows),
            found => Err(check_failed(format!("{name} with {parameters:?}: expected one row, found {found}"))),
        })
    }

    /// Runs a statement that must change one row.
    pub(super) fn change_one(&mut self, which: impl Into<usize>, parameters: &[Value<'_>]) -> Result<(), SqlError> {
        self.change(which, parameters, 1, 1)
    }

    /// Runs a statement that must change from `least` to `most` rows.
    pub(super) fn change(
        &mut self,
        which: impl Into<usize>,
        parameters: &[Value<'_>],
        least: u64,
        most: u64,
    ) -> Result<(), SqlError> {
        let which = which.into();
        let name = self.named[which].0;
        self.read(which, parameters, |rows| match rows.affected() {
            changed if (least..=most).contains(&changed) => Ok(()),
            changed => Err(check_failed(format!(
                "{name} with {parameters:?}: expected {least} to {most} rows to change, {changed} did"
            ))),
        })
    }
}

/// The error of a result that is not what it must be.
pub(super) fn check_failed(detail: impl Into<String>) -> SqlError {
    SqlError::new(ErrorKind::Check, detail)
}

/// Reads an integer of the first row, which must not be NULL.
pub(super) fn int(rows: &Rows<'_>, column: usize) -> Result<i64, SqlError> {
    rows.int(0, column)?.ok_or_else(|| check_failed(format!("expected a number in column {column}, found NULL")))
}

/// Reads a fixed-point number of the first row, in units of `10^-scale`, which must not be NULL.
pub(super) fn decimal(rows: &Rows<'_>, column: usize, scale: u8) -> Result<i64, SqlError> {
    rows.decimal(0, column, scale)?
        .ok_or_else(|| check_failed(format!("expected a number in column {column}, found NULL")))
}

/// Reads a text of the first row, which must not be NULL.
pub(super) fn text(rows: &Rows<'_>, column: usize) -> Result<String, SqlError> {
    rows.text(0, column)?
        .map(str::to_owned)
        .ok_or_else(|| check_failed(format!("expected a text in column {column}, found NULL")))
}
