//! Flows: HTTP users that keep values from replies, branch, and wait.
//!
//! Values have names in a study and indices here. A text of a step is a list of [`Piece`]s, so that the
//! generator never parses a placeholder.

mod feed;
mod socket;

pub use feed::{Feed, FeedEnd, FeedOrder};
pub use socket::{AwaitedMessage, Backoff, Deliveries, FlowMessage, FlowSocket};

use crate::load::Think;
use crate::sql::Parameter;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::time::Duration;

/// What each user of a flow does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// All requests; instructions refer to them by index.
    pub requests: Vec<FlowRequest>,
    /// What an iteration does: one of these, drawn by weight. Never empty.
    pub actions: Vec<FlowAction>,
    /// The steps before the first iteration; before each iteration if a user lives for one.
    pub on_start: Block,
    /// The steps after the last iteration; after each iteration if a user lives for one.
    pub on_stop: Block,
    /// The names of all values, by [`ValueId`]: those of feeds are `FEED.COLUMN`.
    pub values: Vec<String>,
    /// The values that are drawn anew for each iteration.
    pub draws: Vec<(ValueId, Parameter)>,
    /// Files whose rows users take.
    pub feeds: Vec<Feed>,
    /// Whether users keep cookies and send them back.
    pub cookies: bool,
    /// How many redirects in a row are followed.
    pub redirects: u8,
    /// Content codings that `Accept-Encoding` offers; empty to send no such header.
    pub compression: Vec<ContentCoding>,
    /// How long a user keeps values and cookies.
    pub lifetime: Lifetime,
    /// The WebSocket that a user holds beside its requests, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<FlowSocket>,
}

impl Flow {
    /// The names under which exchanges are recorded, each once: requests may share one. Messages that nothing answers are
    /// no exchanges.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let requests = self.requests.iter().map(|request| request.name.as_str());
        let exchanges = self.messages().iter().filter(|message| message.awaits.is_some());
        requests.chain(exchanges.map(|message| message.name.as_str())).filter(|name| seen.insert(*name)).collect()
    }

    /// The paths of the files that users read: feeds, and bodies of requests.
    pub fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        let mut paths: Vec<&mut PathBuf> = self.feeds.iter_mut().map(|feed| &mut feed.file).collect();
        for request in &mut self.requests {
            match &mut request.body {
                Body::File(file) => paths.push(file),
                Body::Multipart(parts) => paths.extend(parts.iter_mut().filter_map(|part| match &mut part.content {
                    PartContent::File(file) => Some(file),
                    PartContent::Text(_) => None,
                })),
                Body::None | Body::Text(_) | Body::Json(_) | Body::Form(_) => {}
            }
        }
        paths
    }

    /// The names of the exchanges that iterations make.
    #[must_use]
    pub fn names_of_iterations(&self) -> BTreeSet<&str> {
        let mut found = Vec::new();
        self.actions.iter().for_each(|action| action.steps.exchanges(&mut found));
        let name = |exchange| match exchange {
            Exchange::Request(request) => Some(self.requests[request].name.as_str()),
            Exchange::Message(message) => {
                let message = &self.messages()[message];
                message.awaits.as_ref().map(|_| message.name.as_str())
            }
        };
        found.into_iter().filter_map(name).collect()
    }

    /// The messages on the socket.
    fn messages(&self) -> &[FlowMessage] {
        self.socket.as_ref().map_or(&[], |socket| &socket.messages)
    }

    /// The captures of a reply, or of a message that is awaited.
    fn captures_of(&self, exchange: Exchange) -> &[Capture] {
        match exchange {
            Exchange::Request(request) => &self.requests[request].captures,
            Exchange::Message(message) => {
                self.messages()[message].awaits.as_ref().map_or(&[], |awaited| &awaited.captures)
            }
        }
    }

    /// The values that are dropped at the end of an iteration: those that its steps capture, unless
    /// `on_start` captures them too or a capture has `keep`.
    #[must_use]
    pub fn iteration_values(&self) -> BTreeSet<ValueId> {
        let requests = (0..self.requests.len()).map(Exchange::Request);
        let all = requests.chain((0..self.messages().len()).map(Exchange::Message));
        let captures = all.flat_map(|exchange| self.captures_of(exchange));
        let mut of_user: BTreeSet<ValueId> =
            captures.filter(|capture| capture.keep).map(|capture| capture.into).collect();
        of_user.extend(self.values_set_in(&self.on_start));
        let of_iterations: BTreeSet<ValueId> =
            self.actions.iter().flat_map(|action| self.values_set_in(&action.steps)).collect();
        &of_iterations - &of_user
    }

    /// The values that the steps of a block set: its captures, and the items of its loops.
    fn values_set_in(&self, block: &Block) -> BTreeSet<ValueId> {
        let (mut exchanges, mut items) = (Vec::new(), BTreeSet::new());
        block.exchanges(&mut exchanges);
        block.items(&mut items);
        let captures = exchanges.into_iter().flat_map(|exchange| self.captures_of(exchange));
        captures.map(|capture| capture.into).chain(items).collect()
    }

    /// Returns true if users make requests besides opening a socket.
    #[must_use]
    pub fn makes_requests(&self) -> bool {
        self.requests.len() > usize::from(self.socket.is_some())
    }

    /// Returns true if iterations contain pauses, which their durations leave out.
    #[must_use]
    pub fn pauses(&self) -> bool {
        self.actions.iter().any(|action| action.steps.pauses())
    }
}

