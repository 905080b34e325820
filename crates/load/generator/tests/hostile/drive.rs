//! Clients of every kind: each makes one request of a server, and says how that ended.

use crate::cases::{End, FINE};
use crate::support::{Outcome, closed, each, get, http, run, run_prepared, target};
use plimsoll_generator::Prepared;
use plimsoll_model::database::{Address, Endpoint, Engine};
use plimsoll_model::flow::{
    AwaitedMessage, Block, Body, Capture, Checks, Flow, FlowAction, FlowMessage, FlowRequest, FlowSocket, Instruction,
    JsonPiece, JsonText, Lifetime, Pick, Piece, Source, Text, ValueId,
};
use plimsoll_model::record::Subject;
use plimsoll_model::script::{Script, ScriptLimits};
use plimsoll_model::storage::Secret;
use plimsoll_model::workload::{Connect, GrpcSchema, GrpcStep, Steps, Workload};
use plimsoll_sql::{CallLimits, Connection, SqlError, Value};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The request of every client.
const NAME: &str = "page";

/// A plain request of HTTP/1.1.
pub(crate) fn request(address: SocketAddr, timeout: Duration) -> End {
    let mut workload = http(address, Connect::PerUser, vec![get(NAME, "/")]);
    workload.timeout = timeout;
    end(&run(&workload, address, &closed(1, each(1)), 1))
}

/// A flow that looks for something in the body.
pub(crate) fn flow(address: SocketAddr, timeout: Duration) -> End {
    let from = Source::Regex { pattern: "a+".to_owned(), group: 0 };
    let default = Some(serde_json::Value::Null);
    let request = FlowRequest {
        name: NAME.to_owned(),
        method: "GET".to_owned(),
        path: Text(vec![Piece::Literal("/".to_owned())]),
        headers: Vec::new(),
        body: Body::None,
        auth: None,
        captures: vec![Capture { into: ValueId(0), from, pick: Pick::First, default, keep: false }],
        checks: Checks::default(),
        delivers_to: None,
    };
    let flow = Flow {
        requests: vec![request],
        actions: vec![FlowAction { name: "act".to_owned(), weight: 1, steps: Block(vec![Instruction::Request(0)]) }],
        on_start: Block::default(),
        on_stop: Block::default(),
        values: vec!["a".to_owned()],
        draws: Vec::new(),
        feeds: Vec::new(),
        cookies: true,
        redirects: 3,
        compression: Vec::new(),
        lifetime: Lifetime::Trial,
        socket: None,
    };
    let steps = Steps::Flow(Box::new(flow));
    let workload = Workload { target: Some(target(address)), connect: Connect::PerUser, timeout, steps };
    end(&run(&workload, address, &closed(1, each(1)), 1))
}

/// A flow that opens a WebSocket and waits for [`OVER`], which ends its iteration.
pub(crate) fn flow_socket(address: SocketAddr, timeout: Duration) -> End {
    let text = |literal: &str| Text(vec![Piece::Literal(literal.to_owned())]);
    let opening = FlowRequest {
        name: NAME.to_owned(),
        method: "GET".to_owned(),
        path: text("/"),
        headers: Vec::new(),
        body: Body::None,
        auth: None,
        captures: Vec::new(),
        checks: Checks::default(),
        delivers_to: None,
    };
    let over = JsonText(vec![JsonPiece::Literal("true".to_owned())]);
    let checks = Checks { json: vec![("$.over".to_owned(), over)], ..Checks::default() };
    let awaited = AwaitedMessage { checks, captures: Vec::new() };
    let socket = FlowSocket {
        opening: 0,
        subprotocols: Vec::new(),
        compression: false,
        greeting: None,
        ready: None,
        ping: None,
        reconnect: None,
        deliveries: None,
        messages: vec![FlowMessage { name: "over".to_owned(), send: None, awaits: Some(awaited) }],
    };
    let steps = Block(vec![Instruction::OpenSocket, Instruction::Message(0)]);
    let flow = Flow {
        requests: vec![opening],
        actions: vec![FlowAction { name: "act".to_owned(), weight: 1, steps }],
        on_start: Block::default(),
        on_stop: Block::default(),
        values: Vec::new(),
        draws: Vec::new(),
        feeds: Vec::new(),
        cookies: false,
        redirects: 0,
        compression: Vec::new(),
        lifetime: Lifetime::Trial,
        socket: Some(socket),
    };
    let steps = Steps::Flow(Box::new(flow));
    let workload = Workload { target: Some(target(address)), connect: Connect::PerUser, timeout, steps };
    let end = end_of(&run(&workload, address, &closed(1, each(1)), 1), &Subject::Iteration);
    if end == FINE { end } else { format!("Iteration: {end}") }
}

