//! What one virtual user does in an iteration, with every placeholder filled in.

use crate::flow::Flow;
use crate::script::Script;
use crate::sql::{Parameter, Sql, SqlWork, TPCC_STEPS};
use crate::storage::{Credentials, Secret, Storage, Store};
pub use crate::target::{Target, Tls};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The work of a user: its steps, one after the other, make an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// The server that requests go to; none if Plimsoll itself makes no connection.
    pub target: Option<Target>,
    /// When connections are made, and which users share them.
    pub connect: Connect,
    /// The longest that one exchange may take, and that connecting may take. An exchange that
    /// takes longer is a time-out and is recorded with this duration.
    pub timeout: Duration,
    /// The steps, by protocol.
    pub steps: Steps,
}

impl Workload {
    /// The paths of all files and folders that users need where they run: what they read, and not what a store keeps.
    pub fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        let tls = self.target.iter_mut().filter_map(|target| target.tls.as_mut());
        let mut paths: Vec<&mut PathBuf> = tls.filter_map(|tls| tls.ca.as_mut()).collect();
        match &mut self.steps {
            Steps::Grpc { schema: GrpcSchema::Files { files, include }, .. } => {
                paths.extend(files);
                paths.extend(include);
            }
            Steps::Flow(flow) => paths.extend(flow.paths_mut()),
            Steps::Script(script) => {
                paths.push(&mut script.entry);
                paths.extend(&mut script.files);
            }
            Steps::Sql(sql) => {
                if let SqlWork::Own(transactions) = &mut sql.work {
                    let statements = transactions.iter_mut().flat_map(|one| &mut one.statements);
                    paths.extend(statements.flat_map(|one| &mut one.parameters).filter_map(|one| match one {
                        Parameter::Feed { file, .. } => Some(file),
                        _ => None,
                    }));
                }
            }
            Steps::Storage(storage) => {
                if let Store::S3(s3) = &mut storage.store {
                    paths.extend(s3.endpoint.tls.as_mut().and_then(|tls| tls.ca.as_mut()));
                }
            }
            Steps::Http(_) | Steps::Grpc { schema: GrpcSchema::Reflection, .. } => {}
        }
        paths
    }

    /// The secrets in it, in a fixed order: none of them is written where the workload is.
    pub fn secrets_mut(&mut self) -> Vec<&mut Secret> {
        match &mut self.steps {
            Steps::Storage(storage) => match &mut storage.store {
                Store::S3(s3) => match &mut s3.credentials {
                    Credentials::Generated(pair) => vec![&mut pair.secret],
                    Credentials::Anonymous | Credentials::Environment => Vec::new(),
                },
                Store::Directory(_) | Store::Nfs(_) => Vec::new(),
            },
            Steps::Sql(sql) => sql.endpoint.iter_mut().filter_map(|endpoint| endpoint.password.as_mut()).collect(),
            Steps::Script(script) => {
                let sources = script.own_load.iter_mut().flat_map(|own_load| own_load.secrets.values_mut());
                sources.flat_map(BTreeMap::values_mut).collect()
            }
            Steps::Http(_) | Steps::Grpc { .. } | Steps::Flow(_) => Vec::new(),
        }
    }

    /// The connections that so many users hold at once at most, with their sockets; `shared` says how many those are that
    /// all of them share.
    #[must_use]
    pub fn most_connections(&self, users: u64, shared: impl FnOnce(u32) -> u64) -> u64 {
        let of_requests = match self.connect {
            Connect::PerUser | Connect::PerIteration => users,
            Connect::Shared(count) => shared(count),
        };
        match &self.steps {
            Steps::Flow(flow) if flow.socket.is_some() => users + if flow.makes_requests() { of_requests } else { 0 },
            _ => of_requests,
        }
    }
}

/// When connections are made, and which users share them. Connecting is timed separately from the exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// One for each user, kept between iterations.
    PerUser,
    /// A new one for each iteration, closed at its end.
    PerIteration,
    /// This many for all users together. HTTP/1.1 users wait for a free one; gRPC calls share one
    /// up to the server's limit of concurrent streams.
    Shared(u32),
}

/// The protocol of a workload, by its name in bundles and reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Protocol {
    /// Calls over HTTP/2.
    Grpc,
    /// Requests over HTTP/1.1.
    Http,
    /// A script, which chooses its protocols itself.
    Script,
    /// Transactions on a database.
    Sql,
    /// Operations on files or objects.
    Storage,
    /// A protocol of another version of the bundle, by its name.
    Other(String),
}

impl Protocol {
    const KNOWN: [Protocol; 5] = [Protocol::Grpc, Protocol::Http, Protocol::Script, Protocol::Sql, Protocol::Storage];

