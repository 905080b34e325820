//! What every plan must hold to, whatever the factors, the repeats and the seed.

use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::trial::{Plan, Trial, TrialLength};
use plimsoll_plan::{MOST_ATTEMPTS, Options, Outcome, again, due};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A plan with the baseline once in each block, or twice.
fn plan_with(variants: usize, conditions: usize, options: &Options) -> Plan {
    let levels = |count: usize| (0..count).map(|level| Level::Integer(level as i64)).collect();
    let factors = [
        Factor { name: "variant".to_owned(), levels: levels(variants), role: Role::Compared { baseline: 0 } },
        Factor { name: "condition".to_owned(), levels: levels(conditions), role: Role::Condition },
    ];
    let second = Duration::from_secs(1);
    plimsoll_plan::plan(&factors, options, |_| TrialLength { warmup: second, measure: second, drain: second })
}

fn options(repeats: u32, seed: u64, duplicate: bool) -> Options {
    Options { repeats, seed, duplicate, spare_blocks: None, looks: Vec::new() }
}

fn plan_of(variants: usize, conditions: usize, repeats: u32, seed: u64) -> Plan {
    plan_with(variants, conditions, &options(repeats, seed, false))
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
    for (variants, duplicate) in (1..=6).flat_map(|variants| [(variants, false), (variants, true)]) {
        for repeats in 1..=12 {
            for seed in 0..20 {
                let plan = plan_with(variants, 2, &options(repeats, seed, duplicate));
                let most = repeats.div_ceil(plan.block_size() as u32);
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

#[test]
fn the_order_with_the_duplicate_never_changes_either() {
    let order: Vec<usize> = plan_with(2, 1, &options(4, 1, true)).trials.iter().map(|trial| trial.variant).collect();
    assert_eq!(order, FROZEN_WITH_DUPLICATE, "a bundle's plan must be the same with every version of the program");
}

const FROZEN_WITH_DUPLICATE: [usize; 12] = [2, 0, 1, 2, 0, 1, 1, 2, 0, 0, 1, 2];

const FROZEN: [(usize, usize); 12] =
    [(2, 1), (2, 0), (1, 1), (1, 0), (0, 0), (0, 1), (2, 0), (2, 1), (0, 1), (0, 0), (1, 0), (1, 1)];

proptest! {
    #[test]
    fn each_block_holds_each_variant_once_and_the_baseline_s_duplicate_under_one_condition(
        variants in 2..7_usize, conditions in 1..6_usize, repeats in 1..13_u32, seed: u64, duplicate: bool,
    ) {
        let plan = plan_with(variants, conditions, &options(repeats, seed, duplicate));
        let variants = variants + usize::from(duplicate);
        prop_assert_eq!(plan.duplicate(), duplicate.then_some(plan.variants.len()));
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

    #[test]
    fn spare_blocks_are_whole_bounded_and_the_same_when_a_run_goes_on(
        variants in 2..4_usize, conditions in 1..4_usize, repeats in 1..6_u32, spare in 0..8_u32, seed: u64,
        bad in 0..60_u64, look in 1..6_u32, stops in proptest::collection::vec(any::<bool>(), 8),
    ) {
        let with_spare = Options { spare_blocks: Some(spare), ..options(repeats, seed, true) };
        let plan = plan_with(variants, conditions, &with_spare);
        let look = look.min(repeats);
        let whole = carried_out(&plan, look, seed, bad, &[]);
        prop_assert_eq!(&whole, &carried_out(&plan, look, seed, bad, &stops));
        prop_assert_eq!(&whole.trials[..plan.trials.len()], &plan.trials[..], "what was planned stays");
        let numbers: Vec<u32> = whole.trials.iter().map(|trial| trial.number).collect();
        prop_assert_eq!(numbers, (1..=whole.trials.len() as u32).collect::<Vec<_>>());
        let blocks = blocks(&whole);
        prop_assert!(blocks.len() <= conditions * repeats as usize + spare as usize);
        for trials in blocks.values() {
            let held: BTreeSet<usize> = trials.iter().map(|trial| trial.variant).collect();
            prop_assert_eq!((held.len(), trials.len()), (variants + 1, variants + 1));
            let one = |trial: &Trial| (trial.condition, trial.repeat, trial.attempt, trial.extended);
            prop_assert!(trials.iter().all(|trial| one(trial) == one(trials[0])));
            prop_assert!(trials[0].attempt <= MOST_ATTEMPTS);
            prop_assert!(!trials[0].extended || trials[0].attempt > 1);
            let first = plan.trials.iter().find(|trial| trial.repeat == trials[0].repeat
                && trial.condition == trials[0].condition && trial.position == 1);
            prop_assert_eq!(first.map(|first| first.variant), Some(trials[0].variant), "in the same order");
        }
        let counting = blocks.values().filter(|trials| !whole.is_superseded(trials[0])).count();
        prop_assert_eq!(counting, conditions * repeats as usize, "one attempt at each block counts");
    }
}

/// How a trial ends in a made-up run: `bad` in a hundred do not count, a third of them for want of a
/// steady state.
fn outcome(trial: &Trial, seed: u64, bad: u64) -> Outcome {
    let draw = (seed ^ (u64::from(trial.number) << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    match draw % 100 {
        share if share >= bad => Outcome::Counts,
        share if share % 3 == 0 => Outcome::Unsteady,
        _ => Outcome::DoesNotCount,
    }
}

/// The plan after a run with a look in the middle. Where `stops` says so, the run is interrupted
/// amid the trials of a block that runs again: it knows only the first of them then, and goes on.
fn carried_out(plan: &Plan, look: u32, seed: u64, bad: u64, stops: &[bool]) -> Plan {
    let mut plan = plan.clone();
    let mut known: BTreeMap<u32, Outcome> = BTreeMap::new();
    let mut stops = stops.iter();
    for repeats in [look, plan.repeats] {
        let planned: Vec<Trial> = plan.trials.iter().filter(|trial| trial.repeat <= repeats).copied().collect();
        known.extend(planned.iter().map(|trial| (trial.number, outcome(trial, seed, bad))));
        while let Some(next) = due(&plan, &known, repeats) {
            let trials = again(&plan, next);
            plan.trials.extend(&trials);
            if stops.next() == Some(&true) {
                known.insert(trials[0].number, outcome(&trials[0], seed, bad));
                assert_ne!(due(&plan, &known, repeats), Some(next), "a block that has begun is not begun again");
            }
            known.extend(trials.iter().map(|trial| (trial.number, outcome(trial, seed, bad))));
        }
    }
    plan
}
