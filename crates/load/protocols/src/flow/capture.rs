//! Captures: values that are taken from replies.

use super::json_path::{self, NotJson, Segment};
use super::reply::Reply;
use super::template::excerpt;
use super::value::Value;
use plimsoll_engine::protocol::Failure;
use plimsoll_engine::schedule::Random;
use plimsoll_model::flow::{self, Pick};
use plimsoll_model::record::ErrorKind;
use plimsoll_web::SetCookie;
use regex::bytes::Regex;
use serde_json_path::JsonPath;
use std::cell::OnceCell;

/// The largest captured value in bytes. Each of thousands of users keeps its own.
const LARGEST_VALUE: usize = 64 << 10;

/// A capture, compiled.
pub(super) struct Capture {
    pub(super) into: u16,
    source: Source,
    pick: Pick,
    default: Option<Value>,
}

enum Source {
    Json(Query),
    Header(String),
    Regex { pattern: Regex, group: usize },
    Cookie(String),
}

/// A JSONPath that finds values in a body.
pub(super) struct Query {
    text: String,
    matcher: Matcher,
}

enum Matcher {
    /// A path that names one place at most.
    Simple(Vec<Segment>),
    /// Any JSONPath, evaluated on the parsed body.
    Full(JsonPath),
}

/// A reply that checks and captures inspect. Its body is parsed once, if JSON is asked for.
pub(super) struct InspectedReply<'a> {
    pub(super) reply: &'a Reply,
    parsed: OnceCell<Option<serde_json::Value>>,
}

impl<'a> InspectedReply<'a> {
    pub(super) fn new(reply: &'a Reply) -> InspectedReply<'a> {
        InspectedReply { reply, parsed: OnceCell::new() }
    }

    fn parsed(&self) -> Result<&serde_json::Value, NotJson> {
        self.parsed.get_or_init(|| serde_json::from_slice(&self.reply.body).ok()).as_ref().ok_or(NotJson)
    }

    /// The beginning of the body, for error messages.
    pub(super) fn excerpt(&self) -> String {
        match &*self.reply.body {
            [] => "an empty body".to_owned(),
            body => format!("`{}`", excerpt(body)),
        }
    }
}

impl Query {
    /// # Errors
    /// The text is no JSONPath.
    pub(super) fn new(text: &str) -> Result<Query, String> {
        let matcher = match json_path::parse_simple(text) {
            Some(segments) => Matcher::Simple(segments),
            None if flow::ends_in_escape(text) => {
                return Err(format!("expected a JSONPath, found `{text}`: it ends inside of an escape"));
            }
            None => Matcher::Full(
                JsonPath::parse(text).map_err(|error| format!("expected a JSONPath, found `{text}`: {error}"))?,
            ),
        };
        Ok(Query { text: text.to_owned(), matcher })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Picks among the values under the path.
    pub(super) fn pick(
        &self,
        inspected: &InspectedReply<'_>,
        pick: Pick,
        random: &mut Random,
    ) -> Result<Option<Value>, Failure> {
        let found = match &self.matcher {
            Matcher::Simple(segments) => self.pick_plain(inspected, segments, pick, random),
            Matcher::Full(path) => inspected
                .parsed()
                .map(|body| picked(path.query(body).iter().map(|node| Value::of_parsed(node)), pick, random)),
        };
        found.map_err(|NotJson| {
            let (path, found) = (&self.text, inspected.excerpt());
            Failure::new(ErrorKind::Capture, format!("expected JSON to find `{path}` in, found {found}"))
        })
    }

    fn pick_plain(
        &self,
        inspected: &InspectedReply<'_>,
        segments: &[Segment],
        pick: Pick,
        random: &mut Random,
    ) -> Result<Option<Value>, NotJson> {
        let Some(raw) = json_path::find(&inspected.reply.body, segments)? else { return Ok(None) };
        let value = Value::of_json(raw).ok_or(NotJson)?;
        Ok(picked(std::iter::once(value), pick, random))
    }
}

impl Capture {
    /// # Errors
    /// A path or a pattern is none.
    pub(super) fn new(capture: &flow::Capture) -> Result<Capture, String> {
        let source = match &capture.from {
            flow::Source::Json(path) => Source::Json(Query::new(path)?),
            flow::Source::Header(name) => Source::Header(name.clone()),
            flow::Source::Regex { pattern, group } => {
                Source::Regex { pattern: compiled_with_group(pattern, *group)?, group: *group }
            }
            flow::Source::Cookie(name) => Source::Cookie(name.clone()),
        };
        let default = capture.default.as_ref().map(Value::of_study);
        Ok(Capture { into: capture.into.0, source, pick: capture.pick, default })
    }

