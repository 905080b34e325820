//! Templates: text with `{placeholders}`; `{{` and `}}` stand for braces. Placeholders are filled in for
//! each trial; those with a dollar sign, `{$name}`, are values that users of a flow know at run time, and
//! stay.

use plimsoll_model::factor::{Assignment, Level};
use std::fmt;

/// Text whose placeholders are filled in for each trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Placeholder(String),
    Value(UserValue),
}

/// A value that users know at run time, where it stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserValue {
    pub(crate) name: String,
    /// Whether it goes in as it is, `{$name|raw}`.
    pub(crate) raw: bool,
}

/// A part of a text that a trial has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilledSegment {
    Literal(String),
    Value(UserValue),
}

/// A brace that neither opens a placeholder nor stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrayBrace {
    /// What is wrong, to follow a name of the text.
    pub(crate) message: String,
    /// What stands there.
    pub(crate) found: String,
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Template, StrayBrace> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            literal.push_str(&rest[..brace]);
            let at = &rest[brace..];
            if at.starts_with("{{") || at.starts_with("}}") {
                literal.push_str(&at[..1]);
                rest = &at[2..];
                continue;
            }
            let (part, end) = placeholder(at)?;
            if !literal.is_empty() {
                parts.push(Segment::Literal(std::mem::take(&mut literal)));
            }
            parts.push(part);
            rest = &at[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Segment::Literal(literal));
        }
        Ok(Template(parts))
    }

    /// The names of its placeholders, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Segment::Placeholder(name) => Some(name.as_str()),
            Segment::Literal(_) | Segment::Value(_) => None,
        })
    }

    /// The values of users that it has, in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &UserValue> {
        self.0.iter().filter_map(|part| match part {
            Segment::Value(value) => Some(value),
            Segment::Literal(_) | Segment::Placeholder(_) => None,
        })
    }

    /// The text with every placeholder filled in. A text that is one placeholder and nothing else
    /// keeps the type of its value, so that `"{users}"` can be a number.
    ///
    /// # Errors
    ///
    /// The name of the first placeholder for which `value` has nothing.
    pub(crate) fn fill(&self, value: &dyn Fn(&str) -> Option<Level>) -> Result<Level, String> {
        let known = |name: &String| value(name).ok_or_else(|| name.clone());
        if let [Segment::Placeholder(name)] = self.0.as_slice() {
            return known(name);
        }
        let mut text = String::new();
        for part in self.filled(value)? {
            match part {
                FilledSegment::Literal(literal) => text.push_str(&literal),
                FilledSegment::Value(value) => text.push_str(&value.to_string()),
            }
        }
        Ok(Level::Text(text))
    }

    /// The text with every placeholder filled in, between the values of users.
    ///
    /// # Errors
    ///
    /// The name of the first placeholder for which `value` has nothing.
    pub(crate) fn filled(&self, value: &dyn Fn(&str) -> Option<Level>) -> Result<Vec<FilledSegment>, String> {
        let mut filled = Vec::new();
        for part in &self.0 {
            let text = match part {
                Segment::Literal(literal) => literal.clone(),
                Segment::Placeholder(name) => value(name).ok_or_else(|| name.clone())?.to_string(),
                Segment::Value(value) => {
                    filled.push(FilledSegment::Value(value.clone()));
                    continue;
                }
            };
            match filled.last_mut() {
                Some(FilledSegment::Literal(before)) => before.push_str(&text),
                _ => filled.push(FilledSegment::Literal(text)),
            }
        }
        Ok(filled)
    }
}

impl Template {
    /// The text for people, with the levels that are known; every other placeholder stands as it is.
    pub(crate) fn shown(&self, levels: &Assignment) -> String {
        let known = |name: &str| levels.get(name).cloned().unwrap_or_else(|| Level::Text(format!("{{{name}}}")));
        self.fill(&|name| Some(known(name))).map_or_else(|name| name, |level| level.to_string())
    }
}

impl fmt::Display for Template {
    /// As a study would write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Segment::Literal(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                Segment::Placeholder(name) => write!(f, "{{{name}}}")?,
                Segment::Value(value) => value.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for UserValue {
    /// As a study writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{${}{}}}", self.name, if self.raw { "|raw" } else { "" })
    }
}

