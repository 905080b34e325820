use super::*;
use proptest::prelude::*;

/// RFC 3986, section 5.4: normal and abnormal examples, from `http://a/b/c/d;p?q`.
const EXAMPLES: [(&str, &str); 42] = [
    ("g:h", "g:h"),
    ("g", "http://a/b/c/g"),
    ("./g", "http://a/b/c/g"),
    ("g/", "http://a/b/c/g/"),
    ("/g", "http://a/g"),
    ("//g", "http://g"),
    ("?y", "http://a/b/c/d;p?y"),
    ("g?y", "http://a/b/c/g?y"),
    ("#s", "http://a/b/c/d;p?q#s"),
    ("g#s", "http://a/b/c/g#s"),
    ("g?y#s", "http://a/b/c/g?y#s"),
    (";x", "http://a/b/c/;x"),
    ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y#s"),
    ("", "http://a/b/c/d;p?q"),
    (".", "http://a/b/c/"),
    ("./", "http://a/b/c/"),
    ("..", "http://a/b/"),
    ("../", "http://a/b/"),
    ("../g", "http://a/b/g"),
    ("../..", "http://a/"),
    ("../../", "http://a/"),
    ("../../g", "http://a/g"),
    ("../../../g", "http://a/g"),
    ("../../../../g", "http://a/g"),
    ("/./g", "http://a/g"),
    ("/../g", "http://a/g"),
    ("g.", "http://a/b/c/g."),
    (".g", "http://a/b/c/.g"),
    ("g..", "http://a/b/c/g.."),
    ("..g", "http://a/b/c/..g"),
    ("./../g", "http://a/b/g"),
    ("./g/.", "http://a/b/c/g/"),
    ("g/./h", "http://a/b/c/g/h"),
    ("g/../h", "http://a/b/c/h"),
    ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
    ("g;x=1/../y", "http://a/b/c/y"),
    ("g?y/./x", "http://a/b/c/g?y/./x"),
    ("g?y/../x", "http://a/b/c/g?y/../x"),
    ("g#s/./x", "http://a/b/c/g#s/./x"),
    ("g#s/../x", "http://a/b/c/g#s/../x"),
    ("http:g", "http:g"),
];

fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn references_resolve_as_in_the_rfc() {
    let base = Parts::split("http://a/b/c/d;p?q");
    for (reference, expected) in EXAMPLES {
        assert_eq!(Parts::split(reference).resolved(&base), expected, "{reference:?}");
    }
}

#[test]
fn urls_resolve_what_servers_send_as_location() {
    let cases = [
        ("http://h", "next", "http://h/next"),
        ("http://h:8080/a/b?x=1#f", "c", "http://h:8080/a/c"),
        ("http://h:8080/a", "?page=2", "http://h:8080/a?page=2"),
        ("https://h/a", "//other/b", "https://other/b"),
        ("http://h/a", " /with space\n", "http://h/with%20space"),
        ("http://h/a", "HTTPS://Other.Example:443/B", "https://other.example/B"),
    ];
    for (base, reference, expected) in cases {
        assert_eq!(url(base).resolve(reference).map(|url| url.to_string()).as_deref(), Ok(expected), "{reference:?}");
    }
    assert!(url("http://h/").resolve("mailto:a@b").is_err_and(|fault| fault.to_string().contains("`mailto`")));
}

#[test]
fn a_url_has_its_parts() {
    let url = url("HTTP://bob:s%40x@Example.COM:8080/a/b?x=1&y=/#top");
    assert_eq!((url.scheme(), url.userinfo(), url.host()), (Scheme::Http, Some("bob:s%40x"), "example.com"));
    assert_eq!((url.port(), url.path(), url.query(), url.fragment()), (8080, "/a/b", Some("x=1&y=/"), Some("top")));
    assert_eq!((url.target().as_str(), url.authority().as_str()), ("/a/b?x=1&y=/", "example.com:8080"));
    assert_eq!(url.place(), Place { secure: false, host: "example.com", path: "/a/b" });
    assert_eq!(url.to_string(), "http://bob:s%40x@example.com:8080/a/b?x=1&y=/#top");
}

#[test]
fn ports_follow_from_the_scheme() {
    for (text, port, authority) in [
        ("http://h", 80, "h"),
        ("https://h:/", 443, "h"),
        ("https://h:443/", 443, "h"),
        ("ws://[::1]:8080", 8080, "[::1]:8080"),
        ("wss://[2001:DB8::1]/x", 443, "[2001:db8::1]"),
    ] {
        let url = url(text);
        assert_eq!((url.port(), url.authority().as_str()), (port, authority), "{text}");
    }
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    assert!(url("http://h/a").is_same_origin(&url("http://H:80/b")));
    for other in ["https://h/a", "http://h:81/a", "http://i/a"] {
        assert!(!url("http://h/a").is_same_origin(&url(other)), "{other}");
    }
}

#[test]
fn other_texts_are_refused_with_the_reason() {
    let cases = [
        ("", "names no scheme"),
        ("/path", "names no scheme"),
        ("example.com/x", "names no scheme"),
        ("ftp://h/", "`ftp` is none of"),
        ("http:/h", "`//` and a host"),
        ("http:///x", "names no host"),
        ("http://h:x/", "`x` is no number"),
        ("http://h:70000/", "above 65535"),
        ("http://[::1/", "no IPv6 address"),
        ("http://a b/", "has the character ' '"),
        ("http://münchen.example/", "`xn--…`"),
        ("http://h/a\r\nX: y", "control character '\\r'"),
    ];
    for (text, why) in cases {
        let fault = Url::parse(text).expect_err(text).to_string();
        assert!(fault.contains(why), "{text:?}: {fault}");
    }
}

proptest! {
    #[test]
    fn a_url_reads_back_as_it_is_written(text in "(http|wss)://(u@)?[a-z]{1,4}(:[0-9]{1,4})?(/[ -~ü]{0,12})?") {
        if let Ok(first) = Url::parse(&text) {
            prop_assert_eq!(Url::parse(&first.to_string()), Ok(first));
        }
    }

    #[test]
    fn what_a_url_holds_breaks_no_request(text in any::<String>(), base in "http://h/[a-z/.]{0,8}") {
        if let Ok(url) = Url::parse(&base).and_then(|base| base.resolve(&text)) {
            let sent = format!("{}{}", url.target(), url.authority());
            prop_assert!(sent.bytes().all(|byte| byte.is_ascii_graphic()), "{:?}", sent);
            prop_assert!(url.path().starts_with('/'));
        }
    }

    #[test]
    fn splitting_loses_nothing(text in "[a-z]{1,2}:[/?#:@aü ]{0,12}") {
        // Against any base, a reference with a scheme is itself, dots aside.
        prop_assert_eq!(Parts::split(&text).resolved(&Parts::default()), text);
    }
}

#[test]
fn tls_and_this_machine_are_secure() {
    for (url, secure) in [
        ("https://example.com", true),
        ("wss://example.com", true),
        ("http://example.com", false),
        ("http://localhost:81", true),
        ("http://a.localhost", true),
        ("http://notlocalhost", false),
        ("http://127.0.0.2", true),
        ("http://128.0.0.1", false),
        ("http://[::1]", true),
        ("http://[::2]", false),
    ] {
        assert_eq!(Url::parse(url).map(|url| url.place().secure), Ok(secure), "{url}");
    }
}
