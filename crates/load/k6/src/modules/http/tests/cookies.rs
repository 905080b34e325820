//! Cookies: those of the user, those of a request, and jars that scripts make.

use super::user;
use crate::testing::{TestUser, reply};
use plimsoll_k6_run::options::Options;

fn cookies(user: &TestUser) -> Vec<&str> {
    user.requests.iter().map(|request| request.header("Cookie").unwrap_or_default()).collect()
}

#[test]
fn cookies_are_kept_for_an_iteration() {
    let text = "import http from 'k6/http'; export default () => {
        const r = http.get('http://h/'); http.get('http://h/2'); http.get('http://other/');
        return [r.cookies, http.cookieJar().cookiesForURL('http://h/')];
    };";
    let set =
        |_: &_| reply(200, &[("Set-Cookie", "a=1; Path=/; HttpOnly"), ("set-cookie", "b=\"x y\"; Max-Age=9")], b"");
    let mut user = TestUser::of(text).answering(set);
    let cookie = |rest: &str| format!("[{{{rest},\"expires\":-6795364578871}}]");
    let a = cookie(r#""name":"a","value":"1","domain":"","path":"/","http_only":true,"secure":false,"max_age":0"#);
    let b = cookie(r#""name":"b","value":"x y","domain":"","path":"","http_only":false,"secure":false,"max_age":9"#);
    let expected = format!(r#"[{{"a":{a},"b":{b}}},{{"a":["1"],"b":["x y"]}}]"#);
    assert_eq!(user.returned(), expected);
    assert_eq!(user.returned(), expected);
    assert_eq!(cookies(&user), ["", "a=1; b=\"x y\"", "", "", "a=1; b=\"x y\"", ""], "the jar is empty again");
    let options = Options { no_cookies_reset: Some(true), ..Options::defaults() };
    let mut user = TestUser::with(text, options).answering(set);
    user.returned();
    user.returned();
    assert_eq!(cookies(&user)[3], "a=1; b=\"x y\"");
}

#[test]
fn a_request_has_cookies_of_its_own() {
    let mut user = user(
        "const jar = http.cookieJar(); jar.set('http://h/', 'a', 'jar'); jar.set('http://h/', 'b', 'jar');
        const cookies = { a: 'own', b: { value: 'own', replace: true }, c: null };
        return http.get('http://h/', { cookies, headers: { Cookie: 'z=0' } }).request.cookies;",
    );
    let cookie = |name: &str, value: &str| format!(r#"{{"name":"{name}","value":"{value}","replace":false}}"#);
    let (own, jar) = (cookie("a", "own"), cookie("a", "jar"));
    let (z, b) = (cookie("z", "0"), cookie("b", "own"));
    assert_eq!(user.returned(), format!(r#"{{"z":[{z}],"a":[{own},{jar}],"b":[{b}]}}"#));
    assert_eq!(cookies(&user), ["z=0; a=own; b=own; a=jar"]);
}

#[test]
fn jars_are_filled_and_emptied_by_scripts() {
    let mut user = user(
        "const jar = new http.CookieJar(), u = 'http://h/x/y';
        jar.set(u, 'a', 'v w', { path: '/', secure: true });
        jar.set(u, 'b', 2, { domain: 'h', max_age: 5, http_only: true });
        jar.set(u, 'c', 3, { expires: 'Mon, 02 Jan 2006 15:04:05 GMT' });
        const said = [jar.cookiesForURL(u), jar.cookiesForURL('https://h/x/y'), jar.cookiesForURL('http://h/')];
        http.get(u, { jar }); http.get(u);
        jar.delete(u, 'b'); said.push(jar.cookiesForURL(u)); jar.clear('https://h/'); said.push(jar.cookiesForURL('https://h/'));
        try { jar.set(u, 'd', '4', { expires: 'tomorrow' }); } catch (error) { said.push(error.message.includes('tomorrow')); }
        return said;",
    );
    assert_eq!(user.returned(), r#"[{"b":["2"]},{"b":["2"],"a":["v w"]},{},{},{},true]"#);
    assert_eq!(cookies(&user), ["b=2", ""]);
}
