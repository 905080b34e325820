//! Checks of replies, and conditions on values.

use super::capture::{InspectedReply, Query};
use super::template::{Template, TemplateContext, ValueRef, excerpt};
use super::value::ValueView;
use memchr::memmem;
use plimsoll_engine::protocol::Failure;
use plimsoll_engine::schedule::Random;
use plimsoll_model::flow::{Comparison, Pick};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Nanos;
use regex::bytes::Regex;
use std::cmp::Ordering;

/// The checks of a reply.
pub(super) struct Checks {
    /// The status must be one of these, or below 400 if the list is empty.
    pub(super) status: Vec<u16>,
    pub(super) within: Option<Nanos>,
    pub(super) header: Vec<(String, Template)>,
    pub(super) json: Vec<(Query, Template)>,
    pub(super) contains: Vec<Template>,
    pub(super) matches: Vec<Regex>,
}

/// A condition on a value.
pub(super) struct Condition {
    pub(super) place: ValueRef,
    pub(super) test: Test,
}

pub(super) enum Test {
    Exists,
    Absent,
    Compare(Comparison, Template),
    Contains(Template),
    Matches(Regex),
}

impl Checks {
    pub(super) fn needs_body(&self) -> bool {
        !(self.json.is_empty() && self.contains.is_empty() && self.matches.is_empty())
    }

    /// Checks the status.
    pub(super) fn check_status(&self, inspected: &InspectedReply<'_>) -> Result<(), Failure> {
        let status = inspected.reply.status;
        let fits = if self.status.is_empty() { status < 400 } else { self.status.contains(&status) };
        if fits {
            return Ok(());
        }
        let wanted: Vec<String> = self.status.iter().map(u16::to_string).collect();
        let wanted = match &*wanted {
            [] => "a status below 400".to_owned(),
            wanted => format!("status {}", wanted.join(" or ")),
        };
        let body =
            if inspected.reply.body.is_empty() { String::new() } else { format!(" with {}", inspected.excerpt()) };
        Err(Failure::new(ErrorKind::Status, format!("expected {wanted}, found {status}{body}")))
    }

    /// Checks all but the status. `took` is the duration of the step, redirects included.
    pub(super) fn check_rest(
        &self,
        inspected: &InspectedReply<'_>,
        context: &mut TemplateContext<'_>,
        took: Nanos,
    ) -> Result<(), Failure> {
        if let Some(within) = self.within.filter(|within| took > *within) {
            let (within, took) = (within.seconds() * 1e3, took.seconds() * 1e3);
            return Err(failed(format!("expected the reply within {within} ms, found it after {took:.1} ms")));
        }
        self.header.iter().try_for_each(|(name, expected)| check_header(name, expected, inspected, context))?;
        self.json.iter().try_for_each(|(query, expected)| check_json(query, expected, inspected, context))?;
        for expected in &self.contains {
            let expected = context.render(expected)?;
            if !holds(&inspected.reply.body, &expected) {
                let (expected, found) = (excerpt(&expected), inspected.excerpt());
                return Err(failed(format!("expected a body that contains `{expected}`, found {found}")));
            }
        }
        let mismatch = self.matches.iter().find(|pattern| !pattern.is_match(&inspected.reply.body));
        mismatch.map_or(Ok(()), |pattern| {
            Err(failed(format!("expected a body that matches `{pattern}`, found {}", inspected.excerpt())))
        })
    }
}

fn check_header(
    name: &str,
    expected: &Template,
    inspected: &InspectedReply<'_>,
    context: &mut TemplateContext<'_>,
) -> Result<(), Failure> {
    let expected = context.render(expected)?;
    let mut values = inspected.reply.header(name).peekable();
    let found = values.peek().map_or("none".to_owned(), |found| format!("`{}`", excerpt(found)));
    if values.any(|value| value == expected) {
        return Ok(());
    }
    Err(failed(format!("expected the header `{name}` to be `{}`, found {found}", excerpt(&expected))))
}

fn check_json(
    query: &Query,
    expected: &Template,
    inspected: &InspectedReply<'_>,
    context: &mut TemplateContext<'_>,
) -> Result<(), Failure> {
    let expected = context.render(expected)?;
    let found = found_json(query, inspected).map_err(|failure| Failure { kind: ErrorKind::Check, ..failure })?;
    if found.as_ref().is_some_and(|found| is_json(found, &expected)) {
        return Ok(());
    }
    let found = found.map_or("none".to_owned(), |found| format!("`{}`", excerpt(found.as_bytes())));
    let (path, expected, body) = (query.text(), excerpt(&expected), inspected.excerpt());
    Err(failed(format!("expected `{path}` to be `{expected}`, found {found} in {body}")))
}

