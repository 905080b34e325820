//! The loads of a search for the capacity: which load is next on a start, from what the loads before it showed.
//!
//! Each variant has a search of its own on each start. The first start brackets; later ones begin around the capacities that
//! were found before. Where several variants are alive on a start, their loads alternate, in random order. On the last start
//! a longer load at the lower end of the capacity's interval confirms it.
//!
//! After a load under which requests failed, light ones come first, until one of them passes: see [`recovery`]. Where none does
//! in the time that the study gives, the start ends, and the search goes on with the next one.
//!
//! A stress test goes the same way on each start: up by equal steps, until requests fail or the largest load is reached.

mod recovery;

use self::recovery::Recovery;
use crate::blocks::shuffled;
use crate::outcomes::{EndedLoad, Outcome, Outcomes, Shown};
use plimsoll_model::start::{CapacitySearch, Load, PhaseLengths, Plan, Rung, RungPart, SearchRange, Start};
use plimsoll_statistics::capacity::{Capacity, Next, Part, Range, STEPS, Search, Tried, capacity, most_loads};
use plimsoll_statistics::{mean, one_sample};
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

/// The confidence of the interval whose lower end is confirmed.
const CONFIDENCE: f64 = 0.95;

/// The fewest starts that give an interval.
const STARTS_OF_INTERVAL: usize = 3;

/// The search for the capacity, or the stress test, with these loads.
#[must_use]
pub fn search(range: SearchRange) -> CapacitySearch {
    let most = most_loads(range_of(range)) as u32;
    CapacitySearch { range, loads: [most, if range.step.is_some() { most } else { STEPS.len() as u32 }] }
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
    /// The same of starts that count.
    counting: Vec<f64>,
    /// The loads that passed.
    passed: Vec<f64>,
    /// How long the systems may take to recover.
    recover: Duration,
    /// The load at which the last search ended without finding the capacity.
    censored: Option<f64>,
    /// The search on a start whose systems died.
    cut_off: Option<Search>,
    /// How many seconds a load must last for enough requests, times its level; none where the study's length is enough.
    seconds_times_level: Option<f64>,
}

impl Known {
    fn of(plan: &Plan, outcomes: &Outcomes, start: &Start, variant: usize) -> Known {
        let range = plan.searches[start.condition].range;
        let nothing = Known {
            range: range_of(range),
            found: Vec::new(),
            counting: Vec::new(),
            passed: Vec::new(),
            recover: range.recover,
            censored: None,
            cut_off: None,
            seconds_times_level: None,
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
            (None, Some(estimate), _) => Search::around(self.range, estimate),
            (None, None, Some(first)) => Search::new(Range { first, ..self.range }),
            (None, None, None) => Search::new(self.range),
        }
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
            Shown::Judged { passed, strain, failed } => {
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
        Some((Rung { level, part }, self.length(level, self.lengths.measure)))
    }

    fn next_confirmation(&self, found: f64) -> Option<(Rung, Duration)> {
        let confirmation = self.confirmation?;
        if self.confirmed || self.confirmations == MOST_CONFIRMATIONS || self.voids == MOST_VOID {
            return None;
        }
        let all: Vec<f64> = self.known.counting.iter().copied().chain([found]).collect();
        let lower = lower_end(&all) * CONFIRMED_BELOW.powi(self.confirmations as i32);
        let level = if self.known.range.whole { lower.floor().max(1.0) } else { lower };
        Some((Rung { level, part: RungPart::Confirmation }, self.length(level, confirmation)))
    }

    /// How long a load must be measured.
    fn length(&self, level: f64, least: Duration) -> Duration {
        let needed = self.known.seconds_times_level.map_or(0.0, |product| RESERVE * product / level);
        least.max(Duration::from_millis((1000.0 * needed.min(self.longest())).ceil() as u64))
    }

    /// The longest measure phase, in seconds.
    fn longest(&self) -> f64 {
        LONGEST * self.lengths.measure.as_secs_f64()
    }

    fn known_afterwards(self, counts: bool) -> Known {
        let found = self.found();
        let mut known = Known { cut_off: None, ..self.known };
        // Steps on later starts end before it, or none of them would count.
        if let (Some(died_at), Some(step)) = (self.died_at, known.range.step) {
            known.range.most = (died_at - step).max(known.range.first);
        }
        match self.search.next() {
            Next::End(Capacity::At(_)) => {
                known.found.extend(found);
                known.counting.extend(found.filter(|_| counts));
            }
            Next::End(Capacity::AtLeast(level) | Capacity::Below(level)) => known.censored = Some(level),
            Next::End(Capacity::Unsettled) => {}
            Next::Load(..) => known.cut_off = Some(self.search.on_another_start()),
        }
        known
    }
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    mean(&values.iter().map(|value| value.ln()).collect::<Vec<f64>>()).map(f64::exp)
}

/// The lower end of the interval of the capacity over these starts; of too few, the smallest.
fn lower_end(capacities: &[f64]) -> f64 {
    let logs: Vec<f64> = capacities.iter().map(|value| value.ln()).collect();
    let interval = one_sample(&logs).filter(|_| logs.len() >= STARTS_OF_INTERVAL).map(|test| test.interval(CONFIDENCE));
    interval.map_or_else(|| logs.iter().copied().fold(f64::INFINITY, f64::min), |interval| interval.low).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Options, plan};
    use crate::{Step, next as next_step};
    use plimsoll_model::factor::{Factor, Level, Role};
    use plimsoll_model::start::{Design, Turns};

