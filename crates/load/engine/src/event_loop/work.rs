//! The seam between the loop and its users.

use super::context::LoopContext;
use crate::timers::Alarm;
use plimsoll_model::units::Instant;
use rustix::event::epoll::EventFlags;

/// The users of one thread. They are numbered from 0, through all offers.
pub trait Work {
    /// Once, when the clock runs, before anything is due.
    fn start(&mut self, _core: &mut LoopContext<'_>) {}

    /// A user begins an iteration that was due at `due`. At its end it calls
    /// [`LoopContext::iteration_ended`], [`LoopContext::iteration_interrupted`] or [`LoopContext::stopped`].
    fn begin(&mut self, context: &mut LoopContext<'_>, user: u32, due: Instant);

    /// An alarm that the work has set itself is due.
    fn alarm(&mut self, context: &mut LoopContext<'_>, alarm: Alarm, due: Instant);

    /// An event of the descriptor that was registered under this key.
    fn event(&mut self, context: &mut LoopContext<'_>, data: u64, flags: EventFlags);

    /// All events of this turn of the loop were handed over.
    fn go_on(&mut self, _core: &mut LoopContext<'_>) {}

    /// An arrival of an offer that no user was free for.
    fn unsent(&mut self, context: &mut LoopContext<'_>, offer: usize, due: Instant, now: Instant);

    /// True if users do something when they stop: only then [`Work::retire`] is called.
    fn retires(&self) -> bool {
        false
    }

    /// A user begins no further iteration for now. At the end of what it does then it calls
    /// [`LoopContext::retired`].
    fn retire(&mut self, context: &mut LoopContext<'_>, user: u32) {
        context.retired(user);
    }

    /// Time is over for what a user does: it breaks it off before this returns, and says so as it
    /// would at the end.
    fn cut_off(&mut self, context: &mut LoopContext<'_>, user: u32, now: Instant);

    /// Once, at the very end, also when the run was broken off. Nothing is counted any more.
    fn close(&mut self, context: &mut LoopContext<'_>);
}
