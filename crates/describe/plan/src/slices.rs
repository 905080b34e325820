//! The loads on a start: where variants take turns, the order of their slices.

use crate::blocks::BlockOrders;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Load, Start};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

/// How many orders are drawn for a start, of which one is taken. Of 32 the best tells twice to three times as much about
/// carry-over as a single one does where there are 8 turns; twice as many would add a twentieth.
const CANDIDATES: usize = 32;

/// The loads on a start, in order: one for each of its variants, in each of its turns. In the first turn the variants come
/// as their systems started, which is balanced over the starts; in later ones in random order, balanced over positions.
/// It depends on nothing but the seed and the start. Of several such orders it is the one that tells most about
/// carry-over.
///
/// Side by side, each other variant comes with the baseline: the two loads of a pair follow one another here, and run at
/// the same time.
///
/// # Panics
///
/// If there are more than `u32::MAX` loads, which would take longer than a century.
#[must_use]
pub fn loads(plan: &Plan, start: &Start) -> Vec<Load> {
    let is_paired = plan.design.is_side_by_side();
    let mut loads: Vec<Load> = Vec::new();
    for (turn, variants) in (1..).zip(turns(plan, start)) {
        let mut add = |variant: usize, beside: Option<usize>| {
            let number = u32::try_from(loads.len() + 1).expect("fewer than 2^32 loads");
            loads.push(Load { number, variant, turn, beside, rung: None, lengths: plan.lengths(start, turn) });
        };
        for variant in variants {
            if is_paired {
                add(0, Some(variant));
                add(variant, Some(0));
            } else {
                add(variant, None);
            }
        }
    }
    loads
}

/// The variants of each turn, in their order. Side by side, the baseline is beside each of them.
fn turns(plan: &Plan, start: &Start) -> Vec<Vec<usize>> {
    let mut random = Pcg64::seed_from_u64(plan.seed ^ (u64::from(start.number) << 32));
    let is_paired = plan.design.is_side_by_side();
    let variants: Vec<usize> = start.variants.iter().copied().filter(|variant| !is_paired || *variant != 0).collect();
    let mut draw = || {
        let mut orders = BlockOrders::new(variants.len(), plan.turns());
        // The first turn follows the order in which the systems started.
        let later = (1..plan.turns()).map(|_| orders.next(&mut random));
        let places = std::iter::once((0..variants.len()).collect()).chain(later);
        places.map(|places: Vec<usize>| places.into_iter().map(|place| variants[place]).collect()).collect()
    };
    let first: Vec<Vec<usize>> = draw();
    let Some(duplicate) = plan.duplicate().filter(|_| !is_paired && plan.turns() > 1) else { return first };
    let compared: Vec<usize> = variants.iter().copied().filter(|one| *one != 0 && *one != duplicate).collect();
    let least = |turns: &[Vec<usize>]| {
        let of_all = compared.iter().map(|variant| information(turns, *variant, duplicate));
        of_all.reduce(f64::min).unwrap_or_default()
    };
    let mut best = (least(&first), first);
    for _ in 1..CANDIDATES {
        let turns: Vec<Vec<usize>> = draw();
        let information = least(&turns);
        if information > best.0 {
            best = (information, turns);
        }
    }
    best.1
}

