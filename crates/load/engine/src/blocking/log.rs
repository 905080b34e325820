//! The logs of users, and the recorder that they are filed into.
//!
//! Each user writes into a log of its own; one recorder has the histograms of all. So a user needs no more memory than
//! its log, and nothing per user is handed over each second. The supervisor files all logs repeatedly. A user whose log
//! grows faster than that files it itself, many entries at a time.

use super::Shared;
use crate::recorder::{Recorder, SubjectIndex, request};
use plimsoll_model::record::{ErrorKind, Exchange, RecordedPhase};
use plimsoll_model::units::{Instant, Nanos};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A user whose log has this many new entries files it itself, unless another thread is filing.
const MANY: usize = 512;

/// After this many entries the supervisor yields its processor: a user whose response has arrived may need it, and the
/// server may wait for that user.
const ENTRIES_AT_ONCE: usize = 100;

/// The most yields for one round. If all processors are busy, each yield takes milliseconds, in which users write more
/// than was filed.
const MOST_YIELDS: usize = 30;

/// Stands for no instant in [`SharedLog`].
const NONE: i64 = i64::MIN;

/// The log of one user, as the user and the supervisor share it.
pub(super) struct SharedLog {
    /// They take this lock in turn.
    log: Mutex<UserLog>,
    /// The begin of the user's work between two calls, in nanoseconds of the clock, or [`NONE`]. It counts only while no call
    /// is pending. Outside of the lock, because the user notes it before and after each call.
    between_calls: AtomicI64,
}

/// The log of one user.
#[derive(Default)]
pub(super) struct UserLog {
    /// False before the load, and after the last record is filed: a call that returns later is not recorded again.
    pub(super) is_open: bool,
    entries: Vec<Entry>,
    /// How many calls of each step were made.
    pub(super) made: Vec<u64>,
    /// Entries that remained when the user last filed the log itself.
    left: usize,
    /// True while the user is in an iteration or between two of them.
    pub(super) is_active: bool,
    pub(super) pending: Option<PendingCall>,
    /// In open load the arrival that the user has taken and not done with.
    pub(super) arrival: Option<TakenArrival>,
    /// The number that the kernel gave the user's thread.
    pub(super) thread: Option<i32>,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCall {
    pub(super) step: usize,
    /// When its iteration was due.
    pub(super) iteration: Instant,
    pub(super) scheduled: Instant,
    pub(super) sent: Instant,
}

/// An arrival that a user has taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakenArrival {
    pub(super) due: Instant,
    /// True once a call was made for it.
    pub(super) has_called: bool,
}

/// An entry of a log.
#[derive(Debug)]
pub(super) enum Entry {
    /// An exchange, a part of one, or an iteration.
    Exchange(SubjectIndex, RecordedPhase, Exchange),
    /// An exchange, or an iteration, that could not begin.
    Unsent(SubjectIndex, RecordedPhase, Exchange),
    /// At this instant work was started late, by this much.
    Late(Instant, Nanos),
    /// The text that came with an error of this kind.
    Failure(SubjectIndex, ErrorKind, String),
}

/// The records of all users.
pub(super) struct SharedRecorder {
    recorder: Recorder,
    /// Entries that are not filed yet.
    entries: Vec<Entry>,
}

impl SharedLog {
    /// A log of calls of so many steps.
    pub(super) fn new(steps: usize) -> SharedLog {
        SharedLog { log: Mutex::new(UserLog::new(steps)), between_calls: AtomicI64::new(NONE) }
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, UserLog> {
        // The records of a user that panicked are lost; those of the others still count.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes when the user's work between two calls began, which may hang like a call; none at the end of an iteration.
    #[inline]
    pub(super) fn set_between_calls(&self, begun: Option<Instant>) {
        self.between_calls.store(begun.map_or(NONE, |begun| begun.0), Ordering::Relaxed);
    }

    fn between_calls(&self) -> Option<Instant> {
        Some(Instant(self.between_calls.load(Ordering::Relaxed))).filter(|begun| begun.0 != NONE)
    }
}

impl UserLog {
    /// A log of calls of so many steps.
    fn new(steps: usize) -> UserLog {
        UserLog { made: vec![0; steps], ..UserLog::default() }
    }

    /// Adds an entry, if the log is open.
    #[inline]
    pub(super) fn add(&mut self, entry: Entry) {
        if self.is_open {
            self.entries.push(entry);
        }
    }

    /// Notes that the user has taken an arrival that is due at this instant.
    #[inline]
    pub(super) fn take(&mut self, due: Instant) {
        self.arrival = Some(TakenArrival { due, has_called: false });
    }

    /// Notes that a call begins. Returns false if the log is closed: a call that began now would be in no record.
    #[inline]
    pub(super) fn begin(&mut self, call: PendingCall) -> bool {
        if self.is_open {
            self.made[call.step] += 1;
            self.pending = Some(call);
            if let Some(arrival) = &mut self.arrival {
                arrival.has_called = true;
            }
        }
        self.is_open
    }

    /// True if the user should file the log itself.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.entries.len() >= self.left + MANY
    }
}

impl Entry {
    /// The instant that decides under which second the entry is filed.
    fn at(&self) -> Instant {
        match self {
            Entry::Exchange(_, _, exchange) | Entry::Unsent(_, _, exchange) => exchange.done,
            Entry::Late(at, _) => *at,
            Entry::Failure(..) => Instant(i64::MIN),
        }
    }