/// A value that a user may have, as an index into [`Flow::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValueId(pub u16);

/// One kind of iteration, or of what may be done at one place of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowAction {
    /// Its name in the study.
    pub name: String,
    /// How often it is drawn, beside the other weights.
    pub weight: u32,
    /// Its steps.
    pub steps: Block,
}

/// Steps, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block(pub Vec<Instruction>);

impl Block {
    fn pauses(&self) -> bool {
        let pauses = |instruction: &Instruction| {
            matches!(instruction, Instruction::Pause(_)) || instruction.blocks().any(Block::pauses)
        };
        self.0.iter().any(pauses)
    }

    /// Adds the requests and messages in it, however deep.
    fn exchanges(&self, found: &mut Vec<Exchange>) {
        for instruction in &self.0 {
            match instruction {
                Instruction::Request(request) => found.push(Exchange::Request(*request)),
                Instruction::Message(message) => found.push(Exchange::Message(*message)),
                _ => {}
            }
            instruction.blocks().for_each(|block| block.exchanges(found));
        }
    }

    /// Adds the items of the loops in it, however deep.
    fn items(&self, found: &mut BTreeSet<ValueId>) {
        for instruction in &self.0 {
            if let Instruction::Each { item, .. } = instruction {
                found.insert(*item);
            }
            instruction.blocks().for_each(|block| block.items(found));
        }
    }
}

/// A request or message, by its index.
#[derive(Clone, Copy)]
enum Exchange {
    Request(usize),
    Message(usize),
}

/// One step, or steps under a condition or in a loop. Loops nest at most [`MOST_LOOPS`] deep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instruction {
    /// The request of this index.
    Request(usize),
    /// Waits; an iteration's duration leaves it out.
    Pause(Think),
    /// Opens the user's socket, and waits until it is open.
    OpenSocket,
    /// The message of this index, on the user's socket.
    Message(usize),
    /// Closes the user's socket.
    CloseSocket,
    /// One of two blocks.
    When {
        /// If all hold, the first block runs.
        conditions: Vec<Condition>,
        /// The first.
        then: Block,
        /// The second.
        otherwise: Block,
    },
    /// Runs the steps of one of these, drawn by weight. Never empty.
    Choose(Vec<FlowAction>),
    /// Runs a block a fixed number of times.
    Repeat {
        /// How often.
        times: u32,
        /// The block.
        steps: Block,
    },
    /// Runs a block for each item of a list.
    Each {
        /// The list: captured with [`Pick::All`], or an array of JSON.
        list: ValueId,
        /// The value that receives the item.
        item: ValueId,
        /// The most items that are used; later ones are left out.
        at_most: u32,
        /// The block.
        steps: Block,
    },
    /// Runs a block as long as conditions hold.
    While {
        /// All must hold.
        conditions: Vec<Condition>,
        /// When they still hold after so many times, the step fails.
        at_most: u32,
        /// The block.
        steps: Block,
    },
}

