//! Long-lived connections of scripts, against servers on other libraries: WebSockets, and gRPC with its streams.

use crate::script::{Outcome, Trial};
use plimsoll_testkit::grpc::{Counter, Mode, ReplyMode, Signer};
use plimsoll_testkit::websocket::{Server, SocketEvent};
use std::net::TcpListener;

fn run_script(script: &str, target: &str) -> Outcome {
    Trial::of(script, target).run()
}

/// Asserts that the console is empty, where scripts write what they did not expect, and that every check passed.
fn assert_well(outcome: &Outcome, checks: u64) {
    assert_eq!(outcome.console_lines(), Vec::<&str>::new());
    let (passed, failed) = outcome.checks().iter().fold((0, 0), |(all, none), (_, ok, bad)| (all + ok, none + bad));
    assert_eq!((passed, failed), (checks, 0), "{:?}", outcome.checks());
}

#[test]
fn sockets_carry_messages_both_ways() {
    let server = Server::start().expect("a port");
    let outcome = run_script(
        "import ws from 'k6/ws'; import { check } from 'k6';
        export const options = { vus: 3, iterations: 6 };
        export default () => {
            const seen = [];
            const response = ws.connect(`ws://${__ENV.TARGET}/echo`, (socket) => {
                socket.on('open', () => { socket.send('hello'); socket.sendBinary(new Uint8Array(70000).buffer); socket.ping(); });
                socket.on('message', (data) => seen.push(data));
                socket.on('binaryMessage', (data) => seen.push(data.byteLength));
                socket.on('pong', () => { seen.push('pong'); socket.close(1000); });
                socket.on('close', (code) => seen.push(code));
                socket.on('error', (error) => console.error(error.error()));
            });
            check(response, { 'is open': (r) => r.status === 101, 'has all': () => seen.join() === 'hello,70000,pong,1000' });
        };",
        &server.address().to_string(),
    );
    assert_well(&outcome, 12);
    assert_eq!(
        ["ws_sessions", "ws_msgs_sent", "ws_msgs_received"].map(|metric| outcome.count(metric)),
        [6.0, 12.0, 12.0]
    );
    assert_eq!(server.record().connections(), 6);
    server.wait_for_ends();
    let farewells = server.received().iter().filter(|message| message.event == SocketEvent::Close(Some(1000))).count();
    assert_eq!(farewells, 6);
}

#[test]
fn sockets_end_as_the_server_says() {
    let server = Server::start().expect("a port");
    let outcome = run_script(
        "import ws from 'k6/ws'; import { check } from 'k6';
        const talk = (path, begin) => {
            const seen = [];
            const response = ws.connect(`ws://${__ENV.TARGET}/${path}`, (socket) => {
                socket.on('open', () => begin && socket.send('x'));
                for (const event of ['message', 'ping', 'close']) socket.on(event, (what) => { seen.push(what ?? event); if (path === 'ping' && event === 'message') socket.close(); });
                socket.on('error', (error) => seen.push(error.error()));
            });
            return seen.concat(response.status).join();
        };
        export default () => {
            const all = { 'push/3': talk('push/3'), 'close': talk('close/4000/why'), cut: talk('cut', true), ping: talk('ping'), none: talk('none') };
            check(all, {
                pushes: (all) => all['push/3'] === '1,2,3,1000,101',
                closes: (all) => all.close === 'websocket: close 4000: why,4000,101',
                cuts: (all) => all.cut === 'websocket: close 1006 (abnormal closure): unexpected EOF,1006,101',
                pings: (all) => all.ping === 'ping,you are there,1001,101',
                refuses: (all) => all.none === '404',
            }) || console.error(JSON.stringify(all));
        };",
        &server.address().to_string(),
    );
    assert_well(&outcome, 5);
}

