//! `capture` of a request: what is kept of its reply.

use crate::document::{Fault, Faults, table};
use crate::value::{
    AnyJson, Problem, Scalar, Scope, Templated, Text, ValueNames, WholeNumber, keyword, resolve_optional,
};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Capture, Pick, Source, ends_in_escape};
use regex::bytes::Regex;
use serde_json::{Value, json};

table! {
    /// Where a value is found in a reply: by exactly one of `json`, `header`, `regex` and `cookie`.
    struct CaptureTable {
        /// A JSONPath into the body, such as "$.items[0].id".
        json: Option<Templated<JsonPath>>,
        /// The name of a header.
        header: Option<Templated<Text>>,
        /// A regular expression, looked for in the body.
        regex: Option<Templated<Pattern>>,
        /// The group of the regular expression; 0 is all that matches. Default: 1 where it has groups, else 0.
        group: Option<Templated<Group>>,
        /// The name of a cookie.
        cookie: Option<Templated<Text>>,
        /// Which, where several match: "first", "last", "random" or "all", which makes a list. Default: "first".
        pick: Option<Templated<Pick>>,
        /// What is kept where nothing matches. Default: none, and the step fails.
        default: Option<AnyJson>,
        /// Whether the value outlives the iteration, as what `on_start` captures does. Default: false.
        keep: Option<Templated<bool>>,
    }
}

type Group = WholeNumber<0, 1000>;

const FORMS: &str =
    "write one of `json = \"$.id\"`, `header = \"X-Token\"`, `regex = 'id=(\\d+)'` and `cookie = \"session\"`";

impl CaptureTable {
    /// The capture of the value called `name`.
    pub(crate) fn resolve(
        &self,
        name: &str,
        scope: &Scope<'_>,
        values: &ValueNames,
        faults: &mut Faults,
    ) -> Option<Capture> {
        let from = self.source(scope, faults);
        let pick = resolve_optional(self.pick.as_ref(), |pick| pick.resolve(scope, faults));
        let default = resolve_optional(self.default.as_ref(), |default| default.0.without_values(scope, faults));
        let keep = resolve_optional(self.keep.as_ref(), |keep| keep.resolve(scope, faults));
        let (into, pick, keep) = (values.id(name)?, pick?.unwrap_or_default(), keep?.unwrap_or_default());
        Some(Capture { into, from: from?, pick, default: default?, keep })
    }

    fn source(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Source> {
        let mut text = |templated: &Templated<Text>| templated.resolve(scope, faults).map(|text| text.0);
        match (&self.json, &self.header, &self.regex, &self.cookie) {
            (None, Some(header), None, None) => text(header).map(Source::Header),
            (None, None, None, Some(cookie)) => text(cookie).map(Source::Cookie),
            (Some(json), None, None, None) => json.resolve(scope, faults).map(|path| Source::Json(path.0)),
            (None, None, Some(regex), None) => {
                let pattern = regex.resolve(scope, faults);
                let group = resolve_optional(self.group.as_ref(), |group| group.resolve(scope, faults));
                let Pattern { text, groups } = pattern?;
                let group = group?.map_or(groups.min(1), |group| group.u16().into());
                if group > groups {
                    let place = self.group.as_ref().map_or(&regex.span, |group| &group.span);
                    let fault = Fault::error(place, format!("the expression has no group {group}"));
                    faults.add(
                        fault.help(format!("groups are in parentheses: it has {groups}, and 0 is all that matches")),
                    );
                    return None;
                }
                Some(Source::Regex { pattern: text, group })
            }
            // `check` says so.
            _ => None,
        }
    }

    /// Faults that no level changes.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let given = [self.json.is_some(), self.header.is_some(), self.regex.is_some(), self.cookie.is_some()];
        match given.iter().filter(|given| **given).count() {
            0 => faults.add(Fault::error(&self.place, "the capture does not say where its value is found").help(FORMS)),
            1 => {}
            _ => faults.add(Fault::error(&self.place, "the capture looks in several places").help(FORMS)),
        }
        if let Some(group) = self.group.as_ref().filter(|_| self.regex.is_none()) {
            faults.add(Fault::error(&group.span, "only a `regex` has groups").help("leave `group` out"));
        }
    }

    /// True for a capture from the head of a reply.
    pub(crate) fn needs_headers(&self) -> bool {
        self.header.is_some() || self.cookie.is_some()
    }

    /// Whether its value outlives the iteration.
    pub(crate) fn is_kept(&self) -> bool {
        self.keep.as_ref().is_some_and(|keep| keep.fixed().is_none_or(|keep| *keep))
    }

    /// Whether it makes a list.
    pub(crate) fn is_list(&self) -> bool {
        self.pick.as_ref().is_some_and(|pick| pick.fixed().is_none_or(|pick| *pick == Pick::All))
    }

    /// Whether it may be a list: JSON has arrays.
    pub(crate) fn may_be_list(&self) -> bool {
        self.is_list() || self.json.is_some()
    }
}

/// A regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    /// How many groups it has, besides all that matches.
    pub(crate) groups: usize,
}

impl Pattern {
    /// The expression that a text is, or why it is none.
    pub(crate) fn parse(text: &str) -> Result<Pattern, String> {
        let compiled = Regex::new(text).map_err(|error| reason(&error.to_string()))?;
        Ok(Pattern { text: text.to_owned(), groups: compiled.captures_len() - 1 })
    }
}

/// What a parser of expressions says, without the expression that it shows again.
fn reason(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl Scalar for Pattern {
    const EXPECTED: &'static str = "a regular expression";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        Pattern::parse(text).map_err(|reason| Problem::wrong::<Self>(level).help(reason))
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// A JSONPath.
#[derive(Clone, Debug)]
pub(crate) struct JsonPath(pub(crate) String);

impl Scalar for JsonPath {
    const EXPECTED: &'static str = "a JSONPath such as \"$.items[0].id\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if ends_in_escape(text) => {
                Err(Problem::wrong::<Self>(level).help("four digits in base 16 follow `\\u`"))
            }
            Level::Text(text) if text.starts_with('$') => match serde_json_path::JsonPath::parse(text) {
                Ok(_) => Ok(JsonPath(text.clone())),
                Err(error) => Err(Problem::wrong::<Self>(level).help(error.to_string())),
            },
            Level::Text(text) => Err(Problem::wrong::<Self>(level)
                .help(format!("a path starts at the root: \"$.{}\"", text.trim_start_matches('.')))),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[${]" })
    }
}

impl Scalar for Pick {
    const EXPECTED: &'static str = "\"first\", \"last\", \"random\" or \"all\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("first", Pick::First), ("last", Pick::Last), ("random", Pick::Random), ("all", Pick::All)])
    }

    fn schema() -> Value {
        json!({ "enum": ["first", "last", "random", "all"] })
    }
}
