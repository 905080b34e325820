//! How many iterations may still begin.

use super::Offering;
use plimsoll_model::load::Share;
use plimsoll_model::load::{LoadModel, Stop};
use plimsoll_model::units::Instant;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The iterations that users of all threads share. If each thread had its own part, a thread with fewer or slower users
/// would go on when the others have nothing left to do.
#[derive(Clone, Debug)]
pub struct SharedQuota(Arc<AtomicU64>);

impl SharedQuota {
    /// The machine's share of an offering's iterations, for all its threads. A machine without users has none.
    #[must_use]
    pub fn of(offering: &Offering, machine: Share) -> SharedQuota {
        let with_users = machine.among_those_with(offering.users() as u64);
        let count = match offering.stop {
            Stop::Iterations { .. } if with_users.index >= with_users.of => 0,
            Stop::Iterations { count, .. } => with_users.of_first(count),
            _ => u64::MAX,
        };
        SharedQuota(Arc::new(AtomicU64::new(count)))
    }
}

/// The iterations that the users of one thread may still begin.
#[derive(Clone, Debug)]
pub(crate) enum Quota {
    /// No limit: threads share nothing that they write.
    Endless,
    /// This many, for this thread alone.
    Own(u64),
    /// A quota that other threads take from as well.
    Shared(SharedQuota),
    /// The shared quota was empty once. This thread ignores what other threads give back later: its users have stopped,
    /// and it would otherwise wait for more until the time is up.
    Closed,
}

impl Quota {
    /// The quota of a thread of the event loop. Arrivals are divided among threads beforehand.
    pub(super) fn of(offering: &Offering, shared: &SharedQuota, share: Share) -> Quota {
        match (&offering.stop, &offering.model) {
            (Stop::Iterations { count, .. }, LoadModel::Open { .. }) => Quota::Own(share.of_first(*count)),
            _ => Quota::common(offering, shared),
        }
    }

    /// The quota of a thread that takes users and arrivals from the same place as all others.
    pub(crate) fn common(offering: &Offering, shared: &SharedQuota) -> Quota {
        match &offering.stop {
            Stop::After(_) | Stop::Soak(_) | Stop::Feedback { .. } | Stop::IterationsPerUser { .. } => Quota::Endless,
            Stop::Iterations { .. } => Quota::Shared(shared.clone()),
        }
    }

    /// True if it has no limit.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self, Quota::Endless)
    }

    /// True if an iteration is left. Another thread may take it at any time.
    pub(super) fn has_any(&self) -> bool {
        match self {
            Quota::Endless => true,
            Quota::Own(left) => *left > 0,
            Quota::Shared(SharedQuota(left)) => left.load(Relaxed) > 0,
            Quota::Closed => false,
        }
    }

    /// Takes an iteration. Returns false if none is left.
    pub(super) fn take(&mut self) -> bool {
        match self {
            Quota::Endless => true,
            Quota::Own(left) => {
                let had_any = *left > 0;
                *left -= u64::from(had_any);
                had_any
            }
            Quota::Shared(SharedQuota(left)) => left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok(),
            Quota::Closed => false,
        }
    }

    /// Admits an iteration that was due at `due`, if that lies within the load and both quotas allow it: this one, and
    /// the user's own (`u64::MAX` for no limit). Iterations in warm-up, before the load's start, use up neither.
    #[inline]
    pub(crate) fn admit(&mut self, due: Instant, load: &Range<Instant>, of_user: &mut u64) -> bool {
        if due >= load.end || *of_user == 0 || !self.has_any() {
            return false;
        }
        if due >= load.start {
            if !self.take() {
                return false;
            }
            *of_user -= u64::from(*of_user != u64::MAX);
        }
        true
    }

    /// Closes the shared quota for this thread if it is empty. Called when a user was not admitted.
    pub(super) fn close_if_empty(&mut self) {
        if matches!(self, Quota::Shared(_)) && !self.has_any() {
            *self = Quota::Closed;
        }
    }

    /// Takes all iterations that are left; none of a quota without a limit.
    pub(super) fn take_all(&mut self) -> u64 {
        match self {
            Quota::Own(left) => std::mem::take(left),
            Quota::Shared(SharedQuota(left)) if left.load(Relaxed) != u64::MAX => left.swap(0, Relaxed),
            Quota::Endless | Quota::Shared(_) | Quota::Closed => 0,
        }
    }

    /// Gives back an iteration that was taken but does not count.
    pub(super) fn give_back(&mut self) {
        match self {
            Quota::Endless | Quota::Closed => {}
            Quota::Own(left) => *left += 1,
            Quota::Shared(SharedQuota(left)) => drop(left.fetch_add(1, Relaxed)),
        }
    }
}
