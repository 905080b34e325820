//! One user of a study's own transactions.

use super::compiled::{CompiledStatement, CompiledTransactions};
use super::parameter::Values;
use crate::rollback::roll_back_after;
use crate::terminal::{Draw, Ended, Terminal, Watch};
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{Connection, SqlError, Statement, Value};
use std::sync::Arc;

pub(super) struct User {
    plan: Arc<CompiledTransactions>,
    connection: Connection,
    /// For each transaction, its statements.
    prepared: Vec<Vec<Statement>>,
    /// The transaction that was drawn, and its values.
    transaction: usize,
    values: Values,
}

impl User {
    pub(super) fn new(plan: Arc<CompiledTransactions>, mut connection: Connection) -> Result<User, SqlError> {
        let mut prepared = Vec::new();
        for transaction in &plan.transactions {
            let statements = transaction.statements.iter().map(|statement| connection.prepare(&statement.sql));
            prepared.push(statements.collect::<Result<Vec<Statement>, SqlError>>()?);
        }
        Ok(User { plan, connection, prepared, transaction: 0, values: Values::default() })
    }

    fn run_statements(&mut self, watch: &mut dyn Watch) -> Result<(), SqlError> {
        let User { plan, connection, prepared, transaction, values } = self;
        let planned = &plan.transactions[*transaction];
        let mut number = planned.first;
        if planned.atomic {
            watch.statement(number, &mut || connection.batch("BEGIN"))?;
            number += 1;
        }
        let mut parameters = Vec::with_capacity(planned.sources.len());
        parameters.extend((0..planned.sources.len()).map(|at| values.get(at, &planned.sources, &plan.feeds)));
        for (statement, prepared) in planned.statements.iter().zip(&prepared[*transaction]) {
            let own = &parameters[statement.parameters.clone()];
            watch.statement(number, &mut || run(connection, statement, *prepared, own))?;
            number += 1;
        }
        if planned.atomic {
            watch.statement(number, &mut || connection.batch("COMMIT"))?;
        }
        Ok(())
    }
}

impl Terminal for User {
    fn draw(&mut self, draw: &mut dyn Draw) -> usize {
        self.transaction = self.plan.draw(draw);
        self.values.draw(&self.plan.transactions[self.transaction].sources, &self.plan.feeds, draw);
        self.transaction
    }

    fn run(&mut self, watch: &mut dyn Watch) -> Result<Ended, SqlError> {
        match self.run_statements(watch) {
            Ok(()) => Ok(Ended::Committed),
            // Also where the study begins transactions by statements of its own.
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