    const PASSED: Shown = Shown::Judged { passed: true, strain: None, failed: false };
    const MISSED: Shown = Shown::Judged { passed: false, strain: None, failed: false };
    const BROKEN: Shown = Shown::Judged { passed: false, strain: None, failed: true };
    const SECOND: Duration = Duration::from_secs(1);

    /// A plan that searches from 10 users up to `most`, for this many variants, on starts of one variant or of all.
    fn planned(variants: usize, most: f64, design: Design) -> Plan {
        let levels = (0..variants).map(|number| Level::Text(number.to_string())).collect();
        let factors = [Factor { name: "version".to_owned(), levels, role: Role::Compared { baseline: 0 } }];
        let factors = if variants > 1 { &factors[..] } else { &[] };
        let options = Options { repeats: 5, seed: 3, duplicate: false, spare_blocks: None, looks: Vec::new(), design };
        let lengths = PhaseLengths { warmup: SECOND, measure: 10 * SECOND, drain: SECOND };
        let searches = vec![search(SearchRange {
            first: 10.0,
            most,
            of_users: true,
            confirm: 60 * SECOND,
            step: None,
            new_users: None,
            recover: 60 * SECOND,
        })];
        Plan { searches, ..plan(factors, &options, |_| lengths) }
    }

    /// Runs the plan; `hear` says what comes of each load on each start.
    fn run(plan: &Plan, hear: &mut dyn FnMut(&Start, &Load) -> Shown) -> Vec<(Start, Vec<EndedLoad>)> {
        let (mut outcomes, mut starts) = (Outcomes::default(), Vec::new());
        while let Some(step) = next_step(plan, &outcomes) {
            match step {
                Step::Start(start) => outcomes.started(start),
                Step::Loads(loads) => {
                    let start = outcomes.start_under_way().expect("a load is on a start").clone();
                    loads.into_iter().for_each(|load| {
                        let shown = hear(&start, &load);
                        outcomes.loaded(load, Some(shown));
                    });
                }
                Step::Stop => {
                    let (start, ran) = outcomes.under_way().expect("only what runs is stopped");
                    let (start, ran) = (start.clone(), ran.to_vec());
                    let died = ran.iter().any(|one| one.shown == Some(Shown::Died));
                    starts.push((start.clone(), ran));
                    outcomes.stopped(start, if died { Outcome::DoesNotCount } else { Outcome::Counts });
                }
                other => panic!("{other:?}"),
            }
        }
        starts
    }