    /// The name in bundles and reports.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Protocol::Grpc => "gRPC",
            Protocol::Http => "HTTP/1.1",
            Protocol::Script => "script",
            Protocol::Sql => "SQL",
            Protocol::Storage => "storage",
            Protocol::Other(name) => name,
        }
    }

    /// Returns true for every version of HTTP.
    #[must_use]
    pub fn is_http(&self) -> bool {
        self.name().to_ascii_lowercase().starts_with("http")
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<String> for Protocol {
    fn from(name: String) -> Protocol {
        Protocol::KNOWN.into_iter().find(|known| known.name() == name).unwrap_or(Protocol::Other(name))
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> String {
        protocol.name().to_owned()
    }
}

/// The steps of an iteration; never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steps {
    /// HTTP/1.1 requests.
    Http(Vec<HttpStep>),
    /// Unary gRPC calls.
    Grpc {
        /// Where the message types come from.
        schema: GrpcSchema,
        /// The calls.
        calls: Vec<GrpcStep>,
    },
    /// Objects written, read, listed and deleted.
    Storage(Box<Storage>),
    /// Transactions on a database.
    Sql(Box<Sql>),
    /// HTTP/1.1 requests of users that keep values, branch and wait.
    Flow(Box<Flow>),
    /// A script.
    Script(Box<Script>),
}

impl Steps {
    /// The names under which the exchanges of the steps are recorded, step by step. A script names
    /// its requests while it runs.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match self {
            Steps::Http(steps) => steps.iter().map(|step| step.name.as_str()).collect(),
            Steps::Grpc { calls, .. } => calls.iter().map(|call| call.name.as_str()).collect(),
            Steps::Storage(storage) => storage.steps.iter().map(|step| step.name.as_str()).collect(),
            Steps::Sql(sql) => match &sql.work {
                SqlWork::Tpcc(_) => TPCC_STEPS.to_vec(),
                SqlWork::Oltp(oltp) => vec![oltp.test.name()],
                SqlWork::Own(transactions) => transactions.iter().map(|one| one.name.as_str()).collect(),
            },
            Steps::Flow(flow) => flow.names(),
            Steps::Script(_) => Vec::new(),
        }
    }
}

/// One HTTP request and the response that it must get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpStep {
    /// Name in the results.
    pub name: String,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path with query, starting with `/`.
    pub path: String,
    /// Header lines besides `Host`, `User-Agent` and `Content-Length`, in order.
    pub headers: Vec<(String, String)>,
    /// Body, empty for none.
    pub body: Vec<u8>,
    /// Status that counts as success; any below 400 when there is none.
    pub status: Option<u16>,
}

/// Where gRPC message types come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrpcSchema {
    /// `.proto` files, compiled when the study is checked.
    Files {
        /// The files.
        files: Vec<PathBuf>,
        /// Folders in which imports are looked up.
        include: Vec<PathBuf>,
    },
    /// The server's own reflection service.
    Reflection,
}

/// The names of the gRPC status codes 0 to 16, by code.
pub const GRPC_STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// One unary call and the response that it must get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrpcStep {
    /// Name in the results.
    pub name: String,
    /// `package.Service/Method`.
    pub call: String,
    /// The request message in protobuf's JSON form.
    pub message: serde_json::Value,
    /// Metadata sent with the call, in order.
    pub metadata: Vec<(String, String)>,
    /// Deadline sent to the server as `grpc-timeout`; none is sent when there is none.
    pub deadline: Option<Duration>,
    /// gRPC status code that counts as success: 0 is OK.
    pub status: u16,
    /// A check over all replies of a trial.
    pub sequence: Option<Sequence>,
}

/// Demands that the numbers in the replies of a trial, warm-up and drain included, are 1, 2, … N, each exactly once. A
/// counter that starts at zero and grows by one a call must give these. A missing reply may leave a gap; a number may
/// never occur twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Name of the reply's field: a string or an integer.
    pub field: String,
    /// The text before the number, where the field is a string.
    pub after: String,
}

#[cfg(test)]
mod tests {
    use super::Protocol;

    #[test]
    fn protocols_are_the_texts_of_bundles_and_unknown_ones_stay() {
        for (text, protocol) in [
            ("gRPC", Protocol::Grpc),
            ("HTTP/1.1", Protocol::Http),
            ("script", Protocol::Script),
            ("SQL", Protocol::Sql),
            ("storage", Protocol::Storage),
            ("HTTP/3", Protocol::Other("HTTP/3".to_owned())),
        ] {
            let json = serde_json::json!(text);
            assert_eq!(serde_json::to_value(&protocol).expect("a text"), json);
            assert_eq!(serde_json::from_value::<Protocol>(json).expect("a protocol"), protocol);
        }
    }

    #[test]
    fn every_version_of_http_is_http() {
        assert!(Protocol::Http.is_http() && Protocol::Other("http/3".to_owned()).is_http());
        assert!(!Protocol::Grpc.is_http());
    }
}
