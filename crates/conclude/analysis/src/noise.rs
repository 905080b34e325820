//! The noise floor of a machine, and the smallest change that later studies could detect over it.

use crate::analysis::Analysis;
use crate::compare::{Comparison, POWER, Reference, widest_half_width};
use crate::decide::{Doubt, MAX_FORECAST_REPEATS};
use crate::effect::natural;
use crate::estimate::MIN_REPEATS;
use crate::input::Input;
use crate::reason::OrReason;
use plimsoll_statistics::{repeats_needed, smallest_detectable, standard_deviation};

/// The baseline against itself under a condition, in a measure that decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise<'a> {
    /// The comparison of the duplicate with the baseline.
    pub floor: &'a Comparison,
    /// The declared margin: the smallest difference that matters.
    pub margin: f64,
    /// The doubt about the floor, if there is one.
    pub doubt: Option<Doubt>,
    /// By number of repeats, the smallest change that a study could detect with [`POWER`], if its
    /// slices or trials spread like these; or the reason why that is unknown.
    pub detectable: OrReason<Vec<(usize, f64)>>,
    /// The repeats after which the floor of a study is probably narrow enough for the margin.
    pub needed: Option<usize>,
}

/// The noise floors of `analysis`, and the changes that studies of these `repeats` could detect
/// over them.
#[must_use]
pub fn noise<'a>(input: &Input, analysis: &'a Analysis, repeats: &[usize]) -> Vec<Noise<'a>> {
    let of_floor = |floor: &'a Comparison| {
        let margin = crate::catalogue::margin(&input.facts, &floor.measure)?;
        let spread = spread(floor);
        // Where a study compares with both copies, its differences spread less than those of the two.
        let of_study = spread.clone().map(|sd| sd / Reference::of(&input.plan).widest_floor());
        let detectable = of_study.and_then(|sd| detectable(floor, sd, repeats, analysis.alpha));
        let widest = widest_half_width(&input.plan, &floor.measure, margin);
        let needed = spread.ok().and_then(|sd| needed(floor, sd, widest, analysis.alpha));
        Some(Noise { floor, margin, doubt: floor.doubt(&input.plan, margin), detectable, needed })
    };
    analysis.floors.iter().filter_map(of_floor).collect()
}

/// The standard deviation of the differences within the pairs.
fn spread(floor: &Comparison) -> OrReason<f64> {
    floor.contrast.as_ref().map_err(Clone::clone)?.interval.as_ref().map_err(Clone::clone)?;
    let effect = floor.measure.effect();
    let differences: Vec<f64> = floor.pairs.iter().map(|pair| pair.difference(effect)).collect();
    standard_deviation(&differences).ok_or_else(|| "there is no spread to tell it from".to_owned())
}

fn detectable(floor: &Comparison, sd: f64, repeats: &[usize], alpha: f64) -> OrReason<Vec<(usize, f64)>> {
    let smallest = |&n: &usize| {
        let change = smallest_detectable(sd, n, alpha, POWER)?;
        Some((n, natural(floor.measure.effect(), change)))
    };
    repeats.iter().map(smallest).collect::<Option<Vec<_>>>().ok_or_else(|| "so few repeats show nothing".to_owned())
}

fn needed(floor: &Comparison, sd: f64, widest: f64, alpha: f64) -> Option<usize> {
    Some(repeats_needed(sd, floor.pairs.len(), widest, alpha, MAX_FORECAST_REPEATS)?.max(MIN_REPEATS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{input, start};

    #[test]
    fn more_repeats_see_smaller_changes() {
        // The second of two variants is the duplicate where there is one variant only.
        let mut input = input(5, |number| start(1.0 + f64::from(number % 7) / 100.0));
        input.plan.variants.truncate(1);
        input.plan.with_duplicate = true;
        let analysis = analyse(&input);
        let noise = noise(&input, &analysis, &[3, 5, 10]);
        assert_eq!(noise.len(), input.facts.decide.len());
        let sizes: Vec<f64> =
            noise[0].detectable.as_ref().expect("five pairs").iter().map(|(_, change)| *change).collect();
        assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2] && sizes[2] > 1.0, "{sizes:?}");
    }

    #[test]
    fn a_narrower_margin_takes_more_repeats() {
        let mut input = input(5, |number| start(1.0 + f64::from(number % 4) / 100.0));
        input.plan.variants.truncate(1);
        input.plan.with_duplicate = true;
        let analysis = analyse(&input);
        let mut needed = |margin: f64| {
            input.facts.decide.iter_mut().for_each(|decision| decision.margin = margin);
            noise(&input, &analysis, &[]).iter().filter_map(|one| one.needed).max().expect("a forecast")
        };
        let (narrow, wide) = (needed(0.005), needed(0.5));
        assert!(narrow > wide && wide >= MIN_REPEATS, "{narrow} and {wide}");
    }
}
