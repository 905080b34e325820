//! The client's side of a WebSocket (RFC 6455) as a sans-IO state machine: the opening handshake, messages in any
//! pieces, pings and closing. It supports `permessage-deflate` (RFC 7692) without context takeover on either side.

mod deflate;
mod frame;
mod handshake;

use crate::control_replies::{ControlReplies, TooManyReplies};
use crate::http::response::ResponseReader;
use frame::{Frame, Header, LARGEST_CONTROL, OWN_CONTROL_HEADER, opcode};
use handshake::{HandshakeResult, Refusal};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

pub use handshake::{Handshake, HandshakeResponse, Upgrade};

/// The largest message that is accepted where nothing else is said, in bytes.
const LARGEST_MESSAGE: usize = 64 << 20;

/// The largest capacity of an empty buffer, in bytes.
const KEPT_CAPACITY: usize = 16 << 10;

/// Status codes of closing (RFC 6455, 7.4.1).
mod code {
    pub(super) const PROTOCOL: u16 = 1002;
    pub(super) const NO_STATUS: u16 = 1005;
    pub(super) const ABNORMAL: u16 = 1006;
    pub(super) const NOT_UTF_8: u16 = 1007;
    pub(super) const POLICY: u16 = 1008;
    pub(super) const TOO_LARGE: u16 = 1009;
}

/// One socket, from its opening request on.
pub struct Socket {
    stage: Stage,
    /// Masks of frames. They protect proxies from crafted content; here they need not be unpredictable.
    random: Pcg64Mcg,
    deflate: bool,
    /// The received part of an incomplete response or frame.
    partial: Vec<u8>,
    message: Option<Message>,
    /// The largest message that is accepted, in bytes.
    largest: usize,
    replies: ControlReplies,
}

enum Stage {
    /// The handshake request is sent, its response is awaited.
    Opening(Box<handshake::ExpectedResponse>),
    /// The response refuses the handshake; the rest of its body is awaited.
    Refused(Box<Refusal>),
    Open,
    /// We have sent a closing frame, the peer has not.
    Closing,
    Closed,
}

/// A message whose last fragment is still missing.
struct Message {
    is_text: bool,
    compressed: bool,
    bytes: Vec<u8>,
}

/// An event of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake has succeeded, with this response.
    Opened(HandshakeResponse),
    /// The handshake has failed, with the response, if any, and the reason.
    Refused(Option<HandshakeResponse>, String),
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A ping. The pong is already written.
    Ping,
    /// A pong, with its payload.
    Pong(Vec<u8>),
    /// The peer has closed the socket, or the connection has ended.
    Closed {
        /// The status code of closing.
        code: u16,
        /// The reason that was given.
        reason: String,
    },
    /// The peer violated the protocol. A closing frame is written, and the socket is closed.
    Broken(String),
}

/// A violation of the protocol by the peer: the status code of our closing frame, and a description.
#[derive(Debug)]
struct Violation(u16, String);

impl From<TooManyReplies> for Violation {
    fn from(error: TooManyReplies) -> Violation {
        Violation(code::POLICY, error.to_string())
    }
}

impl Violation {
    fn new(text: impl Into<String>) -> Violation {
        Violation(code::PROTOCOL, text.into())
    }
}

impl Socket {
    /// Creates a socket, and writes its handshake request.
    pub fn open(handshake: &Handshake<'_>, seed: u64, out: &mut Vec<u8>) -> Socket {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let expected = handshake.write(random.next_u64(), random.next_u64(), out);
        Socket::opening(expected, random, LARGEST_MESSAGE)
    }

    /// Creates a socket, and completes its handshake request, whose head stands in `out` up to its last header line. It
    /// accepts messages of up to `largest` bytes.
    pub fn upgrade(upgrade: Upgrade<'_>, seed: u64, largest: usize, out: &mut Vec<u8>) -> Socket {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let expected = upgrade.write(random.next_u64(), random.next_u64(), out);
        Socket::opening(expected, random, largest)
    }

    fn opening(expected: handshake::ExpectedResponse, random: Pcg64Mcg, largest: usize) -> Socket {
        let stage = Stage::Opening(Box::new(expected));
        let (partial, message, replies) = (Vec::new(), None, ControlReplies::default());
        Socket { stage, random, deflate: false, partial, message, largest, replies }
    }

