//! Queries: `#(path operator value)`.

use super::find;
use super::path::{self, Pattern, Step};

/// Longer ones first: `<=` also begins with `<`.
const OPERATORS: [(&str, Operator); 9] = [
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("!%", Operator::Unlike),
    ("=", Operator::Equal),
    ("<", Operator::Below),
    (">", Operator::Above),
    ("%", Operator::Like),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    Unequal,
    Below,
    AtMost,
    Above,
    AtLeast,
    Like,
    Unlike,
}

/// What an element must be to be taken.
#[derive(Debug)]
pub(super) struct Query {
    /// The path inside of the element; empty for the element itself.
    path: Vec<Step>,
    /// Without one, the path must lead to something.
    test: Option<(Operator, String)>,
}

impl Query {
    /// Reads what stands between the brackets.
    pub(super) fn parse(text: &str) -> Result<Query, &'static str> {
        let (path, test) = match operator(text) {
            Some((at, sign, operator)) => (&text[..at], Some((operator, value(&text[at + sign.len()..])?))),
            None => (text, None),
        };
        let path = path.trim();
        Ok(Query { path: if path.is_empty() { Vec::new() } else { path::parse(path)? }, test })
    }

    pub(super) fn matches(&self, element: &str) -> bool {
        let is_composite = element.starts_with(['{', '[']);
        // An element has a path inside, or is compared itself: never both.
        if is_composite == self.path.is_empty() {
            return false;
        }
        let found = find(element, &self.path);
        match (&found, &self.test) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(found), Some((operator, value))) => compare(found, *operator, value),
        }
    }
}

/// The first operator that does not stand in quotes or brackets.
fn operator(text: &str) -> Option<(usize, &'static str, Operator)> {
    let (mut depth, mut quoted) = (0, false);
    text.char_indices().find_map(|(at, c)| {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        let (sign, operator) = OPERATORS.iter().find(|(sign, _)| text[at..].starts_with(sign))?;
        (depth == 0 && !quoted).then_some((at, *sign, *operator))
    })
}

/// The value as it is compared: a text without its quotes, anything else as it is written.
fn value(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        tilde if tilde.starts_with('~') => Err("a comparison as truth values (`~`)"),
        quoted if quoted.starts_with('"') => serde_json::from_str(quoted).map_err(|_| "a text that does not end"),
        other => Ok(other.to_owned()),
    }
}

/// Compares by what the element is: texts as texts, numbers as numbers. Null, objects and arrays
/// are like nothing.
fn compare(found: &str, operator: Operator, value: &str) -> bool {
    match found.as_bytes()[0] {
        b'"' => {
            let found: String = serde_json::from_str(found).unwrap_or_default();
            match operator {
                Operator::Like => Pattern::new(value).matches(&found),
                Operator::Unlike => !Pattern::new(value).matches(&found),
                _ => ordered(operator, found.as_str(), value),
            }
        }
        b't' => truth(operator, true, value),
        b'f' => truth(operator, false, value),
        b'n' | b'{' | b'[' => false,
        _ => ordered(operator, found.parse::<f64>().unwrap_or(0.0), value.parse().unwrap_or(0.0)),
    }
}

fn truth(operator: Operator, found: bool, value: &str) -> bool {
    match value {
        "true" => ordered(operator, found, true),
        "false" => ordered(operator, found, false),
        _ => operator == Operator::Unequal,
    }
}

fn ordered<T: PartialOrd + Copy>(operator: Operator, found: T, value: T) -> bool {
    match operator {
        Operator::Equal => found == value,
        Operator::Unequal => found != value,
        Operator::Below => found < value,
        Operator::AtMost => found <= value,
        Operator::Above => found > value,
        Operator::AtLeast => found >= value,
        Operator::Like | Operator::Unlike => false,
    }
}
