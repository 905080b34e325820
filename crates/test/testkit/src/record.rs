//! The requests that a server has received, for tests.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The requests of a server so far. Counts are complete. Only the first 10,000 requests are kept whole, which
/// bounds the memory of a long run.
#[derive(Debug)]
pub struct Record {
    connections: AtomicU64,
    requests: AtomicU64,
    refused: AtomicU64,
    keep: u64,
    kept: Mutex<Vec<Request>>,
}

/// A request as the server read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The connection it came on, from 1 in the order of accepting.
    pub connection: u64,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers in the order of arrival; for gRPC the metadata, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body; for gRPC the message with its five bytes of framing.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of the header `name`, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Record {
    /// The number of requests that a server keeps whole.
    pub(crate) const KEPT: u64 = 10_000;

    /// A record that keeps the first `keep` requests whole.
    pub(crate) fn keeping(keep: u64) -> Record {
        Record {
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            keep,
            kept: Mutex::new(Vec::new()),
        }
    }

    /// Connections accepted.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Requests read to their end.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Connections with invalid requests or handshakes.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The first requests, in the order in which they were read.
    #[must_use]
    pub fn first_requests(&self) -> Vec<Request> {
        self.kept.lock().expect("no holder of this lock panics").clone()
    }

    /// Counts a connection, and returns its number.
    pub(crate) fn connected(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a connection that was refused.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request; `whole` is called only if it is kept.
    pub(crate) fn requested(&self, whole: impl FnOnce() -> Request) {
        if self.requests.fetch_add(1, Ordering::Relaxed) < self.keep {
            self.kept.lock().expect("no holder of this lock panics").push(whole());
        }
    }
}