#[test]
fn sockets_of_browsers_live_beside_one_another() {
    let server = Server::start().expect("a port");
    let outcome = run_script(
        "import { WebSocket } from 'k6/websockets'; import { check } from 'k6';
        const talk = (n) => new Promise((resolve) => {
            const seen = [];
            const socket = new WebSocket(`ws://${__ENV.TARGET}/echo`, ['chat'], { headers: { 'X-N': `${n}` } });
            socket.onopen = () => socket.send(`${n}`);
            socket.onmessage = (event) => { seen.push(event.data); if (seen.length < 3) socket.send(event.data + n); else socket.close(); };
            socket.onerror = (event) => console.error(event.error);
            socket.onclose = (event) => resolve(`${seen.join()} ${event.code} ${socket.protocol}`);
        });
        export default async () => {
            const all = await Promise.all([1, 2, 3].map(talk));
            check(all, { 'all are served': (all) => all.join(';') === '1,11,111 1000 chat;2,22,222 1000 chat;3,33,333 1000 chat' })
                || console.error(all.join(';'));
        };",
        &server.address().to_string(),
    );
    assert_well(&outcome, 1);
    assert_eq!(server.record().connections(), 3);
}

#[test]
fn sockets_go_over_tls_to_servers_that_are_trusted() {
    let server = Server::start_tls().expect("a port");
    let script = "import ws from 'k6/ws'; import { WebSocket } from 'k6/websockets'; import { check } from 'k6';
        export const options = { insecureSkipTLSVerify: TRUSTS };
        const url = `wss://${__ENV.TARGET}/echo`;
        const blocking = () => {
            const seen = [];
            const response = ws.connect(url, (socket) => {
                socket.on('open', () => socket.send('hello'));
                socket.on('message', (text) => { seen.push(text); socket.close(1000); });
            });
            return seen.concat(response.status, response.error).join();
        };
        const later = () => new Promise((resolve) => {
            const socket = new WebSocket(url), seen = [];
            socket.onopen = () => socket.send('x'.repeat(100000));
            socket.onmessage = (event) => { seen.push(event.data.length); socket.close(); };
            socket.onerror = (event) => seen.push(event.error);
            socket.onclose = () => resolve(seen.join());
        });
        export default async () => {
            const both = [blocking(), await later()];
            check(both, { 'as it should be': ([a, b]) => EXPECTED }) || console.error(both.join(' and '));
        };";
    let cases = [
        ("true", "a === 'hello,101,' && b === '100000'"),
        ("false", "a.startsWith('0,') && a.includes('TLS') && b.includes('TLS')"),
    ];
    for (trusts, expected) in cases {
        let script = script.replace("TRUSTS", trusts).replace("EXPECTED", expected);
        assert_well(&run_script(&script, &server.address().to_string()), 1);
    }
    assert_eq!(server.record().requests(), 2);
}

#[test]
fn cookies_go_with_sockets_and_come_from_them() {
    let server = Server::start().expect("a port");
    let outcome = run_script(
        "import ws from 'k6/ws'; import http from 'k6/http'; import { check } from 'k6';
        export default () => {
            const seen = [];
            http.cookieJar().set(`http://${__ENV.TARGET}`, 'mine', 'yes');
            for (let n = 0; n < 2; n++) ws.connect(`ws://${__ENV.TARGET}/cookies`, (socket) => {
                socket.on('message', (data) => { seen.push(data); socket.close(); });
            });
            check(seen, { 'they are kept': (seen) => seen.join('|') === 'mine=yes|mine=yes; socket=open' }) || console.error(seen.join('|'));
        };",
        &server.address().to_string(),
    );
    assert_well(&outcome, 1);
}

