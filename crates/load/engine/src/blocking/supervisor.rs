//! The supervisor thread: files the logs of users, ends seconds and the load, and reports calls that hang.

use super::log::{Entry, PendingCall, SharedRecorder, TakenArrival};
use super::user::KeptUser;
use super::{POLL_EVERY, Shared, Source, wait_for_threads};
use crate::clock::{Clock, nanos};
use crate::job::LocalJob;
use crate::recorder::{Findings, ITERATION, ThreadReport, request};
use crate::threads::IntervalMerger;
use plimsoll_model::job::Report;
use plimsoll_model::record::{ErrorKind, Exchange, Interval, Outcome, RecordedPhase};
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
        while !self.is_over() && !self.is_overdue(oldest_call) {
            std::thread::sleep(POLL_EVERY);
            oldest_call = self.file_logs();
            self.receiver.try_iter().for_each(|report| merger.take(report, on_interval));
        }
        let cut_short = self.cut_short();
        self.shared.over.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        let waiting = self.close();
        let hung = self.wait_for_all();
        self.receiver.try_iter().for_each(|report| merger.take(report, on_interval));
        let mut findings = merger.finish(on_interval);
        let fault = hung.or(cut_short);
        findings.extend(fault.map(|fault| Findings { faults: vec![fault], ..Findings::default() }));
        let users = self.threads.into_iter().map(|thread| {
            // A user that panicked has nothing to keep.
            if thread.is_finished() { thread.join().unwrap_or_default() } else { None }
        });
        EndedLoad { findings, users: users.collect(), waiting }
    }

    /// True if nothing is left to do, or no time is left.
    fn is_over(&self) -> bool {
        let drain_end = self.shared.window.end.after(self.job.job.load.drain.into());
        self.job.is_interrupted() || self.clock.now() >= drain_end || self.threads.iter().all(JoinHandle::is_finished)
    }

    /// True if a call hangs, or the work before or after one: the oldest is so far over the time-out that it cannot have noticed it.
    fn is_overdue(&self, oldest_call: Option<Instant>) -> bool {
        let longest = nanos(self.shared.timeout + self.grace).unsigned_abs();
        oldest_call.is_some_and(|sent| self.clock.now().since(sent).0 > longest)
    }

    /// A message if a call that is overdue ends the load before its time. Whatever is measured then is of a shorter load.
    fn cut_short(&self) -> Option<String> {
        let left = self.shared.window.end.since(self.clock.now());
        (!self.is_over() && left > Nanos(0)).then(|| {
            format!(
                "the load ended {:.1} s early, because a call, or its preparation, had not come back {} s after the time-out of {} s (steps: `{}`)",
                left.seconds(),
                self.grace.as_secs_f64(),
                self.shared.timeout.as_secs_f64(),
                self.names.join("`, `")
            )
        })
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

    /// Arrivals that were due at `now` but for which no user ever became free. A load that ends early has later ones
    /// too, which nobody was to take yet.
    fn unsent(&self, now: Instant) -> Vec<Instant> {
        let Source::Open(arrivals) = &self.shared.source else { return Vec::new() };
        let mut arrivals = arrivals.lock().expect("no user panics with the arrivals in its hands");
        let window = &self.shared.window;
        let mut quota = self.shared.quota.clone();
        let due = std::iter::from_fn(|| arrivals.next_if(|due| due <= now && due < window.end));
        due.take_while(|due| quota.admit(*due, window, &mut u64::MAX.clone())).collect()
    }

    /// Records calls that have not ended and arrivals that were never sent, and closes the logs. Returns the arrivals that
    /// wait for the next load instead.
    fn close(&self) -> Vec<Nanos> {
        let Some(mut recorder) = self.shared.recorder().take() else { return Vec::new() };
        let interrupted = self.job.is_interrupted();
        // Nobody asks for those of an interrupted load, which may be millions.
        let are_asked_for = !interrupted || self.shared.stays;
        let unsent = if are_asked_for { self.unsent(self.clock.now()) } else { Vec::new() };
        let mut unfinished: Vec<PendingCall> = Vec::new();
        let mut between_calls: Vec<TakenArrival> = Vec::new();
        for index in 0..self.threads.len() {
            let mut log = self.shared.log(index);
            log.is_open = false;
            let made = std::mem::take(&mut log.made);
            made.iter().enumerate().for_each(|(step, calls)| recorder.count_made(step, *calls));
            let arrival = log.arrival.take();
            match log.pending.take() {
                Some(call) => unfinished.push(call),
                None => between_calls.extend(arrival),
            }
        }
        recorder.collect(self.shared);
        let now = self.clock.now();
        if !interrupted {
            unfinished.iter().for_each(|call| self.add_unfinished(&mut recorder, call, now));
            let are_due = between_calls.iter().filter(|arrival| arrival.due <= now);
            are_due.for_each(|arrival| self.add_between_calls(&mut recorder, *arrival, now));
        }
        if !interrupted && !self.shared.stays {
            unsent.iter().for_each(|due| self.add_unsent(&mut recorder, *due, now, ALL_AT_WORK));
        }
        let left: Vec<usize> = if interrupted { unfinished.iter().map(|call| call.step).collect() } else { Vec::new() };
        recorder.close(now, &left);
        let waits = |due: &Instant| self.shared.window.end.since(*due);
        if self.shared.stays { unsent.iter().map(waits).collect() } else { Vec::new() }
    }

    /// Waits for the threads of the users. Returns a message if some hang.
    fn wait_for_all(&self) -> Option<String> {
        wait_for_threads(&self.threads, self.grace);
        let hung = self.threads.iter().filter(|thread| !thread.is_finished()).count();
        if hung == 0 {
            return None;
        }
        let (users, steps) = (self.threads.len(), self.names.join("`, `"));
        Some(format!(
            "{hung} of {users} users did not come back from a call within {} s after they were told to give up: what they \
             wait for hangs (steps: `{steps}`)",
            self.grace.as_secs_f64()
        ))
    }

    fn add_unfinished(&self, recorder: &mut SharedRecorder, call: &PendingCall, now: Instant) {
        let (subject, phase, kind) = (request(call.step), self.phase(call.iteration), ErrorKind::Timeout);
        recorder.add(Entry::Failure(subject, kind, "still under way at the end of the drain".to_owned()));
        recorder.add(Entry::Exchange(subject, phase, failed(kind, call.scheduled, call.sent, now)));
        recorder.add(Entry::Exchange(ITERATION, phase, failed(kind, call.iteration, call.iteration, now)));
    }

    /// Records an arrival whose user was not in a call when the drain ended: it had not made the first one, or the next.
    fn add_between_calls(&self, recorder: &mut SharedRecorder, arrival: TakenArrival, now: Instant) {
        let TakenArrival { due, has_called } = arrival;
        if !has_called {
            return self.add_unsent(recorder, due, now, "its user was not ready for it before the end of the drain");
        }
        recorder.add(Entry::Exchange(ITERATION, self.phase(due), failed(ErrorKind::Timeout, due, due, now)));
    }

    fn add_unsent(&self, recorder: &mut SharedRecorder, due: Instant, now: Instant, why: &str) {
        for subject in [request(0), ITERATION] {
            recorder.add(Entry::Unsent(subject, self.phase(due), failed(ErrorKind::Unsent, due, due, now)));
        }
        recorder.add(Entry::Failure(request(0), ErrorKind::Unsent, why.to_owned()));
    }

    fn phase(&self, due: Instant) -> RecordedPhase {
        self.clock.phase_of_arrival(due, self.shared.window.end)
    }
}

const ALL_AT_WORK: &str = "no user was free for it: the study's `max_users` were all at work";

fn failed(kind: ErrorKind, scheduled: Instant, sent: Instant, done: Instant) -> Exchange {
    let outcome = Outcome::Failed(kind);
    Exchange { scheduled, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome }
}
