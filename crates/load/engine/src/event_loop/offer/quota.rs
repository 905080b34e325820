//! How many iterations may still begin.

use super::Offering;
use crate::schedule::Share;
use plimsoll_model::load::{LoadModel, Stop};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The iterations that the users of a closed loop share, on whatever thread they are. Split among threads beforehand,
/// those of the thread with fewer users, or with slower ones, would go on when the others have nothing left to do.
#[derive(Clone, Debug)]
pub struct Pot(Arc<AtomicU64>);

impl Pot {
    /// The whole of it, for all threads.
    pub fn of(offering: &Offering) -> Pot {
        let count = if let Stop::Iterations { count, .. } = offering.stop { count } else { u64::MAX };
        Pot(Arc::new(AtomicU64::new(count)))
    }
}

/// What one thread's users may still begin.
#[derive(Debug)]
pub(super) enum Quota {
    Endless,
    /// So many: of arrivals, each thread takes its own.
    Own(u64),
    Common(Pot),
    /// The pot was found empty. What another thread gives back to it is none of this one's any more: its users have
    /// gone, and to wait for more would be to wait until the time is up.
    Closed,
}

impl Quota {
    /// That of a thread.
    pub(super) fn of(offering: &Offering, pot: &Pot, share: Share) -> Quota {
        match (&offering.stop, &offering.model) {
            (Stop::After(_) | Stop::IterationsPerUser { .. }, _) => Quota::Endless,
            (Stop::Iterations { .. }, LoadModel::Closed { .. }) => Quota::Common(pot.clone()),
            (Stop::Iterations { count, .. }, LoadModel::Open { .. }) => Quota::Own(share.of_first(*count)),
        }
    }

    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Quota::Endless)
    }

    /// Whether any is left; another thread may take it at once.
    pub(super) fn has_any(&self) -> bool {
        match self {
            Quota::Endless => true,
            Quota::Own(left) => *left > 0,
            Quota::Common(Pot(left)) => left.load(Relaxed) > 0,
            Quota::Closed => false,
        }
    }

    /// Takes one; whether there was one.
    pub(super) fn take(&mut self) -> bool {
        match self {
            Quota::Endless => true,
            Quota::Own(left) => {
                let had_any = *left > 0;
                *left -= u64::from(had_any);
                had_any
            }
            Quota::Common(Pot(left)) => left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok(),
            Quota::Closed => false,
        }
    }

    /// A user found nothing to begin: where the pot is empty, that is so for good.
    pub(super) fn close_if_empty(&mut self) {
        if matches!(self, Quota::Common(_)) && !self.has_any() {
            *self = Quota::Closed;
        }
    }

    /// Nothing came of one that was taken.
    pub(super) fn give_back(&mut self) {
        match self {
            Quota::Endless | Quota::Closed => {}
            Quota::Own(left) => *left += 1,
            Quota::Common(Pot(left)) => drop(left.fetch_add(1, Relaxed)),
        }
    }
}