    /// Files the entry, and takes the text of a failure out of it.
    fn file(&mut self, recorder: &mut Recorder) {
        match self {
            Entry::Exchange(subject, phase, exchange) => recorder.record(*subject, *phase, exchange),
            Entry::Unsent(subject, phase, exchange) => recorder.record_unsent(*subject, *phase, exchange),
            Entry::Late(at, by) => {
                recorder.roll(*at);
                recorder.record_lateness(*by);
            }
            Entry::Failure(subject, kind, detail) => recorder.keep_example(*subject, *kind, std::mem::take(detail)),
        }
    }
}

impl SharedRecorder {
    pub(super) fn new(recorder: Recorder) -> SharedRecorder {
        SharedRecorder { recorder, entries: Vec::new() }
    }

    /// Takes the entries out of all logs, and counts the users at work. Returns when the oldest pending call was sent, or the
    /// oldest work between calls was begun.
    pub(super) fn collect(&mut self, shared: &Shared) -> Option<Instant> {
        let (mut users, mut in_flight, mut oldest) = (0, 0, None);
        for shared_log in &shared.logs {
            let mut log = shared_log.lock();
            self.entries.append(&mut log.entries);
            log.left = 0;
            users += u64::from(log.is_active);
            in_flight += u64::from(log.pending.is_some());
            let began = log.pending.map(|call| call.sent).or_else(|| shared_log.between_calls());
            oldest = began.into_iter().chain(oldest).min();
        }
        (self.recorder.generator.users, self.recorder.generator.in_flight) = (users, in_flight);
        oldest
    }

    /// Files what one log has of the present second. Only the supervisor ends a second, when it has seen all logs.
    pub(super) fn file_log(&mut self, log: &mut UserLog) {
        let boundary = self.recorder.boundary();
        let present = log.entries.iter().take_while(|entry| entry.at() < boundary).count();
        log.entries[..present].iter_mut().for_each(|entry| entry.file(&mut self.recorder));
        log.entries.drain(..present);
        log.left = log.entries.len();
    }

    /// Adds an entry that is in no log.
    pub(super) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Arrivals that are due and not yet started.
    pub(super) fn set_backlog(&mut self, backlog: u64) {
        self.recorder.generator.backlog = backlog;
    }

    /// Ends the seconds that are over at `now`, and files what was collected up to the end of the present second. An
    /// entry belongs to the second in which it ended, whichever log it was in. Users go on while logs are collected, so
    /// that some entries are of a later second: they wait for a round that has seen all of the present one. Only what
    /// comes into its log after that round is filed a second later.
    pub(super) fn file(&mut self, now: Instant) {
        let mut boundary = self.recorder.boundary();
        while now >= boundary {
            self.file_before(boundary);
            self.recorder.roll(boundary);
            boundary = self.recorder.boundary();
        }
        self.file_before(boundary);
    }

    fn file_before(&mut self, end: Instant) {
        let mut filed = 0;
        self.entries.retain_mut(|entry| {
            if entry.at() >= end {
                return true;
            }
            entry.file(&mut self.recorder);
            filed += 1;
            if filed % ENTRIES_AT_ONCE == 0 && filed <= MOST_YIELDS * ENTRIES_AT_ONCE {
                std::thread::yield_now();
            }
            false
        });
    }

    /// Counts calls that were made.
    pub(super) fn count_made(&mut self, step: usize, calls: u64) {
        self.recorder.count_sent(request(step), calls);
    }

    /// Files the remaining entries, which ended at `now` or before, with calls of these steps under way that are in no entry.
    /// Nothing may follow.
    pub(super) fn close(mut self, now: Instant, under_way: &[usize]) {
        self.file(now);
        let under_way: Vec<SubjectIndex> = under_way.iter().map(|step| request(*step)).collect();
        self.recorder.close_accounts(&under_way);
        self.recorder.finish(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{ITERATION, ThreadReport};
    use plimsoll_model::record::{Outcome, Tally};
    use std::sync::mpsc::channel;

    #[test]
    fn an_entry_belongs_to_the_second_in_which_it_ended_whenever_it_is_collected() {
        const BOUNDARY: i64 = 1_000_000_000;
        let (sender, receiver) = channel();
        let recorder = Recorder::new(&["write"], false, Instant(0), Instant(2 * BOUNDARY), 0, sender);
        let mut recorder = SharedRecorder::new(recorder);
        for done in [BOUNDARY + 1, BOUNDARY - 1] {
            let (sent, done, outcome) = (Instant(done - 10), Instant(done), Outcome::Ok);
            let exchange =
                Exchange { scheduled: sent, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome };
            recorder.add(Entry::Exchange(ITERATION, RecordedPhase::Measure, exchange));
            // The time was read before the logs were collected.
            recorder.file(Instant(BOUNDARY - 2));
        }
        recorder.close(Instant(BOUNDARY + 10), &[]);
        let mut counts = Vec::new();
        for report in receiver {
            let ThreadReport::Interval(_, interval) = report else { continue };
            counts.push((interval.second, interval.tallies.values().map(Tally::count).sum::<u64>()));
        }
        assert_eq!(counts, [(0, 1), (1, 1)]);
    }
}
