//! The loop of one generator thread: written once, over a schedule, a stop rule, and what users do.
//!
//! A thread owns its users, their connections, and its records; nothing on the path of a request is shared. It waits in
//! `epoll` until a socket has an event or work is due. Pacing uses the time-out of that wait in nanoseconds, without a
//! timer wheel.
//!
//! [`offer`](crate::offer) decides which user begins an iteration and when, [`work`] is what users do, and [`context`]
//! connects the two. [`users`] is the work of all protocols: steps over connections.

mod connections;
pub mod context;
mod users;
pub mod work;

use context::LoopContext;
use plimsoll_model::units::Instant;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
pub use users::{Task, Users};
use work::Work;

/// The longest wait in `epoll`, after which the loop checks for an interruption.
const LONGEST_WAIT: i64 = 100_000_000;

/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// Runs the work to its end on the calling thread. The recorder passes intervals on meanwhile.
pub fn run(mut context: LoopContext<'_>, work: &mut impl Work) -> Result<(), Errno> {
    context.prepare(work);
    work.start(&mut context);
    let result = turn_until_over(&mut context, work);
    context.finish(work);
    result
}

fn turn_until_over(context: &mut LoopContext<'_>, work: &mut impl Work) -> Result<(), Errno> {
    let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
    context.turn = context.clock.now();
    loop {
        let now = context.clock.now();
        context.recorder.roll(now);
        context.do_what_is_due(work, now);
        if context.is_over(now) {
            return Ok(());
        }
        let now = context.clock.now();
        context.recorder.generator.stall = context.recorder.generator.stall.max(now.since(context.turn));
        let wait = wait_until(context.next_due(now), now);
        events.clear();
        match epoll::wait(&context.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        context.turn = context.clock.now();
        for event in events.drain(..) {
            work.event(context, event.data.u64(), event.flags);
        }
        work.after_events(context);
    }
}

/// How long to wait in `epoll`.
fn wait_until(due: Instant, now: Instant) -> Timespec {
    let wait = (due.since(now).0 as i64).min(LONGEST_WAIT);
    Timespec { tv_sec: wait / 1_000_000_000, tv_nsec: wait % 1_000_000_000 }
}

#[cfg(test)]
mod tests;