    /// Passes below `truth` users.
    fn below(truth: f64) -> impl FnMut(&Start, &Load) -> Shown {
        move |_, load| if level(load).round() < truth { PASSED } else { MISSED }
    }

    fn level(load: &Load) -> f64 {
        load.rung.expect("a search").level
    }

    fn parts(ran: &[EndedLoad], part: RungPart) -> Vec<f64> {
        ran.iter()
            .filter(|one| one.load.rung.is_some_and(|rung| rung.part == part))
            .map(|one| level(&one.load))
            .collect()
    }

    #[test]
    fn the_first_start_brackets_and_the_last_confirms() {
        let plan = planned(1, 1000.0, Design::Trials);
        let starts = run(&plan, &mut below(150.0));
        let of = |part| starts.iter().map(|(_, ran)| parts(ran, part).len()).collect::<Vec<usize>>();
        assert_eq!(of(RungPart::Bracket), [7, 0, 0, 0, 0]);
        assert_eq!(of(RungPart::Ladder), [8; 5]);
        assert_eq!(of(RungPart::Confirmation), [0, 0, 0, 0, 1]);
        let last = starts[4].1.last().expect("loads");
        assert_eq!(last.load.lengths.measure, 60 * SECOND);
        assert!((140.0..150.0).contains(&level(&last.load)), "{last:?}");
        assert!(plan.time_under_load(&plan.starts) >= 47 * 11 * SECOND);
    }

    #[test]
    fn where_nothing_fails_later_starts_try_the_largest_load_alone() {
        let starts = run(&planned(1, 100.0, Design::Trials), &mut below(1e9));
        assert_eq!(starts.iter().map(|(_, ran)| ran.len()).collect::<Vec<usize>>(), [5, 1, 1, 1, 1]);
        assert!(starts.iter().all(|(_, ran)| level(&ran.last().expect("a load").load) == 100.0));
    }

    #[test]
    fn a_confirmation_that_fails_is_tried_a_little_lower() {
        let mut limit = below(150.0);
        let mut hear = |start: &Start, load: &Load| match load.rung.expect("a search").part {
            RungPart::Confirmation if level(load) > 145.0 => MISSED,
            _ => limit(start, load),
        };
        let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
        let tried = parts(&starts[4].1, RungPart::Confirmation);
        assert!(tried.len() == 2 && tried[1] <= 145.0 && tried[1] > 0.95 * tried[0], "{tried:?}");
    }

    #[test]
    fn variants_on_one_start_alternate() {
        let turns = Turns { count: 1, settle: SECOND, slice: SECOND };
        let plan = planned(2, 1000.0, Design::Turns(turns));
        let mut hear = |_: &Start, load: &Load| {
            let truth = [150.0, 90.0][load.variant];
            if level(load).round() < truth { PASSED } else { MISSED }
        };
        let starts = run(&plan, &mut hear);
        for (_, ran) in &starts[1..4] {
            assert_eq!(ran.len(), 16);
            for (turn, pair) in (1..).zip(ran.chunks(2)) {
                assert!(pair.iter().all(|one| one.load.turn == turn) && pair[0].load.variant != pair[1].load.variant);
            }
        }
        let firsts: Vec<usize> = starts[1].1.chunks(2).map(|pair| pair[0].load.variant).collect();
        assert!(firsts.contains(&0) && firsts.contains(&1), "{firsts:?}");
    }

    #[test]
    fn a_load_with_too_few_requests_is_repeated_for_longer() {
        // Ten requests a second for each user, of which 299 are needed.
        let mut hear = |_: &Start, load: &Load| {
            let count = 0.5 * level(load) * load.lengths.measure.as_secs_f64();
            if count < 299.0 {
                return Shown::TooFew { share: count / 299.0 };
            }
            if level(load).round() < 50.0 { PASSED } else { MISSED }
        };
        let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
        let lengths: Vec<f64> = starts[0].1.iter().map(|one| one.load.lengths.measure.as_secs_f64()).collect();
        assert_eq!(lengths[0], 10.0);
        assert!((lengths[1] - 74.75).abs() < 0.01, "{lengths:?}");
        assert_eq!((level(&starts[0].1[1].load), level(&starts[0].1[2].load)), (10.0, 20.0));
        let is_too_short = |one: &EndedLoad| matches!(one.shown, Some(Shown::TooFew { .. }));
        assert!(is_too_short(&starts[0].1[0]) && !starts[1].1.iter().any(is_too_short));
        assert_eq!(parts(&starts[1].1, RungPart::Ladder).len(), 8, "later starts know how long a load must be");
    }

