use super::*;
use crate::url::{Place, Url};
use proptest::prelude::*;

const NOW: UnixSeconds = UnixSeconds(1_700_000_000);

fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|fault| panic!("{fault}"))
}

/// A jar after these answers: the URL that was asked, and what it set.
fn jar(answers: &[(&str, &str)]) -> Jar {
    let mut jar = Jar::default();
    answers.iter().for_each(|(from, header)| jar.receive(header, url(from).place(), NOW));
    jar
}

fn sent(jar: &Jar, to: &str, now: UnixSeconds) -> String {
    let mut out = Vec::new();
    let any = jar.write(url(to).place(), now, &mut out);
    assert_eq!(any, !out.is_empty());
    String::from_utf8(out).expect("cookies are text")
}

#[test]
fn set_cookie_is_read_as_the_rfc_has_it() {
    let parse = |header| SetCookie::parse(header).unwrap_or_else(|| panic!("{header:?} is a cookie"));
    // Section 3.1 and 4.1.
    let cookie =
        parse("lang=en-US; Path=/; Domain=example.com; Expires=Wed, 09 Jun 2021 10:18:14 GMT; Secure; HttpOnly");
    assert_eq!((cookie.name.as_str(), cookie.value.as_str()), ("lang", "en-US"));
    assert_eq!((cookie.domain.as_deref(), cookie.path.as_deref()), (Some("example.com"), Some("/")));
    assert_eq!((cookie.expires, cookie.secure, cookie.http_only), (Some(UnixSeconds(1_623_233_894)), true, true));
    // Section 5.2: whitespace, values with `=`, quotes, attributes of any case, the last one counts.
    assert_eq!(parse(" a = b=c ").value, "b=c");
    assert_eq!(parse("a=\"x y\"").value, "\"x y\"");
    assert_eq!(parse("a=").value, "");
    assert_eq!(parse("a=b; DOMAIN=.Example.COM; domain=").domain.as_deref(), Some("example.com"));
    assert_eq!(parse("a=b; path=/x; path=y").path, None);
    assert_eq!(parse("a=b; max-age=10; max-age=ten").max_age, Some(10));
    assert_eq!(parse("a=b; max-age=-1").max_age, Some(-1));
    assert_eq!(parse("a=b; max-age=99999999999999999999").max_age, Some(i64::MAX));
    assert_eq!(parse("a=b; unknown=1;;  ;").path, None);
    for ignored in ["", "a", "=b", " =b", "a\u{1}=b", "a=b\nc; path=/"] {
        assert_eq!(SetCookie::parse(ignored), None, "{ignored:?}");
    }
}

#[test]
fn cookies_go_where_the_rfc_sends_them() {
    let domain = "x=1; Domain=example.com";
    let cases = [
        // Section 5.1.3: the host alone without a domain; with one, also what lies below it.
        ("http://example.com/", "x=1", "http://example.com/", true),
        ("http://example.com/", "x=1", "http://www.example.com/", false),
        ("http://example.com/", domain, "http://www.example.com/", true),
        ("http://www.example.com/", domain, "http://example.com/", true),
        ("http://www.example.com/", domain, "http://other.example.com:8080/", true),
        ("http://www.example.com/", domain, "http://badexample.com/", false),
        // Section 5.3, step 6: not for a domain to which the host does not belong.
        ("http://other.org/", domain, "http://example.com/", false),
        ("http://example.com/", "x=1; Domain=www.example.com", "http://www.example.com/", false),
        // Step 5: not for a whole top-level domain; a host of that name has it for itself.
        ("http://example.com/", "x=1; Domain=com", "http://example.com/", false),
        ("http://localhost/", "x=1; Domain=localhost", "http://localhost/", true),
        ("http://localhost/", "x=1; Domain=localhost", "http://a.localhost/", false),
        // Addresses have nothing below them.
        ("http://127.0.0.1/", "x=1; Domain=127.0.0.1", "http://127.0.0.1:81/", true),
        ("http://127.0.0.1/", "x=1; Domain=0.0.1", "http://127.0.0.1/", false),
        ("http://[::1]/", "x=1; Domain=[::1]", "http://[::1]/", true),
        // Section 5.1.4: the folder of the URL, or the path that was asked for.
        ("http://h/a/b", "x=1", "http://h/a/c", true),
        ("http://h/a/b", "x=1", "http://h/a", true),
        ("http://h/a/b", "x=1", "http://h/ab", false),
        ("http://h/a/b", "x=1", "http://h/", false),
        ("http://h/a", "x=1", "http://h/", true),
        ("http://h/", "x=1; Path=/a", "http://h/a/b?q", true),
        ("http://h/", "x=1; Path=/a/", "http://h/a", false),
        ("http://h/", "x=1; Path=/a/", "http://h/a/b", true),
        // Section 5.4: over TLS only.
        ("https://h/", "x=1; Secure", "https://h/", true),
        ("https://h/", "x=1; Secure", "wss://h/", true),
        ("https://h/", "x=1; Secure", "http://h/", false),
        ("http://h/", "x=1; Secure", "https://h/", false),
        ("http://h/", "x=1; HttpOnly", "http://h/", true),
        // What is over is not kept.
        ("http://h/", "x=1; Max-Age=0", "http://h/", false),
        ("http://h/", "x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://h/", false),
        ("http://h/", "x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=5", "http://h/", true),
        ("http://h/", "x=1; Expires=sometime", "http://h/", true),
    ];
    for (from, header, to, goes) in cases {
        let found = sent(&jar(&[(from, header)]), to, NOW);
        assert_eq!(found, if goes { "x=1" } else { "" }, "`{header}` from {from} to {to}");
    }
}

