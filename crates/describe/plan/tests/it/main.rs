//! Properties of every plan, whatever the factors, the repeats and the seed.

use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Design, PhaseLengths, Start};
use plimsoll_plan::{MOST_ATTEMPTS, Options, Outcome, Outcomes, Step, next, remaining};
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
    plimsoll_plan::plan(&factors, options, |_| PhaseLengths { warmup: second, measure: second, drain: second })
}

fn options(repeats: u32, seed: u64, duplicate: bool) -> Options {
    Options { repeats, seed, duplicate, spare_blocks: None, looks: Vec::new(), design: Design::Trials }
}

fn plan_of(variants: usize, conditions: usize, repeats: u32, seed: u64) -> Plan {
    plan_with(variants, conditions, &options(repeats, seed, false))
}

fn blocks(plan: &Plan) -> BTreeMap<u32, Vec<&Start>> {
    let mut blocks: BTreeMap<u32, Vec<&Start>> = BTreeMap::new();
    for start in &plan.starts {
        blocks.entry(start.block).or_default().push(start);
    }
    blocks
}

/// The variant of a trial.
fn variant(start: &Start) -> usize {
    start.only_variant().expect("a trial has one variant")
}

/// How often each variant sits in each position of the blocks of each condition.
fn seats(plan: &Plan) -> BTreeMap<(usize, usize, u32), u32> {
    let mut seats = BTreeMap::new();
    for start in &plan.starts {
        *seats.entry((start.condition, variant(start), start.position)).or_default() += 1;
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
        plan_of(2, 3, 2, 1).starts.iter().map(|trial| (trial.condition, variant(trial))).collect();
    assert_eq!(order, FROZEN, "a bundle's plan must be the same with every version of the program");
}

#[test]
fn the_order_with_the_duplicate_never_changes_either() {
    let order: Vec<usize> = plan_with(2, 1, &options(4, 1, true)).starts.iter().map(variant).collect();
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
            let held: BTreeSet<usize> = trials.iter().map(|start| variant(start)).collect();
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
        prop_assert!(plan.starts.is_sorted_by_key(|trial| trial.repeat));
    }

    #[test]
    fn starts_are_numbered_in_the_order_of_the_run(variants in 1..5_usize, repeats in 1..8_u32, seed: u64) {
        let plan = plan_of(variants, 3, repeats, seed);
        let numbers: Vec<u32> = plan.starts.iter().map(|trial| trial.number).collect();
        prop_assert_eq!(numbers, (1..=variants as u32 * 3 * repeats).collect::<Vec<_>>());
    }

    #[test]
    fn the_seed_decides_the_order(seed: u64) {
        // 3 variants, 4 conditions and 8 repeats leave so many orders that two never meet.
        let plan = plan_of(3, 4, 8, seed);
        prop_assert_eq!(&plan, &plan_of(3, 4, 8, seed));
        prop_assert_ne!(&plan.starts, &plan_of(3, 4, 8, seed.wrapping_add(1)).starts);
    }

    #[test]
    fn spare_blocks_are_whole_bounded_and_the_same_when_a_run_goes_on(
        variants in 2..4_usize, conditions in 1..4_usize, repeats in 1..6_u32, spare in 0..8_u32, seed: u64,
        bad in 0..60_u64, look in 1..6_u32, stops in proptest::collection::vec(any::<bool>(), 8),
    ) {
        let looks = vec![look.min(repeats), repeats];
        let with_spare = Options { spare_blocks: Some(spare), looks, ..options(repeats, seed, true) };
        let plan = plan_with(variants, conditions, &with_spare);
        let whole = carried_out(&plan, seed, bad, &[]);
        prop_assert_eq!(&whole, &carried_out(&plan, seed, bad, &stops));
        prop_assert_eq!(&whole.starts[..plan.starts.len()], &plan.starts[..], "what was planned stays");
        let numbers: Vec<u32> = whole.starts.iter().map(|trial| trial.number).collect();
        prop_assert_eq!(numbers, (1..=whole.starts.len() as u32).collect::<Vec<_>>());
        let blocks = blocks(&whole);
        prop_assert!(blocks.len() <= conditions * repeats as usize + spare as usize);
        for trials in blocks.values() {
            let held: BTreeSet<usize> = trials.iter().map(|start| variant(start)).collect();
            prop_assert_eq!((held.len(), trials.len()), (variants + 1, variants + 1));
            let one = |trial: &Start| (trial.condition, trial.repeat, trial.attempt, trial.extended);
            prop_assert!(trials.iter().all(|trial| one(trial) == one(trials[0])));
            prop_assert!(trials[0].attempt <= MOST_ATTEMPTS);
            prop_assert!(!trials[0].extended || trials[0].attempt > 1);
            let first = plan.starts.iter().find(|trial| trial.repeat == trials[0].repeat
                && trial.condition == trials[0].condition && trial.position == 1);
            prop_assert_eq!(first.map(variant), Some(variant(trials[0])), "in the same order");
        }
        let counting = blocks.values().filter(|trials| !whole.is_superseded(trials[0])).count();
        prop_assert_eq!(counting, conditions * repeats as usize, "one attempt at each block counts");
    }

    #[test]
    fn any_prefix_of_a_run_goes_on_as_the_whole_did(
        variants in 2..4_usize, conditions in 1..3_usize, repeats in 1..5_u32, spare in 0..5_u32, seed: u64,
        bad in 0..60_u64, look in 1..5_u32, decided: bool, first: bool,
    ) {
        let looks = vec![look.min(repeats), repeats];
        let with_spare = Options { spare_blocks: Some(spare), looks, ..options(repeats, seed, true) };
        let plan = plan_with(variants, conditions, &with_spare);
        let found = |repeats| Look { repeats, decided, conditions: if first { vec![0] } else { Vec::new() } };
        let mut outcomes = Outcomes::default();
        let mut run: Vec<(Outcomes, Step)> = Vec::new();
        while let Some(step) = next(&plan, &outcomes) {
            run.push((outcomes.clone(), step.clone()));
            carry_out(&mut outcomes, step, seed, bad, &found);
        }
        let steps: Vec<Step> = run.iter().map(|(_, step)| step.clone()).collect();
        for (index, (known, _)) in run.iter().enumerate() {
            // An interruption leaves the looks and the starts that are over. The start under way is
            // lost: the run goes on with the same one.
            let begun = known.start_under_way().map(|start| Step::Start(start.clone()));
            let kept = begun.map_or(index, |begun| steps.iter().rposition(|step| *step == begun).expect("it began"));
            let mut replayed = Outcomes::default();
            let going_on = steps[..kept].iter().cloned().chain(std::iter::once(steps[kept].clone()));
            for (step, expected) in going_on.zip(&steps) {
                prop_assert_eq!(next(&plan, &replayed), Some(expected.clone()));
                carry_out(&mut replayed, step, seed, bad, &found);
            }
        }
        let starts = run.iter().filter(|(_, step)| matches!(step, Step::Start(_))).count();
        let stops = run.iter().filter(|(_, step)| *step == Step::Stop).count();
        prop_assert_eq!(starts, stops, "every start is stopped before the next one");
        let spared = |step: &Step| matches!(step, Step::Start(start) if found(look).spares(start));
        prop_assert!(look >= repeats || !run.iter().any(|(_, step)| spared(step)), "what a look spares does not run");
    }

    #[test]
    fn a_run_that_went_on_after_breaking_off_has_the_same_starts(
        conditions in 1..4_usize, repeats in 1..8_u32, spare in 0..8_u32, seed: u64, bad in 0..100_u64,
    ) {
        let plan = plan_with(2, conditions, &Options { spare_blocks: Some(spare), ..options(repeats, seed, true) });
        let run = |disturbed: Outcome| {
            let (mut outcomes, mut starts, mut in_a_row) = (Outcomes::default(), Vec::new(), 0);
            while let Some(step) = next(&plan, &outcomes) {
                in_a_row = if step == Step::BreakOff { in_a_row + 1 } else { 0 };
                assert!(in_a_row < 2, "a run that goes on does so for a while");
                match step {
                    Step::Start(start) => {
                        starts.push(start.clone());
                        let end = outcome(&start, seed, bad);
                        outcomes.stopped(start, if end == Outcome::Disturbed { disturbed } else { end });
                    }
                    Step::BreakOff => outcomes.went_on(),
                    step => panic!("no {step:?} was planned"),
                }
            }
            starts
        };
        prop_assert_eq!(run(Outcome::Disturbed), run(Outcome::DoesNotCount));
    }

    #[test]
    fn what_remains_at_first_is_the_plan(variants in 2..4_usize, repeats in 1..6_u32, seed: u64) {
        let plan = plan_with(variants, 2, &options(repeats, seed, true));
        prop_assert_eq!(&remaining(&plan, &Outcomes::default()), &plan.starts);
    }
}

