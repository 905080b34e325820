//! `when` and `while`: what must hold of values.

use crate::document::{Fault, Faults, Span, nearest};
use crate::table::capture::Pattern;
use crate::table::http::value_uses;
use crate::value::{Entries, Problem, Scope, UserTemplate, UserValue, ValueNames, ValueUse, Word};
use plimsoll_model::flow::{Comparison, Condition, Piece, Test, Text};

/// Values by name, each with a test; all must hold.
pub(crate) type Conditions = Entries<UserTemplate<Word>>;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// What operators consist of, here and elsewhere.
const SIGNS: &str = "=!<>~";

/// Operators of other languages, and what they are here.
const ELSEWHERE: [(&str, &str); 9] = [
    ("=", "=="),
    ("===", "=="),
    ("!", "!="),
    ("!==", "!="),
    ("<>", "!="),
    ("=<", "<="),
    ("=>", ">="),
    ("~", "matches"),
    ("=~", "matches"),
];

const WORDS: [&str; 4] = ["contains", "matches", "exists", "absent"];

const FORMS: &str =
    "write a value, or one of ==, !=, <, <=, >, >=, `contains` and `matches` with a value, or `exists`, or `absent`";

impl Conditions {
    /// The conditions for the trial that `scope` stands for.
    pub(crate) fn resolve(
        &self,
        scope: &Scope<'_>,
        values: &ValueNames,
        faults: &mut Faults,
    ) -> Option<Vec<Condition>> {
        let mut resolve = |(name, template): (&str, &UserTemplate<Word>)| {
            let text = template.resolve(scope, values, faults)?;
            misspelt_operator(&text).into_iter().for_each(|meant| faults.add(likely_operator(meant, template)));
            let test = test(text).map_err(|problem| faults.add(template.fault(problem))).ok()?;
            Some(Condition { value: values.reference(name)?, test })
        };
        let conditions: Vec<Option<Condition>> = self.iter().map(&mut resolve).collect();
        conditions.into_iter().collect()
    }

    /// `page is 3 and token exists`, for people.
    pub(crate) fn in_words(&self) -> String {
        let one = |(name, template): (&str, &UserTemplate<Word>)| {
            let written = template.as_written();
            let first = written.split(' ').next().unwrap_or_default();
            let has_operator = written.starts_with(|c| SIGNS.contains(c)) || WORDS.contains(&first);
            format!("{name} {}{written}", if has_operator { "" } else { "is " })
        };
        self.iter().map(one).collect::<Vec<_>>().join(" and ")
    }

    /// The values that are tested.
    pub(crate) fn subjects(&self) -> Vec<ValueUse> {
        let subject = |(name, place): (&str, &Span)| ValueUse {
            value: UserValue { name: name.to_owned(), raw: false },
            span: place.clone(),
        };
        self.names().map(subject).collect()
    }

    /// The values that they are compared with.
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        value_uses(self)
    }
}

/// What a text such as `!= ''` demands; one without an operator is the value itself.
fn test(text: Text) -> Result<Test, Problem> {
    let text = trimmed(text);
    let first = begin(&text).to_owned();
    match (first.as_str(), text.0.len()) {
        ("exists", 1) => return Ok(Test::Exists),
        ("absent", 1) => return Ok(Test::Absent),
        _ => {}
    }
    let word = |word: &str| first.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    if word("contains") {
        let with = unquoted(without_start(text, "contains"));
        return if with.0.is_empty() {
            Err(Problem::new("has nothing to look for behind `contains`").help(FORMS))
        } else {
            Ok(Test::Contains(with))
        };
    }
    if word("matches") {
        return pattern(&unquoted(without_start(text, "matches"))).map(Test::Matches);
    }
    let (sign, comparison) = operator(&first)?;
    Ok(Test::Compare { comparison, with: unquoted(without_start(text, sign)) })
}

fn pattern(text: &Text) -> Result<String, Problem> {
    match text.0.as_slice() {
        [Piece::Literal(text)] => {
            let no_pattern = |reason| Problem::new("has no regular expression behind `matches`").help(reason);
            Pattern::parse(text).map(|pattern| pattern.text).map_err(no_pattern)
        }
        [] => Err(Problem::new("has no regular expression behind `matches`").help(FORMS)),
        _ => Err(Problem::new("has an expression with a value of users in it").help("it is the same for all of them")),
    }
}

