//! Requests as they are sent: methods, headers, bodies.

use super::user;
use crate::operations::HttpRequest;
use crate::testing::{TestUser, check_held, reply};
use std::rc::Rc;

fn sent(user: &TestUser) -> Vec<String> {
    let line = |request: &Rc<HttpRequest>| {
        let headers = request.headers().filter(|(name, _)| !["User-Agent", "Host"].contains(name));
        let headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {value}")).collect();
        let body = String::from_utf8_lossy(&request.body);
        format!("{} {} [{}] {body}", request.method, request.url.target(), headers.join(", "))
    };
    user.requests.iter().map(line).collect()
}

#[test]
fn each_function_has_its_method_and_its_body() {
    let mut user = user(
        "const u = 'http://h/';
        http.get(u + 1); http.head(u + 2); http.options(u + 3); http.del(u + 4); http.post(u + 5); http.put(u + 6, 'ü');
        http.patch(u + 7, new Uint8Array([65, 66, 67]).subarray(1)); http.post(u + 8, new Uint8Array([65]).buffer);
        http.request('report', u + 9, null); http.request('GET', u + 10, 'with');",
    );
    user.returned();
    assert_eq!(
        sent(&user),
        [
            "GET /1 [] ",
            "HEAD /2 [] ",
            "OPTIONS /3 [] ",
            "DELETE /4 [] ",
            "POST /5 [Content-Length: 0] ",
            "PUT /6 [Content-Length: 2] ü",
            "PATCH /7 [Content-Length: 2] BC",
            "POST /8 [Content-Length: 1] A",
            "report /9 [] ",
            "GET /10 [Content-Length: 4] with",
        ]
    );
    assert_eq!(user.requests[0].header("Host"), Some("h"));
    assert!(user.requests[0].header("User-Agent").is_some_and(|agent| agent.starts_with("plimsoll/")));
}

#[test]
fn headers_are_named_and_ordered_as_in_k6() {
    let mut user = user(
        "http.post('http://h:81/', 'b', { headers: { 'x-two': 2, Accept: 'a', 'content-type': 't', host: 'other',
            'content-length': 99, 'User-Agent': '' } });",
    );
    user.returned();
    let headers: Vec<String> = user.requests[0].headers().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(headers, ["Host: other", "Content-Length: 1", "Accept: a", "Content-Type: t", "X-Two: 2"]);
}

/// What k6 v1.8.1 sends for the same.
#[test]
fn objects_are_forms() {
    let mut user = user("http.post('http://h/', { b: 'x y', a: [1, 2], n: null, f: 1.5, t: true, e: 1e21 });");
    user.returned();
    let form = "a=1&a=2&b=x+y&e=1e%2B21&f=1.5&n=%3Cnil%3E&t=true";
    let expected = format!("POST / [Content-Length: 48, Content-Type: application/x-www-form-urlencoded] {form}");
    assert_eq!(sent(&user), [expected]);
}

