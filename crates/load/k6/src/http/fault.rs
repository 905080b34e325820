//! Why a request has no answer, as scripts are told.

use crate::operations::{HttpFault, HttpFaultKind};
use plimsoll_web::{CodingFault, UrlFault};

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// `error_code`
    pub(crate) code: u16,
    /// `error`
    pub(crate) message: String,
    /// All that is known of it.
    pub(crate) detail: String,
}

impl Fault {
    /// One that has no number of its own.
    pub(crate) fn other(detail: impl Into<String>) -> Fault {
        let detail = detail.into();
        Fault { code: 1000, message: detail.clone(), detail }
    }

    /// It is no request of HTTP.
    pub(crate) fn of_scheme(scheme: &str) -> Fault {
        Fault::other(format!("unsupported protocol scheme \"{scheme}\""))
    }

    /// There is nothing that could be connected to.
    pub(crate) fn of_address(detail: impl Into<String>) -> Fault {
        Fault { code: 1210, ..Fault::other(detail) }
    }

    /// The body of the answer is not coded as it says.
    pub(crate) fn of_coding(why: &CodingFault) -> Fault {
        let detail = format!("error decompressing response body ({why})");
        Fault { code: 1701, message: detail.clone(), detail }
    }

    /// What was asked for is no URL.
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

/// What k6 says, where that does not depend on more than the kind.
fn message(kind: HttpFaultKind) -> Option<&'static str> {
    Some(match kind {
        HttpFaultKind::Timeout => "request timeout",
        HttpFaultKind::NoAddress => "lookup: no such host",
        HttpFaultKind::BrokenPipe => "write: broken pipe",
        HttpFaultKind::DialTimeout => "dial: i/o timeout",
        HttpFaultKind::Refused => "dial: connection refused",
        HttpFaultKind::Reset => "read: connection reset by peer",
        HttpFaultKind::UnknownAuthority => "x509: unknown authority",
        HttpFaultKind::WrongHost => "x509: certificate doesn't match hostname",
        _ => return None,
    })
}
