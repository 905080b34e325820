//! HTTP/2 with HPACK as gRPC uses it, and reflection.

use super::{chosen, pieces};
use plimsoll_grpc::reflection::Inquiry;
use plimsoll_protocols::grpc::Field;
use plimsoll_protocols::grpc::session::{Event, Session};

/// Frames that change nothing: empty settings.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The largest list of header fields that a response may have, in bytes as HTTP/2 counts them.
const LARGEST_HEADER_LIST: usize = 1024 * 1024;

/// What HTTP/2 counts for a field beside its name and value.
const OVERHEAD: usize = 32;

/// The most bytes of output for a byte of input, plus a frame: acknowledgements are as long as what they acknowledge, and
/// a window that opens lets out what waits.
const LARGEST_OUTPUT: usize = 64 * 1024;

/// The ticket of the unary call, and that of the stream.
const TICKETS: [u32; 2] = [1, 2];

/// Reads the input as the frames of a server.
pub(super) fn frames(input: &[u8]) {
    let (way, bytes) = chosen(input);
    let mut client = Client::new();
    let _ = pieces(way, bytes).try_for_each(|piece| client.receive(piece));
    for ticket in TICKETS {
        client.session.cancel(ticket, &mut Vec::new());
    }
    client.session.close(&mut Vec::new());
}

/// Reads the input as header blocks of the stream: each begins with its length, in a byte that counts in fours.
pub(super) fn header_block(input: &[u8]) {
    let mut client = Client::new();
    client.receive(&SETTINGS).expect("settings are in order");
    let mut rest = input;
    while let Some((length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at((usize::from(*length) * 4).min(behind.len()));
        rest = behind;
        let [.., a, b] = block.len().to_be_bytes();
        let frame = [&[0, a, b, 1, 4, 0, 0, 0, 3], block].concat();
        if client.receive(&frame).is_err() {
            return;
        }
    }
}

/// Reads the input as answers to questions of reflection: each begins with its length in two bytes.
pub(super) fn reflection(input: &[u8]) {
    let mut inquiry = Inquiry::about_all();
    let mut rest = input;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (answer, behind) = behind.split_at(length);
        rest = behind;
        if inquiry.question().is_none() || inquiry.take(answer).is_err() {
            break;
        }
    }
    let _ = inquiry.pool();
}

/// A connection with a unary call and a stream under way.
struct Client {
    session: Session,
    events: Vec<Event>,
}

impl Client {
    fn new() -> Client {
        let mut out = Vec::new();
        let mut session = Session::open(&mut out);
        let fields: [Field; 2] = [(":method".into(), "POST".into()), (":path".into(), "/a/b".into())];
        session.request(&fields, &[0, 1], &[0; 5], TICKETS[0], &mut out);
        session.begin(&fields, &[0, 1], &[("a".into(), "b".into())], TICKETS[1], &mut out);
        session.send(TICKETS[1], &[7; 40_000], &mut out);
        Client { session, events: Vec::new() }
    }

    /// Receives a piece whose replies are sent at once.
    fn receive(&mut self, piece: &[u8]) -> Result<(), plimsoll_engine::protocol::Violation> {
        let mut out = Vec::new();
        self.session.receive(piece, &mut out, &mut self.events)?;
        let most = LARGEST_OUTPUT + 2 * piece.len();
        assert!(out.len() <= most, "expected at most {most} bytes for {} bytes, found {}", piece.len(), out.len());
        for ticket in TICKETS {
            if let Some(fields) = self.session.response(ticket).and_then(|response| response.fields.as_deref()) {
                let all = fields.head.iter().flatten().chain(&fields.trailers);
                // Bytes that are no UTF-8 are kept as a character of three bytes.
                let size: usize = all.map(|(name, value)| (name.len() + value.len()) / 3 + OVERHEAD).sum();
                assert!(size <= LARGEST_HEADER_LIST, "{size} bytes of header fields are kept");
            }
        }
        Ok(())
    }
}
