//! Estimates: a measure of a variant under a condition, over its repeats.
//!
//! The centre is the geometric mean, because variants are compared by ratios: the ratio of two
//! centres over the same blocks equals the ratio that the comparison reports.

use crate::measure::TrialReader;
use crate::reason::OrReason;
use crate::search;
use crate::values::Values;
use plimsoll_model::measure::{Effect, Measure, Series};
use plimsoll_statistics::capacity::over_starts;
use plimsoll_statistics::{mean, median, one_sample, standard_deviation};

pub use plimsoll_statistics::Interval;

/// The confidence level of the intervals of estimates.
pub const CONFIDENCE: f64 = 0.95;

/// Fewest repeats for an interval: with two, Student's factor is 12.7 and the interval says
/// nothing.
pub const MIN_REPEATS: usize = 3;

/// A measure over the repeats of a variant under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The measure.
    pub measure: Measure,
    /// The values of the trials that count, in the order of the run.
    pub values: Vec<TrialValue>,
    /// The summary of the values, or the reason why there is none.
    pub summary: OrReason<Summary>,
    /// The confidence interval of the centre, or the reason why there is none.
    pub interval: OrReason<Interval>,
}

/// The value of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialValue {
    /// Number of the trial.
    pub trial: u32,
    /// Number of its block.
    pub block: u32,
    /// The value, in the unit of the measure.
    pub value: f64,
}

/// Summary statistics of several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Geometric mean; the arithmetic mean where a value is zero.
    pub centre: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample; none for one value.
    pub sd: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// The coefficient of variation: standard deviation over mean; none for one value.
    #[must_use]
    pub fn relative_sd(&self) -> Option<f64> {
        self.sd.filter(|_| self.mean > 0.0).map(|sd| sd / self.mean)
    }
}

/// The estimate of one measure over the trials of a cell that count.
pub(crate) fn estimate(table: &Values<'_>, (condition, variant): (usize, usize), measure: usize) -> Estimate {
    let of_cell = || table.of_cell(condition, variant, measure);
    let value = |(reader, value): (&TrialReader<'_>, &OrReason<f64>)| {
        let trial = reader.trial();
        Some(TrialValue { trial: trial.number(), block: trial.identity().block, value: *value.as_ref().ok()? })
    };
    let values: Vec<TrialValue> = of_cell().filter_map(value).collect();
    let missing = || of_cell().find_map(|(_, value)| value.clone().err());
    let plain = match table.why_withheld((condition, variant), measure) {
        Some(reason) => Err(reason),
        None if values.is_empty() => Err(missing().unwrap_or_else(|| "no trial counts".to_owned())),
        None => Ok(values.iter().map(|one| one.value).collect::<Vec<f64>>()),
    };
    Estimate {
        measure: table.measures()[measure].clone(),
        values,
        summary: plain.clone().and_then(|plain| summarise(&plain).ok_or_else(|| "no trial counts".to_owned())),
        interval: plain.and_then(|plain| match table.measures()[measure].series {
            Series::Capacity => {
                let contradictions = of_cell().map(|(reader, _)| search::contradiction(reader.load()));
                interval_of_capacities(&plain, contradictions.fold(0.0, f64::max))
            }
            _ => interval_of_centre(&plain),
        }),
    }
}

/// Summary statistics of `values`; none when there is no value.
#[must_use]
pub fn summarise(values: &[f64]) -> Option<Summary> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let average = mean(&sorted)?;
    Some(Summary {
        n: sorted.len(),
        centre: logarithms(&sorted).and_then(|logs| mean(&logs)).map_or(average, f64::exp),
        mean: average,
        sd: standard_deviation(&sorted),
        min: sorted[0],
        median: median(&sorted)?,
        max: sorted[sorted.len() - 1],
    })
}

/// The centre of values that are compared by this effect: the geometric mean where the change is a ratio, the
/// arithmetic mean where it is a difference or a value is zero. None without values.
#[must_use]
pub(crate) fn centre(values: &[f64], effect: Effect) -> Option<f64> {
    let logs = logarithms(values).filter(|_| effect == Effect::Ratio);
    logs.map_or_else(|| mean(values), |logs| mean(&logs).map(f64::exp))
}

