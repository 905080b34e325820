//! A stackful fibre: code with a stack of its own, which can park at any depth and be resumed later.
//!
//! Limits of fibres:
//! - **A parked fibre is never dropped.** Unwinding its stack is a panic through the frames of QuickJS. The bindings turn
//!   a panic of a native into an exception, which the script may catch. So a fibre runs to its end, or is leaked.
//! - **There are some 32,000 to a process**: a stack takes two of the 65,530 mappings that Linux allows by default
//!   (`vm.max_map_count`). [`most`] says how many.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::io;

type Switch = Yielder<(), ()>;

thread_local! {
    /// The switch by which the running fibre of this thread gives the thread back; null while none runs.
    static RUNNING: Cell<*const Switch> = const { Cell::new(std::ptr::null()) };
}

/// Code with a stack of its own.
pub struct Fibre(Option<Coroutine<(), (), (), DefaultStack>>);

impl Fibre {
    /// A fibre that runs `body` on a stack of `stack` bytes. Only touched pages take memory.
    ///
    /// # Errors
    /// No memory for another stack.
    pub fn new(stack: usize, body: impl FnOnce() + 'static) -> io::Result<Self> {
        let stack = DefaultStack::new(stack)?;
        let run = move |switch: &Switch, ()| {
            RUNNING.set(switch);
            body();
        };
        Ok(Self(Some(Coroutine::with_stack(stack, run))))
    }

    /// Runs it until it parks or ends. A panic of its body comes out here.
    ///
    /// # Panics
    /// It has ended before.
    pub fn resume(&mut self) {
        let _back = RestoreRunning(RUNNING.get());
        if let Some(coroutine) = &mut self.0 {
            let (CoroutineResult::Yield(()) | CoroutineResult::Return(())) = coroutine.resume(());
        }
    }

    /// True if its body has begun to run.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.as_ref().is_none_or(Coroutine::started)
    }

    /// True if its body has returned.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(Coroutine::done)
    }
}

impl Drop for Fibre {
    fn drop(&mut self) {
        if let Some(parked) = self.0.take_if(|coroutine| coroutine.started() && !coroutine.done()) {
            std::mem::forget(parked);
        }
    }
}

/// Restores the running fibre of the thread on drop, also after a panic.
struct RestoreRunning(*const Switch);

impl Drop for RestoreRunning {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

/// Parks the running fibre until it is resumed.
///
/// # Panics
/// No fibre runs on this thread.
pub fn park() {
    let switch = RUNNING.get();
    assert!(!switch.is_null(), "only a fibre can park");
    #[expect(unsafe_code, reason = "a native reaches its fibre through a thread-local pointer")]
    // SAFETY: the pointer is that of the fibre which runs now, and lives on that fibre's own stack: `resume` puts back
    // the one before whenever a fibre gives the thread away, and a fibre sets its own again when it goes on.
    unsafe {
        (*switch).suspend(());
    }
    RUNNING.set(switch);
}

/// The most fibres that this process can have: half of its memory mappings, less a thousand for other mappings.
///
/// # Errors
/// `/proc` cannot be read.
pub fn most() -> io::Result<usize> {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count")?;
    let mappings: usize = text.trim().parse().map_err(io::Error::other)?;
    Ok((mappings / 2).saturating_sub(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    #[test]
    fn fibres_park_at_any_depth() {
        let letters: Rc<RefCell<String>> = Rc::default();
        let counting = |name: char| {
            let letters = Rc::clone(&letters);
            Fibre::new(64 * 1024, move || park_below(4, &|| letters.borrow_mut().push(name))).expect("a fibre")
        };
        let mut fibres = [counting('a'), counting('b')];
        while !fibres[0].has_ended() {
            fibres.iter_mut().for_each(Fibre::resume);
        }
        assert_eq!(*letters.borrow(), "abababab");
    }

    /// Parks once at each depth.
    fn park_below(depth: usize, note: &dyn Fn()) {
        if depth > 0 {
            note();
            park();
            park_below(depth - 1, note);
        }
    }

    #[test]
    fn a_fibre_can_run_another() {
        let order: Rc<RefCell<Vec<u8>>> = Rc::default();
        let (outside, inside) = (Rc::clone(&order), Rc::clone(&order));
        let mut outer = Fibre::new(64 * 1024, move || {
            let inner = move || {
                inside.borrow_mut().push(1);
                park();
                inside.borrow_mut().push(3);
            };
            let mut inner = Fibre::new(64 * 1024, inner).expect("a fibre");
            inner.resume();
            outside.borrow_mut().push(2);
            park();
            inner.resume();
            outside.borrow_mut().push(4);
        })
        .expect("a fibre");
        outer.resume();
        outer.resume();
        assert!(outer.has_ended());
        assert_eq!(*order.borrow(), [1, 2, 3, 4]);
    }

    #[test]
    fn a_panic_comes_out_where_the_fibre_was_resumed() {
        let mut fibre = Fibre::new(64 * 1024, || panic!("on purpose")).expect("a fibre");
        assert!(catch_unwind(AssertUnwindSafe(|| fibre.resume())).is_err());
        assert!(fibre.has_ended());
        assert!(catch_unwind(park).is_err(), "no fibre runs any more");
    }

    #[test]
    fn a_parked_fibre_is_leaked_and_not_unwound() {
        struct DropFlag(Rc<Cell<bool>>);
        impl Drop for DropFlag {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let dropped: Rc<Cell<bool>> = Rc::default();
        let flag = DropFlag(Rc::clone(&dropped));
        let mut fibre = Fibre::new(64 * 1024, move || {
            let _flag = flag;
            park();
        })
        .expect("a fibre");
        fibre.resume();
        drop(fibre);
        assert!(!dropped.get());
    }
}
