//! `[workload]` with `protocol = "http"`: HTTP/1.1 requests, one after the other, or a flow.

use crate::document::{Fault, Faults, OneOrMore, table};
use crate::table::auth::AuthValue;
use crate::table::body::{PartTable, RequestBody};
use crate::table::capture::{CaptureTable, JsonPath, Pattern};
use crate::table::condition::Conditions;
use crate::table::feed::FeedTable;
use crate::table::socket::SocketTable;
use crate::table::step::StepTable;
use crate::table::target::{Address, TlsTable};
use crate::table::workload::{Common, Protocol};
use crate::value::{
    AnyJson, Entries, HttpStatus, Literal, PositiveTimeSpan, Problem, Scalar, Scope, Templated, Text, UserTemplate,
    ValueNames, ValueUse, Weight, WholeNumber, Word, keyword, literal, resolve_all, resolve_optional,
};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Body, Checks, ContentCoding, FlowRequest, Lifetime, Piece};
use plimsoll_model::sql::Parameter;
use plimsoll_model::workload::{Connect, HttpStep};
use serde_json::{Value, json};

table! {
    /// HTTP/1.1 requests, one after the other, make an iteration.
    struct HttpTable {
        /// What is spoken with the target.
        #[allow(dead_code)] // read before, to choose this table
        protocol: Literal<Protocol>,
        /// Where requests go: HOST:PORT, http://HOST[:PORT] or https://HOST[:PORT]; "{NAME.address}" for a system.
        target: Templated<Address>,
        /// Encryption and how the server is checked. Default: none, unless the target is https://.
        tls: Option<TlsTable>,
        /// When connections are made: "per user", "every iteration" or "shared N". Default: "per user".
        connect: Option<Templated<Connect>>,
        /// The longest that one request, or connecting, may take. Default: "10s".
        timeout: Option<Templated<PositiveTimeSpan>>,
        /// Header lines of every request, unless its step has another one of the name.
        headers: Option<Entries<UserTemplate<Word>>>,
        /// As whom requests are made. Default: as nobody.
        auth: Option<AuthValue>,
        /// Whether users keep cookies and send them back. Default: false.
        cookies: Option<Templated<bool>>,
        /// How many redirects in a row are followed, to the same target. Default: 0.
        redirects: Option<Templated<Redirects>>,
        /// Content codings that are asked for, and undone before captures and checks: "gzip", "deflate", "br". Default: none.
        compression: Option<Vec<Templated<ContentCoding>>>,
        /// How long users keep values, cookies and what `on_start` did: "per user", or anew "every iteration". Default: "per user".
        state: Option<Templated<Lifetime>>,
        /// Values that are drawn anew for each iteration: "1 to 100", "zipf 0.9 1 to 10000", "text 16" or "constant x".
        draw: Option<Entries<Templated<Parameter>>>,
        /// Files whose rows users take.
        feeds: Option<Entries<FeedTable>>,
        /// A WebSocket that each user holds beside its requests. Default: none.
        socket: Option<SocketTable>,
        /// What a user does before its first iteration. Default: nothing.
        on_start: Option<Vec<StepTable>>,
        /// The steps of an iteration.
        steps: Option<Vec<StepTable>>,
        /// Instead of `steps`: several kinds of iteration, of which each iteration is one, drawn by weight.
        actions: Option<Vec<HttpActionTable>>,
        /// What a user does after its last iteration. Default: nothing.
        on_stop: Option<Vec<StepTable>>,
    }
}

table! {
    /// One kind of iteration, or one choice in it.
    struct HttpActionTable {
        /// Its name in reports. Default: its number.
        name: Option<Templated<Text>>,
        /// How often it is drawn, beside the other weights. Default: 1.
        weight: Option<Templated<Weight>>,
        /// What is done then.
        steps: Vec<StepTable>,
    }
}

