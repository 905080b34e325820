//! sysbench's OLTP tests: the same tables, and the same statements in the same order (sysbench 1.0.20,
//! `oltp_common.lua`). All statements are prepared. sysbench itself sends the insert as text.

mod content;
mod loader;
mod statement;
mod user;

pub(crate) use loader::load;

use crate::workload::{SqlUser, SqlWorkload, StatementName};
use plimsoll_feed::IntegerSampler;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::{Distribution, Oltp, OltpTest};
use plimsoll_sql::{Connection, SqlError};
use statement::{Statement, is_transaction, statements};
use user::SbtestUser;

/// The names of the tables.
pub(crate) fn tables(count: u32) -> Vec<String> {
    (1..=count).map(|table| format!("sbtest{table}")).collect()
}

/// Compiles one of the tests.
pub(crate) fn workload(oltp: &Oltp) -> Result<Box<dyn SqlWorkload>, String> {
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
    let ids = IntegerSampler::new(1, oltp.rows as i64, oltp.distribution);
    Ok(Box::new(Sbtest { oltp: oltp.clone(), groups, kinds, ids }))
}

/// The workload of one test.
struct Sbtest {
    oltp: Oltp,
    /// Its statements in order, in groups on one table each.
    groups: Vec<&'static [Statement]>,
    /// Each of its statements once.
    kinds: Vec<Statement>,
    /// Draws the ids of rows.
    ids: IntegerSampler,
}

impl SqlWorkload for Sbtest {
    fn statements(&self) -> Vec<StatementName> {
        let own = self.kinds.iter().map(|statement| statement.name());
        let (begin, commit) =
            if is_transaction(self.oltp.test) { (Some("begin"), Some("commit")) } else { (None, None) };
        let names = begin.into_iter().chain(own).chain(commit);
        names.map(|name| StatementName { step: 0, name: name.to_owned() }).collect()
    }

    fn user(&self, index: u32, mut connection: Connection) -> Result<Box<dyn SqlUser>, SqlError> {
        if index == 0 {
            self.check_rows(&mut connection)?;
        }
        Ok(Box::new(SbtestUser::new(self, connection)?))
    }

    fn description(&self) -> String {
        let Oltp { test, tables, rows, distribution } = &self.oltp;
        let test = test.name();
        let tables = if *tables == 1 { "1 table".to_owned() } else { format!("{tables} tables") };
        format!("sysbench's {test}, {tables} of {rows} rows, {}", in_words(*distribution))
    }
}

impl Sbtest {
    /// Checks that the tables have all rows that the workload draws from. A test that deletes rows is
    /// not checked: it leaves fewer.
    fn check_rows(&self, connection: &mut Connection) -> Result<(), SqlError> {
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
