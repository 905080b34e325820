//! The opening handshake (RFC 6455, section 4.1): the request, and whether its answer opens the socket.

use super::Event;
use crate::http::response::{Progress, ResponseReader, Sink};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// What is appended to the key before it is hashed (RFC 6455, 1.3).
const APPENDED: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const EXTENSION: &str = "permessage-deflate";
/// The parameters under which each message stands on its own.
const PARAMETERS: [&str; 2] = ["server_no_context_takeover", "client_no_context_takeover"];

/// The largest answer that is read for its head.
const LARGEST_HEAD: usize = 64 << 10;

/// How much of a refusal's body is kept.
const KEPT_OF_REFUSAL: usize = 1024;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// Path and query.
    pub target: &'a str,
    /// `Host` and whatever else is to be said, but none of the headers that open a socket.
    pub headers: &'a [(String, String)],
    /// The subprotocols of which the server may choose one.
    pub subprotocols: &'a [String],
    /// True if compression is offered.
    pub deflate: bool,
}

/// What the server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// Names and values, in order.
    pub headers: Vec<(String, String)>,
    /// Of a refusal, up to a kilobyte.
    pub body: Vec<u8>,
}

/// What a server has to answer.
#[derive(Debug)]
pub(super) struct Expected {
    accept: String,
    /// One of these may be chosen.
    subprotocols: Vec<String>,
    deflate: bool,
}

/// What bytes are, as an answer.
pub(super) enum Verdict {
    /// Not all of its head.
    Partial,
    Opened {
        answer: Answer,
        deflate: bool,
        /// Bytes of its head. What follows is of the socket.
        taken: usize,
    },
    /// It opens nothing.
    Refused(Option<Answer>, String),
    /// Another answer of HTTP, which has a body.
    Other(Answer),
}

impl Opening<'_> {
    /// Writes the request; the key is made of 16 bytes that should be different each time.
    pub(super) fn write(&self, high: u64, low: u64, out: &mut Vec<u8>) -> Expected {
        let key = STANDARD.encode([high.to_ne_bytes(), low.to_ne_bytes()].concat());
        let mut head = format!("GET {} HTTP/1.1\r\n", self.target);
        let mut line = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
        self.headers.iter().for_each(|(name, value)| line(name, value));
        line("Upgrade", "websocket");
        line("Connection", "Upgrade");
        line("Sec-WebSocket-Key", &key);
        line("Sec-WebSocket-Version", "13");
        if !self.subprotocols.is_empty() {
            line("Sec-WebSocket-Protocol", &self.subprotocols.join(", "));
        }
        if self.deflate {
            line("Sec-WebSocket-Extensions", &[EXTENSION, PARAMETERS[0], PARAMETERS[1]].join("; "));
        }
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(b"\r\n");
        Expected { accept: accept(&key), subprotocols: self.asked(), deflate: self.deflate }
    }

    /// All subprotocols that are asked for: scripts may name them in a header too.
    fn asked(&self) -> Vec<String> {
        let headers = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
        let named = headers.flat_map(|(_, value)| value.split(',')).map(|name| name.trim().to_owned());
        self.subprotocols.iter().cloned().chain(named).collect()
    }
}

pub(super) fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(APPENDED).finalize())
}

impl Expected {
    /// Judges the answer of which `bytes` have come.
    pub(super) fn judge(&self, bytes: &[u8]) -> Verdict {
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut response = httparse::Response::new(&mut headers);
        let taken = match response.parse(bytes) {
            Ok(httparse::Status::Complete(taken)) => taken,
            Ok(httparse::Status::Partial) if bytes.len() <= LARGEST_HEAD => return Verdict::Partial,
            Ok(httparse::Status::Partial) => return Verdict::Refused(None, refused("an answer with less of a head")),
            Err(error) => return Verdict::Refused(None, refused(&format!("an answer of HTTP/1.1 ({error})"))),
        };
        let answer = Answer::new(&response);
        if answer.status != 101 {
            return Verdict::Other(answer);
        }
        match self.fault(&answer) {
            None => Verdict::Opened { deflate: answer.header("sec-websocket-extensions").is_some(), answer, taken },
            Some(fault) => Verdict::Refused(Some(answer), fault),
        }
    }

    /// Why an answer that means to open the socket does not.
    fn fault(&self, answer: &Answer) -> Option<String> {
        let has = |name: &str, token: &str| {
            answer.header(name).is_some_and(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(token)))
        };
        if !has("upgrade", "websocket") || !has("connection", "upgrade") {
            return Some(refused("the headers `Upgrade: websocket` and `Connection: Upgrade`"));
        }
        if answer.header("sec-websocket-accept").map(str::trim) != Some(&self.accept) {
            return Some(refused("the `Sec-WebSocket-Accept` that belongs to our key"));
        }
        if let Some(chosen) = answer.header("sec-websocket-protocol")
            && !self.subprotocols.iter().any(|asked| asked == chosen.trim())
        {
            return Some(refused(&format!("a subprotocol that was asked for instead of `{chosen}`")));
        }
        let extensions = answer.header("sec-websocket-extensions")?;
        (!self.agrees(extensions))
            .then(|| refused(&format!("extensions as they were offered instead of `{extensions}`")))
    }

    /// True if the server has chosen what was offered: our extension, at least with the server's own promise to take
    /// no context over. Of ours, it need not be told twice.
    fn agrees(&self, extensions: &str) -> bool {
        let mut parts = extensions.split(';').map(str::trim);
        let named = parts.next() == Some(EXTENSION);
        let parameters: Vec<&str> = parts.collect();
        let known = parameters.iter().all(|parameter| PARAMETERS.contains(parameter));
        self.deflate && named && known && parameters.contains(&PARAMETERS[0])
    }
}

fn refused(expected: &str) -> String {
    format!("websocket: bad handshake: expected {expected}")
}

impl Answer {
    fn new(response: &httparse::Response<'_, '_>) -> Answer {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = response.headers.iter().map(|header| (header.name.to_owned(), text(header.value)));
        Answer {
            status: response.code.unwrap_or_default(),
            reason: response.reason.unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body: Vec::new(),
        }
    }

    /// The value of a header; where there are several, of the first.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// An answer that opens nothing, until its body is there.
pub(super) struct Refusal {
    answer: Answer,
    reader: ResponseReader,
}

impl Refusal {
    pub(super) fn new(answer: Answer, reader: ResponseReader) -> Refusal {
        Refusal { answer, reader }
    }

    /// Takes bytes, of which the first are its head.
    pub(super) fn take(&mut self, input: &[u8]) -> Option<Event> {
        let progress = self.reader.read(input, &mut Body(&mut self.answer.body));
        let is_whole = !matches!(progress, Ok(Progress::Partial)) || self.answer.body.len() == KEPT_OF_REFUSAL;
        is_whole.then(|| self.event())
    }

    /// The connection has ended.
    pub(super) fn end(mut self) -> Event {
        self.event()
    }

    fn event(&mut self) -> Event {
        let answer = std::mem::take(&mut self.answer);
        let why = refused(&format!("status 101, found {}", answer.status));
        Event::Refused(Some(answer), why)
    }
}

struct Body<'a>(&'a mut Vec<u8>);

impl Sink for Body<'_> {
    fn body(&mut self, bytes: &[u8]) {
        let room = KEPT_OF_REFUSAL - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6455, section 1.3.
    #[test]
    fn the_key_of_the_rfc_is_accepted_as_the_rfc_has_it() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