table! {
    /// One request and what must come back.
    struct HttpStepTable {
        /// Name in the results. Default: method and path.
        name: Option<Templated<Text>>,
        /// Path of a GET, instead of `method` and `path`.
        get: Option<UserTemplate<RequestPath>>,
        /// GET, POST, or any other. Default: "GET".
        method: Option<Templated<Method>>,
        /// Path with query, starting with a slash.
        path: Option<UserTemplate<RequestPath>>,
        /// Header lines besides Host, User-Agent, Connection, Content-Length and Transfer-Encoding.
        headers: Option<Entries<UserTemplate<Word>>>,
        /// The body. Default: none.
        body: Option<UserTemplate<Word>>,
        /// A body in JSON. A text that is one value and nothing else has the type of this value.
        json: Option<AnyJson>,
        /// The fields of a form, as a body of type application/x-www-form-urlencoded.
        form: Option<Entries<UserTemplate<Word>>>,
        /// The fields and files of a form, as a body of type multipart/form-data.
        multipart: Option<Vec<PartTable>>,
        /// A file whose bytes are the body, relative to the study's folder.
        body_file: Option<Templated<Text>>,
        /// As whom this request is made; false for nobody. Default: as the workload says.
        auth: Option<AuthValue>,
        /// Values that are kept of the reply, by name.
        capture: Option<Entries<CaptureTable>>,
        /// The request is made only if this holds of values.
        when: Option<Conditions>,
        /// What must come back. Default: a status below 400.
        expect: Option<HttpExpectTable>,
        /// The users to whose sockets the system delivers what is posted: those that listen to this.
        delivers_to: Option<UserTemplate<Text>>,
    }
}

table! {
    /// What must come back from a request.
    struct HttpExpectTable {
        /// The status, or several. Default: any below 400.
        status: Option<OneOrMore<Templated<HttpStatus>>>,
        /// How long the reply may take at most.
        within: Option<Templated<PositiveTimeSpan>>,
        /// Headers with the values that they must have.
        header: Option<Entries<UserTemplate<Word>>>,
        /// JSONPaths into the body with what must stand there.
        json: Option<Entries<AnyJson>>,
        /// What the body must hold.
        body: Option<BodyExpectTable>,
    }
}

table! {
    /// What a body must hold.
    struct BodyExpectTable {
        /// A text, or several.
        contains: Option<OneOrMore<UserTemplate<Text>>>,
        /// A regular expression that must match somewhere, or several.
        matches: Option<OneOrMore<Templated<Pattern>>>,
    }
}

type Redirects = WholeNumber<0, 50>;

impl HttpTable {
    pub(crate) fn common(&self) -> Common<'_> {
        Common {
            target: &self.target,
            tls: self.tls.as_ref(),
            connect: self.connect.as_ref(),
            timeout: self.timeout.as_ref(),
        }
    }

    /// The steps of a workload that is no flow.
    pub(crate) fn plain_steps(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Vec<HttpStep>> {
        resolve_all(self.steps.as_deref()?, |step| match step {
            StepTable::Request(request) => request.plain(scope, faults),
            _ => None,
        })
    }
}

impl HttpStepTable {
    /// The name as the study has it, placeholders and all.
    pub(crate) fn name(&self) -> String {
        let method = self.method.as_ref().map_or("GET", |method| method.as_written());
        let path = self.get.as_ref().or(self.path.as_ref()).map_or("", |path| path.as_written());
        self.name.as_ref().map_or_else(|| format!("{method} {path}"), |name| name.as_written().to_owned())
    }

    /// Returns true if the request makes its workload a flow.
    pub(crate) fn is_of_flow(&self) -> bool {
        let own = [
            self.json.is_some(),
            self.form.is_some(),
            self.multipart.is_some(),
            self.body_file.is_some(),
            self.auth.is_some(),
            self.capture.is_some(),
            self.when.is_some(),
            self.delivers_to.is_some(),
            self.expect.as_ref().is_some_and(HttpExpectTable::is_of_flow),
        ];
        own.contains(&true) || !self.uses().is_empty()
    }