/// How a start ends in a made-up run: `bad` in a hundred do not count, a third of them for want of a
/// steady state, and a third because others used the processors.
fn outcome(start: &Start, seed: u64, bad: u64) -> Outcome {
    let draw = (seed ^ (u64::from(start.number) << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    match draw % 100 {
        share if share >= bad => Outcome::Counts,
        share if share % 3 == 0 => Outcome::Unsteady,
        share if share % 3 == 1 => Outcome::Disturbed,
        _ => Outcome::DoesNotCount,
    }
}

/// Carries out a step of a made-up run. The start under way is the last one that began.
fn carry_out(outcomes: &mut Outcomes, step: Step, seed: u64, bad: u64, look: &dyn Fn(u32) -> Look) {
    match step {
        Step::Start(start) => outcomes.started(start),
        Step::Loads(loads) => loads.into_iter().for_each(|load| outcomes.loaded(load, None)),
        Step::Stop => {
            let start = outcomes.start_under_way().expect("a start").clone();
            let end = outcome(&start, seed, bad);
            outcomes.stopped(start, end);
        }
        Step::Look { repeats } => outcomes.looked(look(repeats)),
        Step::BreakOff => outcomes.went_on(),
    }
}

/// The plan with all starts that a run with undecided looks comes to. Where `stops` says so, the run
/// is interrupted amid a start that the plan did not have: it knows nothing of that one, and goes on.
fn carried_out(plan: &Plan, seed: u64, bad: u64, stops: &[bool]) -> Plan {
    let mut carried_out = plan.clone();
    let mut outcomes = Outcomes::default();
    let mut stops = stops.iter();
    while let Some(step) = next(plan, &outcomes) {
        let before = outcomes.clone();
        if let Step::Start(start) = &step
            && !carried_out.starts.contains(start)
        {
            carried_out.starts.push(start.clone());
            if stops.next() == Some(&true) {
                outcomes.started(start.clone());
                outcomes = before;
                assert_eq!(next(plan, &outcomes), Some(step.clone()), "the same start comes again");
            }
        }
        carry_out(&mut outcomes, step, seed, bad, &Look::open);
    }
    carried_out
}
