//! One connection to the server, kept and made again as needed: requests go out, answers come back,
//! and what may be tried again is.

use super::answer::{Again, Answer, Refused};
use super::connection::Connection;
use super::request::{Body, Request};
use super::site::Site;
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::record::{ErrorKind, Part};
use plimsoll_protocols::http::response::{Progress, ResponseReader};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const READ: usize = 256 << 10;

/// The first wait before another attempt, where the server asks for none; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// The longest step of a wait, between which the call is asked whether to go on.
const STEP: Duration = Duration::from_millis(20);

/// Sends requests, one at a time.
pub(super) struct Client {
    site: Arc<Site>,
    /// The connection, when nothing is under way on it.
    idle: Option<Connection>,
    reader: ResponseReader,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) fn new(site: &Arc<Site>) -> Client {
        Client { site: Arc::clone(site), idle: None, reader: ResponseReader::default(), buffer: vec![0; READ] }
    }

    /// A client that has a connection.
    pub(super) fn connected(site: &Arc<Site>) -> Result<Client, Failure> {
        let mut client = Client::new(site);
        let mut call = Call::untimed(site.timeout);
        let mut connection = client.dial(&call)?;
        connection.account(&mut call);
        client.idle = Some(connection);
        Ok(client)
    }

    /// Sends a request as often as the study allows, and returns the answer if it is a success.
    /// Each attempt is a part of `call` of its own.
    pub(super) fn send(&mut self, request: &Request<'_>, call: &mut Call) -> Result<Answer, Failure> {
        let payload = request.payload(&self.site, call)?;
        let mut wait = FIRST_WAIT;
        for retries_left in (0..=self.site.settings.retries).rev() {
            let mut again = Again::Never;
            let result = call.part(Part::Subrequest, |call| {
                self.attempt(request, &payload, call).map_err(|refused| {
                    again = refused.again;
                    let path = self.site.path(request.key);
                    let detail = format!("{} {path}: {}", request.method, refused.failure.detail);
                    Failure { detail, ..refused.failure }
                })
            });
            match (result, again) {
                (Err(failure), Again::Soon) if retries_left > 0 => pause(wait, &failure, call)?,
                (Err(failure), Again::After(wait)) if retries_left > 0 => pause(wait, &failure, call)?,
                (result, _) => return result,
            }
            wait = wait.saturating_mul(2);
        }
        unreachable!("the last attempt returns")
    }

    fn attempt(&mut self, request: &Request<'_>, payload: &str, call: &mut Call) -> Result<Answer, Refused> {
        let kept = self.idle.take().and_then(|mut kept| kept.is_usable().then_some(kept));
        let mut connection = kept.map_or_else(|| self.dial(call), Ok)?;
        let exchanged = self.exchange(&mut connection, request, payload, call);
        connection.account(call);
        let (answer, keep_alive) = exchanged?;
        self.idle = keep_alive.then_some(connection);
        answer.judged()
    }

    fn dial(&self, call: &Call) -> Result<Connection, Failure> {
        Connection::dial(self.site.address, self.site.tls.as_ref(), call)
    }

    /// Sends the request and reads the answer; says whether the connection can be used again.
    fn exchange(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_>,
        payload: &str,
        call: &mut Call,
    ) -> Result<(Answer, bool), Failure> {
        let Err(failure) = self.upload(connection, request, payload, call) else {
            return self.receive(connection, request, call);
        };
        // A server that refuses a request may answer and hang up before it has read all of it.
        match self.receive(connection, request, call) {
            Ok((answer, _)) if failure.kind == ErrorKind::Closed && answer.status >= 300 => Ok((answer, false)),
            _ => Err(failure),
        }
    }

    /// Sends the head with what follows first in one write, then whatever else follows.
    fn upload(
        &self,
        connection: &mut Connection,
        request: &Request<'_>,
        payload: &str,
        call: &Call,
    ) -> Result<(), Failure> {
        let head = request.head(&self.site, payload);
        let first = match request.body {
            Body::Text(text) => text.as_bytes(),
            Body::Sent(span) => span.slice(&self.site.content, 0),
            _ => &[],
        };
        connection.send(&mut [IoSlice::new(head.as_bytes()), IoSlice::new(first)], call)?;
        if let Body::Sent(span) = request.body {
            let mut done = first.len() as u64;
            while done < span.length {
                let slice = span.slice(&self.site.content, done);
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
    ) -> Result<(Answer, bool), Failure> {
        let mut answer = Answer::to(request, &self.site);
        self.reader.expect(false);
        loop {
            let count = connection.receive(&mut self.buffer, call)?;
            if count == 0 {
                let is_whole = self.reader.end_of_input().is_some();
                return if is_whole { Ok((answer, false)) } else { Err(answer.cut_short()) };
            }
            call.saw_first_byte();
            let read = self.reader.read(&self.buffer[..count], &mut answer);
            match read.map_err(|violation| Failure::new(ErrorKind::Protocol, violation.to_string()))? {
                Progress::Partial => answer.check()?,
                Progress::Complete { keep_alive, unread, .. } => return Ok((answer, keep_alive && unread == 0)),
            }
        }
    }
}

/// Waits before another attempt, as long as the call goes on.
fn pause(wait: Duration, failure: &Failure, call: &Call) -> Result<(), Failure> {
    let start = Instant::now();
    while let Some(left) = wait.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        call.go_on().map_err(|over| Failure::new(over.kind, format!("{}; before: {}", over.detail, failure.detail)))?;
        std::thread::sleep(left.min(STEP));
    }
    Ok(())
}
