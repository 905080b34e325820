//! `[workload]`: what one virtual user does in an iteration. Its keys depend on the protocol.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, TableNode, did_you_mean};
use crate::table::database::DatabaseTable;
use crate::table::grpc::GrpcTable;
use crate::table::http::HttpTable;
use crate::table::location_of_key;
use crate::table::script::ScriptTable;
use crate::table::sql::SqlTable;
use crate::table::storage::StorageTable;
use crate::table::store::StoreTable;
use crate::table::target::{Address, TlsTable, names_port};
use crate::table::value_check;
use crate::value::{Literal, PositiveTimeSpan, Problem, Scalar, Scope, Templated, keyword, resolve_optional};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::WorkloadPart;
use plimsoll_model::workload::{Connect, Steps, Target, Workload};
use serde_json::{Value, json};
use std::time::Duration;

/// The workload, by protocol.
#[derive(Clone, Debug)]
pub(crate) enum WorkloadTable {
    /// `protocol = "grpc"`.
    Grpc(Box<GrpcTable>),
    /// `protocol = "http"`.
    Http(Box<HttpTable>),
    /// `script = "FILE.js"`, and no protocol.
    Script(Box<ScriptTable>),
    /// `protocol = "sql"`.
    Sql(Box<SqlTable>),
    /// `protocol = "storage"`.
    Storage(Box<StorageTable>),
}

/// What the study has beside the workload, and the workload may name.
#[derive(Clone, Copy, Default)]
pub(crate) struct StudyContext<'a> {
    pub(crate) stores: &'a [(String, StoreTable)],
    pub(crate) databases: &'a [(String, DatabaseTable)],
    /// The study's seed.
    pub(crate) seed: u64,
    /// Hosts besides this machine that the study may load.
    pub(crate) allowed: &'a [String],
}

/// The keys that every protocol with a target has.
pub(crate) struct Common<'a> {
    pub(crate) target: &'a Templated<Address>,
    pub(crate) tls: Option<&'a TlsTable>,
    pub(crate) connect: Option<&'a Templated<Connect>>,
    pub(crate) timeout: Option<&'a Templated<PositiveTimeSpan>>,
}

const TIMEOUT: Duration = Duration::from_secs(10);

impl WorkloadTable {
    /// The workload of the trial that `scope` stands for.
    pub(crate) fn resolve(
        &self,
        scope: &Scope<'_>,
        context: StudyContext<'_>,
        faults: &mut Faults,
    ) -> Option<Workload> {
        let (common, steps) = match self {
            WorkloadTable::Grpc(table) => (table.common(), table.steps(scope, faults)),
            WorkloadTable::Http(table) if table.is_flow() => {
                (table.common(), table.flow(scope, faults).map(|flow| Steps::Flow(Box::new(flow))))
            }
            WorkloadTable::Http(table) => (table.common(), table.plain_steps(scope, faults).map(Steps::Http)),
            WorkloadTable::Script(table) => return table.resolve(scope, context.allowed, faults),
            WorkloadTable::Sql(table) => return table.resolve(scope, context.databases, context.seed, faults),
            WorkloadTable::Storage(table) => return table.resolve(scope, context.stores, faults),
        };
        let target = common.target(scope, faults);
        let connect = resolve_optional(common.connect, |connect| connect.resolve(scope, faults));
        let timeout = resolve_optional(common.timeout, |timeout| timeout.resolve(scope, faults));
        Some(Workload {
            target: Some(target?),
            connect: connect?.unwrap_or(Connect::PerUser),
            timeout: timeout?.map_or(TIMEOUT, |timeout| timeout.0),
            steps: steps?,
        })
    }

    /// The names of its steps as the study has them, and where each step stands. A script's are not known.
    pub(crate) fn step_names(&self) -> Vec<(String, Span)> {
        match self {
            WorkloadTable::Grpc(table) => table.steps.iter().map(|step| (step.name(), step.place.clone())).collect(),
            WorkloadTable::Http(table) => table.step_names(),
            WorkloadTable::Script(_) => Vec::new(),
            WorkloadTable::Sql(table) => table.step_names(),
            WorkloadTable::Storage(table) => table.step_names(),
        }
    }

    /// The most steps that an iteration has, if that is known.
    pub(crate) fn most_steps(&self) -> Option<usize> {
        match self {
            WorkloadTable::Grpc(table) => Some(table.steps.len()),
            WorkloadTable::Http(table) => table.most_steps(),
            WorkloadTable::Script(_) => None,
            WorkloadTable::Sql(_) => Some(1),
            WorkloadTable::Storage(table) => Some(table.most_steps()),
        }
    }

