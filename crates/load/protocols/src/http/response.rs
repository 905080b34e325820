//! Reads one HTTP/1.1 response from pieces of any size. The end of its body follows RFC 9112, section 6.
//! The body is not kept: a [`Sink`] gets its bytes as they arrive.

use plimsoll_engine::protocol::Violation;
use std::mem::{self, MaybeUninit};

/// The largest head (status line and header lines) that is read.
const LARGEST_HEAD: usize = 64 * 1024;

/// The largest head that a connection remembers.
pub const LARGEST_REMEMBERED: usize = 4 * 1024;

/// The longest line inside a chunked body: a size with extensions, or a trailer.
const LONGEST_LINE: usize = 8 * 1024;

const MOST_HEADERS: usize = 100;

/// Receives the parts of a response as they arrive. `()` ignores all of them.
pub trait Sink {
    /// Called for a head that equals the last one byte for byte. Returns true if the sink needs no more of it;
    /// otherwise [`Sink::head`] follows.
    fn same_head(&mut self, _status: u16) -> bool {
        false
    }

    /// Receives the head of a response, or of an interim response before it, with all its bytes.
    fn head(&mut self, _status: u16, _headers: &[httparse::Header<'_>], _bytes: &[u8]) {}

    /// Receives the next bytes of the body.
    fn body(&mut self, _bytes: &[u8]) {}
}

impl Sink for () {
    fn same_head(&mut self, _: u16) -> bool {
        true
    }
}

/// Reads one response after the other.
#[derive(Debug, Default)]
pub struct ResponseReader {
    is_head: bool,
    stage: Stage,
    /// The received part of an incomplete head.
    partial: Vec<u8>,
    last: Option<LastHead>,
}

/// The head that was read last. A server repeats it for the same request until its date changes, and comparing takes
/// less than a tenth of the time of parsing.
#[derive(Debug)]
struct LastHead {
    bytes: Box<[u8]>,
    is_head: bool,
    head: Head,
    body: Body,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    Body(Head, Body),
}

/// The parts of a head that are needed until the response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    keep_alive: bool,
}

/// The rest of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// This many bytes.
    Sized(u64),
    /// Chunks.
    Chunked(Chunked),
    /// Everything until the connection ends.
    UntilEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunked {
    /// In the line with the chunk's size: the size and digits so far, whether an extension has begun,
    /// and the length of the line so far.
    Size { size: u64, digits: u8, in_extension: bool, length: usize },
    /// In the chunk, with this many bytes left.
    Content(u64),
    /// In the line break after the chunk, with this many of its bytes read.
    Break(u8),
    /// In the lines after the last chunk, with this many bytes of the line read.
    Trailer(usize),
}

const CHUNK_SIZE: Chunked = Chunked::Size { size: 0, digits: 0, in_extension: false, length: 0 };

/// The progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is incomplete.
    Partial,
    /// It is complete, and `unread` bytes of the input follow it.
    Complete {
        /// The status.
        status: u16,
        /// True if the connection can carry another exchange.
        keep_alive: bool,
        /// The number of input bytes after the response.
        unread: usize,
    },
}

impl ResponseReader {
    /// Prepares for the response to the next request.
    #[inline]
    pub fn expect(&mut self, is_head: bool) {
        self.is_head = is_head;
        self.stage = Stage::Head;
        self.partial.clear();
    }

    /// Reads received bytes, and passes their content to `sink`.
    pub fn read(&mut self, mut input: &[u8], sink: &mut impl Sink) -> Result<Progress, Violation> {
        loop {
            match self.stage {
                Stage::Head => {
                    let Some((head, body, taken)) = self.read_head(input, sink)? else { return Ok(Progress::Partial) };
                    input = &input[taken..];
                    // An interim response (100, 103, …) comes before the real one.
                    if !(100..200).contains(&head.status) {
                        self.stage = Stage::Body(head, body);
                    }
                }
                Stage::Body(head, body) => {
                    let (body, taken) = skip_body(body, input, sink)?;
                    let unread = input.len() - taken;
                    self.stage = Stage::Body(head, body);
                    let Head { status, keep_alive } = head;
                    return Ok(match body {
                        Body::Sized(0) => Progress::Complete { status, keep_alive, unread },
                        _ => Progress::Partial,
                    });
                }
            }
        }
    }

