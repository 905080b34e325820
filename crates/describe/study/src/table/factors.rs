//! `[factors]`: what the study varies.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, all_of, level_in_words, one_of, table};
use crate::table::root::StudyTable;
use crate::value::{Literal, is_name};
use plimsoll_model::factor::{Factor, Level, Role};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toml::de::DeValue;

table! {
    /// A factor whose levels are compared, or held fixed while others are compared.
    struct FactorTable {
        /// The values it takes.
        levels: Vec<Literal<Level>>,
        /// Whether its levels are compared. Default: false, a condition.
        compare: Option<Literal<bool>>,
        /// The level that the others are compared with; required with `compare = true`.
        baseline: Option<Literal<Level>>,
    }
}

/// All factors in the order of the file. Names are known even where the rest is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Factors(pub(crate) Vec<NamedFactor>);

/// A factor and its name.
#[derive(Clone, Debug)]
pub(crate) struct NamedFactor {
    pub(crate) name: String,
    /// Where the name stands.
    pub(crate) place: Span,
    /// `None` when something is wrong with it.
    pub(crate) factor: Option<Factor>,
}

impl Factors {
    /// The factors; `None` if one is wrong.
    pub(crate) fn all_valid(&self) -> Option<Vec<Factor>> {
        self.0.iter().map(|named| named.factor.clone()).collect()
    }

    /// True if a factor is compared, or may be meant to be: one that is wrong has a fault of its own.
    pub(crate) fn compare(&self) -> bool {
        self.0.iter().any(|named| named.factor.as_ref().is_none_or(Factor::is_compared))
    }

    /// True if the factor of this name is compared.
    pub(crate) fn is_compared(&self, name: &str) -> bool {
        self.0.iter().any(|named| named.name == name && named.factor.as_ref().is_some_and(Factor::is_compared))
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|named| named.name.as_str()).collect()
    }
}

impl FromToml for Factors {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let mut named = Vec::new();
        for (name, node) in table.entries() {
            check_name(name, node, faults);
            let factor = factor(name, node, faults);
            named.push(NamedFactor { name: (*name).to_owned(), place: node.place(), factor });
        }
        Some(Factors(named))
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        schemas.reference("Factors", |schemas| {
            json!({
                "type": "object",
                "additionalProperties": { "anyOf": [
                    { "type": "array", "minItems": 1, "items": <Literal<Level>>::json_schema(schemas) },
                    FactorTable::json_schema(schemas),
                ] },
            })
        })
    }
}

fn check_name(name: &str, node: &Node<'_>, faults: &mut Faults) {
    const TAKEN: [&str; 5] = ["port", "address", "files", "instance", "plimsoll"];
    if !is_name(name) {
        let message = format!("a factor cannot be named `{name}`");
        let help = "a name is a letter, then letters, digits, `_` and `-`, so that `{name}` can stand for it";
        faults.add(Fault::error(&node.place(), message).help(help));
    } else if TAKEN.contains(&name) {
        let message =
            format!("a factor cannot be named `{name}`: the placeholder `{{{name}}}` has a meaning of its own");
        faults.add(Fault::error(&node.place(), message).help("choose another name"));
    }
}

fn factor(name: &str, node: &Node<'_>, faults: &mut Faults) -> Option<Factor> {
    if let DeValue::Array(_) = node.value {
        let levels: Vec<Literal<Level>> = Vec::from_toml(node, faults)?;
        let levels = distinct(levels, &node.span, &node.path, faults)?;
        return Some(Factor { name: name.to_owned(), levels, role: Role::Condition });
    }
    if !matches!(node.value, DeValue::Table(_)) {
        let fault = node.wrong_type("an array of levels, or a table with `levels`");
        faults.add(fault.maybe_help(misplaced_key(name)));
        return None;
    }
    let table = FactorTable::from_toml(node, faults)?;
    let levels = distinct(table.levels.clone(), &node.span, &node.path, faults)?;
    let role = role(&table, &levels, &node.path, faults)?;
    Some(Factor { name: name.to_owned(), levels, role })
}

