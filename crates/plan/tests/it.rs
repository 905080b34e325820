//! What every plan must hold to, whatever the factors, the repeats and the seed.

use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::trial::{Plan, Trial, TrialLength};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn plan_of(variants: usize, conditions: usize, repeats: u32, seed: u64) -> Plan {
    let levels = |count: usize| (0..count).map(|level| Level::Integer(level as i64)).collect();
    let factors = [
        Factor { name: "variant".to_owned(), levels: levels(variants), role: Role::Compared { baseline: 0 } },
        Factor { name: "condition".to_owned(), levels: levels(conditions), role: Role::Condition },
    ];
    let second = Duration::from_secs(1);
    plimsoll_plan::plan(&factors, repeats, seed, |_| TrialLength { warmup: second, measure: second, drain: second })
}

fn blocks(plan: &Plan) -> BTreeMap<u32, Vec<&Trial>> {
    let mut blocks: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
    for trial in &plan.trials {
        blocks.entry(trial.block).or_default().push(trial);
    }
    blocks
}

/// How often each variant sits in each position of the blocks of each condition.
fn seats(plan: &Plan) -> BTreeMap<(usize, usize, u32), u32> {
    let mut seats = BTreeMap::new();
    for trial in &plan.trials {
        *seats.entry((trial.condition, trial.variant, trial.position)).or_default() += 1;
    }
    seats
}

#[test]
fn no_variant_sits_in_one_position_more_often_than_need_be() {
    for variants in 1..=6 {
        for repeats in 1..=12 {
            for seed in 0..20 {
                let plan = plan_of(variants, 2, repeats, seed);
                let most = repeats.div_ceil(variants as u32);
                for (seat, count) in seats(&plan) {
                    assert!(count <= most, "{variants} variants, {repeats} repeats, seed {seed}: {seat:?} {count}×");
                }
            }
        }
    }
}

#[test]
fn the_order_for_a_seed_never_changes() {
    let order: Vec<(usize, usize)> =
        plan_of(2, 3, 2, 1).trials.iter().map(|trial| (trial.condition, trial.variant)).collect();
    assert_eq!(order, FROZEN, "a bundle's plan must be the same with every version of the program");
}

const FROZEN: [(usize, usize); 12] =
    [(2, 1), (2, 0), (1, 1), (1, 0), (0, 0), (0, 1), (2, 0), (2, 1), (0, 1), (0, 0), (1, 0), (1, 1)];

proptest! {
    #[test]
    fn each_block_holds_each_variant_once_under_one_condition(
        variants in 1..7_usize, conditions in 1..6_usize, repeats in 1..13_u32, seed: u64,
    ) {
        let plan = plan_of(variants, conditions, repeats, seed);
        let blocks = blocks(&plan);
        prop_assert_eq!(blocks.len(), conditions * repeats as usize);
        for trials in blocks.values() {
            let held: BTreeSet<usize> = trials.iter().map(|trial| trial.variant).collect();
            prop_assert_eq!(held.len(), variants);
            prop_assert_eq!(trials.len(), variants);
            prop_assert!(trials.iter().all(|t| (t.condition, t.repeat) == (trials[0].condition, trials[0].repeat)));
            let positions: Vec<u32> = trials.iter().map(|trial| trial.position).collect();
            prop_assert_eq!(positions, (1..=variants as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_repeat_holds_each_condition_once(
        variants in 1..5_usize, conditions in 1..6_usize, repeats in 1..8_u32, seed: u64,
    ) {
        let plan = plan_of(variants, conditions, repeats, seed);
        let mut seen = BTreeSet::new();
        for trials in blocks(&plan).values() {
            prop_assert!(seen.insert((trials[0].repeat, trials[0].condition)));
        }
        prop_assert_eq!(seen.len(), conditions * repeats as usize);
        prop_assert!(plan.trials.is_sorted_by_key(|trial| trial.repeat));
    }

    #[test]
    fn trials_are_numbered_in_the_order_of_the_run(variants in 1..5_usize, repeats in 1..8_u32, seed: u64) {
        let plan = plan_of(variants, 3, repeats, seed);
        let numbers: Vec<u32> = plan.trials.iter().map(|trial| trial.number).collect();
        prop_assert_eq!(numbers, (1..=variants as u32 * 3 * repeats).collect::<Vec<_>>());
    }

    #[test]
    fn the_seed_decides_the_order(seed: u64) {
        // 3 variants, 4 conditions and 8 repeats leave so many orders that two never meet.
        let plan = plan_of(3, 4, 8, seed);
        prop_assert_eq!(&plan, &plan_of(3, 4, 8, seed));
        prop_assert_ne!(&plan.trials, &plan_of(3, 4, 8, seed.wrapping_add(1)).trials);
    }
}
