//! Each variant against the baseline: pairs by block, ratios of what they gave.
//!
//! The two trials of a block run side by side in time, so what drifts slowly falls out of their
//! ratio. The ratio of the comparison is `exp` of the mean of the pairs' log ratios; its interval
//! is Student's t on them.

use crate::estimate::{Interval, interval_of_mean, mean};
use crate::measure::Reader;
use crate::verdict::{Verdict, verdict};
use crate::{Input, OrReason, words};
use plimsoll_model::measure::Measure;

/// A variant against the baseline under a condition, in one measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants; never the baseline's.
    pub variant: usize,
    /// The measure.
    pub measure: Measure,
    /// The blocks in which both trials count and gave a value.
    pub pairs: Vec<Pair>,
    /// The blocks left out.
    pub dropped: Vec<Dropped>,
    /// Variant over baseline, or why there is no ratio.
    pub ratio: OrReason<Ratio>,
    /// What follows, for the measures that decide.
    pub verdict: Option<Verdict>,
}

/// What the two trials of a block gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The block.
    pub block: u32,
    /// The baseline's value.
    pub baseline: f64,
    /// The variant's value.
    pub variant: f64,
}

/// A block that is left out of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The block.
    pub block: u32,
    /// Why.
    pub reason: String,
}

/// Variant over baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of geometric means.
    pub value: f64,
    /// How many pairs it comes from.
    pub n: usize,
    /// The smallest and the largest ratio of a pair.
    pub range: Interval,
    /// Where the ratio lies, or why that cannot be said.
    pub interval: OrReason<Interval>,
}

/// Every comparison of a study: by condition, variant, and measure.
pub(crate) fn comparisons(input: &Input, readers: &[Reader<'_>], measures: &[Measure]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for condition in 0..input.plan.conditions.len() {
        for variant in 1..input.plan.variants.len() {
            for measure in measures {
                comparisons.push(comparison(input, readers, (condition, variant), measure));
            }
        }
    }
    comparisons
}

