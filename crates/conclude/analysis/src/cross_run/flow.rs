//! Describes the flows and scripts of users as named texts.

use super::named_value::{NamedValue, named, think};
use super::sql;
use plimsoll_model::flow::{
    Auth, Backoff, Block, Body, Capture, Checks, Comparison, Condition, Feed, FeedEnd, FeedOrder, Flow, FlowRequest,
    FlowSocket, Instruction, JsonPiece, JsonText, Lifetime, PartContent, Password, Pick, Piece, Reference, Source,
    Test, Text, ValueId,
};
use plimsoll_model::script::Script;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The values that users keep, and their requests.
pub(super) fn flow(flow: &Flow) -> Vec<NamedValue> {
    let words = Words(flow);
    let lifetime = match flow.lifetime {
        Lifetime::Trial => "as long as it works",
        Lifetime::Iteration => "for an iteration",
    };
    let codings: Vec<String> = flow.compression.iter().map(|coding| format!("{coding:?}").to_lowercase()).collect();
    let mut all = vec![
        named("cookies", if flow.cookies { "kept" } else { "none" }),
        named("redirects", format!("at most {}", flow.redirects)),
        named("content codings", if codings.is_empty() { "none".to_owned() } else { codings.join(", ") }),
        named("what a user keeps", lifetime),
        named("before the first iteration", words.block(&flow.on_start)),
        named("after the last iteration", words.block(&flow.on_stop)),
    ];
    all.extend(flow.actions.iter().map(|action| {
        let text = format!("weight {}: {}", action.weight, words.block(&action.steps));
        named(format!("action `{}`", action.name), text)
    }));
    all.extend(
        flow.draws
            .iter()
            .map(|(value, parameter)| named(format!("value `{}`", words.name(*value)), sql::parameter(parameter))),
    );
    all.extend(flow.feeds.iter().map(|feed| named(format!("feed `{}`", feed.name), feed_in_words(feed))));
    let requests = flow.requests.iter().zip(1..);
    all.extend(requests.flat_map(|(request, number)| words.request(request, number)));
    all.extend(flow.socket.iter().flat_map(|socket| words.socket(socket)));
    all
}

fn feed_in_words(feed: &Feed) -> String {
    let order = match feed.order {
        FeedOrder::PerUser => "a row for each user",
        FeedOrder::InOrder => "row after row",
        FeedOrder::Random => "any row",
        FeedOrder::Unique => "each row once",
    };
    let end = match feed.at_end {
        FeedEnd::StartOver => "then from the start",
        FeedEnd::Stop => "then users stop",
    };
    let columns: Vec<&str> = feed.columns.iter().map(|(_, column)| column.as_str()).collect();
    format!("{} of {}: {order}, {end}", columns.join(", "), feed.file.display())
}

/// Replaces numbers of values in a flow by their names.
struct Words<'a>(&'a Flow);

