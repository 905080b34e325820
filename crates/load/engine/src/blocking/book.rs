//! What users take note of, and who files it.
//!
//! Each user writes into a book of its own; one ledger has the histograms of all. So a user is as
//! small as what it has noted since the last look, and its second costs nothing to hand over. The
//! keeper looks often; users that note more than it comes to file do so themselves, many entries at
//! a time.

use super::Shared;
use crate::recorder::{Recorder, SubjectIndex};
use plimsoll_model::record::{ErrorKind, Exchange, RecordedPhase};
use plimsoll_model::units::{Instant, Nanos};

/// A user that has so many entries files them itself, if nobody else files at present.
const MANY: usize = 512;

/// After so many entries the keeper lets others go first: a user whose answer is there would wait for
/// its processor, and the server for the user.
const AT_ONCE: usize = 100;

/// But so often at the most: where all processors are busy, each time takes milliseconds, in which more is noted than
/// was filed.
const COURTESIES: usize = 30;

/// The notes of one user, written by whoever holds the lock: the user, or the keeper.
#[derive(Default)]
pub(super) struct Book {
    /// False before the load and after the books are closed: a call that comes back later is not
    /// recorded again.
    pub(super) is_open: bool,
    entries: Vec<Entry>,
    /// Entries that were left when the user last filed itself.
    left: usize,
    /// Whether the user is in an iteration, or between two of them.
    pub(super) is_active: bool,
    pub(super) at_work: Option<AtWork>,
    /// The thread, as the kernel numbers it.
    pub(super) thread: Option<i32>,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtWork {
    pub(super) step: usize,
    /// When its iteration was due.
    pub(super) iteration: Instant,
    pub(super) scheduled: Instant,
    pub(super) sent: Instant,
}

/// Something to be filed.
#[derive(Debug)]
pub(super) enum Entry {
    /// An exchange, a part of one, or an iteration.
    Exchange(SubjectIndex, RecordedPhase, Exchange),
    /// At this instant something was started so much later than due.
    Late(Instant, Nanos),
    /// What came with an error of this kind.
    Failure(SubjectIndex, ErrorKind, String),
}

/// The records of all users.
pub(super) struct Ledger {
    recorder: Recorder,
    /// What is not filed yet.
    entries: Vec<Entry>,
}

impl Book {
    #[inline]
    pub(super) fn note(&mut self, entry: Entry) {
        if self.is_open {
            self.entries.push(entry);
        }
    }

    /// Whether the user should file itself what it has noted.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.left + MANY
    }
}

impl Entry {
    /// When it was noted, as far as it matters for the second under which it is filed.
    fn at(&self) -> Instant {
        match self {
            Entry::Exchange(_, _, exchange) => exchange.done,
            Entry::Late(at, _) => *at,
            Entry::Failure(..) => Instant(i64::MIN),
        }
    }

    fn file(self, recorder: &mut Recorder) {
        match self {
            Entry::Exchange(subject, phase, exchange) => recorder.record(subject, phase, &exchange),
            Entry::Late(at, by) => {
                recorder.roll(at);
                recorder.record_lateness(by);
            }
            Entry::Failure(subject, kind, detail) => recorder.keep_example(subject, kind, detail),
        }
    }
}

impl Ledger {
    pub(super) fn new(recorder: Recorder) -> Ledger {
        Ledger { recorder, entries: Vec::new() }
    }

    /// Collects what all users have noted, and how many of them are at work; says when the oldest call under way was
    /// sent.
    pub(super) fn collect(&mut self, shared: &Shared) -> Option<Instant> {
        let (mut users, mut in_flight, mut oldest) = (0, 0, None);
        for index in 0..shared.books.len() {
            let mut book = shared.book(index);
            self.entries.append(&mut book.entries);
            book.left = 0;
            users += u64::from(book.is_active);
            if let Some(call) = book.at_work {
                in_flight += 1;
                oldest = Some(oldest.map_or(call.sent, |before: Instant| before.min(call.sent)));
            }
        }
        (self.recorder.generator.users, self.recorder.generator.in_flight) = (users, in_flight);
        oldest
    }

    /// Files what belongs to the present second of one user: the second itself is for the keeper to
    /// end, when it has seen all users.
    pub(super) fn relieve(&mut self, book: &mut Book) {
        let boundary = self.recorder.boundary();
        let present = book.entries.iter().take_while(|entry| entry.at() < boundary).count();
        book.entries.drain(..present).for_each(|entry| entry.file(&mut self.recorder));
        book.left = book.entries.len();
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Arrivals that are due and not yet started.
    pub(super) fn set_backlog(&mut self, backlog: u64) {
        self.recorder.generator.backlog = backlog;
    }

    /// Files what was collected, and ends the seconds that are over at `now`.
    pub(super) fn file(&mut self, now: Instant) {
        if now >= self.recorder.boundary() {
            // What ended before the second did belongs to it, whoever noted it.
            self.entries.sort_by_key(Entry::at);
        }
        for (filed, entry) in (1..).zip(self.entries.drain(..)) {
            entry.file(&mut self.recorder);
            if filed % AT_ONCE == 0 && filed <= COURTESIES * AT_ONCE {
                std::thread::yield_now();
            }
        }
        self.recorder.roll(now);
    }

    /// Files the rest; nothing follows.
    pub(super) fn close(mut self, now: Instant) {
        self.file(now);
        self.recorder.finish(now);
    }
}
