//! One attempt at a transaction: its statements, each one heard of by a [`Watch`], and what their
//! answers must be.

use crate::terminal::{Ended, Watch};
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{Connection, Rows, SqlError, Statement, Value};

/// A statement of a transaction: its short name, and its text.
pub(super) type NamedStatement = (&'static str, &'static str);

/// The statements of a transaction, in the order in which it runs them first: the list
/// `STATEMENTS`, and an enumeration that says where each stands in it.
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

/// One attempt.
pub(super) struct Attempt<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) watch: &'a mut dyn Watch,
    /// The transaction's statements, and the same prepared.
    pub(super) named: &'static [NamedStatement],
    pub(super) prepared: &'a [Statement],
    /// The number that BEGIN has among all statements of the workload. The transaction's own
    /// statements follow, then COMMIT and ROLLBACK.
    pub(super) first: usize,
}

impl Attempt<'_> {
    /// Begins.
    pub(super) fn begin(&mut self) -> Result<(), SqlError> {
        self.control(0, "BEGIN")
    }

    /// Ends well.
    pub(super) fn commit(&mut self) -> Result<Ended, SqlError> {
        self.control(self.named.len() + 1, "COMMIT").map(|()| Ended::Committed)
    }

    /// Takes everything back.
    pub(super) fn roll_back(&mut self) -> Result<Ended, SqlError> {
        self.control(self.named.len() + 2, "ROLLBACK").map(|()| Ended::RolledBack)
    }

    fn control(&mut self, number: usize, text: &str) -> Result<(), SqlError> {
        self.watch.statement(self.first + number, &mut || self.connection.batch(text))
    }

    /// Runs a statement, and reads its answer.
    pub(super) fn read<T>(
        &mut self,
        which: impl Into<usize>,
        parameters: &[Value<'_>],
        mut read: impl FnMut(&Rows<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let which = which.into();
        let mut answer = None;
        self.watch.statement(self.first + 1 + which, &mut || {
            answer = Some(read(&self.connection.execute(self.prepared[which], parameters)?)?);
            Ok(())
        })?;
        Ok(answer.expect("a watch runs what it is given"))
    }

    /// The same with a statement that must give one row.
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
            found => Err(wrong(format!("{name} with {parameters:?}: expected one row, found {found}"))),
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
            changed => Err(wrong(format!(
                "{name} with {parameters:?}: expected {least} to {most} rows to change, {changed} did"
            ))),
        })
    }
}

/// An answer that is not what it must be.
pub(super) fn wrong(detail: impl Into<String>) -> SqlError {
    SqlError::new(ErrorKind::Check, detail)
}

/// A whole number that must be there, from the first row.
pub(super) fn int(rows: &Rows<'_>, column: usize) -> Result<i64, SqlError> {
    rows.int(0, column)?.ok_or_else(|| wrong(format!("expected a number in column {column}, found NULL")))
}

/// A number with a fixed point that must be there, from the first row, in units of `10^-scale`.
pub(super) fn decimal(rows: &Rows<'_>, column: usize, scale: u8) -> Result<i64, SqlError> {
    rows.decimal(0, column, scale)?.ok_or_else(|| wrong(format!("expected a number in column {column}, found NULL")))
}

/// A text that must be there, from the first row.
pub(super) fn text(rows: &Rows<'_>, column: usize) -> Result<String, SqlError> {
    rows.text(0, column)?
        .map(str::to_owned)
        .ok_or_else(|| wrong(format!("expected a text in column {column}, found NULL")))
}
