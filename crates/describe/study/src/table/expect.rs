//! `expect` of a database: rows that must be in it after the loads of a start.

use crate::document::{Fault, Faults, Span, table};
use crate::table::identifier::Identifier;
use crate::value::{Literal, Scope, Templated, Text, Word};
use plimsoll_model::database::ExpectedRow;

table! {
    /// A query that is asked after the loads of a start, and the value that it must give.
    struct ExpectTable {
        /// The query, which gives one row. Its first column is looked at.
        query: Templated<Text>,
        /// The value that it must give; two numbers are compared as numbers.
        equals: Templated<Word>,
        /// The database that is asked. Default: the first of the server's.
        database: Option<Literal<Identifier>>,
    }
}

/// First words of statements that only read.
const READING: [&str; 5] = ["select", "with", "show", "table", "values"];

impl ExpectTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<ExpectedRow> {
        let query = self.query.resolve(scope, faults);
        let equals = self.equals.resolve(scope, faults);
        let query = query?.0;
        let first = query.trim_start_matches(['(', ' ', '\n']).split_whitespace().next().unwrap_or_default();
        let first = first.to_lowercase();
        // Behind a comment it may be anything; it cannot write.
        let is_word = first.starts_with(char::is_alphabetic);
        if is_word && !READING.contains(&first.as_str()) {
            let fault = Fault::error(&self.query.span, format!("`{first} …` is no query that only reads"));
            faults.add(fault.help("ask for what must be there, as in `select count(*) from orders`"));
            return None;
        }
        let database = self.database.as_ref().map(|database| database.value.0.clone());
        Some(ExpectedRow { query, equals: equals?.0, database })
    }

    /// The database that it names, and where.
    pub(crate) fn database(&self) -> Option<(&str, &Span)> {
        self.database.as_ref().map(|database| (database.value.0.as_str(), &database.span))
    }
}