    #[test]
    fn a_void_load_is_repeated_and_a_generator_at_its_limit_ends_the_search() {
        let mut hear = |_: &Start, load: &Load| if level(load) > 70.0 { Shown::Void } else { PASSED };
        let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
        let levels: Vec<f64> = starts[0].1.iter().map(|one| level(&one.load)).collect();
        assert_eq!(levels, [10.0, 20.0, 40.0, 80.0, 80.0, 80.0]);
        let levels: Vec<f64> = starts[1].1.iter().map(|one| level(&one.load)).collect();
        assert_eq!(levels, [40.0, 80.0, 80.0, 80.0], "at least 40");
    }

    /// Passes below 150 users, and breaks from there on; the systems recover after so many light loads.
    fn breaking(needed: usize) -> impl FnMut(&Start, &Load) -> Shown {
        let mut light_loads = 0;
        move |_, load| {
            if load.rung.expect("a search").part == RungPart::Recovery {
                light_loads += 1;
                return if light_loads < needed { MISSED } else { PASSED };
            }
            light_loads = 0;
            if level(load).round() < 150.0 { PASSED } else { BROKEN }
        }
    }

    #[test]
    fn systems_recover_from_a_load_under_which_requests_failed() {
        let plan = planned(1, 1000.0, Design::Trials);
        let starts = run(&plan, &mut breaking(3));
        let mut failed = 0;
        for (_, ran) in &starts {
            for (index, load) in ran.iter().enumerate().filter(|(_, load)| load.shown == Some(BROKEN)) {
                // The last load of a ladder needs none.
                if index + 1 == ran.len() {
                    continue;
                }
                let light: Vec<&EndedLoad> = ran[index + 1..].iter().take(3).collect();
                assert!(light.iter().all(|one| part(one) == Some(RungPart::Recovery)), "{ran:?}");
                assert!(
                    light.iter().all(|one| level(&one.load) == if level(&load.load) < 160.0 { 20.0 } else { 40.0 })
                );
                assert!(light.iter().all(|one| one.load.turn == load.load.turn));
                failed += 1;
            }
        }
        assert!(failed >= 12, "{failed}");
        let same_without = |ran: &[EndedLoad]| {
            ran.iter()
                .filter(|one| part(one) != Some(RungPart::Recovery))
                .map(|one| level(&one.load))
                .collect::<Vec<f64>>()
        };
        let undisturbed = run(&plan, &mut below(150.0));
        for ((_, ran), (_, other)) in starts.iter().zip(&undisturbed) {
            assert_eq!(same_without(ran), same_without(other), "the search itself goes the same way");
        }
    }

    #[test]
    fn where_systems_do_not_recover_the_next_start_goes_on() {
        let starts = run(&planned(1, 1000.0, Design::Trials), &mut breaking(1000));
        let of = |index: usize| starts[index].1.iter().map(|one| level(&one.load)).collect::<Vec<f64>>();
        // Of 1 s of warm-up and 2.5 s of measure phase each, 18 are more than a minute.
        assert_eq!(of(0), [&[10.0, 20.0, 40.0, 80.0, 160.0][..], &[40.0; 18]].concat());
        assert_eq!(of(1)[0], 113.0, "between what passed and what broke");
    }