#[test]
fn objects_with_files_are_forms_in_parts() {
    let mut user = user(
        "const file = http.file(new Uint8Array([1, 255]), 'a.bin', 'a/b');
        http.post('http://h/', { note: 'n', file, other: http.file('text') });
        return [file.filename, file.content_type, file.data.byteLength];",
    );
    assert_eq!(user.returned(), r#"["a.bin","a/b",2]"#);
    let request = &user.requests[0];
    let boundary = request.header("Content-Type").and_then(|kind| kind.strip_prefix("multipart/form-data; boundary="));
    let body = String::from_utf8_lossy(&request.body);
    let parts: Vec<&str> = body.split(boundary.expect("a boundary")).collect();
    assert_eq!(parts.len(), 5, "{body}");
    assert!(parts[1].contains("form-data; name=\"note\"\r\n\r\nn\r\n"), "{body}");
    assert!(parts[2].contains("name=\"file\"; filename=\"a.bin\"\r\nContent-Type: a/b\r\n\r\n\u{1}"), "{body}");
    assert!(parts[3].contains("Content-Type: application/octet-stream\r\n\r\ntext"), "{body}");
    assert_eq!(request.header("Content-Length"), Some(request.body.len().to_string().as_str()));
}

#[test]
fn bodies_are_compressed_when_that_is_asked() {
    let mut user = user(
        "const body = 'again and again and again and again';
        http.post('http://h/', body, { compression: 'gzip' });
        http.post('http://h/', body, { compression: 'deflate, gzip', headers: { 'content-encoding': 'own' } });
        http.get('http://h/', { compression: 'gzip' });
        return http.post('http://h/', body, { compression: 'br' }).error;",
    );
    assert!(user.returned().contains("`br` is not supported"));
    let coding = |at: usize| user.requests[at].header("Content-Encoding");
    assert_eq!((coding(0), coding(1), coding(2), user.requests.len()), (Some("gzip"), Some("own"), None, 3));
    assert!(user.requests[0].body.starts_with(&[0x1f, 0x8b]) && user.requests[1].body.starts_with(&[0x1f, 0x8b]));
}

/// Names and codes are k6's; nothing is sent.
#[test]
fn an_invalid_request_is_a_response_with_an_error() {
    let mut user = user(
        "const u = 'http://h/';
        const all = [
            () => http.get('https:// h'), () => http.get('nope'), () => http.get('ftp://h/'), () => http.get(5),
            () => http.get(u, { timeout: 'x' }), () => http.get(u, { responseType: 'x' }),
            () => http.get(u, { responseCallback: 1 }), () => http.post(u, 5), () => http.post(u, [1]),
            () => http.request('A B', u), () => http.get(u, { headers: { 'a b': 1 } }),
            () => http.get(u, { headers: { a: '1\\n2' } }), () => http.get(u, { headers: { host: 'a\\nb' } }),
            () => http.get(u, { tags: { a: {} } }), () => http.get(u, { auth: 'ntlm' }),
        ];
        return all.map((make) => { const r = make(); return [r.status, r.error_code, r.error.length > 9, r.body]; });",
    );
    let codes = [1020, 1000, 1000, 1020, 0, 0, 0, 0, 0, 0, 1000, 1000, 1000, 0, 0];
    let expected: Vec<String> = codes.iter().map(|code| format!("[0,{code},true,null]")).collect();
    assert_eq!(user.returned(), format!("[{}]", expected.join(",")));
    assert!(user.requests.is_empty());
    assert_eq!(user.console().len(), codes.len());
}

#[test]
fn while_the_script_is_loaded_nothing_is_sent() {
    let mut user = TestUser::of(
        "import http from 'k6/http';
        const said = [() => http.get('http://h'), () => http.batch([]), () => http.cookieJar()].map((make) => {
            try { make(); } catch (error) { return error.message.includes('while the script is loaded'); }
        });
        export default () => said;",
    );
    assert_eq!(user.returned(), "[true,true,true]");
}

#[test]
fn names_come_from_tags_or_templates() {
    let mut user = user(
        "http.get('http://u:secret@h/1?a'); http.get(http.url`http://h/${5}/x`);
        http.get('http://h/2', { tags: { name: 'two' } });
        const url = http.url`http://h/${5}`; return [url.name, url.url, `${url}`];",
    );
    assert_eq!(user.returned(), r#"["http://h/${}","http://h/5","http://h/5"]"#);
    let names: Vec<&str> = user.requests.iter().map(|request| &*request.name).collect();
    assert_eq!(names, ["http://****:****@h/1?a", "http://h/${}/x", "two"]);
}

#[test]
fn bodies_count_for_as_long_as_the_script_holds_them() {
    let user = |body: &str| {
        let text = format!("import http from 'k6/http'; const kept = []; export default async () => {{ {body} }}");
        TestUser::within(&text, 1 << 20).answering(|_| reply(200, &[], &[b'x'; 100_000]))
    };
    let harmless = [
        "for (let n = 0; n < 100; n++) http.get('http://h/')",
        "for (let n = 0; n < 100; n++) { const a = { r: http.get('http://h/') }; a.itself = a; }",
        "for (let n = 0; n < 100; n++) kept.push(http.get('http://h/', { responseType: 'none' }).status)",
        "for (let n = 0; n < 41; n++) kept.push(http.get('http://h/'))",
        "try { for (;;) kept.push(http.get('http://h/')) } catch (error) { kept.length = 0; http.get('http://h/'); }",
    ];
    let greedy = [
        "for (;;) kept.push(http.get('http://h/'))",
        "for (;;) kept.push(await http.asyncRequest('GET', 'http://h/'))",
        "for (;;) kept.push(...http.batch(['http://h/', 'http://h/']))",
        "for (;;) kept.push(http.asyncRequest('POST', 'http://h/', 'x'.repeat(100000)))",
    ];
    check_held(user, &harmless, &greedy);
}
