//! What scripts read from responses.

use super::{fault, user};
use crate::operations::{HttpFaultKind, TlsFacts};
use crate::testing::{TestUser, reply};
use plimsoll_k6_run::options::Options;
use plimsoll_web::{Coding, coding};

const PAGE: &str = "<form action='/submit?x=1' method=post><input name=a value=1><input type=checkbox name=c checked>\
    <input type=checkbox name=off><select name=s multiple><option selected>p<option selected>q</select>\
    <input type=submit name=go value=Go></form><form id=find action=search><input name=q value=''></form>\
    <a href='next?n=2'>on</a><a id=none>off</a>";

#[test]
fn a_response_has_everything_that_scripts_look_at() {
    let mut user = user(
        "const r = http.post('http://h/p', 'sent', { headers: { 'x-a': 1 } });
        return [JSON.parse(JSON.stringify(r)), r.timings.duration, r.headers['X-One'], r.timings === r.timings];",
    )
    .answering(|_| {
        let mut answer = reply(201, &[("x-one", "1"), ("X-ONE", "2"), ("Content-Type", "t")], "ü\u{0}".as_bytes());
        answer.tls = Some(TlsFacts { version: "tls1.3", cipher_suite: "TLS_AES_128_GCM_SHA256" });
        answer
    });
    let read: serde_json::Value = serde_json::from_str(&user.returned()).expect("JSON");
    let agent = user.requests[0].header("User-Agent").expect("an agent");
    assert_eq!(
        read,
        serde_json::json!([{
            "remote_ip": "127.0.0.1", "remote_port": 80, "url": "http://h/p", "status": 201,
            "status_text": "201 Reason", "proto": "HTTP/1.1",
            "headers": { "X-One": "1, 2", "Content-Type": "t" }, "cookies": {}, "body": "ü\u{0}",
            "timings": { "duration": 9, "blocked": 1, "looking_up": 0, "connecting": 0.5, "tls_handshaking": 0,
                "sending": 2, "waiting": 3, "receiving": 4 },
            "tls_version": "tls1.3", "tls_cipher_suite": "TLS_AES_128_GCM_SHA256",
            "ocsp": { "produced_at": 0, "this_update": 0, "next_update": 0, "revoked_at": 0, "revocation_reason": "", "status": "unknown" },
            "error": "", "error_code": 0,
            "request": { "method": "POST", "url": "http://h/p", "headers": { "User-Agent": [agent], "X-A": ["1"] },
                "body": "sent", "cookies": {} },
        }, 9, "1, 2", true])
    );
}

