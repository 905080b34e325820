//! Starts of systems, the loads on them, and the plan that orders them.

use crate::factor::Assignment;
use crate::look::Look;
use crate::search::CapacitySearch;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// One life of the systems: they are started and made ready, take one load after another, and are
/// stopped. The unit of replication. A start of one variant with one load is a *trial*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Place in the plan, from 1. Starts run in this order, with one exception: in a run that may end early, blocks
    /// that run again come before the next look at the verdicts.
    pub number: u32,
    /// The block it belongs to, from 1: every variant under one condition, side by side in time.
    pub block: u32,
    /// The repeat of its condition, from 1.
    pub repeat: u32,
    /// The attempt at that repeat, from 1: a block in which a load does not count runs again as a
    /// whole, as a block of its own.
    pub attempt: u32,
    /// True if its warm-up is longer by its measure phase, because the attempt before found no
    /// steady state.
    pub extended: bool,
    /// Place inside its block, from 1.
    pub position: u32,
    /// Index into the plan's conditions.
    pub condition: usize,
    /// The variants whose systems are alive on it, in the order in which they start: indices into
    /// the plan's variants; one past them for the duplicate of the baseline.
    pub variants: Vec<usize>,
}

impl Start {
    /// The only variant of the start; none if it has several. A trial has one.
    #[must_use]
    pub fn only_variant(&self) -> Option<usize> {
        match self.variants[..] {
            [variant] => Some(variant),
            _ => None,
        }
    }

    /// A new attempt at this start, as a part of the block `block`.
    #[must_use]
    pub fn again(&self, number: u32, block: u32, extended: bool) -> Start {
        Start { number, block, attempt: self.attempt + 1, extended, ..self.clone() }
    }
}

/// One period under load on a start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Place on its start, from 1.
    pub number: u32,
    /// The variant whose systems take the load: one of the start's.
    pub variant: usize,
    /// The turn of the start that it belongs to, from 1. A trial has one turn.
    #[serde(default = "first_turn", skip_serializing_if = "is_first_turn")]
    pub turn: u32,
    /// The variant that is loaded at the same time; none where each load is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<usize>,
    /// Its place in a search for the capacity; none for a load whose level the study names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// How long its phases take.
    pub lengths: PhaseLengths,
}

impl Load {
    /// True if the two run at the same time.
    #[must_use]
    pub fn runs_beside(&self, other: &Load) -> bool {
        self.turn == other.turn && self.beside == Some(other.variant) && other.beside == Some(self.variant)
    }
}

/// A load of a search for the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The users, or the arrivals per second. A search moves in steps that are no whole numbers; users are rounded when
    /// they are offered.
    pub level: f64,
    /// The part of the search that it belongs to.
    pub part: RungPart,
}

/// Parts of a search for the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungPart {
    /// Twice the load after a pass, half of it after a failure: it looks for the region.
    Bracket,
    /// Small steps around an estimate: it looks for the place.
    Ladder,
    /// A longer load at the lower end of the capacity's interval.
    Confirmation,
    /// One of equal steps: it shows how systems do over the whole range.
    Step,
    /// A light load after one under which requests failed: it shows whether the systems have recovered.
    Recovery,
}

fn first_turn() -> u32 {
    1
}

fn is_first_turn(turn: &u32) -> bool {
    *turn == first_turn()
}

/// How the variants of a block share time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// One start for each variant, with one load.
    #[default]
    Trials,
    /// One start for all variants, with short loads in turns.
    Turns(Turns),
    /// The same, but in each turn the baseline is loaded beside each other variant, at the same time.
    SideBySide(Turns),
}

impl Design {
    /// True if each start has one variant and one load.
    #[must_use]
    pub fn is_trials(&self) -> bool {
        *self == Design::Trials
    }

    /// The turns, if a start has some.
    #[must_use]
    pub fn turns(&self) -> Option<Turns> {
        match self {
            Design::Trials => None,
            Design::Turns(turns) | Design::SideBySide(turns) => Some(*turns),
        }
    }