/// The message after which [`flow_socket`] is content.
pub(crate) const OVER: &[u8] = br#"{"over": true}"#;

/// A call of gRPC.
pub(crate) fn call(address: SocketAddr, timeout: Duration) -> End {
    let step = GrpcStep {
        name: NAME.to_owned(),
        call: "counter.incrementCounter/increment".to_owned(),
        message: serde_json::json!({ "value": 1 }),
        metadata: Vec::new(),
        deadline: None,
        status: 0,
        sequence: None,
    };
    let schema = GrpcSchema::Files { files: vec![proto()], include: Vec::new() };
    let steps = Steps::Grpc { schema, calls: vec![step] };
    let workload = Workload { target: Some(target(address)), connect: Connect::PerUser, timeout, steps };
    end(&run(&workload, address, &closed(1, each(1)), 1))
}

fn proto() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../command/demo/proto/counter.proto"))
}

/// A request of a script, which keeps the body.
pub(crate) fn scripted_request(address: SocketAddr, timeout: Duration) -> End {
    let text = "import http from 'k6/http';
        export default function () {
            const reply = http.get(`http://${__ENV.TARGET}/`, { timeout: __ENV.TIME_OUT, tags: { name: 'page' } });
            if (reply.error) { throw new Error(reply.error); }
        }";
    script(text, address, timeout)
}

/// A call of gRPC by a script.
pub(crate) fn scripted_call(address: SocketAddr, timeout: Duration) -> End {
    let text = "import grpc from 'k6/net/grpc';
        const client = new grpc.Client();
        client.load([], 'counter.proto');
        export default function () {
            client.connect(__ENV.TARGET, { plaintext: true, timeout: __ENV.TIME_OUT });
            const reply = client.invoke('counter.incrementCounter/increment', { value: 1 }, { timeout: __ENV.TIME_OUT });
            if (reply.status !== grpc.StatusOK) { throw new Error(JSON.stringify(reply.error)); }
        }";
    script(text, address, timeout)
}

/// A WebSocket of a script, until the server closes it.
pub(crate) fn socket(address: SocketAddr, timeout: Duration) -> End {
    let text = "import ws from 'k6/ws';
        export default function () {
            let fault = '';
            const reply = ws.connect(`ws://${__ENV.TARGET}/`, {}, (socket) => {
                socket.on('error', (error) => { fault = fault || error.error(); });
                socket.setTimeout(() => { fault = fault || 'no end'; socket.close(); }, parseInt(__ENV.TIME_OUT));
            });
            if (reply.status !== 101 || reply.error) { throw new Error(`status ${reply.status} ${reply.error}`); }
            if (fault) { throw new Error(fault); }
        }";
    script(text, address, timeout)
}

/// A WebSocket of a script that sends without an end, until that fails because the server does not read.
pub(crate) fn talking_socket(address: SocketAddr, timeout: Duration) -> End {
    let text = "import ws from 'k6/ws';
        export default function () {
            let fault = '';
            const message = 'x'.repeat(1 << 20);
            ws.connect(`ws://${__ENV.TARGET}/`, {}, (socket) => {
                socket.on('error', (error) => { fault = fault || error.error(); });
                socket.setInterval(() => socket.send(message), 1);
                socket.setTimeout(() => { fault = fault || 'no end'; socket.close(); }, parseInt(__ENV.TIME_OUT));
            });
            if (!fault.includes('the server does not read')) { throw new Error(fault); }
        }";
    script(text, address, timeout)
}

/// Five WebSockets of a script, until all have failed because the user holds too much.
pub(crate) fn many_sockets(address: SocketAddr, timeout: Duration) -> End {
    let text = "import { WebSocket } from 'k6/websockets';
        export default function () {
            for (let i = 0; i < 5; i++) {
                let failed = false;
                const socket = new WebSocket(`ws://${__ENV.TARGET}/`);
                socket.onerror = ({ error }) => {
                    if (!error.includes('what the user holds is larger than 33554432 bytes')) { throw new Error(error); }
                    failed = true;
                };
                socket.onclose = () => { if (!failed) { throw new Error('it closed without a fault'); } };
            }
        }";
    let limits = ScriptLimits { memory: 8 << 20, ..ScriptLimits::default() };
    script_within(limits, text, address, timeout)
}