/// The placeholder that a text starts with, and where its closing brace is.
fn placeholder(text: &str) -> Result<(Segment, usize), StrayBrace> {
    let stray = |message: &str, end: usize| StrayBrace { message: message.to_owned(), found: text[..end].to_owned() };
    if text.starts_with('}') {
        return Err(stray("has a `}` that closes nothing", 1));
    }
    let Some(end) = text.find('}') else {
        return Err(stray("has a `{` that nothing closes", 1));
    };
    let part = match text[1..end].strip_prefix('$') {
        Some(value) => runtime_value(value).map(Segment::Value),
        None => is_name(&text[1..end].replacen('.', "_", 1)).then(|| Segment::Placeholder(text[1..end].to_owned())),
    };
    let part = part.ok_or_else(|| stray("has braces around something that is not a name", end + 1))?;
    Ok((part, end))
}

/// `name`, `feed.column` or `name|raw`. Columns have the names that a file gives them.
fn runtime_value(text: &str) -> Option<UserValue> {
    let (name, raw) = text.strip_suffix("|raw").map_or((text, false), |name| (name, true));
    let is_value = match name.split_once('.') {
        Some((feed, column)) => is_name(feed) && !column.is_empty() && !column.contains(['{', '|']),
        None => is_name(name),
    };
    is_value.then(|| UserValue { name: name.to_owned(), raw })
}

/// Whether a factor or a system can have this name: a letter, then letters, digits, `_` and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|other| other.is_alphanumeric() || other == '_' || other == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(name: &str) -> Option<Level> {
        match name {
            "users" => Some(Level::Integer(10)),
            "counter.port" => Some(Level::Text("8080".to_owned())),
            _ => None,
        }
    }

    #[test]
    fn placeholders_are_filled_in_and_doubled_braces_stay() {
        let filled = |text: &str| Template::parse(text).expect(text).fill(&value);
        assert_eq!(filled("{users}"), Ok(Level::Integer(10)), "a number stays a number");
        assert_eq!(filled("-n {users}s"), Ok(Level::Text("-n 10s".to_owned())));
        assert_eq!(filled("{{\"a\": {counter.port}}}"), Ok(Level::Text("{\"a\": 8080}".to_owned())));
        assert_eq!(filled(""), Ok(Level::Text(String::new())));
        assert_eq!(filled("{nobody}"), Err("nobody".to_owned()));
    }

    #[test]
    fn stray_braces_are_faults() {
        for (text, found) in [("a { b", "{"), ("a } b", "}"), ("{}", "{}"), ("{a b}", "{a b}"), ("{a.b.c}", "{a.b.c}")]
        {
            assert_eq!(Template::parse(text).expect_err(text).found, found);
        }
    }

    #[test]
    fn values_of_users_stay_where_they_are() {
        let filled =
            Template::parse("/{users}/{$plan}?a={$account.first name}{$next|raw}").expect("text").filled(&value);
        let value = |name: &str, raw| FilledSegment::Value(UserValue { name: name.to_owned(), raw });
        let literal = |text: &str| FilledSegment::Literal(text.to_owned());
        let parts = [
            literal("/10/"),
            value("plan", false),
            literal("?a="),
            value("account.first name", false),
            value("next", true),
        ];
        assert_eq!(filled.as_deref(), Ok(&parts[..]));
        for wrong in ["{$}", "{$a b}", "{$a.}", "{$a|b}", "{$a.b|raw|raw}"] {
            assert_eq!(Template::parse(wrong).expect_err(wrong).found, wrong);
        }
    }

    fn part() -> impl Strategy<Value = Segment> {
        prop_oneof![
            "[a-z{} é\"]{1,8}".prop_map(Segment::Literal),
            "[a-z][a-z0-9_]{0,5}(\\.port)?".prop_map(Segment::Placeholder),
            ("[a-z][a-z0-9_]{0,5}(\\.[a-z ]{1,4})?", any::<bool>())
                .prop_map(|(name, raw)| Segment::Value(UserValue { name, raw })),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(parts in proptest::collection::vec(part(), 0..6)) {
            let template = Template(parts);
            let again = Template::parse(&template.to_string()).expect("written by us");
            // Neighbouring literals become one, so the texts are compared.
            prop_assert_eq!(again.to_string(), template.to_string());
            prop_assert_eq!(again.names().collect::<Vec<_>>(), template.names().collect::<Vec<_>>());
            prop_assert_eq!(again.values().collect::<Vec<_>>(), template.values().collect::<Vec<_>>());
        }

        #[test]
        fn a_level_comes_through_as_it_is(level in "\\PC{0,12}") {
            let filled = Template::parse("{x}").expect("a placeholder").fill(&|_| Some(Level::Text(level.clone())));
            prop_assert_eq!(filled, Ok(Level::Text(level)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[{}a.é $|]{0,12}") {
            let _ = Template::parse(&text);
        }
    }
}
