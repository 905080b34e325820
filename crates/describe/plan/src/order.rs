//! Builds the plan: variants, conditions, and the order of their starts.

use crate::blocks::{BlockOrders, shuffled};
use plimsoll_model::factor::{Assignment, Factor, combinations};
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Design, PhaseLengths, Start};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

/// Settings of the plan besides the factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Blocks per condition.
    pub repeats: u32,
    /// The seed of the order, and of nothing else.
    pub seed: u64,
    /// True if each block holds the baseline a second time.
    pub duplicate: bool,
    /// The total number of blocks that may run again; none for a quarter of all blocks, rounded up.
    pub spare_blocks: Option<u32>,
    /// The repeats after which the run may end, in ascending order, the last one being `repeats`;
    /// empty for a run of all repeats.
    pub looks: Vec<u32>,
    /// How the variants of a block share time.
    pub design: Design,
}

/// Plans every start of a study with these factors: one for each trial.
///
/// `lengths` gives the lengths of a load's phases under a condition.
///
/// # Panics
///
/// If there are more than `u32::MAX` starts, which would take longer than a century.
#[must_use]
pub fn plan(factors: &[Factor], options: &Options, lengths: impl Fn(&Assignment) -> PhaseLengths) -> Plan {
    let variants = combinations(factors.iter().filter(|factor| factor.is_compared()));
    let conditions = combinations(factors.iter().filter(|factor| !factor.is_compared()));
    let lengths = conditions.iter().map(lengths).collect();
    let blocks = u32::try_from(conditions.len()).unwrap_or(u32::MAX).saturating_mul(options.repeats);
    let mut plan = Plan {
        seed: options.seed,
        repeats: options.repeats,
        with_duplicate: options.duplicate,
        variants,
        conditions,
        starts: Vec::new(),
        lengths,
        spare_blocks: options.spare_blocks.unwrap_or_else(|| blocks.div_ceil(BLOCKS_PER_SPARE)),
        looks: options.looks.clone(),
        given_time: None,
        searches: Vec::new(),
        design: options.design,
    };
    plan.starts = starts(&plan);
    plan
}

/// One block in this many may run again, unless the study says otherwise: a machine on which more
/// loads than that do not count needs repair rather than patience.
const BLOCKS_PER_SPARE: u32 = 4;