fn comparison(
    input: &Input,
    readers: &[Reader<'_>],
    (condition, variant): (usize, usize),
    measure: &Measure,
) -> Comparison {
    let mut pairs = Vec::new();
    let mut dropped = Vec::new();
    for block in blocks(input, condition) {
        let value = |variant: usize| value_in_block(input, readers, (condition, variant, block), measure);
        match value(0).and_then(|baseline| Ok((baseline, value(variant)?))) {
            Ok((baseline, variant)) => pairs.push(Pair { block, baseline, variant }),
            Err(reason) => dropped.push(Dropped { block, reason }),
        }
    }
    let ratio = match (pairs.is_empty(), dropped.first()) {
        (true, Some(first)) => Err(format!("no pair of trials is left, because {}", first.reason)),
        _ => ratio(&pairs),
    };
    let decision = input.facts.decide.iter().find(|decision| &decision.measure == measure);
    let headline = crate::headline(&input.facts);
    let margin = decision.map(|decision| decision.margin).or((headline.measure == *measure).then_some(headline.margin));
    let verdict = margin.map(|margin| verdict(&ratio, measure.direction(), margin));
    Comparison { condition, variant, measure: measure.clone(), pairs, dropped, ratio, verdict }
}

/// The blocks of a condition, in the order of the plan.
fn blocks(input: &Input, condition: usize) -> Vec<u32> {
    let mut blocks: Vec<u32> =
        input.plan.trials.iter().filter(|trial| trial.condition == condition).map(|trial| trial.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

fn value_in_block(
    input: &Input,
    readers: &[Reader<'_>],
    (condition, variant, block): (usize, usize, u32),
    measure: &Measure,
) -> OrReason<f64> {
    let name = input.plan.variants[variant].label();
    let reader = readers
        .iter()
        .find(|reader| reader.is_of(condition, variant) && reader.trial().block == block)
        .ok_or_else(|| format!("the trial of {name} did not run"))?;
    let validity = &reader.result().summary.validity;
    if !validity.counts() {
        let (number, verb) = (reader.trial().number, words::validity_verb(validity));
        return Err(format!("trial {number} ({name}) {verb}: {}", validity.reasons().join("; ")));
    }
    let value = reader.value(measure).map_err(|reason| format!("{name} has no value: {reason}"))?;
    if value > 0.0 {
        Ok(value)
    } else {
        Err(format!("{name} gave 0 in trial {}, which has no ratio", reader.trial().number))
    }
}

/// The ratio that `pairs` of positive values show.
///
/// # Errors
/// There is no pair.
pub fn ratio(pairs: &[Pair]) -> OrReason<Ratio> {
    if pairs.is_empty() {
        return Err("no pair of trials is left".to_owned());
    }
    let logs: Vec<f64> = pairs.iter().map(|pair| (pair.variant / pair.baseline).ln()).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let of_logs = |low: f64, high: f64| Interval { low: low.exp(), high: high.exp() };
    Ok(Ratio {
        value: mean(&logs).exp(),
        n: pairs.len(),
        range: of_logs(low, high),
        interval: interval_of_mean(&logs).map(|interval| of_logs(interval.low, interval.high)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
        values.iter().zip(1..).map(|(&(baseline, variant), block)| Pair { block, baseline, variant }).collect()
    }

    fn close(one: f64, other: f64) -> bool {
        (one / other - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_known_ratio_with_its_interval() {
        // Log ratios 0.1, 0.2, 0.3: mean 0.2, sd 0.1, t(0.975, 2) = 4.3027, half width 0.24842.
        let values = [(1.0, 0.1_f64.exp()), (2.0, 2.0 * 0.2_f64.exp()), (3.0, 3.0 * 0.3_f64.exp())];
        let ratio = ratio(&pairs(&values)).expect("a ratio");
        assert!(close(ratio.value, 0.2_f64.exp()));
        let interval = ratio.interval.expect("an interval");
        assert!((interval.low.ln() + 0.04842).abs() < 1e-4, "{interval:?}");
        assert!((interval.high.ln() - 0.44842).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn fewer_than_three_pairs_have_no_interval() {
        assert!(ratio(&[]).is_err());
        let one = ratio(&pairs(&[(2.0, 3.0)])).expect("a ratio");
        assert_eq!((one.value, one.n), (1.5, 1));
        assert!(one.interval.is_err());
        let two = ratio(&pairs(&[(1.0, 2.0), (1.0, 4.0)])).expect("a ratio");
        assert!(close(two.range.low, 2.0) && close(two.range.high, 4.0));
        assert!(two.interval.expect_err("no interval").contains("range"));
    }

    proptest! {
        #[test]
        fn a_variant_against_itself_is_one(values in prop::collection::vec(1e-6..1e6, 1..12)) {
            let same: Vec<(f64, f64)> = values.iter().map(|value| (*value, *value)).collect();
            prop_assert_eq!(ratio(&pairs(&same)).expect("a ratio").value, 1.0);
        }

        #[test]
        fn swapping_the_baseline_inverts_everything(values in prop::collection::vec((1e-6..1e6, 1e-6..1e6), 3..12)) {
            let swapped: Vec<(f64, f64)> = values.iter().map(|(one, other)| (*other, *one)).collect();
            let forward = ratio(&pairs(&values)).expect("a ratio");
            let backward = ratio(&pairs(&swapped)).expect("a ratio");
            prop_assert!(close(forward.value, 1.0 / backward.value));
            let (forward, backward) = (forward.interval.expect("one"), backward.interval.expect("one"));
            prop_assert!(close(forward.low, 1.0 / backward.high) && close(forward.high, 1.0 / backward.low));
        }

        #[test]
        fn the_order_of_blocks_does_not_matter(mut values in prop::collection::vec((1e-3..1e3, 1e-3..1e3), 3..12)) {
            let forward = ratio(&pairs(&values)).expect("a ratio");
            values.reverse();
            prop_assert!(close(forward.value, ratio(&pairs(&values)).expect("a ratio").value));
        }
    }
}
