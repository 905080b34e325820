//! Databases as systems: where their data comes from, with which settings they run, and facts about them after a trial.

use crate::record::{Durations, ErrorKind};
use crate::storage::Secret;
use crate::system::CommandLine;
use crate::units::Processors;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// A database of a trial, with every placeholder filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Database {
    /// Its name in the study.
    pub name: String,
    /// The kind of server, which determines its protocol.
    pub engine: Engine,
    /// Whether the run starts it or it runs already.
    pub origin: Origin,
    /// Settings that the study asks for, in the study's order: name and value. They are read back from the server.
    pub settings: Vec<(String, String)>,
    /// Its data before every trial.
    pub dataset: Dataset,
    /// Whether all tables are read once before the load.
    pub warm: bool,
    /// Queries, and the value that each must give after the loads of a start.
    pub expected: Vec<ExpectedRow>,
}

/// A query, and the value that it must give after the loads of a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedRow {
    /// The query. Its first column and only row are looked at.
    pub query: String,
    /// The value that it must give; two numbers are compared as numbers.
    pub equals: String,
    /// The database that is asked; none for the one that is loaded.
    pub database: Option<String>,
}

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// PostgreSQL.
    Postgresql,
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
}

impl fmt::Display for Engine {
    /// The name in reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Postgresql => "PostgreSQL",
            Engine::Mariadb => "MariaDB",
            Engine::Mysql => "MySQL",
        })
    }
}

/// Whether the run starts a database or it runs already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The run starts it, on data that the run makes.
    Started(Box<Server>),
    /// It runs already.
    External(External),
}

/// A server that a run initialises, loads, and starts anew for each trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The label of the agent on whose host it runs; none where it runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Folder with the server's programs; where the system's packages have them when there is none.
    pub programs: Option<PathBuf>,
    /// The user of the operating system who runs it; the current one when there is none. As root,
    /// who may not run a database, it is `nobody`.
    pub user: Option<String>,
    /// Arguments for the program that initialises the data: what cannot be changed later.
    pub init: Vec<String>,
    /// Folder of the data, which is kept between runs; one that is removed at the end when there is
    /// none.
    pub data: Option<PathBuf>,
    /// How the loaded data is restored before a trial.
    pub snapshot: Snapshot,
    /// Names of the databases in it. There is at least one: the first is loaded.
    pub databases: Vec<String>,
    /// Users as whom systems log in. There is at least one: the first has all rights.
    pub roles: Vec<String>,
    /// The password of `roles` on this start; none if nobody is to log in as them.
    pub password: Option<Secret>,
    /// A command that is run on each start, when the server is ready and before the systems start.
    pub migrate: Option<Migration>,
    /// The address at which it listens beside its UNIX socket: the loopback, unless it runs on another host.
    #[serde(default = "loopback", skip_serializing_if = "is_loopback")]
    pub listen: IpAddr,
    /// Its port there.
    pub port: u16,
    /// Processors it may use; all when there is none.
    pub cpus: Option<Processors>,
    /// How long it may take to get ready, recovery included.
    pub ready_within: Duration,
    /// How long it may take to end in order.
    pub stop_grace: Duration,
}

fn loopback() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

fn is_loopback(address: &IpAddr) -> bool {
    *address == loopback()
}

impl Database {
    /// The label of the agent on whose host the run starts it; none on this machine, or where it runs already.
    #[must_use]
    pub fn on(&self) -> Option<&str> {
        match &self.origin {
            Origin::Started(server) => server.on.as_deref(),
            Origin::External(_) => None,
        }
    }

    /// Its secrets, in a fixed order: nothing writes them with it.
    pub fn secrets_mut(&mut self) -> Vec<&mut Secret> {
        match &mut self.origin {
            Origin::Started(server) => {
                let Server { password, migrate, .. } = &mut **server;
                password.iter_mut().chain(migrate.as_mut().map(|migrate| &mut migrate.url)).collect()
            }
            Origin::External(external) => external.endpoint.password.iter_mut().collect(),
        }
    }
}

