//! Blocks that are run again because a trial in them did not count.
//!
//! A pair of trials counts because the two ran side by side. So what does not count is never run
//! again alone: its whole block is, as a block of its own, and the earlier attempt counts for
//! nothing. Which block is next follows from what is known of the trials alone, so that a run that
//! was interrupted goes on as it would have gone on.

use plimsoll_model::trial::{Plan, Trial};
use std::collections::BTreeMap;

/// How often a block is run at most. What does not count three times will not count the fourth.
pub const MOST_ATTEMPTS: u32 = 3;

/// How a trial ended, as far as it decides whether its block is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It counts.
    Counts,
    /// It is void or failed.
    DoesNotCount,
    /// It is void because no steady state was found in it.
    Unsteady,
}

/// A block that is to be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// The block that did not count.
    pub block: u32,
    /// Whether its trials get a longer warm-up, because one of them found no steady state.
    pub extended: bool,
}

/// The block that is to be run again next, if any is.
///
/// `plan` has the blocks that were run again before; `outcomes` has what is known of the trials, by
/// their numbers; only the first `repeats` repeats are looked at. A block is due when all trials of
/// its latest attempt ended and one of them does not count, as long as it has had fewer than
/// [`MOST_ATTEMPTS`] and spare blocks are left. Where a longer warm-up has not helped, nothing will.
/// Blocks with fewer attempts come first, then those that ran earlier.
#[must_use]
pub fn due(plan: &Plan, outcomes: &BTreeMap<u32, Outcome>, repeats: u32) -> Option<Again> {
    if spares_left(plan) == 0 {
        return None;
    }
    wanting(plan, outcomes, repeats)
        .into_iter()
        .min_by_key(|(first, _)| (first.attempt, first.block))
        .map(|(_, again)| again)
}

/// The blocks that would be run again if there were a spare block left, in the order of their numbers;
/// empty as long as there is one.
///
/// Takes what [`due`] takes.
#[must_use]
pub fn left_out(plan: &Plan, outcomes: &BTreeMap<u32, Outcome>, repeats: u32) -> Vec<u32> {
    if spares_left(plan) > 0 {
        return Vec::new();
    }
    let mut blocks: Vec<u32> = wanting(plan, outcomes, repeats).into_iter().map(|(_, again)| again.block).collect();
    blocks.sort_unstable();
    blocks
}

/// How many blocks may still be run again.
fn spares_left(plan: &Plan) -> usize {
    let run_again = blocks(plan).values().filter(|trials| trials[0].attempt > 1).count();
    (plan.spare_blocks as usize).saturating_sub(run_again)
}