    /// Handles the end of the connection. Returns the status if that completes the response.
    pub fn end_of_input(&self) -> Option<u16> {
        match self.stage {
            Stage::Body(head, Body::UntilEnd) => Some(head.status),
            _ => None,
        }
    }

    /// Reads the head. Returns also the number of bytes of `input` that it took.
    fn read_head(&mut self, input: &[u8], sink: &mut impl Sink) -> Result<Option<(Head, Body, usize)>, Violation> {
        if self.partial.is_empty() {
            // The bytes after a head do not change its meaning.
            if let Some(LastHead { bytes, is_head, head, body }) = &self.last
                && *is_head == self.is_head
                && input.starts_with(bytes)
                && sink.same_head(head.status)
            {
                return Ok(Some((*head, *body, bytes.len())));
            }
            let parsed = parse_head(input, self.is_head, sink)?;
            match parsed {
                Some((head, body, taken)) => self.remember(&input[..taken], head, body),
                None => self.partial.extend_from_slice(input),
            }
            return Ok(parsed);
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        let parsed = parse_head(&self.partial, self.is_head, sink)?;
        if let Some((head, body, taken)) = parsed {
            let partial = mem::take(&mut self.partial);
            self.remember(&partial[..taken], head, body);
        }
        Ok(parsed.map(|(head, body, taken)| (head, body, taken - before)))
    }

    fn remember(&mut self, bytes: &[u8], head: Head, body: Body) {
        let is_head = self.is_head;
        let last = || LastHead { bytes: bytes.into(), is_head, head, body };
        self.last = (bytes.len() <= LARGEST_REMEMBERED).then(last);
    }
}

fn parse_head(bytes: &[u8], is_head: bool, sink: &mut impl Sink) -> Result<Option<(Head, Body, usize)>, Violation> {
    // Left uninitialised: clearing the space for the most headers takes longer than parsing the usual few.
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut response, bytes, &mut headers).map_err(|error| {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        Violation::new(format!("expected an HTTP/1.1 response, found `{}` ({error})", start.escape_debug()))
    })?;
    let (is_whole, length) = match parsed {
        httparse::Status::Complete(taken) => (true, taken),
        httparse::Status::Partial => (false, bytes.len()),
    };
    // Whether it arrived in one piece or in many.
    if length > LARGEST_HEAD {
        return Err(Violation::new(format!("expected a response head of at most {LARGEST_HEAD} bytes, found more")));
    }
    if !is_whole {
        return Ok(None);
    }
    let status = response.code.expect("a complete response has a status");
    if status == 101 {
        return Err(Violation::new("expected an HTTP response, found a switch to another protocol (101)"));
    }
    sink.head(status, response.headers, &bytes[..length]);
    let framing = Framing::read(response.headers)?;
    let body = framing.body(status, is_head);
    let keep_alive = framing.keep_alive(response.version == Some(1)) && body != Body::UntilEnd;
    Ok(Some((Head { status, keep_alive }, body, length)))
}

/// The headers about the length of the message and about the connection.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    coded: bool,
    chunked: bool,
    close: bool,
    keep: bool,
}