/// The database that a server has unless the study names others.
pub const LOADED: &str = "plimsoll";
/// The database of a trial that is copied from a template.
pub const FROM_TEMPLATE: &str = "run";
/// The user as whom systems log in unless the study names others.
pub const SERVICE: &str = "service";

/// A command that changes the data of a server before systems use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// The command.
    pub command: CommandLine,
    /// Folder in which it runs: the study's.
    pub dir: PathBuf,
    /// The URL by which it logs in, which it has as `DATABASE_URL` in its environment.
    pub url: Secret,
}

/// How loaded data is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Snapshot {
    /// Its files are copied: as references where the file system can, plainly otherwise.
    Copy,
    /// The server copies its database from a template (PostgreSQL).
    Template,
}

impl Snapshot {
    /// The one of the server's databases, of which there is at least one, that a trial uses.
    #[must_use]
    pub fn database(self, databases: &[String]) -> &str {
        match self {
            Snapshot::Copy => &databases[0],
            Snapshot::Template => FROM_TEMPLATE,
        }
    }
}

/// A server that runs already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct External {
    /// Its address, and the user that connects.
    pub endpoint: Endpoint,
    /// The environment variable that holds the password; none if there is no password.
    pub password_variable: Option<String>,
    /// Brings its data into the state before a trial.
    pub restore: Option<CommandLine>,
    /// Whether the load may write to it though nothing restores it.
    pub may_write: bool,
    /// Folder in which `restore` runs: the study's.
    pub dir: PathBuf,
}

/// The address of a server, and the user that connects to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The kind of server, which determines its protocol.
    pub engine: Engine,
    /// How it is reached.
    pub address: Address,
    /// Its user.
    pub user: String,
    /// The user's password.
    pub password: Option<Secret>,
    /// The name of the database in it.
    pub database: String,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// By TCP.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// By the UNIX socket of this path: the file itself.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The data of a database before every trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dataset {
    /// The tables of TPC-C.
    Tpcc {
        /// How many warehouses.
        warehouses: u32,
        /// Seed of its random content.
        seed: u64,
    },
    /// The tables of sysbench's OLTP tests.
    Sbtest {
        /// How many tables.
        tables: u32,
        /// Rows of each.
        rows: u64,
        /// Seed of its random content.
        seed: u64,
    },
    /// The result of these SQL files, run one after the other.
    Scripts(Vec<PathBuf>),
    /// Nothing.
    Empty,
}

impl fmt::Display for Dataset {
    /// For example `TPC-C of 2 warehouses`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        match self {
            Dataset::Tpcc { warehouses, .. } => {
                write!(f, "TPC-C of {warehouses} warehouse{}", plural((*warehouses).into()))
            }
            Dataset::Sbtest { tables, rows, .. } => {
                write!(f, "{tables} table{} of {rows} row{}", plural((*tables).into()), plural(*rows))
            }
            Dataset::Scripts(files) => {
                let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                write!(f, "what {} makes", names.join(", "))
            }
            Dataset::Empty => f.write_str("nothing in it"),
        }
    }
}

/// Facts about a database after a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseFacts {
    /// Its name in the study.
    pub name: String,
    /// The version as the server reports it: `PostgreSQL 15.18`, `MariaDB 10.11.19`.
    pub version: String,
    /// How the load reached it: `UNIX socket`, `TCP to 127.0.0.1:5433`.
    pub transport: String,
    /// The isolation level of the load's transactions, read back.
    pub isolation: String,
    /// Where its data came from: `initialised and loaded by the run`, `kept from an earlier run`,
    /// `external`.
    pub data: String,
    /// How it was restored for this trial: `copied (reflink)`, `copied`, `template database`, a
    /// command.
    pub restored: String,
    /// How long restoring took, in seconds.
    pub restore_seconds: f64,
    /// Bytes of the data before the trial, where that is known.
    pub size: Option<u64>,
    /// Settings in force that the study asks for or that trade safety for speed.
    pub settings: Vec<Setting>,
    /// What users did, for the whole trial and the measure phase.
    #[serde(default)]
    pub work: SqlFacts,
    /// The consistency conditions that held when the run loaded the data. Some of them can hold only then.
    #[serde(default)]
    pub loaded: Vec<Condition>,
    /// The consistency conditions after the trial, if they were checked.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// A setting of a server, as the server reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What the study asks for, if it does.
    pub asked: Option<String>,
    /// What is in force.
    pub in_force: String,
    /// What can be lost with this value, where it trades safety for speed.
    pub risk: Option<String>,
}

