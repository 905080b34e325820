//! `k6/net/grpc`.

use crate::common::{Answers, Script};
use plimsoll_javascript::OpId;
use plimsoll_k6::operations::{Event, GrpcConnect, GrpcEnd, GrpcEvent, HttpFault, HttpFaultKind, Metadata, Op};
use plimsoll_model::units::Nanos;

const PROTO: &str = "syntax = \"proto3\"; package t; service Talk { rpc Say(Word) returns (Word);
    rpc Chat(stream Word) returns (stream Word); } message Word { string text = 1; int64 times = 2; }";

/// The beginning of every script: a client that knows `Talk`.
const CLIENT: &str = "import grpc, { Client, Stream, StatusOK } from 'k6/net/grpc';
    const client = new Client(); client.load(['defs'], 't.proto');";

fn script(text: &str) -> Script {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(home.path().join("defs")).expect("a folder");
    std::fs::write(home.path().join("defs/t.proto"), PROTO).expect("a file");
    Script::within(home.path(), &format!("{CLIENT}{text}"))
}

fn told(id: OpId, event: GrpcEvent) -> (OpId, Event) {
    (id, Event::Grpc(Box::new(event)))
}

fn ended(status: u16, message: &str) -> GrpcEvent {
    let trailers = vec![("x-bin".to_owned(), "aGk".to_owned())];
    GrpcEvent::Ended(GrpcEnd { status, message: message.to_owned(), trailers, took: Nanos(7_000_000), unsent: false })
}

/// A `Word` on the wire.
fn word(text: &str) -> Vec<u8> {
    [&[0x0a, text.len() as u8], text.as_bytes()].concat()
}

fn connected(id: OpId) -> (OpId, Event) {
    told(id, GrpcEvent::Connected("127.0.0.1:50051".parse().expect("an address")))
}

