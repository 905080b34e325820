//! One HTTP/2 connection as a client sees it (RFC 9113): bytes in, bytes out, and what happened to each request.
//! Nothing in it knows gRPC but the two trailers that it picks out. What goes out is here; `receive` takes what comes
//! in, `answer` is what comes of it.
//!
//! A request is sent whole and answered whole, or it is a stream: [`Session::begin`], [`Session::send`] and
//! [`Session::finish`] say what goes out when, and what has come of the answer is there after each [`Event::More`].

mod answer;
mod receive;

use super::frame::{self, HEADER, Header, error, flag, kind, setting};
use super::hpack::{Decoder, Encoder, Field};
use std::collections::VecDeque;

pub use answer::{Dropped, Response};

/// What we let the server send before we ask for more, on a stream and on the connection. The
/// protocol's own 64 KB would make large replies wait for us.
const WINDOW: u32 = 16 * 1024 * 1024;

/// The window of a connection and, unless the server says otherwise, of a stream (RFC 9113, 6.9.2).
const DEFAULT_WINDOW: i64 = 65_535;

/// The state of a connection.
#[derive(Debug)]
pub struct Session {
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

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first bytes of its response have come.
    Begun(u32),
    /// More of the answer to a stream has come: [`Session::answer`].
    More(u32),
    /// Its response is complete; of a stream, what was not taken yet.
    Ended(u32, Response),
    /// The server gave it up.
    Dropped(u32, Dropped),
}

impl Session {
    /// A connection's first bytes: the preface, our settings, and a large window.
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
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.greeted && self.takes_more() { self.peer.most_streams } else { 0 }
    }

    /// True if the connection can carry further requests, now or later.
    #[inline]
    pub fn takes_more(&self) -> bool {
        // The largest stream number is 2³¹ - 1.
        !self.going_away && self.next_stream() < 0x7fff_ffff
    }

    #[inline]
    fn next_stream(&self) -> u32 {
        self.oldest + 2 * self.streams.len() as u32
    }

    /// Sends a request: the fields with these numbers, and a body.
    pub fn request(&mut self, fields: &[Field], numbers: &[usize], body: &[u8], ticket: u32, out: &mut Vec<u8>) {
        let response = Response { body: self.spare.pop().unwrap_or_default(), ..Response::default() };
        let id = self.add_stream(ticket, response);
        self.write_headers(id, fields, numbers, &[], out);
        self.send_body(id, body, Sending::Ending, out);
    }

    /// Begins a stream: the fields with these numbers, and others that are different each time.
    pub fn begin(&mut self, fields: &[Field], numbers: &[usize], passing: &[Field], ticket: u32, out: &mut Vec<u8>) {
        let response = Response { fields: Some(Box::default()), ..Response::default() };
        let id = self.add_stream(ticket, response);
        self.write_headers(id, fields, numbers, passing, out);
    }

    /// Sends more of the body of a stream; nothing, where that is over.
    pub fn send(&mut self, ticket: u32, body: &[u8], out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            self.send_body(id, body, Sending::Open, out);
        }
    }

    /// Says that the body of a stream is whole.
    pub fn finish(&mut self, ticket: u32, out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            self.send_body(id, &[], Sending::Ending, out);
        }
    }

    /// What has come of the answer to a stream that is not over. What is taken of its body is not told again.
    pub fn answer(&mut self, ticket: u32) -> Option<&mut Response> {
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
    pub fn cancel(&mut self, ticket: u32, out: &mut Vec<u8>) {
        if let Some(id) = self.id(ticket) {
            frame::write(kind::RST_STREAM, 0, id, &error::CANCEL.to_be_bytes(), out);
            self.remove(id);
        }
    }

    /// Says goodbye.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        let mut payload = [0; 8];
        payload[4..].copy_from_slice(&error::NO_ERROR.to_be_bytes());
        frame::write(kind::GOAWAY, 0, 0, &payload, out);
    }

    /// Gives back the space of a body that has been looked at.
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