    /// Whether users may pause because the workload says so, and not the load: then nobody knows how long.
    pub(crate) fn has_waits(&self) -> bool {
        match self {
            WorkloadTable::Grpc(_) | WorkloadTable::Storage(_) => false,
            WorkloadTable::Http(table) => table.has_pauses(),
            WorkloadTable::Script(_) => true,
            WorkloadTable::Sql(table) => table.has_waits(),
        }
    }

    /// Whether it is a script.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self, WorkloadTable::Script(_))
    }

    /// Whether the target, as the study says it, has this port.
    pub(crate) fn goes_to(&self, port: u16) -> bool {
        let target = match self {
            WorkloadTable::Grpc(table) => &table.target,
            WorkloadTable::Http(table) => &table.target,
            WorkloadTable::Script(_) | WorkloadTable::Sql(_) | WorkloadTable::Storage(_) => return false,
        };
        names_port(target.as_written(), port)
    }

    /// True if users could hold sockets, if the study said how.
    pub(crate) fn can_hold_sockets(&self) -> bool {
        matches!(self, WorkloadTable::Http(_))
    }

    /// True if users hold sockets.
    pub(crate) fn holds_sockets(&self) -> bool {
        matches!(self, WorkloadTable::Http(table) if table.socket.is_some())
    }

    /// True if deliveries to sockets are counted and timed.
    pub(crate) fn looks_at_deliveries(&self) -> bool {
        matches!(self, WorkloadTable::Http(table) if table.socket.as_ref().is_some_and(|socket| socket.listens_to().is_some()))
    }

    pub(crate) fn is_storage(&self) -> bool {
        matches!(self, WorkloadTable::Storage(_))
    }

    /// Where a part of it stands.
    pub(crate) fn place_of(&self, part: WorkloadPart, faults: &Faults) -> Option<Span> {
        match self {
            WorkloadTable::Http(table) => table.place_of(part, faults),
            WorkloadTable::Script(table) => Some(table.place_of_function()),
            WorkloadTable::Grpc(_) | WorkloadTable::Sql(_) | WorkloadTable::Storage(_) => None,
        }
    }

    /// The table of a SQL workload.
    pub(crate) fn sql(&self) -> Option<&SqlTable> {
        match self {
            WorkloadTable::Sql(table) => Some(table),
            WorkloadTable::Grpc(_) | WorkloadTable::Http(_) | WorkloadTable::Script(_) | WorkloadTable::Storage(_) => {
                None
            }
        }
    }

    /// Where it says where requests, or objects, go.
    pub(crate) fn target_span(&self) -> &Span {
        match self {
            WorkloadTable::Grpc(table) => &table.target.span,
            WorkloadTable::Http(table) => &table.target.span,
            WorkloadTable::Script(table) => &table.script.span,
            WorkloadTable::Sql(table) => &table.database.span,
            WorkloadTable::Storage(table) => &table.store.span,
        }
    }

    /// As reports name it.
    pub(crate) fn protocol(&self) -> plimsoll_model::workload::Protocol {
        use plimsoll_model::workload::Protocol;
        match self {
            WorkloadTable::Grpc(_) => Protocol::Grpc,
            WorkloadTable::Http(_) => Protocol::Http,
            WorkloadTable::Script(_) => Protocol::Script,
            WorkloadTable::Sql(_) => Protocol::Sql,
            WorkloadTable::Storage(_) => Protocol::Storage,
        }
    }

    /// Protocol, steps, connections and time-out, as reports say it.
    pub(crate) fn in_words(&self) -> String {
        let common = match self {
            WorkloadTable::Grpc(table) => table.common(),
            WorkloadTable::Http(table) => table.common(),
            WorkloadTable::Script(table) => return table.in_words(),
            WorkloadTable::Sql(table) => return table.in_words(),
            WorkloadTable::Storage(table) => return table.in_words(),
        };
        let steps = match self {
            WorkloadTable::Http(table) => table.work_in_words(),
            _ => self.step_names().into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", then "),
        };
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
            "{}{encrypted} to {}: {steps}; {connections}; time-out {timeout}",
            self.protocol(),
            common.target.as_written(),
        )
    }
}

impl Common<'_> {
    fn target(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Target> {
        let address = self.target.resolve(scope, faults);
        let tls = resolve_optional(self.tls, |tls| tls.resolve(scope, faults));
        address?.target(tls?, &self.target.span, "workload", faults)
    }
}

