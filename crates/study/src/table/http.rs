//! `[workload]` with `protocol = "http"`: HTTP/1.1 requests.

use crate::diagnostic::Fault;
use crate::faults::Faults;
use crate::node::table;
use crate::pairs::Pairs;
use crate::scalar::{HttpStatus, PositiveLength, Text, Word};
use crate::scope::Scope;
use crate::table::target::{Address, TlsTable};
use crate::table::workload::{Common, Protocol};
use crate::value::{Fixed, Problem, Scalar, Slot, optional};
use plimsoll_model::factor::Level;
use plimsoll_model::workload::{Connect, HttpStep};
use schemars::{Schema, json_schema};

table! {
    /// HTTP/1.1 requests, one after the other, make an iteration.
    struct HttpTable {
        /// What is spoken with the target.
        #[allow(dead_code)] // read before, to choose this table
        protocol: Fixed<Protocol>,
        /// Where requests go: HOST:PORT, http://HOST[:PORT] or https://HOST[:PORT]; "{NAME.address}" for a system.
        target: Slot<Address>,
        /// Encryption and how the server is checked. Default: none, unless the target is https://.
        tls: Option<TlsTable>,
        /// When connections are made: "per user", "every iteration" or "shared N". Default: "per user".
        connect: Option<Slot<Connect>>,
        /// The longest that one request, or connecting, may take. Default: "10s".
        timeout: Option<Slot<PositiveLength>>,
        /// The requests of an iteration.
        steps: Vec<HttpStepTable>,
    }
}

table! {
    /// One request and what must come back.
    struct HttpStepTable {
        /// Name in the results. Default: method and path.
        name: Option<Slot<Text>>,
        /// Path of a GET, instead of `method` and `path`.
        get: Option<Slot<RequestPath>>,
        /// GET, POST, or any other. Default: "GET".
        method: Option<Slot<Method>>,
        /// Path with query, starting with a slash.
        path: Option<Slot<RequestPath>>,
        /// Header lines besides Host, User-Agent, Connection, Content-Length and Transfer-Encoding.
        headers: Option<Pairs>,
        /// The body. Default: none.
        body: Option<Slot<Word>>,
        /// What must come back. Default: a status below 400.
        expect: Option<HttpExpectTable>,
    }
}

table! {
    /// What must come back from a request.
    struct HttpExpectTable {
        /// The status. Default: any below 400.
        status: Option<Slot<HttpStatus>>,
    }
}

impl HttpTable {
    pub(crate) fn common(&self) -> Common<'_> {
        Common {
            target: &self.target,
            tls: self.tls.as_ref(),
            connect: self.connect.as_ref(),
            timeout: self.timeout.as_ref(),
        }
    }

    pub(crate) fn steps(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Vec<HttpStep>> {
        let steps: Vec<Option<HttpStep>> = self.steps.iter().map(|step| step.resolve(scope, faults)).collect();
        steps.into_iter().collect()
    }
}

impl HttpStepTable {
    /// The name as the study has it, placeholders and all.
    pub(crate) fn name(&self) -> String {
        let method = self.method.as_ref().map_or("GET", |method| method.as_written());
        let path = self.get.as_ref().or(self.path.as_ref()).map_or("", |path| path.as_written());
        self.name.as_ref().map_or_else(|| format!("{method} {path}"), |name| name.as_written().to_owned())
    }

    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<HttpStep> {
        let path = self.path(faults).and_then(|path| path.resolve(scope, faults));
        let name = optional(self.name.as_ref(), |name| name.resolve(scope, faults));
        let method = optional(self.method.as_ref(), |method| method.resolve(scope, faults));
        let headers = optional(self.headers.as_ref(), |headers| checked_headers(headers, scope, faults));
        let body = optional(self.body.as_ref(), |body| body.resolve(scope, faults));
        let status = self.expect.as_ref().and_then(|expect| expect.status.as_ref());
        let status = optional(status, |status| status.resolve(scope, faults));
        Some(HttpStep {
            name: name?.map_or_else(|| self.name(), |name| name.0),
            method: method?.map_or_else(|| "GET".to_owned(), |method| method.0),
            path: path?.0,
            headers: headers?.unwrap_or_default(),
            body: body?.map(|body| body.0.into_bytes()).unwrap_or_default(),
            status: status?.map(HttpStatus::u16),
        })
    }

    /// The one path that the step must have.
    fn path(&self, faults: &mut Faults) -> Option<&Slot<RequestPath>> {
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

/// Headers that HTTP can carry and the generator does not write itself.
fn checked_headers(pairs: &Pairs, scope: &Scope<'_>, faults: &mut Faults) -> Option<Vec<(String, String)>> {
    const OWN: [&str; 5] = ["host", "user-agent", "content-length", "transfer-encoding", "connection"];
    for (name, place) in pairs.names() {
        if name.is_empty() || !name.chars().all(is_token) {
            faults.add(Fault::error(place, format!("`{name}` cannot be the name of a header")));
        } else if OWN.contains(&name.to_ascii_lowercase().as_str()) {
            let fault = Fault::error(place, format!("the header `{name}` is written by Plimsoll"));
            faults.add(fault.help("leave it out"));
        }
    }
    let resolved = pairs.resolve(scope, faults)?;
    for (name, value) in &resolved {
        if value.chars().any(char::is_control) {
            let place = pairs.place_of(name).unwrap_or(&(0..0)).clone();
            faults.add(Fault::error(&place, format!("the value of the header `{name}` must be one line of text")));
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
pub(crate) struct RequestPath(String);

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
            Level::Text(text) if text.starts_with('/') => Ok(RequestPath(text.clone())),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^[/{]" })
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

    fn schema() -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Bindings;
    use crate::table::workload::{Given, WorkloadTable};
    use crate::testing::{faults_of, no_faults, read_table};
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
            resting: &[],
            system: None,
            dir: Path::new("/s"),
            processors: &[0],
        };
        table.resolve(&scope, Given::default(), faults)
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
