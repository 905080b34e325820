//! Blocks: those of the plan, and those that run again because a load in them did not count.
//!
//! A pair of loads is valid because the two ran close together in time. So a load that does not
//! count never runs again alone: its whole block does, as a new block, and the earlier attempt is
//! discarded.

use crate::outcomes::{Outcome, Outcomes};
use plimsoll_model::plan::Plan;
use plimsoll_model::start::Start;
use std::collections::BTreeMap;

/// The largest number of attempts at a block. A block that does not count three times will not
/// count the fourth time.
pub const MOST_ATTEMPTS: u32 = 3;

/// A block that is to run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The block that did not count.
    pub block: u32,
    /// True if its loads get a longer warm-up, because one of them found no steady state.
    pub extended: bool,
}

/// The next start within the first `repeats` repeats: a planned one; else the next one of a block
/// that has begun to run again; else the first one of a block that is to run again. None when all
/// blocks count that can. Starts that a look has spared are left out.
pub(crate) fn next(plan: &Plan, outcomes: &Outcomes, repeats: u32) -> Option<Start> {
    let mut planned = plan.starts.iter().filter(|start| start.repeat <= repeats && !outcomes.is_spared(start));
    planned.find(|start| outcomes.of(start).is_none()).cloned().or_else(|| {
        let attempts = Attempts::new(plan, outcomes);
        attempts.unfinished(repeats).or_else(|| attempts.first_of(attempts.next_retry(repeats)?))
    })
}

/// The blocks of the first `repeats` repeats that would run again if a spare block were left, in
/// the order of their numbers; empty while one is left.
#[must_use]
pub fn left_out(plan: &Plan, outcomes: &Outcomes, repeats: u32) -> Vec<u32> {
    let attempts = Attempts::new(plan, outcomes);
    if attempts.spare_blocks_left() > 0 {
        return Vec::new();
    }
    let mut blocks: Vec<u32> = attempts.worth_retrying(repeats).into_iter().map(|(_, retry)| retry.block).collect();
    blocks.sort_unstable();
    blocks
}

/// All attempts at all blocks that have begun.
struct Attempts<'o> {
    plan: &'o Plan,
    outcomes: &'o Outcomes,
    /// The starts of each block, by its number, in their order.
    blocks: BTreeMap<u32, Vec<&'o Start>>,
}

