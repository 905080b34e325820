//! `[workload.socket]`: a WebSocket that each user holds beside its requests, and the steps on it.

use crate::document::{Fault, Faults, FromToml, Node, OneOrMore, Schemas, Span, table};
use crate::table::auth::AuthValue;
use crate::table::capture::{CaptureTable, JsonPath, Pattern};
use crate::table::http::{
    HttpTable, RequestDefaults, RequestPath, checked_headers, merged_headers, texts_and_patterns, value_uses,
};
use crate::table::step::{StepTable, ValueName, walk};
use crate::value::{
    AnyJson, Entries, Literal, PositiveTimeSpan, Problem, Scalar, Scope, Templated, Text, UserTemplate, ValueNames,
    ValueUse, Word, keyword, resolve_all, resolve_optional,
};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{
    AwaitedMessage, Backoff, Body, Checks, Deliveries, FlowMessage, FlowRequest, FlowSocket, Lifetime,
};
use plimsoll_model::record::{MESSAGES_RECEIVED, MESSAGES_SENT, SOCKETS_LOST};
use serde_json::{Value, json};
use std::time::Duration;
use toml::de::DeValue;

table! {
    /// A WebSocket that each user holds beside its requests.
    struct SocketTable {
        /// Name of its openings in the results. Default: "open socket".
        name: Option<Templated<Text>>,
        /// Path with query, starting with a slash.
        path: UserTemplate<RequestPath>,
        /// Header lines of the handshake, besides those of the workload.
        headers: Option<Entries<UserTemplate<Word>>>,
        /// As whom it is opened; false for nobody. Default: as the workload says.
        auth: Option<AuthValue>,
        /// Subprotocols of which the server may choose one. Default: none.
        protocols: Option<Vec<Templated<Text>>>,
        /// Whether compression of messages (permessage-deflate) is offered. Default: false.
        compression: Option<Templated<bool>>,
        /// What is sent as soon as it is open: a text, or a table that becomes JSON. Default: nothing.
        send: Option<MessageText>,
        /// The message with which it is ready. Default: it is ready when it is open.
        ready: Option<MessageExpectTable>,
        /// How often a ping is sent; where nothing came since the last one, the socket is lost. Default: never.
        ping: Option<Templated<PositiveTimeSpan>>,
        /// The waits before a lost socket is opened again, or false to leave it closed. Default: from 1s, doubled up to 30s.
        reconnect: Option<ReconnectValue>,
        /// What the system delivers on it, to be counted and timed. Default: deliveries are not looked at.
        deliveries: Option<DeliveriesTable>,
    }
}

table! {
    /// What a message must hold.
    struct MessageExpectTable {
        /// JSONPaths into the message with what must stand there.
        json: Option<Entries<AnyJson>>,
        /// A text, or several.
        contains: Option<OneOrMore<UserTemplate<Text>>>,
        /// A regular expression that must match somewhere, or several.
        matches: Option<OneOrMore<Templated<Pattern>>>,
    }
}

table! {
    /// Which messages are deliveries, and to whom they go.
    struct DeliveriesTable {
        /// The name of a value: what the user listens to while its socket is open, each item of a list or one text.
        listens_to: Literal<ValueName>,
        /// What a message must hold, beside `{$message}` of a request. Default: nothing more.
        of: Option<MessageExpectTable>,
        /// Later than this after the request a delivery counts as lost. Default: "10s".
        within: Option<Templated<PositiveTimeSpan>>,
    }
}

table! {
    /// The waits before a lost socket is opened again.
    struct ReconnectTable {
        /// The first wait. Each is drawn from half of its length to the whole. Default: "1s".
        first: Option<Templated<PositiveTimeSpan>>,
        /// The longest. Default: "30s".
        most: Option<Templated<PositiveTimeSpan>>,
    }
}

table! {
    /// The user opens its socket, or closes it.
    struct SocketStepTable {
        /// "open", which waits until it is ready, or "close".
        socket: Literal<SocketWord>,
    }
}

table! {
    /// A message on the user's socket: sent, awaited, or sent and answered.
    struct MessageStepTable {
        /// Name in the results, where something is awaited. Default: "message".
        name: Option<Templated<Text>>,
        /// What is sent: a text, or a table that becomes JSON.
        send: Option<MessageText>,
        /// The message that the user waits for. Others are passed over.
        r#await: Option<MessageExpectTable>,
        /// Values that are kept of it, by name.
        capture: Option<Entries<CaptureTable>>,
    }
}

