//! The replies to control frames of a peer: PING and SETTINGS of HTTP/2, pings of WebSocket. A peer that sends such frames
//! and never reads would have us keep ever more of them.

use std::fmt;

/// The most bytes of replies that are kept while the peer reads none. What one read of its socket can ask for is less.
const MOST: usize = 1024 * 1024;

/// The replies of a connection that are not sent yet.
#[derive(Debug, Default)]
pub(crate) struct ControlReplies {
    /// The bytes of replies since all output had been sent.
    waiting: usize,
}

/// The peer requires replies and reads none.
#[derive(Debug)]
pub(crate) struct TooManyReplies;

impl fmt::Display for TooManyReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a peer that reads what it asks for, found {MOST} bytes of replies to its control frames unread"
        )
    }
}

impl ControlReplies {
    /// Looks at the output that is left when new input has come.
    pub(crate) fn see_output(&mut self, out: &[u8]) {
        if out.is_empty() {
            self.waiting = 0;
        }
    }

    /// Counts a reply of so many bytes that is about to be written.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), TooManyReplies> {
        self.waiting += bytes;
        if self.waiting > MOST { Err(TooManyReplies) } else { Ok(()) }
    }
}
