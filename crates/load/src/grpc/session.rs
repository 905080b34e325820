//! One HTTP/2 connection as a client sees it (RFC 9113): bytes in, bytes out, and what happened
//! to each request. Nothing in it knows gRPC but the two trailers that it picks out.
//!
//! A request is sent whole and answered whole, or it is a stream: [`Session::begin`],
//! [`Session::send`] and [`Session::finish`] say what goes out when, and what has come of the answer
//! is there after each [`Event::More`].

use super::frame::{self, HEADER, Header, error, flag, kind, setting};
use super::hpack::{Decoder, Encoder, Field};
use crate::protocol::Violation;
use std::collections::VecDeque;

/// What we let the server send before we ask for more, on a stream and on the connection. The
/// protocol's own 64 KB would make large replies wait for us.
const WINDOW: u32 = 16 * 1024 * 1024;

/// The window of a connection and, unless the server says otherwise, of a stream (RFC 9113, 6.9.2).
const DEFAULT_WINDOW: i64 = 65_535;

/// The largest header block that is put together from pieces.
const LARGEST_BLOCK: usize = 256 * 1024;

/// The largest reply that is kept.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    encoder: Encoder,
    decoder: Decoder,
    /// A frame that has not come whole yet.
    partial: Vec<u8>,
    /// A header block that continues in the next frame: stream, flags of its first, bytes.
    block: Option<(u32, u8, Vec<u8>)>,
    greeted: bool,
    going_away: bool,
    peer: Peer,
    /// The requests that are not over, by stream: place `i` is stream `oldest + 2·i`.
    streams: VecDeque<Option<Stream>>,
    oldest: u32,
    /// What we may still send on the connection.
    window: i64,
    /// What the server has sent since we last gave it more room.
    received: u32,
    /// Bodies of requests that are over, to be used again.
    spare: Vec<Vec<u8>>,
}

/// What the server's settings allow us.
#[derive(Debug)]
struct Peer {
    most_streams: usize,
    stream_window: i64,
    largest_payload: usize,
}

/// A request that is not over.
#[derive(Debug)]
struct Stream {
    ticket: u32,
    response: Response,
    begun: bool,
    /// What of the request's body has not been sent for want of room.
    unsent: Vec<u8>,
    /// How far the request has come.
    sending: Sending,
    window: i64,
    received: u32,
}

/// How much of a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// More may be handed over.
    Open,
    /// Everything was handed over.
    Ending,
    /// Its end was sent.
    Done,
}

/// All header fields of an answer, but its statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Those before the body; `None` until they have come, which they need not where there is none.
    pub(crate) head: Option<Vec<Field>>,
    /// Those behind it.
    pub(crate) trailers: Vec<Field>,
    are_trailers: bool,
}

/// What came back for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// `:status`.
    pub(crate) status: Option<u16>,
    /// `grpc-status`.
    pub(crate) grpc_status: Option<u16>,
    /// `grpc-message`, as sent.
    pub(crate) grpc_message: Option<String>,
    pub(crate) body: Vec<u8>,
    /// All header fields, where the answer is to a stream.
    pub(crate) fields: Option<Box<Fields>>,
}

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first bytes of its response have come.
    Begun(u32),
    /// More of the answer to a stream has come: [`Session::answer`].
    More(u32),
    /// Its response is complete; of a stream, what was not taken yet.
    Ended(u32, Response),
    /// The server gave it up, with this text.
    Dropped(u32, String),
}

impl Session {
    /// A connection's first bytes: the preface, our settings, and a large window.
    pub(crate) fn open(out: &mut Vec<u8>) -> Session {
        out.extend_from_slice(frame::PREFACE);
        let mut settings = Vec::with_capacity(12);
        for (name, value) in [(setting::ENABLE_PUSH, 0_u32), (setting::INITIAL_WINDOW_SIZE, WINDOW)] {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        frame::write(kind::SETTINGS, 0, 0, &settings, out);
        let more = WINDOW - DEFAULT_WINDOW as u32;
        frame::write(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), out);
        Session {
            encoder: Encoder::default(),
            decoder: Decoder::default(),
            partial: Vec::new(),
            block: None,
            greeted: false,
            going_away: false,
            // What holds until its settings say otherwise.
            peer: Peer {
                most_streams: usize::MAX,
                stream_window: DEFAULT_WINDOW,
                largest_payload: frame::LARGEST_PAYLOAD,
            },
            streams: VecDeque::new(),
            oldest: 1,
            window: DEFAULT_WINDOW,
            received: 0,
            spare: Vec::new(),
        }
    }

