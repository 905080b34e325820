//! Takes values from replies.

use super::json_path::{self, NotJson, Segment};
use super::reply::Reply;
use super::template::sample;
use super::value::Value;
use plimsoll_engine::protocol::Failure;
use plimsoll_engine::schedule::Random;
use plimsoll_model::flow::{self, Pick};
use plimsoll_model::record::ErrorKind;
use plimsoll_web::SetCookie;
use regex::bytes::Regex;
use serde_json_path::JsonPath;
use std::cell::OnceCell;

/// The largest value that a user keeps: thousands of users keep one each.
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

/// Finds values in JSON.
pub(super) struct Query {
    text: String,
    way: Way,
}

enum Way {
    Plain(Vec<Segment>),
    Any(JsonPath),
}

/// A reply that is looked into, with what is known of its body.
pub(super) struct Seen<'a> {
    pub(super) reply: &'a Reply,
    parsed: OnceCell<Option<serde_json::Value>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(reply: &'a Reply) -> Seen<'a> {
        Seen { reply, parsed: OnceCell::new() }
    }

    fn parsed(&self) -> Result<&serde_json::Value, NotJson> {
        self.parsed.get_or_init(|| serde_json::from_slice(&self.reply.body).ok()).as_ref().ok_or(NotJson)
    }

    /// The beginning of the body, for a reason.
    pub(super) fn sample(&self) -> String {
        match &*self.reply.body {
            [] => "an empty body".to_owned(),
            body => format!("`{}`", sample(body)),
        }
    }
}

impl Query {
    /// # Errors
    /// The text is no JSONPath.
    pub(super) fn new(text: &str) -> Result<Query, String> {
        let way = match json_path::plain(text) {
            Some(segments) => Way::Plain(segments),
            None => Way::Any(
                JsonPath::parse(text).map_err(|error| format!("expected a JSONPath, found `{text}`: {error}"))?,
            ),
        };
        Ok(Query { text: text.to_owned(), way })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Picks among the values under the path.
    pub(super) fn pick(&self, seen: &Seen<'_>, pick: Pick, random: &mut Random) -> Result<Option<Value>, Failure> {
        let found = match &self.way {
            Way::Plain(segments) => self.pick_plain(seen, segments, pick, random),
            Way::Any(path) => seen
                .parsed()
                .map(|body| picked(path.query(body).iter().map(|node| Value::of_parsed(node)), pick, random)),
        };
        found.map_err(|NotJson| {
            let (path, found) = (&self.text, seen.sample());
            Failure::new(ErrorKind::Capture, format!("expected JSON to find `{path}` in, found {found}"))
        })
    }

    fn pick_plain(
        &self,
        seen: &Seen<'_>,
        segments: &[Segment],
        pick: Pick,
        random: &mut Random,
    ) -> Result<Option<Value>, NotJson> {
        let Some(raw) = json_path::find(&seen.reply.body, segments)? else { return Ok(None) };
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

    /// What the reply holds, else the default. `kept` is the cookie of a name that the user has.
    pub(super) fn take(
        &self,
        name: &str,
        seen: &Seen<'_>,
        random: &mut Random,
        kept: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Value, Failure> {
        let found = match &self.source {
            Source::Json(query) => query.pick(seen, self.pick, random)?,
            Source::Header(header) => picked(seen.reply.header(header).map(text), self.pick, random),
            Source::Regex { pattern, group } => {
                let matches = pattern.captures_iter(&seen.reply.body).filter_map(|found| found.get(*group));
                picked(matches.map(|found| text(found.as_bytes())), self.pick, random)
            }
            Source::Cookie(cookie) => {
                self.cookie(cookie, seen, random).or_else(|| Some(Value::Text(kept(cookie)?.into())))
            }
        };
        let value = found.or_else(|| self.default.clone()).ok_or_else(|| self.nothing(name, seen))?;
        if value.size() > LARGEST_VALUE {
            let size = value.size();
            let detail = format!("expected at most {LARGEST_VALUE} bytes for `{{${name}}}`, found {size}");
            return Err(Failure::new(ErrorKind::Capture, detail));
        }
        Ok(value)
    }

    /// A cookie that the reply sets.
    fn cookie(&self, wanted: &str, seen: &Seen<'_>, random: &mut Random) -> Option<Value> {
        let set =
            seen.reply.header("set-cookie").filter_map(|header| SetCookie::parse(std::str::from_utf8(header).ok()?));
        picked(
            set.filter(|cookie| cookie.name == wanted).map(|cookie| Value::Text(cookie.value.into())),
            self.pick,
            random,
        )
    }

    fn nothing(&self, name: &str, seen: &Seen<'_>) -> Failure {
        let what = match &self.source {
            Source::Json(query) => format!("a value under `{}`", query.text),
            Source::Header(header) => format!("a header `{header}`"),
            Source::Regex { pattern, .. } => format!("a match of `{pattern}`"),
            Source::Cookie(cookie) => format!("a cookie `{cookie}`"),
        };
        let found = if self.needs_body() { format!("in {}", seen.sample()) } else { "in the reply".to_owned() };
        Failure::new(ErrorKind::Capture, format!("expected {what} for `{{${name}}}`, found none {found}"))
    }
}

/// A pattern over bytes.
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

/// A whole number below `count`; 0 where that is 0.
pub(super) fn below(count: usize, random: &mut Random) -> usize {
    // `unit` is above 0 and up to 1.
    (((1.0 - random.unit()) * count as f64) as usize).min(count.saturating_sub(1))
}
