//! `only`: the trials in which a system is started.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, all_of, did_you_mean, unknown};
use crate::table::factors::Factors;
use crate::value::Literal;
use plimsoll_model::factor::{Assignment, Level};
use serde_json::{Value, json};
use toml::de::DeValue;

/// The levels that factors must have for a system to be started; never empty.
#[derive(Clone, Debug)]
pub(crate) struct Only(Vec<AllowedLevels>);

/// The levels of one factor.
#[derive(Clone, Debug)]
struct AllowedLevels {
    factor: String,
    /// Where the name of the factor stands.
    place: Span,
    levels: Vec<Literal<Level>>,
}

impl Only {
    /// Whether trials with these levels are among them. A factor that has no level here forbids
    /// nothing: some of those trials are.
    pub(crate) fn allows(&self, assignment: &Assignment) -> bool {
        self.0.iter().all(|limit| match assignment.get(&limit.factor) {
            Some(level) => limit.names(level),
            None => true,
        })
    }

    /// Faults for factors that the study does not have, and for levels that they do not have.
    pub(crate) fn check(&self, factors: &Factors, faults: &mut Faults) {
        for limit in &self.0 {
            match factors.0.iter().find(|named| named.name == limit.factor) {
                None => limit.report_factor(&factors.names(), faults),
                Some(named) => named.factor.iter().for_each(|factor| limit.check_levels(&factor.levels, faults)),
            }
        }
    }
}

impl AllowedLevels {
    fn names(&self, level: &Level) -> bool {
        // Levels that read the same are the same, as in `baseline`.
        self.levels.iter().any(|named| named.value.to_string() == level.to_string())
    }

    fn report_factor(&self, factors: &[&str], faults: &mut Faults) {
        faults.add(unknown("factor", &self.factor, factors.iter().copied(), &self.place));
    }

    fn check_levels(&self, known: &[Level], faults: &mut Faults) {
        let known: Vec<String> = known.iter().map(Level::to_string).collect();
        let known = || known.iter().map(String::as_str);
        for level in &self.levels {
            let written = level.value.to_string();
            if !known().any(|known| known == written) {
                let near = did_you_mean(&written, known());
                let help = near.unwrap_or_else(|| format!("the levels are {}", all_of(known())));
                let message = format!("`{written}` is not a level of `{}`", self.factor);
                faults.add(Fault::error(&level.span, message).help(help));
            }
        }
    }
}

impl FromToml for Only {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        if table.entries().is_empty() {
            let fault = Fault::error(&node.place(), format!("{} names no factor", node.name()));
            faults.add(fault.help("write `only = { FACTOR = \"LEVEL\" }`, or leave it out"));
            return None;
        }
        let limits: Vec<Option<AllowedLevels>> =
            table.entries().iter().map(|(name, node)| limit(name, node, faults)).collect();
        limits.into_iter().collect::<Option<_>>().map(Only)
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        let level = <Literal<Level>>::json_schema(schemas);
        json!({
            "type": "object",
            "minProperties": 1,
            "additionalProperties": { "anyOf": [level, { "type": "array", "minItems": 1, "items": level }] },
        })
    }
}

fn limit(factor: &str, node: &Node<'_>, faults: &mut Faults) -> Option<AllowedLevels> {
    let levels = match node.value {
        DeValue::Array(_) => Vec::from_toml(node, faults)?,
        _ => vec![Literal::from_toml(node, faults)?],
    };
    if levels.is_empty() {
        let fault = Fault::error(&node.span, format!("{} has no levels", node.name()));
        faults.add(fault.help("the system would never be started: name a level"));
        return None;
    }
    Some(AllowedLevels { factor: factor.to_owned(), place: node.place(), levels })
}