/// The action of a step on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketWord {
    Open,
    Close,
}

/// The text of a message, or JSON.
#[derive(Clone, Debug)]
pub(crate) enum MessageText {
    Text(UserTemplate<Word>),
    Json(Box<AnyJson>),
}

/// The waits before a lost socket is opened again, or none.
#[derive(Clone, Debug)]
pub(crate) enum ReconnectValue {
    /// `false`: it stays closed.
    Never,
    /// After these waits.
    After(Box<ReconnectTable>),
}

/// The name of openings where the study gives none.
const NAME: &str = "open socket";

/// The name of messages where the study gives none.
const MESSAGE: &str = "message";

const WITHIN: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The counters of what goes over sockets.
pub(crate) const COUNTERS: [&str; 3] = [MESSAGES_SENT, MESSAGES_RECEIVED, SOCKETS_LOST];

impl SocketTable {
    /// The name of its openings as the study has it.
    pub(crate) fn name(&self) -> String {
        self.name.as_ref().map_or_else(|| NAME.to_owned(), |name| name.as_written().to_owned())
    }

    /// The values that opening it takes.
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        let headers = self.headers.iter().flat_map(value_uses);
        let auth = self.auth.iter().flat_map(AuthValue::uses);
        let sent = self.send.iter().flat_map(MessageText::uses);
        let of = self.deliveries.iter().filter_map(|deliveries| deliveries.of.as_ref());
        let expected = self.ready.iter().chain(of).flat_map(MessageExpectTable::uses);
        self.path.uses().into_iter().chain(headers).chain(auth).chain(sent).chain(expected).collect()
    }

    /// The name of the value that users listen to, and where it stands.
    pub(crate) fn listens_to(&self) -> Option<(&str, &Span)> {
        let listens_to = &self.deliveries.as_ref()?.listens_to;
        Some((listens_to.value.0.as_str(), &listens_to.span))
    }

    /// The request that opens it, and the socket with these messages, for the trial that `scope` stands for.
    pub(crate) fn resolve(
        &self,
        scope: &Scope<'_>,
        defaults: &RequestDefaults<'_>,
        faults: &mut Faults,
    ) -> Option<(FlowRequest, FlowSocket)> {
        let values = defaults.values;
        let opening = self.opening(scope, defaults, faults);
        let subprotocols =
            resolve_optional(self.protocols.as_ref(), |all| resolve_all(all, |one| one.resolve(scope, faults)));
        let compression = resolve_optional(self.compression.as_ref(), |offered| offered.resolve(scope, faults));
        let greeting = resolve_optional(self.send.as_ref(), |send| send.resolve(scope, values, faults));
        let ready = resolve_optional(self.ready.as_ref(), |ready| ready.resolve(scope, values, faults));
        let ping = resolve_optional(self.ping.as_ref(), |ping| ping.resolve(scope, faults));
        let reconnect = self.backoff(scope, faults);
        let deliveries =
            resolve_optional(self.deliveries.as_ref(), |deliveries| deliveries.resolve(scope, values, faults));
        let socket = FlowSocket {
            opening: 0,
            subprotocols: subprotocols?.unwrap_or_default().into_iter().map(|name| name.0).collect(),
            compression: compression?.unwrap_or(false),
            greeting: greeting?,
            ready: ready?,
            ping: ping?.map(|ping| ping.0),
            reconnect: reconnect?,
            deliveries: deliveries?,
            messages: Vec::new(),
        };
        Some((opening?, socket))
    }

    fn opening(&self, scope: &Scope<'_>, defaults: &RequestDefaults<'_>, faults: &mut Faults) -> Option<FlowRequest> {
        let values = defaults.values;
        let path = self.path.resolve(scope, values, faults);
        let own = resolve_optional(self.headers.as_ref(), |headers| checked_headers(headers, scope, values, faults));
        let shared = resolve_optional(defaults.headers, |headers| checked_headers(headers, scope, values, faults));
        let auth = resolve_optional(self.auth.as_ref().or(defaults.auth), |auth| auth.resolve(scope, values, faults));
        Some(FlowRequest {
            name: self.name(),
            method: "GET".to_owned(),
            path: path?,
            headers: merged_headers(shared?.unwrap_or_default(), own?.unwrap_or_default()),
            body: Body::None,
            auth: auth?.flatten(),
            captures: Vec::new(),
            checks: Checks::default(),
            delivers_to: None,
        })
    }

    /// None inside if a lost socket stays closed.
    fn backoff(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Option<Backoff>> {
        let table = match &self.reconnect {
            Some(ReconnectValue::Never) => return Some(None),
            Some(ReconnectValue::After(table)) => Some(table),
            None => None,
        };
        let first =
            resolve_optional(table.and_then(|table| table.first.as_ref()), |first| first.resolve(scope, faults));
        let most = resolve_optional(table.and_then(|table| table.most.as_ref()), |most| most.resolve(scope, faults));
        let first = first?.map_or(FIRST_WAIT, |first| first.0);
        let most = most?.map_or(LONGEST_WAIT.max(first), |most| most.0);
        if let Some(table) = table.filter(|_| most < first) {
            let fault = Fault::error(&table.place, "the longest wait, `most`, is shorter than the `first`");
            faults.add(fault.help("write `reconnect = { first = \"1s\", most = \"30s\" }`"));
            return None;
        }
        Some(Some(Backoff { first, most }))
    }

    /// Faults that no level changes, of the socket of this workload.
    pub(crate) fn check(&self, workload: &HttpTable, faults: &mut Faults) {
        self.auth.iter().for_each(|auth| auth.check(faults));
        let of = self.deliveries.iter().filter_map(|deliveries| deliveries.of.as_ref());
        self.ready.iter().chain(of).for_each(|expect| expect.check(faults));
        if workload.state.as_ref().and_then(Templated::fixed) == Some(&Lifetime::Iteration) {
            let message = "users that are new in each iteration hold no socket";
            let help = "leave `state` out; for a new socket in each iteration, open it in the first step and close it in the last";
            faults.add(Fault::error(&self.place, message).help(help));
        }
        if !workload.has_step(|step| matches!(step, StepTable::Socket(table) if table.socket.value == SocketWord::Open))
        {
            let fault = Fault::error(&self.place, "no step opens the socket");
            faults.add(fault.help("add `{ socket = \"open\" }`, as in `on_start = [{ socket = \"open\" }]`"));
        }
        let delivers = |step: &StepTable| matches!(step, StepTable::Request(request) if request.delivers_to.is_some());
        if let Some(deliveries) = self.deliveries.as_ref().filter(|_| !workload.has_step(delivers)) {
            let fault = Fault::error(&deliveries.place, "no request says to whom it delivers");
            faults.add(fault.help(
                "give the step that posts `delivers_to = \"{$channel}\"`, and `{$message}` somewhere in what it sends",
            ));
        }
    }
}

