//! The transactions of a study, compiled: statements, sources of parameters, and weights.

use super::feed::Feed;
use super::parameter::Source;
use super::short_name;
use crate::workload::StatementName;
use plimsoll_feed::RandomSource;
use plimsoll_model::database::Engine;
use plimsoll_model::sql::{OwnStatement, Transaction};
use std::ops::Range;

/// The transactions of a study, compiled once and shared by all users.
pub(super) struct CompiledTransactions {
    pub(super) transactions: Vec<CompiledTransaction>,
    pub(super) feeds: Vec<Feed>,
    /// The sum of all weights.
    total_weight: u64,
}

/// One transaction of the study.
pub(super) struct CompiledTransaction {
    name: String,
    weight: u64,
    pub(super) atomic: bool,
    pub(super) statements: Vec<CompiledStatement>,
    /// The parameters of all its statements, in order.
    pub(super) sources: Vec<Source>,
    /// The number of its first statement among all of the workload. That is BEGIN if it is atomic.
    pub(super) first: usize,
}

/// One statement of a transaction.
pub(super) struct CompiledStatement {
    pub(super) sql: String,
    /// The range of its parameters among those of the transaction.
    pub(super) parameters: Range<usize>,
    /// The number of rows that it must give or change.
    pub(super) rows: Option<u64>,
}

impl CompiledTransactions {
    pub(super) fn new(transactions: &[Transaction], engine: Option<Engine>) -> Result<CompiledTransactions, String> {
        let mut all = CompiledTransactions { transactions: Vec::new(), feeds: Vec::new(), total_weight: 0 };
        for transaction in transactions {
            let first = all.statement_names().len();
            let compiled = CompiledTransaction::new(transaction, engine, first, &mut all.feeds)?;
            all.total_weight += compiled.weight;
            all.transactions.push(compiled);
        }
        if all.total_weight == 0 {
            return Err("expected at least one transaction with a weight above 0, found none".to_owned());
        }
        Ok(all)
    }

    /// Draws the next transaction by weight.
    pub(super) fn draw(&self, random: &mut dyn RandomSource) -> usize {
        let mut point = random.between(0, self.total_weight as i64 - 1) as u64;
        let drawn = self.transactions.iter().position(|transaction| {
            let is_drawn = point < transaction.weight;
            point = point.saturating_sub(transaction.weight);
            is_drawn
        });
        drawn.expect("the point is below the sum of all weights")
    }

    pub(super) fn statement_names(&self) -> Vec<StatementName> {
        let mut names = Vec::new();
        for (step, transaction) in self.transactions.iter().enumerate() {
            let own = transaction.statements.iter().zip(1..);
            let own = own.map(|(statement, number)| short_name(number, &statement.sql));
            let (begin, commit) =
                if transaction.atomic { (Some("begin".to_owned()), Some("commit".to_owned())) } else { (None, None) };
            names.extend(begin.into_iter().chain(own).chain(commit).map(|name| StatementName { step, name }));
        }
        names
    }

    pub(super) fn description(&self) -> String {
        let named = self.transactions.iter().map(|one| format!("{} (weight {})", one.name, one.weight));
        format!("the study's own SQL: {}", named.collect::<Vec<_>>().join(", "))
    }
}

impl CompiledTransaction {
    fn new(
        transaction: &Transaction,
        engine: Option<Engine>,
        first: usize,
        feeds: &mut Vec<Feed>,
    ) -> Result<CompiledTransaction, String> {
        let Transaction { name, weight, atomic, statements } = transaction;
        let (mut compiled, mut sources) = (Vec::new(), Vec::new());
        for (statement, number) in statements.iter().zip(1..) {
            let at = |fault: String| format!("transaction `{name}`, statement {number}: {fault}");
            check_placeholders(statement, engine).map_err(at)?;
            let before = sources.len();
            for (parameter, number) in statement.parameters.iter().zip(1..) {
                let source = Source::new(parameter, sources.len() + 1, feeds);
                sources.push(source.map_err(|fault| at(format!("parameter {number}: {fault}")))?);
            }
            let (sql, rows) = (statement.sql.clone(), statement.rows);
            compiled.push(CompiledStatement { sql, parameters: before..sources.len(), rows });
        }
        let (name, weight) = (name.clone(), u64::from(*weight));
        Ok(CompiledTransaction { name, weight, atomic: *atomic, statements: compiled, sources, first })
    }
}

/// Checks that a statement has a parameter for each placeholder. Without an engine, the placeholders
/// of any engine will do.
fn check_placeholders(statement: &OwnStatement, engine: Option<Engine>) -> Result<(), String> {
    let engines = engine.map_or(vec![Engine::Postgresql, Engine::Mariadb], |engine| vec![engine]);
    let expected = engines.into_iter().map(|engine| plimsoll_sql::placeholders(&statement.sql, engine));
    let (expected, found): (Vec<usize>, usize) = (expected.collect(), statement.parameters.len());
    if expected.contains(&found) {
        return Ok(());
    }
    let (expected, sql) = (expected[0], &statement.sql);
    Err(format!("expected a parameter for each of its {expected} placeholders, found {found}: `{sql}`"))
}