/// Help for a factor that has the name of a key of the study: the key probably stands below `[factors]`
/// by mistake.
pub(crate) fn misplaced_key(name: &str) -> Option<String> {
    let meant = StudyTable::KEYS.contains(&name);
    meant.then(|| {
        format!("below `[factors]`, `{name}` is a factor; if you mean the study's, write it above `[factors]`")
    })
}

/// The levels, if there are any and each is there once. Levels that read the same are the same:
/// in a report nobody could tell them apart.
fn distinct(levels: Vec<Literal<Level>>, span: &Span, path: &str, faults: &mut Faults) -> Option<Vec<Level>> {
    if levels.is_empty() {
        faults.add(Fault::error(span, format!("`{path}` has no levels")).help("name at least one"));
        return None;
    }
    let mut fine = true;
    let mut seen = BTreeSet::new();
    for level in &levels {
        if let Some((what, help)) = unreadable(&level.value) {
            faults.add(Fault::error(&level.span, format!("a level of `{path}` {what}")).help(help));
            fine = false;
            continue;
        }
        if !seen.insert(level.value.to_string()) {
            let message = format!("level `{}` of `{path}` is there twice", level.value);
            faults.add(Fault::error(&level.span, message).label("the same again").help("leave one of them out"));
            fine = false;
        }
    }
    fine.then(|| levels.into_iter().map(|level| level.value).collect())
}

/// What keeps a report from showing a level in a line, and what to write instead.
fn unreadable(level: &Level) -> Option<(&'static str, &'static str)> {
    let Level::Text(text) = level else { return None };
    if text.trim().is_empty() {
        let help = "name it, as in \"none\": a report could not show it. Where a command is to get nothing, let `sh -c` \
                    turn the name into that";
        return Some(("is empty", help));
    }
    text.chars().any(is_break).then_some((
        "has a line break in it",
        "write it in one line; what takes several belongs into a file, and its name into the level",
    ))
}

/// Whether a character breaks a line, or does something else than to be read.
fn is_break(character: char) -> bool {
    character.is_control() && character != '\t' || matches!(character, '\u{2028}' | '\u{2029}')
}

fn role(table: &FactorTable, levels: &[Level], path: &str, faults: &mut Faults) -> Option<Role> {
    let compare = table.compare.as_ref().is_some_and(|compare| compare.value);
    let texts: Vec<String> = levels.iter().map(Level::to_string).collect();
    let known = || texts.iter().map(String::as_str);
    match &table.baseline {
        None if !compare => Some(Role::Condition),
        None => {
            let help =
                format!("add `baseline = …` with the level that the others are compared with: {}", one_of(known()));
            faults.add(Fault::error(&table.place, format!("`{path}` is compared but has no baseline")).help(help));
            None
        }
        Some(baseline) if !compare => {
            let message = format!("`{path}` has a baseline but is not compared");
            faults.add(Fault::error(&baseline.span, message).help("add `compare = true`, or leave out the baseline"));
            None
        }
        Some(_) if levels.len() < 2 => {
            let message = format!("`{path}` is compared but has only one level");
            faults.add(Fault::error(&table.place, message).help("a comparison takes two levels or more"));
            None
        }
        Some(baseline) => {
            let position = levels.iter().position(|level| level.to_string() == baseline.value.to_string());
            if position.is_none() {
                let message = format!("baseline `{}` is not a level of `{path}`", baseline.value);
                faults.add(Fault::error(&baseline.span, message).help(format!("the levels are {}", all_of(known()))));
            }
            if let Some(level) = position.map(|position| &levels[position]).filter(|level| **level != baseline.value) {
                let (written, meant) = (level_in_words(&baseline.value), level_in_words(level));
                let fault = Fault::warning(&baseline.span, format!("the baseline is {written}, and the level {meant}"));
                faults.add(fault.help("both read the same, so that level is taken; write both alike"));
            }
            position.map(|baseline| Role::Compared { baseline })
        }
    }
}