impl Words<'_> {
    fn name(&self, value: ValueId) -> &str {
        self.0.values.get(usize::from(value.0)).map_or("?", String::as_str)
    }

    fn reference(&self, reference: Reference) -> &str {
        match reference {
            Reference::Value(value) => self.name(value),
            Reference::User => "user",
            Reference::Iteration => "iteration",
            Reference::Uuid => "uuid",
            Reference::Now => "now",
            Reference::Message => "message",
        }
    }

    fn text(&self, text: &Text) -> String {
        let pieces = text.0.iter().map(|piece| match piece {
            Piece::Literal(text) => text.clone(),
            Piece::Value { value, raw } => {
                format!("{{${}{}}}", self.reference(*value), if *raw { "|raw" } else { "" })
            }
        });
        pieces.collect()
    }

    fn json(&self, json: &JsonText) -> String {
        let pieces = json.0.iter().map(|piece| match piece {
            JsonPiece::Literal(text) => text.clone(),
            JsonPiece::Inside(value) => format!("{{${}}}", self.reference(*value)),
            JsonPiece::Whole(value) => format!("\"{{${}}}\"", self.reference(*value)),
        });
        pieces.collect()
    }

    fn block(&self, block: &Block) -> String {
        if block.0.is_empty() {
            return "nothing".to_owned();
        }
        block.0.iter().map(|instruction| self.instruction(instruction)).collect::<Vec<_>>().join(", then ")
    }

    fn instruction(&self, instruction: &Instruction) -> String {
        match instruction {
            Instruction::Request(index) => format!("request {}", index + 1),
            Instruction::Pause(pause) => format!("a pause ({})", think(pause)),
            Instruction::OpenSocket => "open the socket".to_owned(),
            Instruction::Message(index) => format!("message {}", index + 1),
            Instruction::CloseSocket => "close the socket".to_owned(),
            Instruction::When { conditions, then, otherwise } => {
                format!("if {} ({}), else ({})", self.conditions(conditions), self.block(then), self.block(otherwise))
            }
            Instruction::Choose(choices) => {
                let choices =
                    choices.iter().map(|choice| format!("{} (weight {})", self.block(&choice.steps), choice.weight));
                format!("one of ({})", choices.collect::<Vec<_>>().join(" or "))
            }
            Instruction::Repeat { times, steps } => format!("{times} times ({})", self.block(steps)),
            Instruction::Each { list, item, at_most, steps } => format!(
                "for each {} of {}, at most {at_most} ({})",
                self.name(*item),
                self.name(*list),
                self.block(steps)
            ),
            Instruction::While { conditions, at_most, steps } => {
                format!("while {}, at most {at_most} times ({})", self.conditions(conditions), self.block(steps))
            }
        }
    }

    fn conditions(&self, conditions: &[Condition]) -> String {
        conditions.iter().map(|condition| self.condition(condition)).collect::<Vec<_>>().join(" and ")
    }

    fn condition(&self, condition: &Condition) -> String {
        let name = self.reference(condition.value);
        match &condition.test {
            Test::Exists => format!("{name} exists"),
            Test::Absent => format!("{name} is absent"),
            Test::Compare { comparison, with } => format!("{name} {} '{}'", sign(*comparison), self.text(with)),
            Test::Contains(text) => format!("{name} contains '{}'", self.text(text)),
            Test::Matches(pattern) => format!("{name} matches {pattern}"),
        }
    }

    /// A request. Several may share a name, so each also has a number.
    fn request(&self, request: &FlowRequest, number: usize) -> Vec<NamedValue> {
        let of = |what: &str| format!("{what} of request {number} `{}`", request.name);
        let pairs = |pairs: &[(String, Text)]| -> String {
            pairs.iter().map(|(name, text)| format!("{name}: {}", self.text(text))).collect::<Vec<_>>().join("; ")
        };
        let captures: Vec<String> = request.captures.iter().map(|capture| self.capture(capture)).collect();
        let delivers_to = request.delivers_to.as_ref().map(|topic| named(of("listeners"), self.text(topic)));
        let mut all = vec![
            named(of("line"), format!("{} {}", request.method, self.text(&request.path))),
            named(of("headers"), pairs(&request.headers)),
            named(of("body"), self.body(&request.body)),
            named(of("authentication"), self.auth(request.auth.as_ref())),
            named(of("captures"), captures.join("; ")),
            named(of("checks"), self.checks(&request.checks)),
        ];
        all.extend(delivers_to);
        all
    }

    fn body(&self, body: &Body) -> String {
        match body {
            Body::None => "none".to_owned(),
            Body::Text(text) => self.text(text),
            Body::Json(json) => self.json(json),
            Body::Form(fields) => {
                let fields = fields.iter().map(|(name, text)| format!("{}={}", self.text(name), self.text(text)));
                fields.collect::<Vec<_>>().join("&")
            }
            Body::Multipart(parts) => {
                let parts = parts.iter().map(|part| {
                    let content = match &part.content {
                        PartContent::Text(text) => self.text(text),
                        PartContent::File(file) => format!("the file {}", file.display()),
                    };
                    let kind = part.content_type.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
                    format!("{}: {content}{kind}", part.name)
                });
                parts.collect::<Vec<_>>().join("; ")
            }
            Body::File(file) => format!("the file {}", file.display()),
        }
    }

    fn auth(&self, auth: Option<&Auth>) -> String {
        match auth {
            None => "none".to_owned(),
            Some(Auth::Bearer(token)) => format!("bearer {}", self.text(token)),
            Some(Auth::BearerOf(variable)) => format!("bearer of the variable {variable}"),
            Some(Auth::Basic { user, password }) => {
                let password = match password {
                    Password::Environment(variable) => format!("the variable {variable}"),
                    Password::Value(value) => format!("{{${}}}", self.name(*value)),
                };
                format!("{} with the password of {password}", self.text(user))
            }
        }
    }

    fn capture(&self, capture: &Capture) -> String {
        let pick = match capture.pick {
            Pick::First => "",
            Pick::Last => ", the last",
            Pick::Random => ", any",
            Pick::All => ", all",
        };
        let from = match &capture.from {
            Source::Json(path) => path.clone(),
            Source::Header(name) => format!("header {name}"),
            Source::Regex { pattern, group } => format!("group {group} of {pattern}"),
            Source::Cookie(name) => format!("cookie {name}"),
        };
        let default = capture.default.as_ref().map_or_else(String::new, |default| format!(", else {default}"));
        let kept = if capture.keep { ", kept" } else { "" };
        format!("{} = {from}{pick}{default}{kept}", self.name(capture.into))
    }

    /// The socket that users hold, and their messages.
    fn socket(&self, socket: &FlowSocket) -> Vec<NamedValue> {
        let message = |body: Option<&Body>| body.map_or("nothing".to_owned(), |body| self.body(body));
        let awaited =
            |checks: Option<&Checks>| checks.map_or("nothing".to_owned(), |checks| self.message_checks(checks));
        let time = |time: Option<Duration>| time.map_or("none".to_owned(), |time| format!("{time:?}"));
        let reconnect = socket
            .reconnect
            .map_or("never".to_owned(), |Backoff { first, most }| format!("after {first:?}, doubling up to {most:?}"));
        let compression = if socket.compression { "offered" } else { "none" };
        let mut all = vec![
            named("opening of the socket", format!("request {}", socket.opening + 1)),
            named("subprotocols of the socket", socket.subprotocols.join(", ")),
            named("compression of the socket", compression),
            named("first message of the socket", message(socket.greeting.as_ref())),
            named("message with which the socket is ready", awaited(socket.ready.as_ref())),
            named("pings of the socket", time(socket.ping)),
            named("opening a lost socket again", reconnect),
        ];
        if let Some(deliveries) = &socket.deliveries {
            let listens_to = self.name(deliveries.listens_to);
            all.push(named("what users listen to", listens_to));
            all.push(named("messages that deliver", self.message_checks(&deliveries.of)));
            all.push(named("time for a delivery", time(Some(deliveries.within))));
        }
        for (message_spec, number) in socket.messages.iter().zip(1..) {
            let of = |what: &str| format!("{what} of message {number} `{}`", message_spec.name);
            all.push(named(of("text"), message(message_spec.send.as_ref())));
            all.push(named(of("answer"), awaited(message_spec.awaits.as_ref().map(|awaited| &awaited.checks))));
            let captures = message_spec.awaits.iter().flat_map(|awaited| &awaited.captures);
            let captures: Vec<String> = captures.map(|capture| self.capture(capture)).collect();
            all.push(named(of("captures"), captures.join("; ")));
        }
        all
    }

    /// What a message must satisfy.
    fn message_checks(&self, checks: &Checks) -> String {
        let all = self.checks_of_body(checks);
        if all.is_empty() { "any".to_owned() } else { all.join("; ") }
    }

    fn checks_of_body(&self, checks: &Checks) -> Vec<String> {
        let json = checks.json.iter().map(|(path, json)| format!("{path} = {}", self.json(json)));
        let contains = checks.contains.iter().map(|text| format!("contains '{}'", self.text(text)));
        json.chain(contains).chain(checks.matches.iter().map(|pattern| format!("matches {pattern}"))).collect()
    }

    fn checks(&self, checks: &Checks) -> String {
        let statuses: Vec<String> = checks.status.iter().map(u16::to_string).collect();
        let status = if statuses.is_empty() { "below 400".to_owned() } else { statuses.join(" or ") };
        let mut all = vec![format!("status {status}")];
        all.extend(checks.within.map(|within| format!("within {within:?}")));
        all.extend(checks.header.iter().map(|(name, text)| format!("{name}: {}", self.text(text))));
        all.extend(self.checks_of_body(checks));
        all.join("; ")
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::AtMost => "<=",
        Comparison::Greater => ">",
        Comparison::AtLeast => ">=",
    }
}