impl Instruction {
    /// The blocks in it.
    fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (first, second, chosen) = match self {
            Instruction::Request(_)
            | Instruction::Pause(_)
            | Instruction::OpenSocket
            | Instruction::Message(_)
            | Instruction::CloseSocket => (None, None, None),
            Instruction::When { then, otherwise, .. } => (Some(then), Some(otherwise), None),
            Instruction::Choose(choices) => (None, None, Some(choices)),
            Instruction::Repeat { steps, .. } | Instruction::Each { steps, .. } | Instruction::While { steps, .. } => {
                (Some(steps), None, None)
            }
        };
        first.into_iter().chain(second).chain(chosen.into_iter().flatten().map(|choice| &choice.steps))
    }
}

/// How deep loops may nest.
pub const MOST_LOOPS: usize = 4;

/// A request, the captures from its reply, and the checks of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRequest {
    /// Name in the results, which other requests may have too.
    pub name: String,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path with query; starts with `/`, or with a raw value: a link that was captured.
    pub path: Text,
    /// Header lines besides those that follow from the rest of the request, in order.
    pub headers: Vec<(String, Text)>,
    /// The body that is sent.
    pub body: Body,
    /// The credentials that it sends, if any.
    pub auth: Option<Auth>,
    /// The values that are kept from the reply.
    pub captures: Vec<Capture>,
    /// The checks of the reply.
    pub checks: Checks,
    /// The users to whom the system delivers what the request carries: those who listen to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivers_to: Option<Text>,
}

/// A text with values between literals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text(pub Vec<Piece>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// Always the same, and sent as it is.
    Literal(String),
    /// A value, encoded as its position in the request requires.
    Value {
        /// Which.
        value: Reference,
        /// Left as it is, in a path.
        raw: bool,
    },
}

/// A value that a text can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// What was captured, drawn or fed.
    Value(ValueId),
    /// The user's number, from 1: `$user`.
    User,
    /// The number of the user's iteration, from 1: `$iteration`.
    Iteration,
    /// A random UUID (version 4), another one in each place: `$uuid`.
    Uuid,
    /// Milliseconds since the beginning of 1970: `$now`.
    Now,
    /// A UUID by which deliveries of what a request carries are known, the same everywhere in it: `$message`.
    Message,
}

/// The body of a request. Its type is sent where the request's headers name none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// None.
    None,
    /// A text.
    Text(Text),
    /// JSON.
    Json(JsonText),
    /// Fields of a form: literals are encoded as values are.
    Form(Vec<(Text, Text)>),
    /// Fields and files of a form.
    Multipart(Vec<MultipartPart>),
    /// The content that this file has when the study is checked.
    File(PathBuf),
}

/// JSON with values in it, written out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonText(pub Vec<JsonPiece>);

/// A part of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonPiece {
    /// JSON as it is sent.
    Literal(String),
    /// A value inside of a string, between quotes that literals have.
    Inside(Reference),
    /// A value as a whole JSON value: a number that was captured from JSON stays a number, a text gets quotes.
    Whole(Reference),
}

/// A field or file of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultipartPart {
    /// The name of the field.
    pub name: String,
    /// What it holds.
    pub content: PartContent,
    /// Its type; none is sent when there is none.
    pub content_type: Option<String>,
}

/// What a part of a form holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartContent {
    /// A text.
    Text(Text),
    /// A file, sent with the last part of its path as its name.
    File(PathBuf),
}

/// The credentials of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// `Authorization: Bearer …`.
    Bearer(Text),
    /// The same, with the token from the environment variable of this name.
    BearerOf(String),
    /// `Authorization: Basic …`.
    Basic {
        /// The user.
        user: Text,
        /// Where the password comes from.
        password: Password,
    },
}