#[test]
fn where_nobody_is_or_nobody_may_go_there_is_no_connection() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let outcome = run_script(
        "import ws from 'k6/ws'; import grpc from 'k6/net/grpc'; import { check } from 'k6';
        export default () => {
            const refused = ws.connect(`ws://${__ENV.TARGET}/`, () => {});
            const forbidden = ws.connect('ws://192.0.2.1/', () => {});
            let thrown; try { new grpc.Client().connect(__ENV.TARGET, { plaintext: true }); } catch (error) { thrown = error.message; }
            check(null, {
                'is refused': () => refused.status === 0 && refused.error.includes('refused'),
                'may not go': () => forbidden.error.includes('--allow'),
                'throws': () => thrown.includes('refused'),
            }) || console.error(refused.error, forbidden.error, thrown);
        };",
        &gone.to_string(),
    );
    assert_well(&outcome, 3);
}

#[test]
fn calls_and_streams_go_over_one_connection() {
    let server = Counter::start(Mode::Mutex).expect("a port");
    let outcome = run_script(
        "import { Client, Stream, StatusOK, StatusInvalidArgument, HealthCheckServing } from 'k6/net/grpc'; import { check } from 'k6';
        const client = new Client();
        const stream = (method, words) => new Promise((resolve) => {
            const seen = [];
            const stream = new Stream(client, `talk.Talk/${method}`);
            stream.on('data', (word) => seen.push(word.text));
            stream.on('error', (error) => seen.push(error.code, error.message));
            stream.on('end', () => resolve(seen.join()));
            words.forEach((word) => stream.write(word));
            stream.end();
        });
        export const options = { vus: 2, iterations: 4 };
        export default async () => {
            if (__ITER === 0) client.connect(__ENV.TARGET, { plaintext: true, reflect: true });
            const said = client.invoke('talk.Talk/Say', { text: 'hello' }, { metadata: { 'X-Own': 'mine' }, timeout: '5s' });
            const failed = client.invoke('talk.Talk/Say', { text: 'fail' });
            const words = ['a', 'b', 'c'].map((text) => ({ text }));
            const all = await Promise.all([stream('Repeat', [{ text: 'x', times: 3 }]), stream('Gather', words), stream('Chat', words),
                stream('Chat', [words[0], { text: 'fail' }]), client.asyncInvoke('talk.Talk/Say', { text: 'later' })]);
            const counted = client.invoke('counter.incrementCounter/increment', { value: 1 });
            check(all, {
                says: () => said.status === StatusOK && said.message.text === 'hello' && said.headers['x-own'][0] === 'mine' && said.trailers['x-own'][0] === 'mine',
                fails: () => failed.status === StatusInvalidArgument && failed.error.message === 'as told' && failed.message.text === '',
                repeats: (all) => all[0] === 'x,x,x',
                gathers: (all) => all[1] === 'abc',
                chats: (all) => all[2] === 'a,b,c',
                'fails in a stream': (all) => all[3] === 'a,3,as told',
                'says later': (all) => all[4].message.text === 'later',
                counts: () => counted.message.message.startsWith('Incremented value is '),
                'is healthy': () => client.healthCheck('talk.Talk').status === HealthCheckServing,
            }) || console.error(JSON.stringify([said, failed, all, counted]));
        };",
        &server.address().to_string(),
    );
    assert_well(&outcome, 36);
    assert_eq!(server.record().connections(), 2, "one for each user");
    let counts = ["grpc_streams", "grpc_streams_msgs_sent", "grpc_streams_msgs_received", "grpc_req_duration"];
    let [streams, sent, received, calls] = counts.map(|metric| outcome.count(metric));
    assert_eq!((streams, sent, received, calls), (16.0, 36.0, 32.0, 36.0));
}

#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let server = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::Never).start().expect("a port");
    let outcome = run_script(
        "import grpc from 'k6/net/grpc'; import { check } from 'k6';
        const client = new grpc.Client();
        export default () => {
            client.connect(__ENV.TARGET, { plaintext: true, reflect: true });
            const response = client.invoke('counter.incrementCounter/increment', { value: 1 }, { timeout: 50 });
            check(response, { 'is late': (r) => r.status === grpc.StatusDeadlineExceeded });
            client.close();
        };",
        &server.address().to_string(),
    );
    assert_well(&outcome, 1);
}

