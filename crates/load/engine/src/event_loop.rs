//! The loop of one generator thread: written once, over a schedule, a stop rule, and what users do.
//!
//! A thread owns its users, their connections, and its records; nothing on the path of a request is shared. It waits in
//! `epoll` until a socket has an event or work is due. Pacing uses the time-out of that wait in nanoseconds, without a
//! timer wheel.
//!
//! [`offer`](crate::offer) decides which user begins an iteration and when, [`work`] is what users do, and [`context`]
//! connects the two. [`users`] is the work of all protocols: steps over connections, and the sockets that users hold
//! beside them.
//!
//! The same users can have several loads, one after the other. Between them time stands still for the users: at the end
//! of a load no step begins any more, exchanges under way come to their end, and pauses go on with the next load.

mod connections;
pub mod context;
mod held_sockets;
mod users;
pub mod work;

use context::LoopContext;
use plimsoll_model::units::Nanos;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
pub use users::{Task, Users};
use work::Work;

/// The longest wait in `epoll`, after which the loop checks for an interruption.
const LONGEST_WAIT: i64 = 100_000_000;

/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// Runs a load to its end on the calling thread. The recorder passes intervals on meanwhile. Users that stay for a later
/// load then stand still until [`LoopContext::go_on`].
pub fn run(context: &mut LoopContext<'_>, work: &mut impl Work) -> Result<(), Errno> {
    let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
    context.prepare(work);
    if context.series.continues {
        context.carry(work);
        see_what_came(context, work, &mut events)?;
    } else {
        work.start(context);
    }
    let result = turn_until_over(context, work, &mut events);
    context.finish(work);
    result
}

/// Handles what came on connections while their users stood still: some may have been closed.
fn see_what_came(
    context: &mut LoopContext<'_>,
    work: &mut impl Work,
    events: &mut Vec<epoll::Event>,
) -> Result<(), Errno> {
    loop {
        wait(context, work, events, Nanos(0))?;
        if events.len() < EVENTS {
            return Ok(());
        }
    }
}

fn turn_until_over(
    context: &mut LoopContext<'_>,
    work: &mut impl Work,
    events: &mut Vec<epoll::Event>,
) -> Result<(), Errno> {
    context.turn = context.clock.now();
    loop {
        let now = context.clock.now();
        context.recorder.roll(now);
        context.do_what_is_due(work, now);
        if context.is_over(work, now) {
            return Ok(());
        }
        let now = context.clock.now();
        context.recorder.generator.stall = context.recorder.generator.stall.max(now.since(context.turn));
        let due = context.next_due(now);
        wait(context, work, events, due.since(now))?;
    }
}

/// Waits for events for so long at most, and handles those that came, and connections that had more than one turn may
/// take. The events stay in `events`.
fn wait(
    context: &mut LoopContext<'_>,
    work: &mut impl Work,
    events: &mut Vec<epoll::Event>,
    longest: Nanos,
) -> Result<(), Errno> {
    let unfinished = std::mem::take(&mut context.unfinished);
    let longest = if unfinished.is_empty() { (longest.0 as i64).min(LONGEST_WAIT) } else { 0 };
    let longest = Timespec { tv_sec: longest / 1_000_000_000, tv_nsec: longest % 1_000_000_000 };
    events.clear();
    match epoll::wait(&context.epoll, rustix::buffer::spare_capacity(events), Some(&longest)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    context.turn = context.clock.now();
    for event in events.iter() {
        work.event(context, event.data.u64(), event.flags);
    }
    for (key, flags) in unfinished {
        work.event(context, key, flags);
    }
    work.after_events(context);
    Ok(())
}

#[cfg(test)]
mod tests;
