//! The client's side of one HTTP/2 connection (RFC 9113): bytes in, bytes out, and the events of each request.
//! It knows nothing of gRPC but the names of two trailers. This module sends; `receive` takes the server's frames,
//! `response` holds what they say.
//!
//! A request either has a whole body and a whole response, or it is a stream. [`Session::begin`], [`Session::send`] and
//! [`Session::finish`] send a stream in parts. After each [`Event::Progress`], [`Session::response`] has more of its
//! response.

mod receive;
mod response;

use super::frame::{self, HEADER, Header, error, flag, kind, setting};
use super::hpack::{Decoder, Encoder, Field};
use crate::control_replies::ControlReplies;
use std::collections::VecDeque;

pub use response::{Response, StreamError};

/// The receive window of a stream and of the connection, in bytes. The protocol's default of 64 KB would make
/// large replies wait for us.
const WINDOW: u32 = 16 * 1024 * 1024;

/// The window of a connection and, unless the server says otherwise, of a stream (RFC 9113, 6.9.2).
const DEFAULT_WINDOW: i64 = 65_535;

/// The state of a connection.
#[derive(Debug)]
pub struct Session {
    encoder: Encoder,
    decoder: Decoder,
    /// The received part of an incomplete frame.
    partial: Vec<u8>,
    /// A header block that continues in the next frame: stream, flags of its first frame, bytes.
    block: Option<(u32, u8, Vec<u8>)>,
    settings_received: bool,
    going_away: bool,
    peer: Peer,
    /// The open requests by stream: place `i` is stream `oldest + 2·i`.
    streams: VecDeque<Option<Stream>>,
    oldest: u32,
    /// The send window of the connection, in bytes.
    window: i64,
    /// Bytes received since the last update of the receive window.
    received: u32,
    /// Unused buffers for bodies.
    spare: Vec<Vec<u8>>,
    replies: ControlReplies,
}

/// The limits that the server's settings set.
#[derive(Debug)]
struct Peer {
    most_streams: usize,
    stream_window: i64,
    largest_payload: usize,
}

/// An open request.
#[derive(Debug)]
struct Stream {
    ticket: u32,
    response: Response,
    /// The size of all its header fields so far.
    header_size: usize,
    begun: bool,
    /// The part of the request's body that waits for a send window.
    unsent: Vec<u8>,
    /// The state of the request's body.
    sending: Sending,
    window: i64,
    received: u32,
}

/// The state of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// The caller may add more.
    Open,
    /// The caller has added everything.
    Ending,
    /// Its end is sent.
    Done,
}

/// An event of a request, by its ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first bytes of its response arrived.
    FirstByte(u32),
    /// More of the response to a stream arrived: see [`Session::response`].
    Progress(u32),
    /// Its response is complete. For a stream, the body has the bytes that were not taken yet.
    Complete(u32, Response),
    /// The server ended it without a response.
    Failed(u32, StreamError),
}