    /// The request of a workload that is no flow: what it sends is always the same.
    fn plain(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<HttpStep> {
        let request = self.resolve(scope, &RequestDefaults::default(), faults)?;
        let body = match request.body {
            Body::Text(body) => literal(body).into_bytes(),
            _ => Vec::new(),
        };
        Some(HttpStep {
            name: request.name,
            method: request.method,
            path: literal(request.path),
            headers: request.headers.into_iter().map(|(name, value)| (name, literal(value))).collect(),
            body,
            status: request.checks.status.first().copied(),
        })
    }

    /// The request, with what the workload says of all of them.
    pub(crate) fn resolve(
        &self,
        scope: &Scope<'_>,
        defaults: &RequestDefaults<'_>,
        faults: &mut Faults,
    ) -> Option<FlowRequest> {
        let values = defaults.values;
        let path = self.path(faults).and_then(|path| path.resolve(scope, values, faults));
        let method = resolve_optional(self.method.as_ref(), |method| method.resolve(scope, faults));
        let own = resolve_optional(self.headers.as_ref(), |headers| checked_headers(headers, scope, values, faults));
        let shared = resolve_optional(defaults.headers, |headers| checked_headers(headers, scope, values, faults));
        let body = self.body().resolve(scope, values, faults);
        let auth = resolve_optional(self.auth.as_ref().or(defaults.auth), |auth| auth.resolve(scope, values, faults));
        let captures = resolve_optional(self.capture.as_ref(), |captures| {
            resolve_all(&captures.0, |(name, _, capture)| capture.resolve(name, scope, values, faults))
        });
        let checks = resolve_optional(self.expect.as_ref(), |expect| expect.resolve(scope, values, faults));
        let delivers_to = resolve_optional(self.delivers_to.as_ref(), |topic| topic.resolve(scope, values, faults));
        Some(FlowRequest {
            name: self.name(),
            method: method?.map_or_else(|| "GET".to_owned(), |method| method.0),
            path: path?,
            headers: merged_headers(shared?.unwrap_or_default(), own?.unwrap_or_default()),
            body: body?,
            auth: auth?.flatten(),
            captures: captures?.unwrap_or_default(),
            checks: checks?.unwrap_or_default(),
            delivers_to: delivers_to?,
        })
    }

    fn body(&self) -> RequestBody<'_> {
        RequestBody {
            text: self.body.as_ref(),
            json: self.json.as_ref(),
            form: self.form.as_ref(),
            multipart: self.multipart.as_deref(),
            file: self.body_file.as_ref(),
        }
    }

    /// Faults that no level changes.
    pub(crate) fn check(&self, faults: &mut Faults) {
        self.body().check(&self.place, faults);
        self.auth.iter().for_each(|auth| auth.check(faults));
        self.capture.iter().flat_map(Entries::iter).for_each(|(_, capture)| capture.check(faults));
        self.expect.iter().for_each(|expect| expect.check(faults));
        if let Some(topic) =
            self.delivers_to.as_ref().filter(|_| !self.uses().iter().any(|one| one.value.name == "message"))
        {
            let fault = Fault::error(&topic.span, "nothing in the request tells its deliveries from others");
            faults.add(
                fault.help(
                    "write `{$message}` into what the system passes on, as in `json = { text = \"… {$message}\" }`",
                ),
            );
        }
    }

