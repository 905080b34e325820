//! The loop of one generator thread: written once, over a schedule, a stop rule, and what users do.
//!
//! A thread owns its users, their connections, and its records; nothing on the path of a request
//! is shared. It waits in `epoll` until a socket has something or something is due, and pacing is
//! that wait's own time-out in nanoseconds, without a timer wheel between.
//!
//! [`offer`](crate::offer) says who begins an iteration and when, [`work`] is what users do, and [`core`] lies
//! between the two. [`users`] is the work of all protocols: steps over connections.

mod connections;
pub mod core;
mod users;
pub mod work;

use core::Core;
use plimsoll_model::units::Instant;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
pub use users::{Task, Users};
use work::Work;

/// The longest wait in `epoll`: how soon an interruption is noticed.
const LONGEST_WAIT: i64 = 100_000_000;

/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// Runs the work to its end on the calling thread, handing intervals over through the recorder.
pub fn run(mut core: Core<'_>, work: &mut impl Work) -> Result<(), Errno> {
    core.settle(work);
    work.start(&mut core);
    let result = turn_until_over(&mut core, work);
    core.finish(work);
    result
}

fn turn_until_over(core: &mut Core<'_>, work: &mut impl Work) -> Result<(), Errno> {
    let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
    core.turn = core.clock.now();
    loop {
        let now = core.clock.now();
        core.recorder.roll(now);
        core.do_what_is_due(work, now);
        if core.is_over(now) {
            return Ok(());
        }
        let now = core.clock.now();
        core.recorder.generator.stall = core.recorder.generator.stall.max(now.since(core.turn));
        let wait = wait_until(core.next_due(now), now);
        events.clear();
        match epoll::wait(&core.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        core.turn = core.clock.now();
        for event in events.drain(..) {
            work.event(core, event.data.u64(), event.flags);
        }
        work.go_on(core);
    }
}

/// How long to wait in `epoll`.
fn wait_until(due: Instant, now: Instant) -> Timespec {
    let wait = (due.since(now).0 as i64).min(LONGEST_WAIT);
    Timespec { tv_sec: wait / 1_000_000_000, tv_nsec: wait % 1_000_000_000 }
}

#[cfg(test)]
mod tests;
