//! Fetches message types from a server by gRPC reflection, each request as a call of its own. The connection closes
//! before any load is sent.

use super::hpack::Field;
use super::session::{Event, Response, Session};
use super::{prefixed, status_name, unary_message};
use plimsoll_engine::transport::{Chunk, Dialer, Transport, TransportError};
use plimsoll_grpc::reflection::{Inquiry, PATHS};
use plimsoll_grpc::status::{OK, UNIMPLEMENTED};
use prost_reflect::DescriptorPool;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// Fetches the types of these services.
pub(super) fn fetch_types(
    dialer: &Dialer,
    authority: &str,
    services: &[&str],
    timeout: Duration,
) -> Result<DescriptorPool, String> {
    let mut client = ReflectionClient::connect(dialer, authority, timeout)?;
    let mut inquiry = Inquiry::about(services.iter().copied());
    while let Some(request) = inquiry.question() {
        inquiry.take(&client.call(&request)?)?;
    }
    inquiry.pool()
}

/// A connection that makes one reflection call at a time.
struct ReflectionClient {
    transport: Transport,
    session: Session,
    out: Vec<u8>,
    events: Vec<Event>,
    /// The header fields of every request, then the path of each version of the service.
    fields: Vec<Field>,
    version: usize,
    until: Instant,
}

/// The number of fields of every request.
const COMMON: usize = 5;

impl ReflectionClient {
    fn connect(dialer: &Dialer, authority: &str, timeout: Duration) -> Result<ReflectionClient, String> {
        let transport = dialer.dial().map_err(|broken| broken.detail)?;
        let mut out = Vec::new();
        let session = Session::open(&mut out);
        let mut client = ReflectionClient {
            transport,
            session,
            out,
            events: Vec::new(),
            fields: fields(authority, if dialer.tls.is_some() { "https" } else { "http" }),
            version: 0,
            until: Instant::now() + timeout,
        };
        client.wait_for(PollFlags::OUT)?;
        client.transport.connected().map_err(in_words)?;
        while client.session.capacity() == 0 {
            client.exchange_bytes()?;
        }
        Ok(client)
    }

    fn call(&mut self, request: &[u8]) -> Result<Vec<u8>, String> {
        loop {
            let response = self.exchange(&prefixed(request))?;
            match response.grpc_status {
                Some(UNIMPLEMENTED) if self.version + 1 < PATHS.len() => self.version += 1,
                Some(UNIMPLEMENTED) => {
                    return Err("the server has no reflection; name its .proto files as `proto` instead".to_owned());
                }
                Some(OK) => return unary_message(&response.body).map(<[u8]>::to_vec),
                status => {
                    let found = status.map_or("none".to_owned(), status_name);
                    return Err(format!("expected gRPC status OK from the server's reflection, found {found}"));
                }
            }
        }
    }

    fn exchange(&mut self, message: &[u8]) -> Result<Response, String> {
        let ticket = 0;
        // Pseudo-header fields come first.
        let numbers = [COMMON + self.version, 0, 1, 2, 3, 4];
        self.session.request(&self.fields, &numbers, message, ticket, &mut self.out);
        loop {
            for event in std::mem::take(&mut self.events) {
                match event {
                    Event::FirstByte(_) | Event::Progress(_) => {}
                    Event::Complete(_, response) => return Ok(response),
                    Event::Failed(_, why) => return Err(why.to_string()),
                }
            }
            self.exchange_bytes()?;
        }
    }

    /// Sends pending bytes, then waits for bytes of the server and processes them.
    fn exchange_bytes(&mut self) -> Result<(), String> {
        self.transport.send(&mut self.out).map_err(in_words)?;
        self.wait_for(PollFlags::IN)?;
        let (mut raw, mut plain) = (vec![0; 64 * 1024], Vec::new());
        match self.transport.receive(&mut raw, &mut plain).map_err(in_words)? {
            Chunk::Empty => {}
            Chunk::End => return Err("the server closed the connection while asked for reflection".to_owned()),
            Chunk::Bytes(bytes, _) => {
                self.session
                    .receive(bytes, &mut self.out, &mut self.events)
                    .map_err(|violation| violation.to_string())?;
            }
        }
        self.transport.send(&mut self.out).map_err(in_words)
    }

    fn wait_for(&self, what: PollFlags) -> Result<(), String> {
        let left = self.until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).map_err(|error| error.to_string())?;
        match poll(&mut [PollFd::new(&self.transport, what)], Some(&wait)) {
            Ok(0) => Err("the server did not answer the request for reflection in time".to_owned()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn fields(authority: &str, scheme: &str) -> Vec<Field> {
    let common: [(&str, &str); COMMON] = [
        (":method", "POST"),
        (":scheme", scheme),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let common = common.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let paths = PATHS.iter().map(|path| (":path".to_owned(), (*path).to_owned()));
    common.chain(paths).collect()
}

fn in_words(broken: TransportError) -> String {
    broken.detail
}
