//! What a machine's noise floor means for studies to come: how small a change they could see.

use crate::compare::{Comparison, POWER, natural_interval};
use crate::decide::Doubt;
use crate::{Analysis, Input, OrReason};
use plimsoll_statistics::{Interval, smallest_detectable, standard_deviation};

/// The baseline against itself under a condition, in a measure that decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise<'a> {
    /// The duplicate against the baseline.
    pub floor: &'a Comparison,
    /// The smallest difference that matters, as declared.
    pub margin: f64,
    /// What is wrong with the floor, if anything is.
    pub doubt: Option<Doubt>,
    /// The smallest change that a study could show with [`POWER`], by its repeats, if its pairs
    /// spread like these; or why that cannot be said.
    pub detectable: OrReason<Vec<(usize, f64)>>,
}

/// The noise floors of `analysis`, and what studies of so many repeats could see over them.
#[must_use]
pub fn noise<'a>(input: &Input, analysis: &'a Analysis, repeats: &[usize]) -> Vec<Noise<'a>> {
    let of_floor = |floor: &'a Comparison| {
        let margin = crate::margin(&input.facts, &floor.measure)?;
        let detectable = detectable(floor, repeats, analysis.alpha);
        Some(Noise { floor, margin, doubt: floor.doubt(margin), detectable })
    };
    analysis.floors.iter().filter_map(of_floor).collect()
}

fn detectable(floor: &Comparison, repeats: &[usize], alpha: f64) -> OrReason<Vec<(usize, f64)>> {
    let contrast = floor.contrast.as_ref().map_err(Clone::clone)?;
    contrast.interval.as_ref().map_err(Clone::clone)?;
    let effect = floor.measure.effect();
    let differences: Vec<f64> = floor.pairs.iter().map(|pair| pair.difference(effect)).collect();
    let sd = standard_deviation(&differences).ok_or("there is no spread to tell it from")?;
    let smallest = |&n: &usize| {
        let change = smallest_detectable(sd, n, alpha, POWER)?;
        Some((n, natural_interval(effect, Interval { low: change, high: change }).high))
    };
    repeats.iter().map(smallest).collect::<Option<Vec<_>>>().ok_or_else(|| "so few repeats show nothing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{input, trial};

    #[test]
    fn more_repeats_see_smaller_changes() {
        // The second of two variants is the duplicate where there is one variant only.
        let mut input = input(5, |number| trial(1.0 + f64::from(number % 7) / 100.0));
        input.plan.variants.truncate(1);
        input.plan.with_duplicate = true;
        let analysis = analyse(&input);
        let noise = noise(&input, &analysis, &[3, 5, 10]);
        assert_eq!(noise.len(), input.facts.decide.len());
        let sizes: Vec<f64> =
            noise[0].detectable.as_ref().expect("five pairs").iter().map(|(_, change)| *change).collect();
        assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2] && sizes[2] > 1.0, "{sizes:?}");
    }
}
