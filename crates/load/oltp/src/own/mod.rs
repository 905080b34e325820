//! A study's own SQL: its transactions, what their parameters are, and the scripts that make its data.

mod compiled;
mod feed;
mod parameter;
mod scripts;
mod user;

pub(crate) use scripts::load_scripts;

use crate::terminal::{StatementName, Terminal, Workload};
use compiled::CompiledTransactions;
use plimsoll_model::database::Engine;
use plimsoll_model::sql::Transaction;
use plimsoll_sql::{Connection, SqlError};
use std::sync::Arc;
use user::User;

/// The most characters of a statement that stand for it in results.
const NAME_LENGTH: usize = 48;

/// The study's transactions; on a server of this engine, if that is known.
pub(crate) fn workload(transactions: &[Transaction], engine: Option<Engine>) -> Result<Box<dyn Workload>, String> {
    Ok(Box::new(Own(Arc::new(CompiledTransactions::new(transactions, engine)?))))
}

/// The study's transactions, ready for a trial.
struct Own(Arc<CompiledTransactions>);

impl Workload for Own {
    fn statements(&self) -> Vec<StatementName> {
        self.0.statement_names()
    }

    fn terminal(&self, _index: u32, _users: u32, connection: Connection) -> Result<Box<dyn Terminal>, SqlError> {
        Ok(Box::new(User::new(Arc::clone(&self.0), connection)?))
    }

    fn in_words(&self) -> String {
        self.0.in_words()
    }
}

/// A statement as results name it: its number in the transaction, and how it begins.
fn short_name(number: usize, sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(NAME_LENGTH) {
        Some((end, _)) => format!("{number}: {}…", &text[..end]),
        None => format!("{number}: {text}"),
    }
}

#[cfg(test)]
mod tests;
