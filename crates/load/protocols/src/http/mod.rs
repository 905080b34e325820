//! HTTP/1.1 as a sans-IO state machine. Requests are rendered once; responses are read in any pieces.
//!
//! A connection carries one exchange at a time, without pipelining, as browsers and proxies do.

pub(crate) mod exchange;
pub mod response;

use exchange::ExchangeState;
use plimsoll_engine::protocol::{Failure, InOrder, Next, Protocol, Reply, Sending, Signal, Violation};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::workload::{HttpStep, Target};

/// The requests of a workload, rendered.
#[derive(Debug)]
pub struct Http {
    requests: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    bytes: Vec<u8>,
    /// The response to HEAD has no body whatever its headers say.
    is_head: bool,
    status: Option<u16>,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Connection {
    exchange: ExchangeState,
    /// The step of the exchange under way.
    step: usize,
}

impl Http {
    /// Renders the steps once, with the headers that HTTP demands.
    #[must_use]
    pub fn new(target: &Target, steps: &[HttpStep]) -> Http {
        Http { requests: steps.iter().map(|step| render(target, step)).collect() }
    }

    /// Checks the status of a complete response.
    fn check(&self, step: usize, status: u16) -> Reply {
        let expected = self.requests[step].status;
        if expected.map_or(status < 400, |expected| status == expected) {
            return Reply::Expected { number: None };
        }
        let wanted = expected.map_or("a status below 400".to_owned(), |expected| format!("status {expected}"));
        Reply::Failed(Failure::new(ErrorKind::Status, format!("expected {wanted}, found {status}")))
    }
}

/// The header `User-Agent` of requests that do not set one.
pub const USER_AGENT: &str = concat!("User-Agent: plimsoll/", env!("CARGO_PKG_VERSION"), "\r\n");

fn render(target: &Target, step: &HttpStep) -> Request {
    let given = |name: &str| step.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    let mut head = format!("{} {} HTTP/1.1\r\n", step.method, step.path);
    if !given("host") {
        head += &format!("Host: {}\r\n", authority(target));
    }
    if !given("user-agent") {
        head += USER_AGENT;
    }
    for (name, value) in &step.headers {
        head += &format!("{name}: {value}\r\n");
    }
    // Methods with a body send its length even if it is empty (RFC 9110, 8.6).
    let carries_body = !step.body.is_empty() || matches!(step.method.as_str(), "POST" | "PUT" | "PATCH");
    if carries_body && !given("content-length") && !given("transfer-encoding") {
        head += &format!("Content-Length: {}\r\n", step.body.len());
    }
    head += "\r\n";
    let bytes = [head.as_bytes(), &step.body].concat();
    Request { bytes, is_head: step.method == "HEAD", status: step.status }
}

/// The authority of a target, without the scheme's default port.
pub fn authority(target: &Target) -> String {
    let default_port = if target.tls.is_some() { 443 } else { 80 };
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    if target.port == default_port { host } else { format!("{host}:{}", target.port) }
}

impl Protocol for Http {
    type Connection = Connection;
    type User = InOrder;

    fn user(&self, _number: u64, _seed: u64) -> InOrder {
        InOrder::default()
    }

    #[inline]
    fn begin(&self, user: &mut InOrder) -> Next {
        user.begin()
    }

    #[inline]
    fn next(&self, user: &mut InOrder) -> Next {
        user.next(self.requests.len())
    }

    fn open(&self, _out: &mut Vec<u8>) -> Connection {
        Connection::default()
    }

    #[inline]
    fn capacity(&self, connection: &Connection) -> usize {
        usize::from(connection.exchange.is_reusable())
    }

    #[inline]
    fn is_reusable(&self, connection: &Connection) -> bool {
        connection.exchange.is_reusable()
    }

    #[inline]
    fn send(&self, connection: &mut Connection, _user: &mut InOrder, sending: Sending, out: &mut Vec<u8>) {
        let request = &self.requests[sending.step];
        out.extend_from_slice(&request.bytes);
        connection.step = sending.step;
        connection.exchange.send(sending.ticket, request.is_head);
    }

    fn receive(
        &self,
        connection: &mut Connection,
        input: &[u8],
        _out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) -> Result<(), Violation> {
        let step = connection.step;
        connection.exchange.receive(input, &mut (), signals, |status| self.check(step, status))
    }

    fn end_of_input(&self, connection: &mut Connection, signals: &mut Vec<Signal>) {
        let step = connection.step;
        connection.exchange.end_of_input(signals, |status| self.check(step, status));
    }

    fn cancel(&self, connection: &mut Connection, _ticket: u32, _out: &mut Vec<u8>) -> bool {
        connection.exchange.abandon();
        false
    }

    fn close(&self, _connection: &mut Connection, _out: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests;
