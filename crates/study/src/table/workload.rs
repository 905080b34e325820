//! `[workload]`: what one virtual user does in an iteration. Its keys depend on the protocol.

use crate::diagnostic::{Fault, Span};
use crate::faults::Faults;
use crate::node::{FromToml, Node};
use crate::scalar::PositiveLength;
use crate::scope::Scope;
use crate::table::grpc::GrpcTable;
use crate::table::http::HttpTable;
use crate::table::target::{Address, TlsTable};
use crate::value::{Fixed, Problem, Scalar, Slot, optional};
use plimsoll_model::factor::Level;
use plimsoll_model::workload::{Connect, Steps, Target, Tls, Workload};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::time::Duration;

/// The workload, by protocol.
#[derive(Clone, Debug)]
pub(crate) enum WorkloadTable {
    /// `protocol = "grpc"`.
    Grpc(GrpcTable),
    /// `protocol = "http"`.
    Http(HttpTable),
}

/// The keys that every protocol has.
pub(crate) struct Common<'a> {
    pub(crate) target: &'a Slot<Address>,
    pub(crate) tls: Option<&'a TlsTable>,
    pub(crate) connect: Option<&'a Slot<Connect>>,
    pub(crate) timeout: Option<&'a Slot<PositiveLength>>,
}

const TIMEOUT: Duration = Duration::from_secs(10);

impl WorkloadTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Workload> {
        let common = self.common();
        let target = common.target(scope, faults);
        let connect = optional(common.connect, |connect| connect.resolve(scope, faults));
        let timeout = optional(common.timeout, |timeout| timeout.resolve(scope, faults));
        let steps = match self {
            WorkloadTable::Grpc(table) => table.steps(scope, faults),
            WorkloadTable::Http(table) => table.steps(scope, faults).map(Steps::Http),
        };
        Some(Workload {
            target: target?,
            connect: connect?.unwrap_or(Connect::PerUser),
            timeout: timeout?.map_or(TIMEOUT, |timeout| timeout.0),
            steps: steps?,
        })
    }

    /// The names of its steps as the study has them, and where each step stands.
    pub(crate) fn step_names(&self) -> Vec<(String, Span)> {
        match self {
            WorkloadTable::Grpc(table) => table.steps.iter().map(|step| (step.name(), step.place.clone())).collect(),
            WorkloadTable::Http(table) => table.steps.iter().map(|step| (step.name(), step.place.clone())).collect(),
        }
    }

    /// Where the target stands.
    pub(crate) fn target_span(&self) -> &Span {
        &self.common().target.span
    }

    /// As reports name it.
    pub(crate) fn protocol(&self) -> &'static str {
        match self {
            WorkloadTable::Grpc(_) => "gRPC",
            WorkloadTable::Http(_) => "HTTP/1.1",
        }
    }

    /// Protocol, steps, connections and time-out, as reports say it.
    pub(crate) fn in_words(&self) -> String {
        let common = self.common();
        let steps: Vec<String> = self.step_names().into_iter().map(|(name, _)| name).collect();
        let connect = common.connect.map_or("per user", |connect| connect.as_written());
        let connections = match connect {
            "per user" => "one connection per user".to_owned(),
            "every iteration" => "a new connection every iteration".to_owned(),
            other => match other.strip_prefix("shared ") {
                Some(count) => format!("{count} connections shared by all users"),
                None => format!("connections: {other}"),
            },
        };
        let encrypted = if common.tls.is_some() { " with TLS" } else { "" };
        let timeout = common.timeout.map_or("10s", |timeout| timeout.as_written());
        format!(
            "{}{encrypted} to {}: {}; {connections}; time-out {timeout}",
            self.protocol(),
            common.target.as_written(),
            steps.join(", then ")
        )
    }

    fn common(&self) -> Common<'_> {
        match self {
            WorkloadTable::Grpc(table) => table.common(),
            WorkloadTable::Http(table) => table.common(),
        }
    }
}

impl Common<'_> {
    fn target(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Target> {
        let address = self.target.resolve(scope, faults);
        let table = optional(self.tls, |tls| tls.resolve(scope, faults))?;
        let Address { host, port, encrypted } = address?;
        if encrypted == Some(false) && table.is_some() {
            let fault = Fault::error(&self.target.span, "`workload.tls` is given, but the target is `http://`");
            faults.add(fault.help("write `https://`, or leave `tls` out"));
            return None;
        }
        let default = || Tls { ca: None, server_name: None, insecure: false };
        let tls = table.or_else(|| (encrypted == Some(true)).then(default));
        Some(Target { host, port, tls })
    }
}

impl TlsTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Tls> {
        let ca = optional(self.ca.as_ref(), |ca| ca.resolve(scope, faults));
        let server_name = optional(self.server_name.as_ref(), |name| name.resolve(scope, faults));
        Some(Tls {
            ca: ca?.map(|ca| scope.dir.join(ca.0)),
            server_name: server_name?.map(|name| name.0),
            insecure: self.insecure.as_ref().is_some_and(|insecure| insecure.value),
        })
    }
}

impl FromToml for WorkloadTable {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let workload = match table.read::<Fixed<Protocol>>("protocol", &[], faults)?.value {
            Protocol::Grpc => WorkloadTable::Grpc(GrpcTable::from_toml(node, faults)?),
            Protocol::Http => WorkloadTable::Http(HttpTable::from_toml(node, faults)?),
        };
        check_steps(&workload, &node.place(), faults);
        Some(workload)
    }
}

fn check_steps(workload: &WorkloadTable, place: &Span, faults: &mut Faults) {
    let names = workload.step_names();
    if names.is_empty() {
        let help = "a user must do something: give `steps` at least one step";
        faults.add(Fault::error(place, "`workload.steps` is empty").help(help));
    }
    for (index, (name, span)) in names.iter().enumerate() {
        if names[..index].iter().any(|(earlier, _)| earlier == name) {
            let fault = Fault::error(span, format!("two steps are named `{name}`"));
            faults.add(fault.help("results are told apart by name: give one of them another `name`"));
        }
    }
}

impl JsonSchema for WorkloadTable {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Workload".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let is = |protocol: &str| json_schema!({ "properties": { "protocol": { "const": protocol } } });
        json_schema!({
            "type": "object",
            "required": ["protocol"],
            "properties": { "protocol": { "enum": ["grpc", "http"] } },
            "allOf": [
                { "if": is("grpc"), "then": generator.subschema_for::<GrpcTable>() },
                { "if": is("http"), "then": generator.subschema_for::<HttpTable>() },
            ],
        })
    }
}

/// What is spoken with the target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    /// Unary gRPC calls.
    Grpc,
    /// HTTP/1.1 requests.
    Http,
}

impl Scalar for Protocol {
    const EXPECTED: &'static str = "\"grpc\" or \"http\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text == "grpc" => Ok(Protocol::Grpc),
            Level::Text(text) if text == "http" => Ok(Protocol::Http),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "enum": ["grpc", "http"] })
    }
}

impl Scalar for Connect {
    const EXPECTED: &'static str = "\"per user\", \"every iteration\" or \"shared N\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        match text.as_str() {
            "per user" => Ok(Connect::PerUser),
            "every iteration" => Ok(Connect::PerIteration),
            _ => {
                let count = text.strip_prefix("shared ").and_then(|count| count.trim().parse().ok());
                let count = count.filter(|count| (1..=1_000_000).contains(count));
                count.map(Connect::Shared).ok_or_else(|| Problem::wrong::<Self>(level))
            }
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^(per user|every iteration|shared [1-9][0-9]*)$" })
    }
}
