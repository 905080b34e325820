//! A service that runs for a test, and ways to speak with it and with its database.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use plimsoll_model::database::{Address, Engine};
use plimsoll_testkit::database::{Database, PASSWORD, USER, shared};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::Sha256;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Row};
use ureq::Agent;
use ureq::http::Request;

/// Long enough for anything that must happen, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What the service signs its tokens with.
const SECRET: &str = "a secret of the tests";

/// A service that runs. Dropping it kills it.
pub(crate) struct Service {
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    database: OwnDatabase,
    child: Child,
    stdout: BufReader<ChildStdout>,
    agent: Agent,
}

/// A status and a body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Reply {
    /// The body, which must be JSON, of a reply that says OK.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }

    /// The error in the body.
    pub(crate) fn error(&self) -> String {
        let body: Value = serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"));
        body["error"].as_str().unwrap_or_else(|| panic!("no error: {self:?}")).to_owned()
    }
}

impl Service {
    /// A service with an empty database; none, said aloud, where PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Service> {
        // All tests at once stay below what PostgreSQL accepts.
        Service::start_with_connections(3)
    }

    pub(crate) fn start_with_connections(connections: usize) -> Option<Service> {
        let database = OwnDatabase::create()?;
        let migrated = planner(&["migrate"]).env("DATABASE_URL", &database.url).status().unwrap();
        assert!(migrated.success());
        let mut command = planner(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("DATABASE_URL", &database.url).env("MAX_CONNECTIONS", connections.to_string());
        let mut child = command.env("SECRET_KEY", SECRET).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("planner listens on ").unwrap_or_else(|| panic!("it said {line:?}"));
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build();
        Some(Service { address: address.to_owned(), database, child, stdout, agent: config.new_agent() })
    }

    /// Sends a request with a token of every role.
    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.send_with(&token(&["publish", "pause", "update", "disable"], 60), method, path, body)
    }

    pub(crate) fn send_with(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        let request = request.header("authorization", format!("Bearer {token}"));
        let replied = match body {
            Some(body) => {
                self.agent.run(request.header("content-type", "application/json").body(body.to_string()).unwrap())
            }
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut reply = replied.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        Reply { status: reply.status().as_u16(), text: reply.body_mut().read_to_string().unwrap() }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send_with("none", "GET", path, None)
    }

    /// A connection to its database.
    pub(crate) fn sql(&self) -> Session {
        Session::open(&self.database.url)
    }

    /// Takes the database away from the service while it uses it.
    pub(crate) fn drop_database(&self) {
        let (server, name) = self.database.url.rsplit_once('/').unwrap();
        Session::open(&format!("{server}/postgres")).run(&format!("DROP DATABASE {name} WITH (FORCE)"));
    }

    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// The status of its end, for which this waits, and what it has printed since it listens.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        (status, said)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, with none of its variables set.
pub(crate) fn planner(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planner"));
    command.args(arguments).stdin(Stdio::null());
    for variable in ["DATABASE_URL", "MAX_CONNECTIONS", "SECRET_KEY"] {
        command.env_remove(variable);
    }
    command
}

/// A database in the server that all tests share.
pub(crate) struct OwnDatabase {
    pub(crate) url: String,
    _server: Arc<Database>,
}

impl OwnDatabase {
    pub(crate) fn create() -> Option<OwnDatabase> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = shared(Engine::Postgresql)?;
        let Address::Tcp { host, port } = server.tcp().address else { panic!("it is asked for its TCP port") };
        let url =
            |database: &str| format!("postgres://{USER}:{}@{host}:{port}/{database}", PASSWORD.replace(' ', "%20"));
        let name = format!("planner_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Session::open(&url("postgres")).run(&format!("CREATE DATABASE {name} TEMPLATE template0"));
        Some(OwnDatabase { url: url(&name), _server: server })
    }
}

/// A connection to a database.
pub(crate) struct Session {
    runtime: Runtime,
    client: Client,
}

impl Session {
    pub(crate) fn open(url: &str) -> Session {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
        runtime.spawn(connection);
        Session { runtime, client }
    }

    pub(crate) fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap();
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<Row> {
        self.runtime.block_on(self.client.query(sql, &[])).unwrap()
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.rows(sql)[0].get(0)
    }

    /// Waits until this many statements wait for a lock.
    pub(crate) fn wait_for_blocked(&self, count: i64) {
        let begin = Instant::now();
        let blocked = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while self.number(blocked) < count {
            assert!(begin.elapsed() < PATIENCE, "nothing waits for a lock");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A token as the service would sign it, for these roles and for so many seconds from now.
pub(crate) fn token(roles: &[&str], seconds: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let claims = json!({"sub": "tester", "roles": roles, "iat": now, "exp": now + seconds});
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let header = encode(br#"{"typ":"JWT","alg":"HS256"}"#);
    let message = format!("{header}.{}", encode(claims.to_string().as_bytes()));
    let signature = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap().chain_update(&message).finalize();
    format!("{message}.{}", encode(&signature.into_bytes()))
}

/// The plan of the study, for a dataset of its own.
pub(crate) fn plan(dataset: &str) -> Value {
    let mut plan: Value = serde_json::from_str(include_str!("../plan.json")).unwrap();
    plan["dataset"]["id"] = json!(dataset);
    plan
}
