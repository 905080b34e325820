//! Names of databases in a server, and of roles that log in to it.

use crate::document::{Fault, Faults, Span};
use crate::value::{Literal, Problem, Scalar};
use plimsoll_model::database::FROM_TEMPLATE;
use plimsoll_model::factor::Level;
use serde_json::{Value, json};

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

/// Databases that servers have of themselves, and the one that is copied from a template.
pub(crate) const DATABASES_OF_SERVERS: &[&str] = &[
    "information_schema",
    "mysql",
    "performance_schema",
    "postgres",
    FROM_TEMPLATE,
    "sys",
    "template0",
    "template1",
    "test",
];

/// Users and roles that servers have of themselves, and Plimsoll's own.
pub(crate) const ROLES_OF_SERVERS: &[&str] = &["mariadb", "mysql", "none", "plimsoll", "public", "root"];

/// The names, or the one that is usual.
pub(crate) fn names_or(names: Option<&[Literal<Identifier>]>, usual: &str) -> Vec<String> {
    let names: Vec<String> = names.unwrap_or_default().iter().map(|name| name.value.0.clone()).collect();
    if names.is_empty() { vec![usual.to_owned()] } else { names }
}

/// Refuses an empty list under `key` of the table at `place`, names that are `taken`, and names that stand in it twice.
pub(crate) fn check_names(
    key: &str,
    names: Option<&[Literal<Identifier>]>,
    taken: &[&str],
    place: &Span,
    faults: &mut Faults,
) -> Option<()> {
    let Some(names) = names else { return Some(()) };
    let mut fine = !names.is_empty();
    if names.is_empty() {
        let fault = Fault::error(place, format!("`{key}` is empty"));
        faults.add(fault.help(format!("leave it out, or name one: `{key} = [\"shop\"]`")));
    }
    for (index, name) in names.iter().enumerate() {
        let lower = name.value.0.to_lowercase();
        let reason = if names[..index].iter().any(|before| before.value == name.value) {
            "it stands in the list twice"
        } else if taken.contains(&lower.as_str()) || lower.starts_with("pg_") {
            "servers, or Plimsoll, have one of this name"
        } else {
            continue;
        };
        let fault = Fault::error(&name.span, format!("`{}` cannot be one of `{key}`: {reason}", name.value.0));
        faults.add(fault.help("choose another name"));
        fine = false;
    }
    fine.then_some(())
}