    /// The values that the request itself needs, before anything is captured of its reply.
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        let paths = self.get.iter().chain(&self.path).flat_map(UserTemplate::uses);
        let headers = self.headers.iter().flat_map(value_uses);
        let body = self.body().uses();
        let auth = self.auth.iter().flat_map(AuthValue::uses);
        let expected = self.expect.iter().flat_map(HttpExpectTable::uses);
        let topic = self.delivers_to.iter().flat_map(UserTemplate::uses);
        paths.chain(headers).chain(body).chain(auth).chain(expected).chain(topic).collect()
    }

    /// The one path that the step must have.
    fn path(&self, faults: &mut Faults) -> Option<&UserTemplate<RequestPath>> {
        let fault = match (&self.get, &self.path) {
            (Some(get), None) if self.method.is_none() => return Some(get),
            (None, Some(path)) => return Some(path),
            (Some(get), _) => Fault::error(&get.span, "a step with `get` has no other `method` or `path`")
                .help("write `get = \"/path\"` alone, or `method` and `path`"),
            (None, None) => Fault::error(&self.place, "the step does not say what to request")
                .help("add `get = \"/path\"`, or `method` and `path`"),
        };
        faults.add(fault);
        None
    }
}

/// What a workload says of all its requests, and the values that they may use.
#[derive(Clone, Copy)]
pub(crate) struct RequestDefaults<'a> {
    pub(crate) headers: Option<&'a Entries<UserTemplate<Word>>>,
    pub(crate) auth: Option<&'a AuthValue>,
    pub(crate) values: &'a ValueNames,
}

impl Default for RequestDefaults<'_> {
    /// Nothing.
    fn default() -> Self {
        static NONE: ValueNames = ValueNames(Vec::new());
        RequestDefaults { headers: None, auth: None, values: &NONE }
    }
}

pub(crate) fn value_uses<T: Scalar>(texts: &Entries<UserTemplate<T>>) -> Vec<ValueUse> {
    texts.iter().flat_map(|(_, text)| text.uses()).collect()
}

impl HttpExpectTable {
    fn is_of_flow(&self) -> bool {
        let statuses = self.status.as_ref().map_or(0, |status| status.0.len());
        self.within.is_some() || self.header.is_some() || self.json.is_some() || self.body.is_some() || statuses > 1
    }

    fn uses(&self) -> Vec<ValueUse> {
        let headers = self.header.iter().flat_map(value_uses);
        let json = self.json.iter().flat_map(Entries::iter).flat_map(|(_, json)| json.0.uses());
        let texts = self.body.iter().filter_map(|body| body.contains.as_ref()).flat_map(|texts| &texts.0);
        headers.chain(json).chain(texts.flat_map(UserTemplate::uses)).collect()
    }

    fn check(&self, faults: &mut Faults) {
        let empty = self.status.as_ref().is_some_and(|status| status.0.is_empty());
        if empty {
            let fault = Fault::error(&self.place, "`status` is empty: no reply could be right");
            faults.add(fault.help("leave it out for any status below 400"));
        }
        for (path, place) in self.json.iter().flat_map(Entries::names) {
            if let Err(problem) = JsonPath::from_level(&Level::Text(path.to_owned())) {
                faults.add(problem.fault(place, path));
            }
        }
    }

    fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Checks> {
        let statuses = self.status.as_ref().map_or(&[][..], |status| &status.0);
        let status = resolve_all(statuses, |status| status.resolve(scope, faults).map(HttpStatus::u16));
        let within = resolve_optional(self.within.as_ref(), |within| within.resolve(scope, faults));
        let header =
            resolve_optional(self.header.as_ref(), |header| header.each(|text| text.resolve(scope, values, faults)));
        let json =
            resolve_optional(self.json.as_ref(), |json| json.each(|json| json.0.with_values(scope, values, faults)));
        let body = resolve_optional(self.body.as_ref(), |body| body.resolve(scope, values, faults));
        let (contains, matches) = body?.unwrap_or_default();
        Some(Checks {
            status: status?,
            within: within?.map(|within| within.0),
            header: header?.unwrap_or_default(),
            json: json?.unwrap_or_default(),
            contains,
            matches,
        })
    }
}

impl BodyExpectTable {
    /// The texts that must be there, and the patterns that must match.
    fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<TextsAndPatterns> {
        texts_and_patterns(self.contains.as_ref(), self.matches.as_ref(), scope, values, faults)
    }
}

type TextsAndPatterns = (Vec<plimsoll_model::flow::Text>, Vec<String>);

