//! Effects of ratios and differences: on the additive scale of [`decide`](crate::decide), on the
//! scale of the measure, and as text.

use crate::quantity::{Notation, difference};
use plimsoll_model::measure::{Effect, Measure};
use plimsoll_statistics::Interval;

/// Converts a value from the additive scale to the scale of the measure's effect.
pub(crate) fn natural(effect: Effect, value: f64) -> f64 {
    match effect {
        Effect::Ratio => value.exp(),
        Effect::Difference => value,
    }
}

/// The effect of no change: a ratio of 1, or a difference of 0.
#[must_use]
pub fn no_change(effect: Effect) -> f64 {
    match effect {
        Effect::Ratio => 1.0,
        Effect::Difference => 0.0,
    }
}

/// Converts both ends of an interval from the additive scale.
pub(crate) fn natural_interval(effect: Effect, interval: Interval) -> Interval {
    Interval { low: natural(effect, interval.low), high: natural(effect, interval.high) }
}

/// Converts a margin to the additive scale.
#[must_use]
pub fn additive_margin(effect: Effect, margin: f64) -> f64 {
    match effect {
        Effect::Ratio => margin.ln_1p(),
        Effect::Difference => margin,
    }
}

/// Formats a ratio or a difference in a measure.
#[must_use]
pub fn shown(value: f64, measure: &Measure) -> String {
    shown_in(value, measure, Notation::of([value]))
}

/// Formats a ratio or a difference in a given notation, beside others.
#[must_use]
pub fn shown_in(value: f64, measure: &Measure, notation: Notation) -> String {
    match measure.effect() {
        Effect::Ratio => notation.show(value),
        Effect::Difference => difference(value, measure.unit()),
    }
}

/// Formats both ends of an interval of an effect.
pub(crate) fn ends(interval: Interval, measure: &Measure) -> [String; 2] {
    ends_in(interval, measure, Notation::of([interval.low, interval.high]))
}

/// Formats both ends of an interval in a given notation, beside others.
pub(crate) fn ends_in(interval: Interval, measure: &Measure, notation: Notation) -> [String; 2] {
    [interval.low, interval.high].map(|end| shown_in(end, measure, notation))
}
