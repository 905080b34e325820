//! The limit on the time that a user runs without waiting, for natives.
//!
//! The engine asks whether a user has run for too long only while it runs code of the script: a native is one step for
//! it. So natives that may take long say what they do by [`spend`]. A user that has used up its time is stopped where it
//! stands: its fibre parks and never goes on. That fibre is leaked with all that is on its stack, as any fibre that is
//! not at its end. So while it calls [`spend`], a native holds nothing that others look at: no lock, and no borrow of what
//! its user or its thread shares with them.

use plimsoll_model::units::Nanos;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// After so many steps the clock is read.
const STEPS_BETWEEN_LOOKS: usize = 4096;

thread_local! {
    /// The user that runs on this thread.
    static RUNNING: RefCell<Option<Rc<dyn Watched>>> = const { RefCell::new(None) };
    /// Steps since the clock was last read.
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// The longest that a user runs without waiting after the process was asked to end.
pub(crate) const HURRIED: Nanos = Nanos(500_000_000);

/// Set when the process is asked to end.
static ASKED_TO_END: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Lets all users of this process run for half a second at most without waiting once `asked` is set, whatever their
/// limit. It is for the handler of signals, of which a process has one: only the first call counts.
pub fn hurry_when(asked: &Arc<AtomicBool>) {
    let _ = ASKED_TO_END.set(Arc::clone(asked));
}

/// The limit of a user that may run for `busy` without waiting.
pub(crate) fn limit(busy: Nanos) -> Nanos {
    let is_hurried = ASKED_TO_END.get().is_some_and(|asked| asked.load(Ordering::Relaxed));
    if is_hurried { busy.min(HURRIED) } else { busy }
}

/// A user whose time is limited.
pub(crate) trait Watched {
    /// Returns if the user has time left, and otherwise never.
    fn look(&self);
}

/// Says that the running user has done this many steps of work, a step being what takes some ten nanoseconds. Does not
/// return if the user has run for too long. Does nothing where no user runs.
#[inline]
pub fn spend(steps: usize) {
    let all = STEPS.get().saturating_add(steps);
    if all < STEPS_BETWEEN_LOOKS {
        STEPS.set(all);
    } else {
        look();
    }
}

#[cold]
fn look() {
    STEPS.set(0);
    let running = RUNNING.with_borrow(Option::clone);
    if let Some(running) = running {
        running.look();
    }
}

/// Watches a user until the guard is dropped.
pub(crate) fn watch(user: Rc<dyn Watched>) -> impl Drop {
    RestoreRunning(RUNNING.replace(Some(user)))
}

/// Restores the watched user of the thread on drop, also after a panic.
struct RestoreRunning(Option<Rc<dyn Watched>>);

impl Drop for RestoreRunning {
    fn drop(&mut self) {
        RUNNING.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counted(Cell<usize>);
    impl Watched for Counted {
        fn look(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn users_are_hurried_once_the_process_is_asked_to_end() {
        // Tests beside this one run on a clock that they wind themselves: they never notice.
        let asked: Arc<AtomicBool> = Arc::default();
        hurry_when(&asked);
        let limits = || [Nanos(u64::MAX), Nanos(1)].map(limit);
        assert_eq!(limits(), [Nanos(u64::MAX), Nanos(1)]);
        asked.store(true, Ordering::Relaxed);
        assert_eq!(limits(), [HURRIED, Nanos(1)]);
        asked.store(false, Ordering::Relaxed);
    }

    #[test]
    fn the_clock_is_read_after_so_many_steps_for_the_user_that_runs() {
        let [outer, inner] = [0, 0].map(|looks| Rc::new(Counted(Cell::new(looks))));
        spend(usize::MAX);
        let outer_runs = watch(Rc::clone(&outer) as Rc<dyn Watched>);
        (0..STEPS_BETWEEN_LOOKS).for_each(|_| spend(2));
        {
            let _inner_runs = watch(Rc::clone(&inner) as Rc<dyn Watched>);
            spend(STEPS_BETWEEN_LOOKS);
        }
        spend(STEPS_BETWEEN_LOOKS);
        drop(outer_runs);
        spend(STEPS_BETWEEN_LOOKS);
        assert_eq!((outer.0.get(), inner.0.get()), (3, 1));
    }
}
