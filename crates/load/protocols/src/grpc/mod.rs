//! Unary gRPC calls over HTTP/2. Messages are compiled once, with types from `.proto` files or from the
//! server's reflection. Framing and headers are a sans-IO state machine.

pub mod caller;
mod frame;
mod hpack;
mod huffman;
mod number;
mod reflection;
mod schema;
pub mod session;
pub mod status;

use crate::http::authority;
pub use hpack::Field;
use number::NumberField;
use percent_encoding::percent_decode_str;
use plimsoll_engine::protocol::{Failure, InOrder, Next, Protocol, Reply, Sending, Signal, Violation};
use plimsoll_engine::transport::Dialer;
use plimsoll_grpc::status::{DEADLINE_EXCEEDED, OK};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::workload::{GRPC_STATUSES, GrpcSchema, GrpcStep, Target};
use session::{Event, Response, Session};
use std::time::Duration;

/// The length of the prefix before each message: a compression flag and a length.
pub const MESSAGE_PREFIX: usize = 5;

/// The calls of a workload, compiled.
#[derive(Debug)]
pub struct Grpc {
    /// Every header field that any call sends, each once.
    fields: Vec<Field>,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    /// Its header fields, as indices into all of them.
    fields: Vec<usize>,
    /// The message with its prefix.
    message: Vec<u8>,
    status: u16,
    number: Option<NumberField>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    session: Session,
    events: Vec<Event>,
    /// The step of each call under way, by ticket.
    steps: Vec<(u32, usize)>,
}

impl Grpc {
    /// Compiles the calls: message types, messages, headers.
    pub fn new(
        target: &Target,
        schema: &GrpcSchema,
        steps: &[GrpcStep],
        dialer: &Dialer,
        timeout: Duration,
    ) -> Result<Grpc, Vec<String>> {
        let symbols: Vec<&str> = steps.iter().map(|step| schema::service_of(&step.call)).collect();
        let pool = match schema {
            GrpcSchema::Files { files, include } => schema::compile(files, include),
            GrpcSchema::Reflection => reflection::fetch_types(dialer, &authority(target), &symbols, timeout),
        };
        let pool = pool.map_err(|fault| vec![fault])?;
        let mut grpc = Grpc { fields: Vec::new(), calls: Vec::new() };
        let mut faults = Vec::new();
        for step in steps {
            match schema::encode(&pool, step) {
                Ok((message, number)) => {
                    let fields = grpc.intern_fields(headers(target, step));
                    grpc.calls.push(Call { fields, message, status: step.status, number });
                }
                Err(found) => faults.extend(found),
            }
        }
        if faults.is_empty() { Ok(grpc) } else { Err(faults) }
    }

    fn intern_fields(&mut self, fields: Vec<Field>) -> Vec<usize> {
        let mut numbers = Vec::with_capacity(fields.len());
        for field in fields {
            let known = self.fields.iter().position(|known| *known == field);
            numbers.push(known.unwrap_or(self.fields.len()));
            if known.is_none() {
                self.fields.push(field);
            }
        }
        numbers
    }

    /// Checks a complete response.
    fn check(&self, step: usize, response: &Response) -> Reply {
        let call = &self.calls[step];
        if response.status != Some(200) && response.grpc_status.is_none() {
            let found = response.status.map_or("none".to_owned(), |status| status.to_string());
            return failed(ErrorKind::Status, format!("expected HTTP status 200, found {found}"));
        }
        let Some(status) = response.grpc_status else {
            return failed(ErrorKind::Protocol, "expected a `grpc-status` trailer, found none".to_owned());
        };
        if status != call.status {
            let kind = if status == DEADLINE_EXCEEDED { ErrorKind::Timeout } else { ErrorKind::Status };
            let message = response.grpc_message.as_deref().filter(|text| !text.is_empty());
            let message =
                message.map_or(String::new(), |text| format!(": {}", percent_decode_str(text).decode_utf8_lossy()));
            let (expected, found) = (status_name(call.status), status_name(status));
            return failed(kind, format!("expected gRPC status {expected}, found {found}{message}"));
        }
        if status != OK {
            return Reply::Expected { number: None };
        }
        match unary_message(&response.body) {
            Err(detail) => failed(ErrorKind::Protocol, detail),
            Ok(message) => Reply::Expected { number: call.number.as_ref().and_then(|number| number.find(message)) },
        }
    }
}

fn failed(kind: ErrorKind, detail: String) -> Reply {
    Reply::Failed(Failure { kind, detail })
}

