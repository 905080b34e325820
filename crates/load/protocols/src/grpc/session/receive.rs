//! Receives the frames of the server.

use super::{Event, Session, StreamError, WINDOW};
use crate::control_replies::TooManyReplies;
use crate::grpc::frame::{self, HEADER, Header, flag, kind, setting};
use crate::grpc::hpack;
use plimsoll_engine::protocol::Violation;

/// The largest header block that is assembled from fragments.
const LARGEST_BLOCK: usize = 256 * 1024;

/// The largest size of the header fields of a response, as RFC 9113 (6.5.2) counts it. A block of a few bytes can refer to
/// one large field many times.
const LARGEST_HEADER_LIST: usize = 1024 * 1024;

/// The largest body of a response.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

impl Session {
    /// Processes received bytes.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) -> Result<(), Violation> {
        self.replies.see_output(out);
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
        if !self.settings_received && header.kind != kind::SETTINGS {
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
                    self.replies.add(HEADER + payload.len())?;
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
        // Padding counts in both windows, and so do bytes for closed requests.
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
        stream.report_progress(events);
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

    /// Decodes a complete header block. Blocks of closed requests are decoded too: they change the table
    /// that later blocks refer to.
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
        let mut size = stream.as_deref().map_or(0, |stream| stream.header_size);
        self.decoder.decode(block, |name, value| {
            size += hpack::size(name, value);
            if size > LARGEST_HEADER_LIST {
                return Err(Violation::new(format!("expected header fields of at most {LARGEST_HEADER_LIST} bytes")));
            }
            if let Some(stream) = stream.as_deref_mut() {
                stream.response.add_field(name, value);
            }
            Ok(())
        })?;
        if let Some(stream) = stream {
            stream.header_size = size;
            stream.begin(events);
            stream.report_progress(events);
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
            events.push(Event::Failed(stream.ticket, StreamError::Reset(frame::number(payload))));
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
                setting::MAX_FRAME_SIZE => {
                    let payload = value as usize;
                    if !frame::PAYLOAD_LIMITS.contains(&payload) {
                        return Err(Violation::new(format!(
                            "expected a largest frame of 2^14 to 2^24-1 bytes, found {value}"
                        )));
                    }
                    self.peer.largest_payload = payload;
                }
                _ => {}
            }
        }
        self.settings_received = true;
        self.replies.add(HEADER)?;
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], out);
        self.send_all_unsent(out);
        Ok(())
    }

    /// Changes the initial window, and with it the windows of open streams (RFC 9113, 6.9.2).
    fn set_stream_window(&mut self, window: i64) {
        let change = window - self.peer.stream_window;
        self.peer.stream_window = window;
        self.streams.iter_mut().flatten().for_each(|stream| stream.window += change);
    }

    /// Fails the requests after the last one that the server will process.
    fn take_goaway(&mut self, payload: &[u8], events: &mut Vec<Event>) {
        self.going_away = true;
        let (last, code) = (frame::number(payload) & 0x7fff_ffff, frame::number(&payload[4..]));
        for place in 0..self.streams.len() {
            let id = self.oldest + 2 * place as u32;
            if id > last
                && let Some(stream) = self.streams[place].take()
            {
                events.push(Event::Failed(stream.ticket, StreamError::NotProcessed(code)));
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
}

impl From<TooManyReplies> for Violation {
    fn from(error: TooManyReplies) -> Violation {
        Violation::new(error.to_string())
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
