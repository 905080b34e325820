//! `when` and `while`: what must hold of values.

use crate::diagnostic::{Fault, Span};
use crate::faults::Faults;
use crate::flowing::{Flowing, Use, ValueNames};
use crate::pairs::Entries;
use crate::scalar::Word;
use crate::scope::Scope;
use crate::table::http::uses_of;
use crate::template::Value;
use plimsoll_model::flow::{Comparison, Condition, Piece, Test, Text};

/// Values by name, each with a test; all must hold.
pub(crate) type Conditions = Entries<Flowing<Word>>;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Conditions {
    /// The conditions for the trial that `scope` stands for.
    pub(crate) fn resolve(
        &self,
        scope: &Scope<'_>,
        values: &ValueNames,
        faults: &mut Faults,
    ) -> Option<Vec<Condition>> {
        let mut resolve = |(name, flowing): (&str, &Flowing<Word>)| {
            let test = test(flowing.resolve(scope, values, faults)?);
            let test = test.map_err(|message| faults.add(unsound(&message, flowing))).ok()?;
            Some(Condition { value: values.reference(name)?, test })
        };
        let conditions: Vec<Option<Condition>> = self.iter().map(&mut resolve).collect();
        conditions.into_iter().collect()
    }

    /// The values that are tested.
    pub(crate) fn subjects(&self) -> Vec<Use> {
        let subject = |(name, place): (&str, &Span)| Use {
            value: Value { name: name.to_owned(), raw: false },
            span: place.clone(),
        };
        self.names().map(subject).collect()
    }

    /// The values that they are compared with.
    pub(crate) fn uses(&self) -> Vec<Use> {
        uses_of(self)
    }
}

fn unsound(message: &str, flowing: &Flowing<Word>) -> Fault {
    let help = "write a value, or one of ==, !=, <, <=, >, >=, `contains` and `matches` with a value, or `exists`, or `absent`";
    Fault::error(&flowing.span, message).help(help)
}

/// What a text such as `!= ''` demands; one without an operator is the value itself.
fn test(text: Text) -> Result<Test, String> {
    let text = trimmed(text);
    let first = match text.0.first() {
        Some(Piece::Literal(first)) => first.clone(),
        _ => String::new(),
    };
    match (first.as_str(), text.0.len()) {
        ("exists", 1) => return Ok(Test::Exists),
        ("absent", 1) => return Ok(Test::Absent),
        _ => {}
    }
    let word = |word: &str| first.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    if word("contains") {
        let with = unquoted(without_start(text, "contains"));
        return if with.0.is_empty() {
            Err("`contains` has nothing to look for".to_owned())
        } else {
            Ok(Test::Contains(with))
        };
    }
    if word("matches") {
        return match unquoted(without_start(text, "matches")).0.as_slice() {
            [Piece::Literal(pattern)] => Ok(Test::Matches(pattern.clone())),
            [] => Err("`matches` has no pattern".to_owned()),
            _ => Err("the pattern of `matches` is the same for all users".to_owned()),
        };
    }
    let found = COMPARISONS.iter().find(|(sign, _)| first.starts_with(sign));
    let (sign, comparison) = found.copied().unwrap_or(("", Comparison::Equal));
    Ok(Test::Compare { comparison, with: unquoted(without_start(text, sign)) })
}

/// The text without what it starts with, and without spaces around it.
fn without_start(mut text: Text, start: &str) -> Text {
    if let Some(Piece::Literal(first)) = text.0.first_mut() {
        *first = first[start.len()..].to_owned();
    }
    trimmed(text)
}

fn trimmed(mut text: Text) -> Text {
    if let Some(Piece::Literal(first)) = text.0.first_mut() {
        *first = first.trim_start().to_owned();
    }
    if let Some(Piece::Literal(last)) = text.0.last_mut() {
        *last = last.trim_end().to_owned();
    }
    text.0.retain(|piece| !matches!(piece, Piece::Literal(text) if text.is_empty()));
    text
}

/// The text without the quotes around it, if it has some: they hold an empty text, or spaces.
fn unquoted(text: Text) -> Text {
    let (Some(Piece::Literal(first)), Some(Piece::Literal(last))) = (text.0.first(), text.0.last()) else {
        return text;
    };
    let Some(quote) = first.chars().next().filter(|quote| matches!(quote, '\'' | '"')) else { return text };
    if !last.ends_with(quote) || (text.0.len() == 1 && first.len() == 1) {
        return text;
    }
    let mut pieces = text.0;
    if let Some(Piece::Literal(first)) = pieces.first_mut() {
        first.remove(0);
    }
    if let Some(Piece::Literal(last)) = pieces.last_mut() {
        last.pop();
    }
    pieces.retain(|piece| !matches!(piece, Piece::Literal(text) if text.is_empty()));
    Text(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::flow::{Reference, ValueId};

    fn literal(text: &str) -> Text {
        if text.is_empty() { Text::default() } else { Text(vec![Piece::Literal(text.to_owned())]) }
    }

    #[test]
    fn a_test_is_an_operator_and_a_value() {
        let compare = |comparison, with: &str| Test::Compare { comparison, with: literal(with) };
        for (written, means) in [
            ("queued", compare(Comparison::Equal, "queued")),
            ("== queued", compare(Comparison::Equal, "queued")),
            ("!= ''", compare(Comparison::NotEqual, "")),
            ("!=", compare(Comparison::NotEqual, "")),
            ("<= 10", compare(Comparison::AtMost, "10")),
            (">3", compare(Comparison::Greater, "3")),
            ("== ' a '", compare(Comparison::Equal, " a ")),
            ("'", compare(Comparison::Equal, "'")),
            ("existsnot", compare(Comparison::Equal, "existsnot")),
            ("exists", Test::Exists),
            (" absent ", Test::Absent),
            ("contains 'x y'", Test::Contains(literal("x y"))),
            ("containsx", compare(Comparison::Equal, "containsx")),
            (r"matches ^\d+$", Test::Matches(r"^\d+$".to_owned())),
        ] {
            assert_eq!(test(literal(written)), Ok(means), "{written}");
        }
        for wrong in ["contains", "contains ''", "matches"] {
            assert!(test(literal(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_stand_in_tests_too() {
        let value = || Piece::Value { value: Reference::Value(ValueId(3)), raw: false };
        let with_start = |start: &str, end: &str| {
            Text(vec![Piece::Literal(start.to_owned()), value(), Piece::Literal(end.to_owned())])
        };
        let equal = |with: Vec<Piece>| Ok(Test::Compare { comparison: Comparison::Equal, with: Text(with) });
        assert_eq!(test(with_start("== '", "'")), equal(vec![value()]));
        assert_eq!(test(Text(vec![value()])), equal(vec![value()]));
        assert_eq!(
            test(with_start("contains a", " ")),
            Ok(Test::Contains(Text(vec![Piece::Literal("a".to_owned()), value()])))
        );
        assert!(test(with_start("matches ", "")).is_err());
    }
}