/// The operator that a text begins with; without one it is to be equal.
fn operator(text: &str) -> Result<(&'static str, Comparison), Problem> {
    let sign = &text[..text.find(|c| !SIGNS.contains(c)).unwrap_or(text.len())];
    if sign.is_empty() {
        return Ok(("", Comparison::Equal));
    }
    if sign == "<" && is_markup(text) {
        let help = format!("for a text that begins so, write `== {text}`; to compare, write a space behind `<`");
        return Err(Problem::new("looks like markup, and begins with an operator").help(help));
    }
    let known = COMPARISONS.iter().find(|(known, _)| *known == sign);
    known.copied().ok_or_else(|| {
        let elsewhere = ELSEWHERE.iter().find(|(foreign, _)| *foreign == sign).map(|(_, meant)| *meant);
        let end = || COMPARISONS.iter().find(|(known, _)| sign.ends_with(known)).map(|(known, _)| *known);
        let meant = elsewhere.or_else(end);
        let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
        let help = format!("{meant}for a text that begins so, write `== {text}`");
        Problem::new(format!("begins with `{sign}`, which is no operator")).help(help)
    })
}

/// Whether a text is more likely a tag than a comparison: `<html>`, `</a>`.
fn is_markup(text: &str) -> bool {
    text.contains('>') && text[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
}

/// The word of [`WORDS`] that a text seems to be meant to begin with, though it does not.
fn misspelt_operator(text: &Text) -> Option<&'static str> {
    let first = begin(text).trim_start().split(' ').next().filter(|first| !WORDS.contains(first))?;
    nearest(first, WORDS)
}

/// Warns that a text is compared as it is, though it looks like the operator `meant`.
fn likely_operator(meant: &str, template: &UserTemplate<Word>) -> Fault {
    let written = template.as_written();
    Fault::warning(&template.span, format!("the value is compared with the text `{written}`"))
        .help(format!("did you mean `{meant}`? if not, write `== {written}`"))
}

/// What a text begins with, if that is no value.
fn begin(text: &Text) -> &str {
    match text.0.first() {
        Some(Piece::Literal(first)) => first,
        _ => "",
    }
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
            ("== =< 50", compare(Comparison::Equal, "=< 50")),
            ("== '>= x'", compare(Comparison::Equal, ">= x")),
            ("!= == x", compare(Comparison::NotEqual, "== x")),
            ("== <html>", compare(Comparison::Equal, "<html>")),
            ("< b>", compare(Comparison::Less, "b>")),
            ("<b", compare(Comparison::Less, "b")),
            (">= -1", compare(Comparison::AtLeast, "-1")),
        ] {
            assert_eq!(test(literal(written)), Ok(means), "{written}");
        }
        for wrong in
            ["contains", "contains ''", "matches", "matches (", "=< 50", ">>= 12", "= 5", "!x", "===", "<html>", "</a>"]
        {
            assert!(test(literal(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_operator_of_another_language_is_told_what_it_is_here() {
        for (written, meant) in [
            ("=< 50", "did you mean `<=`? for a text that begins so, write `== =< 50`"),
            (">>= 12", "did you mean `>=`? for a text that begins so, write `== >>= 12`"),
            ("<>x", "did you mean `!=`? for a text that begins so, write `== <>x`"),
            ("=~ ^a", "did you mean `matches`? for a text that begins so, write `== =~ ^a`"),
            ("~~~~~ x", "for a text that begins so, write `== ~~~~~ x`"),
        ] {
            let sign = written.split([' ', 'x']).next().expect("a sign");
            let problem = Problem::new(format!("begins with `{sign}`, which is no operator")).help(meant);
            assert_eq!(test(literal(written)), Err(problem));
        }
    }

    #[test]
    fn a_word_that_is_nearly_an_operator_is_doubted() {
        for (written, meant) in [
            ("contain x", Some("contains")),
            ("exist", Some("exists")),
            ("match ^a", Some("matches")),
            ("contains x", None),
            ("exists", None),
            ("done", None),
            ("== exist", None),
        ] {
            assert_eq!(misspelt_operator(&literal(written)), meant, "{written}");
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