    /// How many requests can be under way at once: none until the server's settings are known.
    pub(crate) fn capacity(&self) -> usize {
        if self.greeted && self.takes_more() { self.peer.most_streams } else { 0 }
    }

    /// Whether the connection can carry further requests, now or later.
    pub(crate) fn takes_more(&self) -> bool {
        // The largest stream number is 2³¹ - 1.
        !self.going_away && self.next_stream() < 0x7fff_ffff
    }

    fn next_stream(&self) -> u32 {
        self.oldest + 2 * self.streams.len() as u32
    }

    /// Sends a request: the fields with these numbers, and a body.
    pub(crate) fn request(&mut self, fields: &[Field], numbers: &[usize], body: &[u8], ticket: u32, out: &mut Vec<u8>) {
        let response = Response { body: self.spare.pop().unwrap_or_default(), ..Response::default() };
        let id = self.add_stream(ticket, response);
        self.write_headers(id, fields, numbers, &[], out);
        self.send_body(id, body, Sending::Ending, out);
    }

    /// Begins a stream: the fields with these numbers, and others that are different each time.
    pub(crate) fn begin(
        &mut self,
        fields: &[Field],
        numbers: &[usize],
        passing: &[Field],
        ticket: u32,
        out: &mut Vec<u8>,
    ) {
        let response = Response { fields: Some(Box::default()), ..Response::default() };
        let id = self.add_stream(ticket, response);
        self.write_headers(id, fields, numbers, passing, out);
    }

