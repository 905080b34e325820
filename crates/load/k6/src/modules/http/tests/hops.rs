//! What more than one exchange: redirects, logins, batches, promises.

use super::{fault, user};
use crate::operations::HttpFaultKind;
use crate::testing::{TestUser, reply};
use plimsoll_k6_run::options::Options;
use plimsoll_model::units::Nanos;

/// Sends `/3xx` on to `/end` with that status, and `http://h/away` to another host.
fn redirecting(user: TestUser) -> TestUser {
    user.answering(|request| match request.url.path() {
        "/end" => reply(200, &[], b"end"),
        "/away" => reply(302, &[("Location", "https://elsewhere/end"), ("Set-Cookie", "hop=1")], b""),
        "/again" => reply(302, &[("Location", "again")], b""),
        "/nowhere" => reply(302, &[("Location", "http://")], b""),
        "/lost" => reply(301, &[], b"no location"),
        "/app" => reply(302, &[("Location", "app://callback?code=1")], b""),
        path => reply(path[1..].parse().expect("a status"), &[("Location", "/end"), ("Set-Cookie", "hop=1")], b""),
    })
}

#[test]
fn redirects_are_followed() {
    let mut user = redirecting(user(
        "const params = { headers: { 'Content-Type': 't', 'X-A': 1, Authorization: 'secret' } };
        return [301, 302, 303, 307, 308].map((status) => {
            const r = http.post('http://h/' + status, 'body', params);
            return [r.status, r.url, r.body, r.request.method, r.request.url];
        });",
    ));
    let rows = [301, 302, 303, 307, 308].map(|it| format!(r#"[200,"http://h/end","end","POST","http://h/{it}"]"#));
    assert_eq!(user.returned(), format!("[{}]", rows.join(",")));
    for hop in user.requests.chunks(2) {
        let is_kept = hop[0].url.path() >= "/307";
        let expected = if is_kept { ("POST", &b"body"[..], Some("t")) } else { ("GET", &b""[..], None) };
        assert_eq!((&*hop[1].method, &**hop[1].body, hop[1].header("Content-Type")), expected);
        assert_eq!(hop[1].header("Content-Length"), is_kept.then_some("4"));
        assert_eq!(hop[1].header("Referer"), Some(hop[0].url.to_string().as_str()));
        let (cookie, secret) = (hop[1].header("Cookie"), hop[1].header("Authorization"));
        assert_eq!((cookie, secret, hop[1].header("X-A")), (Some("hop=1"), Some("secret"), Some("1")));
        assert!(hop[1].timeout < hop[0].timeout, "there is less time left");
        assert_eq!((hop[0].follows, hop[1].follows), (false, true), "the script made one request");
    }
}

#[test]
fn another_host_is_told_no_secrets() {
    let mut user = redirecting(user(
        "http.get('http://me:pw@h/away', { headers: { host: 'h2' } });
        http.get('https://h/away', { headers: { Authorization: 'secret' }, cookies: { own: 1 } });",
    ));
    user.returned();
    let [first, second, _, fourth] = &user.requests[..] else { panic!("{:?}", user.lines()) };
    assert_eq!((first.header("Authorization"), first.header("Host")), (Some("Basic bWU6cHc="), Some("h2")));
    assert_eq!((second.header("Authorization"), second.header("Host")), (None, Some("elsewhere")));
    assert_eq!((second.header("Referer"), second.header("Cookie")), (Some("http://h/away"), None));
    assert_eq!((fourth.header("Authorization"), fourth.header("Cookie")), (None, Some("own=1")));
}

#[test]
fn redirects_have_a_limit() {
    let text = "const get = (path, params) => { const r = http.get('http://h' + path, params); return [r.status, r.url, r.error_code]; };
        return [get('/again', { redirects: 2 }), get('/301', { redirects: 0 }), get('/lost'), get('/nowhere'), get('/again')];";
    let text = format!("import http from 'k6/http'; export default function () {{ {text} }}");
    let mut user = redirecting(TestUser::with(&text, Options { max_redirects: Some(3), ..Options::defaults() }));
    assert_eq!(
        user.returned(),
        r#"[[302,"http://h/again",0],[301,"http://h/301",0],[301,"http://h/lost",0],[0,"http://h/nowhere",1000],[302,"http://h/again",0]]"#
    );
    let again = user.lines().iter().filter(|line| line.ends_with("/again")).count();
    assert_eq!(again, 3 + 4);
}

#[test]
fn a_redirect_that_is_not_followed_may_lead_anywhere() {
    let mut user = redirecting(user(
        "const r = http.get('http://h/app', { redirects: 0 });
        return [r.status, r.headers.Location, r.error_code, http.get('http://h/app').status];",
    ));
    assert_eq!(user.returned(), r#"[302,"app://callback?code=1",0,0]"#);
}

#[test]
fn logins_by_digest_answer_the_challenge() {
    let challenge = ("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"");
    let mut user = user(
        "const r = http.post('http://us%20er:pw@h/a?b', 'body', { auth: 'digest' });
        return [r.status, r.url, http.get('http://h/open', { auth: 'digest' }).status];",
    )
    .answering(move |request| match request.header("Authorization") {
        None if request.url.path() != "/open" => reply(401, &[challenge], b"no"),
        _ => reply(200, &[], b"yes"),
    });
    assert_eq!(user.returned(), r#"[200,"http://h/a?b",200]"#);
    let login = user.requests[1].header("Authorization").expect("a login");
    assert!(
        login.starts_with("Digest username=\"us er\", realm=\"r\", nonce=\"n\", uri=\"/a?b\", response="),
        "{login}"
    );
    assert_eq!(&**user.requests[1].body, b"body");
    let follows: Vec<bool> = user.requests.iter().map(|request| request.follows).collect();
    assert_eq!(follows, [false, true, false]);
}

#[test]
fn a_batch_is_answered_in_its_own_order() {
    let mut user = user(
        "const u = 'http://h/';
        const all = http.batch([u + 1, ['POST', u + 2, 'b', { tags: { x: 'y' } }],
            { method: 'put', url: u + 3, body: 'c' }, http.url`${u}${4}`, { url: u + 5, body: 'not with GET' }]);
        const named = http.batch({ one: u + 6, two: { url: u + 7 } });
        return [all.map((r) => r.url), Object.keys(named), named.two.url];",
    );
    let urls = (1..=5).map(|at| format!("\"http://h/{at}\"")).collect::<Vec<_>>().join(",");
    assert_eq!(user.returned(), format!(r#"[[{urls}],["one","two"],"http://h/7"]"#));
    assert_eq!(user.lines()[..3], ["GET http://h/1", "POST http://h/2", "PUT http://h/3"]);
    assert_eq!((&**user.requests[2].body, &**user.requests[4].body), (&b"c"[..], &b""[..]));
    assert_eq!(user.most_open, 5);
}

#[test]
fn a_batch_keeps_to_its_limits() {
    let text = "import http from 'k6/http'; export default () => http.batch([1, 2, 3, 4, 5, 6, 7].map((n) =>
        `http://${n < 6 ? 'a' : 'b'}/${n}`)).map((r) => r.status);";
    for (batch, per_host, most) in [(20, 6, 7), (3, 6, 3), (20, 2, 4), (20, 0, 7), (0, 1, 2)] {
        let options = Options { batch: Some(batch), batch_per_host: Some(per_host), ..Options::defaults() };
        let mut user = TestUser::with(text, options);
        assert_eq!(user.returned(), "[200,200,200,200,200,200,200]");
        assert_eq!(user.most_open, most, "{batch} {per_host}");
    }
}

#[test]
fn nothing_of_a_batch_is_sent_if_one_cannot_be() {
    let mut user = user(
        "const said = http.batch(['http://h', {}, 'http://h']).map((r) => [r.status, r.error !== '']);
        try { http.batch(5); } catch (error) { said.push(error.message.includes('argument type')); }
        return said.concat(http.batch([['GET']])[0].error_code);",
    );
    assert_eq!(user.returned(), "[[0,false],[0,true],true,0]");
    assert!(user.requests.is_empty());
}

#[test]
fn of_a_batch_only_those_fail_that_lead_nowhere() {
    let mut user = user(
        "const said = http.batch(['http://h', 'nope/x', 'http://h:99999/', 'http://h']);
        return said.map((r) => [r.status, r.error_code, r.url]);",
    );
    let nowhere = r#"[0,1000,"nope/x"],[0,1210,"http://h:99999/"]"#;
    assert_eq!(user.returned(), format!(r#"[[200,0,"http://h"],{nowhere},[200,0,"http://h"]]"#));
    assert_eq!(user.requests.len(), 2);
}

#[test]
fn redirects_of_a_batch_and_of_promises_are_followed() {
    let text = "import http from 'k6/http';
        export default async () => {
            const later = http.asyncRequest('GET', 'http://h/302');
            const now = http.batch(['http://h/301', 'http://h/307']).map((r) => r.url);
            const refused = await http.asyncRequest('GET', 'nope');
            let thrown; try { await http.asyncRequest('GET', 'nope://', null); } catch (error) { thrown = error.message; }
            return [now, (await later).url, (await later).request.url, refused.error_code, thrown];
        };";
    let mut user = redirecting(TestUser::of(text));
    assert_eq!(user.returned(), r#"[["http://h/end","http://h/end"],"http://h/end","http://h/302",1000,null]"#);
    assert_eq!(user.requests.len(), 6);
}

#[test]
fn a_request_without_a_reply_is_a_response_or_an_exception() {
    let text = "const said = [];
        const r = http.get('http://h/'); said.push([r.status, r.error, r.error_code, r.body, r.headers, r.cookies, r.url]);
        try { http.get('http://h/', { throw: true }); } catch (error) { said.push(error.message); }
        return said;";
    let mut user = user(text).answering(|_| fault(HttpFaultKind::Refused));
    let expected =
        r#"[[0,"dial: connection refused",1212,null,{},{},"http://h/"],"GET \"http://h/\": because of this"]"#;
    assert_eq!(user.returned(), expected);
    assert_eq!(user.console(), ["Request Failed: GET \"http://h/\": because of this"]);
    let text =
        "import http from 'k6/http'; export default async () => { await http.asyncRequest('GET', 'http://h/'); }";
    let throwing = Options { throw: Some(true), ..Options::defaults() };
    let mut user = TestUser::with(text, throwing).answering(|_| fault(HttpFaultKind::Timeout));
    assert!(user.thrown().contains("because of this"));
}

#[test]
fn requests_have_a_minute_unless_they_say_otherwise() {
    let mut user = user(
        "for (const timeout of [undefined, 1500, '2s', '1m30s', '250']) {
            http.get('http://h/', timeout === undefined ? {} : { timeout });
        }",
    );
    user.returned();
    let timeouts: Vec<u64> = user.requests.iter().map(|request| request.timeout.0 / 1_000_000).collect();
    assert_eq!(timeouts, [60_000, 1500, 2000, 90_000, 250]);
    assert!(user.requests[0].timeout > Nanos(0));
}
