//! The plan: variants, conditions, and the order in which their trials run.

use crate::blocks::{BlockOrders, shuffled};
use plimsoll_model::factor::{Assignment, Factor, combinations};
use plimsoll_model::trial::{Plan, Trial, TrialLength};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

/// Plans every trial of a study with these factors.
///
/// `lengths` tells how long a trial under a condition takes. The plan has `repeats` blocks per
/// condition; `seed` decides the order and nothing else.
///
/// # Panics
///
/// If there are more than `u32::MAX` trials, which would take longer than a century.
#[must_use]
pub fn plan(factors: &[Factor], repeats: u32, seed: u64, lengths: impl Fn(&Assignment) -> TrialLength) -> Plan {
    let variants = combinations(factors.iter().filter(|factor| factor.is_compared()));
    let conditions = combinations(factors.iter().filter(|factor| !factor.is_compared()));
    let lengths = conditions.iter().map(lengths).collect();
    let trials = trials(variants.len(), conditions.len(), repeats, seed);
    Plan { seed, repeats, variants, conditions, trials, lengths }
}

/// The trials of all blocks: repeat by repeat, the conditions of each repeat in random order.
fn trials(variants: usize, conditions: usize, repeats: u32, seed: u64) -> Vec<Trial> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut orders: Vec<BlockOrders> = (0..conditions).map(|_| BlockOrders::new(variants, repeats)).collect();
    let mut trials = Vec::new();
    let mut block = 0;
    for repeat in 1..=repeats {
        for condition in shuffled(conditions, &mut random) {
            block += 1;
            for (position, variant) in (1..).zip(orders[condition].next(&mut random)) {
                let number = u32::try_from(trials.len() + 1).expect("fewer than 2^32 trials");
                trials.push(Trial { number, block, repeat, position, variant, condition });
            }
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::factor::{Level, Role};
    use std::time::Duration;

    fn factor(name: &str, levels: &[&str], role: Role) -> Factor {
        let levels = levels.iter().map(|level| Level::Text((*level).to_owned())).collect();
        Factor { name: name.to_owned(), levels, role }
    }

    #[test]
    fn compared_factors_make_variants_and_the_others_conditions() {
        let factors = [
            factor("users", &["10", "100"], Role::Condition),
            factor("mode", &["inputQ", "mutex"], Role::Compared { baseline: 1 }),
        ];
        let length = TrialLength { warmup: Duration::ZERO, measure: Duration::from_secs(20), drain: Duration::ZERO };
        let plan = plan(&factors, 3, 1, |_| length);
        let labels = |all: &[Assignment]| all.iter().map(Assignment::label).collect::<Vec<_>>();
        assert_eq!(labels(&plan.variants), ["mutex", "inputQ"], "the baseline comes first");
        assert_eq!(labels(&plan.conditions), ["10", "100"]);
        assert_eq!(plan.trials.len(), 3 * 2 * 2);
        assert_eq!(plan.time_under_load(), Duration::from_secs(12 * 20));
    }

    #[test]
    fn each_condition_has_its_own_length() {
        let factors = [
            factor("mode", &["a", "b"], Role::Compared { baseline: 0 }),
            factor("seconds", &["1", "5"], Role::Condition),
        ];
        let seconds = |condition: &Assignment| condition.get("seconds").expect("the factor").to_string();
        let plan = plan(&factors, 1, 1, |condition| TrialLength {
            warmup: Duration::ZERO,
            measure: Duration::from_secs(seconds(condition).parse().expect("a number")),
            drain: Duration::ZERO,
        });
        assert_eq!(plan.time_under_load(), Duration::from_secs(2 + 10));
    }

    #[test]
    fn a_study_without_conditions_has_one_that_is_empty() {
        let factors = [factor("mode", &["a", "b"], Role::Compared { baseline: 0 })];
        let length = TrialLength { warmup: Duration::ZERO, measure: Duration::ZERO, drain: Duration::ZERO };
        let plan = plan(&factors, 4, 9, |_| length);
        assert_eq!(plan.conditions, [Assignment::default()]);
        assert_eq!(plan.trials.last().map(|trial| (trial.number, trial.block, trial.repeat)), Some((8, 4, 4)));
    }
}
