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
    let Exchange { status, fault, tls, .. } = exchange;
    let (status_text, ip) = (status.to_string(), exchange.remote.map(|remote| remote.ip().to_string()));
    let code = error_code(exchange).map(|code| code.to_string());
    let named = name_of_user(user);
    let name = exchange.name.or(named.as_deref());
    let values = [
        Some(exchange.method),
        Some(name.unwrap_or(exchange.url)),
        // Whoever names a request does so because its URL has too many values.
        Some(name.unwrap_or(exchange.url)),
        Some(&status_text),
        fault.is_none().then_some("HTTP/1.1"),
        fault.map(|fault| fault.message.as_str()),
        code.as_deref(),
        exchange.expected.map(|expected| if expected { "true" } else { "false" }),
        tls.filter(|_| fault.is_none()).map(|tls| tls.version),
        ip.as_deref(),
    ];
    let mut tags: Vec<(&str, &str)> = Vec::with_capacity(NAMES.len() + exchange.tags.len());
    for ((name, value), wanted) in NAMES.into_iter().zip(values).zip(wanted.0) {
        tags.extend(value.filter(|_| wanted).map(|value| (name, value)));
    }
    let own = exchange.tags.iter().filter(|(name, _)| !tags.iter().any(|(tag, _)| tag == name));
    let own: Vec<_> = own.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    tags.extend(own);
    user.add(at, &samples(exchange), &tags);
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

fn samples(exchange: &Exchange<'_>) -> Vec<(MetricId, f64)> {
    let timings = &exchange.timings;
    let time = |span: Nanos| span.0 as f64 / 1e6;
    let failed = exchange.expected.map(|expected| (builtin::HTTP_REQ_FAILED, f64::from(u8::from(!expected))));
    let always = [
        (builtin::HTTP_REQS, 1.0),
        (builtin::HTTP_REQ_DURATION, time(timings.duration())),
        (builtin::HTTP_REQ_BLOCKED, time(timings.blocked)),
        (builtin::HTTP_REQ_CONNECTING, time(timings.connecting)),
        (builtin::HTTP_REQ_TLS_HANDSHAKING, time(timings.tls_handshaking)),
        (builtin::HTTP_REQ_SENDING, time(timings.sending)),
        (builtin::HTTP_REQ_WAITING, time(timings.waiting)),
        (builtin::HTTP_REQ_RECEIVING, time(timings.receiving)),
    ];
    always.into_iter().chain(failed).collect()
}
