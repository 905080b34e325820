//! Calls that are no load, such as questions before one: one at a time on a connection of its own, each waited for.

use super::hpack::Field;
use super::session::{Event, Response, Session};
use super::{prefixed, status_name, unary_message};
use percent_encoding::percent_decode_str;
use plimsoll_engine::transport::{Chunk, Dialer, Transport, TransportError};
use plimsoll_grpc::status::OK;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::time::Instant;

/// A connection that makes one call at a time.
pub struct Caller {
    transport: Transport,
    session: Session,
    out: Vec<u8>,
    events: Vec<Event>,
    /// The header fields of every call, then the path of each method that was called.
    fields: Vec<Field>,
    /// How many fields every call has.
    common: usize,
    until: Instant,
}

/// Why a call brought no message.
#[derive(Debug)]
pub enum CallError {
    /// The server answers with another status than OK, and a message, which may be empty.
    Status(u16, String),
    /// There is no answer, or one that breaks the protocol.
    Broken(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Status(code, message) if message.is_empty() => write!(f, "gRPC status {}", status_name(*code)),
            CallError::Status(code, message) => write!(f, "gRPC status {}: {message}", status_name(*code)),
            CallError::Broken(why) => f.write_str(why),
        }
    }
}

impl Caller {
    /// Connects. `metadata` goes with each call; its names are in lower case. Connection and calls may take until `until`.
    ///
    /// # Errors
    /// There is no server, or none that speaks HTTP/2.
    pub fn connect(dialer: &Dialer, authority: &str, metadata: &[Field], until: Instant) -> Result<Caller, CallError> {
        let transport = dialer.dial()?;
        let scheme = if dialer.tls.is_some() { "https" } else { "http" };
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut fields = vec![
            field(":method", "POST"),
            field(":scheme", scheme),
            field(":authority", authority),
            field("content-type", "application/grpc"),
            field("user-agent", concat!("plimsoll/", env!("CARGO_PKG_VERSION"))),
            field("te", "trailers"),
        ];
        fields.extend_from_slice(metadata);
        let (mut out, common) = (Vec::new(), fields.len());
        let session = Session::open(&mut out);
        let mut caller = Caller { transport, session, out, events: Vec::new(), fields, common, until };
        caller.wait_for(PollFlags::OUT)?;
        caller.transport.connected()?;
        while caller.session.capacity() == 0 {
            caller.exchange_bytes()?;
        }
        Ok(caller)
    }

    /// Sends a message to the method of this path, and returns that of the response.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(&mut self, path: &str, message: &[u8]) -> Result<Vec<u8>, CallError> {
        let response = self.exchange(path, message)?;
        let http = || response.status.map_or("none".to_owned(), |status| status.to_string());
        match response.grpc_status {
            Some(OK) => unary_message(&response.body).map(<[u8]>::to_vec).map_err(CallError::Broken),
            Some(status) => {
                let text = response.grpc_message.as_deref().unwrap_or_default();
                Err(CallError::Status(status, percent_decode_str(text).decode_utf8_lossy().into_owned()))
            }
            None => Err(CallError::Broken(format!("expected a status of gRPC, found HTTP status {}", http()))),
        }
    }

    fn exchange(&mut self, path: &str, message: &[u8]) -> Result<Response, CallError> {
        let path = (":path".to_owned(), path.to_owned());
        let number = self.fields.iter().position(|known| *known == path).unwrap_or(self.fields.len());
        if number == self.fields.len() {
            self.fields.push(path);
        }
        // Pseudo-header fields come first.
        let numbers: Vec<usize> = std::iter::once(number).chain(0..self.common).collect();
        self.session.request(&self.fields, &numbers, &prefixed(message), 0, &mut self.out);
        loop {
            for event in std::mem::take(&mut self.events) {
                match event {
                    Event::FirstByte(_) | Event::Progress(_) => {}
                    Event::Complete(_, response) => return Ok(response),
                    Event::Failed(_, why) => return Err(CallError::Broken(why.to_string())),
                }
            }
            self.exchange_bytes()?;
        }
    }

    /// Sends pending bytes, then waits for bytes of the server, or for room to send more, and processes them.
    fn exchange_bytes(&mut self) -> Result<(), CallError> {
        self.transport.send(&mut self.out)?;
        self.wait_for(if self.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT })?;
        let (mut raw, mut plain) = (vec![0; 64 * 1024], Vec::new());
        match self.transport.receive(&mut raw, &mut plain)? {
            Chunk::Empty => {}
            Chunk::End => return Err(CallError::Broken("the server closed the connection".to_owned())),
            Chunk::Bytes(bytes, _) => {
                let received = self.session.receive(bytes, &mut self.out, &mut self.events);
                received.map_err(|violation| CallError::Broken(violation.to_string()))?;
            }
        }
        Ok(self.transport.send(&mut self.out)?)
    }

    fn wait_for(&self, what: PollFlags) -> Result<(), CallError> {
        let left = self.until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).map_err(|error| CallError::Broken(error.to_string()))?;
        match poll(&mut [PollFd::new(&self.transport, what)], Some(&wait)) {
            Ok(0) => Err(CallError::Broken("timeout: the server did not answer in time".to_owned())),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(CallError::Broken(error.to_string())),
        }
    }
}

impl From<TransportError> for CallError {
    fn from(broken: TransportError) -> CallError {
        CallError::Broken(broken.detail)
    }
}
