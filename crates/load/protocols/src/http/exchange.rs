//! The exchange state of an HTTP/1.1 connection, for any kind of request.

use super::response::{Progress, ResponseReader, Sink};
use plimsoll_engine::protocol::{Reply, Signal, Violation};

/// The state of a connection: idle, in an exchange, or closed. There is no pipelining.
#[derive(Debug, Default)]
pub(crate) struct ExchangeState {
    state: State,
    reader: ResponseReader,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// The reply to this ticket is awaited, or arriving.
    Busy { ticket: u32, first_byte_seen: bool },
    /// No further exchange can follow.
    Closed,
}

impl ExchangeState {
    /// True if another exchange can follow.
    #[inline]
    pub(crate) fn is_reusable(&self) -> bool {
        self.state != State::Closed
    }

    /// Records that a request was written. A response to HEAD has no body whatever its headers say.
    #[inline]
    pub(crate) fn send(&mut self, ticket: u32, is_head: bool) {
        debug_assert_eq!(self.state, State::Idle, "one exchange at a time");
        self.state = State::Busy { ticket, first_byte_seen: false };
        self.reader.expect(is_head);
    }

    /// Processes received bytes, and passes their content to `sink`. `check` turns the status of a complete
    /// reply into its result.
    ///
    /// # Errors
    /// The peer violates the protocol.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        sink: &mut impl Sink,
        signals: &mut Vec<Signal>,
        check: impl FnOnce(u16) -> Reply,
    ) -> Result<(), Violation> {
        if input.is_empty() {
            return Ok(());
        }
        let State::Busy { ticket, first_byte_seen } = self.state else {
            return Err(Violation::new(format!("expected silence between responses, found {} bytes", input.len())));
        };
        if !first_byte_seen {
            signals.push(Signal::FirstByte { ticket });
            self.state = State::Busy { ticket, first_byte_seen: true };
        }
        match self.reader.read(input, sink)? {
            Progress::Partial => Ok(()),
            Progress::Complete { status, keep_alive, unread: 0 } => {
                self.state = if keep_alive { State::Idle } else { State::Closed };
                signals.push(Signal::Done { ticket, reply: check(status) });
                Ok(())
            }
            Progress::Complete { unread, .. } => {
                Err(Violation::new(format!("expected the end of the response, found {unread} bytes more")))
            }
        }
    }

    /// Handles the end of the peer's side, which may complete a reply.
    pub(crate) fn end_of_input(&mut self, signals: &mut Vec<Signal>, check: impl FnOnce(u16) -> Reply) {
        if let State::Busy { ticket, .. } = self.state
            && let Some(status) = self.reader.end_of_input()
        {
            signals.push(Signal::Done { ticket, reply: check(status) });
        }
        self.state = State::Closed;
    }

    /// Abandons the exchange, and with it the connection: HTTP/1.1 cannot cancel a request, so its reply may
    /// still arrive.
    pub(crate) fn abandon(&mut self) {
        self.state = State::Closed;
    }
}
