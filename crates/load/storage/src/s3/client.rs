//! Sends requests over one connection, which it keeps and reopens as needed, and retries failed attempts.

use super::bucket::Bucket;
use super::connection::Connection;
use super::request::{Body, Request};
use super::response::{AttemptError, Response, Retry};
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::record::{ErrorKind, Part};
use plimsoll_protocols::http::response::{Progress, ResponseReader};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The size of a read in bytes.
const READ_SIZE: usize = 256 << 10;

/// The wait before the first retry, unless the server asks for another. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// The longest sleep during a wait; after each, the call is checked for its end.
const SLEEP: Duration = Duration::from_millis(20);

/// Sends requests, one at a time.
pub(super) struct Client {
    bucket: Arc<Bucket>,
    /// The idle connection, if there is one.
    idle: Option<Connection>,
    reader: ResponseReader,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) fn new(bucket: &Arc<Bucket>) -> Client {
        Client { bucket: Arc::clone(bucket), idle: None, reader: ResponseReader::default(), buffer: vec![0; READ_SIZE] }
    }

    /// A client that has a connection.
    pub(super) fn connected(bucket: &Arc<Bucket>) -> Result<Client, Failure> {
        let mut client = Client::new(bucket);
        let mut call = Call::untimed(bucket.timeout);
        let mut connection = client.dial(&call)?;
        connection.record_bytes(&mut call);
        client.idle = Some(connection);
        Ok(client)
    }

    /// Sends a request, with as many retries as the study allows, and returns the successful response. Each
    /// attempt is a part of `call`.
    pub(super) fn send(&mut self, request: &Request<'_>, call: &mut Call) -> Result<Response, Failure> {
        let payload = request.payload(&self.bucket, call)?;
        let mut wait = FIRST_WAIT;
        for retries_left in (0..=self.bucket.settings.retries).rev() {
            let mut retry = Retry::Never;
            let result = call.part(Part::Subrequest, |call| {
                self.attempt(request, &payload, call).map_err(|refused| {
                    retry = refused.retry;
                    // Also where a retry succeeds: that begins another upload.
                    if request.begins_upload() && is_unanswered(refused.failure.kind) {
                        self.bucket.note_unanswered_upload(request.key);
                    }
                    let path = self.bucket.path(request.key);
                    let detail = format!("{} {path}: {}", request.method, refused.failure.detail);
                    Failure { detail, ..refused.failure }
                })
            });
            match (result, retry) {
                (Err(failure), Retry::Soon) if retries_left > 0 => pause(wait, &failure, call)?,
                (Err(failure), Retry::After(wait)) if retries_left > 0 => pause(wait, &failure, call)?,
                (result, _) => return result,
            }
            wait = wait.saturating_mul(2);
        }
        unreachable!("the last attempt returns")
    }

    fn attempt(&mut self, request: &Request<'_>, payload: &str, call: &mut Call) -> Result<Response, AttemptError> {
        let kept = self.idle.take().and_then(|mut kept| kept.is_usable().then_some(kept));
        let mut connection = kept.map_or_else(|| self.dial(call), Ok)?;
        let exchanged = self.exchange(&mut connection, request, payload, call);
        connection.record_bytes(call);
        let (response, keep_alive) = exchanged?;
        self.idle = keep_alive.then_some(connection);
        response.into_result()
    }

    fn dial(&self, call: &Call) -> Result<Connection, Failure> {
        Connection::dial(self.bucket.address, self.bucket.tls.as_ref(), call)
    }

    /// Sends the request and reads the response; returns true with it if the connection can be used again.
    fn exchange(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        payload: &str,
        call: &mut Call,
    ) -> Result<(Response, bool), Failure> {
        let Err(failure) = self.upload(connection, request, payload, call) else {
            return self.receive(connection, request, call);
        };
        // A server that refuses a request may respond and close the connection before it has read all of it.
        match self.receive(connection, request, call) {
            Ok((response, _)) if failure.kind == ErrorKind::Closed && response.status >= 300 => Ok((response, false)),
            _ => Err(failure),
        }
    }

    /// Sends the head and the first bytes of the body in one write, then the rest of the body.
    fn upload(
        &self,
        connection: &mut Connection,
        request: &Request<'_>,
        payload: &str,
        call: &Call,
    ) -> Result<(), Failure> {
        let head = request.head(&self.bucket, payload);
        let first = match request.body {
            Body::Text(text) => text.as_bytes(),
            Body::Sent(span) => span.slice(&self.bucket.content, 0),
            _ => &[],
        };
        connection.send(&mut [IoSlice::new(head.as_bytes()), IoSlice::new(first)], call)?;
        if let Body::Sent(span) = request.body {
            let mut done = first.len() as u64;
            while done < span.length {
                let slice = span.slice(&self.bucket.content, done);
                connection.send(&mut [IoSlice::new(slice)], call)?;
                done += slice.len() as u64;
            }
        }
        connection.flush(call)
    }

    fn receive(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        call: &mut Call,
    ) -> Result<(Response, bool), Failure> {
        let mut response = Response::to(request, &self.bucket);
        self.reader.expect(false);
        loop {
            let count = connection.receive(&mut self.buffer, call)?;
            if count == 0 {
                let is_whole = self.reader.end_of_input().is_some();
                return if is_whole { Ok((response, false)) } else { Err(response.incomplete()) };
            }
            call.saw_first_byte();
            let read = self.reader.read(&self.buffer[..count], &mut response);
            match read.map_err(|violation| Failure::new(ErrorKind::Protocol, violation.to_string()))? {
                Progress::Partial => response.check()?,
                Progress::Complete { keep_alive, unread, .. } => return Ok((response, keep_alive && unread == 0)),
            }
        }
    }
}

/// True if the server may have done what a request asked for, and only its answer is missing.
fn is_unanswered(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::Connect | ErrorKind::Status | ErrorKind::Denied | ErrorKind::Space)
}

/// Waits before a retry. Fails if the call ends meanwhile.
fn pause(wait: Duration, failure: &Failure, call: &Call) -> Result<(), Failure> {
    let start = Instant::now();
    while let Some(left) = wait.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        call.go_on().map_err(|over| Failure::new(over.kind, format!("{}; before: {}", over.detail, failure.detail)))?;
        std::thread::sleep(left.min(SLEEP));
    }
    Ok(())
}