/// Extracts the one message of a unary reply.
fn unary_message(body: &[u8]) -> Result<&[u8], String> {
    let (prefix, message) = body
        .split_first_chunk::<MESSAGE_PREFIX>()
        .ok_or_else(|| format!("expected one message, found {} bytes", body.len()))?;
    let length = frame::number(&prefix[1..]) as usize;
    match prefix[0] {
        0 if length == message.len() => Ok(message),
        0 => Err(format!("expected one message of {length} bytes, found {} bytes", message.len())),
        _ => Err("expected an uncompressed message, found a compressed one".to_owned()),
    }
}

/// The name of a status code, or its number.
fn status_name(code: u16) -> String {
    GRPC_STATUSES.get(usize::from(code)).map_or_else(|| code.to_string(), |name| (*name).to_owned())
}

/// The header fields of a call (the gRPC specification's order).
fn headers(target: &Target, step: &GrpcStep) -> Vec<Field> {
    let scheme = if target.tls.is_some() { "https" } else { "http" };
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut fields = vec![
        field(":method", "POST"),
        field(":scheme", scheme),
        field(":path", &format!("/{}", step.call)),
        field(":authority", &authority(target)),
        field("content-type", "application/grpc"),
        field("user-agent", concat!("plimsoll/", env!("CARGO_PKG_VERSION"))),
        field("te", "trailers"),
    ];
    if let Some(deadline) = step.deadline {
        fields.push(field("grpc-timeout", &grpc_timeout(deadline)));
    }
    // HTTP/2 has field names in lower case only.
    fields.extend(step.metadata.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    fields
}

/// Formats a deadline as `grpc-timeout`: at most eight digits and a unit. The unit is microseconds, or
/// milliseconds for longer deadlines.
pub fn grpc_timeout(deadline: Duration) -> String {
    let micros = deadline.as_micros();
    if micros <= 99_999_999 { format!("{micros}u") } else { format!("{}m", deadline.as_millis().min(99_999_999)) }
}

/// Puts the prefix of an uncompressed message before it.
pub fn prefixed(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MESSAGE_PREFIX + message.len());
    bytes.push(0);
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

impl Protocol for Grpc {
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
        user.next(self.calls.len())
    }

    fn open(&self, out: &mut Vec<u8>) -> Connection {
        Connection { session: Session::open(out), events: Vec::new(), steps: Vec::new() }
    }

    #[inline]
    fn capacity(&self, connection: &Connection) -> usize {
        connection.session.capacity()
    }

    #[inline]
    fn is_reusable(&self, connection: &Connection) -> bool {
        connection.session.accepts_requests()
    }

    fn send(&self, connection: &mut Connection, _user: &mut InOrder, request: Sending, out: &mut Vec<u8>) {
        let Sending { step, ticket, .. } = request;
        let call = &self.calls[step];
        connection.steps.push((ticket, step));
        connection.session.request(&self.fields, &call.fields, &call.message, ticket, out);
    }

    fn receive(
        &self,
        connection: &mut Connection,
        input: &[u8],
        out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) -> Result<(), Violation> {
        let received = connection.session.receive(input, out, &mut connection.events);
        let mut events = std::mem::take(&mut connection.events);
        for event in events.drain(..) {
            let signal = match event {
                Event::FirstByte(ticket) => Signal::FirstByte { ticket },
                // Only streams report progress; calls of a workload are unary.
                Event::Progress(_) => continue,
                Event::Complete(ticket, response) => {
                    let reply = self.check(connection.take_step(ticket), &response);
                    connection.session.reuse(response.body);
                    Signal::Done { ticket, reply }
                }
                Event::Failed(ticket, why) => {
                    connection.take_step(ticket);
                    Signal::Done { ticket, reply: failed(ErrorKind::Closed, why.to_string()) }
                }
            };
            signals.push(signal);
        }
        connection.events = events;
        received
    }

    fn end_of_input(&self, _connection: &mut Connection, _signals: &mut Vec<Signal>) {}

    fn cancel(&self, connection: &mut Connection, ticket: u32, out: &mut Vec<u8>) -> bool {
        connection.take_step(ticket);
        connection.session.cancel(ticket, out);
        true
    }

    fn close(&self, connection: &mut Connection, out: &mut Vec<u8>) {
        connection.session.close(out);
    }
}

impl Connection {
    fn take_step(&mut self, ticket: u32) -> usize {
        let place = self.steps.iter().position(|(known, _)| *known == ticket).expect("the call is under way");
        self.steps.swap_remove(place).1
    }
}

#[cfg(test)]
mod tests;
