//! The loads of a search for the capacity: which load is next on a start, from what the loads before it showed.
//!
//! Each variant has a search of its own on each start. The first start brackets; later ones begin around the capacities that
//! were found before. Where several variants are alive on a start, their loads alternate, in random order. On the last start
//! a longer load at the lower end of the capacity's interval confirms it.
//!
//! After a load under which requests failed, light ones come first, until one of them passes: see [`recovery`]. Where none does
//! in the time that the study gives, the start ends, and the search goes on with the next one.
//!
//! A start on which a system ends under a load does not count, and the next one goes on from there. Where that is a
//! load of the ladder for a second time, before any start has found the capacity, later starts stay below it, or none
//! would count.
//!
//! A stress test goes the same way on each start: up by equal steps, until requests fail or the largest load is reached.

mod recovery;

use self::recovery::Recovery;
use crate::blocks::shuffled;
use crate::outcomes::{EndedLoad, Outcome, Outcomes, Shown};
use plimsoll_model::plan::Plan;
use plimsoll_model::search::{CapacitySearch, SearchRange};
use plimsoll_model::start::{Load, PhaseLengths, Rung, RungPart, Start};
use plimsoll_statistics::capacity::{
    Capacity, LOADS, MOST_LOADS, Next, Part, Range, Search, Tried, capacity, contradiction, most_loads, over_starts,
};
use plimsoll_statistics::mean;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use std::time::Duration;

/// The smallest rate of arrivals that makes sense, as a share of the first that is tried.
const LEAST_RATE: f64 = 1.0 / 1024.0;

/// How often a load that is void is offered: the third time in a row ends the search.
const MOST_VOID: u32 = 3;

/// How much longer than the study says a load may get, so that it has enough requests.
const LONGEST: f64 = 20.0;

/// A longer load is this much longer than would just have had enough requests.
const RESERVE: f64 = 1.25;

/// The most loads that confirm a capacity: each one after a failure is lower by [`CONFIRMED_BELOW`].
const MOST_CONFIRMATIONS: usize = 3;
const CONFIRMED_BELOW: f64 = 0.97;

/// The largest load of later starts, as a share of a load of the ladder under which a system ended: about a step less.
const BELOW_WHAT_ENDED_IT: f64 = 0.94;

/// The confidence of the interval whose lower end is confirmed.
const CONFIDENCE: f64 = 0.95;

/// The fewest starts that give an interval.
const STARTS_OF_INTERVAL: usize = 3;

/// The search for the capacity, or the stress test, with these loads.
#[must_use]
pub fn search(range: SearchRange) -> CapacitySearch {
    let most = most_loads(range_of(range)) as u32;
    match range.step {
        Some(_) => CapacitySearch { range, loads: [most; 2], more: 0 },
        None => CapacitySearch { range, loads: [most, LOADS as u32], more: (MOST_LOADS - LOADS) as u32 },
    }
}

fn range_of(SearchRange { first, most, of_users, step, .. }: SearchRange) -> Range {
    let least = if of_users { 1.0 } else { first * LEAST_RATE };
    Range { first, least, most: most.max(first), whole: of_users, step }
}

/// The next load on `start`, on which those in `ran` have ended; none where every search on it has come to its end.
pub(crate) fn next(plan: &Plan, outcomes: &Outcomes, start: &Start, ran: &[EndedLoad]) -> Option<Load> {
    if ran.iter().any(|one| matches!(one.shown, None | Some(Shown::Died))) {
        return None;
    }
    let of = |variant: usize| ran.iter().filter(move |one| one.load.variant == variant);
    let mut ahead = Vec::new();
    for variant in start.variants.iter().copied() {
        let walk = OnStart::new(plan, outcomes, start, variant, of(variant));
        if walk.recovery.as_ref().is_some_and(Recovery::has_failed) {
            return None;
        }
        let turns = of(variant).filter(|one| part(one) != Some(RungPart::Recovery)).count();
        ahead.extend(walk.next().map(|(rung, measure)| Ahead { variant, turns, rung, measure }));
    }
    let Ahead { variant, turns, rung, measure } = due(&ahead, plan, start)?;
    // Loads by which systems recover are of the turn of the load before them.
    let turn = if rung.part == RungPart::Recovery { turns as u32 } else { turns as u32 + 1 };
    let lengths = plan.lengths(start, 1);
    let warmup = plan.searches[start.condition].range.warmup(lengths.warmup, rung.level);
    let lengths = PhaseLengths { warmup, measure, ..lengths };
    Some(Load { number: ran.len() as u32 + 1, variant, turn, beside: None, rung: Some(rung), lengths })
}