/// The confidence interval of the geometric mean: Student's t on the logarithms.
pub(crate) fn interval_of_centre(values: &[f64]) -> OrReason<Interval> {
    let logs = logarithms(values).ok_or("a value is zero")?;
    let interval = interval_of_mean(&logs)?;
    Ok(Interval { low: interval.low.exp(), high: interval.high.exp() })
}

/// The confidence interval of the geometric mean of the capacities of several starts, on one of which loads contradict one another
/// as far as `widest`: see [`over_starts`].
pub fn interval_of_capacities(capacities: &[f64], widest: f64) -> OrReason<Interval> {
    if widest == 0.0 || capacities.len() < MIN_REPEATS {
        return interval_of_centre(capacities);
    }
    let test = over_starts(capacities, widest).ok_or_else(|| too_few(capacities.len()))?;
    let interval = test.interval(CONFIDENCE);
    Ok(Interval { low: interval.low.exp(), high: interval.high.exp() })
}

/// Student's t interval of the mean of `values`.
///
/// # Errors
/// Why there is none: fewer than [`MIN_REPEATS`] values, or values that are all the same.
pub fn interval_of_mean(values: &[f64]) -> OrReason<Interval> {
    match one_sample(values).filter(|_| values.len() >= MIN_REPEATS) {
        None => Err(too_few(values.len())),
        Some(test) if test.standard_error > 1e-12 => Ok(test.interval(CONFIDENCE)),
        Some(_) => Err("all repeats agree to the last digit, so their spread is hidden by the resolution".to_owned()),
    }
}

/// The natural logarithms of `values`; none if one is not above zero.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().all(|value| *value > 0.0).then(|| values.iter().map(|value| value.ln()).collect())
}

/// The reason why so few repeats give no interval.
pub(crate) fn too_few(n: usize) -> String {
    match n {
        0 => "no repeat counts".to_owned(),
        1 => "one repeat has no spread".to_owned(),
        _ => format!("{n} repeats give a range, not an interval; it takes {MIN_REPEATS}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_summary_of_known_numbers() {
        let summary = summarise(&[4.0, 1.0, 16.0]).expect("three values");
        assert_eq!((summary.n, summary.min, summary.median, summary.max), (3, 1.0, 4.0, 16.0));
        assert!((summary.centre - 4.0).abs() < 1e-12);
        assert!((summary.mean - 7.0).abs() < 1e-12);
        assert!((summary.sd.expect("a spread") - 63_f64.sqrt()).abs() < 1e-12);
        assert_eq!(summarise(&[]), None);
    }

    #[test]
    fn a_zero_makes_the_centre_the_arithmetic_mean() {
        assert_eq!(summarise(&[0.0, 2.0]).expect("two values").centre, 1.0);
    }

    #[test]
    fn the_interval_is_the_textbook_one() {
        // Mean 3, sd √2.5, t(0.975, 4) = 2.776: 3 ± 1.963.
        let interval = interval_of_mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
        assert!((interval.low - 1.0368).abs() < 1e-3 && (interval.high - 4.9632).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn without_an_interval_there_is_a_reason() {
        for (values, reason) in [
            (&[][..], "no repeat counts"),
            (&[1.0], "one repeat has no spread"),
            (&[1.0, 2.0], "2 repeats give a range, not an interval; it takes 3"),
            (&[1.0, 1.0, 1.0], "all repeats agree to the last digit, so their spread is hidden by the resolution"),
        ] {
            assert_eq!(interval_of_mean(values), Err(reason.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn the_order_of_trials_does_not_matter(mut values in prop::collection::vec(0.001..1000.0, 1..12)) {
            let forward = summarise(&values);
            values.reverse();
            prop_assert_eq!(summarise(&values), forward);
        }

        #[test]
        fn the_centre_lies_between_the_extremes(values in prop::collection::vec(0.001..1000.0, 1..12)) {
            let summary = summarise(&values).expect("values");
            prop_assert!(summary.centre >= summary.min * (1.0 - 1e-12));
            prop_assert!(summary.centre <= summary.mean * (1.0 + 1e-12));
        }
    }
}