    pub(super) fn needs_body(&self) -> bool {
        matches!(self.source, Source::Json(_) | Source::Regex { .. })
    }

    /// Extracts the value from the reply, or else the default. `kept` gives a cookie that the user has by name.
    pub(super) fn extract(
        &self,
        name: &str,
        inspected: &InspectedReply<'_>,
        random: &mut Random,
        kept: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Value, Failure> {
        let found = match &self.source {
            Source::Json(query) => query.pick(inspected, self.pick, random)?,
            Source::Header(header) => picked(inspected.reply.header(header).map(text), self.pick, random),
            Source::Regex { pattern, group } => {
                let matches = pattern.captures_iter(&inspected.reply.body).filter_map(|found| found.get(*group));
                picked(matches.map(|found| text(found.as_bytes())), self.pick, random)
            }
            Source::Cookie(cookie) => {
                self.cookie(cookie, inspected, random).or_else(|| Some(Value::Text(kept(cookie)?.into())))
            }
        };
        let value = found.or_else(|| self.default.clone()).ok_or_else(|| self.not_found(name, inspected))?;
        if value.size() > LARGEST_VALUE {
            let size = value.size();
            let detail = format!("expected at most {LARGEST_VALUE} bytes for `{{${name}}}`, found {size}");
            return Err(Failure::new(ErrorKind::Capture, detail));
        }
        Ok(value)
    }

    /// Picks a cookie that the reply sets.
    fn cookie(&self, wanted: &str, inspected: &InspectedReply<'_>, random: &mut Random) -> Option<Value> {
        let set = inspected
            .reply
            .header("set-cookie")
            .filter_map(|header| SetCookie::parse(std::str::from_utf8(header).ok()?));
        picked(
            set.filter(|cookie| cookie.name == wanted).map(|cookie| Value::Text(cookie.value.into())),
            self.pick,
            random,
        )
    }

    fn not_found(&self, name: &str, inspected: &InspectedReply<'_>) -> Failure {
        let what = match &self.source {
            Source::Json(query) => format!("a value under `{}`", query.text),
            Source::Header(header) => format!("a header `{header}`"),
            Source::Regex { pattern, .. } => format!("a match of `{pattern}`"),
            Source::Cookie(cookie) => format!("a cookie `{cookie}`"),
        };
        let found = if self.needs_body() { format!("in {}", inspected.excerpt()) } else { "in the reply".to_owned() };
        Failure::new(ErrorKind::Capture, format!("expected {what} for `{{${name}}}`, found none {found}"))
    }
}

/// Compiles a pattern over bytes.
pub(super) fn compiled(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| format!("expected a pattern, found `{pattern}`: {error}"))
}

fn compiled_with_group(pattern: &str, group: usize) -> Result<Regex, String> {
    let compiled = compiled(pattern)?;
    let groups = compiled.captures_len() - 1;
    if group > groups {
        return Err(format!("expected a pattern with a group {group}, found `{pattern}`, which has {groups}"));
    }
    Ok(compiled)
}

fn text(bytes: &[u8]) -> Value {
    Value::Text(String::from_utf8_lossy(bytes).into())
}

fn picked(mut found: impl Iterator<Item = Value>, pick: Pick, random: &mut Random) -> Option<Value> {
    match pick {
        Pick::First => found.next(),
        Pick::Last => found.last(),
        Pick::Random => {
            let mut all: Vec<Value> = found.collect();
            let index = below(all.len(), random);
            (!all.is_empty()).then(|| all.swap_remove(index))
        }
        Pick::All => {
            let all: Vec<Value> = found.collect();
            (!all.is_empty()).then(|| Value::List(all.into()))
        }
    }
}

/// Draws an integer below `count`; 0 if `count` is 0.
pub(super) fn below(count: usize, random: &mut Random) -> usize {
    // `unit` is above 0 and up to 1.
    (((1.0 - random.unit()) * count as f64) as usize).min(count.saturating_sub(1))
}