fn part(ran: &EndedLoad) -> Option<RungPart> {
    ran.load.rung.map(|rung| rung.part)
}

/// The load that is next in the search for a variant.
#[derive(Clone, Copy)]
struct Ahead {
    variant: usize,
    /// How many turns it has had.
    turns: usize,
    rung: Rung,
    measure: Duration,
}

/// The load that is next on a start: systems recover before anything else is offered, and the others take turns.
fn due(ahead: &[Ahead], plan: &Plan, start: &Start) -> Option<Ahead> {
    if let Some(recovering) = ahead.iter().find(|one| one.rung.part == RungPart::Recovery) {
        return Some(*recovering);
    }
    let fewest = ahead.iter().map(|one| one.turns).min()?;
    let mut random = Pcg64::seed_from_u64(plan.seed ^ (u64::from(start.number) << 32) ^ (fewest as u64 + 1));
    let order: Vec<usize> =
        shuffled(start.variants.len(), &mut random).into_iter().map(|place| start.variants[place]).collect();
    let due = ahead.iter().filter(|one| one.turns == fewest);
    due.min_by_key(|due| order.iter().position(|variant| *variant == due.variant)).copied()
}

/// What earlier starts showed of a variant.
struct Known {
    range: Range,
    /// The capacities that were found, with those of starts that do not count.
    found: Vec<f64>,
    /// The same of starts that count, and the widest contradiction of loads on one of those.
    counting: Vec<f64>,
    widest: f64,
    /// The loads that passed.
    passed: Vec<f64>,
    /// How long the systems may take to recover.
    recover: Duration,
    /// The load at which the last search ended without finding the capacity.
    censored: Option<f64>,
    /// The search on a start whose systems died.
    cut_off: Option<Search>,
    /// True if a system has ended under a load of a ladder.
    died_on_ladder: bool,
    /// How many seconds a load must last for enough requests, times its level; none where the study's length is enough.
    seconds_times_level: Option<f64>,
    /// The same for as many requests as it takes to weigh what misses.
    weighing: Option<f64>,
    /// How long a load may get for that.
    longest: Duration,
}

impl Known {
    fn of(plan: &Plan, outcomes: &Outcomes, start: &Start, variant: usize) -> Known {
        let range = plan.searches[start.condition].range;
        let nothing = Known {
            range: range_of(range),
            found: Vec::new(),
            counting: Vec::new(),
            widest: 0.0,
            passed: Vec::new(),
            recover: range.recover,
            censored: None,
            cut_off: None,
            died_on_ladder: false,
            seconds_times_level: None,
            weighing: None,
            longest: range.longest,
        };
        let is_earlier = |one: &Start| one.condition == start.condition && one.number < start.number;
        outcomes.ended().filter(|(one, ..)| is_earlier(one)).fold(nothing, |known, (one, outcome, ran)| {
            let of_variant = ran.iter().filter(|ran| ran.load.variant == variant);
            let walk = OnStart::begun(known, plan.lengths(one, 1)).replay(of_variant);
            walk.known_afterwards(outcome == Outcome::Counts)
        })
    }

    fn search(&self) -> Search {
        if self.range.step.is_some() {
            return Search::new(self.range);
        }
        match (self.cut_off, geometric_mean(&self.found), self.censored) {
            (Some(search), ..) => search,
            (None, Some(estimate), _) => Search::around(self.range, estimate, self.disagreement()),
            (None, None, Some(first)) => Search::new(Range { first, ..self.range }),
            (None, None, None) => Search::new(self.range),
        }
    }

    /// How far starts disagree: the distance of their capacities, or the widest contradiction of loads on one of them.
    fn disagreement(&self) -> f64 {
        self.widest.max(spread(&self.found))
    }
}

/// The search for a variant's capacity on one start.
struct OnStart {
    known: Known,
    lengths: PhaseLengths,
    search: Search,
    /// The loads that it went by.
    tried: Vec<Tried>,
    /// Void loads at the end of those that have ended.
    voids: u32,
    /// True if the load that is next was void too often.
    given_up: bool,
    /// The load under which a system ended.
    died_at: Option<f64>,
    /// The light loads that are due; none where the systems have nothing to recover from.
    recovery: Option<Recovery>,
    /// The load that confirms the capacity, if this is the last start.
    confirmation: Option<Duration>,
    confirmations: usize,
    /// The load of the last confirmation, whether it passed or not.
    last_confirmation: Option<f64>,
    confirmed: bool,
}