    /// True if nothing more can be sent or received.
    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    /// Sends a text message. Like all sending, it does nothing if the socket is not open.
    pub fn send_text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.send_message(opcode::TEXT, text.as_bytes(), out);
    }

    /// Sends a binary message.
    pub fn send_binary(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.send_message(opcode::BINARY, bytes, out);
    }

    /// Sends a ping. Its payload is cut at 125 bytes.
    pub fn ping(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        if matches!(self.stage, Stage::Open) {
            self.write(opcode::PING, &payload[..payload.len().min(LARGEST_CONTROL)], out);
        }
    }

    /// Sends a closing frame, which the peer must return. The reason is cut at 123 bytes.
    pub fn close(&mut self, code: u16, reason: &str, out: &mut Vec<u8>) {
        if matches!(self.stage, Stage::Open) {
            self.write_close(code, reason, out);
            self.stage = Stage::Closing;
        }
    }

    /// Bytes of a message that has not arrived as a whole.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.partial.capacity() + self.message.as_ref().map_or(0, |message| message.bytes.capacity())
    }

    /// Processes received bytes.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) {
        self.replies.see_output(out);
        if let Stage::Refused(refusal) = &mut self.stage {
            let refused = refusal.take(input);
            return self.close_if_refused(refused, events);
        }
        if self.partial.is_empty() {
            let taken = self.take(input, out, events);
            if !self.is_closed() {
                self.partial.extend_from_slice(&input[taken..]);
            }
            return;
        }
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(input);
        let taken = self.take(&bytes, out, events);
        bytes.drain(..taken);
        if !(bytes.is_empty() && bytes.capacity() > KEPT_CAPACITY) {
            self.partial = bytes;
        }
    }

    /// Handles the end of the connection.
    pub fn end_of_input(&mut self, events: &mut Vec<Event>) {
        match std::mem::replace(&mut self.stage, Stage::Closed) {
            Stage::Opening(_) => {
                let why = "expected an answer to the handshake, found the end of the connection".to_owned();
                events.push(Event::Refused(None, why));
            }
            Stage::Refused(refusal) => events.push(refusal.end()),
            Stage::Open | Stage::Closing => {
                events.push(Event::Closed { code: code::ABNORMAL, reason: "unexpected EOF".to_owned() });
            }
            Stage::Closed => {}
        }
    }

    /// Processes the complete frames in `bytes`, and returns their length.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) -> usize {
        let mut taken = 0;
        if let Stage::Opening(expected) = &self.stage {
            match expected.check(bytes) {
                HandshakeResult::Partial => return 0,
                HandshakeResult::Opened { response, deflate, taken: head } => {
                    (self.stage, self.deflate, taken) = (Stage::Open, deflate, head);
                    events.push(Event::Opened(response));
                }
                HandshakeResult::Refused(response, why) => {
                    self.stage = Stage::Closed;
                    events.push(Event::Refused(response, why));
                }
                HandshakeResult::OtherStatus(response) => {
                    let mut refusal = Refusal::new(response, ResponseReader::default());
                    let refused = refusal.take(bytes);
                    self.stage = Stage::Refused(Box::new(refusal));
                    self.close_if_refused(refused, events);
                    return bytes.len();
                }
            }
        }
        while !self.is_closed() {
            match self.take_frame(&bytes[taken..], out, events) {
                Ok(0) => break,
                Ok(length) => taken += length,
                Err(Violation(code, text)) => {
                    self.write_close(code, "", out);
                    self.stage = Stage::Closed;
                    events.push(Event::Broken(text));
                }
            }
        }
        taken
    }

    fn close_if_refused(&mut self, refused: Option<Event>, events: &mut Vec<Event>) {
        if let Some(refused) = refused {
            self.stage = Stage::Closed;
            events.push(refused);
        }
    }

    /// Processes one frame, and returns its length; zero if it is incomplete.
    fn take_frame(&mut self, bytes: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) -> Result<usize, Violation> {
        let Some(header) = Header::read(bytes)? else { return Ok(0) };
        let so_far = self.message.as_ref().map_or(0, |message| message.bytes.len());
        if header.length > (self.largest - so_far) as u64 {
            return Err(too_large(self.largest));
        }
        let end = header.size + header.length as usize;
        let Some(payload) = bytes.get(header.size..end) else { return Ok(0) };
        if header.opcode >= opcode::CLOSE {
            self.take_control(&header, payload, out, events)?;
        } else {
            self.take_data(&header, payload, events)?;
        }
        Ok(end)
    }

    fn take_data(&mut self, header: &Header, payload: &[u8], events: &mut Vec<Event>) -> Result<(), Violation> {
        if header.compressed && (!self.deflate || header.opcode == opcode::CONTINUATION) {
            return Err(Violation::new("expected a frame without RSV1, which nobody agreed on"));
        }
        let is_text = header.opcode == opcode::TEXT;
        let mut message = match (header.opcode, self.message.take()) {
            (opcode::CONTINUATION, Some(message)) => message,
            (opcode::CONTINUATION, None) => return Err(Violation::new("expected a message before its continuation")),
            (_, Some(_)) => return Err(Violation::new("expected the rest of a message before the next one")),
            (_, None) => Message { is_text, compressed: header.compressed, bytes: Vec::new() },
        };
        message.bytes.extend_from_slice(payload);
        if header.is_last {
            events.push(message.into_event(self.largest)?);
        } else {
            self.message = Some(message);
        }
        Ok(())
    }

    fn take_control(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Violation> {
        if !header.is_last || payload.len() > LARGEST_CONTROL || header.compressed {
            return Err(Violation::new("expected a control frame in one piece of at most 125 bytes, uncompressed"));
        }
        match header.opcode {
            opcode::PING => {
                // Nothing may follow our own closing frame.
                if matches!(self.stage, Stage::Open) {
                    self.replies.add(OWN_CONTROL_HEADER + payload.len())?;
                    self.write(opcode::PONG, payload, out);
                }
                events.push(Event::Ping);
            }
            opcode::PONG => events.push(Event::Pong(payload.to_vec())),
            _ => {
                let (code, reason) = read_close(payload)?;
                if matches!(self.stage, Stage::Open) {
                    self.write(opcode::CLOSE, &payload[..payload.len().min(2)], out);
                }
                self.stage = Stage::Closed;
                events.push(Event::Closed { code, reason });
            }
        }
        Ok(())
    }

    fn send_message(&mut self, opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
        if !matches!(self.stage, Stage::Open) {
            return;
        }
        if self.deflate {
            let payload = deflate::compress(payload);
            Frame { opcode, compressed: true, payload: &payload }.write(self.mask(), out);
        } else {
            self.write(opcode, payload, out);
        }
    }

    fn write(&mut self, opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
        Frame { opcode, compressed: false, payload }.write(self.mask(), out);
    }

    fn write_close(&mut self, code: u16, reason: &str, out: &mut Vec<u8>) {
        let mut length = reason.len().min(LARGEST_CONTROL - 2);
        while !reason.is_char_boundary(length) {
            length -= 1;
        }
        // These codes only describe how a connection ended, and are never sent.
        let payload = match code {
            code::NO_STATUS | code::ABNORMAL => Vec::new(),
            code => [&code.to_be_bytes()[..], &reason.as_bytes()[..length]].concat(),
        };
        self.write(opcode::CLOSE, &payload, out);
    }

    fn mask(&mut self) -> [u8; 4] {
        self.random.next_u32().to_ne_bytes()
    }
}