/// The texts that must be somewhere, and the patterns that must match there.
pub(crate) fn texts_and_patterns(
    contains: Option<&OneOrMore<UserTemplate<Text>>>,
    matches: Option<&OneOrMore<Templated<Pattern>>>,
    scope: &Scope<'_>,
    values: &ValueNames,
    faults: &mut Faults,
) -> Option<TextsAndPatterns> {
    let contains =
        resolve_optional(contains, |texts| resolve_all(&texts.0, |text| text.resolve(scope, values, faults)));
    let matches = resolve_optional(matches, |patterns| {
        resolve_all(&patterns.0, |pattern| pattern.resolve(scope, faults).map(|pattern| pattern.text))
    });
    Some((contains?.unwrap_or_default(), matches?.unwrap_or_default()))
}

type Header = (String, plimsoll_model::flow::Text);

/// Merges the headers of all requests with those of one, which replace those of the same name.
pub(crate) fn merged_headers(shared: Vec<Header>, own: Vec<Header>) -> Vec<Header> {
    let is_own = |name: &str| own.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut headers: Vec<Header> = shared.into_iter().filter(|(name, _)| !is_own(name)).collect();
    headers.extend(own);
    headers
}

/// Headers that HTTP can carry and the generator does not write itself.
pub(crate) fn checked_headers(
    headers: &Entries<UserTemplate<Word>>,
    scope: &Scope<'_>,
    values: &ValueNames,
    faults: &mut Faults,
) -> Option<Vec<Header>> {
    const OWN: [&str; 5] = ["host", "user-agent", "content-length", "transfer-encoding", "connection"];
    for (name, place) in headers.names() {
        if name.is_empty() || !name.chars().all(is_token) {
            faults.add(Fault::error(place, format!("`{name}` cannot be the name of a header")));
        } else if OWN.contains(&name.to_ascii_lowercase().as_str()) {
            let fault = Fault::error(place, format!("the header `{name}` is written by Plimsoll"));
            faults.add(fault.help("leave it out"));
        }
    }
    let resolved = headers.each(|text| text.resolve(scope, values, faults))?;
    for ((name, text), (_, _, written)) in resolved.iter().zip(&headers.0) {
        let is_control = |piece: &Piece| matches!(piece, Piece::Literal(text) if text.chars().any(char::is_control));
        if text.0.iter().any(is_control) {
            let message = format!("the value of the header `{name}` must be one line of text");
            faults.add(Fault::error(&written.span, message));
        }
    }
    Some(resolved)
}

/// The characters of methods and header names (RFC 9110, section 5.6.2).
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// A path with query, starting with a slash.
#[derive(Clone, Debug)]
pub(crate) struct RequestPath;

impl Scalar for RequestPath {
    const EXPECTED: &'static str = "a path that starts with `/`";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text)
                if text.chars().any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii() || c == '#') =>
            {
                let problem = Problem::new(format!("has a character that a path cannot carry: \"{text}\""));
                Err(problem.help("write it percent-encoded, as in `%20` for a space"))
            }
            Level::Text(text) if text.starts_with('/') => Ok(RequestPath),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[/{]" })
    }
}

/// A method.
#[derive(Clone, Debug)]
pub(crate) struct Method(String);

impl Scalar for Method {
    const EXPECTED: &'static str = "a method such as \"GET\" or \"POST\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text == "CONNECT" => Err(Problem::new("must not be CONNECT: no tunnels are made")),
            Level::Text(text) if !text.is_empty() && text.chars().all(is_token) => Ok(Method(text.clone())),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Scalar for ContentCoding {
    const EXPECTED: &'static str = "\"gzip\", \"deflate\" or \"br\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let words = [("gzip", ContentCoding::Gzip), ("deflate", ContentCoding::Deflate), ("br", ContentCoding::Brotli)];
        keyword(level, &words)
    }

    fn schema() -> Value {
        json!({ "enum": ["gzip", "deflate", "br"] })
    }
}

