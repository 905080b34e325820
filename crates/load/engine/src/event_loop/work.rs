//! The interface between the event loop and its users.

use super::context::LoopContext;
use crate::recorder::SubjectIndex;
use crate::timers::Alarm;
use plimsoll_model::units::Instant;
use rustix::event::epoll::EventFlags;

/// The work of the users of one thread. Users are numbered from 0 across all offers.
pub trait Work {
    /// Called when the clock of the first load runs, before anything is due.
    fn start(&mut self, _context: &mut LoopContext<'_>) {}

    /// A user begins an iteration that was due at `due`. At its end it calls
    /// [`LoopContext::iteration_ended`], [`LoopContext::iteration_interrupted`] or [`LoopContext::stopped`].
    fn begin(&mut self, context: &mut LoopContext<'_>, user: u32, due: Instant);

    /// An alarm that the work has set itself is due.
    fn alarm(&mut self, context: &mut LoopContext<'_>, alarm: Alarm, due: Instant);

    /// An event of the descriptor that was registered under this key.
    fn event(&mut self, context: &mut LoopContext<'_>, data: u64, flags: EventFlags);

    /// Called after all events of a turn of the loop.
    fn after_events(&mut self, _context: &mut LoopContext<'_>) {}

    /// An arrival of an offer for which no user was free.
    fn unsent(&mut self, context: &mut LoopContext<'_>, offer: usize, due: Instant, now: Instant);

    /// So many arrivals at once that an offer has dropped because no user was free.
    fn dropped(&mut self, context: &mut LoopContext<'_>, offer: usize, arrivals: u64, now: Instant) {
        (0..arrivals).for_each(|_| self.unsent(context, offer, now, now));
    }

    /// Iterations of a closed loop, this many, that no user had begun when its time was over.
    fn left_over(&mut self, _context: &mut LoopContext<'_>, _offer: usize, _iterations: u64, _now: Instant) {}

    /// True if users have steps for stopping: only then [`Work::retire`] is called.
    fn retires(&self) -> bool {
        false
    }

    /// A user begins no further iteration for now, and runs its steps for stopping. At their end it calls
    /// [`LoopContext::retired`].
    fn retire(&mut self, context: &mut LoopContext<'_>, user: u32) {
        context.retired(user);
    }

    /// Time is up for the present work of a user: it must stop before this returns, and report its end in the usual
    /// way.
    fn cut_off(&mut self, context: &mut LoopContext<'_>, user: u32, now: Instant);

    /// True if exchanges are under way. Users that stay for a later load stand still only when these have ended.
    fn has_exchanges(&mut self, context: &LoopContext<'_>) -> bool {
        context.recorder.generator.in_flight > 0
    }

    /// Adds the subject of each exchange that was sent and has not ended, and of each attempt to connect that has not
    /// ended.
    fn under_way(&mut self, context: &mut LoopContext<'_>, found: &mut Vec<SubjectIndex>);

    /// The subject of openings that are no exchanges of users, apart from attempts to connect, if there is one.
    fn openings(&self) -> Option<SubjectIndex> {
        None
    }

    /// How many sockets users hold open.
    fn sockets(&self) -> u64 {
        0
    }

    /// The load ends: what is counted apart from exchanges is counted now.
    fn ends(&mut self, _context: &mut LoopContext<'_>) {}

    /// Another load of the same users begins. Time stood still for them since the last one: all instants that they keep
    /// move by `by` nanoseconds.
    fn shift(&mut self, _context: &mut LoopContext<'_>, _by: i64) {}

    /// Called once at the very end, also of an interrupted run. Nothing is counted any more.
    fn close(&mut self, context: &mut LoopContext<'_>);
}
