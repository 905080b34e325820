//! A study's own SQL: transactions, parameters, and the scripts that load its data.

mod compiled;
mod feed;
mod parameter;
mod scripts;
mod user;

pub(crate) use scripts::load_scripts;

use crate::workload::{SqlUser, SqlWorkload, StatementName};
use compiled::CompiledTransactions;
use plimsoll_model::database::Engine;
use plimsoll_model::load::Share;
use plimsoll_model::sql::Transaction;
use plimsoll_sql::{Connection, SqlError};
use std::sync::Arc;
use user::OwnUser;

/// The most characters of a statement in its name.
const NAME_LENGTH: usize = 48;

/// Compiles the study's transactions, for a server of this engine if it is known.
pub(crate) fn workload(
    transactions: &[Transaction],
    engine: Option<Engine>,
    share: Share,
) -> Result<Box<dyn SqlWorkload>, String> {
    let mut compiled = CompiledTransactions::new(transactions, engine)?;
    compiled.feeds.iter_mut().for_each(|feed| feed.set_share(share));
    Ok(Box::new(OwnWorkload(Arc::new(compiled))))
}

/// The workload of a study's own transactions.
struct OwnWorkload(Arc<CompiledTransactions>);

impl SqlWorkload for OwnWorkload {
    fn statements(&self) -> Vec<StatementName> {
        self.0.statement_names()
    }

    fn user(&self, _index: u32, connection: Connection) -> Result<Box<dyn SqlUser>, SqlError> {
        Ok(Box::new(OwnUser::new(Arc::clone(&self.0), connection)?))
    }

    fn description(&self) -> String {
        self.0.description()
    }
}

/// The name of a statement in results: its number in the transaction, and its beginning.
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