#[test]
fn statuses_from_400_have_a_code() {
    let mut user = user("const r = http.get('http://h/'); return [r.status, r.error, r.error_code, r.body];")
        .answering(|_| reply(503, &[], b"sorry"));
    assert_eq!(user.returned(), r#"[503,"",1503,"sorry"]"#);
}

/// Names and numbers as in k6's documentation.
#[test]
fn faults_have_the_codes_of_k6() {
    let kinds = [
        (HttpFaultKind::Other, 1000, "because of this"),
        (HttpFaultKind::Timeout, 1050, "request timeout"),
        (HttpFaultKind::Lookup, 1100, "because of this"),
        (HttpFaultKind::NoAddress, 1101, "lookup: no such host"),
        (HttpFaultKind::AddressNotAllowed, 1110, "because of this"),
        (HttpFaultKind::HostNotAllowed, 1111, "because of this"),
        (HttpFaultKind::Tcp, 1200, "because of this"),
        (HttpFaultKind::BrokenPipe, 1201, "write: broken pipe"),
        (HttpFaultKind::Dial, 1210, "because of this"),
        (HttpFaultKind::DialTimeout, 1211, "dial: i/o timeout"),
        (HttpFaultKind::Refused, 1212, "dial: connection refused"),
        (HttpFaultKind::Reset, 1220, "read: connection reset by peer"),
        (HttpFaultKind::Tls, 1300, "because of this"),
        (HttpFaultKind::NotTls, 1301, "tls: first record does not look like a TLS handshake"),
        (HttpFaultKind::UnknownAuthority, 1310, "x509: unknown authority"),
        (HttpFaultKind::WrongHost, 1311, "x509: certificate doesn't match hostname"),
    ];
    for (kind, code, message) in kinds {
        let mut user = user("const r = http.get('http://h/'); return [r.status, r.error_code, r.error];");
        user = user.answering(move |_| fault(kind));
        assert_eq!(user.returned(), format!("[0,{code},\"{message}\"]"));
    }
}

#[test]
fn bodies_come_as_text_as_bytes_or_not_at_all() {
    let script = "const get = (responseType) => http.get('http://h/', { responseType }).body;
        const bytes = get('binary');
        return [get('text'), bytes instanceof ArrayBuffer, [...new Uint8Array(bytes)], get('none')];";
    let mut stand = user(script).answering(|_| reply(200, &[], b"a\xff"));
    assert_eq!(stand.returned(), r#"["a�",true,[97,255],null]"#);
    let text = "import http from 'k6/http'; export default () =>
        [http.get('http://h/').body, http.get('http://h/', { responseType: 'text' }).body];";
    let discarding = Options { discard_response_bodies: Some(true), ..Options::defaults() };
    let mut user = TestUser::with(text, discarding);
    assert_eq!(user.returned(), r#"[null,"{}"]"#);
}

#[test]
fn codings_are_undone() {
    let gzip = coding::encode(b"hello", Coding::Gzip).expect("it can be encoded");
    let mut user = user(
        "return ['/good', '/bad', '/unknown'].map((path) => {
            const r = http.get('http://h' + path); return [r.status, r.body, r.error_code];
        });",
    )
    .answering(move |request| match request.url.path() {
        "/good" => reply(200, &[("content-encoding", "GZIP")], &gzip),
        "/bad" => reply(200, &[("Content-Encoding", "gzip")], b"plain"),
        _ => reply(200, &[("Content-Encoding", "compress")], b"as it is"),
    });
    assert_eq!(user.returned(), r#"[[200,"hello",0],[0,null,1701],[200,"as it is",0]]"#);
}

#[test]
fn bodies_are_read_as_json() {
    let json = r#"{"a": [{"b": 1}, {"b": 2}], "text": "x"}"#;
    let mut user = user(
        "const r = http.get('http://h/'), bad = http.get('http://h/bad'), none = http.get('http://h/', { responseType: 'none' });
        const said = [r.json().text, r.json('a.1.b'), r.json('a.#.b'), String(r.json('zz')), String(bad.json('a')),
            http.get('http://h/', { responseType: 'binary' }).json('text')];
        for (const make of [() => bad.json(), () => none.json(), () => none.html(), () => r.json('@this')]) {
            try { make(); } catch (error) { said.push(error.message.slice(0, 55)); }
        }
        return said;",
    )
    .answering(move |request| {
        reply(200, &[], if request.url.path() == "/bad" { b"[1,\n <" } else { json.as_bytes() })
    });
    assert_eq!(
        user.returned(),
        r#"["x",2,[1,2],"undefined","undefined","x","cannot parse json due to an error at line 2, character ","the body is null so we can't transform it to JSON - thi","the body is null so we can't transform it to HTML - thi","the path `@this` has a modifier (`@…`), which is not su"]"#
    );
}

#[test]
fn forms_are_submitted_and_links_followed() {
    let mut user = user(
        "const r = http.get('http://h/dir/page');
        r.submitForm({ formSelector: 'form[method]', fields: { a: 'new', extra: 'e' } });
        r.submitForm({ formSelector: '#find', fields: { q: 'x y' }, params: { tags: { name: 'search' } } });
        r.clickLink(); r.clickLink({ selector: 'a', params: { headers: { 'X-A': 1 } } });
        return [() => r.submitForm({ formSelector: '#z' }), () => r.clickLink({ selector: 'b' }),
            () => r.clickLink({ selector: '#none' })].map((make) => {
            try { make(); } catch (error) { return error.message; }
        });",
    )
    .answering(|_| reply(200, &[("Content-Type", "text/html")], PAGE.as_bytes()));
    assert_eq!(
        user.returned(),
        "[\"no form found for selector '#z' in response 'http://h/dir/page'\",\
        \"no element found for selector 'b' in response 'http://h/dir/page'\",\
        \"no valid href attribute value found on element '#none' in response 'http://h/dir/page'\"]"
    );
    assert_eq!(
        user.lines()[1..],
        [
            "POST http://h/submit?x=1",
            "GET http://h/dir/search?q=x+y",
            "GET http://h/dir/next?n=2",
            "GET http://h/dir/next?n=2"
        ]
    );
    assert_eq!(String::from_utf8_lossy(&user.requests[1].body), "a=new&c=on&extra=e&go=Go&s=p&s=q");
    assert_eq!((&*user.requests[2].name, user.requests[4].header("X-A")), ("search", Some("1")));
}

#[test]
fn for_in_sees_the_parts_of_a_response() {
    let mut user = user(
        "const seen = []; for (const part in http.get('http://h/')) seen.push(part); return seen.includes('status');",
    );
    assert_eq!(user.returned(), "true");
}
