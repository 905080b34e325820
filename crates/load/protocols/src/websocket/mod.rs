//! The client's side of a WebSocket (RFC 6455) as a sans-IO state machine: the opening handshake, messages in any
//! pieces, pings and closing; with `permessage-deflate` (RFC 7692) where both sides have no context takeover.

mod deflate;
mod frame;
mod opening;

use crate::http::response::ResponseReader;
use frame::{Frame, Header, LARGEST_CONTROL, opcode};
use opening::{Refusal, Verdict};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

pub use opening::{Answer, Opening};

/// The largest message that is taken.
const LARGEST_MESSAGE: usize = 64 << 20;

/// What a buffer may hold on to while nothing is in it.
const KEPT: usize = 16 << 10;

/// Status codes of closing (RFC 6455, 7.4.1).
mod code {
    pub(super) const PROTOCOL: u16 = 1002;
    pub(super) const NOTHING_SAID: u16 = 1005;
    pub(super) const NO_FAREWELL: u16 = 1006;
    pub(super) const NOT_UTF_8: u16 = 1007;
    pub(super) const TOO_LARGE: u16 = 1009;
}

/// One socket, from its opening request on.
pub struct Socket {
    stage: Stage,
    /// Masks of frames. They keep proxies from being fooled; nobody has to be unable to guess them here.
    random: Pcg64Mcg,
    deflate: bool,
    /// What has come of an answer or of a frame, and is not whole yet.
    partial: Vec<u8>,
    message: Option<Message>,
}

enum Stage {
    /// The answer to the opening request is awaited.
    Opening(Box<opening::Expected>),
    /// The answer is a refusal, of which the body is still to come.
    Refused(Box<Refusal>),
    Open,
    /// We have said that it is over, the peer has not.
    Closing,
    Over,
}

/// A message whose last fragment has not come.
struct Message {
    is_text: bool,
    compressed: bool,
    bytes: Vec<u8>,
}

/// What happened on a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over, with this answer.
    Opened(Answer),
    /// There is no socket, with the reason in words.
    Refused(Option<Answer>, String),
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A ping. It was answered.
    Ping,
    /// A pong, with its payload.
    Pong(Vec<u8>),
    /// The peer has closed, or the connection has ended.
    Closed {
        /// The status code of closing.
        code: u16,
        /// The reason that was given.
        reason: String,
    },
    /// The peer broke the protocol. It was told so, and the socket is over.
    Broken(String),
}

/// What is wrong with what the peer sent, and the code with which it is told so.
#[derive(Debug)]
struct Violation(u16, String);

impl Violation {
    fn new(text: impl Into<String>) -> Violation {
        Violation(code::PROTOCOL, text.into())
    }
}

impl Socket {
    /// A socket that is being opened: writes the request for that.
    pub fn open(opening: &Opening<'_>, seed: u64, out: &mut Vec<u8>) -> Socket {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let expected = opening.write(random.next_u64(), random.next_u64(), out);
        let stage = Stage::Opening(Box::new(expected));
        Socket { stage, random, deflate: false, partial: Vec::new(), message: None }
    }

