//! When a run under way will probably decide: from the repeats that its open comparisons need.

use crate::analysis::Analysis;
use crate::compare::Comparison;
use crate::decide::MAX_FORECAST_REPEATS;
use crate::verdict::{Outcome, Verdict};

/// The comparison that takes longest to decide, as it stands after some repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// The margin that it is decided at.
    pub margin: f64,
    /// The repeats that would probably decide it, those that have run included.
    pub repeats: ForecastRepeats,
}

/// A number of repeats that would probably decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForecastRepeats {
    /// No more than have run.
    Enough,
    /// The number of repeats, those that have run included.
    InAll(usize),
    /// More than [`MAX_FORECAST_REPEATS`], or no number of them: the noise floor leaves out a change of zero, single
    /// trials dominate, or nothing could be compared.
    Unforeseeable,
}

/// The forecast for the comparisons that decide; none where there are none, or where one of them has too few repeats yet.
#[must_use]
pub fn forecast(analysis: &Analysis) -> Option<Forecast<'_>> {
    let mut longest: Option<Forecast<'_>> = None;
    for comparison in &analysis.comparisons {
        let Some(verdict) = &comparison.verdict else { continue };
        comparison.contrast.as_ref().ok()?.interval.as_ref().ok()?;
        let repeats = repeats(verdict);
        if longest.as_ref().is_none_or(|known| known.repeats < repeats) {
            longest = Some(Forecast { comparison, margin: verdict.margin, repeats });
        }
    }
    longest
}

fn repeats(verdict: &Verdict) -> ForecastRepeats {
    match (verdict.outcome, verdict.needed) {
        (Outcome::Worse | Outcome::Better | Outcome::Equivalent, _) => ForecastRepeats::Enough,
        (Outcome::Inconclusive, Some(needed)) if needed <= MAX_FORECAST_REPEATS => ForecastRepeats::InAll(needed),
        (Outcome::Inconclusive | Outcome::Void, _) => ForecastRepeats::Unforeseeable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{input, start};

    /// The forecast after so many repeats of two variants, of which the second is so many times as slow as the first,
    /// give or take `noise`.
    fn after(repeats: u32, ratio: f64, noise: f64) -> Option<ForecastRepeats> {
        let value = |number: u32| {
            let spread = 1.0 + noise * f64::from(number / 2 % 3);
            start(if number % 2 == 1 { 1.0 } else { ratio * spread })
        };
        forecast(&analyse(&input(repeats, value))).map(|forecast| forecast.repeats)
    }

    #[test]
    fn there_is_a_forecast_from_the_third_repeat_on() {
        assert_eq!(after(2, 1.0, 0.0), None);
        assert_eq!(after(3, 1.0, 0.0), Some(ForecastRepeats::Enough));
        assert_eq!(after(3, 2.0, 0.01), Some(ForecastRepeats::Enough));
        let open = after(4, 1.0, 0.1);
        assert!(matches!(open, Some(ForecastRepeats::InAll(needed)) if needed > 4), "{open:?}");
    }
}
