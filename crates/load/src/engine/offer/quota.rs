//! How many iterations may still begin.

use super::Offering;
use plimsoll_model::load::{LoadModel, Stop};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The iterations that the users of a closed loop share, on whatever thread they are. Split among threads beforehand,
/// those of the thread with fewer users, or with slower ones, would go on when the others have nothing left to do.
#[derive(Clone, Debug)]
pub(crate) struct Pot(Arc<AtomicU64>);

impl Pot {
    /// The whole of it, for all threads.
    pub(crate) fn of(offering: &Offering) -> Pot {
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
}

impl Quota {
    /// That of a thread whose share of all iterations would be `own`.
    pub(super) fn of(offering: &Offering, pot: &Pot, own: impl FnOnce(u64) -> u64) -> Quota {
        match (&offering.stop, &offering.model) {
            (Stop::After(_) | Stop::IterationsPerUser { .. }, _) => Quota::Endless,
            (Stop::Iterations { .. }, LoadModel::Closed { .. }) => Quota::Common(pot.clone()),
            (Stop::Iterations { count, .. }, LoadModel::Open { .. }) => Quota::Own(own(*count)),
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
        }
    }

    /// Nothing came of one that was taken.
    pub(super) fn give_back(&mut self) {
        match self {
            Quota::Endless => {}
            Quota::Own(left) => *left += 1,
            Quota::Common(Pot(left)) => drop(left.fetch_add(1, Relaxed)),
        }
    }
}
