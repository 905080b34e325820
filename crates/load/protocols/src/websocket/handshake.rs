//! The opening handshake (RFC 6455, section 4.1): writes the request, and checks the response.

use super::Event;
use crate::http::response::{Progress, ResponseReader, Sink};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// The text that is appended to the key before it is hashed (RFC 6455, 1.3).
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const EXTENSION: &str = "permessage-deflate";
/// The parameters by which each message is compressed on its own.
const PARAMETERS: [&str; 2] = ["server_no_context_takeover", "client_no_context_takeover"];

/// The largest head of a response.
const LARGEST_HEAD: usize = 64 << 10;

/// The most bytes of a refusal's body that are kept.
const KEPT_OF_REFUSAL: usize = 1024;

/// The request of a handshake.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a> {
    /// Path and query.
    pub target: &'a str,
    /// `Host` and other headers, without those of the handshake itself.
    pub headers: &'a [(String, String)],
    /// The subprotocols of which the server may choose one.
    pub subprotocols: &'a [String],
    /// True if compression is offered.
    pub deflate: bool,
}

/// The part of a handshake behind the header lines of its request, which are written already.
#[derive(Clone, Copy, Debug)]
pub struct Upgrade<'a> {
    /// The subprotocols of which the server may choose one.
    pub subprotocols: &'a [String],
    /// True if compression is offered.
    pub deflate: bool,
}

/// The response of the server to a handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandshakeResponse {
    /// The status of HTTP.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// Names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body of a refusal, up to a kilobyte.
    pub body: Vec<u8>,
}

/// The response that opens the socket.
#[derive(Debug)]
pub(super) struct ExpectedResponse {
    accept: String,
    /// The server may choose one of these.
    subprotocols: Vec<String>,
    deflate: bool,
}

/// The result of checking a response.
pub(super) enum HandshakeResult {
    /// Its head is incomplete.
    Partial,
    Opened {
        response: HandshakeResponse,
        deflate: bool,
        /// Bytes of its head. The bytes after it are frames.
        taken: usize,
    },
    /// It is no valid response to a handshake.
    Refused(Option<HandshakeResponse>, String),
    /// A response with another status, which may have a body.
    OtherStatus(HandshakeResponse),
}

impl Handshake<'_> {
    /// Writes the request. The key is made of these 16 bytes, which should differ each time.
    pub(super) fn write(&self, high: u64, low: u64, out: &mut Vec<u8>) -> ExpectedResponse {
        out.extend_from_slice(format!("GET {} HTTP/1.1\r\n", self.target).as_bytes());
        for (name, value) in self.headers {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        let expected = Upgrade { subprotocols: self.subprotocols, deflate: self.deflate }.write(high, low, out);
        ExpectedResponse { subprotocols: self.requested_subprotocols(), ..expected }
    }

    /// All requested subprotocols. Scripts may name them in a header too.
    fn requested_subprotocols(&self) -> Vec<String> {
        let headers = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
        let named = headers.flat_map(|(_, value)| value.split(',')).map(|name| name.trim().to_owned());
        self.subprotocols.iter().cloned().chain(named).collect()
    }
}

impl Upgrade<'_> {
    /// Writes the header lines of a handshake, and the end of its head. The key is made of these 16 bytes, which should
    /// differ each time.
    pub(super) fn write(&self, high: u64, low: u64, out: &mut Vec<u8>) -> ExpectedResponse {
        let key = STANDARD.encode([high.to_ne_bytes(), low.to_ne_bytes()].concat());
        let mut line = |name: &str, value: &str| out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
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
        out.extend_from_slice(b"\r\n");
        ExpectedResponse { accept: accept(&key), subprotocols: self.subprotocols.to_vec(), deflate: self.deflate }
    }
}

pub(super) fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(KEY_SUFFIX).finalize())
}