/// How much an order tells about what a slice of `variant` leaves to the next one. In a turn the baseline (0) follows the
/// variant and the duplicate does not, or the other way round, or neither; the more these differ from turn to turn, the
/// less of the noise of slices is in the slope of the one over the other. It is the sum of their squared distances from
/// the mean. Turns in which one follows itself are left out, and the first, which settles for longer.
fn information(turns: &[Vec<usize>], variant: usize, duplicate: usize) -> f64 {
    let mut follows = Vec::new();
    let mut last = turns[0].last();
    for turn in &turns[1..] {
        let before = |one: usize| match turn.iter().position(|other| *other == one) {
            Some(0) => last,
            place => place.map(|place| &turn[place - 1]),
        };
        let (baseline, copy) = (before(0), before(duplicate));
        if baseline != Some(&0) && copy != Some(&duplicate) {
            let is_after = |one: Option<&usize>| f64::from(u8::from(one == Some(&variant)));
            follows.push(is_after(baseline) - is_after(copy));
        }
        last = turn.last();
    }
    let mean = follows.iter().sum::<f64>() / follows.len().max(1) as f64;
    follows.iter().map(|one| (one - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Options, plan};
    use plimsoll_model::factor::{Factor, Level, Role};
    use plimsoll_model::start::{Design, PhaseLengths, Turns};
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[test]
    fn an_order_tells_as_much_as_what_follows_the_variant_differs() {
        // The variant (1) is last in each turn; at the begin of the next come the baseline (0), twice, and the duplicate (2).
        let turns = [vec![0, 2, 1], vec![0, 2, 1], vec![2, 0, 1], vec![2, 0, 1], vec![0, 2, 1]];
        let found = information(&turns, 1, 2);
        assert!((found - 4.0).abs() < 1e-12, "+1, −1, −1 and +1, not {found}");
        assert_eq!(information(&turns[..1], 1, 2), 0.0);
        let after_itself = [vec![1, 2, 0], vec![0, 1, 2], vec![2, 1, 0]];
        assert_eq!(information(&after_itself, 1, 2), 0.0, "no turn is left");
    }

    #[test]
    fn every_start_of_eight_turns_tells_about_carry_over() {
        let (_, starts) = planned(300, 8, 2);
        let all: Vec<f64> = starts.iter().map(|turns| information(turns, 1, 2)).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        // A single order has 2.9 on average, and may have nothing.
        assert!(least > 3.0 && mean > 5.0, "{least}, {mean}");
    }

    #[test]
    fn no_variant_has_the_better_places() {
        let (plan, starts) = planned(600, 8, 2);
        let mut places: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        let mut pairs: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for turns in &starts {
            for turn in turns {
                turn.iter().enumerate().for_each(|(place, variant)| *places.entry((place, *variant)).or_default() += 1);
            }
            let slices: Vec<usize> = turns.concat();
            slices.windows(2).for_each(|pair| *pairs.entry((pair[0], pair[1])).or_default() += 1);
        }
        // 1,600 of each place would be even. The variant has the ends of a turn a little more often, where another one
        // follows it in each turn; places in a turn mean little, as turns follow one another without a pause.
        assert!(places.values().all(|count| (1360..1840).contains(count)), "{places:?}");
        let of = |one, other| pairs[&(one, other)];
        let (after_variant, before_variant) = (of(1, 0) as i64 - of(1, 2) as i64, of(0, 1) as i64 - of(2, 1) as i64);
        assert!(after_variant.abs() < 200 && before_variant.abs() < 200, "{pairs:?}");
        assert_eq!(plan.turns(), 8);
    }

    /// A plan of `variants` and a duplicate with this many starts and turns, and the turns of each start.
    fn planned(starts: u32, turns: u32, variants: usize) -> (Plan, Vec<Vec<Vec<usize>>>) {
        let levels = (0..variants).map(|number| Level::Text(number.to_string())).collect();
        let factor = Factor { name: "version".to_owned(), levels, role: Role::Compared { baseline: 0 } };
        let design = Design::Turns(Turns { count: turns, settle: Duration::ZERO, slice: Duration::ZERO });
        let options =
            Options { repeats: starts, seed: 3, duplicate: true, spare_blocks: None, looks: Vec::new(), design };
        let lengths = PhaseLengths { warmup: Duration::ZERO, measure: Duration::ZERO, drain: Duration::ZERO };
        let plan = plan(&[factor], &options, |_| lengths);
        let turns = plan.starts.iter().map(|start| super::turns(&plan, start)).collect();
        (plan, turns)
    }
}
