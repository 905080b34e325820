//! The plan of a study, and how long it takes.

use crate::factor::Assignment;
use crate::look::Look;
use crate::search::CapacitySearch;
use crate::start::{Design, PhaseLengths, Start};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The plan of a study: its variants, its conditions, and the starts in the order in which they run if every load
/// counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Seed of the order.
    pub seed: u64,
    /// Blocks per condition.
    pub repeats: u32,
    /// The combinations of the compared factors; index 0 is the baseline.
    pub variants: Vec<Assignment>,
    /// The combinations of the other factors, in the study's order; a study without any has one
    /// empty condition.
    pub conditions: Vec<Assignment>,
    /// The starts. A run may decide on further ones; in the plan that was carried out they follow at the end.
    pub starts: Vec<Start>,
    /// What warm-up, measure and (at most) drain take for each condition, by its index. In turns, each start has the
    /// warm-up once for each variant, and slices in place of the measure phase.
    pub lengths: Vec<PhaseLengths>,
    /// How the variants of a block share time.
    #[serde(default, skip_serializing_if = "Design::is_trials")]
    pub design: Design,
    /// True if every block holds the baseline a second time: the *duplicate*, whose ratio to the
    /// baseline is the noise floor of the study.
    pub with_duplicate: bool,
    /// The number of blocks that may run again, in all, because a load in them did not count.
    pub spare_blocks: u32,
    /// The repeats after which the run may end when every verdict is reached, ascending, the last
    /// one being `repeats`; empty when all repeats run whatever they show.
    pub looks: Vec<u32>,
    /// The time under load that the run was given, from which `repeats` follows; none where the study says how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_time: Option<Duration>,
    /// The searches for the capacity, by condition; empty where the study names its loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<CapacitySearch>,
}

impl Plan {
    /// The index that stands for the duplicate of the baseline in [`Start::variants`], if the plan has one. It is not
    /// an index into the plan's variants, so that loops over those leave the duplicate out.
    #[must_use]
    pub fn duplicate(&self) -> Option<usize> {
        self.with_duplicate.then_some(self.variants.len())
    }

    /// True if the study describes one system: nothing is held against anything, not even the baseline against itself.
    #[must_use]
    pub fn describes(&self) -> bool {
        self.block_size() < 2
    }

    /// The number of variants in a block, the duplicate included.
    #[must_use]
    pub fn block_size(&self) -> usize {
        self.variants.len() + usize::from(self.with_duplicate)
    }

    /// The number of starts in a block: one for each variant, or one for all.
    #[must_use]
    pub fn starts_in_block(&self) -> usize {
        if self.design.is_trials() { self.block_size() } else { 1 }
    }

    /// The repeats of a condition. A look may have spared its later ones.
    #[must_use]
    pub fn repeats_of(&self, condition: usize) -> u32 {
        let of_condition = self.starts.iter().filter(|start| start.condition == condition);
        of_condition.map(|start| start.repeat).max().unwrap_or(self.repeats)
    }

    /// The fewest repeats of a condition.
    #[must_use]
    pub fn fewest_repeats(&self) -> u32 {
        (0..self.conditions.len()).map(|condition| self.repeats_of(condition)).min().unwrap_or(self.repeats)
    }

    /// The levels of the compared factors of a variant, or of the duplicate.
    #[must_use]
    pub fn variant(&self, index: usize) -> &Assignment {
        self.variants.get(index).unwrap_or(&self.variants[0])
    }

    /// The name of a variant, or of the duplicate: `mutex`, `mutex (duplicate)`.
    #[must_use]
    pub fn label(&self, variant: usize) -> String {
        let name = self.variant(variant).label();
        if variant < self.variants.len() { name } else { format!("{name} (duplicate)") }
    }

    /// The names of all variants that are alive on `start`: `mutex, inputQ`.
    #[must_use]
    pub fn start_label(&self, start: &Start) -> String {
        start.variants.iter().map(|variant| self.label(*variant)).collect::<Vec<String>>().join(", ")
    }

    /// The levels of all factors for `variant` under `condition`.
    #[must_use]
    pub fn assignment(&self, variant: usize, condition: usize) -> Assignment {
        self.variant(variant).and(&self.conditions[condition])
    }

    /// How long the phases of a load on `start` take in this turn.
    #[must_use]
    pub fn lengths(&self, start: &Start, turn: u32) -> PhaseLengths {
        let lengths = self.lengths[start.condition];
        let lengths = if start.extended { lengths.extended() } else { lengths };
        self.design.turns().filter(|_| !self.searches()).map_or(lengths, |turns| turns.lengths(turn, lengths))
    }

