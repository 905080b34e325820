//! Keeps the seconds of all users, ends the load, and tells who no longer comes back.

use super::book::{AtWork, Entry, Ledger};
use super::member::phase;
use super::{Crew, LOOK_EVERY, Shared, Source};
use crate::clock::{Clock, nanos};
use crate::job::Job;
use crate::recorder::{Findings, Handover, ITERATION, request};
use crate::threads::Collector;
use plimsoll_model::load::LoadModel;
use plimsoll_model::record::{ErrorKind, Exchange, Interval, Outcome};
use plimsoll_model::units::Instant;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread beside the users.
pub(super) struct Keeper<'a> {
    shared: &'a Shared,
    job: &'a Job<'a>,
    names: Vec<String>,
    grace: Duration,
    clock: Clock,
    receiver: Receiver<Handover>,
    users: Vec<JoinHandle<()>>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new<C>(
        shared: &'a Shared,
        crew: &Crew<'_, C>,
        job: &'a Job<'a>,
        clock: Clock,
        receiver: Receiver<Handover>,
        users: Vec<JoinHandle<()>>,
    ) -> Keeper<'a> {
        let names = crew.names.iter().map(|name| (*name).to_owned()).collect();
        Keeper { shared, job, names, grace: crew.grace, clock, receiver, users }
    }

    /// Looks after the load until it is over, and hands over what was recorded.
    pub(super) fn keep(self, on_interval: &mut dyn FnMut(Interval)) -> Vec<Findings> {
        let mut collector = Collector::new(1);
        let mut oldest_call = None;
        while !self.is_over(oldest_call) {
            std::thread::sleep(LOOK_EVERY);
            oldest_call = self.keep_seconds();
            self.receiver.try_iter().for_each(|handover| collector.take(handover, on_interval));
        }
        self.shared.over.store(true, Ordering::Relaxed);
        self.users.iter().for_each(|user| user.thread().unpark());
        self.close_books();
        let hung = self.wait_for_all();
        self.receiver.try_iter().for_each(|handover| collector.take(handover, on_interval));
        let mut findings = collector.finish(on_interval);
        findings.extend((!hung.is_empty()).then(|| Findings { faults: hung, ..Findings::default() }));
        findings
    }

    /// Whether nothing is left to do, or no time to do it in, or a call does not come back: the one under way that was
    /// sent first takes so much longer than it may that it cannot have been told so.
    fn is_over(&self, oldest_call: Option<Instant>) -> bool {
        let now = self.clock.now();
        let drain_end = self.shared.window_end.after(self.job.load.drain.into());
        let longest = nanos(self.shared.timeout + self.grace).unsigned_abs();
        self.job.interrupted.load(Ordering::Relaxed)
            || now >= drain_end
            || self.users.iter().all(JoinHandle::is_finished)
            || oldest_call.is_some_and(|sent| now.since(sent).0 > longest)
    }

    /// Files what users have noted so far; says when the oldest call under way was sent.
    fn keep_seconds(&self) -> Option<Instant> {
        let now = self.clock.now();
        let mut ledger = self.shared.ledger();
        let ledger = ledger.as_mut()?;
        ledger.set_backlog(self.backlog(now));
        let oldest_call = ledger.collect(self.shared);
        ledger.file(now);
        oldest_call
    }

    /// Arrivals that are due and that nobody was free for: an estimate from the present rate.
    fn backlog(&self, now: Instant) -> u64 {
        let (Source::Open(arrivals), LoadModel::Open { rate, .. }) = (&self.shared.source, &self.job.load.model) else {
            return 0;
        };
        let next = arrivals.lock().expect("no user panics with the arrivals in its hands").peek().copied();
        let late = next.filter(|due| *due <= now && *due < self.shared.window_end);
        late.map_or(0, |due| 1 + (now.since(due).seconds() * rate.at(now.0 as f64 / 1e9)) as u64)
    }

    /// Arrivals that were due but for which no user ever became free.
    fn unsent(&self) -> Vec<Instant> {
        let Source::Open(arrivals) = &self.shared.source else { return Vec::new() };
        let mut arrivals = arrivals.lock().expect("no user panics with the arrivals in its hands");
        let due = std::iter::from_fn(|| arrivals.next_if(|due| *due < self.shared.window_end));
        due.take_while(|due| self.shared.takes_quota(*due, &mut u64::MAX.clone())).collect()
    }

    /// Counts what never came to its end, and closes the books.
    fn close_books(&self) {
        let Some(mut ledger) = self.shared.ledger().take() else { return };
        let interrupted = self.job.interrupted.load(Ordering::Relaxed);
        let unsent = self.unsent();
        let unfinished = (0..self.users.len()).filter_map(|index| {
            let mut book = self.shared.book(index);
            book.is_open = false;
            book.at_work.take()
        });
        let unfinished: Vec<AtWork> = unfinished.collect();
        ledger.collect(self.shared);
        let now = self.clock.now();
        if !interrupted {
            unfinished.iter().for_each(|call| add_unfinished(&mut ledger, call, now));
            unsent.iter().for_each(|due| add_unsent(&mut ledger, *due, now));
        }
        ledger.close(now);
    }

    /// Waits for the threads of the users; says which of them hang, and in what.
    fn wait_for_all(&self) -> Vec<String> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < self.grace && !self.users.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(LOOK_EVERY);
        }
        let hung = self.users.iter().filter(|user| !user.is_finished()).count();
        if hung == 0 {
            return Vec::new();
        }
        let (users, steps) = (self.users.len(), self.names.join("`, `"));
        vec![format!(
            "{hung} of {users} users did not come back from a call within {} s after they were told to give up: what they \
             wait for hangs (steps: `{steps}`)",
            self.grace.as_secs_f64()
        )]
    }
}

fn add_unfinished(ledger: &mut Ledger, call: &AtWork, now: Instant) {
    let (subject, phase, kind) = (request(call.step), phase(call.iteration), ErrorKind::Timeout);
    ledger.add(Entry::Failure(subject, kind, "still under way at the end of the drain".to_owned()));
    ledger.add(Entry::Exchange(subject, phase, failed(kind, call.scheduled, call.sent, now)));
    ledger.add(Entry::Exchange(ITERATION, phase, failed(kind, call.iteration, call.iteration, now)));
}

fn add_unsent(ledger: &mut Ledger, due: Instant, now: Instant) {
    for subject in [request(0), ITERATION] {
        ledger.add(Entry::Exchange(subject, phase(due), failed(ErrorKind::Unsent, due, due, now)));
    }
    let detail = "no user was free for it: the study's `max_users` were all at work".to_owned();
    ledger.add(Entry::Failure(request(0), ErrorKind::Unsent, detail));
}

fn failed(kind: ErrorKind, scheduled: Instant, sent: Instant, done: Instant) -> Exchange {
    let outcome = Outcome::Failed(kind);
    Exchange { scheduled, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome }
}