impl Framing {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Framing, Violation> {
        let mut framing = Framing::default();
        for header in headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                framing.add_length(header.value)?;
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                framing.coded = true;
                framing.chunked = tokens(header.value).last().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
            } else if header.name.eq_ignore_ascii_case("connection") {
                framing.close |= tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"close"));
                framing.keep |= tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"keep-alive"));
            }
        }
        Ok(framing)
    }

    /// Several equal lengths count as one; different ones leave the end of the body unknown.
    fn add_length(&mut self, value: &[u8]) -> Result<(), Violation> {
        for token in tokens(value) {
            let digits = std::str::from_utf8(token).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length = digits.and_then(|text| text.parse().ok());
            let Some(length) = length else {
                let found = String::from_utf8_lossy(token);
                return Err(Violation::new(format!("expected a number as content-length, found `{found}`")));
            };
            if self.length.is_some_and(|before| before != length) {
                return Err(Violation::new("expected one content-length, found two that differ"));
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn body(&self, status: u16, is_head: bool) -> Body {
        if is_head || status < 200 || status == 204 || status == 304 {
            return Body::Sized(0);
        }
        match (self.coded, self.chunked, self.length) {
            (true, true, _) => Body::Chunked(CHUNK_SIZE),
            (true, false, _) | (false, _, None) => Body::UntilEnd,
            (false, _, Some(length)) => Body::Sized(length),
        }
    }

    fn keep_alive(&self, is_http_1_1: bool) -> bool {
        !self.close && (is_http_1_1 || self.keep)
    }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// Skips over the body. Returns the rest of the body, and the number of bytes of `input` taken. A complete
/// body is `Sized(0)`.
fn skip_body(body: Body, input: &[u8], sink: &mut impl Sink) -> Result<(Body, usize), Violation> {
    match body {
        Body::UntilEnd => {
            sink.body(input);
            Ok((body, input.len()))
        }
        Body::Sized(length) => {
            let taken = usize::try_from(length).unwrap_or(usize::MAX).min(input.len());
            sink.body(&input[..taken]);
            Ok((Body::Sized(length - taken as u64), taken))
        }
        Body::Chunked(mut chunked) => {
            let mut taken = 0;
            while taken < input.len() {
                let (next, step) = chunked.advance(&input[taken..])?;
                if matches!(chunked, Chunked::Content(_)) {
                    sink.body(&input[taken..taken + step]);
                }
                taken += step;
                match next {
                    Some(next) => chunked = next,
                    None => return Ok((Body::Sized(0), taken)),
                }
            }
            Ok((Body::Chunked(chunked), taken))
        }
    }
}

impl Chunked {
    /// Takes at least one byte of `input`, which is not empty. Returns `None` at the end of the body.
    fn advance(self, input: &[u8]) -> Result<(Option<Chunked>, usize), Violation> {
        let byte = input[0];
        let next = match self {
            Chunked::Content(left) => {
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                let left = left - taken as u64;
                let next = if left == 0 { Chunked::Break(0) } else { Chunked::Content(left) };
                return Ok((Some(next), taken));
            }
            Chunked::Break(0) if byte == b'\r' => Chunked::Break(1),
            Chunked::Break(_) if byte == b'\n' => CHUNK_SIZE,
            Chunked::Break(_) => return Err(Violation::new("expected a line break after a chunk, found more of it")),
            Chunked::Trailer(0) if byte == b'\n' => return Ok((None, 1)),
            Chunked::Trailer(_) if byte == b'\n' => Chunked::Trailer(0),
            Chunked::Trailer(length) if byte == b'\r' => Chunked::Trailer(length),
            Chunked::Trailer(length) => Chunked::Trailer(longer(length)?),
            Chunked::Size { size, digits, in_extension, length } => {
                return Ok((Some(Self::in_size(byte, size, digits, in_extension, longer(length)?)?), 1));
            }
        };
        Ok((Some(next), 1))
    }

    fn in_size(byte: u8, size: u64, digits: u8, in_extension: bool, length: usize) -> Result<Chunked, Violation> {
        match (byte, (byte as char).to_digit(16)) {
            (b'\n', _) if digits > 0 => Ok(if size == 0 { Chunked::Trailer(0) } else { Chunked::Content(size) }),
            (_, Some(digit)) if !in_extension && digits < 15 => {
                Ok(Chunked::Size { size: size * 16 + u64::from(digit), digits: digits + 1, in_extension, length })
            }
            (b';' | b' ' | b'\t' | b'\r', _) if digits > 0 => {
                Ok(Chunked::Size { size, digits, in_extension: true, length })
            }
            _ if in_extension && byte != b'\n' => Ok(Chunked::Size { size, digits, in_extension, length }),
            _ => Err(Violation::new(format!("expected the size of a chunk, found `{}`", byte.escape_ascii()))),
        }
    }
}

fn longer(length: usize) -> Result<usize, Violation> {
    if length >= LONGEST_LINE {
        return Err(Violation::new(format!("expected lines of at most {LONGEST_LINE} bytes in a chunked body")));
    }
    Ok(length + 1)
}