/// The first trials of the latest attempts that do not count and are worth another one.
fn wanting<'p>(plan: &'p Plan, outcomes: &BTreeMap<u32, Outcome>, repeats: u32) -> Vec<(&'p Trial, Again)> {
    let blocks = blocks(plan);
    let mut latest: BTreeMap<(usize, u32), &[&'p Trial]> = BTreeMap::new();
    for trials in blocks.values().filter(|trials| trials[0].repeat <= repeats) {
        let attempts = latest.entry((trials[0].condition, trials[0].repeat)).or_insert(trials);
        if trials[0].attempt > attempts[0].attempt {
            *attempts = trials;
        }
    }
    latest.into_values().filter_map(|trials| Some((trials[0], again_after(trials, outcomes)?))).collect()
}

/// The trials of each block, in their order.
fn blocks(plan: &Plan) -> BTreeMap<u32, Vec<&Trial>> {
    let mut blocks: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
    for trial in &plan.trials {
        blocks.entry(trial.block).or_default().push(trial);
    }
    blocks
}

/// What the trials of an attempt call for.
fn again_after(trials: &[&Trial], outcomes: &BTreeMap<u32, Outcome>) -> Option<Again> {
    let ended: Option<Vec<Outcome>> = trials.iter().map(|trial| outcomes.get(&trial.number).copied()).collect();
    let ended = ended?;
    let first = trials[0];
    let unsteady = ended.contains(&Outcome::Unsteady);
    let counts = ended.iter().all(|outcome| *outcome == Outcome::Counts);
    let in_vain = first.attempt >= MOST_ATTEMPTS || (unsteady && first.extended);
    (!counts && !in_vain).then_some(Again { block: first.block, extended: first.extended || unsteady })
}

/// The trials of one more attempt at a block: in the same order, with new numbers at the end of
/// the plan.
#[must_use]
pub fn again(plan: &Plan, again: Again) -> Vec<Trial> {
    let last = |of: fn(&Trial) -> u32| plan.trials.iter().map(of).max().unwrap_or(0);
    let (number, block) = (last(|trial| trial.number), last(|trial| trial.block));
    let trials = plan.trials.iter().filter(|trial| trial.block == again.block);
    let anew = |(trial, place): (&Trial, u32)| Trial {
        number: number + place,
        block: block + 1,
        attempt: trial.attempt + 1,
        extended: again.extended,
        ..*trial
    };
    trials.zip(1..).map(anew).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, plan};
    use Outcome::{Counts, DoesNotCount, Unsteady};
    use plimsoll_model::factor::{Factor, Level, Role};
    use plimsoll_model::trial::TrialLength;
    use std::time::Duration;

    /// Two variants and the duplicate, one condition: 3 trials in each block.
    fn given(repeats: u32, spare_blocks: u32) -> Plan {
        let levels = vec![Level::Integer(1), Level::Integer(2)];
        let factors = [Factor { name: "mode".to_owned(), levels, role: Role::Compared { baseline: 0 } }];
        let options =
            Options { repeats, seed: 3, duplicate: true, spare_blocks: Some(spare_blocks), looks: Vec::new() };
        let second = Duration::from_secs(1);
        plan(&factors, &options, |_| TrialLength { warmup: second, measure: second, drain: second })
    }

    /// Outcomes by trial number; those that are not named count.
    fn outcomes(plan: &Plan, others: &[(u32, Outcome)]) -> BTreeMap<u32, Outcome> {
        let counts = plan.trials.iter().map(|trial| (trial.number, Counts));
        counts.chain(others.iter().copied()).collect()
    }

    /// Grows the plan by what is due.
    fn grow(plan: &mut Plan, outcomes: &BTreeMap<u32, Outcome>) -> Option<Again> {
        let next = due(plan, outcomes, plan.repeats)?;
        plan.trials.extend(again(plan, next));
        Some(next)
    }

    #[test]
    fn a_block_whose_trials_count_is_not_run_again() {
        let plan = given(2, 5);
        assert_eq!(due(&plan, &outcomes(&plan, &[]), 2), None);
    }

    #[test]
    fn a_block_runs_again_whole_in_its_order() {
        let mut plan = given(2, 5);
        let known = outcomes(&plan, &[(2, DoesNotCount)]);
        assert_eq!(grow(&mut plan, &known), Some(Again { block: 1, extended: false }));
        let (first, second) = (&plan.trials[..3], &plan.trials[6..]);
        assert_eq!(second.iter().map(|trial| trial.number).collect::<Vec<_>>(), [7, 8, 9]);
        for (before, after) in first.iter().zip(second) {
            assert_eq!((after.block, after.attempt, after.repeat), (3, 2, 1));
            assert_eq!((after.variant, after.position), (before.variant, before.position));
            assert!(plan.is_superseded(before) && !plan.is_superseded(after));
        }
    }

    #[test]
    fn a_block_that_is_under_way_is_not_due() {
        let plan = given(2, 5);
        let known = [(1, DoesNotCount), (2, Counts)].into();
        assert_eq!(due(&plan, &known, 2), None);
    }

    #[test]
    fn three_attempts_are_enough() {
        let mut plan = given(1, 9);
        let mut known = outcomes(&plan, &[(1, DoesNotCount)]);
        for attempt in 2..=MOST_ATTEMPTS {
            assert!(grow(&mut plan, &known).is_some(), "attempt {attempt}");
            known.extend(plan.trials.iter().map(|trial| (trial.number, DoesNotCount)));
        }
        assert_eq!(grow(&mut plan, &known), None);
        assert_eq!(plan.trials.len(), 9);
    }

    #[test]
    fn no_more_blocks_run_again_than_are_spare() {
        let mut plan = given(4, 2);
        let known = plan.trials.iter().map(|trial| (trial.number, DoesNotCount)).collect();
        assert_eq!(grow(&mut plan, &known).map(|again| again.block), Some(1));
        assert_eq!(grow(&mut plan, &known).map(|again| again.block), Some(2));
        assert_eq!(grow(&mut plan, &known), None);
        assert_eq!(due(&given(4, 0), &known, 4), None, "0 is for never");
    }

    #[test]
    fn blocks_for_which_no_spare_is_left_are_known() {
        let mut plan = given(4, 1);
        let mut known = outcomes(&plan, &[(1, DoesNotCount), (4, DoesNotCount), (10, DoesNotCount)]);
        assert_eq!(left_out(&plan, &known, 4), [0; 0], "there is one");
        assert_eq!(grow(&mut plan, &known).map(|again| again.block), Some(1));
        known.extend([(13, Counts), (14, Counts), (15, Counts)]);
        assert_eq!(left_out(&plan, &known, 4), [2, 4]);
        assert_eq!(left_out(&plan, &known, 2), [2], "before a look");
        known.insert(14, Unsteady);
        assert_eq!(left_out(&plan, &known, 4), [2, 4, 5], "its second attempt would have had a third");
    }

    #[test]
    fn the_warm_up_is_extended_once() {
        let mut plan = given(1, 9);
        let mut known = outcomes(&plan, &[(1, DoesNotCount), (2, Unsteady)]);
        assert_eq!(grow(&mut plan, &known), Some(Again { block: 1, extended: true }));
        assert!(plan.trials[3..].iter().all(|trial| trial.extended));
        let length = |trial: usize| plan.length(&plan.trials[trial]).warmup;
        assert_eq!((length(0), length(3)), (Duration::from_secs(1), Duration::from_secs(2)));
        known.extend([(4, Counts), (5, Counts), (6, DoesNotCount)]);
        assert_eq!(due(&plan, &known, 1), Some(Again { block: 2, extended: true }), "it is still needed");
        known.insert(6, Unsteady);
        assert_eq!(due(&plan, &known, 1), None, "it did not help");
    }

    #[test]
    fn before_a_look_only_its_repeats_are_looked_at() {
        let plan = given(4, 9);
        let known = outcomes(&plan, &[(8, DoesNotCount)]);
        assert_eq!(due(&plan, &known, 2), None);
        assert_eq!(due(&plan, &known, 3), Some(Again { block: 3, extended: false }));
    }

    #[test]
    fn a_block_comes_before_the_next_attempt_at_another() {
        let mut plan = given(3, 9);
        let mut known = outcomes(&plan, &[(1, DoesNotCount), (9, DoesNotCount)]);
        assert_eq!(grow(&mut plan, &known).map(|again| again.block), Some(1));
        known.extend([(10, Counts), (11, DoesNotCount), (12, Counts)]);
        assert_eq!(grow(&mut plan, &known).map(|again| again.block), Some(3));
        known.extend([(13, Counts), (14, Counts), (15, Counts)]);
        assert_eq!(grow(&mut plan, &known).map(|again| again.block), Some(4));
    }
}
