//! The context of a thread's loop: clock, descriptors, timers, recorder and offers.

use super::work::Work;
use crate::clock::Clock;
use crate::offer::{Offer, Offering, SharedQuota, Start};
use crate::recorder::{CONNECT, ITERATION, Recorder, SubjectIndex};
use crate::schedule::ThreadShare;
use crate::timers::{Alarm, Timers};
use crate::transport::{Cause, Dialer, Transport, TransportError};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome, RecordedPhase};
use plimsoll_model::units::{Instant, Nanos};
use rustix::event::epoll;
use rustix::io::Errno;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The context of a thread's loop, which its users work with.
pub struct LoopContext<'a> {
    /// The time of the trial.
    pub clock: Clock,
    /// The `epoll` instance on which sockets are registered.
    pub epoll: OwnedFd,
    /// The alarms that are set.
    pub timers: Timers,
    /// The records of this thread.
    pub recorder: Recorder,
    offers: Vec<Offer>,
    interrupted: &'a AtomicBool,
    /// When the loop last returned from waiting.
    pub(super) turn: Instant,
    pub(super) series: Series,
    /// Ends of pauses, and timers of scripts, for which time stood still before they were due.
    held: Vec<(Instant, Alarm)>,
    /// The connections that are read on in the next turn of the loop: keys and flags, as in their events.
    pub(super) unfinished: Vec<(u64, epoll::EventFlags)>,
}

/// The most reads on one connection in a turn of the loop. A peer that keeps its socket full has to wait then until the
/// loop has looked at the clock, at an interruption and at all other connections.
pub const MOST_READS: usize = 16;

/// The most arrivals of an offer in a turn of the loop. While more are due than users can begin, connections and the clock
/// have their turn all the same.
const MOST_STARTS: usize = 256;

/// After so many arrivals that were never sent, the loop checks for an interruption.
const UNSENT_AT_ONCE: usize = 4096;

/// The place of a load among those of the same users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Series {
    /// True if the users had an earlier load.
    pub(super) continues: bool,
    /// True if they stay for a later one.
    pub(super) stays: bool,
}

/// A load for users that had one before, all of it of one offer.
pub struct LaterLoad<'a> {
    /// The clock of the load.
    pub clock: Clock,
    /// The recorder of the load.
    pub recorder: Recorder,
    /// Users or arrivals: of the same model as before, and as many users.
    pub offering: &'a Offering,
    /// The iterations that users of all threads share.
    pub quota: &'a SharedQuota,
    /// The thread.
    pub part: ThreadShare,
    /// True if the users stay for a later load.
    pub stays: bool,
}

/// An iteration that is over.
#[derive(Clone, Copy, Debug)]
pub struct EndedIteration {
    /// When it was due.
    pub begun: Instant,
    /// The phase that it belongs to.
    pub phase: RecordedPhase,
    /// Time since then that is not part of the iteration.
    pub paused: Nanos,
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended.
    pub done: Instant,
    /// The least pause of the user before its next iteration.
    pub least: Nanos,
}

/// What a user does after an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterIteration {
    /// It begins the next one at once, due at this instant.
    Begin(Instant),
    /// It does nothing until [`Work::begin`].
    Rest,
}