#[test]
fn a_call_whose_stream_is_reset_ends_as_the_error_says() {
    // INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM, INADEQUATE_SECURITY
    for (error, status) in [(2, 13), (7, 14), (8, 1), (11, 8), (12, 7)] {
        let server = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::Reset(error)).start().expect("a port");
        let script = "import grpc from 'k6/net/grpc'; import { check } from 'k6';
            const client = new grpc.Client();
            export default () => {
                client.connect(__ENV.TARGET, { plaintext: true, reflect: true });
                const response = client.invoke('counter.incrementCounter/increment', { value: 1 });
                check(response, { 'is told': (r) => r.status === STATUS && r.error.message.includes('reset') })
                    || console.error(JSON.stringify(response));
            };";
        let outcome = run_script(&script.replace("STATUS", &status.to_string()), &server.address().to_string());
        assert_well(&outcome, 1);
    }
}

#[test]
fn a_server_that_sends_its_clients_away_is_connected_to_again() {
    let server = Counter::builder(Mode::Mutex).goaway_after(3).start().expect("a port");
    let outcome = run_script(
        "import grpc from 'k6/net/grpc'; import { check } from 'k6';
        const client = new grpc.Client();
        export default () => {
            client.connect(__ENV.TARGET, { plaintext: true, reflect: true });
            for (let n = 0; n < 7; n++) {
                const response = client.invoke('counter.incrementCounter/increment', { value: 1 });
                check(response, { 'is answered': (r) => r.status === grpc.StatusOK }) || console.error(JSON.stringify(response));
            }
        };",
        &server.address().to_string(),
    );
    assert_well(&outcome, 7);
    assert!(server.record().connections() > 1);
}

#[test]
fn a_server_that_does_not_speak_as_the_client_does_is_told_from_one_that_is_late() {
    let (plain, secure) = (Counter::start(Mode::Mutex), Counter::builder(Mode::Mutex).tls().start());
    let [plain, secure] = [plain, secure].map(|server| server.expect("a port"));
    for (server, params, words) in [(&plain, "{}", "TLS"), (&secure, "{ plaintext: true }", "closed")] {
        let script = "import grpc from 'k6/net/grpc'; import { check } from 'k6';
            const client = new grpc.Client();
            export default () => {
                let thrown; try { client.connect(__ENV.TARGET, PARAMS); } catch (error) { thrown = error.message; }
                check(thrown, { 'says why': (text) => text.includes('WORDS') }) || console.error(thrown);
            };";
        let script = script.replace("PARAMS", params).replace("WORDS", words);
        assert_well(&run_script(&script, &server.address().to_string()), 1);
    }
}

#[test]
fn tls_trusts_the_authority_that_the_script_names_and_no_other() {
    let script = "import grpc from 'k6/net/grpc'; import { check } from 'k6';
        const client = new grpc.Client(), tls = { cacerts: 'PEM' };
        export const options = { hosts: { 'shop.example': __ENV.TARGET } };
        const refused = (...how) => { try { client.connect(...how); } catch (error) { return error.message; } };
        export default () => {
            const [stranger, other] = [refused(__ENV.TARGET), refused('shop.example:443', { tls })];
            client.connect(__ENV.TARGET, { reflect: true, tls });
            const response = client.invoke('counter.incrementCounter/increment', { value: 1 });
            check(response, {
                'is answered': (r) => r.status === grpc.StatusOK,
                'is not trusted': () => stranger.includes('TLS'),
                'has another name': () => other.includes('not valid for name'),
            }) || console.error(JSON.stringify(response), stranger, other);
        };";
    for signer in [Signer::Authority, Signer::Itself] {
        let server = Counter::builder(Mode::Mutex).tls_signed_by(signer).start().expect("a port");
        let ca = server.ca_pem().expect("it has one").replace('\n', "\\n");
        let outcome = run_script(&script.replace("PEM", &ca), &server.address().to_string());
        assert_well(&outcome, 3);
    }
}