impl Message {
    /// The event of a complete message.
    fn into_event(self, largest: usize) -> Result<Event, Violation> {
        let bytes = match self.compressed {
            true => deflate::decompress(&self.bytes, largest)?,
            false => self.bytes,
        };
        if !self.is_text {
            return Ok(Event::Binary(bytes));
        }
        let text = String::from_utf8(bytes);
        text.map(Event::Text).map_err(|_| Violation(code::NOT_UTF_8, "expected a text in UTF-8".to_owned()))
    }
}

/// Reads status code and reason of a closing frame (RFC 6455, 5.5.1 and 7.4).
fn read_close(payload: &[u8]) -> Result<(u16, String), Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return match payload {
            [] => Ok((code::NO_STATUS, String::new())),
            _ => Err(Violation::new("expected two bytes of a code in a closing frame, found one")),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Violation::new(format!("expected a code that a closing frame may have, found {code}")));
    }
    match String::from_utf8(reason.to_vec()) {
        Ok(reason) => Ok((code, reason)),
        Err(_) => Err(Violation(code::NOT_UTF_8, "expected a reason in UTF-8".to_owned())),
    }
}

fn too_large(largest: usize) -> Violation {
    Violation(code::TOO_LARGE, format!("expected a message of at most {largest} bytes, found a larger one"))
}

#[cfg(test)]
mod tests;
