//! The paths of `response.json(path)`: a subset of GJSON's syntax.
//!
//! Supported are names, `*` and `?` in names, `\` as an escape, indices, `#` for the number of
//! elements, `#.name` for a member of each element, `#(query)` for the first match and `#(query)#` for
//! all. Modifiers, multipaths, literals and JSON lines are refused by name.
//!
//! A result is the original text: numbers keep their digits, objects their order.

mod path;
mod query;
#[cfg(test)]
mod tests;

use path::{Each, Step};
use plimsoll_javascript::busy::spend;
use plimsoll_model::json::Members;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How many bytes of JSON are read in a step of [`spend`].
const BYTES_OF_A_STEP: usize = 8;

/// Why a path has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GjsonFault {
    /// The text is no JSON.
    #[error("expected JSON, found something else: {0}")]
    NoJson(String),
    /// Syntax of GJSON that is not supported here.
    #[error("the path `{path}` has {what}, which is not supported here: take the value apart in the script")]
    Unsupported {
        /// The whole path.
        path: String,
        /// The unsupported syntax.
        what: &'static str,
    },
}

/// The JSON at a path of a text; `None` if there is none.
///
/// # Errors
/// The text is no JSON, or the path has syntax that is not supported.
pub fn get<'a>(json: &'a str, path: &str) -> Result<Option<Cow<'a, str>>, GjsonFault> {
    let steps = path::parse(path).map_err(|what| GjsonFault::Unsupported { path: path.to_owned(), what })?;
    let root: &RawValue = serde_json::from_str(json).map_err(|error| GjsonFault::NoJson(error.to_string()))?;
    Ok(find(root.get(), &steps))
}

/// The value at the end of the steps. The text is valid JSON. It calls itself only for what begins with `#`, of which a
/// path has few.
fn find<'a>(mut json: &'a str, mut steps: &[Step]) -> Option<Cow<'a, str>> {
    while let Some((step, rest)) = steps.split_first() {
        spend(json.len() / BYTES_OF_A_STEP + 1);
        json = match json.as_bytes().first() {
            Some(b'{') => {
                let name = step.name()?;
                members(json).into_iter().find(|(key, _)| name.matches(key))?.1.get()
            }
            Some(b'[') => {
                let elements = elements(json);
                match &step.each {
                    Each::Name => elements.get(step.index()?)?,
                    Each::First(query) => elements.iter().find(|element| query.matches(element))?,
                    Each::All if rest.is_empty() => return Some(Cow::Owned(elements.len().to_string())),
                    Each::All => return Some(list(elements.iter().filter_map(|element| find(element, rest)))),
                    Each::Matching(query) => {
                        let matching = elements.iter().filter(|element| query.matches(element));
                        return Some(list(matching.filter_map(|element| find(element, rest))));
                    }
                }
            }
            _ => return None,
        };
        steps = rest;
    }
    Some(Cow::Borrowed(json))
}

fn list<'a>(values: impl Iterator<Item = Cow<'a, str>>) -> Cow<'a, str> {
    Cow::Owned(format!("[{}]", values.collect::<Vec<_>>().join(",")))
}

fn elements(json: &str) -> Vec<&str> {
    let values: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    values.into_iter().map(RawValue::get).collect()
}

/// Names and values in the order of the text. Of members with one name, the first counts.
fn members(json: &str) -> Vec<(String, &RawValue)> {
    serde_json::from_str(json).map_or_else(|_| Vec::new(), |Members(members)| members)
}
