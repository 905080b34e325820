//! The request to stop a run, shared by all that waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop the run, which a signal or another thread makes. Clones share it: whatever
/// waits for long checks its own clone or reference.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Not set yet.
    #[must_use]
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Asks the run to stop. There is no way back.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once the run is asked to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for libraries that set or poll a flag of their own accord: handlers of
    /// signals, connections to databases, load generators.
    #[must_use]
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}
