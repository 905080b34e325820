//! Responses of HTTP/1.1.

use super::{chosen, pieces};
use plimsoll_engine::protocol::{InOrder, Protocol, Sending, Signal, Violation};
use plimsoll_model::units::Instant;
use plimsoll_model::workload::{HttpStep, Target};
use plimsoll_protocols::http::{Connection, Http};

/// Reads the input as responses to one request after the other, in pieces and at once: both must come to the same.
pub(super) fn response(input: &[u8]) {
    let (way, bytes) = chosen(input);
    let method = if way & 4 == 0 { "GET" } else { "HEAD" };
    let at_once = Exchange::new(method).read([bytes]);
    let in_pieces = Exchange::new(method).read(pieces(way, bytes));
    // Bytes behind a response are a violation whenever they come, but before its end or after.
    if let (Ok(at_once), Ok(in_pieces)) = (&at_once, &in_pieces) {
        assert_eq!(at_once, in_pieces, "the same bytes in other pieces");
    }
    assert!(at_once.is_err() || in_pieces.is_ok(), "expected what is right at once to be right in pieces");
}

/// A connection with a request under way.
struct Exchange {
    http: Http,
    connection: Connection,
    signals: Vec<Signal>,
}

impl Exchange {
    fn new(method: &str) -> Exchange {
        let target = Target { host: "127.0.0.1".to_owned(), port: 80, tls: None };
        let step = HttpStep {
            name: "page".to_owned(),
            method: method.to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            status: None,
        };
        let http = Http::new(&target, &[step]);
        let connection = http.open(&mut Vec::new());
        let mut exchange = Exchange { http, connection, signals: Vec::new() };
        exchange.send();
        exchange
    }

    fn send(&mut self) {
        let sending = Sending { step: 0, ticket: 7, now: Instant(0) };
        self.http.send(&mut self.connection, &mut InOrder::default(), sending, &mut Vec::new());
    }

    /// Returns everything that was signalled, to the end of the input.
    fn read<'a>(mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Signal>, Violation> {
        for piece in pieces {
            self.http.receive(&mut self.connection, piece, &mut Vec::new(), &mut self.signals)?;
            let is_done = matches!(self.signals.last(), Some(Signal::Done { .. }));
            if is_done && self.http.is_reusable(&self.connection) && self.signals.len() < 8 {
                self.send();
            }
        }
        self.http.end_of_input(&mut self.connection, &mut self.signals);
        assert!(!self.http.is_reusable(&self.connection), "expected no exchange after the end of the input");
        Ok(self.signals)
    }
}