/// Faults of steps that need a socket which the workload does not have.
pub(crate) fn check_without_socket(workload: &HttpTable, faults: &mut Faults) {
    const HELP: &str = "add `[workload.socket]` with its `path`";
    for steps in workload.blocks() {
        walk(steps, &mut |step| match step {
            StepTable::Socket(table) => {
                faults.add(Fault::error(&table.place, "the workload has no socket to open or close").help(HELP));
            }
            StepTable::Message(table) => {
                faults.add(Fault::error(&table.place, "the workload has no socket for messages").help(HELP));
            }
            _ => {}
        });
    }
}

impl DeliveriesTable {
    fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Deliveries> {
        let of = resolve_optional(self.of.as_ref(), |of| of.resolve(scope, values, faults));
        let within = resolve_optional(self.within.as_ref(), |within| within.resolve(scope, faults));
        Some(Deliveries {
            listens_to: values.id(&self.listens_to.value.0)?,
            of: of?.unwrap_or_default(),
            within: within?.map_or(WITHIN, |within| within.0),
        })
    }
}

impl MessageExpectTable {
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        let json = self.json.iter().flat_map(Entries::iter).flat_map(|(_, json)| json.0.uses());
        let texts = self.contains.iter().flat_map(|texts| &texts.0).flat_map(UserTemplate::uses);
        json.chain(texts).collect()
    }

    fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Checks> {
        let json =
            resolve_optional(self.json.as_ref(), |json| json.each(|json| json.0.with_values(scope, values, faults)));
        let texts = texts_and_patterns(self.contains.as_ref(), self.matches.as_ref(), scope, values, faults);
        let (contains, matches) = texts?;
        Some(Checks { json: json?.unwrap_or_default(), contains, matches, ..Checks::default() })
    }

    fn check(&self, faults: &mut Faults) {
        for (path, place) in self.json.iter().flat_map(Entries::names) {
            if let Err(problem) = JsonPath::from_level(&Level::Text(path.to_owned())) {
                faults.add(problem.fault(place, path));
            }
        }
        let is_empty = self.json.is_none() && self.contains.is_none() && self.matches.is_none();
        if is_empty {
            let fault = Fault::error(&self.place, "it does not say what the message holds");
            faults.add(fault.help("write one of `json = { \"$.event\" = \"hello\" }`, `contains` and `matches`"));
        }
    }
}