    /// True if nothing more goes in either direction.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Sends a message of text. Like all that is sent: nothing, where the socket is not open.
    pub fn send_text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.send_message(opcode::TEXT, text.as_bytes(), out);
    }

    /// Sends a message of bytes.
    pub fn send_binary(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.send_message(opcode::BINARY, bytes, out);
    }

    /// Sends a ping; of its payload at most 125 bytes.
    pub fn ping(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        if matches!(self.stage, Stage::Open) {
            self.write(opcode::PING, &payload[..payload.len().min(LARGEST_CONTROL)], out);
        }
    }

    /// Says that it is over; the peer is to say the same. A reason is cut at 123 bytes.
    pub fn close(&mut self, code: u16, reason: &str, out: &mut Vec<u8>) {
        if matches!(self.stage, Stage::Open) {
            self.write_close(code, reason, out);
            self.stage = Stage::Closing;
        }
    }

    /// Takes bytes that came.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) {
        if let Stage::Refused(refusal) = &mut self.stage {
            let refused = refusal.take(input);
            return self.refuse_if(refused, events);
        }
        if self.partial.is_empty() {
            let taken = self.take(input, out, events);
            if !self.is_over() {
                self.partial.extend_from_slice(&input[taken..]);
            }
            return;
        }
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(input);
        let taken = self.take(&bytes, out, events);
        bytes.drain(..taken);
        if !(bytes.is_empty() && bytes.capacity() > KEPT) {
            self.partial = bytes;
        }
    }

    /// The peer has ended its side.
    pub fn end_of_input(&mut self, events: &mut Vec<Event>) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Opening(_) => {
                let why = "expected an answer to the handshake, found the end of the connection".to_owned();
                events.push(Event::Refused(None, why));
            }
            Stage::Refused(refusal) => events.push(refusal.end()),
            Stage::Open | Stage::Closing => {
                events.push(Event::Closed { code: code::NO_FAREWELL, reason: "unexpected EOF".to_owned() });
            }
            Stage::Over => {}
        }
    }

    /// Takes what is whole in `bytes`, and says how much that was.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) -> usize {
        let mut taken = 0;
        if let Stage::Opening(expected) = &self.stage {
            match expected.judge(bytes) {
                Verdict::Partial => return 0,
                Verdict::Opened { answer, deflate, taken: head } => {
                    (self.stage, self.deflate, taken) = (Stage::Open, deflate, head);
                    events.push(Event::Opened(answer));
                }
                Verdict::Refused(answer, why) => {
                    self.stage = Stage::Over;
                    events.push(Event::Refused(answer, why));
                }
                Verdict::Other(answer) => {
                    let mut refusal = Refusal::new(answer, ResponseReader::default());
                    let refused = refusal.take(bytes);
                    self.stage = Stage::Refused(Box::new(refusal));
                    self.refuse_if(refused, events);
                    return bytes.len();
                }
            }
        }
        while !self.is_over() {
            match self.take_frame(&bytes[taken..], out, events) {
                Ok(0) => break,
                Ok(length) => taken += length,
                Err(Violation(code, text)) => {
                    self.write_close(code, "", out);
                    self.stage = Stage::Over;
                    events.push(Event::Broken(text));
                }
            }
        }
        taken
    }

    fn refuse_if(&mut self, refused: Option<Event>, events: &mut Vec<Event>) {
        if let Some(refused) = refused {
            self.stage = Stage::Over;
            events.push(refused);
        }
    }

    /// Takes one frame, and says how long it was: nothing, if it is not whole.
    fn take_frame(&mut self, bytes: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) -> Result<usize, Violation> {
        let Some(header) = Header::read(bytes)? else { return Ok(0) };
        let so_far = self.message.as_ref().map_or(0, |message| message.bytes.len());
        if header.length > (LARGEST_MESSAGE - so_far) as u64 {
            return Err(too_large());
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
            events.push(message.whole()?);
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
                // Behind our own farewell nothing may follow.
                if matches!(self.stage, Stage::Open) {
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
                self.stage = Stage::Over;
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
        // A code that only says how a connection ended is not sent.
        let payload = match code {
            code::NOTHING_SAID | code::NO_FAREWELL => Vec::new(),
            code => [&code.to_be_bytes()[..], &reason.as_bytes()[..length]].concat(),
        };
        self.write(opcode::CLOSE, &payload, out);
    }

    fn mask(&mut self) -> [u8; 4] {
        self.random.next_u32().to_ne_bytes()
    }
}

impl Message {
    fn whole(self) -> Result<Event, Violation> {
        let bytes = match self.compressed {
            true => deflate::decompress(&self.bytes, LARGEST_MESSAGE)?,
            false => self.bytes,
        };
        if !self.is_text {
            return Ok(Event::Binary(bytes));
        }
        let text = String::from_utf8(bytes);
        text.map(Event::Text).map_err(|_| Violation(code::NOT_UTF_8, "expected a text in UTF-8".to_owned()))
    }
}

/// What the payload of a closing frame says (RFC 6455, 5.5.1 and 7.4).
fn read_close(payload: &[u8]) -> Result<(u16, String), Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return match payload {
            [] => Ok((code::NOTHING_SAID, String::new())),
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

fn too_large() -> Violation {
    Violation(code::TOO_LARGE, format!("expected a message of at most {LARGEST_MESSAGE} bytes, found a larger one"))
}

#[cfg(test)]
mod tests;