#[test]
fn cookies_end_when_their_time_has_come() {
    let jar =
        jar(&[("http://h/", "age=1; Max-Age=10"), ("http://h/", "date=1; Expires=Tue, 14-Nov-2023 22:13:40 GMT")]);
    let at = |seconds| sent(&jar, "http://h/", UnixSeconds(NOW.0 + seconds));
    assert_eq!((at(0), at(9)), ("age=1; date=1".to_owned(), "age=1; date=1".to_owned()));
    assert_eq!((at(10), at(19), at(20)), ("date=1".to_owned(), "date=1".to_owned(), String::new()));
}

#[test]
fn longer_paths_go_first_then_older_cookies() {
    let answers = [("a=1; Path=/"), ("b=1; Path=/x/y"), ("c=1; Path=/"), ("d=1; Path=/x"), ("a=2; Path=/")];
    let jar = jar(&answers.map(|header| ("http://h/x/y/z", header)));
    // `a` was set anew, and keeps its place: section 5.3, step 11.3.
    assert_eq!(sent(&jar, "http://h/x/y/z", NOW), "b=1; d=1; a=2; c=1");
}

#[test]
fn a_server_takes_back_what_it_set() {
    let jar = jar(&[("http://h/", "a=1"), ("http://h/", "b=1"), ("http://h/", "a=; Max-Age=0")]);
    assert_eq!(sent(&jar, "http://h/", NOW), "b=1");
}

#[test]
fn the_cookies_of_a_place_can_be_removed() {
    let all = [("http://h/", "a=1"), ("http://h/x/", "b=1; Path=/x"), ("http://i/", "c=1")];
    let place = url("http://h/x");
    let mut kept = jar(&all);
    kept.remove("b", url("http://h/").place(), NOW);
    assert_eq!(sent(&kept, "http://h/x", NOW), "b=1; a=1", "the root does not get b");
    kept.remove("b", place.place(), NOW);
    assert_eq!(sent(&kept, "http://h/x", NOW), "a=1");
    kept.clear(place.place(), NOW);
    assert_eq!((sent(&kept, "http://h/x", NOW), sent(&kept, "http://i/", NOW)), (String::new(), "c=1".to_owned()));
    kept.clear(url("http://i/").place(), NOW);
    assert!(kept.is_empty());
}

#[test]
fn a_jar_does_not_grow_without_end() {
    let mut jar = jar(&[("http://i/", "other=1")]);
    for number in 0..200 {
        jar.receive(&format!("n{number}=1"), url("http://h/").place(), NOW);
    }
    let kept = jar.cookies(url("http://h/").place(), NOW).into_iter().map(|(name, _)| name.to_owned());
    let newest: Vec<String> = (150..200).map(|number| format!("n{number}")).collect();
    assert_eq!(kept.collect::<Vec<_>>(), newest);
    assert_eq!(sent(&jar, "http://i/", NOW), "other=1");
    assert!(!jar.set(
        &SetCookie { name: "long".to_owned(), value: "v".repeat(4093), ..SetCookie::default() },
        url("http://h/").place(),
        NOW
    ));
}

fn host() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "com", "1"]), 1..5)
        .prop_map(|labels| labels.join("."))
}

proptest! {
    #[test]
    fn no_cookie_goes_to_another_domain(
        answers in prop::collection::vec((host(), host(), any::<bool>(), any::<bool>()), 1..20),
        to in host(),
    ) {
        let mut jar = Jar::default();
        // Each cookie's value is the number of the answer that set it.
        for (number, (from, domain, has_domain, dot)) in answers.iter().enumerate() {
            let dot = if *dot { "." } else { "" };
            let domain = if *has_domain { format!("; Domain={dot}{domain}") } else { String::new() };
            let Ok(from) = Url::parse(&format!("http://{from}/")) else { continue };
            jar.receive(&format!("c{number}={number}{domain}"), from.place(), NOW);
        }
        let Ok(asked) = Url::parse(&format!("http://{to}/")) else { return Ok(()) };
        for (_, value) in jar.cookies(asked.place(), NOW) {
            let (from, domain, has_domain, _) = &answers[value.parse::<usize>().expect("a number")];
            let below = |host: &str| host.ends_with(&format!(".{domain}")) || host == domain;
            prop_assert!(to == *from || (*has_domain && below(&to) && below(from)), "{from} {domain} {to}");
            // Two hosts that share a cookie share more than a top-level domain.
            prop_assert!(to == *from || domain.contains('.'), "{from} {domain} {to}");
        }
    }

    #[test]
    fn no_header_breaks_the_jar_or_a_request(header in any::<String>()) {
        let mut jar = Jar::default();
        let place = Place { secure: true, host: "h", path: "/" };
        jar.receive(&header, place, NOW);
        let mut out = Vec::new();
        jar.write(place, NOW, &mut out);
        prop_assert!(!out.iter().any(|byte| matches!(byte, b'\r' | b'\n' | b';' | 0)));
    }
}