    #[test]
    fn while_one_variant_recovers_the_others_wait() {
        let turns = Turns { count: 1, settle: SECOND, slice: SECOND };
        let starts = run(&planned(2, 1000.0, Design::Turns(turns)), &mut breaking(2));
        let recoveries = |ran: &[EndedLoad]| ran.iter().filter(|one| part(one) == Some(RungPart::Recovery)).count();
        assert!(starts.iter().all(|(_, ran)| recoveries(ran) > 0));
        for pair in starts.iter().flat_map(|(_, ran)| ran.windows(2)) {
            let is_followed = pair[1].load.variant == pair[0].load.variant && pair[1].load.turn == pair[0].load.turn;
            assert!(part(&pair[1]) != Some(RungPart::Recovery) || is_followed, "{pair:?}");
        }
    }

    /// Steps of 10 users from 10 to 80, on five starts.
    fn stress() -> Plan {
        let mut plan = planned(1, 80.0, Design::Trials);
        plan.searches = vec![search(SearchRange { step: Some(10.0), ..plan.searches[0].range })];
        plan
    }

    fn levels(starts: &[(Start, Vec<EndedLoad>)]) -> Vec<Vec<f64>> {
        starts.iter().map(|(_, ran)| ran.iter().map(|one| level(&one.load)).collect()).collect()
    }

    #[test]
    fn a_stress_test_goes_up_on_each_start_until_requests_fail() {
        let mut hear = |_: &Start, load: &Load| match level(load) {
            ..30.0 => PASSED,
            ..60.0 => MISSED,
            _ => BROKEN,
        };
        let plan = stress();
        let starts = run(&plan, &mut hear);
        assert_eq!(levels(&starts), vec![vec![10.0, 20.0, 30.0, 40.0, 50.0, 60.0]; 5]);
        assert_eq!(plan.searches[0].loads, [8, 8]);
        assert_eq!(plan.time_under_load(&plan.starts), 5 * 8 * 11 * SECOND, "without a confirmation");
        let mut joining = stress();
        joining.searches[0].range.new_users = Some(20.0);
        let ran = run(&joining, &mut hear);
        let warmups: Vec<f64> = ran[0].1.iter().map(|one| one.load.lengths.warmup.as_secs_f64()).collect();
        assert_eq!(warmups, [1.0, 1.5, 2.0, 2.5, 3.0, 3.5], "that of the first has the time of its users in it");
        let warmups = 8.0 + (0..8).map(|place| f64::from(10 * place) / 20.0).sum::<f64>();
        assert_eq!(joining.time_under_load(&joining.starts[..1]).as_secs_f64(), 80.0 + warmups);
        let whole = run(&plan, &mut |_, _| MISSED);
        assert_eq!(levels(&whole)[0].len(), 8, "slow is not broken");
    }

    #[test]
    fn steps_end_before_what_a_system_died_of() {
        let mut hear = |_: &Start, load: &Load| if level(load) < 40.0 { PASSED } else { Shown::Died };
        let found = levels(&run(&stress(), &mut hear));
        assert_eq!(found[0], [10.0, 20.0, 30.0, 40.0]);
        assert_eq!(found[1..], vec![vec![10.0, 20.0, 30.0]; 5], "one more for the first, which does not count");
    }

    #[test]
    fn a_step_that_the_generator_cannot_offer_is_the_last() {
        let mut hear = |_: &Start, load: &Load| if level(load) < 40.0 { PASSED } else { Shown::Void };
        let found = levels(&run(&stress(), &mut hear));
        assert_eq!(found[4], [10.0, 20.0, 30.0, 40.0, 40.0, 40.0]);
    }

    #[test]
    fn where_a_system_dies_the_next_start_goes_on() {
        let mut hear = |_: &Start, load: &Load| match level(load).round() {
            ..50.0 => PASSED,
            ..70.0 => MISSED,
            _ => Shown::Died,
        };
        let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
        let of = |index: usize| starts[index].1.iter().map(|one| level(&one.load)).collect::<Vec<f64>>();
        assert_eq!(of(0), [10.0, 20.0, 40.0, 80.0]);
        assert_eq!(of(1)[..2], [57.0, 48.0], "between what passed and what it died of");
        // Starts are added for the one that does not count, as for any other.
        assert_eq!(starts.len(), 6);
        assert_eq!(parts(&starts[5].1, RungPart::Ladder).len(), 8);
    }
}