/// The starts of all blocks: repeat by repeat, the conditions of each repeat in random order. The
/// duplicate is one more variant here, drawn like the others.
fn starts(plan: &Plan) -> Vec<Start> {
    let (block_size, conditions) = (plan.block_size(), plan.conditions.len());
    let mut random = Pcg64::seed_from_u64(plan.seed);
    let mut orders: Vec<BlockOrders> = (0..conditions).map(|_| BlockOrders::new(block_size, plan.repeats)).collect();
    let mut starts = Vec::new();
    let mut block = 0;
    for repeat in 1..=plan.repeats {
        for condition in shuffled(conditions, &mut random) {
            block += 1;
            let order = orders[condition].next(&mut random);
            let of_starts = match plan.design {
                Design::Trials => order.into_iter().map(|variant| vec![variant]).collect(),
                Design::Turns(_) | Design::SideBySide(_) => vec![order],
            };
            for (position, variants) in (1..).zip(of_starts) {
                let number = u32::try_from(starts.len() + 1).expect("fewer than 2^32 starts");
                let (attempt, extended) = (1, false);
                starts.push(Start { number, block, repeat, attempt, extended, position, condition, variants });
            }
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::loads;
    use plimsoll_model::factor::{Level, Role};
    use plimsoll_model::start::Turns;
    use std::time::Duration;

    fn factor(name: &str, levels: &[&str], role: Role) -> Factor {
        let levels = levels.iter().map(|level| Level::Text((*level).to_owned())).collect();
        Factor { name: name.to_owned(), levels, role }
    }

    /// So many repeats, and the baseline once in each block.
    fn options(repeats: u32) -> Options {
        Options { repeats, seed: 1, duplicate: false, spare_blocks: None, looks: Vec::new(), design: Design::Trials }
    }

    #[test]
    fn compared_factors_make_variants_and_the_others_conditions() {
        let factors = [
            factor("users", &["10", "100"], Role::Condition),
            factor("mode", &["inputQ", "mutex"], Role::Compared { baseline: 1 }),
        ];
        let length = PhaseLengths { warmup: Duration::ZERO, measure: Duration::from_secs(20), drain: Duration::ZERO };
        let plan = plan(&factors, &options(3), |_| length);
        let labels = |all: &[Assignment]| all.iter().map(Assignment::label).collect::<Vec<_>>();
        assert_eq!(labels(&plan.variants), ["mutex", "inputQ"], "the baseline comes first");
        assert_eq!(labels(&plan.conditions), ["users = 10", "users = 100"]);
        assert_eq!(plan.starts.len(), 3 * 2 * 2);
        assert_eq!(plan.time_under_load(&plan.starts), Duration::from_secs(12 * 20));
    }

    #[test]
    fn each_condition_has_its_own_length() {
        let factors = [
            factor("mode", &["a", "b"], Role::Compared { baseline: 0 }),
            factor("seconds", &["1", "5"], Role::Condition),
        ];
        let seconds = |condition: &Assignment| condition.get("seconds").expect("the factor").to_string();
        let plan = plan(&factors, &options(1), |condition| PhaseLengths {
            warmup: Duration::ZERO,
            measure: Duration::from_secs(seconds(condition).parse().expect("a number")),
            drain: Duration::ZERO,
        });
        assert_eq!(plan.time_under_load(&plan.starts), Duration::from_secs(2 + 10));
    }

    #[test]
    fn a_study_without_conditions_has_one_that_is_empty() {
        let factors = [factor("mode", &["a", "b"], Role::Compared { baseline: 0 })];
        let length = PhaseLengths { warmup: Duration::ZERO, measure: Duration::ZERO, drain: Duration::ZERO };
        let plan = plan(&factors, &options(4), |_| length);
        assert_eq!(plan.conditions, [Assignment::default()]);
        assert_eq!(plan.starts.last().map(|start| (start.number, start.block, start.repeat)), Some((8, 4, 4)));
    }

    #[test]
    fn the_baseline_stands_in_each_block_twice() {
        let factors =
            [factor("mode", &["a", "b"], Role::Compared { baseline: 1 }), factor("n", &["1", "2"], Role::Condition)];
        let length = PhaseLengths { warmup: Duration::ZERO, measure: Duration::from_secs(1), drain: Duration::ZERO };
        let plan = plan(&factors, &Options { duplicate: true, ..options(3) }, |_| length);
        assert_eq!((plan.duplicate(), plan.block_size(), plan.starts.len()), (Some(2), 3, 3 * 2 * 3));
        let second = plan.starts.iter().find(|start| start.variants == [2]).expect("a duplicate");
        assert_eq!(plan.start_label(second), "b (duplicate)");
        assert_eq!(plan.assignment(2, second.condition).get("mode"), Some(&Level::Text("b".to_owned())));
        assert_eq!(plan.variants.len(), 2, "the duplicate is no variant");
    }

    #[test]
    fn in_turns_a_block_is_one_start_of_all_variants() {
        let factors =
            [factor("mode", &["a", "b"], Role::Compared { baseline: 0 }), factor("n", &["1", "2"], Role::Condition)];
        let (settle, slice) = (Duration::from_millis(100), Duration::from_millis(300));
        let design = Design::Turns(Turns { count: 6, settle, slice });
        let length = PhaseLengths { warmup: settle, measure: Duration::from_secs(9), drain: settle };
        let plan = plan(&factors, &Options { duplicate: true, design, ..options(3) }, |_| length);
        let blocks: Vec<(u32, u32)> = plan.starts.iter().map(|start| (start.block, start.position)).collect();
        assert_eq!(blocks, (1..=6).map(|block| (block, 1)).collect::<Vec<_>>());
        let slices = loads(&plan, &plan.starts[0]);
        assert_eq!(slices.iter().map(|load| load.number).collect::<Vec<_>>(), (1..=18).collect::<Vec<_>>());
        for (turn, of_turn) in (1..).zip(slices.chunks(3)) {
            let mut variants: Vec<usize> = of_turn.iter().map(|load| load.variant).collect();
            variants.sort_unstable();
            assert_eq!((variants, of_turn[2].turn), (vec![0, 1, 2], turn), "every variant once in a turn");
        }
        assert_ne!(slices, loads(&plan, &plan.starts[1]), "each start has an order of its own");
    }

    #[test]
    fn side_by_side_every_variant_has_the_baseline_beside_it() {
        let factors = [factor("mode", &["a", "b", "c"], Role::Compared { baseline: 0 })];
        let (settle, slice) = (Duration::from_millis(100), Duration::from_millis(300));
        let design = Design::SideBySide(Turns { count: 6, settle, slice });
        let length = PhaseLengths { warmup: settle, measure: Duration::from_secs(9), drain: settle };
        let plan = plan(&factors, &Options { duplicate: true, design, ..options(2) }, |_| length);
        assert_eq!((plan.starts.len(), plan.block_size()), (2, 4));
        let loads = loads(&plan, &plan.starts[0]);
        assert_eq!(loads.len(), 6 * 3 * 2);
        assert_eq!(plan.time_under_load([&plan.starts[0]]), 6 * 3 * (settle + slice));
        for (turn, slices) in (1..).zip(loads.chunks(6)) {
            let mut beside: Vec<usize> = slices.iter().map(|load| load.variant).filter(|one| *one != 0).collect();
            beside.sort_unstable();
            assert_eq!(beside, [1, 2, 3], "every variant, and the duplicate, once in a turn");
            assert!(slices.iter().all(|load| load.turn == turn));
            for pair in slices.chunks(2) {
                assert_eq!(pair[0].variant, 0);
                assert!(pair[0].runs_beside(&pair[1]) && pair[1].runs_beside(&pair[0]), "{pair:?}");
            }
            assert!(!slices[1].runs_beside(&slices[2]) && !slices[0].runs_beside(&slices[2]));
        }
    }

    #[test]
    fn where_nothing_is_compared_a_block_is_one_trial() {
        let length = PhaseLengths { warmup: Duration::ZERO, measure: Duration::ZERO, drain: Duration::ZERO };
        let factors = [factor("users", &["1", "2", "3"], Role::Condition)];
        let plan = plan(&factors, &options(4), |_| length);
        assert!(plan.describes() && plan.variants == [Assignment::default()]);
        assert_eq!((plan.starts.len(), plan.spare_blocks), (12, 3));
        let conditions = |repeat| -> Vec<usize> {
            plan.starts.iter().filter(|start| start.repeat == repeat).map(|start| start.condition).collect()
        };
        assert!((1..=4).any(|repeat| conditions(repeat) != conditions(1)), "each repeat has an order of its own");
        let every_condition = |repeat| (0..3).all(|condition| conditions(repeat).contains(&condition));
        assert!((1..=4).all(every_condition), "each repeat has every condition once");
    }

    #[test]
    fn one_system_against_itself_stands_in_each_block_twice() {
        let length = PhaseLengths { warmup: Duration::ZERO, measure: Duration::ZERO, drain: Duration::ZERO };
        let plan = plan(&[], &Options { duplicate: true, ..options(2) }, |_| length);
        assert_eq!((plan.duplicate(), plan.starts.len(), plan.describes()), (Some(1), 4, false));
        assert_eq!(plan.label(1), "the system (duplicate)");
    }

    #[test]
    fn a_quarter_of_the_blocks_is_spare_unless_the_study_says_otherwise() {
        let factors = [
            factor("mode", &["a", "b"], Role::Compared { baseline: 0 }),
            factor("n", &["1", "2", "3"], Role::Condition),
        ];
        let length = PhaseLengths { warmup: Duration::ZERO, measure: Duration::ZERO, drain: Duration::ZERO };
        for (repeats, given, spare) in [(1, None, 1), (4, None, 3), (5, None, 4), (5, Some(0), 0), (5, Some(9), 9)] {
            let options = Options { spare_blocks: given, ..options(repeats) };
            assert_eq!(plan(&factors, &options, |_| length).spare_blocks, spare, "{repeats} repeats, {given:?}");
        }
    }
}