    /// Sends more of the body of a stream; nothing, where that is over.
    pub(crate) fn send(&mut self, ticket: u32, body: &[u8], out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            self.send_body(id, body, Sending::Open, out);
        }
    }

    /// Says that the body of a stream is whole.
    pub(crate) fn finish(&mut self, ticket: u32, out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            self.send_body(id, &[], Sending::Ending, out);
        }
    }

    /// What has come of the answer to a stream that is not over. What is taken of its body is not told again.
    pub(crate) fn answer(&mut self, ticket: u32) -> Option<&mut Response> {
        let id = self.id(ticket)?;
        Some(&mut self.stream(id)?.response)
    }

    fn add_stream(&mut self, ticket: u32, response: Response) -> u32 {
        let (id, window) = (self.next_stream(), self.peer.stream_window);
        let (begun, unsent, sending, received) = (false, Vec::new(), Sending::Open, 0);
        self.streams.push_back(Some(Stream { ticket, response, begun, unsent, sending, window, received }));
        id
    }

    fn write_headers(&mut self, id: u32, fields: &[Field], numbers: &[usize], passing: &[Field], out: &mut Vec<u8>) {
        let start = out.len();
        Header { length: 0, kind: kind::HEADERS, flags: flag::END_HEADERS, stream: id }.write(out);
        self.encoder.encode(fields, numbers, out);
        Encoder::encode_passing(passing, out);
        let length = (out.len() - start - HEADER) as u32;
        out[start..start + 3].copy_from_slice(&length.to_be_bytes()[1..]);
    }

    /// Sends of a body what goes, and keeps the rest until there is room for it.
    fn send_body(&mut self, id: u32, body: &[u8], sending: Sending, out: &mut Vec<u8>) {
        let (room, largest) = (self.window, self.peer.largest_payload);
        let Some(stream) = self.stream(id).filter(|stream| stream.sending == Sending::Open) else { return };
        stream.sending = sending;
        let fits = body.len() <= largest && body.len() as i64 <= room.min(stream.window);
        if stream.unsent.is_empty() && fits && !(body.is_empty() && sending == Sending::Open) {
            stream.window -= body.len() as i64;
            let last = stream.end_if_handed_over();
            self.window -= body.len() as i64;
            frame::write(kind::DATA, last, id, body, out);
        } else {
            stream.unsent.extend_from_slice(body);
            self.send_unsent(id, out);
        }
    }

    /// Gives a request up.
    pub(crate) fn cancel(&mut self, ticket: u32, out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            frame::write(kind::RST_STREAM, 0, id, &error::CANCEL.to_be_bytes(), out);
            self.remove(id);
        }
    }

    /// Says goodbye.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        let mut payload = [0; 8];
        payload[4..].copy_from_slice(&error::NO_ERROR.to_be_bytes());
        frame::write(kind::GOAWAY, 0, 0, &payload, out);
    }

    /// Gives back the space of a body that has been looked at.
    pub(crate) fn reuse(&mut self, mut body: Vec<u8>) {
        if self.spare.len() < 64 && body.capacity() <= 4096 {
            body.clear();
            self.spare.push(body);
        }
    }

    /// Takes bytes that came.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Violation> {
        if self.partial.is_empty() {
            let taken = self.take_frames(input, out, events)?;
            self.partial.extend_from_slice(&input[taken..]);
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(input);
        let taken = self.take_frames(&bytes, out, events)?;
        bytes.drain(..taken);
        self.partial = bytes;
        Ok(())
    }

    fn take_frames(&mut self, bytes: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) -> Result<usize, Violation> {
        let mut taken = 0;
        while let Some(header) = Header::read(&bytes[taken..]) {
            if header.length > frame::LARGEST_PAYLOAD {
                return Err(not_http2(&header));
            }
            let end = taken + HEADER + header.length;
            let Some(payload) = bytes.get(taken + HEADER..end) else { break };
            self.take_frame(header, payload, out, events)?;
            taken = end;
        }
        Ok(taken)
    }

    fn take_frame(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Violation> {
        if !self.greeted && header.kind != kind::SETTINGS {
            return Err(Violation::new(format!("expected the server's HTTP/2 settings, found frame {}", header.kind)));
        }
        if self.block.is_some() && header.kind != kind::CONTINUATION {
            return Err(Violation::new(format!("expected the rest of a header block, found frame {}", header.kind)));
        }
        match header.kind {
            kind::DATA => self.take_data(header, payload, out, events),
            kind::HEADERS => self.take_headers(header, payload, out, events),
            kind::CONTINUATION => self.take_continuation(header, payload, out, events),
            kind::RST_STREAM => self.take_reset(header, payload, events),
            kind::SETTINGS => self.take_settings(header, payload, out),
            kind::PING if payload.len() == 8 => {
                if !header.has(flag::ACK) {
                    frame::write(kind::PING, flag::ACK, 0, payload, out);
                }
                Ok(())
            }
            kind::GOAWAY if payload.len() >= 8 => {
                self.take_goaway(payload, events);
                Ok(())
            }
            kind::WINDOW_UPDATE if payload.len() == 4 => {
                self.take_window(header.stream, payload, out);
                Ok(())
            }
            kind::PUSH_PROMISE => Err(Violation::new("expected no pushed streams, which our settings refuse")),
            kind::PING | kind::GOAWAY | kind::WINDOW_UPDATE => Err(bad_length(&header)),
            // Frames of unknown kinds are to be ignored (RFC 9113, 4.1), and so is PRIORITY.
            _ => Ok(()),
        }
    }

    fn take_data(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Violation> {
        // Padding counts in both windows, and so does what comes for a request that is over.
        let length = header.length as u32;
        self.received += length;
        if self.received >= WINDOW / 2 {
            frame::write(kind::WINDOW_UPDATE, 0, 0, &std::mem::take(&mut self.received).to_be_bytes(), out);
        }
        let content = unpadded(&header, payload)?;
        let Some(stream) = self.stream(header.stream) else { return Ok(()) };
        stream.begin(events);
        stream.response.body.extend_from_slice(content);
        if stream.response.body.len() > LARGEST_BODY {
            return Err(Violation::new(format!("expected a reply of at most {LARGEST_BODY} bytes")));
        }
        stream.received += length;
        stream.tell_more(events);
        if header.has(flag::END_STREAM) {
            self.end(header.stream, out, events);
        } else if stream.received >= WINDOW / 2 {
            let more = std::mem::take(&mut stream.received);
            frame::write(kind::WINDOW_UPDATE, 0, header.stream, &more.to_be_bytes(), out);
        }
        Ok(())
    }

    fn take_headers(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Violation> {
        let mut block = unpadded(&header, payload)?;
        if header.has(flag::PRIORITY) {
            block = block.get(5..).ok_or_else(|| bad_length(&header))?;
        }
        if header.has(flag::END_HEADERS) {
            return self.take_block(header.stream, header.flags, block, out, events);
        }
        self.block = Some((header.stream, header.flags, block.to_vec()));
        Ok(())
    }

    fn take_continuation(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Violation> {
        let Some((stream, flags, mut block)) = self.block.take().filter(|(stream, ..)| *stream == header.stream) else {
            return Err(Violation::new("expected a header block before its continuation"));
        };
        block.extend_from_slice(payload);
        if block.len() > LARGEST_BLOCK {
            return Err(Violation::new(format!("expected headers of at most {LARGEST_BLOCK} bytes")));
        }
        if header.has(flag::END_HEADERS) {
            return self.take_block(stream, flags, &block, out, events);
        }
        self.block = Some((stream, flags, block));
        Ok(())
    }

    /// A whole header block. It must be decoded even for a request that is over: the table that
    /// the following blocks refer to changes with it.
    fn take_block(
        &mut self,
        id: u32,
        flags: u8,
        block: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Violation> {
        let place = self.place(id);
        let mut stream = place.and_then(|place| self.streams.get_mut(place)).and_then(Option::as_mut);
        let is_last = flags & flag::END_STREAM != 0;
        if let Some(stream) = stream.as_deref_mut() {
            stream.response.expect_fields(is_last);
        }
        self.decoder.decode(block, |name, value| {
            if let Some(stream) = stream.as_deref_mut() {
                stream.response.note(name, value);
            }
        })?;
        if let Some(stream) = stream {
            stream.begin(events);
            stream.tell_more(events);
            if is_last {
                self.end(id, out, events);
            }
        }
        Ok(())
    }

    fn take_reset(&mut self, header: Header, payload: &[u8], events: &mut Vec<Event>) -> Result<(), Violation> {
        if payload.len() != 4 {
            return Err(bad_length(&header));
        }
        if let Some(stream) = self.remove(header.stream) {
            let code = frame::number(payload);
            events.push(Event::Dropped(stream.ticket, format!("the server reset the stream with HTTP/2 error {code}")));
        }
        Ok(())
    }

    fn take_settings(&mut self, header: Header, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        if header.has(flag::ACK) {
            return Ok(());
        }
        if !payload.len().is_multiple_of(6) || header.stream != 0 {
            return Err(bad_length(&header));
        }
        for entry in payload.chunks_exact(6) {
            let (name, value) = (u16::from_be_bytes([entry[0], entry[1]]), frame::number(&entry[2..]));
            match name {
                setting::HEADER_TABLE_SIZE => self.encoder.set_limit(value as usize),
                setting::MAX_CONCURRENT_STREAMS => self.peer.most_streams = value as usize,
                setting::INITIAL_WINDOW_SIZE => self.set_stream_window(i64::from(value)),
                setting::MAX_FRAME_SIZE => self.peer.largest_payload = value as usize,
                _ => {}
            }
        }
        self.greeted = true;
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], out);
        self.send_all_unsent(out);
        Ok(())
    }

    /// A new initial window moves the windows of streams that are open (RFC 9113, 6.9.2).
    fn set_stream_window(&mut self, window: i64) {
        let change = window - self.peer.stream_window;
        self.peer.stream_window = window;
        self.streams.iter_mut().flatten().for_each(|stream| stream.window += change);
    }

    /// The server will answer requests up to a last one, and no others.
    fn take_goaway(&mut self, payload: &[u8], events: &mut Vec<Event>) {
        self.going_away = true;
        let (last, code) = (frame::number(payload) & 0x7fff_ffff, frame::number(&payload[4..]));
        for place in 0..self.streams.len() {
            let id = self.oldest + 2 * place as u32;
            if id > last
                && let Some(stream) = self.streams[place].take()
            {
                let text = format!("the server is going away (HTTP/2 error {code}) and did not take the request");
                events.push(Event::Dropped(stream.ticket, text));
            }
        }
    }

    fn take_window(&mut self, id: u32, payload: &[u8], out: &mut Vec<u8>) {
        let more = i64::from(frame::number(payload) & 0x7fff_ffff);
        if id == 0 {
            self.window += more;
            self.send_all_unsent(out);
        } else if let Some(stream) = self.stream(id) {
            stream.window += more;
            self.send_unsent(id, out);
        }
    }

    fn send_all_unsent(&mut self, out: &mut Vec<u8>) {
        for place in 0..self.streams.len() {
            self.send_unsent(self.oldest + 2 * place as u32, out);
        }
    }

    /// Sends of a request's body what both windows allow.
    fn send_unsent(&mut self, id: u32, out: &mut Vec<u8>) {
        let Some(place) = self.place(id) else { return };
        let Some(stream) = self.streams.get_mut(place).and_then(Option::as_mut) else { return };
        while !stream.unsent.is_empty() {
            let room = self.window.min(stream.window).max(0) as usize;
            let length = stream.unsent.len().min(room).min(self.peer.largest_payload);
            if length == 0 {
                return;
            }
            let last = if length == stream.unsent.len() { stream.end_if_handed_over() } else { 0 };
            frame::write(kind::DATA, last, id, &stream.unsent[..length], out);
            stream.unsent.drain(..length);
            stream.window -= length as i64;
            self.window -= length as i64;
        }
    }

    fn id(&self, ticket: u32) -> Option<u32> {
        let place = self.streams.iter().position(|stream| stream.as_ref().is_some_and(|it| it.ticket == ticket))?;
        Some(self.oldest + 2 * place as u32)
    }

    fn place(&self, id: u32) -> Option<usize> {
        let distance = id.checked_sub(self.oldest)?;
        (distance % 2 == 0).then_some(distance as usize / 2)
    }

    fn stream(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.streams.get_mut(place)?.as_mut()
    }

    fn end(&mut self, id: u32, out: &mut Vec<u8>, events: &mut Vec<Event>) {
        if let Some(stream) = self.remove(id) {
            // A server that has answered may want no more of the request; our side of the stream ends with this.
            if stream.sending != Sending::Done {
                frame::write(kind::RST_STREAM, 0, id, &error::CANCEL.to_be_bytes(), out);
            }
            events.push(Event::Ended(stream.ticket, stream.response));
        }
    }

    fn remove(&mut self, id: u32) -> Option<Stream> {
        let place = self.place(id)?;
        let stream = self.streams.get_mut(place)?.take()?;
        while self.streams.front().is_some_and(Option::is_none) {
            self.streams.pop_front();
            self.oldest += 2;
        }
        Some(stream)
    }
}

impl Stream {
    fn begin(&mut self, events: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.begun, true) {
            events.push(Event::Begun(self.ticket));
        }
    }

    /// Tells of an answer that is taken as it comes.
    fn tell_more(&self, events: &mut Vec<Event>) {
        if self.response.fields.is_some() {
            events.push(Event::More(self.ticket));
        }
    }

    /// The flag of the frame that carries the last of what was handed over.
    fn end_if_handed_over(&mut self) -> u8 {
        if self.sending == Sending::Open {
            return 0;
        }
        self.sending = Sending::Done;
        flag::END_STREAM
    }
}

impl Response {
    /// A header block comes: the head, unless it ends the answer.
    fn expect_fields(&mut self, is_last: bool) {
        if let Some(fields) = &mut self.fields {
            fields.are_trailers = is_last;
            if !is_last {
                fields.head.get_or_insert_default();
            }
        }
    }

    fn note(&mut self, name: &[u8], value: &[u8]) {
        let number = || std::str::from_utf8(value).ok()?.parse().ok();
        match name {
            b":status" => self.status = number(),
            b"grpc-status" => self.grpc_status = number(),
            b"grpc-message" => self.grpc_message = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                if let Some(fields) = &mut self.fields {
                    fields.latest().push((text(name), text(value)));
                }
            }
        }
    }
}

impl Fields {
    fn latest(&mut self) -> &mut Vec<Field> {
        if self.are_trailers { &mut self.trailers } else { self.head.get_or_insert_default() }
    }
}

fn unpadded<'a>(header: &Header, payload: &'a [u8]) -> Result<&'a [u8], Violation> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or_else(|| bad_length(header))?;
    let length = rest.len().checked_sub(usize::from(*padding)).ok_or_else(|| bad_length(header))?;
    Ok(&rest[..length])
}

fn bad_length(header: &Header) -> Violation {
    Violation::new(format!("expected another length of HTTP/2 frame {}, found {} bytes", header.kind, header.length))
}

fn not_http2(header: &Header) -> Violation {
    let largest = frame::LARGEST_PAYLOAD;
    Violation::new(format!(
        "expected HTTP/2 frames of at most {largest} bytes, found {}: the server may speak another protocol",
        header.length
    ))
}