fn metadata(fields: &[(&str, &str)]) -> Metadata {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A server that says what it was told; it fails where that is `fail`, and never answers `wait`.
fn talk(id: OpId, op: Op) -> Answers {
    match op {
        Op::GrpcConnect(..) => vec![connected(id)],
        Op::GrpcCall(call) => match call.message {
            Some(message) if message == word("wait") => vec![],
            Some(message) if message == word("fail") => vec![told(id, ended(5, "no such word"))],
            Some(message) => {
                let headers = GrpcEvent::Headers(metadata(&[("a", "1"), ("a", "2")]));
                vec![told(id, headers), told(id, GrpcEvent::Message(message)), told(id, ended(0, ""))]
            }
            None => vec![told(id, GrpcEvent::Headers(Vec::new()))],
        },
        Op::GrpcSend(call, message) if message == word("fail") => vec![told(call, ended(13, "broken"))],
        Op::GrpcSend(call, message) => vec![told(call, GrpcEvent::Message(message))],
        Op::GrpcEnd(call) => vec![told(call, ended(0, ""))],
        Op::GrpcClose(_) => vec![],
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_answered_with_message_metadata_and_status() {
    let mut script = script(
        "export default () => {
            client.connect('here:50051', { plaintext: true, timeout: '3s' });
            const params = { metadata: { 'X-Own': 'yes', 'my-bin': new Uint8Array([1, 2]) }, tags: { team: 'a' }, timeout: 2000 };
            const response = client.invoke('t.Talk/Say', { text: 'hello' }, params);
            client.close();
            return [response.status === StatusOK, response.message, response.headers, response.trailers, response.error];
        };",
    );
    let mut asked = Vec::new();
    let returned = script.run(|id, op| {
        match &op {
            Op::GrpcConnect(connect, _) => asked.push(connect.url.to_string()),
            Op::GrpcCall(call) => {
                let own = metadata(&[("x-own", "yes"), ("my-bin", "AQI")]);
                assert_eq!(
                    (&call.metadata, call.timeout, &*call.name),
                    (&own, Some(Nanos(2_000_000_000)), "/t.Talk/Say")
                );
                asked.push(call.path.clone());
            }
            Op::GrpcClose(_) => asked.push("close".to_owned()),
            _ => {}
        }
        talk(id, op)
    });
    let expected = r#"[true,{"text":"hello","times":"0"},{"a":["1","2"]},{"x-bin":["hi"]},null]"#;
    assert_eq!(returned, Ok(expected.to_owned()));
    assert_eq!(asked, ["http://here:50051/", "/t.Talk/Say", "close"]);
    assert_eq!(script.samples("grpc_req_duration"), 1);
}

#[test]
fn a_call_that_fails_says_why_and_is_no_exception() {
    let mut script = script(
        "export default () => {
            client.connect('here:50051');
            const failed = client.invoke('/t.Talk/Say', { text: 'fail' });
            const late = client.invoke('/t.Talk/Say', { text: 'wait' }, { timeout: '5s' });
            return [failed.status, failed.error, failed.message, late.status, late.error.message];
        };",
    );
    let expected =
        r#"[5,{"code":5,"message":"no such word","details":[]},{"text":"","times":"0"},4,"context deadline exceeded"]"#;
    assert_eq!(script.run(talk), Ok(expected.to_owned()));
    assert_eq!(script.samples("grpc_req_duration"), 2);
}

#[test]
fn a_connection_lives_on_in_later_iterations_and_is_made_again_when_it_has_ended() {
    let mut script = script(
        "let n = 0;
        export default () => {
            if (n++ === 0) client.connect('here:50051', { plaintext: true });
            return client.invoke('t.Talk/Say', { text: 'x' }).status;
        };",
    );
    let mut connections = Vec::new();
    let mut serve = |id, op| match &op {
        Op::GrpcConnect(..) => {
            connections.push(id);
            vec![connected(id)]
        }
        // The first connection is gone after a call.
        Op::GrpcCall(call) if call.connection == connections[0] && connections.len() > 1 => panic!("it is gone"),
        Op::GrpcCall(call) if call.connection == connections[0] && id > connections[0] + 3 => {
            vec![told(id, GrpcEvent::Ended(GrpcEnd::unsent("gone")))]
        }
        _ => talk(id, op),
    };
    assert_eq!(script.run(&mut serve), Ok("0".to_owned()));
    assert_eq!(script.run(&mut serve), Ok("0".to_owned()));
    assert_eq!(connections.len(), 2);
}

#[test]
fn an_async_call_finds_its_connection_closed_and_the_next_call_opens_one() {
    let mut script = script(
        "const stream = () => new Promise((resolve) => {
            const stream = new Stream(client, 't.Talk/Chat');
            stream.on('error', (error) => resolve(error.code));
            stream.on('data', (word) => { resolve(word.text); stream.end(); });
            stream.write({ text: 'on' });
        });
        export default async () => {
            client.connect('here:50051', { plaintext: true });
            const invoked = [1, 2].map(() => client.asyncInvoke('t.Talk/Say', { text: 'x' }));
            const all = [];
            for (const each of invoked) all.push((await each).status);
            all.push((await client.asyncInvoke('t.Talk/Say', { text: 'x' })).status);
            client.connect('here:50051', { plaintext: true });
            all.push(await stream(), await stream());
            return all;
        };",
    );
    let mut connections = 0;
    // Every other connection is gone at once.
    let returned = script.run(|id, op| match &op {
        Op::GrpcConnect(..) => {
            connections += 1;
            vec![connected(id)]
        }
        Op::GrpcCall(_) if connections % 2 == 1 => vec![told(id, GrpcEvent::Ended(GrpcEnd::unsent("gone")))],
        Op::GrpcSend(..) if connections % 2 == 1 => vec![],
        _ => talk(id, op),
    });
    assert_eq!((returned, connections), (Ok(r#"[14,14,0,14,"on"]"#.to_owned()), 4));
}

#[test]
fn calls_are_made_at_the_same_time() {
    let mut script = script(
        "export default async () => {
            client.connect('here:50051', { plaintext: true });
            const both = await Promise.all(['a', 'b'].map((text) => client.asyncInvoke('t.Talk/Say', { text })));
            const late = await client.asyncInvoke('t.Talk/Say', { text: 'wait' }, { timeout: 10 });
            let thrown; try { await client.asyncInvoke('t.Talk/Nope', {}); } catch (error) { thrown = error.message; }
            return [both.map((response) => response.message.text), late.status, thrown];
        };",
    );
    let expected = r#"[["a","b"],4,"method \"/t.Talk/Nope\" not found in file descriptors"]"#;
    assert_eq!(script.run(talk), Ok(expected.to_owned()));
    assert_eq!(script.samples("grpc_req_duration"), 3);
}

#[test]
fn a_stream_tells_what_comes_until_it_ends() {
    let mut script = script(
        "const seen = [];
        export default () => new Promise((resolve) => {
            client.connect('here:50051', { plaintext: true });
            const stream = new Stream(client, 't.Talk/Chat', { metadata: { a: 'b' } });
            stream.on('data', (word, meta) => { seen.push(word.text, typeof meta.ts); if (word.text === 'two') stream.end(); });
            stream.on('end', () => { seen.push('end'); stream.write({ text: 'too late' }); resolve(seen); });
            stream.on('error', (error) => seen.push(error));
            stream.write({ text: 'one' });
            stream.write({ text: 'two' });
        });",
    );
    assert_eq!(script.run(talk), Ok(r#"["one","number","two","number","end"]"#.to_owned()));
    let samples = ["grpc_streams", "grpc_streams_msgs_sent", "grpc_streams_msgs_received", "grpc_req_duration"];
    assert_eq!(samples.map(|metric| script.samples(metric)), [1, 2, 2, 1]);
}

#[test]
fn a_stream_that_fails_says_so_before_it_ends() {
    let mut script = script(
        "const seen = [];
        const open = (params, text) => new Promise((resolve) => {
            const stream = new grpc.Stream(client, 't.Talk/Chat', params);
            stream.on('error', (error) => seen.push(error.code, error.message));
            stream.on('end', () => { seen.push('end'); resolve(); });
            if (text) stream.write({ text });
        });
        export default async () => {
            client.connect('here:50051', { plaintext: true });
            await open({}, 'fail');
            await open({ timeout: '1s' });
            return seen;
        };",
    );
    let expected = r#"[13,"broken","end",4,"context deadline exceeded","end"]"#;
    assert_eq!(script.run(talk), Ok(expected.to_owned()));
}

#[test]
fn a_server_is_asked_for_its_types() {
    let mut compiler = protox::Compiler::with_file_resolver(OneFile);
    compiler.open_files(["t.proto"]).expect("it compiles");
    let file = prost::Message::encode_to_vec(&compiler.file_descriptor_set().file[0]);
    let mut script = script(
        "export default () => {
            const other = new grpc.Client();
            other.connect('here:50051', { plaintext: true, reflect: true, reflectMetadata: { a: 'b' } });
            return other.invoke('t.Talk/Say', { text: 'known' }).message.text;
        };",
    );
    let mut versions = Vec::new();
    let returned = script.run(|id, op| match op {
        Op::GrpcCall(call) if call.path.contains("reflection") => {
            versions.push(call.path.clone());
            assert_eq!(call.metadata, metadata(&[("a", "b")]));
            if versions.len() == 1 { vec![told(id, ended(12, "older"))] } else { vec![] }
        }
        // The service's name in answer to the list, the file to what is asked for then.
        Op::GrpcSend(call, question) if question.starts_with(&[0x3a]) => {
            let name = [&[0x0a, 6][..], b"t.Talk"].concat();
            let list = [&[0x0a, name.len() as u8][..], &name].concat();
            vec![told(call, GrpcEvent::Message([&[0x32, list.len() as u8][..], &list].concat()))]
        }
        Op::GrpcSend(call, question) if question.starts_with(&[0x22]) => {
            let mut answer = Vec::new();
            prost::encoding::bytes::encode(1, &file, &mut answer);
            let mut message = Vec::new();
            prost::encoding::bytes::encode(4, &answer, &mut message);
            vec![told(call, GrpcEvent::Message(message))]
        }
        Op::GrpcSend(..) | Op::GrpcEnd(_) => vec![],
        op => talk(id, op),
    });
    assert_eq!(returned, Ok("\"known\"".to_owned()));
    assert!(versions[0].contains("v1.") && versions[1].contains("v1alpha."), "{versions:?}");
}

struct OneFile;

impl protox::file::FileResolver for OneFile {
    fn open_file(&self, name: &str) -> Result<protox::file::File, protox::Error> {
        protox::file::File::from_source(name, PROTO)
    }
}

#[test]
fn the_health_of_a_server_is_asked() {
    let mut script = script(
        "export default () => {
            client.connect('here:50051', { plaintext: true });
            const well = client.healthCheck('t.Talk').status === grpc.HealthCheckServing;
            let thrown; try { client.healthCheck('nope'); } catch (error) { thrown = error.message; }
            return [well, thrown];
        };",
    );
    let returned = script.run(|id, op| match op {
        Op::GrpcCall(call) if call.message == Some(word("t.Talk")) => {
            assert_eq!(call.path, "/grpc.health.v1.Health/Check");
            vec![told(id, GrpcEvent::Message(vec![0x08, 1])), told(id, ended(0, ""))]
        }
        Op::GrpcCall(_) => vec![told(id, ended(5, "unknown service"))],
        op => talk(id, op),
    });
    assert_eq!(returned, Ok(r#"[true,"rpc error: code = 5, desc = unknown service"]"#.to_owned()));
}

#[test]
fn a_server_that_is_not_there_is_an_exception() {
    let text = "export default () => client.connect('here:50051', { timeout: '2s' });";
    let refused = script(text).run(|id, _| {
        let fault = HttpFault { kind: HttpFaultKind::Refused, detail: "nobody is there".to_owned() };
        vec![told(id, GrpcEvent::NotConnected(fault))]
    });
    assert_eq!(refused, Err("Error: nobody is there".to_owned()));
    let mut late = script(text);
    assert_eq!(late.run(|_, _| vec![]), Err("Error: context deadline exceeded: no connection within 2 s".to_owned()));
    assert!(!late.cancelled.is_empty());
}

#[test]
fn tls_and_limits_are_handed_on() {
    let mut script = script(
        "export default () => client.connect('here', { authority: 'other', maxReceiveSize: 100,
            tls: { cacerts: ['CA'], cert: 'CERT', key: 'KEY' } });",
    );
    let mut asked: Option<GrpcConnect> = None;
    let returned = script.run(|id, op| {
        let Op::GrpcConnect(connect, _) = op else { panic!("{op:?}") };
        asked = Some(*connect);
        vec![connected(id)]
    });
    assert_eq!(returned, Ok("true".to_owned()));
    let connect = asked.expect("it connects");
    assert_eq!((connect.url.to_string().as_str(), connect.authority.as_deref()), ("https://here/", Some("other")));
    assert_eq!((connect.largest_message, connect.authorities), (100, vec!["CA".to_owned()]));
    assert_eq!(connect.identity, Some(("CERT".to_owned(), "KEY".to_owned())));
}

#[test]
fn wrong_uses_are_refused() {
    let cases = [
        ("client.load(['defs'], 't.proto')", "load must be called in the init context"),
        ("new Client().invoke('t.Talk/Say', {})", "you must call connect first"),
        ("client.connect('here:1:2')", "as `host:port`"),
        ("client.connect('here:1', { wrong: 1 })", "unknown connect param: \"wrong\""),
        ("client.connect('here:1', { plaintext: 1 })", "needs to be boolean"),
        ("client.connect('here:1', { tls: { cert: 1 } })", "PEM formatted string"),
        ("client.connect('here:1'); client.invoke('', {})", "cannot be empty"),
        ("client.connect('here:1'); client.invoke('t.Talk/Nope', {})", "\"/t.Talk/Nope\" not found"),
        ("client.connect('here:1'); client.invoke('t.Talk/Say')", "request cannot be nil"),
        ("client.connect('here:1'); client.invoke('t.Talk/Say', { nope: 1 })", "nope"),
        ("client.connect('here:1'); client.invoke('t.Talk/Chat', {})", "streaming call"),
        ("client.connect('here:1'); client.invoke('t.Talk/Say', {}, { wrong: 1 })", "unknown param: \"wrong\""),
        ("client.connect('here:1'); client.invoke('t.Talk/Say', {}, { metadata: { a: 1 } })", "must be a string"),
        ("client.connect('here:1'); client.invoke('t.Talk/Say', {}, { metadata: { 'a-bin': 'x' } })", "must be binary"),
        (
            "client.connect('here:1', { maxSendSize: 3 }); client.invoke('t.Talk/Say', { text: 'long' })",
            "larger than max (6 vs. 3)",
        ),
        ("new Stream({}, 't.Talk/Chat')", "not a gRPC client"),
        ("new Stream(client, 't.Talk/Chat')", "you must call connect first"),
    ];
    for (call, words) in cases {
        let thrown = script(&format!("export default () => {{ {call}; }};")).run(talk).expect_err(call);
        assert!(thrown.contains(words), "{call}: {thrown}");
    }
}

#[test]
fn numbers_that_json_lacks_are_sent_as_protobuf_has_them() {
    let home = tempfile::tempdir().expect("a folder");
    let proto = "syntax = \"proto3\"; package n; service N { rpc Echo(Real) returns (Real); }
        message Real { double a = 1; repeated double b = 2; }";
    std::fs::write(home.path().join("n.proto"), proto).expect("a file");
    let text = "import grpc from 'k6/net/grpc';
        const client = new grpc.Client(); const methods = client.load([], 'n.proto');
        export default () => {
            client.connect('here:1', { plaintext: true });
            return [client.invoke('n.N/Echo', { a: NaN, b: [Infinity, -Infinity, 0.5] }).message, methods];
        };";
    let expected = r#"[{"a":"NaN","b":["Infinity","-Infinity",0.5]},[{"package":"n","service":"N","full_method":"/n.N/Echo","name":"Echo","is_client_stream":false,"is_server_stream":false}]]"#;
    assert_eq!(Script::within(home.path(), text).run(talk), Ok(expected.to_owned()));
}
