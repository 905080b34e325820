//! `expect` of a database: rows that must be in it after the loads of a start.

use crate::document::{Fault, Faults, Span, table};
use crate::value::{Literal, Problem, Scalar, Scope, Templated, Text, Word, resolve_optional};
use plimsoll_model::database::ExpectedRow;
use plimsoll_model::factor::Level;
use serde_json::{Value, json};

table! {
    /// A query that is asked after the loads of a start, and what it must give.
    struct ExpectTable {
        /// The query, which gives one row. Its first column is looked at.
        query: Templated<Text>,
        /// What must stand there. Numbers are equal as numbers.
        equals: Templated<Word>,
        /// The database that is asked. Default: the first of the server's.
        database: Option<Literal<Identifier>>,
    }
}

/// What statements begin with that only read.
const READING: [&str; 5] = ["select", "with", "show", "table", "values"];

impl ExpectTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<ExpectedRow> {
        let query = self.query.resolve(scope, faults);
        let equals = resolve_optional(Some(&self.equals), |equals| equals.resolve(scope, faults));
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
        Some(ExpectedRow { query, equals: equals??.0, database })
    }

    /// The database that it names, and where.
    pub(crate) fn database(&self) -> Option<(&str, &Span)> {
        self.database.as_ref().map(|database| (database.value.0.as_str(), &database.span))
    }
}

/// The name of a database or a role, which needs no quoting on any server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier(pub(crate) String);

/// The longest name of a user in MySQL.
const LONGEST: usize = 32;

impl Scalar for Identifier {
    const EXPECTED: &'static str = "a name of at most 32 letters, digits and `_`";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(name) = level else { return Err(Problem::wrong::<Self>(level)) };
        let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let fits = begins && plain && name.len() <= LONGEST;
        if fits { Ok(Identifier(name.clone())) } else { Err(Problem::wrong::<Self>(level)) }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,31}$" })
    }
}
