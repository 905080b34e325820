//! Limits on how long a call waits for the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Limits on how long a call waits for the server. They are checked about every tenth of a second.
#[derive(Clone, Debug)]
pub struct CallLimits {
    /// The longest that one call may take.
    pub timeout: Duration,
    /// Ends calls under way, and those that follow, once another thread sets it.
    pub cancelled: Arc<AtomicBool>,
    /// The instant by which a call must end, if that is before its timeout.
    pub deadline: Option<Instant>,
}

impl CallLimits {
    /// A timeout for each call, and no other limit.
    #[must_use]
    pub fn timeout(timeout: Duration) -> CallLimits {
        CallLimits { timeout, cancelled: Arc::default(), deadline: None }
    }

    /// The limit that a call has reached which began at this instant, in words after "no answer" or "no connection"; none while it
    /// may go on.
    pub(crate) fn reached(&self, began: Instant) -> Option<String> {
        let now = Instant::now();
        if self.cancelled.load(Ordering::Relaxed) {
            Some("before everything was to end".to_owned())
        } else if self.deadline.is_some_and(|deadline| now >= deadline) {
            Some("in the time that was left".to_owned())
        } else if now - began >= self.timeout {
            Some(format!("within {:?}", self.timeout))
        } else {
            None
        }
    }
}
