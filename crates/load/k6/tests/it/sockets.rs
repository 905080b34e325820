//! `k6/ws` and `k6/websockets`.

use crate::common::{Answers, Script};
use plimsoll_javascript::OpId;
use plimsoll_k6::operations::{
    Event, HttpFault, HttpFaultKind, HttpReply, Op, SocketClosed, SocketCommand, SocketEvent, SocketOpened,
    SocketRefused,
};
use plimsoll_model::units::Nanos;

fn told(id: OpId, event: SocketEvent) -> (OpId, Event) {
    (id, Event::Socket(Box::new(event)))
}

fn opened() -> SocketEvent {
    let headers = [("Sec-WebSocket-Protocol", "chat"), ("x-a", "1"), ("X-A", "2")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let reply = HttpReply::new(101, "", &headers, Vec::new());
    let remote = "127.0.0.1:80".parse().expect("an address");
    SocketEvent::Opened(SocketOpened { reply, remote, tls: None, took: Nanos(5_000_000) })
}

fn refused(status: Option<u16>) -> SocketEvent {
    let reply = status.map(|status| HttpReply::new(status, "", &[], b"no".to_vec()));
    let fault = HttpFault { kind: HttpFaultKind::Refused, detail: "nobody is there".to_owned() };
    SocketEvent::Refused(SocketRefused { reply, fault, remote: None, took: Nanos(0) })
}

fn closed(code: u16) -> SocketEvent {
    SocketEvent::Closed(SocketClosed { code, reason: "so".to_owned(), fault: None })
}

/// A server that sends back what it gets, and closes with the code with which it is asked to.
fn echo(id: OpId, op: Op) -> Answers {
    match op {
        Op::Socket(..) => vec![told(id, opened())],
        Op::SocketSend(id, SocketCommand::Text(text)) if text == "end" => vec![told(id, closed(1000))],
        Op::SocketSend(id, SocketCommand::Text(text)) if text == "die" => vec![told(id, closed(1011))],
        Op::SocketSend(id, SocketCommand::Text(text)) => vec![told(id, SocketEvent::Text(text))],
        Op::SocketSend(id, SocketCommand::Binary(bytes)) => vec![told(id, SocketEvent::Binary(bytes))],
        Op::SocketSend(id, SocketCommand::Ping(payload)) => {
            let at = plimsoll_model::units::Instant(3_000_000);
            vec![told(id, SocketEvent::Ping), told(id, SocketEvent::Pong { payload, at })]
        }
        Op::SocketSend(id, SocketCommand::Close { code, .. }) => vec![told(id, closed(code))],
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_socket_blocks_until_it_is_closed() {
    let text = "import ws from 'k6/ws';
        export default () => {
            const seen = [];
            const response = ws.connect('ws://here/chat', { headers: { 'X-Own': 'yes' }, tags: { team: 'a' }, unheardOf: 1 }, (socket) => {
                socket.on('open', () => { seen.push('open'); socket.send('hello'); });
                socket.on('message', (data) => { seen.push(data); socket.sendBinary(new Uint8Array([1, 2]).buffer); });
                socket.on('binaryMessage', (data) => { seen.push(new Uint8Array(data).length); socket.ping(); });
                socket.on('ping', () => seen.push('ping'));
                socket.on('pong', () => { seen.push('pong'); socket.setTimeout(() => socket.close(), 100); });
                socket.on('close', (code) => seen.push(code));
                socket.on('close', () => socket.send('too late'));
                socket.on('error', (error) => seen.push(error.error()));
            });
            return [seen, response.status, response.headers['X-A'], response.url, response.error];
        };";
    let mut script = Script::new(text);
    let mut request = None;
    let returned = script.run(|id, op| {
        if let Op::Socket(asked, _) = &op {
            request = Some((asked.url.to_string(), asked.headers.clone(), asked.name.clone()));
        }
        echo(id, op)
    });
    let seen = r#"["open","hello",2,"ping","pong",1001,"websocket: close sent"]"#;
    assert_eq!(returned, Ok(format!(r#"[{seen},101,"1, 2","ws://here/chat",""]"#)));
    let (url, headers, name) = request.expect("it asks");
    assert_eq!((&*url, &*name), ("ws://here/chat", "ws://here/chat"));
    let own = ("X-Own".to_owned(), "yes".to_owned());
    assert!(headers[0] == ("Host".to_owned(), "here".to_owned()) && headers.contains(&own), "{headers:?}");
    let samples =
        ["ws_sessions", "ws_connecting", "ws_msgs_sent", "ws_msgs_received", "ws_ping", "ws_session_duration"];
    assert_eq!(samples.map(|metric| script.samples(metric)), [1, 1, 3, 2, 1, 1]);
}

#[test]
fn intervals_go_on_until_the_other_side_closes() {
    let text = "import { connect } from 'k6/ws';
        export default () => {
            const seen = [];
            connect('ws://here', (socket) => {
                let n = 0;
                socket.setInterval(() => { n += 1; socket.send(n < 3 ? `${n}` : 'die'); }, 10);
                socket.on('message', (data) => seen.push(data));
                socket.on('error', (error) => seen.push(error.error()));
                socket.on('close', (code) => seen.push(code));
            });
            return seen;
        };";
    let returned = Script::new(text).run(echo);
    let seen = r#"["1","2","websocket: close 1011 (internal server error): so",1011]"#;
    assert_eq!(returned, Ok(seen.to_owned()));
}

#[test]
fn a_socket_that_is_refused_is_told_by_its_response() {
    let text = "import ws from 'k6/ws';
        export default () => {
            const response = ws.connect('ws://here', () => { throw new Error('not called'); });
            return [response.status, response.body, response.error];
        };";
    let mut script = Script::new(text);
    assert_eq!(script.run(|id, _| vec![told(id, refused(Some(403)))]), Ok(r#"[403,"no",""]"#.to_owned()));
    let in_words = script.run(|id, _| vec![told(id, refused(Some(101)))]);
    assert_eq!(in_words, Ok(r#"[101,"no","nobody is there"]"#.to_owned()), "a status that agrees to what is wrong");
    assert_eq!(script.run(|id, _| vec![told(id, refused(None))]), Ok(r#"[0,"","nobody is there"]"#.to_owned()));
    let late = script.run(|_, _| Vec::new());
    assert_eq!(late, Ok(r#"[0,"","the socket did not open within 60 s"]"#.to_owned()));
    assert_eq!((script.samples("ws_sessions"), script.cancelled.is_empty()), (4, false));
}

#[test]
fn wrong_arguments_of_connect_are_refused() {
    let cases = [
        ("ws.connect('ws://here')", "invalid number of arguments"),
        ("ws.connect('ws://here', {})", "must be a function"),
        ("ws.connect('http://here', () => {})", "scheme ws or wss"),
        ("ws.connect('ws://here', { compression: 'zip' }, () => {})", "supported algorithm is 'deflate'"),
        ("ws.connect('ws://here', { headers: { Upgrade: 'x' } }, () => {})", "duplicate header not allowed: Upgrade"),
        ("ws.connect('ws://here', { jar: {} }, () => {})", "expected a CookieJar"),
    ];
    for (call, words) in cases {
        let mut script = Script::new(&format!("import ws from 'k6/ws'; export default () => {{ {call}; }};"));
        let thrown = script.run(echo).expect_err(call);
        assert!(thrown.contains(words), "{call}: {thrown}");
    }
}

#[test]
fn an_exception_in_a_listener_ends_the_socket_and_the_iteration() {
    let text = "import ws from 'k6/ws';
        export default () => {
            ws.connect('ws://here', (socket) => { socket.on('open', () => { throw new Error('mine'); }); });
        };";
    let mut script = Script::new(text);
    assert_eq!(script.run(echo), Err("Error: mine".to_owned()));
    assert_eq!(script.cancelled.len(), 2, "the socket and the timer of its opening");
}

#[test]
fn a_websocket_tells_its_events_while_the_function_is_over() {
    let text = "import { WebSocket } from 'k6/websockets';
        const seen = [];
        export default () => new Promise((resolve) => {
            const socket = new WebSocket('ws://here/chat', ['chat'], { tags: { name: 'chat' } });
            seen.push(socket.readyState, socket.url, socket.binaryType, WebSocket.OPEN);
            socket.binaryType = 'arraybuffer';
            socket.onopen = (event) => {
                seen.push(event.type, socket.readyState === socket.OPEN, socket.protocol, event.target === socket);
                socket.send('text');
            };
            socket.addEventListener('message', (event) => {
                if (typeof event.data === 'string') { seen.push(event.data); socket.send(new Uint8Array([7])); return; }
                seen.push(new Uint8Array(event.data)[0]);
                socket.ping();
            });
            socket.addEventListener('pong', () => { seen.push('pong'); socket.close(3001, 'enough'); seen.push(socket.readyState); });
            socket.onerror = (event) => seen.push(event.error);
            socket.onclose = (event) => { seen.push(event.code, event.reason, socket.readyState); resolve(seen); };
        });";
    let mut script = Script::new(text);
    let seen = [
        r#"0,"ws://here/chat","blob",1"#,
        r#""open",true,"chat",true"#,
        r#""text",7,"pong",2"#,
        r#""websocket: close 3001: so",3001,"so",3"#,
    ];
    assert_eq!(script.run(echo), Ok(format!("[{}]", seen.join(","))));
    let samples =
        ["ws_sessions", "ws_connecting", "ws_msgs_sent", "ws_msgs_received", "ws_ping", "ws_session_duration"];
    assert_eq!(samples.map(|metric| script.samples(metric)), [1, 1, 4, 2, 1, 1]);
}

#[test]
fn a_websocket_that_is_refused_fails_and_closes() {
    let text = "import { WebSocket } from 'k6/websockets';
        export default () => new Promise((resolve) => {
            const seen = [];
            const socket = new WebSocket('ws://here');
            socket.onerror = (event) => seen.push(event.error);
            socket.onclose = (event) => { seen.push(event.code === undefined); resolve(seen); };
        });";
    let mut script = Script::new(text);
    assert_eq!(script.run(|id, _| vec![told(id, refused(None))]), Ok(r#"["nobody is there",true]"#.to_owned()));
    let late = script.run(|_, _| Vec::new());
    assert_eq!(late, Ok(r#"["the socket did not open within 60 s",true]"#.to_owned()));
}

#[test]
fn bytes_come_as_blobs() {
    let text = "import { WebSocket, Blob } from 'k6/websockets';
        export default async () => {
            const socket = new WebSocket('ws://here');
            const blob = await new Promise((resolve) => {
                socket.onopen = () => socket.send(new Blob(['ab', new Uint8Array([99]), new Blob(['d'])], { type: 't' }));
                socket.onmessage = (event) => resolve(event.data);
            });
            socket.close();
            const part = blob.slice(1, -1, 'part');
            return [blob.size, await blob.text(), await part.text(), part.type, (await blob.arrayBuffer()).byteLength,
                (await blob.bytes())[3], String(blob), blob instanceof Blob];
        };";
    let returned = Script::new(text).run(echo);
    assert_eq!(returned, Ok(r#"[4,"abcd","bc","part",4,100,"[object Blob]",true]"#.to_owned()));
}

#[test]
fn wrong_uses_of_a_websocket_are_refused() {
    let cases = [
        ("new WebSocket()", "requires a url"),
        ("new WebSocket('http://here')", "scheme ws or wss"),
        ("new WebSocket('ws://here/#part')", "no url fragment"),
        ("new WebSocket('ws://here', null, { wrong: 1 })", "unknown WebSocket's option wrong"),
        ("new WebSocket('ws://here').send('early')", "InvalidStateError"),
        ("new WebSocket('ws://here').close(1001)", "either 1000, or between 3000 and 4999. 1001 is neither"),
        ("new WebSocket('ws://here').close(3000, 'x'.repeat(124))", "123 bytes"),
        ("new Blob(['a']).stream()", "`Blob.stream()` is not supported"),
        ("new WebSocket('ws://here').onopen = 1", "'onopen' should be callable"),
        ("new WebSocket('ws://here').binaryType = 'text'", "unknown binaryType text"),
        ("new WebSocket('ws://here').addEventListener('open')", "isn't a callable function"),
    ];
    for (call, words) in cases {
        let text = format!("import {{ Blob, WebSocket }} from 'k6/websockets'; export default () => {{ {call}; }};");
        let thrown = Script::new(&text).run(echo).expect_err(call);
        assert!(thrown.contains(words), "{call}: {thrown}");
    }
}

#[test]
fn sockets_are_for_functions() {
    let text = "import { WebSocket } from 'k6/websockets';
        let thrown; try { new WebSocket('ws://here'); } catch (error) { thrown = error.message; }
        export default () => thrown;";
    let returned = Script::new(text).run(echo).expect("it runs");
    assert!(returned.contains("only in functions"), "{returned}");
}

#[test]
fn a_socket_may_be_closed_in_any_of_its_handlers() {
    for event in ["open", "message", "ping", "pong", "error", "close"] {
        let text = "import { WebSocket } from 'k6/websockets';
            export default async () => {
                const seen = [];
                const socket = new WebSocket('ws://here');
                await new Promise((done) => {
                    for (const name of ['open', 'message', 'ping', 'pong', 'error', 'close']) {
                        socket.addEventListener(name, () => {
                            seen.push(name);
                            if (name === 'EVENT') socket.close();
                            if (name === 'close') done();
                        });
                    }
                    const open = (act) => () => { if (socket.readyState === 1) act(); };
                    socket.addEventListener('open', open(() => { socket.send('hello'); socket.ping(); }));
                    socket.addEventListener('pong', open(() => socket.send('die')));
                });
                return [seen.includes('EVENT'), seen[seen.length - 1]];
            };";
        let returned = Script::new(&text.replace("EVENT", event)).run(echo);
        assert_eq!(returned, Ok(r#"[true,"close"]"#.to_owned()), "{event}");
    }
}