impl MessageStepTable {
    /// The name as the study has it.
    pub(crate) fn name(&self) -> String {
        self.name.as_ref().map_or_else(|| MESSAGE.to_owned(), |name| name.as_written().to_owned())
    }

    /// The values that it needs, before anything is captured.
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        let sent = self.send.iter().flat_map(MessageText::uses);
        sent.chain(self.r#await.iter().flat_map(MessageExpectTable::uses)).collect()
    }

    pub(crate) fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<FlowMessage> {
        let send = resolve_optional(self.send.as_ref(), |send| send.resolve(scope, values, faults));
        let checks = resolve_optional(self.r#await.as_ref(), |awaited| awaited.resolve(scope, values, faults));
        let captures = resolve_optional(self.capture.as_ref(), |captures| {
            resolve_all(&captures.0, |(name, _, capture)| capture.resolve(name, scope, values, faults))
        });
        let captures = captures?.unwrap_or_default();
        Some(FlowMessage {
            name: self.name(),
            send: send?,
            awaits: checks?.map(|checks| AwaitedMessage { checks, captures }),
        })
    }

    /// Faults that no level changes.
    pub(crate) fn check(&self, faults: &mut Faults) {
        self.r#await.iter().for_each(|awaited| awaited.check(faults));
        for (name, capture) in self.capture.iter().flat_map(Entries::iter) {
            capture.check(faults);
            if capture.needs_headers() {
                let fault = Fault::error(&capture.place, format!("a message has no headers to find `{name}` in"));
                faults.add(fault.help("write `json = \"$.id\"` or `regex = 'id=(\\d+)'`"));
            }
        }
        if self.capture.is_some() && self.r#await.is_none() {
            let fault = Fault::error(&self.place, "the step captures, but awaits nothing");
            faults.add(fault.help("say which message it is: `await = { json = { \"$.event\" = \"hello\" } }`"));
        }
    }
}

impl MessageText {
    fn uses(&self) -> Vec<ValueUse> {
        match self {
            MessageText::Text(text) => text.uses(),
            MessageText::Json(json) => json.0.uses(),
        }
    }

    fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Body> {
        match self {
            MessageText::Text(text) => text.resolve(scope, values, faults).map(Body::Text),
            MessageText::Json(json) => json.0.with_values(scope, values, faults).map(Body::Json),
        }
    }
}

impl FromToml for MessageText {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Table(_) | DeValue::Array(_) => {
                AnyJson::from_toml(node, faults).map(|json| MessageText::Json(Box::new(json)))
            }
            _ => UserTemplate::from_toml(node, faults).map(MessageText::Text),
        }
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        AnyJson::json_schema(schemas)
    }
}

impl FromToml for ReconnectValue {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Boolean(false) => Some(ReconnectValue::Never),
            _ => ReconnectTable::from_toml(node, faults).map(|table| ReconnectValue::After(Box::new(table))),
        }
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [{ "const": false }, ReconnectTable::json_schema(schemas)] })
    }
}

impl Scalar for SocketWord {
    const EXPECTED: &'static str = "\"open\" or \"close\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("open", SocketWord::Open), ("close", SocketWord::Close)])
    }

    fn schema() -> Value {
        json!({ "enum": ["open", "close"] })
    }
}