    /// The number of turns on a start; 1 for trials.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.design.turns().map_or(1, |turns| turns.count)
    }

    /// The time under load of `starts`, without build, start and stop.
    #[must_use]
    pub fn time_under_load<'s>(&self, starts: impl IntoIterator<Item = &'s Start>) -> Duration {
        if self.searches() {
            return starts.into_iter().map(|start| self.time_of_search(start)).sum();
        }
        let of_turns =
            |start: &Start| -> Duration { (1..=self.turns()).map(|turn| self.lengths(start, turn).under_load()).sum() };
        starts.into_iter().map(|start| of_turns(start) * self.slices_after_each_other(start)).sum()
    }

    /// The time under load of so many repeats under all conditions: each has the starts of the first one.
    #[must_use]
    pub fn time_of_repeats(&self, repeats: u32) -> Duration {
        let first = self.starts.iter().filter(|start| start.repeat == 1 && start.attempt == 1);
        let starts: Vec<Start> =
            first.flat_map(|start| (1..=repeats).map(move |repeat| Start { repeat, ..start.clone() })).collect();
        Plan { repeats, ..self.clone() }.time_under_load(&starts)
    }

    /// True if each load has a level of its own: the capacity is searched for, or loads go up by equal steps.
    #[must_use]
    pub fn searches(&self) -> bool {
        !self.searches.is_empty()
    }

    /// True if loads go up by equal steps.
    #[must_use]
    pub fn is_stress(&self) -> bool {
        self.searches.iter().any(|search| search.range.step.is_some())
    }

    /// The most time under load that searches on all starts take, where loads contradict one another, and where requests are so
    /// slow that those near the capacity are as long as they may be.
    #[must_use]
    pub fn most_time_of_searches(&self) -> Duration {
        let near = |start: &Start| -> Duration {
            let CapacitySearch { range, loads: [_, ladder], more } = self.searches[start.condition];
            let PhaseLengths { warmup, measure, .. } = self.lengths(start, 1);
            let longest = range.longest.max(measure);
            let longer = (longest - measure) * if range.step.is_some() { 0 } else { ladder };
            let added = (range.warmup(warmup, range.most) + longest) * more;
            (longer + added) * start.variants.len() as u32
        };
        self.starts.iter().map(|start| self.time_of_search(start) + near(start)).sum()
    }

    /// The time under load of the searches on `start`, where no load is repeated, longer than the others, or added.
    fn time_of_search(&self, start: &Start) -> Duration {
        let search = &self.searches[start.condition];
        let loads = search.loads[usize::from(start.repeat > 1)];
        let lengths = self.lengths(start, 1);
        let warmup = |place: u32| {
            // Which loads a search tries is not known before.
            let level =
                search.range.step.map_or(search.range.most, |step| search.range.first + step * f64::from(place));
            search.range.warmup(lengths.warmup, level)
        };
        let of_loads = lengths.measure * loads + (0..loads).map(warmup).sum::<Duration>();
        let confirms = start.repeat == self.repeats && search.range.step.is_none();
        let of_variant = if confirms { of_loads + search.range.confirm } else { of_loads };
        of_variant * start.variants.len() as u32
    }

    /// The slices of a turn on `start` that come one after the other: of each variant, or of each pair.
    fn slices_after_each_other(&self, start: &Start) -> u32 {
        let variants = start.variants.len() as u32;
        if self.design.is_side_by_side() { variants.saturating_sub(1) } else { variants }
    }

    /// The plan of a run in which these looks were taken, without the starts that they spared.
    #[must_use]
    pub fn without_spared(mut self, looks: &[Look]) -> Plan {
        self.starts.retain(|start| !looks.iter().any(|look| look.spares(start)));
        self
    }

    /// The plan of a run that ended after so many repeats, without the later ones.
    #[must_use]
    pub fn up_to(mut self, repeats: u32) -> Plan {
        self.starts.retain(|start| start.repeat <= repeats);
        self.repeats = self.repeats.min(repeats);
        self
    }

    /// True if the block of `start` ran again: none of its values count then.
    #[must_use]
    pub fn is_superseded(&self, start: &Start) -> bool {
        let place = |start: &Start| (start.condition, start.repeat);
        self.starts.iter().any(|other| place(other) == place(start) && other.attempt > start.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Level;
    use crate::search::SearchRange;
    use crate::start::Turns;

    fn start(number: u32, repeat: u32, attempt: u32, variant: usize) -> Start {
        let (block, position, condition) = (repeat, 1, 0);
        let (extended, variants) = (attempt > 1, vec![variant]);
        Start { number, block, repeat, attempt, extended, position, condition, variants }
    }

    /// One start of the baseline in each of two repeats, and the first one again.
    fn plan() -> Plan {
        let second = Duration::from_secs(1);
        Plan {
            seed: 1,
            repeats: 2,
            variants: ["a", "b"].map(|mode| Assignment(vec![("mode".into(), Level::Text(mode.into()))])).into(),
            conditions: vec![Assignment::default()],
            starts: vec![start(1, 1, 1, 0), start(2, 2, 1, 2), start(3, 1, 2, 0)],
            lengths: vec![PhaseLengths { warmup: second, measure: 4 * second, drain: second }],
            design: Design::Trials,
            with_duplicate: true,
            spare_blocks: 1,
            looks: vec![1, 2],
            given_time: None,
            searches: Vec::new(),
        }
    }

    #[test]
    fn the_duplicate_is_the_baseline_by_another_name() {
        let plan = plan();
        assert_eq!((plan.duplicate(), plan.block_size()), (Some(2), 3));
        assert_eq!(plan.start_label(&plan.starts[1]), "a (duplicate)");
        assert_eq!(plan.assignment(2, 0).label(), "a");
        assert_eq!(Plan { with_duplicate: false, ..plan.clone() }.duplicate(), None);
        let one = Plan { variants: vec![Assignment::default()], ..plan };
        assert!(!one.describes() && Plan { with_duplicate: false, ..one }.describes());
    }

    #[test]
    fn an_attempt_supersedes_the_one_before_it() {
        let plan = plan();
        let superseded: Vec<bool> = plan.starts.iter().map(|start| plan.is_superseded(start)).collect();
        assert_eq!(superseded, [true, false, false]);
    }

    #[test]
    fn an_extended_start_warms_up_for_longer() {
        let plan = plan();
        let warmups = [0, 2].map(|index| plan.lengths(&plan.starts[index], 1).warmup.as_secs());
        assert_eq!((warmups, plan.time_under_load(&plan.starts).as_secs()), ([1, 5], 5 + 5 + 9));
    }

    #[test]
    fn a_look_spares_later_repeats_of_what_is_decided() {
        let with_two = |plan: Plan| {
            let other = |start: &Start| Start { number: start.number + 3, condition: 1, ..start.clone() };
            let starts = plan.starts.iter().cloned().chain(plan.starts.iter().map(other)).collect();
            Plan { conditions: vec![Assignment::default(); 2], starts, ..plan }
        };
        let look = |decided, conditions| Look { repeats: 1, decided, conditions };
        let left = |looks: &[Look]| {
            let plan = with_two(plan()).without_spared(looks);
            let numbers: Vec<u32> = plan.starts.iter().map(|start| start.number).collect();
            (numbers, [0, 1].map(|condition| plan.repeats_of(condition)), plan.fewest_repeats())
        };
        assert_eq!(left(&[look(false, vec![])]), (vec![1, 2, 3, 4, 5, 6], [2, 2], 2));
        assert_eq!(left(&[look(false, vec![1])]), (vec![1, 2, 3, 4, 6], [2, 1], 1));
        assert_eq!(left(&[look(true, vec![])]), (vec![1, 3, 4, 6], [1, 1], 1));
    }

    #[test]
    fn in_turns_only_the_first_slice_of_a_variant_has_the_whole_warm_up() {
        let (tenth, second) = (Duration::from_millis(100), Duration::from_secs(1));
        let turns = Turns { count: 10, settle: tenth, slice: 3 * tenth };
        let plan = Plan { design: Design::Turns(turns), ..plan() };
        let both = Start { variants: vec![1, 0], ..plan.starts[0].clone() };
        assert_eq!(plan.lengths(&both, 1), PhaseLengths { warmup: second, measure: 3 * tenth, drain: second });
        assert_eq!(plan.lengths(&both, 2), PhaseLengths { warmup: tenth, measure: 3 * tenth, drain: second });
        assert_eq!(plan.time_under_load([&both]), 2 * (second + 10 * 3 * tenth + 9 * tenth));
        assert_eq!((both.only_variant(), plan.starts[0].only_variant()), (None, Some(0)));
    }

    #[test]
    fn a_search_takes_its_loads_on_each_start_and_confirms_on_the_last() {
        let second = Duration::from_secs(1);
        let range = SearchRange {
            first: 1.0,
            most: 64.0,
            of_users: true,
            confirm: 60 * second,
            step: None,
            new_users: None,
            recover: Duration::ZERO,
            longest: Duration::ZERO,
        };
        let search = CapacitySearch { range, loads: [15, 8], more: 8 };
        let plan = Plan { searches: vec![search], ..plan() };
        let [first, second] = [0, 1].map(|index| plan.time_under_load([&plan.starts[index]]).as_secs());
        assert_eq!((first, second), (15 * 5, 8 * 5 + 60));
    }

    #[test]
    fn a_run_that_ended_early_has_no_later_repeats() {
        let plan = plan().up_to(1);
        let numbers: Vec<u32> = plan.starts.iter().map(|start| start.number).collect();
        assert_eq!((numbers, plan.repeats, plan.looks), (vec![1, 3], 1, vec![1, 2]));
    }
}
