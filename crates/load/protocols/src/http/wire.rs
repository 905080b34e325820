//! One HTTP/1.1 connection without its requests: which exchange is under way, and how far.

use super::response::{Progress, ResponseReader, Sink};
use plimsoll_engine::protocol::{Reply, Signal, Violation};

/// The state of a connection; one exchange at a time, no pipelining.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    state: State,
    reader: ResponseReader,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// The reply to this ticket is awaited or under way.
    Busy { ticket: u32, begun: bool },
    /// No further exchange may be sent.
    Spent,
}

impl Wire {
    /// True if another exchange can follow.
    #[inline]
    pub(crate) fn is_reusable(&self) -> bool {
        self.state != State::Spent
    }

    /// A request was written. The response to HEAD has no body whatever its headers say.
    #[inline]
    pub(crate) fn send(&mut self, ticket: u32, is_head: bool) {
        debug_assert_eq!(self.state, State::Idle, "one exchange at a time");
        self.state = State::Busy { ticket, begun: false };
        self.reader.expect(is_head);
    }

    /// Takes bytes that were read, and shows `sink` what they hold; `judge` says what to think of
    /// the status of a reply that is complete.
    ///
    /// # Errors
    /// The peer breaks the protocol.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        sink: &mut impl Sink,
        signals: &mut Vec<Signal>,
        judge: impl FnOnce(u16) -> Reply,
    ) -> Result<(), Violation> {
        if input.is_empty() {
            return Ok(());
        }
        let State::Busy { ticket, begun } = self.state else {
            return Err(Violation::new(format!("expected silence between responses, found {} bytes", input.len())));
        };
        if !begun {
            signals.push(Signal::FirstByte { ticket });
            self.state = State::Busy { ticket, begun: true };
        }
        match self.reader.read(input, sink)? {
            Progress::Partial => Ok(()),
            Progress::Complete { status, keep_alive, unread: 0 } => {
                self.state = if keep_alive { State::Idle } else { State::Spent };
                signals.push(Signal::Done { ticket, reply: judge(status) });
                Ok(())
            }
            Progress::Complete { unread, .. } => {
                Err(Violation::new(format!("expected the end of the response, found {unread} bytes more")))
            }
        }
    }

    /// The peer has ended its side, which may complete a reply.
    pub(crate) fn end_of_input(&mut self, signals: &mut Vec<Signal>, judge: impl FnOnce(u16) -> Reply) {
        if let State::Busy { ticket, .. } = self.state
            && let Some(status) = self.reader.end_of_input()
        {
            signals.push(Signal::Done { ticket, reply: judge(status) });
        }
        self.state = State::Spent;
    }

    /// HTTP/1.1 has no way to take a request back: its reply may still come.
    pub(crate) fn give_up(&mut self) {
        self.state = State::Spent;
    }
}