/// A stream of gRPC by a script that sends without an end, until that fails because the server does not read.
pub(crate) fn talking_stream(address: SocketAddr, timeout: Duration) -> End {
    let text = "import { Client, Stream } from 'k6/net/grpc';
        const client = new Client();
        client.load([], 'talk.proto');
        export default function () {
            client.connect(__ENV.TARGET, { plaintext: true });
            const message = { text: 'x'.repeat(1 << 20) };
            const stream = new Stream(client, 'own.Talk/Say');
            const timer = setInterval(() => stream.write(message), 1);
            stream.on('error', (error) => {
                clearInterval(timer);
                if (!error.message.includes('the server does not read')) { throw new Error(error.message); }
            });
        }";
    script(text, address, timeout)
}

/// The schema of [`talking_stream`].
const TALK: &str = "syntax = 'proto3';
    package own;
    message Words { string text = 1; }
    service Talk { rpc Say(stream Words) returns (stream Words); }";

fn script(text: &str, address: SocketAddr, timeout: Duration) -> End {
    script_within(ScriptLimits::default(), text, address, timeout)
}

fn script_within(limits: ScriptLimits, text: &str, address: SocketAddr, timeout: Duration) -> End {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = folder.path().join("load.js");
    std::fs::write(&entry, text).expect("a file");
    std::fs::copy(proto(), folder.path().join("counter.proto")).expect("a file");
    std::fs::write(folder.path().join("talk.proto"), TALK).expect("a file");
    let script = Script {
        entry,
        exec: "default".to_owned(),
        env: BTreeMap::from([
            ("TARGET".to_owned(), address.to_string()),
            ("TIME_OUT".to_owned(), format!("{}ms", timeout.as_millis())),
        ]),
        files: Vec::new(),
        limits,
        tags: BTreeMap::new(),
        allowed: Vec::new(),
        systems: BTreeMap::from([(address, "web".to_owned())]),
        sources: Vec::new(),
        own_load: None,
    };
    let steps = Steps::Script(Box::new(script));
    let workload = Workload { target: None, connect: Connect::PerUser, timeout, steps };
    let prepared = Prepared::new(&workload, None).expect("the script is in order");
    let outcome = run_prepared(&prepared, &closed(1, each(1)), 1, &AtomicBool::new(false));
    let end = end_of(&outcome, &Subject::Iteration);
    // What throws because a request failed has the kind of that request.
    if outcome.iterations().failed() == 1 { format!("Script: {end}") } else { end }
}

fn end(outcome: &Outcome) -> End {
    end_of(outcome, &Subject::Request(NAME.to_owned()))
}

/// How the only one of a subject ended.
fn end_of(outcome: &Outcome, subject: &Subject) -> End {
    let tally = outcome.subject(subject);
    let errors: Vec<_> = tally.errors.iter().collect();
    match errors[..] {
        [] if tally.count() == 1 => FINE.to_owned(),
        [(kind, 1)] => {
            let examples = &outcome.record.error_examples;
            let example = examples.get(&subject.to_string()).and_then(|examples| examples.get(kind));
            format!("{kind:?}: {}", example.map_or("", String::as_str))
        }
        _ => format!("{} ended, with errors {errors:?}", tally.count()),
    }
}

/// A session with PostgreSQL.
pub(crate) fn postgresql(address: SocketAddr, timeout: Duration) -> End {
    session(Engine::Postgresql, address, timeout)
}

/// A session with MySQL.
pub(crate) fn mysql(address: SocketAddr, timeout: Duration) -> End {
    session(Engine::Mysql, address, timeout)
}

fn session(engine: Engine, address: SocketAddr, timeout: Duration) -> End {
    let endpoint = Endpoint {
        engine,
        address: Address::Tcp { host: address.ip().to_string(), port: address.port() },
        user: "tester".to_owned(),
        password: Some(Secret("secret".to_owned())),
        database: "test".to_owned(),
    };
    let converse = || -> Result<(), SqlError> {
        let mut connection = Connection::open(&endpoint, CallLimits::timeout(timeout))?;
        let statement = connection.prepare("SELECT a, b FROM t WHERE c = ?")?;
        let rows = connection.execute(statement, &[Value::Int(7)])?;
        for row in 0..rows.len() {
            let _ = (rows.int(row, 0), rows.text(row, 1));
        }
        connection.query("SELECT a, b FROM t")?;
        Ok(())
    };
    converse().map_or_else(|error| format!("{:?}: {}", error.kind, error.detail), |()| FINE.to_owned())
}