/// Where a password comes from: never from the study itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Password {
    /// The environment variable of this name.
    Environment(String),
    /// A value that the user has, such as a column of a feed.
    Value(ValueId),
}

/// A value that is captured from a reply. If nothing matches and there is no default, the step fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// The value that receives it.
    pub into: ValueId,
    /// Where it is found.
    pub from: Source,
    /// Which of several matches is kept.
    pub pick: Pick,
    /// The value that is kept if nothing matches: an array is a list, a string a text.
    pub default: Option<serde_json::Value>,
    /// Whether the value outlives its iteration, though `on_start` does not capture it.
    pub keep: bool,
}

/// Where something is found in a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The nodes of the body under a JSONPath (RFC 9535).
    Json(String),
    /// The values of a header.
    Header(String),
    /// What a group of a pattern matches in the body; group 0 is all of it.
    Regex {
        /// The pattern.
        pattern: String,
        /// The group's number.
        group: usize,
    },
    /// The value of a cookie: as the reply sets it, else as the user has it for this path.
    Cookie(String),
}

/// True if a JSONPath ends inside of an escape such as `\u00fc`: then it is none, and its parser (serde_json_path 0.7.2)
/// panics.
#[must_use]
pub fn ends_in_escape(json_path: &str) -> bool {
    json_path.rsplit_once("\\u").is_some_and(|(_, digits)| digits.chars().count() < 4)
}

/// Which of several matches is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The first.
    #[default]
    First,
    /// The last.
    Last,
    /// Any, seeded.
    Random,
    /// All of them, as a list.
    All,
}

/// What a reply must satisfy; by default only a status below 400.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checks {
    /// One of these; any below 400 when there is none.
    pub status: Vec<u16>,
    /// How long it may take at most, redirects included.
    pub within: Option<Duration>,
    /// Headers with their values.
    pub header: Vec<(String, Text)>,
    /// JSONPaths, and what the first node under each must equal.
    pub json: Vec<(String, JsonText)>,
    /// What the body must hold.
    pub contains: Vec<Text>,
    /// Patterns that must match somewhere in the body.
    pub matches: Vec<String>,
}

/// A condition on a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Which value.
    pub value: Reference,
    /// The test that it must pass.
    pub test: Test,
}

/// A test of a value. An absent value passes only [`Test::Absent`] and [`Comparison::NotEqual`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// There is one: it is neither `null` nor a list without items.
    Exists,
    /// There is none.
    Absent,
    /// As numbers where both are, else as texts.
    Compare {
        /// How.
        comparison: Comparison,
        /// With what.
        with: Text,
    },
    /// The value holds this text; a list holds it as an item.
    Contains(Text),
    /// A pattern matches somewhere in the value.
    Matches(String),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// A part of a flow or of a script's workload, to which a diagnostic can point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadPart {
    /// The request of this index.
    Request(usize),
    /// The message of this index on the socket.
    Message(usize),
    /// The feed of this index.
    Feed(usize),
    /// A value that is drawn, or a column of a feed.
    Value(ValueId),
    /// The function of a script that is an iteration.
    Function,
}

/// A content coding of the body of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentCoding {
    /// `gzip`
    Gzip,
    /// `deflate`
    Deflate,
    /// `br`
    Brotli,
}

/// How long a user keeps its values, its cookies and the effects of `on_start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// For the whole trial, except for values that are dropped at the end of an iteration.
    #[default]
    Trial,
    /// For an iteration: each has a new user.
    Iteration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_stops_in_an_escape_is_told_from_one_that_does_not() {
        for path in [r#"$["\u"#, r#"$["\u00f"#, r#"$["\ud83d\u"#, r#"$["a\u00fc\ude"#] {
            assert!(ends_in_escape(path), "{path}");
        }
        for path in ["$.a", r#"$["\u00fc"]"#, r#"$["\ud83d\ude00"]"#, "$"] {
            assert!(!ends_in_escape(path), "{path}");
        }
    }
}