/// The JSON of the first value under a path, if there is one.
fn found_json(query: &Query, inspected: &InspectedReply<'_>) -> Result<Option<String>, Failure> {
    // Picking the first value draws no random number.
    let found = query.pick(inspected, Pick::First, &mut Random::seeded(0, 0))?;
    Ok(found.map(|found| {
        let mut json = String::new();
        found.view().write_json(&mut json);
        json
    }))
}

/// True if both are the same JSON, however it is written.
fn is_json(found: &str, expected: &[u8]) -> bool {
    let parsed = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).ok();
    found.as_bytes() == expected || parsed(found.as_bytes()) == parsed(expected)
}

fn failed(detail: String) -> Failure {
    Failure::new(ErrorKind::Check, detail)
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    memmem::find(text, part).is_some()
}

/// Checks of a message, with the values of its user written into them.
pub(super) struct ExpectedMessage {
    json: Vec<Vec<u8>>,
    contains: Vec<Vec<u8>>,
}

impl Checks {
    /// Checks that all values of a message's checks are present.
    pub(super) fn check_values(&self, context: &TemplateContext<'_>) -> Result<(), Failure> {
        let json = self.json.iter().map(|(_, expected)| expected);
        json.chain(&self.contains).try_for_each(|expected| context.check(expected))
    }

    /// The checks with the values of the user of this context.
    pub(super) fn expected_message(&self, context: &mut TemplateContext<'_>) -> Result<ExpectedMessage, Failure> {
        let json = self.json.iter().map(|(_, expected)| context.render(expected)).collect::<Result<_, _>>()?;
        let contains = self.contains.iter().map(|expected| context.render(expected)).collect::<Result<_, _>>()?;
        Ok(ExpectedMessage { json, contains })
    }

    /// True if a message is as expected. One that is no JSON is not what a JSONPath asks for.
    pub(super) fn fit(&self, expected: &ExpectedMessage, inspected: &InspectedReply<'_>) -> bool {
        let body = &inspected.reply.body;
        expected.contains.iter().all(|part| holds(body, part))
            && self.matches.iter().all(|pattern| pattern.is_match(body))
            && self.json.iter().zip(&expected.json).all(|((query, _), expected)| {
                found_json(query, inspected).is_ok_and(|found| found.is_some_and(|found| is_json(&found, expected)))
            })
    }
}

impl Condition {
    /// True if it holds of the current value.
    pub(super) fn holds(&self, context: &mut TemplateContext<'_>) -> Result<bool, Failure> {
        let view = context.view(self.place);
        if view == ValueView::Absent {
            return Ok(matches!(self.test, Test::Absent | Test::Compare(Comparison::NotEqual, _)));
        }
        Ok(match &self.test {
            Test::Exists => view.is_present(),
            Test::Absent => !view.is_present(),
            Test::Compare(comparison, with) => {
                let with = context.render(with)?;
                compared(&view.text(), *comparison, &String::from_utf8_lossy(&with))
            }
            Test::Contains(part) => {
                let part = context.render(part)?;
                match view {
                    ValueView::List(items) => items.iter().any(|item| item.view().text().as_bytes() == part),
                    view => holds(view.text().as_bytes(), &part),
                }
            }
            Test::Matches(pattern) => pattern.is_match(view.text().as_bytes()),
        })
    }

    /// Describes the current value, for error messages.
    pub(super) fn found(&self, context: &TemplateContext<'_>) -> String {
        let name = context.name(self.place);
        match context.view(self.place) {
            ValueView::Absent => format!("no `{{${name}}}`"),
            view => format!("`{{${name}}}` to be `{}`", excerpt(view.text().as_bytes())),
        }
    }
}

fn compared(text: &str, comparison: Comparison, with: &str) -> bool {
    let order = match (number(text), number(with)) {
        (Some(one), Some(other)) => one.compare(&other),
        _ => text.cmp(with),
    };
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::AtMost => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::AtLeast => order.is_ge(),
    }
}

/// Parses a number as JSON and people write it: neither `inf` nor `NaN`. Integers keep all their digits.
fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) || text.contains(['i', 'n', 'N'])
    {
        return None;
    }
    let whole = text.parse().ok();
    text.parse().ok().map(|float| Number { whole, float })
}

struct Number {
    whole: Option<i128>,
    float: f64,
}

impl Number {
    fn compare(&self, other: &Number) -> Ordering {
        match (self.whole, other.whole) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => self.float.total_cmp(&other.float),
        }
    }
}