/// A consistency condition of the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The condition: `1: w_ytd = sum(d_ytd)`.
    pub name: String,
    /// Whether it holds; none if the time was up before it was checked.
    pub holds: Option<bool>,
    /// What was found if it does not hold, or why it was not checked.
    pub detail: String,
}

impl Condition {
    /// True for what a study expects: its name is the query, which stands as code. All others are those of TPC-C.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.name.starts_with('`')
    }

    /// The condition in words: `consistency condition 1: w_ytd = sum(d_ytd)`, or the query.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.is_expected() { self.name.clone() } else { format!("consistency condition {}", self.name) }
    }
}

/// What the users of a SQL workload did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SqlFacts {
    /// The workload in words: `TPC-C, 2 warehouses, waits zero, …`.
    pub workload: String,
    /// The isolation level of its transactions, read back from the server: `READ COMMITTED`.
    pub isolation: String,
    /// Connections that were made, those after an error included.
    pub connections: u64,
    /// Statement by statement, in the order of transactions.
    pub statements: Vec<StatementFacts>,
    /// Retries, by the kind of error that caused them.
    pub retries: BTreeMap<ErrorKind, u64>,
    /// How often the server was asked to cancel a statement that timed out.
    #[serde(default)]
    pub cancels: u64,
    /// How often such a cancel failed: the server may have gone on with the statement.
    #[serde(default)]
    pub cancels_failed: u64,
    /// The input check: whether the mix of inputs follows the specification.
    pub mix: Vec<MixLine>,
}

/// What one statement of a transaction took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementFacts {
    /// The transaction, as its step is named.
    pub transaction: String,
    /// The statement's short name: `update district`.
    pub statement: String,
    /// How often it was run in the whole trial.
    pub runs: u64,
    /// How often in transactions of the measure phase.
    pub measured: u64,
    /// How long these took together, in nanoseconds.
    pub total: u64,
    /// The longest of them, in nanoseconds.
    pub longest: u64,
    /// Their median, in nanoseconds; none without runs.
    pub p50: Option<u64>,
    /// Their 95th percentile, in nanoseconds.
    pub p95: Option<u64>,
    /// Their 99th percentile, in nanoseconds.
    pub p99: Option<u64>,
    /// How many of all runs failed.
    pub failed: u64,
    /// All their durations, where those of other generators are to be added; never in a bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durations: Option<Durations>,
}

impl StatementFacts {
    /// The same with the percentiles of these durations.
    #[must_use]
    pub fn of_durations(self, durations: &Histogram<u64>) -> StatementFacts {
        let percentile = |percent: f64| (!durations.is_empty()).then(|| durations.value_at_quantile(percent / 100.0));
        StatementFacts { p50: percentile(50.0), p95: percentile(95.0), p99: percentile(99.0), ..self }
    }
}

/// One line of the input check: a share or mean over the inputs of users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MixLine {
    /// What it is: `remote order lines`.
    pub name: String,
    /// The number of inputs that it covers.
    pub n: u64,
    /// The value that was found: a share, or a mean.
    pub found: f64,
    /// The least value that is right.
    pub low: f64,
    /// The largest value that is right.
    pub high: f64,
    /// True if the value is right, or if there were too few inputs to tell.
    pub holds: bool,
}
