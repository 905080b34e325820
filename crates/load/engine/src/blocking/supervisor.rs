//! The supervisor thread: files the logs of users, ends seconds and the load, and reports calls that hang.

use super::log::{Entry, PendingCall, SharedRecorder};
use super::user::{KeptUser, phase};
use super::{POLL_EVERY, Shared, Source};
use crate::clock::{Clock, nanos};
use crate::job::LocalJob;
use crate::recorder::{Findings, ITERATION, ThreadReport, request};
use crate::threads::IntervalMerger;
use plimsoll_model::job::Report;
use plimsoll_model::record::{ErrorKind, Exchange, Interval, Outcome};
use plimsoll_model::units::{Instant, Nanos};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

/// The supervisor thread.
pub(super) struct Supervisor<'a, U> {
    pub(super) shared: &'a Shared,
    pub(super) job: LocalJob<'a>,
    /// The names of the steps.
    pub(super) names: &'a [&'a str],
    pub(super) grace: Duration,
    pub(super) clock: Clock,
    pub(super) receiver: Receiver<ThreadReport>,
    pub(super) threads: Vec<JoinHandle<Option<KeptUser<U>>>>,
}

/// A load that is over.
pub(super) struct EndedLoad<U> {
    pub(super) findings: Vec<Findings>,
    /// The states of users that stay. None of those that hang.
    pub(super) users: Vec<Option<KeptUser<U>>>,
    /// Arrivals that wait for the next load: how long before the end of this one they were due.
    pub(super) waiting: Vec<Nanos>,
}

