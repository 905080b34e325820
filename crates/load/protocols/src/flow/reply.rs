//! The parts of a reply that are kept until its user has processed it.

use super::template::LONGEST_EXCERPT;
use crate::http::response::Sink;
use std::ops::Range;

/// The largest body that checks and captures accept.
pub(super) const LARGEST_BODY: usize = 16 << 20;

/// Larger buffers are freed after the reply.
const KEPT_CAPACITY: usize = 16 << 10;

/// The parts of a reply that a step needs, beside its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeptParts {
    pub(super) headers: bool,
    pub(super) body: bool,
}

/// The kept parts of a reply, as far as they have arrived.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) keep: KeptParts,
    /// Path and query of the request.
    pub(super) target: String,
    pub(super) status: u16,
    /// The names and values of all headers, joined.
    text: Vec<u8>,
    headers: Vec<(Range<usize>, Range<usize>)>,
    /// The body if it is to be kept; of an error response, the beginning.
    pub(super) body: Vec<u8>,
    /// True if the body is larger than what is kept.
    pub(super) is_cut: bool,
}

impl Reply {
    /// A message, of which only the body is known.
    pub(super) fn of_message(body: Vec<u8>) -> Reply {
        Reply { body, ..Reply::default() }
    }

    /// Prepares for the reply to another request.
    pub(super) fn expect(&mut self, keep: KeptParts, target: &[u8]) {
        self.keep = keep;
        self.clear();
        self.target.clear();
        self.target.push_str(&String::from_utf8_lossy(target));
    }

    fn clear(&mut self) {
        self.text.clear();
        self.headers.clear();
        self.body.clear();
        self.is_cut = false;
    }

    /// Frees the memory that only an unusually large reply needed.
    pub(super) fn shrink(&mut self) {
        self.clear();
        self.body.shrink_to(KEPT_CAPACITY);
        self.text.shrink_to(KEPT_CAPACITY);
    }

    /// The values of a header.
    pub(super) fn header<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let is_wanted = |name: &Range<usize>| self.text[name.clone()].eq_ignore_ascii_case(wanted.as_bytes());
        self.headers.iter().filter(move |(name, _)| is_wanted(name)).map(|(_, value)| &self.text[value.clone()])
    }

    /// The most bytes of the body to keep.
    fn limit(&self) -> usize {
        match (self.keep.body, self.status >= 400) {
            (true, _) => LARGEST_BODY,
            (false, true) => LONGEST_EXCERPT + 1,
            (false, false) => 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.text.len();
        self.text.extend_from_slice(bytes);
        start..self.text.len()
    }
}

impl Sink for Reply {
    fn same_head(&mut self, status: u16) -> bool {
        self.clear();
        self.status = status;
        !self.keep.headers
    }

    fn head(&mut self, status: u16, headers: &[httparse::Header<'_>], _: &[u8]) {
        // An interim response may have come before.
        self.clear();
        self.status = status;
        if self.keep.headers {
            for header in headers {
                let pair = (self.add(header.name.as_bytes()), self.add(header.value));
                self.headers.push(pair);
            }
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let space = self.limit() - self.body.len();
        self.is_cut |= bytes.len() > space;
        self.body.extend_from_slice(&bytes[..bytes.len().min(space)]);
    }
}
