//! `capture` of a request: what is kept of its reply.

use crate::diagnostic::Fault;
use crate::faults::Faults;
use crate::flowing::ValueNames;
use crate::node::table;
use crate::pairs::AnyJson;
use crate::scalar::{Text, Whole};
use crate::scope::Scope;
use crate::value::{Problem, Scalar, Slot, optional, word};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Capture, Pick, Source};
use schemars::{Schema, json_schema};

table! {
    /// Where a value is found in a reply: by exactly one of `json`, `header`, `regex` and `cookie`.
    struct CaptureTable {
        /// A JSONPath into the body, such as "$.items[0].id".
        json: Option<Slot<JsonPath>>,
        /// The name of a header.
        header: Option<Slot<Text>>,
        /// A regular expression, looked for in the body.
        regex: Option<Slot<Text>>,
        /// The group of the regular expression; 0 is all that matches. Default: 1 where it has groups, else 0.
        group: Option<Slot<Group>>,
        /// The name of a cookie.
        cookie: Option<Slot<Text>>,
        /// Which, where several match: "first", "last", "random" or "all", which makes a list. Default: "first".
        pick: Option<Slot<Pick>>,
        /// What is kept where nothing matches. Default: none, and the step fails.
        default: Option<AnyJson>,
    }
}

type Group = Whole<0, 1000>;

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
        let pick = optional(self.pick.as_ref(), |pick| pick.resolve(scope, faults));
        let default = optional(self.default.as_ref(), |default| default.0.without_values(scope, faults));
        Some(Capture { into: values.id(name)?, from: from?, pick: pick?.unwrap_or_default(), default: default? })
    }

    fn source(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Source> {
        let mut text = |slot: &Slot<Text>| slot.resolve(scope, faults).map(|text| text.0);
        match (&self.json, &self.header, &self.regex, &self.cookie) {
            (None, Some(header), None, None) => text(header).map(Source::Header),
            (None, None, None, Some(cookie)) => text(cookie).map(Source::Cookie),
            (Some(json), None, None, None) => json.resolve(scope, faults).map(|path| Source::Json(path.0)),
            (None, None, Some(regex), None) => {
                let pattern = text(regex);
                let group = optional(self.group.as_ref(), |group| group.resolve(scope, faults));
                let pattern = pattern?;
                let group = group?.map_or_else(|| usize::from(has_group(&pattern)), |group| group.u16().into());
                Some(Source::Regex { pattern, group })
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

    /// Whether it makes a list.
    pub(crate) fn is_list(&self) -> bool {
        self.pick.as_ref().is_some_and(|pick| pick.fixed().is_none_or(|pick| *pick == Pick::All))
    }

    /// Whether it may be a list: JSON has arrays.
    pub(crate) fn may_be_list(&self) -> bool {
        self.is_list() || self.json.is_some()
    }
}

/// Whether a pattern has a group that captures.
fn has_group(pattern: &str) -> bool {
    let opens = pattern.match_indices('(').filter(|(at, _)| !pattern[..*at].ends_with('\\'));
    opens
        .map(|(at, _)| &pattern[at + 1..])
        .any(|rest| !rest.starts_with('?') || rest.starts_with("?P<") || rest.starts_with("?<"))
}

/// A JSONPath.
#[derive(Clone, Debug)]
pub(crate) struct JsonPath(pub(crate) String);

impl Scalar for JsonPath {
    const EXPECTED: &'static str = "a JSONPath such as \"$.items[0].id\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text.starts_with('$') => Ok(JsonPath(text.clone())),
            Level::Text(text) => Err(Problem::wrong::<Self>(level)
                .help(format!("a path starts at the root: \"$.{}\"", text.trim_start_matches('.')))),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^[${]" })
    }
}

impl Scalar for Pick {
    const EXPECTED: &'static str = "\"first\", \"last\", \"random\" or \"all\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        word(level, &[("first", Pick::First), ("last", Pick::Last), ("random", Pick::Random), ("all", Pick::All)])
    }

    fn schema() -> Schema {
        json_schema!({ "enum": ["first", "last", "random", "all"] })
    }
}