impl Scalar for Lifetime {
    const EXPECTED: &'static str = "\"per user\" or \"every iteration\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("per user", Lifetime::Trial), ("every iteration", Lifetime::Iteration)])
    }

    fn schema() -> Value {
        json!({ "enum": ["per user", "every iteration"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::table::workload::{StudyContext, WorkloadTable};
    use crate::value::{Bindings, NO_LOGINS};
    use plimsoll_model::factor::Assignment;
    use plimsoll_model::workload::{Steps, Target, Tls, Workload};
    use std::path::Path;
    use std::time::Duration;

    fn resolve(text: &str, faults: &mut Faults) -> Option<Workload> {
        let table: WorkloadTable = read_table(&format!("protocol = 'http'\n{text}"));
        let bindings = Bindings { ports: [("api".to_owned(), 80)].into(), ..Bindings::default() };
        let assignment = Assignment(vec![("size".to_owned(), Level::Integer(4))]);
        let scope = Scope {
            assignment: &assignment,
            bindings: &bindings,
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            is_trusted: false,
            system: None,
            dir: Path::new("/s"),
            processors: &[0],
            of_generator: None,
        };
        table.resolve(&scope, StudyContext::default(), faults)
    }

    #[test]
    fn a_workload_is_resolved() {
        let text = "target = 'https://example.org'\nconnect = 'shared 4'\ntimeout = '2s'\ntls = { ca = 'ca.pem' }\n\
                    steps = [{ get = '/files/{size}' }, { method = 'POST', path = '/', headers = { n = '{size}' }, \
                    body = '{{}}', expect = { status = 201 } }]";
        let workload = resolve(text, &mut no_faults()).expect("a workload");
        let tls = Tls { ca: Some("/s/ca.pem".into()), server_name: None, insecure: false };
        assert_eq!(workload.target, Some(Target { host: "example.org".to_owned(), port: 443, tls: Some(tls) }));
        assert_eq!((workload.connect, workload.timeout), (Connect::Shared(4), Duration::from_secs(2)));
        let Steps::Http(steps) = workload.steps else { panic!("HTTP steps") };
        assert_eq!((steps[0].name.as_str(), steps[0].path.as_str()), ("GET /files/{size}", "/files/4"));
        assert_eq!((steps[1].method.as_str(), steps[1].body.as_slice()), ("POST", b"{}".as_slice()));
        assert_eq!(steps[1].headers, [("n".to_owned(), "4".to_owned())]);
        assert_eq!(steps[1].status, Some(201));
    }

    #[test]
    fn wrong_requests_are_named_when_read() {
        for (text, what) in [
            ("steps = []", "`workload.steps` is empty"),
            ("steps = [{ get = 'x' }]", "starts with `/`"),
            ("steps = [{ get = '/a b' }]", "percent-encoded"),
            ("steps = [{ get = '/', expect = { status = 99 } }]", "at least 100"),
            ("steps = [{ get = '/' }]\nproto = ['a']", "unknown key `proto`"),
            ("steps = [{ get = '/' }]\nconnect = 'always'", "per user"),
        ] {
            let faults = faults_of::<WorkloadTable>(&format!("protocol = 'http'\ntarget = 'a:1'\n{text}"));
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }

    #[test]
    fn wrong_requests_are_named_when_resolved() {
        for (text, what) in [
            ("target = 'a:1'\nsteps = [{ }]", "what to request"),
            ("target = 'a:1'\nsteps = [{ get = '/', method = 'PUT' }]", "no other `method`"),
            ("target = 'a:1'\nsteps = [{ get = '/', headers = { Host = 'x' } }]", "written by Plimsoll"),
            ("target = 'a:1'\nsteps = [{ get = '/', headers = { a = \"x\\ny\" } }]", "one line"),
            ("target = 'http://a'\ntls = {}\nsteps = [{ get = '/' }]", "https"),
        ] {
            let mut faults = no_faults();
            resolve(text, &mut faults);
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }
}
