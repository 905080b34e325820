//! HTTP/1.1 as a sans-IO state machine: requests rendered once, responses read in any pieces.
//!
//! One exchange at a time on a connection, no pipelining: as browsers and proxies do.

pub(crate) mod response;

use crate::protocol::{Protocol, Reply, Signal, Violation};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::workload::{HttpStep, Target};
use response::{Progress, ResponseReader};

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
#[derive(Debug)]
pub struct Connection {
    state: State,
    reader: ResponseReader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// The reply to this ticket is awaited or under way.
    Busy {
        ticket: u32,
        step: usize,
        begun: bool,
    },
    /// No further exchange may be sent.
    Spent,
}

impl Http {
    /// Renders the steps once, with the headers that HTTP demands.
    #[must_use]
    pub fn new(target: &Target, steps: &[HttpStep]) -> Http {
        Http { requests: steps.iter().map(|step| render(target, step)).collect() }
    }

    fn judge(&self, step: usize, status: u16) -> Reply {
        let expected = self.requests[step].status;
        if expected.map_or(status < 400, |expected| status == expected) {
            return Reply::Expected { number: None };
        }
        let wanted = expected.map_or("a status below 400".to_owned(), |expected| format!("status {expected}"));
        Reply::Failed { kind: ErrorKind::Status, detail: format!("expected {wanted}, found {status}") }
    }
}

fn render(target: &Target, step: &HttpStep) -> Request {
    let given = |name: &str| step.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    let mut head = format!("{} {} HTTP/1.1\r\n", step.method, step.path);
    if !given("host") {
        head += &format!("Host: {}\r\n", authority(target));
    }
    if !given("user-agent") {
        head += concat!("User-Agent: plimsoll/", env!("CARGO_PKG_VERSION"), "\r\n");
    }
    for (name, value) in &step.headers {
        head += &format!("{name}: {value}\r\n");
    }
    // A method that means to carry a body says so even when the body is empty (RFC 9110, 8.6).
    let carries_body = !step.body.is_empty() || matches!(step.method.as_str(), "POST" | "PUT" | "PATCH");
    if carries_body && !given("content-length") && !given("transfer-encoding") {
        head += &format!("Content-Length: {}\r\n", step.body.len());
    }
    head += "\r\n";
    let bytes = [head.as_bytes(), &step.body].concat();
    Request { bytes, is_head: step.method == "HEAD", status: step.status }
}

/// The authority as a client writes it: without the port where it is the scheme's own.
pub(crate) fn authority(target: &Target) -> String {
    let default_port = if target.tls.is_some() { 443 } else { 80 };
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    if target.port == default_port { host } else { format!("{host}:{}", target.port) }
}

impl Protocol for Http {
    type Connection = Connection;

    fn open(&self, _out: &mut Vec<u8>) -> Connection {
        Connection { state: State::Idle, reader: ResponseReader::default() }
    }

    fn capacity(&self, connection: &Connection) -> usize {
        usize::from(connection.state != State::Spent)
    }

    fn is_reusable(&self, connection: &Connection) -> bool {
        connection.state != State::Spent
    }

    fn send(&self, connection: &mut Connection, step: usize, ticket: u32, out: &mut Vec<u8>) {
        debug_assert_eq!(connection.state, State::Idle, "one exchange at a time");
        let request = &self.requests[step];
        out.extend_from_slice(&request.bytes);
        connection.state = State::Busy { ticket, step, begun: false };
        connection.reader.expect(request.is_head);
    }

    fn receive(
        &self,
        connection: &mut Connection,
        input: &[u8],
        _out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) -> Result<(), Violation> {
        if input.is_empty() {
            return Ok(());
        }
        let State::Busy { ticket, step, begun } = connection.state else {
            return Err(Violation::new(format!("expected silence between responses, found {} bytes", input.len())));
        };
        if !begun {
            signals.push(Signal::FirstByte { ticket });
            connection.state = State::Busy { ticket, step, begun: true };
        }
        match connection.reader.read(input, &mut ())? {
            Progress::Partial => Ok(()),
            Progress::Complete { status, keep_alive, unread: 0 } => {
                connection.state = if keep_alive { State::Idle } else { State::Spent };
                signals.push(Signal::Done { ticket, reply: self.judge(step, status) });
                Ok(())
            }
            Progress::Complete { unread, .. } => {
                Err(Violation::new(format!("expected the end of the response, found {unread} bytes more")))
            }
        }
    }

    fn end_of_input(&self, connection: &mut Connection, signals: &mut Vec<Signal>) {
        if let State::Busy { ticket, step, .. } = connection.state
            && let Some(status) = connection.reader.end_of_input()
        {
            signals.push(Signal::Done { ticket, reply: self.judge(step, status) });
        }
        connection.state = State::Spent;
    }

    fn cancel(&self, connection: &mut Connection, _ticket: u32, _out: &mut Vec<u8>) -> bool {
        // HTTP/1.1 has no way to take a request back: its reply may still come.
        connection.state = State::Spent;
        false
    }

    fn close(&self, _connection: &mut Connection, _out: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests;