impl ExpectedResponse {
    /// Checks a response of which `bytes` have arrived.
    pub(super) fn check(&self, bytes: &[u8]) -> HandshakeResult {
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut response = httparse::Response::new(&mut headers);
        let taken = match response.parse(bytes) {
            Ok(httparse::Status::Complete(taken)) => taken,
            Ok(httparse::Status::Partial) if bytes.len() <= LARGEST_HEAD => return HandshakeResult::Partial,
            Ok(httparse::Status::Partial) => {
                return HandshakeResult::Refused(None, refused("an answer with less of a head"));
            }
            Err(error) => return HandshakeResult::Refused(None, refused(&format!("an answer of HTTP/1.1 ({error})"))),
        };
        let response = HandshakeResponse::new(&response);
        if response.status != 101 {
            return HandshakeResult::OtherStatus(response);
        }
        match self.fault(&response) {
            None => HandshakeResult::Opened {
                deflate: response.header("sec-websocket-extensions").is_some(),
                response,
                taken,
            },
            Some(fault) => HandshakeResult::Refused(Some(response), fault),
        }
    }

    /// Describes why a response with status 101 does not open the socket.
    fn fault(&self, response: &HandshakeResponse) -> Option<String> {
        let has = |name: &str, token: &str| {
            response
                .header(name)
                .is_some_and(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(token)))
        };
        if !has("upgrade", "websocket") || !has("connection", "upgrade") {
            return Some(refused("the headers `Upgrade: websocket` and `Connection: Upgrade`"));
        }
        if response.header("sec-websocket-accept").map(str::trim) != Some(&self.accept) {
            return Some(refused("the `Sec-WebSocket-Accept` that belongs to our key"));
        }
        if let Some(chosen) = response.header("sec-websocket-protocol")
            && !self.subprotocols.iter().any(|asked| asked == chosen.trim())
        {
            return Some(refused(&format!("a subprotocol that was asked for instead of `{chosen}`")));
        }
        let extensions = response.header("sec-websocket-extensions")?;
        (!self.agrees(extensions))
            .then(|| refused(&format!("extensions as they were offered instead of `{extensions}`")))
    }

    /// True if the server has chosen the offered extension. It must promise to take no context over itself; it need
    /// not repeat our promise.
    fn agrees(&self, extensions: &str) -> bool {
        let mut parts = extensions.split(';').map(str::trim);
        let named = parts.next() == Some(EXTENSION);
        let parameters: Vec<&str> = parts.collect();
        // A server may name its window without being asked to (RFC 7692, 7.1.2.1): any is taken.
        let names_its_window = |parameter: &str| {
            let bits = parameter.strip_prefix("server_max_window_bits=").map(|bits| bits.trim_matches('"').parse());
            bits.is_some_and(|bits: Result<u8, _>| bits.is_ok_and(|bits| (8..=15).contains(&bits)))
        };
        let known = parameters.iter().all(|parameter| PARAMETERS.contains(parameter) || names_its_window(parameter));
        self.deflate && named && known && parameters.contains(&PARAMETERS[0])
    }
}

fn refused(expected: &str) -> String {
    format!("websocket: bad handshake: expected {expected}")
}

impl HandshakeResponse {
    fn new(response: &httparse::Response<'_, '_>) -> HandshakeResponse {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = response.headers.iter().map(|header| (header.name.to_owned(), text(header.value)));
        HandshakeResponse {
            status: response.code.unwrap_or_default(),
            reason: response.reason.unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body: Vec::new(),
        }
    }

    /// The value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A response with another status, until its body is complete.
pub(super) struct Refusal {
    response: HandshakeResponse,
    reader: ResponseReader,
}

impl Refusal {
    pub(super) fn new(response: HandshakeResponse, reader: ResponseReader) -> Refusal {
        Refusal { response, reader }
    }

    /// Processes received bytes, of which the first are the head.
    pub(super) fn take(&mut self, input: &[u8]) -> Option<Event> {
        let progress = self.reader.read(input, &mut BodySink(&mut self.response.body));
        let is_whole = !matches!(progress, Ok(Progress::Partial)) || self.response.body.len() == KEPT_OF_REFUSAL;
        is_whole.then(|| self.event())
    }

    /// Handles the end of the connection.
    pub(super) fn end(mut self) -> Event {
        self.event()
    }

    fn event(&mut self) -> Event {
        let response = std::mem::take(&mut self.response);
        let why = refused(&format!("status 101, found {}", response.status));
        Event::Refused(Some(response), why)
    }
}

struct BodySink<'a>(&'a mut Vec<u8>);

impl Sink for BodySink<'_> {
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