/// The script that users run. The hashes of its files are described with the files of the workload.
pub(super) fn script(script: &Script) -> Vec<NamedValue> {
    let pairs = |pairs: &BTreeMap<String, String>| {
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    };
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let limits = script.limits;
    let iteration = limits.iteration.map_or("as long as it takes".to_owned(), |limit| format!("{limit:?}"));
    vec![
        named("script", script.entry.display().to_string()),
        named("function of the script", &script.exec),
        named("environment of the script", pairs(&script.env)),
        named("tags of the script", pairs(&script.tags)),
        named("folders that the script reads", paths(&script.files)),
        named("hosts that the script may reach", script.allowed.join(", ")),
        named(
            "limits of the script",
            format!(
                "{} bytes of memory, {} of stack, {:?} without waiting, an iteration {iteration}",
                limits.memory, limits.stack, limits.busy
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::flow::{Checks, ContentCoding, FlowAction, MultipartPart};
    use plimsoll_model::load::Think;
    use plimsoll_model::sql::{Distribution, Parameter};
    use std::time::Duration;

    fn literal(text: &str) -> Text {
        Text(vec![Piece::Literal(text.to_owned())])
    }

    fn value(id: u16) -> Piece {
        Piece::Value { value: Reference::Value(ValueId(id)), raw: false }
    }

    /// A flow that has some of everything.
    fn example() -> Flow {
        let request = FlowRequest {
            name: "GET /plan/{$plan}".to_owned(),
            method: "GET".to_owned(),
            path: Text(vec![Piece::Literal("/plan/".to_owned()), value(0)]),
            headers: vec![("X".to_owned(), literal("1"))],
            body: Body::Multipart(vec![MultipartPart {
                name: "doc".to_owned(),
                content: PartContent::File("doc.pdf".into()),
                content_type: Some("application/pdf".to_owned()),
            }]),
            auth: Some(Auth::Basic { user: literal("bob"), password: Password::Environment("SECRET".to_owned()) }),
            captures: vec![Capture {
                into: ValueId(1),
                from: Source::Json("$.ids".to_owned()),
                pick: Pick::All,
                default: Some(Vec::<bool>::new().into()),
                keep: true,
            }],
            checks: Checks { status: vec![200, 201], within: Some(Duration::from_millis(800)), ..Checks::default() },
            delivers_to: None,
        };
        let condition = Condition {
            value: Reference::User,
            test: Test::Compare { comparison: Comparison::Less, with: literal("10") },
        };
        let each = Instruction::Each {
            list: ValueId(1),
            item: ValueId(2),
            at_most: 5,
            steps: Block(vec![Instruction::Pause(Think::Constant(Duration::from_secs(1)))]),
        };
        let steps = Block(vec![
            Instruction::Request(0),
            Instruction::When { conditions: vec![condition], then: Block(vec![each]), otherwise: Block::default() },
        ]);
        let again = FlowAction { name: "again".to_owned(), weight: 4, steps: Block(vec![Instruction::Request(0)]) };
        Flow {
            requests: vec![request],
            actions: vec![FlowAction { name: "look".to_owned(), weight: 3, steps }],
            on_start: Block::default(),
            on_stop: Block(vec![Instruction::Choose(vec![again])]),
            values: ["account.plan", "ids", "id", "page"].map(str::to_owned).into(),
            draws: vec![(ValueId(3), Parameter::Number { low: 1, high: 9, distribution: Distribution::Uniform })],
            feeds: vec![Feed {
                name: "account".to_owned(),
                file: "accounts.csv".into(),
                order: FeedOrder::Unique,
                at_end: FeedEnd::Stop,
                columns: vec![(ValueId(0), "plan".to_owned())],
            }],
            cookies: true,
            redirects: 5,
            compression: vec![ContentCoding::Gzip],
            lifetime: Lifetime::Iteration,
            socket: None,
        }
    }

    #[test]
    fn a_flow_is_told_in_words() {
        let lines: Vec<String> = flow(&example()).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            lines,
            [
                "cookies: kept",
                "redirects: at most 5",
                "content codings: gzip",
                "what a user keeps: for an iteration",
                "before the first iteration: nothing",
                "after the last iteration: one of (request 1 (weight 4))",
                "action `look`: weight 3: request 1, then if user < '10' (for each id of ids, at most 5 (a pause (1s))), else \
                 (nothing)",
                "value `page`: 1 to 9, uniform",
                "feed `account`: plan of accounts.csv: each row once, then users stop",
                "line of request 1 `GET /plan/{$plan}`: GET /plan/{$account.plan}",
                "headers of request 1 `GET /plan/{$plan}`: X: 1",
                "body of request 1 `GET /plan/{$plan}`: doc: the file doc.pdf (application/pdf)",
                "authentication of request 1 `GET /plan/{$plan}`: bob with the password of the variable SECRET",
                "captures of request 1 `GET /plan/{$plan}`: ids = $.ids, all, else [], kept",
                "checks of request 1 `GET /plan/{$plan}`: status 200 or 201; within 800ms",
            ]
        );
    }
}
