//! The recorded outcomes of a run so far, from which the next step follows.

use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Load, Start};
use std::collections::HashMap;

/// How a start ended, as far as it decides whether its block runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It counts, with all of its loads.
    Counts,
    /// It is void or failed, or one of its loads is.
    DoesNotCount,
    /// It is void only because a load on it found no steady state.
    Unsteady,
    /// It is void because the generator fell behind while others used the processors.
    Disturbed,
}

/// The result of a load of a search, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shown {
    /// It was judged, with enough requests to show that the objective holds, or does not.
    Judged {
        /// True if it passed.
        passed: bool,
        /// The share of requests that missed the objective, over the share that may, where there is one.
        strain: Option<f64>,
        /// True if more requests failed than the objective allows.
        failed: bool,
        /// Requests, as a share of those with which what misses can be weighed, where the objective limits a percentile.
        share_to_weigh: Option<f64>,
    },
    /// It broke nothing, but had too few requests to show it: this share of them.
    TooFew {
        /// Requests, as a share of those that it takes.
        share: f64,
    },
    /// It does not count: the generator, or the machine, was the limit.
    Void,
    /// A system ended under it, so that nothing more can be offered on its start.
    Died,
}

/// A load that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedLoad {
    /// Which.
    pub load: Load,
    /// Its result; none where it was not judged by an objective, or could not be offered.
    pub shown: Option<Shown>,
}

/// The recorded outcomes of a run so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcomes {
    ended: Vec<(Start, Outcome, Vec<EndedLoad>)>,
    /// The places in `ended`, by the number of the start. Each step looks up the outcome of every start.
    place_of: HashMap<u32, usize>,
    under_way: Option<(Start, Vec<EndedLoad>)>,
    looks: Vec<Look>,
    recent_blocks: Vec<RecentBlock>,
}

/// A block that has begun since the run began or went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecentBlock {
    number: u32,
    /// True if a start of it was disturbed.
    pub(crate) disturbed: bool,
}

impl Outcomes {
    /// Records that a start has begun.
    pub fn started(&mut self, start: Start) {
        self.under_way = Some((start, Vec::new()));
    }

    /// Records that a load on the current start has ended, in whatever way, with its result by the objective.
    pub fn loaded(&mut self, load: Load, shown: Option<Shown>) {
        if let Some((_, ran)) = &mut self.under_way {
            ran.push(EndedLoad { load, shown });
        }
    }

    /// Records that a start is over. An earlier start with the same number was lost, and is
    /// dropped.
    pub fn stopped(&mut self, start: Start, outcome: Outcome) {
        let ran = self.under_way.take().map_or(Vec::new(), |(_, ran)| ran);
        let disturbed = outcome == Outcome::Disturbed;
        match self.recent_blocks.last_mut().filter(|block| block.number == start.block) {
            Some(block) => block.disturbed |= disturbed,
            None => self.recent_blocks.push(RecentBlock { number: start.block, disturbed }),
        }
        if self.place_of.contains_key(&start.number) {
            self.ended.retain(|(known, ..)| known.number != start.number);
            self.place_of = self.ended.iter().enumerate().map(|(place, (known, ..))| (known.number, place)).collect();
        }
        self.place_of.insert(start.number, self.ended.len());
        self.ended.push((start, outcome, ran));
    }

    /// Records a look.
    pub fn looked(&mut self, look: Look) {
        self.looks.push(look);
    }

    /// Records that the run goes on after it was interrupted or should have broken off. Blocks that were disturbed
    /// before do not count towards breaking off any more.
    pub fn went_on(&mut self) {
        self.recent_blocks.clear();
    }

    /// The blocks that have begun since the run began or went on, in the order in which they ran.
    pub(crate) fn recent_blocks(&self) -> &[RecentBlock] {
        &self.recent_blocks
    }

    /// The current start.
    #[must_use]
    pub fn start_under_way(&self) -> Option<&Start> {
        self.under_way.as_ref().map(|(start, _)| start)
    }

    /// The current start, with its loads that have ended.
    pub(crate) fn under_way(&self) -> Option<(&Start, &[EndedLoad])> {
        self.under_way.as_ref().map(|(start, ran)| (start, &ran[..]))
    }

    /// The starts that have ended, with their loads, in the order in which they ended.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (&Start, Outcome, &[EndedLoad])> {
        self.ended.iter().map(|(start, outcome, ran)| (start, *outcome, &ran[..]))
    }

    /// The outcome of `start`; none where it has not ended, or where only another start with its
    /// number has.
    pub(crate) fn of(&self, start: &Start) -> Option<Outcome> {
        let place = *self.place_of.get(&start.number)?;
        let (known, outcome, _) = &self.ended[place];
        (known == start).then_some(*outcome)
    }

    /// The look after this many repeats, if it was taken.
    pub(crate) fn look(&self, repeats: u32) -> Option<&Look> {
        self.looks.iter().find(|look| look.repeats == repeats)
    }

    /// True if a look has found that this start is not needed.
    pub(crate) fn is_spared(&self, start: &Start) -> bool {
        self.looks.iter().any(|look| look.spares(start))
    }

    /// True if a start of a later repeat than `repeats` has ended.
    pub(crate) fn went_beyond(&self, repeats: u32) -> bool {
        self.ended.iter().any(|(start, ..)| start.repeat > repeats)
    }

    /// All starts: those of the plan, then the additional ones that the strategy decided on and
    /// that have begun.
    pub(crate) fn all_starts<'o>(&'o self, plan: &'o Plan) -> Vec<&'o Start> {
        let begun = self.ended.iter().map(|(start, ..)| start).chain(self.under_way.as_ref().map(|(start, _)| start));
        let mut added: Vec<&Start> = begun.filter(|start| !plan.starts.contains(start)).collect();
        added.sort_by_key(|start| start.number);
        plan.starts.iter().chain(added).collect()
    }
}
