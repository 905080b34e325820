//! URLs, cookies and content codings.

use super::{chosen, first_line, text};
use plimsoll_web::{Coding, Jar, UnixSeconds, Url, coding as codings};

/// 2026-01-01.
const NOW: UnixSeconds = UnixSeconds(1_767_225_600);

/// The most bytes that a body may have when decoded.
const LARGEST_BODY: usize = 1024 * 1024;

/// The first line is a URL; every other line is a header `Set-Cookie` of it.
pub(super) fn cookies(input: &[u8]) {
    let text = text(input);
    let (url, headers) = first_line(&text);
    let Ok(url) = Url::parse(url) else { return };
    let mut jar = Jar::default();
    headers.split('\n').for_each(|header| jar.receive(header, url.place(), NOW));
    let mut sent = Vec::new();
    jar.write(url.place(), NOW, &mut sent);
    let breaks_a_header = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    assert!(!sent.iter().any(breaks_a_header), "expected a header without control characters, found {sent:?}");
    assert!(sent.len() <= 50 * 4100, "expected at most 50 cookies of 4 KiB, found {} bytes", sent.len());
    jar.clear(url.place(), NOW);
    assert!(jar.cookies(url.place(), NOW).is_empty(), "expected no cookie after all were removed");
}

/// The first line is a URL; the rest is a reference that it has.
pub(super) fn url(input: &[u8]) {
    let text = text(input);
    let (base, reference) = first_line(&text);
    let Ok(base) = Url::parse(base) else { return };
    check_url(&base);
    if let Ok(resolved) = base.resolve(reference) {
        check_url(&resolved);
    }
}

/// A URL is read back as written, and fits into the first line of a request.
fn check_url(url: &Url) {
    let written = url.to_string();
    assert_eq!(Url::parse(&written).as_ref(), Ok(url), "{written}");
    let sent = format!("{}{}", url.target(), url.authority());
    assert!(sent.bytes().all(|byte| byte.is_ascii_graphic()), "expected what a request can carry, found {sent:?}");
}

/// Decodes the input, to which one or two codings were applied.
pub(super) fn coding(input: &[u8]) {
    let (way, body) = chosen(input);
    let named = |number: u8| Coding::ALL[usize::from(number) % Coding::ALL.len()];
    let applied = [named(way), named(way / 3)];
    let applied = if way & 0x80 == 0 { &applied[..1] } else { &applied[..] };
    if let Ok(decoded) = codings::decode(body.to_vec(), applied, LARGEST_BODY) {
        assert!(decoded.len() <= LARGEST_BODY, "{} bytes are decoded", decoded.len());
    }
    let _ = Coding::read_list(&text(body));
}