impl OnStart {
    fn new<'r>(
        plan: &Plan,
        outcomes: &Outcomes,
        start: &Start,
        variant: usize,
        ran: impl Iterator<Item = &'r EndedLoad>,
    ) -> OnStart {
        let mut walk = OnStart::begun(Known::of(plan, outcomes, start, variant), plan.lengths(start, 1));
        let range = plan.searches[start.condition].range;
        walk.confirmation = (start.repeat == plan.repeats && range.step.is_none()).then_some(range.confirm);
        walk.replay(ran)
    }

    fn begun(known: Known, lengths: PhaseLengths) -> OnStart {
        let search = known.search();
        OnStart {
            known,
            lengths,
            search,
            tried: Vec::new(),
            voids: 0,
            given_up: false,
            died_at: None,
            recovery: None,
            confirmation: None,
            confirmations: 0,
            last_confirmation: None,
            confirmed: false,
        }
    }

    fn replay<'r>(mut self, ran: impl Iterator<Item = &'r EndedLoad>) -> OnStart {
        ran.for_each(|one| self.take_in(one));
        self
    }

    fn take_in(&mut self, ran: &EndedLoad) {
        let (Some(rung), Some(shown)) = (ran.load.rung, ran.shown) else { return };
        if rung.part == RungPart::Recovery {
            self.recovery = self.recovery.take().and_then(|recovery| recovery.goes_on(ran.load.lengths, shown));
            return;
        }
        match shown {
            Shown::Void => {
                self.voids += 1;
                if self.voids == MOST_VOID {
                    self.search.cannot_be_offered();
                    self.given_up = matches!(self.search.next(), Next::Load(..));
                }
                return;
            }
            Shown::TooFew { share } => {
                let seconds = ran.load.lengths.measure.as_secs_f64();
                self.known.seconds_times_level = Some(seconds * rung.level / share.max(1e-3));
                if seconds < self.longest() {
                    return;
                }
                // What cannot be shown in any time does not pass; where more load comes next, that has more requests.
                self.record(rung, matches!(rung.part, RungPart::Bracket | RungPart::Step), None);
            }
            Shown::Judged { passed, strain, failed, share_to_weigh } => {
                let needed = |share: f64| ran.load.lengths.measure.as_secs_f64() * rung.level / share;
                self.known.weighing = share_to_weigh.filter(|share| *share > 0.0).map(needed).or(self.known.weighing);
                self.record(rung, passed, strain);
                if failed {
                    self.search.end_steps();
                    self.recovery = Recovery::after(rung.level, &self.known.passed, self.known.recover);
                }
            }
            Shown::Died => {
                self.record(rung, false, None);
                self.died_at = Some(rung.level);
            }
        }
        self.voids = 0;
    }

    fn record(&mut self, rung: Rung, passed: bool, strain: Option<f64>) {
        if passed {
            self.known.passed.push(rung.level);
        }
        let part = match rung.part {
            RungPart::Bracket => Part::Bracket,
            RungPart::Ladder => Part::Ladder,
            RungPart::Step => Part::Step,
            RungPart::Confirmation => {
                self.confirmations += 1;
                self.last_confirmation = Some(rung.level);
                self.confirmed = passed;
                return;
            }
            RungPart::Recovery => return,
        };
        self.search.record(passed);
        self.tried.push(Tried { level: rung.level, part, passed, strain });
    }

    /// The capacity, where the search has found it.
    fn found(&self) -> Option<f64> {
        match (self.search.next(), capacity(&self.tried)) {
            (Next::End(Capacity::At(_)), Some(Capacity::At(found))) => Some(found),
            _ => None,
        }
    }

    /// The next load, with the length of its measure phase.
    fn next(&self) -> Option<(Rung, Duration)> {
        let next = self.next_of_search()?;
        Some(self.recovery.as_ref().map_or(next, |recovery| recovery.next(self.lengths.measure)))
    }

    fn next_of_search(&self) -> Option<(Rung, Duration)> {
        let (level, part) = match self.search.next() {
            Next::Load(..) if self.given_up => return None,
            Next::Load(level, Part::Bracket) => (level, RungPart::Bracket),
            Next::Load(level, Part::Ladder) => (level, RungPart::Ladder),
            Next::Load(level, Part::Step) => (level, RungPart::Step),
            Next::End(_) => return self.next_confirmation(self.found()?),
        };
        let least = if part == RungPart::Ladder { self.length_to_weigh(level) } else { self.lengths.measure };
        Some((Rung { level, part }, self.length(level, least)))
    }

    fn next_confirmation(&self, found: f64) -> Option<(Rung, Duration)> {
        let confirmation = self.confirmation?;
        if self.confirmed || self.confirmations == MOST_CONFIRMATIONS || self.voids == MOST_VOID {
            return None;
        }
        let all: Vec<f64> = self.known.counting.iter().copied().chain([found]).collect();
        let widest = self.known.widest.max(contradiction(&self.tried));
        let level = lower_end(&all, widest) * CONFIRMED_BELOW.powi(self.confirmations as i32);
        // Each is below the one before it, also of few users.
        let whole = || level.floor().min(self.last_confirmation.map_or(f64::INFINITY, |last| last - 1.0)).max(1.0);
        let level = if self.known.range.whole { whole() } else { level };
        Some((Rung { level, part: RungPart::Confirmation }, self.length(level, confirmation)))
    }

    /// How long a load near the capacity is measured, so that what it misses can be weighed.
    fn length_to_weigh(&self, level: f64) -> Duration {
        let needed = self.known.weighing.map_or(0.0, |product| RESERVE * product / level);
        self.lengths.measure.max(length_of(needed.min(self.known.longest.as_secs_f64())))
    }

    /// How long a load must be measured.
    fn length(&self, level: f64, least: Duration) -> Duration {
        let needed = self.known.seconds_times_level.map_or(0.0, |product| RESERVE * product / level);
        least.max(length_of(needed.min(self.longest())))
    }

    /// The longest measure phase, in seconds.
    fn longest(&self) -> f64 {
        LONGEST * self.lengths.measure.as_secs_f64()
    }

    fn known_afterwards(self, counts: bool) -> Known {
        let found = self.found();
        let is_of_ladder = self.tried.last().is_some_and(|last| last.part == Part::Ladder);
        let mut known = Known { cut_off: None, ..self.known };
        // Steps on later starts end before it, or none of them would count.
        if let (Some(died_at), Some(step)) = (self.died_at, known.range.step) {
            known.range.most = (died_at - step).max(known.range.first);
        }
        match self.search.next() {
            Next::End(Capacity::At(_)) => {
                known.found.extend(found);
                known.counting.extend(found.filter(|_| counts));
                known.widest = if counts { known.widest.max(contradiction(&self.tried)) } else { known.widest };
            }
            Next::End(Capacity::AtLeast(level) | Capacity::Below(level)) => known.censored = Some(level),
            Next::End(Capacity::Unsettled) => {}
            Next::Load(..) => match self.died_at.filter(|_| is_of_ladder && known.found.is_empty()) {
                // The first time may be chance.
                Some(died_at) if known.died_on_ladder => {
                    known.range.most = below_what_ended_it(died_at, known.range);
                    known.censored = Some(known.range.most);
                }
                died_at => {
                    known.died_on_ladder |= died_at.is_some();
                    known.cut_off = Some(self.search.on_another_start());
                }
            },
        }
        known
    }
}

