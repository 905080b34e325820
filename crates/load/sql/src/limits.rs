//! Limits on how long a call waits for the server.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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
}