impl<U> Supervisor<'_, U> {
    /// Supervises the load until it is over, and passes on its records.
    pub(super) fn run(self, reports: &mut dyn FnMut(Report)) -> EndedLoad<U> {
        let zero = self.clock.unix(Instant(0));
        let on_interval = &mut |interval: Interval| reports(Report::Second { zero, interval: Box::new(interval) });
        let mut merger = IntervalMerger::new(1);
        let mut oldest_call = None;
        while !self.is_over(oldest_call) {
            std::thread::sleep(POLL_EVERY);
            oldest_call = self.file_logs();
            self.receiver.try_iter().for_each(|report| merger.take(report, on_interval));
        }
        self.shared.over.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        let waiting = self.close();
        let hung = self.wait_for_all();
        self.receiver.try_iter().for_each(|report| merger.take(report, on_interval));
        let mut findings = merger.finish(on_interval);
        findings.extend((!hung.is_empty()).then(|| Findings { faults: hung, ..Findings::default() }));
        let users = self.threads.into_iter().map(|thread| {
            // A user that panicked has nothing to keep.
            if thread.is_finished() { thread.join().unwrap_or_default() } else { None }
        });
        EndedLoad { findings, users: users.collect(), waiting }
    }

    /// True if nothing is left to do, if no time is left, or if a call hangs: the oldest pending call is so far over
    /// its time-out that it cannot have noticed it.
    fn is_over(&self, oldest_call: Option<Instant>) -> bool {
        let now = self.clock.now();
        let drain_end = self.shared.window.end.after(self.job.job.load.drain.into());
        let longest = nanos(self.shared.timeout + self.grace).unsigned_abs();
        self.job.is_interrupted()
            || now >= drain_end
            || self.threads.iter().all(JoinHandle::is_finished)
            || oldest_call.is_some_and(|sent| now.since(sent).0 > longest)
    }

    /// Files all logs. Returns when the oldest pending call was sent.
    fn file_logs(&self) -> Option<Instant> {
        let now = self.clock.now();
        let mut recorder = self.shared.recorder();
        let recorder = recorder.as_mut()?;
        recorder.set_backlog(self.backlog(now));
        let oldest_call = recorder.collect(self.shared);
        recorder.file(now);
        oldest_call
    }

    /// Arrivals that are due and for which no user was free: an estimate from the present rate.
    fn backlog(&self, now: Instant) -> u64 {
        let Source::Open(arrivals) = &self.shared.source else { return 0 };
        let mut arrivals = arrivals.lock().expect("no user panics with the arrivals in its hands");
        arrivals.backlog(now, self.shared.window.end)
    }

    /// Arrivals that were due but for which no user ever became free.
    fn unsent(&self) -> Vec<Instant> {
        let Source::Open(arrivals) = &self.shared.source else { return Vec::new() };
        let mut arrivals = arrivals.lock().expect("no user panics with the arrivals in its hands");
        let window = &self.shared.window;
        let mut quota = self.shared.quota.clone();
        let due = std::iter::from_fn(|| arrivals.next_if(|due| due < window.end));
        due.take_while(|due| quota.admit(*due, window, &mut u64::MAX.clone())).collect()
    }

    /// Records calls that have not ended and arrivals that were never sent, and closes the logs. Returns the arrivals that
    /// wait for the next load instead.
    fn close(&self) -> Vec<Nanos> {
        let Some(mut recorder) = self.shared.recorder().take() else { return Vec::new() };
        let interrupted = self.job.is_interrupted();
        let unsent = self.unsent();
        let unfinished = (0..self.threads.len()).filter_map(|index| {
            let mut log = self.shared.log(index);
            log.is_open = false;
            let made = std::mem::take(&mut log.made);
            made.iter().enumerate().for_each(|(step, calls)| recorder.count_made(step, *calls));
            log.pending.take()
        });
        let unfinished: Vec<PendingCall> = unfinished.collect();
        recorder.collect(self.shared);
        let now = self.clock.now();
        if !interrupted {
            unfinished.iter().for_each(|call| add_unfinished(&mut recorder, call, now));
        }
        if !interrupted && !self.shared.stays {
            unsent.iter().for_each(|due| add_unsent(&mut recorder, *due, now));
        }
        let left: Vec<usize> = if interrupted { unfinished.iter().map(|call| call.step).collect() } else { Vec::new() };
        recorder.close(now, &left);
        let waits = |due: &Instant| self.shared.window.end.since(*due);
        if self.shared.stays { unsent.iter().map(waits).collect() } else { Vec::new() }
    }

    /// Waits for the threads of the users. Returns a message for each that hangs, with the call that it hangs in.
    fn wait_for_all(&self) -> Vec<String> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < self.grace && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(POLL_EVERY);
        }
        let hung = self.threads.iter().filter(|thread| !thread.is_finished()).count();
        if hung == 0 {
            return Vec::new();
        }
        let (users, steps) = (self.threads.len(), self.names.join("`, `"));
        vec![format!(
            "{hung} of {users} users did not come back from a call within {} s after they were told to give up: what they \
             wait for hangs (steps: `{steps}`)",
            self.grace.as_secs_f64()
        )]
    }
}

fn add_unfinished(recorder: &mut SharedRecorder, call: &PendingCall, now: Instant) {
    let (subject, phase, kind) = (request(call.step), phase(call.iteration), ErrorKind::Timeout);
    recorder.add(Entry::Failure(subject, kind, "still under way at the end of the drain".to_owned()));
    recorder.add(Entry::Exchange(subject, phase, failed(kind, call.scheduled, call.sent, now)));
    recorder.add(Entry::Exchange(ITERATION, phase, failed(kind, call.iteration, call.iteration, now)));
}

fn add_unsent(recorder: &mut SharedRecorder, due: Instant, now: Instant) {
    for subject in [request(0), ITERATION] {
        recorder.add(Entry::Unsent(subject, phase(due), failed(ErrorKind::Unsent, due, due, now)));
    }
    let detail = "no user was free for it: the study's `max_users` were all at work".to_owned();
    recorder.add(Entry::Failure(request(0), ErrorKind::Unsent, detail));
}

fn failed(kind: ErrorKind, scheduled: Instant, sent: Instant, done: Instant) -> Exchange {
    let outcome = Outcome::Failed(kind);
    Exchange { scheduled, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome }
}
