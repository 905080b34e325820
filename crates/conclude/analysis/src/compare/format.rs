//! Formats comparisons.

use super::{Comparison, Contrast};
use crate::effect::{ends_in, shown_in};
use crate::quantity::Notation;
use crate::reason::OrReason;
use plimsoll_model::measure::Effect;
use plimsoll_statistics::Interval;

impl Comparison {
    /// The notation that suits all numbers of this comparison.
    #[must_use]
    pub fn notation(&self) -> Notation {
        notation([self])
    }

    /// The size of the difference: `+3.1 %`, `×6.2`, `+0.12 points`.
    ///
    /// # Errors
    /// Why there is no contrast.
    pub fn change(&self, notation: Notation) -> OrReason<String> {
        let contrast = self.contrast.as_ref().map_err(Clone::clone)?;
        Ok(shown_in(contrast.value, &self.measure, notation))
    }

    /// Formats both ends of an interval of this comparison.
    #[must_use]
    pub fn ends(&self, interval: Interval, notation: Notation) -> [String; 2] {
        ends_in(interval, &self.measure, notation)
    }
}

/// The notation that suits all numbers of these comparisons, as in a table.
#[must_use]
pub fn notation<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Notation {
    let ratios = comparisons.into_iter().filter(|one| one.measure.effect() == Effect::Ratio);
    Notation::of(ratios.filter_map(|one| one.contrast.as_ref().ok()).map(Contrast::largest))
}

impl Contrast {
    /// The largest number that is shown of this comparison.
    pub(crate) fn largest(&self) -> f64 {
        let interval = self.interval.clone().unwrap_or(self.range).high;
        let ranked = self.ranked.and_then(|ranked| ranked.interval).map_or(interval, |interval| interval.high);
        self.value.max(interval).max(ranked)
    }
}