impl Session {
    /// Opens a connection: writes the preface, our settings, and a large window.
    pub fn open(out: &mut Vec<u8>) -> Session {
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
            settings_received: false,
            going_away: false,
            // The limits before the server's settings arrive.
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
            replies: ControlReplies::default(),
        }
    }

    /// The number of concurrent requests that the server allows; none until its settings arrive.
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.settings_received && self.accepts_requests() { self.peer.most_streams } else { 0 }
    }

    /// True if the connection can take further requests, now or later.
    #[inline]
    pub fn accepts_requests(&self) -> bool {
        // The largest stream number is 2³¹ - 1.
        !self.going_away && self.next_stream() < 0x7fff_ffff
    }

    #[inline]
    fn next_stream(&self) -> u32 {
        self.oldest + 2 * self.streams.len() as u32
    }

    /// Sends a request with these fields, by their numbers, and a body.
    pub fn request(&mut self, fields: &[Field], numbers: &[usize], body: &[u8], ticket: u32, out: &mut Vec<u8>) {
        let response = Response { body: self.spare.pop().unwrap_or_default(), ..Response::default() };
        let id = self.add_stream(ticket, response);
        self.write_headers(id, fields, numbers, &[], out);
        self.send_body(id, body, Sending::Ending, out);
    }

    /// Begins a stream with these fields, by their numbers, and `unindexed` ones that differ each time.
    pub fn begin(&mut self, fields: &[Field], numbers: &[usize], unindexed: &[Field], ticket: u32, out: &mut Vec<u8>) {
        let response = Response { fields: Some(Box::default()), ..Response::default() };
        let id = self.add_stream(ticket, response);
        self.write_headers(id, fields, numbers, unindexed, out);
    }

    /// Sends more of the body of a stream. Does nothing if the stream is closed.
    pub fn send(&mut self, ticket: u32, body: &[u8], out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            self.send_body(id, body, Sending::Open, out);
        }
    }

    /// Ends the body of a stream.
    pub fn finish(&mut self, ticket: u32, out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            self.send_body(id, &[], Sending::Ending, out);
        }
    }

    /// The response to an open stream, as far as it arrived. The caller may take bytes out of its body.
    pub fn response(&mut self, ticket: u32) -> Option<&mut Response> {
        let id = self.id(ticket)?;
        Some(&mut self.stream(id)?.response)
    }

    fn add_stream(&mut self, ticket: u32, response: Response) -> u32 {
        let (id, window) = (self.next_stream(), self.peer.stream_window);
        self.streams.push_back(Some(Stream {
            ticket,
            response,
            header_size: 0,
            begun: false,
            unsent: Vec::new(),
            sending: Sending::Open,
            window,
            received: 0,
        }));
        id
    }

    fn write_headers(&mut self, id: u32, fields: &[Field], numbers: &[usize], unindexed: &[Field], out: &mut Vec<u8>) {
        let start = out.len();
        Header { length: 0, kind: kind::HEADERS, flags: flag::END_HEADERS, stream: id }.write(out);
        self.encoder.encode(fields, numbers, out);
        Encoder::encode_unindexed(unindexed, out);
        let length = (out.len() - start - HEADER) as u32;
        out[start..start + 3].copy_from_slice(&length.to_be_bytes()[1..]);
    }

    /// Sends as much of a body as the windows allow, and keeps the rest.
    fn send_body(&mut self, id: u32, body: &[u8], sending: Sending, out: &mut Vec<u8>) {
        let (room, largest) = (self.window, self.peer.largest_payload);
        let Some(stream) = self.stream(id).filter(|stream| stream.sending == Sending::Open) else { return };
        stream.sending = sending;
        let fits = body.len() <= largest && body.len() as i64 <= room.min(stream.window);
        if stream.unsent.is_empty() && fits && !(body.is_empty() && sending == Sending::Open) {
            stream.window -= body.len() as i64;
            let last = stream.end_flag();
            self.window -= body.len() as i64;
            frame::write(kind::DATA, last, id, body, out);
        } else {
            stream.unsent.extend_from_slice(body);
            self.send_unsent(id, out);
        }
    }

    /// Bytes of bodies for which the peer's windows have no room yet.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.streams.iter().flatten().map(|stream| stream.unsent.len()).sum()
    }

    /// Bytes of responses that have arrived and that nobody has taken yet.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        let of_responses =
            self.streams.iter().flatten().map(|stream| stream.response.body.capacity() + stream.header_size);
        of_responses.sum()
    }

    /// Cancels a request.
    pub fn cancel(&mut self, ticket: u32, out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            frame::write(kind::RST_STREAM, 0, id, &error::CANCEL.to_be_bytes(), out);
            self.remove(id);
        }
    }

    /// Announces the end of the connection.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        let mut payload = [0; 8];
        payload[4..].copy_from_slice(&error::NO_ERROR.to_be_bytes());
        frame::write(kind::GOAWAY, 0, 0, &payload, out);
    }

    /// Returns the buffer of a processed body for reuse.
    pub fn reuse(&mut self, mut body: Vec<u8>) {
        if self.spare.len() < 64 && body.capacity() <= 4096 {
            body.clear();
            self.spare.push(body);
        }
    }

    fn send_all_unsent(&mut self, out: &mut Vec<u8>) {
        for place in 0..self.streams.len() {
            self.send_unsent(self.oldest + 2 * place as u32, out);
        }
    }

    /// Sends as much of a request's waiting body as both windows allow.
    fn send_unsent(&mut self, id: u32, out: &mut Vec<u8>) {
        let Some(place) = self.place(id) else { return };
        let Some(stream) = self.streams.get_mut(place).and_then(Option::as_mut) else { return };
        while !stream.unsent.is_empty() {
            let room = self.window.min(stream.window).max(0) as usize;
            let length = stream.unsent.len().min(room).min(self.peer.largest_payload);
            if length == 0 {
                return;
            }
            let last = if length == stream.unsent.len() { stream.end_flag() } else { 0 };
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
            // A server may respond before the end of the request; this closes our side of the stream.
            if stream.sending != Sending::Done {
                frame::write(kind::RST_STREAM, 0, id, &error::CANCEL.to_be_bytes(), out);
            }
            events.push(Event::Complete(stream.ticket, stream.response));
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
            events.push(Event::FirstByte(self.ticket));
        }
    }

    /// Reports progress, if the response is that of a stream.
    fn report_progress(&self, events: &mut Vec<Event>) {
        if self.response.fields.is_some() {
            events.push(Event::Progress(self.ticket));
        }
    }

    /// The flag of the frame with the last bytes of the body: END_STREAM if the caller has ended it.
    fn end_flag(&mut self) -> u8 {
        if self.sending == Sending::Open {
            return 0;
        }
        self.sending = Sending::Done;
        flag::END_STREAM
    }
}
