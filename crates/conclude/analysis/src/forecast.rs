//! When a run under way will probably decide: from the repeats that its open comparisons need.

use crate::analysis::Analysis;
use crate::compare::Comparison;
use crate::conclusion::Goal;
use crate::decide::MAX_FORECAST_REPEATS;

/// The comparisons that decide, as they stand after some repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast<'a> {
    /// Comparisons that have reached the goal.
    pub decided: Vec<&'a Comparison>,
    /// Comparisons that more repeats would probably decide, each with the number of repeats in all. The one that takes
    /// most comes last.
    pub in_time: Vec<(&'a Comparison, usize)>,
    /// Comparisons that would take more than [`MAX_FORECAST_REPEATS`], or that no number of repeats decides: the noise
    /// floor leaves out a change of zero, or single trials dominate.
    pub unforeseeable: Vec<&'a Comparison>,
    /// Comparisons without an interval: they have too few pairs yet, or could not be made.
    pub without_interval: Vec<&'a Comparison>,
}

/// The forecast for the comparisons that decide; none where none of them has enough repeats yet.
#[must_use]
pub fn forecast(analysis: &Analysis, goal: Goal) -> Option<Forecast<'_>> {
    let mut forecast = Forecast::default();
    for comparison in &analysis.comparisons {
        let Some(verdict) = &comparison.verdict else { continue };
        if !comparison.contrast.as_ref().is_ok_and(|contrast| contrast.interval.is_ok()) {
            forecast.without_interval.push(comparison);
            continue;
        }
        match verdict.needed {
            _ if goal.is_reached(verdict) => forecast.decided.push(comparison),
            Some(needed) if needed <= MAX_FORECAST_REPEATS => forecast.in_time.push((comparison, needed)),
            _ => forecast.unforeseeable.push(comparison),
        }
    }
    forecast.in_time.sort_by_key(|(_, needed)| *needed);
    let says_nothing = forecast.decided.is_empty() && forecast.in_time.is_empty() && forecast.unforeseeable.is_empty();
    (!says_nothing).then_some(forecast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{input, start};

    /// How many comparisons are decided after so many repeats of two variants, of which the second is so many times as
    /// slow as the first, give or take `noise`, and how many repeats each open one takes.
    fn after(repeats: u32, ratio: f64, noise: f64) -> Option<(usize, Vec<usize>)> {
        let value = |number: u32| {
            let spread = 1.0 + noise * f64::from(number / 2 % 3);
            start(if number % 2 == 1 { 1.0 } else { ratio * spread })
        };
        let analysis = analyse(&input(repeats, value));
        let forecast = forecast(&analysis, Goal::Verdicts)?;
        Some((forecast.decided.len(), forecast.in_time.iter().map(|(_, needed)| *needed).collect()))
    }

    #[test]
    fn there_is_a_forecast_from_the_third_repeat_on() {
        assert_eq!(after(2, 1.0, 0.0), None);
        let (decided, open) = after(3, 1.0, 0.0).expect("a forecast");
        assert!(decided > 0 && open.is_empty(), "{open:?}");
        let (decided, open) = after(3, 2.0, 0.01).expect("a forecast");
        assert!(decided > 0 && open.is_empty(), "{open:?}");
        let (decided, open) = after(4, 1.0, 0.1).expect("a forecast");
        assert!(decided < 2 && !open.is_empty() && open.iter().all(|needed| *needed > 4), "{decided}, {open:?}");
    }
}