impl<'o> Attempts<'o> {
    fn new(plan: &'o Plan, outcomes: &'o Outcomes) -> Attempts<'o> {
        let mut blocks: BTreeMap<u32, Vec<&Start>> = BTreeMap::new();
        for start in outcomes.all_starts(plan) {
            blocks.entry(start.block).or_default().push(start);
        }
        Attempts { plan, outcomes, blocks }
    }

    /// The first start of a block that has begun to run again which has not ended.
    fn unfinished(&self, repeats: u32) -> Option<Start> {
        let again = self.blocks.values().filter(|starts| starts[0].attempt > 1 && starts[0].repeat <= repeats);
        again.flat_map(|starts| self.block_starts(starts[0])).find(|start| self.outcomes.of(start).is_none())
    }

    /// The next block to run again, if there is one: all starts of its latest attempt ended and one
    /// of them does not count, it has had fewer than [`MOST_ATTEMPTS`], and spare blocks are left.
    /// A block is given up where a longer warm-up did not help. Blocks with fewer attempts come
    /// first, then those that ran earlier.
    fn next_retry(&self, repeats: u32) -> Option<Retry> {
        if self.spare_blocks_left() == 0 {
            return None;
        }
        let worth_retrying = self.worth_retrying(repeats).into_iter();
        worth_retrying.min_by_key(|(first, _)| (first.attempt, first.block)).map(|(_, retry)| retry)
    }

    /// The number of blocks that may still run again.
    fn spare_blocks_left(&self) -> usize {
        let again = self.blocks.values().filter(|starts| starts[0].attempt > 1).count();
        (self.plan.spare_blocks as usize).saturating_sub(again)
    }

    /// The first starts of the latest attempts that do not count and may run again.
    fn worth_retrying(&self, repeats: u32) -> Vec<(&'o Start, Retry)> {
        let mut latest: BTreeMap<(usize, u32), &Vec<&'o Start>> = BTreeMap::new();
        for starts in self.blocks.values().filter(|starts| starts[0].repeat <= repeats) {
            let attempt = latest.entry((starts[0].condition, starts[0].repeat)).or_insert(starts);
            if starts[0].attempt > attempt[0].attempt {
                *attempt = starts;
            }
        }
        latest.into_values().filter_map(|starts| Some((starts[0], self.retry_after(starts[0])?))).collect()
    }

    /// The retry that the attempt of `first` calls for.
    fn retry_after(&self, first: &Start) -> Option<Retry> {
        let ended: Option<Vec<Outcome>> =
            self.block_starts(first).iter().map(|start| self.outcomes.of(start)).collect();
        let ended = ended?;
        let unsteady = ended.contains(&Outcome::Unsteady);
        let counts = ended.iter().all(|outcome| *outcome == Outcome::Counts);
        let in_vain = first.attempt >= MOST_ATTEMPTS || (unsteady && first.extended);
        (!counts && !in_vain).then_some(Retry { block: first.block, extended: first.extended || unsteady })
    }

    /// The starts of the whole block of `known`, including those that have not begun.
    fn block_starts(&self, known: &Start) -> Vec<Start> {
        let place = |start: &Start| (start.condition, start.repeat);
        let planned = self.plan.starts.iter().filter(|start| place(start) == place(known));
        let first = known.number + 1 - known.position;
        let anew = |start: &Start| Start {
            number: first + start.position - 1,
            block: known.block,
            attempt: known.attempt,
            extended: known.extended,
            ..start.clone()
        };
        planned.map(anew).collect()
    }

    /// The first start of another attempt at a block, numbered after all others.
    fn first_of(&self, retry: Retry) -> Option<Start> {
        let all = || self.blocks.values().flatten();
        let attempts = self.blocks.values().filter(|starts| starts[0].attempt > 1);
        let last = self.plan.starts.len() + attempts.map(|starts| self.block_starts(starts[0]).len()).sum::<usize>();
        let block = all().map(|start| start.block).max()? + 1;
        let before = self.block_starts(self.blocks.get(&retry.block)?[0]).into_iter().next()?;
        Some(before.again(u32::try_from(last).ok()? + 1, block, retry.extended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, plan};
    use Outcome::{Counts, DoesNotCount, Unsteady};
    use plimsoll_model::factor::{Factor, Level, Role};
    use plimsoll_model::start::{Design, PhaseLengths};
    use std::time::Duration;

    /// Two variants and the duplicate, one condition: 3 starts in each block.
    fn given(repeats: u32, spare_blocks: u32) -> Plan {
        let levels = vec![Level::Integer(1), Level::Integer(2)];
        let factors = [Factor { name: "mode".to_owned(), levels, role: Role::Compared { baseline: 0 } }];
        let options = Options {
            repeats,
            seed: 3,
            duplicate: true,
            spare_blocks: Some(spare_blocks),
            looks: Vec::new(),
            design: Design::Trials,
        };
        let second = Duration::from_secs(1);
        plan(&factors, &options, |_| PhaseLengths { warmup: second, measure: second, drain: second })
    }

    /// The outcomes of the plan's starts by number; those that are not named count.
    fn outcomes(plan: &Plan, others: &[(u32, Outcome)]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for start in &plan.starts {
            let named = others.iter().find(|(number, _)| *number == start.number);
            outcomes.stopped(start.clone(), named.map_or(Counts, |(_, outcome)| *outcome));
        }
        outcomes
    }

    /// Runs one block again, where one is due: its starts end with `ends`, the last of which goes on
    /// for all others. Returns its starts.
    fn again(plan: &Plan, outcomes: &mut Outcomes, repeats: u32, ends: &[Outcome]) -> Vec<Start> {
        let mut starts: Vec<Start> = Vec::new();
        while let Some(start) = next(plan, outcomes, repeats)
            && starts.first().is_none_or(|first| first.block == start.block)
        {
            outcomes.stopped(start.clone(), ends[starts.len().min(ends.len() - 1)]);
            starts.push(start);
        }
        starts
    }

    #[test]
    fn a_block_whose_starts_count_does_not_run_again() {
        let plan = given(2, 5);
        assert_eq!(next(&plan, &outcomes(&plan, &[]), 2), None);
    }

    #[test]
    fn a_block_runs_again_whole_in_its_order() {
        let plan = given(2, 5);
        let again = again(&plan, &mut outcomes(&plan, &[(2, DoesNotCount)]), 2, &[Counts]);
        assert_eq!(again.iter().map(|start| start.number).collect::<Vec<_>>(), [7, 8, 9]);
        for (before, after) in plan.starts.iter().zip(&again) {
            assert_eq!((after.block, after.attempt, after.repeat, after.extended), (3, 2, 1, false));
            assert_eq!((&after.variants, after.position), (&before.variants, before.position));
        }
    }

    #[test]
    fn a_block_that_is_under_way_is_finished_first() {
        let plan = given(2, 5);
        let mut known = Outcomes::default();
        known.stopped(plan.starts[0].clone(), DoesNotCount);
        assert_eq!(next(&plan, &known, 2).as_ref(), Some(&plan.starts[1]));
        let mut known = outcomes(&plan, &[(1, DoesNotCount), (4, DoesNotCount)]);
        let first = next(&plan, &known, 2).expect("a start");
        known.stopped(first.clone(), DoesNotCount);
        let second = next(&plan, &known, 2).expect("a start");
        assert_eq!((second.block, second.number, second.position), (first.block, first.number + 1, 2));
    }

    #[test]
    fn three_attempts_are_enough() {
        let plan = given(1, 9);
        let mut known = outcomes(&plan, &[(1, DoesNotCount)]);
        for attempt in 2..=MOST_ATTEMPTS {
            assert_eq!(again(&plan, &mut known, 1, &[DoesNotCount]).len(), 3, "attempt {attempt}");
        }
        assert_eq!(next(&plan, &known, 1), None);
    }

    #[test]
    fn no_more_blocks_run_again_than_are_spare() {
        let all_bad = |plan: &Plan| {
            outcomes(plan, &plan.starts.iter().map(|start| (start.number, DoesNotCount)).collect::<Vec<_>>())
        };
        let plan = given(4, 2);
        let mut known = all_bad(&plan);
        let repeats = [1, 2].map(|_| again(&plan, &mut known, 4, &[DoesNotCount])[0].repeat);
        assert_eq!(repeats, [1, 2]);
        assert_eq!(next(&plan, &known, 4), None);
        let without = given(4, 0);
        assert_eq!(next(&without, &all_bad(&without), 4), None, "0 is for never");
    }

    #[test]
    fn blocks_for_which_no_spare_is_left_are_known() {
        let plan = given(4, 1);
        let bad = [(1, DoesNotCount), (4, DoesNotCount), (10, DoesNotCount)];
        let mut known = outcomes(&plan, &bad);
        assert_eq!(left_out(&plan, &known, 4), [0; 0], "there is one");
        assert_eq!(again(&plan, &mut known, 4, &[Counts])[0].repeat, 1);
        assert_eq!(left_out(&plan, &known, 4), [2, 4]);
        assert_eq!(left_out(&plan, &known, 2), [2], "before a look");
        let mut known = outcomes(&plan, &bad);
        again(&plan, &mut known, 4, &[Counts, Unsteady, Counts]);
        assert_eq!(left_out(&plan, &known, 4), [2, 4, 5], "its second attempt would have had a third");
    }

    #[test]
    fn the_warm_up_is_extended_once() {
        let plan = given(1, 9);
        let mut known = outcomes(&plan, &[(1, DoesNotCount), (2, Unsteady)]);
        let starts = again(&plan, &mut known, 1, &[Counts, Counts, DoesNotCount]);
        assert!(starts.iter().all(|start| start.extended));
        assert_eq!(plan.lengths(&starts[0], 1).warmup, Duration::from_secs(2));
        let third = next(&plan, &known, 1).expect("another attempt");
        assert_eq!((third.attempt, third.extended), (3, true), "it is still needed");
        let mut known = outcomes(&plan, &[(2, Unsteady)]);
        again(&plan, &mut known, 1, &[Counts, Unsteady]);
        assert_eq!(next(&plan, &known, 1), None, "it did not help");
    }

    #[test]
    fn before_a_look_only_its_repeats_run_again() {
        let plan = given(4, 9);
        let known = outcomes(&plan, &[(8, DoesNotCount)]);
        assert_eq!(next(&plan, &known, 2), None);
        assert_eq!(next(&plan, &known, 3).map(|start| start.repeat), Some(3));
    }

    #[test]
    fn a_block_comes_before_the_next_attempt_at_another() {
        let plan = given(3, 9);
        let mut known = outcomes(&plan, &[(1, DoesNotCount), (9, DoesNotCount)]);
        let place = |starts: Vec<Start>| (starts[0].repeat, starts[0].attempt);
        assert_eq!(place(again(&plan, &mut known, 3, &[Counts, DoesNotCount, Counts])), (1, 2));
        assert_eq!(place(again(&plan, &mut known, 3, &[Counts])), (3, 2));
        assert_eq!(place(again(&plan, &mut known, 3, &[Counts])), (1, 3));
    }
}