impl<'a> LoopContext<'a> {
    /// The context of one thread, with an `epoll` of its own. The loop ends when `interrupted` is set.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(
        clock: Clock,
        recorder: Recorder,
        offers: Vec<Offer>,
        interrupted: &'a AtomicBool,
    ) -> Result<LoopContext<'a>, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let turn = clock.now();
        let (timers, series, held, unfinished) = (Timers::default(), Series::default(), Vec::new(), Vec::new());
        Ok(LoopContext { clock, epoll, timers, recorder, offers, interrupted, turn, series, held, unfinished })
    }

    /// The same context, whose users stay for a later load if `stays`.
    #[must_use]
    pub fn staying(self, stays: bool) -> LoopContext<'a> {
        LoopContext { series: Series { stays, ..self.series }, ..self }
    }

    /// Prepares the next load of the same users. For them it begins where the last one ended.
    pub fn go_on(&mut self, next: LaterLoad<'_>, work: &mut impl Work) {
        let LaterLoad { clock, recorder, offering, quota, part, stays } = next;
        let by = clock.first().0 - self.load_end().0;
        self.held.drain(..).for_each(|(due, alarm)| self.timers.set(due, alarm));
        self.timers.shift(by);
        self.offers.iter_mut().for_each(|offer| offer.go_on(offering, quota, part, by));
        (self.clock, self.recorder) = (clock, recorder);
        self.series = Series { continues: true, stays };
        work.shift(self, by);
    }

    /// When no more iterations of the load begin.
    pub(super) fn load_end(&self) -> Instant {
        self.offers.iter().map(Offer::load_end).max().unwrap_or_default()
    }

    /// The end of the drain: exchanges that are still under way are cut off.
    pub(super) fn drain_end(&self) -> Instant {
        self.offers.iter().map(Offer::drain_end).max().unwrap_or_default()
    }

    /// True if the load is over for users that stay for a later one: only exchanges under way go on.
    #[inline]
    pub(super) fn stands_still(&self, now: Instant) -> bool {
        self.series.stays && now >= self.load_end()
    }

    /// The same at the instant at which the loop last returned from waiting.
    #[inline]
    pub fn stands_still_now(&self) -> bool {
        self.stands_still(self.turn)
    }

    /// Begins to connect, and registers the socket's events under this key.
    ///
    /// # Errors
    /// No socket can be made, or connecting fails at once.
    pub fn dial(&self, dialer: &Dialer, key: u64) -> Result<Transport, TransportError> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let transport = dialer.dial()?;
        epoll::add(&self.epoll, &transport, epoll::EventData::new_u64(key), flags).map_err(|error| TransportError {
            kind: ErrorKind::Connect,
            detail: error.to_string(),
            cause: Cause::Local,
        })?;
        Ok(transport)
    }

    /// Reads on in the next turn: the socket under this key may hold more than [`MOST_READS`]. The kernel tells of new
    /// bytes only once, so it would not say so again.
    pub fn read_on(&mut self, key: u64, ended: bool) {
        let end = if ended { epoll::EventFlags::RDHUP } else { epoll::EventFlags::empty() };
        self.unfinished.push((key, epoll::EventFlags::IN | end));
    }

    /// The phase to which an iteration belongs that was scheduled at `scheduled`.
    #[inline]
    pub fn phase(scheduled: Instant) -> RecordedPhase {
        if scheduled.0 < 0 { RecordedPhase::Warmup } else { RecordedPhase::Measure }
    }

    /// The phase of an exchange that was due at `due`, in an iteration of this phase. All exchanges of an iteration of
    /// the measure phase belong to it. One that began in warm-up may go on for long: its exchanges that are due in the
    /// measure phase belong there. Users of several loads may be in an iteration that began in an earlier one, so that
    /// then the instant alone decides.
    #[inline]
    pub fn phase_of_exchange(&self, iteration: RecordedPhase, due: Instant) -> RecordedPhase {
        match self.series {
            Series { continues: false, stays: false } if iteration == RecordedPhase::Measure => iteration,
            _ if due >= self.load_end() => RecordedPhase::Warmup,
            _ => self.phase_of_arrival(due),
        }
    }

    /// The phase of an iteration that arrived at `due`: see [`Clock::phase_of_arrival`].
    #[inline]
    pub fn phase_of_arrival(&self, due: Instant) -> RecordedPhase {
        self.clock.phase_of_arrival(due, self.load_end())
    }

    /// The phase of what a user does when it stops: it belongs to no iteration, so that the instant alone decides.
    pub(super) fn phase_of_stopping(&self, due: Instant) -> RecordedPhase {
        if due >= self.load_end() { RecordedPhase::Warmup } else { Self::phase(due) }
    }

    /// True if the run must stop.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// True if something that began at `begun` has not waited for anything since.
    #[inline]
    pub fn is_at_once(&self, begun: Instant) -> bool {
        begun >= self.turn
    }

    /// How many users there are.
    pub fn users(&self) -> usize {
        self.offers.iter().map(Offer::len).sum()
    }

    /// The users of an offer.
    fn users_of(&self, offer: usize) -> Range<u32> {
        let first: usize = self.offers[..offer].iter().map(Offer::len).sum();
        first as u32..(first + self.offers[offer].len()) as u32
    }

    /// True if the user takes arrivals of an open load.
    #[inline]
    pub fn is_open(&self, user: u32) -> bool {
        self.offers[self.offer_of(user).0].is_open()
    }

    /// The offer of a user, and the place of the user in it.
    #[inline]
    fn offer_of(&self, user: u32) -> (usize, u32) {
        let mut place = user as usize;
        for (index, offer) in self.offers.iter().enumerate() {
            if place < offer.len() {
                return (index, place as u32);
            }
            place -= offer.len();
        }
        unreachable!("every user belongs to an offer")
    }

    /// Records an iteration that is over.
    pub fn iteration_ended(&mut self, user: u32, ended: EndedIteration) -> AfterIteration {
        let EndedIteration { begun, phase, paused, outcome, done, .. } = ended;
        let sent = begun.after(paused);
        let exchange = Exchange { scheduled: sent, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome };
        self.recorder.record(ITERATION, phase, &exchange);
        self.iteration_over(user, begun, ended.least, done)
    }

    /// Ends an iteration that was cut off. It counts neither as ended nor as failed, and is not recorded.
    pub fn iteration_interrupted(&mut self, user: u32, begun: Instant, now: Instant) -> AfterIteration {
        self.iteration_over(user, begun, Nanos(0), now)
    }

    fn iteration_over(&mut self, user: u32, begun: Instant, least: Nanos, now: Instant) -> AfterIteration {
        let (offer, place) = self.offer_of(user);
        let at_once = self.is_at_once(begun);
        let offer = &mut self.offers[offer];
        let Some(pause) = offer.iteration_ended(place, least, now) else { return AfterIteration::Rest };
        // Otherwise iterations that take no time would go on for ever in one turn of the loop.
        if pause > Nanos(0) || at_once {
            offer.think(place);
            self.timers.set(now.after(pause), Alarm::Wake(user));
            AfterIteration::Rest
        } else if offer.begin(place, now) {
            AfterIteration::Begin(now)
        } else {
            AfterIteration::Rest
        }
    }

    /// Lets the user begin no further iteration. Its present one ends normally.
    pub fn withdraw(&mut self, user: u32) {
        let (offer, place) = self.offer_of(user);
        self.offers[offer].withdraw(place);
    }

    /// Stops a user that has nothing more to do. The iteration that was due at `due` does not count; if it was an
    /// arrival, another user takes it.
    pub fn stopped(&mut self, user: u32, due: Instant) {
        let (offer, place) = self.offer_of(user);
        let now = self.clock.now();
        self.offers[offer].stop(place, due, now);
    }

    /// The user has finished its steps for stopping.
    pub fn retired(&mut self, user: u32) {
        let (offer, place) = self.offer_of(user);
        let now = self.clock.now();
        if self.offers[offer].retired(place, now) {
            self.offers[offer].think(place);
            self.timers.set(now, Alarm::Wake(user));
        }
    }

    /// Prepares the context for the work.
    pub(super) fn prepare(&mut self, work: &impl Work) {
        if work.retires() && !self.series.stays {
            self.offers.iter_mut().for_each(Offer::keep_retirees);
        }
    }

    /// Counts what users brought from the load before.
    pub(super) fn carry(&mut self, work: &mut impl Work) {
        let mut found = Vec::new();
        work.under_way(self, &mut found);
        let is_exchange = |subject: &&SubjectIndex| **subject != CONNECT && Some(**subject) != work.openings();
        self.recorder.generator.in_flight = found.iter().filter(is_exchange).count() as u64;
        found.into_iter().for_each(|subject| self.recorder.count_carried(subject));
        self.recorder.generator.sockets = work.sockets();
    }

    /// Starts everything that is due: users of a ramp, arrivals, ends of pauses, time-outs.
    pub(super) fn do_what_is_due(&mut self, work: &mut impl Work, now: Instant) {
        let stands_still = self.stands_still(now);
        if !stands_still {
            self.start_iterations(work, now);
        }
        while let Some((due, alarm)) = self.timers.pop_due(now) {
            match alarm {
                Alarm::Wake(_) | Alarm::Pause(_) | Alarm::Operation { .. } if stands_still => {
                    self.held.push((due, alarm));
                }
                Alarm::Wake(user) => self.wake(work, user, due),
                alarm => work.alarm(self, alarm, due),
            }
        }
        for offer in 0..self.offers.len() {
            let first = self.users_of(offer).start;
            while let Some(place) = self.offers[offer].next_retiree(now) {
                work.retire(self, first + place);
            }
            for place in self.offers[offer].take_overdue(now) {
                work.cut_off(self, first + place, now);
            }
        }
        self.recorder.generator.users = self.offers.iter_mut().map(|offer| offer.users(now) as u64).sum();
        self.recorder.generator.backlog = self.offers.iter_mut().map(|offer| offer.backlog(now)).sum();
    }

    fn start_iterations(&mut self, work: &mut impl Work, now: Instant) {
        for offer in 0..self.offers.len() {
            let mut left = MOST_STARTS;
            while let Some(start) = self.offers[offer].next_start(now) {
                left -= usize::from(!matches!(start, Start::User(_)));
                self.start(work, offer, start, now);
                if left == 0 {
                    self.drop_overdue(work, offer, now);
                    break;
                }
            }
        }
    }

    fn drop_overdue(&mut self, work: &mut impl Work, offer: usize, now: Instant) {
        let dropped = self.offers[offer].drop_overdue(now);
        if dropped > 0 {
            work.dropped(self, offer, dropped, now);
        }
    }

    fn start(&mut self, work: &mut impl Work, offer: usize, start: Start, now: Instant) {
        let (place, due) = match start {
            Start::Dropped(due) => return work.unsent(self, offer, due, now),
            Start::User(place) => (place, self.clock.now()),
            Start::Arrival { user, due, was_free } => {
                // The wait for a free user is caused by the system and counts in the response time. Lateness although a
                // user was free is caused by the generator.
                if was_free {
                    self.recorder.record_lateness(self.clock.now().since(due));
                }
                (user, due)
            }
        };
        if self.offers[offer].begin(place, due) {
            let user = self.users_of(offer).start + place;
            work.begin(self, user, due);
        }
    }

    /// A pause between two iterations is over.
    fn wake(&mut self, work: &mut impl Work, user: u32, due: Instant) {
        let (offer, place) = self.offer_of(user);
        let now = self.clock.now();
        if self.offers[offer].wake(place, now) {
            self.recorder.record_lateness(now.since(due));
            if self.offers[offer].begin(place, now) {
                work.begin(self, user, now);
            }
        }
    }

    /// True if nothing is left to do, or no time to do it in.
    pub(super) fn is_over(&mut self, work: &mut impl Work, now: Instant) -> bool {
        let is_over = if self.stands_still(now) {
            // Exchanges that are under way at the end of the drain were cut off.
            !work.has_exchanges(self)
        } else {
            self.offers.iter_mut().all(|offer| offer.is_over(now))
        };
        is_over || self.is_interrupted()
    }

    /// When something is due next, apart from events.
    pub(super) fn next_due(&mut self, now: Instant) -> Instant {
        if self.stands_still(now) {
            let cut_offs = self.offers.iter().map(Offer::drain_end);
            return cut_offs.chain(self.timers.next_due()).fold(self.recorder.boundary(), Instant::min);
        }
        let offers =
            self.offers.iter_mut().map(|offer| if offer.is_over(now) { None } else { Some(offer.next_due(now)) });
        offers.flatten().chain(self.timers.next_due()).fold(self.recorder.boundary(), Instant::min)
    }

    /// Counts the arrivals for which no user became free until the end, and finishes the records. Where users stay,
    /// these arrivals wait for the next load.
    pub(super) fn finish(&mut self, work: &mut impl Work) {
        let now = self.clock.now();
        if !self.is_interrupted() && !self.series.stays {
            for offer in 0..self.offers.len() {
                let mut unsent = 0_usize;
                while let Some(due) = self.offers[offer].next_unsent(now) {
                    work.unsent(self, offer, due, now);
                    unsent += 1;
                    if unsent.is_multiple_of(UNSENT_AT_ONCE) && self.is_interrupted() {
                        break;
                    }
                }
                match self.offers[offer].take_rest(now) {
                    0 => {}
                    rest => work.left_over(self, offer, rest, now),
                }
            }
        }
        work.ends(self);
        let mut under_way = Vec::new();
        work.under_way(self, &mut under_way);
        self.recorder.close_accounts(&under_way);
        if !self.series.stays {
            work.close(self);
        }
        self.recorder.findings.all_stopped = self.offers.iter().all(Offer::all_stopped);
        // The time for closing belongs to a second too.
        let now = self.clock.now();
        self.recorder.roll(now);
        self.recorder.finish(now);
    }
}
