//! The samples of an exchange.

use crate::fetch::Exchange;
use crate::user::{SampleLabels, User};
use plimsoll_k6_run::metrics::{Measured, MetricId, builtin};
use plimsoll_model::units::{Instant, Nanos};
use std::cell::OnceCell;

/// The system tags of exchanges.
const NAMES: [&str; 10] =
    ["method", "name", "url", "status", "proto", "error", "error_code", "expected_response", "tls_version", "ip"];

/// The system tags that a user wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedTags([bool; NAMES.len()]);

impl WantedTags {
    pub(crate) fn by(user: &User) -> WantedTags {
        WantedTags(NAMES.map(|name| user.has_system_tag(name)))
    }
}

/// The tags of an exchange, derived on demand.
#[derive(Debug)]
struct Tags<'a> {
    exchange: &'a Exchange<'a>,
    wanted: WantedTags,
    /// Its own name, the name of all samples of the user, or its URL.
    name: &'a str,
    /// Formatted on demand: most requests never need them.
    status: OnceCell<Digits>,
    error_code: OnceCell<Digits>,
    ip: OnceCell<String>,
}

/// Adds the samples of an exchange that ended at this instant, with the labels of its request, or those of now.
pub(crate) fn add(
    (user, labels): (&User, Option<&SampleLabels>),
    wanted: WantedTags,
    at: Instant,
    exchange: &Exchange<'_>,
) {
    let named = labels.map_or_else(|| name_among(&user.iteration().tags), |labels| name_among(labels.tags()));
    let name = exchange.name.or(named.as_deref()).unwrap_or(exchange.url);
    let (status, error_code, ip) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
    let tags = Tags { exchange, wanted, name, status, error_code, ip };
    let own: Vec<(&str, &str)> = exchange.tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let samples = samples(exchange);
    let count = if exchange.expected.is_some() { samples.len() } else { samples.len() - 1 };
    user.add_measured(at, &samples[..count], Some(&tags), (&own, labels));
}

impl Measured for Tags<'_> {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn get(&self, name: &str) -> Option<&str> {
        let at = NAMES.iter().position(|known| *known == name)?;
        if !self.wanted.0[at] {
            return None;
        }
        let Exchange { method, fault, tls, expected, .. } = self.exchange;
        match name {
            "method" => Some(method),
            // A request is named because its URL has too many values.
            "name" | "url" => Some(self.name),
            "status" => Some(self.status.get_or_init(|| Digits::of(self.exchange.status)).text()),
            "proto" => fault.is_none().then_some("HTTP/1.1"),
            "error" => fault.map(|fault| fault.message.as_str()),
            "error_code" => {
                let code = error_code(self.exchange)?;
                Some(self.error_code.get_or_init(|| Digits::of(code)).text())
            }
            "expected_response" => expected.map(|expected| if expected { "true" } else { "false" }),
            "tls_version" => tls.filter(|_| fault.is_none()).map(|tls| tls.version),
            _ => {
                let remote = self.exchange.remote?;
                Some(self.ip.get_or_init(|| remote.ip().to_string()))
            }
        }
    }
}

/// A number as a text, without allocation.
#[derive(Debug)]
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

/// The tag `name` among these tags.
fn name_among(tags: &[(String, String)]) -> Option<String> {
    tags.iter().find(|(name, _)| name == "name").map(|(_, value)| value.clone())
}

/// `error_code`: of a fault, or of a status that is an error.
fn error_code(exchange: &Exchange<'_>) -> Option<u16> {
    let of_status = (exchange.status >= 400).then(|| 1000 + exchange.status);
    exchange.fault.map(|fault| fault.code).or(of_status)
}

/// The samples. The last one counts only if the script expects statuses.
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
