//! One user of a study's own transactions.

use super::compiled::{CompiledStatement, CompiledTransactions};
use super::parameter::Values;
use crate::rollback::roll_back_after;
use crate::workload::{SqlUser, StatementObserver, TransactionEnd};
use plimsoll_feed::RandomSource;
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{Connection, SqlError, Statement, Value};
use std::sync::Arc;

pub(super) struct OwnUser {
    transactions: Arc<CompiledTransactions>,
    connection: Connection,
    /// The prepared statements of each transaction.
    prepared: Vec<Vec<Statement>>,
    /// The transaction that was drawn, and its values.
    transaction: usize,
    values: Values,
}

impl OwnUser {
    pub(super) fn new(
        transactions: Arc<CompiledTransactions>,
        mut connection: Connection,
    ) -> Result<OwnUser, SqlError> {
        let mut prepared = Vec::new();
        for transaction in &transactions.transactions {
            let statements = transaction.statements.iter().map(|statement| connection.prepare(&statement.sql));
            prepared.push(statements.collect::<Result<Vec<Statement>, SqlError>>()?);
        }
        Ok(OwnUser { transactions, connection, prepared, transaction: 0, values: Values::default() })
    }

    fn run_statements(&mut self, observer: &mut dyn StatementObserver) -> Result<(), SqlError> {
        let OwnUser { transactions, connection, prepared, transaction, values } = self;
        let compiled = &transactions.transactions[*transaction];
        let mut number = compiled.first;
        if compiled.atomic {
            observer.statement(number, &mut || connection.batch("BEGIN"))?;
            number += 1;
        }
        let mut parameters = Vec::with_capacity(compiled.sources.len());
        parameters.extend((0..compiled.sources.len()).map(|at| values.get(at, &compiled.sources, &transactions.feeds)));
        for (statement, prepared) in compiled.statements.iter().zip(&prepared[*transaction]) {
            let own = &parameters[statement.parameters.clone()];
            observer.statement(number, &mut || run(connection, statement, *prepared, own))?;
            number += 1;
        }
        if compiled.atomic {
            observer.statement(number, &mut || connection.batch("COMMIT"))?;
        }
        Ok(())
    }
}

impl SqlUser for OwnUser {
    fn draw_transaction(&mut self, random: &mut dyn RandomSource) -> usize {
        self.transaction = self.transactions.draw(random);
        self.values.draw(&self.transactions.transactions[self.transaction].sources, &self.transactions.feeds, random);
        self.transaction
    }

    fn run_transaction(&mut self, observer: &mut dyn StatementObserver) -> Result<TransactionEnd, SqlError> {
        match self.run_statements(observer) {
            Ok(()) => Ok(TransactionEnd::Committed),
            // Also if the transaction is not atomic: its own statements may begin one.
            Err(error) => Err(roll_back_after(&mut self.connection, error)),
        }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

fn run(
    connection: &mut Connection,
    statement: &CompiledStatement,
    prepared: Statement,
    parameters: &[Value<'_>],
) -> Result<(), SqlError> {
    let rows = connection.execute(prepared, parameters)?;
    let found = if rows.is_empty() { rows.affected() } else { rows.len() as u64 };
    match statement.rows {
        Some(expected) if expected != found => Err(SqlError::new(
            ErrorKind::Check,
            format!("expected {expected} rows, found {found}: `{}`", statement.sql),
        )),
        _ => Ok(()),
    }
}
