//! sysbench's OLTP tests: the same tables, the same statements, in the same order (sysbench 1.0.20,
//! `oltp_common.lua`). All statements are prepared, also the insert, which sysbench sends as text.

mod content;
mod loader;
mod statement;
mod user;

pub(crate) use loader::load;

use crate::distribution::Numbers;
use crate::terminal::{StatementName, Terminal, Workload};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::{Distribution, Oltp, OltpTest};
use plimsoll_sql::{Connection, SqlError};
use statement::{Statement, is_transaction, statements};
use user::User;

/// The names of the tables.
pub(crate) fn tables(count: u32) -> Vec<String> {
    (1..=count).map(|table| format!("sbtest{table}")).collect()
}

/// One of the tests.
pub(crate) fn workload(oltp: &Oltp) -> Result<Box<dyn Workload>, String> {
    if oltp.tables == 0 || oltp.rows == 0 {
        let Oltp { tables, rows, .. } = oltp;
        return Err(format!("expected at least one table with one row, found {tables} tables of {rows} rows"));
    }
    let groups = statements(oltp.test);
    let mut kinds: Vec<Statement> = Vec::new();
    for statement in groups.iter().copied().flatten() {
        if !kinds.contains(statement) {
            kinds.push(*statement);
        }
    }
    let ids = Numbers::new(1, oltp.rows as i64, oltp.distribution);
    Ok(Box::new(Sbtest { oltp: oltp.clone(), groups, kinds, ids }))
}

/// A test, ready for a trial.
struct Sbtest {
    oltp: Oltp,
    /// Its statements in order.
    groups: Vec<&'static [Statement]>,
    /// The same, each once.
    kinds: Vec<Statement>,
    /// The rows that there are.
    ids: Numbers,
}

impl Workload for Sbtest {
    fn statements(&self) -> Vec<StatementName> {
        let own = self.kinds.iter().map(|statement| statement.name());
        let (begin, commit) =
            if is_transaction(self.oltp.test) { (Some("begin"), Some("commit")) } else { (None, None) };
        let names = begin.into_iter().chain(own).chain(commit);
        names.map(|name| StatementName { step: 0, name: name.to_owned() }).collect()
    }

    fn terminal(&self, index: u32, _users: u32, mut connection: Connection) -> Result<Box<dyn Terminal>, SqlError> {
        if index == 0 {
            self.look_at_rows(&mut connection)?;
        }
        Ok(Box::new(User::new(self, connection)?))
    }

    fn in_words(&self) -> String {
        let Oltp { test, tables, rows, distribution } = &self.oltp;
        let test = test.name();
        let tables = if *tables == 1 { "1 table".to_owned() } else { format!("{tables} tables") };
        format!("sysbench's {test}, {tables} of {rows} rows, {}", in_words(*distribution))
    }
}

impl Sbtest {
    /// Whether the tables have as many rows as the workload draws from: whoever deletes rows has
    /// fewer in the end.
    fn look_at_rows(&self, connection: &mut Connection) -> Result<(), SqlError> {
        for table in tables(self.oltp.tables) {
            let found = connection.query(&format!("SELECT MAX(id) FROM {table}"))?;
            let last = found.rows.into_iter().flatten().flatten().next().and_then(|id| id.parse::<u64>().ok());
            let last = last.unwrap_or(0);
            if last < self.oltp.rows && self.oltp.test != OltpTest::Delete {
                let expected = self.oltp.rows;
                return Err(SqlError::new(
                    ErrorKind::Check,
                    format!(
                        "expected {expected} rows in `{table}`, found {last}; load it with as many rows as the workload has"
                    ),
                ));
            }
        }
        Ok(())
    }
}

fn in_words(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => "uniform".to_owned(),
        Distribution::Special => "special".to_owned(),
        Distribution::Pareto(share) => format!("pareto {share}"),
        Distribution::Zipf(exponent) => format!("zipf {exponent}"),
    }
}