impl FromToml for WorkloadTable {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        if table.get("script").is_some() {
            if let Some(protocol) = table.get("protocol") {
                let fault = Fault::error(&protocol.place(), "`workload` has both `script` and `protocol`");
                faults.add(fault.help("leave `protocol` out: a script speaks for itself"));
                return None;
            }
            return ScriptTable::from_toml(node, faults).map(|table| WorkloadTable::Script(Box::new(table)));
        }
        if table.get("protocol").is_none() && is_misspelt(&table, faults) {
            return None;
        }
        let workload = match table.read::<Literal<Protocol>>("protocol", &[], faults)?.value {
            Protocol::Grpc => WorkloadTable::Grpc(Box::new(GrpcTable::from_toml(node, faults)?)),
            Protocol::Http => {
                let Some(table) = HttpTable::from_toml(node, faults) else {
                    value_check::check_document(node, faults);
                    return None;
                };
                table.check(faults)?;
                WorkloadTable::Http(Box::new(table))
            }
            Protocol::Sql => {
                let table = SqlTable::from_toml(node, faults)?;
                table.check(faults)?;
                WorkloadTable::Sql(Box::new(table))
            }
            Protocol::Storage => {
                let table = StorageTable::from_toml(node, faults)?;
                table.check(faults)?;
                WorkloadTable::Storage(Box::new(table))
            }
        };
        check_steps(&workload, &node.place(), faults);
        Some(workload)
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        let is = |protocol: &str| json!({ "properties": { "protocol": { "const": protocol } } });
        let by_protocol = json!({
            "required": ["protocol"],
            "properties": { "protocol": Protocol::schema() },
            "allOf": [
                { "if": is("grpc"), "then": GrpcTable::json_schema(schemas) },
                { "if": is("http"), "then": HttpTable::json_schema(schemas) },
                { "if": is("sql"), "then": SqlTable::json_schema(schemas) },
                { "if": is("storage"), "then": StorageTable::json_schema(schemas) },
            ],
        });
        json!({
            "type": "object",
            "if": { "required": ["script"] },
            "then": ScriptTable::json_schema(schemas),
            "else": by_protocol,
        })
    }
}

/// Whether the key that says what users do is only misspelt, which is a fault.
fn is_misspelt(table: &TableNode<'_>, faults: &mut Faults) -> bool {
    let strange = table.entries().iter().filter(|(key, _)| location_of_key(key, "workload").is_none());
    let slip = strange.filter_map(|(key, node)| Some((key, node, did_you_mean(key, ["protocol", "script"])?))).next();
    let Some((key, node, near)) = slip else { return false };
    let fault = Fault::error(&node.place(), format!("unknown key `{key}` in `workload`"));
    faults.add(fault.label("not a key of a study").help(near));
    true
}

fn check_steps(workload: &WorkloadTable, place: &Span, faults: &mut Faults) {
    let names = workload.step_names();
    let step = if workload.sql().is_some() { "transaction" } else { "step" };
    if names.is_empty() {
        let help = "a user must do something: give `steps` at least one step";
        faults.add(Fault::error(place, "`workload.steps` is empty").help(help));
    }
    for (index, (name, span)) in names.iter().enumerate() {
        if names[..index].iter().any(|(earlier, _)| earlier == name) {
            let fault = Fault::error(span, format!("two {step}s are named `{name}`"));
            faults.add(fault.help("results are told apart by name: give one of them another `name`"));
        }
    }
}

/// What is spoken with the target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    /// Unary gRPC calls.
    Grpc,
    /// HTTP/1.1 requests.
    Http,
    /// Transactions on a database.
    Sql,
    /// Objects in a store.
    Storage,
}

impl Scalar for Protocol {
    const EXPECTED: &'static str = "\"grpc\", \"http\", \"sql\" or \"storage\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let words = [
            ("grpc", Protocol::Grpc),
            ("http", Protocol::Http),
            ("sql", Protocol::Sql),
            ("storage", Protocol::Storage),
        ];
        keyword(level, &words)
    }

    fn schema() -> Value {
        json!({ "enum": ["grpc", "http", "sql", "storage"] })
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

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(per user|every iteration|shared [1-9][0-9]*)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::faults_of;

    #[test]
    fn what_says_who_works_how_is_found_where_it_is_misspelt() {
        for (text, says) in [
            ("scrip = 'shop.js'\nenv = { A = 'b' }", "unknown key `scrip` in `workload`; did you mean `script`?"),
            ("protocl = 'http'\nsteps = []", "unknown key `protocl` in `workload`; did you mean `protocol`?"),
            ("steps = []", "`protocol` is missing"),
        ] {
            let faults = faults_of::<WorkloadTable>(text);
            assert!(faults.len() == 1 && faults[0].contains(says), "{text}: {faults:?}");
        }
    }
}
