//! `ready`: when a started system counts as ready for load.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, table};
use crate::table::target::{is_host_and_port, names_port};
use crate::value::{Command, PositiveTimeSpan, Problem, Scalar, Scope, Templated, Text, resolve_optional};
use plimsoll_model::factor::Level;
use plimsoll_model::system::{Probe, Ready};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use toml::de::DeValue;

table! {
    /// When a system counts as ready: one of `tcp`, `http`, `log` and `command`.
    struct ReadyTable {
        /// When a connection to this HOST:PORT is accepted.
        tcp: Option<Templated<HostPort>>,
        /// When a GET of this http:// URL gives a status below 400.
        http: Option<Templated<HttpUrl>>,
        /// When its output has a line with this text.
        log: Option<Templated<Text>>,
        /// When this command ends with exit code 0.
        command: Option<Command>,
        /// How long it may take. Default: "10s".
        within: Option<Templated<PositiveTimeSpan>>,
    }
}

/// What the study says: a text such as `"http://{address}/health"`, or a table.
#[derive(Clone, Debug)]
pub(crate) enum ReadyValue {
    /// HOST:PORT or a URL.
    Short(Templated<Endpoint>),
    /// All of it.
    Table(Box<ReadyTable>),
}

const WITHIN: Duration = Duration::from_secs(10);

/// What a study that says nothing means: its port, if it has one.
pub(crate) fn ready_by_default(port: Option<SocketAddr>) -> Ready {
    Ready { probe: port.map_or(Probe::Started, |port| Probe::Tcp(port.to_string())), within: WITHIN }
}

impl ReadyValue {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Ready> {
        match self {
            ReadyValue::Short(endpoint) => Some(Ready { probe: endpoint.resolve(scope, faults)?.0, within: WITHIN }),
            ReadyValue::Table(table) => table.resolve(scope, faults),
        }
    }

    /// Whether what is asked has this port, as the study says it.
    pub(crate) fn goes_to(&self, port: u16) -> bool {
        let asked = match self {
            ReadyValue::Short(endpoint) => Some(endpoint.as_written()),
            ReadyValue::Table(table) => {
                let tcp = table.tcp.as_ref().map(Templated::as_written);
                tcp.or(table.http.as_ref().map(Templated::as_written))
            }
        };
        asked.is_some_and(|asked| names_port(asked, port))
    }
}

impl ReadyTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Ready> {
        let probe = if let Some(tcp) = &self.tcp {
            tcp.resolve(scope, faults).map(|tcp| Probe::Tcp(tcp.0))
        } else if let Some(http) = &self.http {
            http.resolve(scope, faults).map(|http| Probe::Http(http.0))
        } else if let Some(log) = &self.log {
            log.resolve(scope, faults).map(|log| Probe::Log(log.0))
        } else {
            self.command.as_ref()?.resolve(scope, faults).map(Probe::Command)
        };
        let within = resolve_optional(self.within.as_ref(), |within| within.resolve(scope, faults));
        Some(Ready { probe: probe?, within: within?.map_or(WITHIN, |within| within.0) })
    }

    /// Where each kind that is given stands.
    fn kinds(&self) -> Vec<&Span> {
        let tcp = self.tcp.as_ref().map(|templated| &templated.span);
        let http = self.http.as_ref().map(|templated| &templated.span);
        let log = self.log.as_ref().map(|templated| &templated.span);
        let command = self.command.as_ref().map(|command| &command.span);
        [tcp, http, log, command].into_iter().flatten().collect()
    }
}

impl FromToml for ReadyValue {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        if !matches!(node.value, DeValue::Table(_)) {
            return Templated::from_toml(node, faults).map(ReadyValue::Short);
        }
        let table = ReadyTable::from_toml(node, faults)?;
        const KINDS: [&str; 4] = ["tcp", "http", "log", "command"];
        match table.kinds().as_slice() {
            [_] => return Some(ReadyValue::Table(Box::new(table))),
            [_, second, ..] => {
                let message = format!("{} looks at two things", node.name());
                faults.add(Fault::error(second, message).help("keep one of `tcp`, `http`, `log` and `command`"));
            }
            // An unknown kind has been reported as an unknown key.
            [] if node.table(faults)?.entries().iter().all(|(key, _)| *key == "within" || KINDS.contains(key)) => {
                let message = format!("{} does not say what to look at", node.name());
                faults.add(Fault::error(&node.place(), message).help("add one of `tcp`, `http`, `log` and `command`"));
            }
            [] => {}
        }
        None
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [{ "type": "string" }, ReadyTable::json_schema(schemas)] })
    }
}

/// `HOST:PORT`.
#[derive(Clone, Debug)]
pub(crate) struct HostPort(String);

/// An `http://` URL.
#[derive(Clone, Debug)]
pub(crate) struct HttpUrl(pub(crate) String);

/// Either, as a probe.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint(Probe);

impl Scalar for HostPort {
    const EXPECTED: &'static str = "HOST:PORT";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if is_host_and_port(text) => Ok(HostPort(text.clone())),
            _ => Err(Problem::wrong::<Self>(level).help("in a system, \"{address}\" is its host and port")),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Scalar for HttpUrl {
    const EXPECTED: &'static str = "an http:// URL";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if is_http_url(text) => Ok(HttpUrl(text.clone())),
            _ => Err(Problem::wrong::<Self>(level).help("as in \"http://{address}/health\"")),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Scalar for Endpoint {
    const EXPECTED: &'static str =
        "HOST:PORT, an http:// URL, or a table with one of `tcp`, `http`, `log` and `command`";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if is_http_url(text) => Ok(Endpoint(Probe::Http(text.clone()))),
            Level::Text(text) if is_host_and_port(text) => Ok(Endpoint(Probe::Tcp(text.clone()))),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// `http://HOST[:PORT][/PATH]`.
fn is_http_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://") else { return false };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let plain = rest.chars().all(|c| !c.is_whitespace() && !c.is_control());
    plain && (is_host_and_port(host) || is_host_and_port(&format!("{host}:80")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::faults_of;

    #[test]
    fn readiness_is_one_thing() {
        for (text, what) in [
            ("ready = {}", "what to look at"),
            ("ready = { within = '1s' }", "what to look at"),
            ("ready = { tcp = 'a:1', log = 'x' }", "two things"),
            ("ready = { tpc = 'a:1' }", "did you mean `tcp`"),
            ("ready = { tcp = 'nowhere' }", "HOST:PORT"),
            ("ready = { http = 'https://a/' }", "http:// URL"),
            ("ready = 'whenever'", "HOST:PORT"),
            ("ready = 5", "HOST:PORT"),
            ("ready = { log = 'up', within = '0s' }", "above zero"),
        ] {
            let faults = faults_of::<crate::table::system::SystemTable>(&format!("start = 'x'\n{text}"));
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }

    #[test]
    fn a_url_is_told_from_an_address() {
        let probe = |text: &str| Endpoint::from_level(&Level::Text(text.to_owned())).expect(text).0;
        assert_eq!(probe("127.0.0.1:80"), Probe::Tcp("127.0.0.1:80".to_owned()));
        assert_eq!(probe("http://localhost/up?x"), Probe::Http("http://localhost/up?x".to_owned()));
    }
}
