//! Why a request has no reply, as scripts see it.

use crate::operations::{HttpFault, HttpFaultKind};
use plimsoll_web::{CodingFault, UrlFault};

/// Why a request has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// `error_code`
    pub(crate) code: u16,
    /// `error`
    pub(crate) message: String,
    /// The whole reason.
    pub(crate) detail: String,
}

impl Fault {
    /// A fault without a code of its own.
    pub(crate) fn other(detail: impl Into<String>) -> Fault {
        let detail = detail.into();
        Fault { code: 1000, message: detail.clone(), detail }
    }

    /// The scheme is not that of HTTP.
    pub(crate) fn of_scheme(scheme: &str) -> Fault {
        Fault::other(format!("unsupported protocol scheme \"{scheme}\""))
    }

    /// The address cannot be connected to.
    pub(crate) fn of_address(detail: impl Into<String>) -> Fault {
        Fault { code: 1210, ..Fault::other(detail) }
    }

    /// The body of the reply is not in its content coding.
    pub(crate) fn of_coding(why: &CodingFault) -> Fault {
        let detail = format!("error decompressing response body ({why})");
        Fault { code: 1701, message: detail.clone(), detail }
    }

    /// The script's text is no URL.
    pub(crate) fn of_url(why: &UrlFault) -> Fault {
        let detail = format!("invalid URL: {why}");
        Fault { code: 1020, message: detail.clone(), detail }
    }
}

impl From<HttpFault> for Fault {
    fn from(fault: HttpFault) -> Fault {
        let message = message(fault.kind).map_or_else(|| fault.detail.clone(), str::to_owned);
        Fault { code: fault.kind.code(), message, detail: fault.detail }
    }
}

/// k6's message, if it depends on the kind alone.
fn message(kind: HttpFaultKind) -> Option<&'static str> {
    Some(match kind {
        HttpFaultKind::Timeout => "request timeout",
        HttpFaultKind::NoAddress => "lookup: no such host",
        HttpFaultKind::BrokenPipe => "write: broken pipe",
        HttpFaultKind::DialTimeout => "dial: i/o timeout",
        HttpFaultKind::Refused => "dial: connection refused",
        HttpFaultKind::Reset => "read: connection reset by peer",
        HttpFaultKind::NotTls => "tls: first record does not look like a TLS handshake",
        HttpFaultKind::UnknownAuthority => "x509: unknown authority",
        HttpFaultKind::WrongHost => "x509: certificate doesn't match hostname",
        _ => return None,
    })
}
