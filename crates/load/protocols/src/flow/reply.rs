//! What is kept of a reply until its user has looked at it.

use super::template::SAMPLE;
use crate::http::response::Sink;
use std::ops::Range;

/// The largest body that a step can look into.
pub(super) const LARGEST_BODY: usize = 16 << 20;

/// Larger buffers are given back after the reply.
const KEPT_CAPACITY: usize = 16 << 10;

/// What a step wants of a reply, beside its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Keep {
    pub(super) headers: bool,
    pub(super) body: bool,
}

/// A reply, as far as it has come and somebody wants it.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) keep: Keep,
    /// Path and query of the request.
    pub(super) target: String,
    pub(super) status: u16,
    /// All names and values of headers, one behind the other.
    text: Vec<u8>,
    headers: Vec<(Range<usize>, Range<usize>)>,
    /// The body if it is to be kept; of one that says what went wrong, the beginning.
    pub(super) body: Vec<u8>,
    /// True if the body is larger than what is kept.
    pub(super) is_cut: bool,
}

impl Reply {
    /// Gets ready for the reply to another request.
    pub(super) fn expect(&mut self, keep: Keep, target: &[u8]) {
        self.keep = keep;
        self.forget();
        self.target.clear();
        self.target.push_str(&String::from_utf8_lossy(target));
    }

    fn forget(&mut self) {
        self.text.clear();
        self.headers.clear();
        self.body.clear();
        self.is_cut = false;
    }

    /// Gives back what only a reply larger than most has needed.
    pub(super) fn shrink(&mut self) {
        self.forget();
        self.body.shrink_to(KEPT_CAPACITY);
        self.text.shrink_to(KEPT_CAPACITY);
    }

    /// The values of a header.
    pub(super) fn header<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let is_wanted = |name: &Range<usize>| self.text[name.clone()].eq_ignore_ascii_case(wanted.as_bytes());
        self.headers.iter().filter(move |(name, _)| is_wanted(name)).map(|(_, value)| &self.text[value.clone()])
    }

    /// How much of the body is kept.
    fn limit(&self) -> usize {
        match (self.keep.body, self.status >= 400) {
            (true, _) => LARGEST_BODY,
            (false, true) => SAMPLE + 1,
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
        self.forget();
        self.status = status;
        !self.keep.headers
    }

    fn head(&mut self, status: u16, headers: &[httparse::Header<'_>], _: &[u8]) {
        // An interim response may have come before.
        self.forget();
        self.status = status;
        if self.keep.headers {
            for header in headers {
                let pair = (self.add(header.name.as_bytes()), self.add(header.value));
                self.headers.push(pair);
            }
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let room = self.limit() - self.body.len();
        self.is_cut |= bytes.len() > room;
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