    /// True if variants are loaded beside the baseline, at the same time.
    #[must_use]
    pub fn is_side_by_side(&self) -> bool {
        matches!(self, Design::SideBySide(_))
    }
}

/// The turns of a start: in each, every variant takes one short load, a *slice*, in random order. Side by side, it takes
/// it at the same time as the baseline, which has a slice beside each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The number of turns on a start.
    pub count: u32,
    /// Load before each slice that is not measured: users connect, caches fill again.
    pub settle: Duration,
    /// The measured part of a slice.
    pub slice: Duration,
}

impl Turns {
    /// The fewest turns that must count for their start to count: a quarter is trimmed from either end, and two must
    /// be left.
    pub const LEAST: u32 = 4;

    /// The fewest turns that must count for a start of so many to count: half of them, and at least [`Turns::LEAST`].
    #[must_use]
    pub fn needed_of(count: u32) -> u32 {
        count.div_ceil(2).max(Turns::LEAST)
    }

    /// The lengths of the slices of a turn under a load with these lengths. The first slice of a variant warms it up.
    fn lengths(self, turn: u32, of_load: PhaseLengths) -> PhaseLengths {
        let warmup = if turn == 1 { self.settle.max(of_load.warmup) } else { self.settle };
        PhaseLengths { warmup, measure: self.slice, drain: of_load.drain }
    }
}

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

/// How long the phases of a load take according to the study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseLengths {
    /// Warm-up.
    pub warmup: Duration,
    /// Measure; the limit where a number of iterations ends it.
    pub measure: Duration,
    /// Drain, at most.
    pub drain: Duration,
}

impl PhaseLengths {
    /// The time that counts as being under load: warm-up and measure.
    #[must_use]
    pub fn under_load(self) -> Duration {
        self.warmup + self.measure
    }

    /// The same with a warm-up that is longer by the measure phase.
    #[must_use]
    pub fn extended(self) -> PhaseLengths {
        PhaseLengths { warmup: self.warmup + self.measure, ..self }
    }
}

/// A part of a start with its loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Systems are started and get ready.
    Setup,
    /// Load that is not measured.
    Warmup,
    /// Load that is measured.
    Measure,
    /// Exchanges under way finish.
    Drain,
    /// Systems are stopped.
    Teardown,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Setup => "setup",
            Phase::Warmup => "warm-up",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
            Phase::Teardown => "teardown",
        })
    }
}

/// Whether a start or a load counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// It counts.
    Valid,
    /// It ran, but something other than the system limited what it measured. It counts neither as passed nor as failed.
    Void(Vec<String>),
    /// It could not be completed, or the system's replies were wrong.
    Failed(Vec<String>),
}

impl Validity {
    /// True if it counts in estimates.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self, Validity::Valid)
    }

    /// True if it measured something else than the systems.
    #[must_use]
    pub fn is_void(&self) -> bool {
        matches!(self, Validity::Void(_))
    }

    /// Combines two judgements of the same thing: a failure outweighs a void, and the reasons of `self` come first.
    #[must_use]
    pub fn and(&self, other: &Validity) -> Validity {
        let reasons = || [self.reasons(), other.reasons()].concat();
        match (self, other) {
            (Validity::Valid, other) => other.clone(),
            (known, Validity::Valid) => known.clone(),
            (Validity::Void(_), Validity::Void(_)) => Validity::Void(reasons()),
            _ => Validity::Failed(reasons()),
        }
    }

    /// Why it does not count; empty when it does.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        match self {
            Validity::Valid => &[],
            Validity::Void(reasons) | Validity::Failed(reasons) => reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Level;
    use crate::search::SearchRange;

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
        assert_eq!([4, 7, 8, 9, 20].map(Turns::needed_of), [4, 4, 4, 5, 10]);
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

    #[test]
    fn a_failure_outweighs_a_void() {
        let (void, failed) = (Validity::Void(vec!["v".into()]), Validity::Failed(vec!["f".into()]));
        assert_eq!(failed.and(&void), Validity::Failed(vec!["f".into(), "v".into()]));
        assert_eq!(void.and(&Validity::Valid), void);
        assert_eq!(Validity::Valid.and(&failed), failed);
    }
}
