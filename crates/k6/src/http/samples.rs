//! What an exchange leaves in the metrics.

use super::fetch::Exchange;
use crate::metrics::{MetricId, builtin};
use crate::user::User;
use plimsoll_model::units::{Instant, Nanos};

/// The tags that exchanges get by themselves, if they are not switched off.
const NAMES: [&str; 10] =
    ["method", "name", "url", "status", "proto", "error", "error_code", "expected_response", "tls_version", "ip"];

/// Which of those a user wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted([bool; NAMES.len()]);

impl Wanted {
    pub(crate) fn by(user: &User) -> Wanted {
        Wanted(NAMES.map(|name| user.has_system_tag(name)))
    }
}

/// Adds the samples of an exchange that ended at this instant.
pub(crate) fn add(user: &User, wanted: Wanted, at: Instant, exchange: &Exchange<'_>) {
    let Exchange { fault, tls, .. } = exchange;
    let status = Digits::of(exchange.status);
    let code = error_code(exchange).map(Digits::of);
    // An address is dear to write, and hardly anybody wants it.
    let ip = exchange.remote.filter(|_| wanted.0[NAMES.len() - 1]).map(|remote| remote.ip().to_string());
    let named = name_of_user(user);
    let name = exchange.name.or(named.as_deref()).unwrap_or(exchange.url);
    let values = [
        Some(exchange.method),
        Some(name),
        // Whoever names a request does so because its URL has too many values.
        Some(name),
        Some(status.text()),
        fault.is_none().then_some("HTTP/1.1"),
        fault.map(|fault| fault.message.as_str()),
        code.as_ref().map(Digits::text),
        exchange.expected.map(|expected| if expected { "true" } else { "false" }),
        tls.filter(|_| fault.is_none()).map(|tls| tls.version),
        ip.as_deref(),
    ];
    let mut tags: Vec<(&str, &str)> = Vec::with_capacity(NAMES.len() + exchange.tags.len());
    for ((name, value), wanted) in NAMES.into_iter().zip(values).zip(wanted.0) {
        tags.extend(value.filter(|_| wanted).map(|value| (name, value)));
    }
    let by_themselves = tags.len();
    for (name, value) in exchange.tags {
        if !tags[..by_themselves].iter().any(|(tag, _)| tag == name) {
            tags.push((name, value));
        }
    }
    let samples = samples(exchange);
    let count = if exchange.expected.is_some() { samples.len() } else { samples.len() - 1 };
    user.add(at, &samples[..count], &tags);
}

/// A number as a text, without asking for memory.
struct Digits {
    text: [u8; 5],
    begin: usize,
}

impl Digits {
    fn of(number: u16) -> Digits {
        let (mut text, mut begin, mut rest) = ([b'0'; 5], 5, number);
        loop {
            begin -= 1;
            text[begin] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return Digits { text, begin };
            }
        }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.text[self.begin..]).unwrap_or_default()
    }
}

/// The name that all samples of the user have.
fn name_of_user(user: &User) -> Option<String> {
    let iteration = user.iteration();
    iteration.tags.iter().find(|(name, _)| name == "name").map(|(_, value)| value.clone())
}

/// `error_code`: of a fault, or of a status that is an error.
fn error_code(exchange: &Exchange<'_>) -> Option<u16> {
    let of_status = (exchange.status >= 400).then(|| 1000 + exchange.status);
    exchange.fault.map(|fault| fault.code).or(of_status)
}

/// The samples, of which the last is there only if something was expected.
fn samples(exchange: &Exchange<'_>) -> [(MetricId, f64); 9] {
    let timings = &exchange.timings;
    let time = |span: Nanos| span.0 as f64 / 1e6;
    [
        (builtin::HTTP_REQS, 1.0),
        (builtin::HTTP_REQ_DURATION, time(timings.duration())),
        (builtin::HTTP_REQ_BLOCKED, time(timings.blocked)),
        (builtin::HTTP_REQ_CONNECTING, time(timings.connecting)),
        (builtin::HTTP_REQ_TLS_HANDSHAKING, time(timings.tls_handshaking)),
        (builtin::HTTP_REQ_SENDING, time(timings.sending)),
        (builtin::HTTP_REQ_WAITING, time(timings.waiting)),
        (builtin::HTTP_REQ_RECEIVING, time(timings.receiving)),
        (builtin::HTTP_REQ_FAILED, f64::from(u8::from(exchange.expected == Some(false)))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written() {
        for number in [0, 7, 10, 200, 1404, 65_535] {
            assert_eq!(Digits::of(number).text(), number.to_string());
        }
    }
}