/// The largest load of later starts, where a system has ended under a load of the ladder.
fn below_what_ended_it(died_at: f64, Range { least, whole, .. }: Range) -> f64 {
    let most = died_at * BELOW_WHAT_ENDED_IT;
    // Of few users, a whole one less.
    let most = if whole { most.floor().min(died_at.round() - 1.0) } else { most };
    most.max(least)
}

/// A length of `seconds`, rounded up to whole milliseconds.
fn length_of(seconds: f64) -> Duration {
    Duration::from_millis((1000.0 * seconds).ceil() as u64)
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    mean(&values.iter().map(|value| value.ln()).collect::<Vec<f64>>()).map(f64::exp)
}

/// The logarithm of the largest value over the smallest, or 0.
fn spread(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    (largest / smallest).ln().max(0.0)
}

/// The lower end of the interval of the capacity over these starts; of too few, the smallest.
fn lower_end(capacities: &[f64], widest: f64) -> f64 {
    let interval = over_starts(capacities, widest).filter(|_| capacities.len() >= STARTS_OF_INTERVAL);
    let smallest = capacities.iter().copied().fold(f64::INFINITY, f64::min);
    interval.map_or(smallest, |test| test.interval(CONFIDENCE).low.exp())
}

#[cfg(test)]
mod tests;
