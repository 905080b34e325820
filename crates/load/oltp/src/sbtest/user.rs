//! One user of a test.

use super::Sbtest;
use super::content::{Row, fill_c};
use super::statement::{RANGE, Statement, is_transaction};
use crate::rollback::roll_back_after;
use crate::workload::{SqlUser, StatementObserver, TransactionEnd};
use plimsoll_feed::IntegerSampler;
use plimsoll_feed::RandomSource;
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{Connection, SqlError, Statement as Prepared, Value};

pub(super) struct SbtestUser {
    connection: Connection,
    groups: Vec<&'static [Statement]>,
    kinds: Vec<Statement>,
    ids: IntegerSampler,
    tables: u32,
    is_transaction: bool,
    /// The prepared statements: for each table, each of `kinds`.
    prepared: Vec<Prepared>,
    input: Input,
}

/// The input of the next transaction.
#[derive(Default)]
struct Input {
    actions: Vec<Action>,
    /// The new value of the column `c` for an update.
    c: String,
    /// The row that is inserted.
    row: Row,
}

#[derive(Clone, Copy)]
struct Action {
    statement: Statement,
    /// The index of the statement in `kinds`.
    kind: usize,
    prepared: Prepared,
    id: i64,
}

impl SbtestUser {
    pub(super) fn new(test: &Sbtest, mut connection: Connection) -> Result<SbtestUser, SqlError> {
        let mut prepared = Vec::new();
        for table in 1..=test.oltp.tables {
            for statement in &test.kinds {
                prepared.push(connection.prepare(&statement.sql(connection.engine(), table))?);
            }
        }
        Ok(SbtestUser {
            connection,
            groups: test.groups.clone(),
            kinds: test.kinds.clone(),
            ids: test.ids.clone(),
            tables: test.oltp.tables,
            is_transaction: is_transaction(test.oltp.test),
            prepared,
            input: Input::default(),
        })
    }

    fn run_statements(&mut self, observer: &mut dyn StatementObserver) -> Result<(), SqlError> {
        let SbtestUser { connection, input, is_transaction, kinds, .. } = self;
        let first = usize::from(*is_transaction);
        if *is_transaction {
            observer.statement(0, &mut || connection.batch("BEGIN"))?;
        }
        for action in &input.actions {
            observer.statement(first + action.kind, &mut || action.run(connection, input))?;
        }
        if *is_transaction {
            observer.statement(first + kinds.len(), &mut || connection.batch("COMMIT"))?;
        }
        Ok(())
    }
}

impl SqlUser for SbtestUser {
    fn draw_transaction(&mut self, random: &mut dyn RandomSource) -> usize {
        let Input { actions, c, row } = &mut self.input;
        actions.clear();
        for group in &self.groups {
            let table = random.between(1, self.tables.into()) as usize;
            let mut id = 0;
            for statement in *group {
                match statement {
                    Statement::Insert | Statement::NewRow => row.fill(&self.ids, random),
                    _ => id = self.ids.sample(random),
                }
                if *statement == Statement::UpdateNonIndex {
                    fill_c(c, random);
                }
                let kind = self.kinds.iter().position(|kind| kind == statement).expect("each is among the kinds");
                let prepared = self.prepared[(table - 1) * self.kinds.len() + kind];
                actions.push(Action { statement: *statement, kind, prepared, id });
            }
        }
        0
    }

    fn run_transaction(&mut self, observer: &mut dyn StatementObserver) -> Result<TransactionEnd, SqlError> {
        match self.run_statements(observer) {
            Ok(()) => Ok(TransactionEnd::Committed),
            Err(error) if self.is_transaction => Err(roll_back_after(&mut self.connection, error)),
            Err(error) => Err(error),
        }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Action {
    fn run(&self, connection: &mut Connection, input: &Input) -> Result<(), SqlError> {
        let id = Value::Int(self.id);
        let Input { c, row, .. } = input;
        let row = [id, Value::Int(row.k), Value::Text(&row.c), Value::Text(&row.pad)];
        let rows = match self.statement {
            Statement::PointSelect | Statement::UpdateIndex | Statement::Delete => {
                connection.execute(self.prepared, &[id])?
            }
            Statement::SimpleRange | Statement::SumRange | Statement::OrderRange | Statement::DistinctRange => {
                connection.execute(self.prepared, &[id, Value::Int(self.id + RANGE - 1)])?
            }
            Statement::UpdateNonIndex => connection.execute(self.prepared, &[Value::Text(c), id])?,
            Statement::Insert => connection.execute(self.prepared, &row)?,
            Statement::NewRow => connection.execute(self.prepared, &row[1..])?,
        };
        if self.statement == Statement::PointSelect && rows.len() != 1 {
            let (id, found) = (self.id, rows.len());
            return Err(SqlError::new(ErrorKind::Check, format!("expected one row with the id {id}, found {found}")));
        }
        Ok(())
    }
}
