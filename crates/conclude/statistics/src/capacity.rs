//! The search for the largest load that a system carries, by loads that pass or fail.
//!
//! A *bracket* finds the region: twice the load after a pass, half of it after a failure, until a load that passed and one
//! that failed are near each other. A *ladder* finds the place: short loads around an estimate, each a step above the one
//! before it after a pass, a step below after a failure, the steps getting smaller. Where the ladder ends is the capacity
//! on this start of the systems: one value of many, as loads near the capacity pass or fail by chance, and as starts
//! differ. One bisection would give a single value that looks exact and scatters as much.
//!
//! Loads that go up by equal steps, as of a stress test, are tried in the same way: they show how a system does over a whole
//! range, and the capacity only as well as their distance allows.
//!
//! The steps of a ladder are those of up-and-down designs with a decreasing gain (Dixon and Mood, *A Method for Obtaining and Analyzing
//! Sensitivity Data*, 1948; Robbins and Monro, *A Stochastic Approximation Method*, 1951); their sizes are chosen by
//! simulation, which docs/method-evidence.md shows.

/// The steps of a ladder, as shares of the load.
pub const STEPS: [f64; 8] = [0.06, 0.03, 0.03, 0.015, 0.015, 0.015, 0.01, 0.01];

/// A bracket is narrow enough where the load that failed is at most this many times the one that passed: a ladder from
/// its middle reaches beyond both ends.
const NARROW: f64 = 1.2;

/// How often a ladder on which every load passed, or every load failed, may lead to another bracket.
const MOST_BRACKETS: u32 = 3;

/// The loads that a search may offer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The first load of a bracket.
    pub first: f64,
    /// The smallest load that makes sense.
    pub least: f64,
    /// The largest load that is tried.
    pub most: f64,
    /// True for whole numbers, as of users.
    pub whole: bool,
    /// The distance of loads that go up by equal steps; none for a search.
    pub step: Option<f64>,
}

/// Which part of a search a load belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It looks for the region.
    Bracket,
    /// It looks for the place.
    Ladder,
    /// It is one of equal steps.
    Step,
}

/// What a search does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Offer this load.
    Load(f64, Part),
    /// Nothing: the search has ended.
    End(Capacity),
}

/// The capacity on one start of the systems.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// It is this load.
    At(f64),
    /// It is this load or a larger one: the largest that could be tried passed.
    AtLeast(f64),
    /// It is below this load: the smallest that makes sense failed.
    Below(f64),
    /// It moves while it is searched for: each time that a bracket had found the region, the ladder left it.
    Unsettled,
}

/// A load that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// The load.
    pub level: f64,
    /// The part of the search that it belongs to.
    pub part: Part,
    /// True if it passed.
    pub passed: bool,
    /// The share of requests that missed the objective, over the share that may: 1 at the capacity. None where the objective
    /// is about something that has no such share.
    pub strain: Option<f64>,
}

/// A search on one start of the systems.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    range: Range,
    stage: Stage,
    brackets: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Bracket { level: f64, passed: Option<f64>, failed: Option<f64> },
    Ladder { estimate: f64, level: f64, loads: usize, passes: usize },
    Steps { step: f64, level: f64, passed: Option<f64>, failed: Option<f64> },
    Ended(Capacity),
}

impl Search {
    /// A search that knows nothing yet, or the first of equal steps.
    #[must_use]
    pub fn new(range: Range) -> Search {
        let level = range.first.min(range.most).max(range.least);
        let stage = match range.step {
            Some(step) => Stage::Steps { step, level, passed: None, failed: None },
            None => Stage::Bracket { level, passed: None, failed: None },
        };
        Search { range, stage, brackets: 1 }
    }

    /// A search on a further start, with an estimate from earlier ones.
    #[must_use]
    pub fn around(range: Range, estimate: f64) -> Search {
        Search { range, stage: ladder(estimate.min(range.most).max(range.least)), brackets: 0 }
    }

    /// The search on a further start, where the systems of this one died before its end: it keeps what the bracket has
    /// found, or the estimate from which the ladder began.
    #[must_use]
    pub fn on_another_start(self) -> Search {
        match self.stage {
            Stage::Ladder { estimate, .. } => Search::around(self.range, estimate),
            Stage::Steps { .. } => Search::new(self.range),
            Stage::Bracket { .. } | Stage::Ended(_) => self,
        }
    }

    /// What to do next.
    #[must_use]
    pub fn next(&self) -> Next {
        match self.stage {
            Stage::Bracket { level, .. } => Next::Load(level, Part::Bracket),
            Stage::Ladder { level, .. } => Next::Load(level, Part::Ladder),
            Stage::Steps { level, .. } => Next::Load(level, Part::Step),
            Stage::Ended(capacity) => Next::End(capacity),
        }
    }

    /// Takes in whether the load that was next passed.
    pub fn record(&mut self, has_passed: bool) {
        self.stage = match self.stage {
            Stage::Bracket { level, passed, failed } => {
                let passed = if has_passed { Some(level) } else { passed };
                let failed = if has_passed { failed } else { Some(level) };
                self.bracketed(level, passed, failed)
            }
            Stage::Ladder { estimate, level, loads, passes } => {
                let (loads, passes) = (loads + 1, passes + usize::from(has_passed));
                let after = moved(level, STEPS[loads - 1], has_passed);
                self.climbed(estimate, [level, after.min(self.range.most).max(self.range.least)], loads, passes)
            }
            Stage::Steps { step, level, passed, failed } => {
                let passed = if has_passed { Some(level) } else { passed };
                let failed = if has_passed { failed } else { failed.or(Some(level)) };
                let next = Stage::Steps { step, level: level + step, passed, failed };
                if level + step <= self.range.most { next } else { ended(passed, failed) }
            }
            ended @ Stage::Ended(_) => ended,
        };
    }

    /// Takes in that the load that was next cannot be offered, as the generator is at its limit.
    pub fn cannot_be_offered(&mut self) {
        match self.stage {
            Stage::Bracket { passed: Some(passed), .. } => self.stage = Stage::Ended(Capacity::AtLeast(passed)),
            Stage::Steps { passed, failed, .. } if passed.or(failed).is_some() => self.stage = ended(passed, failed),
            _ => {}
        }
    }

    /// Ends steps before the largest load: the last one was more than the system can take.
    pub fn end_steps(&mut self) {
        if let Stage::Steps { passed, failed, .. } = self.stage {
            self.stage = ended(passed, failed);
        }
    }

    fn bracketed(&self, level: f64, passed: Option<f64>, failed: Option<f64>) -> Stage {
        let Range { least, most, whole, .. } = self.range;
        let level = match (passed, failed) {
            (Some(_), None) if level >= most => return Stage::Ended(Capacity::AtLeast(most)),
            (None, Some(_)) if level <= least => return Stage::Ended(Capacity::Below(least)),
            (_, None) => (level * 2.0).min(most),
            (None, _) => (level / 2.0).max(least),
            (Some(passed), Some(failed)) => {
                let middle = (passed * failed).sqrt();
                if failed <= passed * NARROW || (whole && failed - passed <= 1.0) {
                    return ladder(middle);
                }
                middle
            }
        };
        let level = if whole { level.round() } else { level };
        Stage::Bracket { level, passed, failed }
    }

    fn climbed(&mut self, estimate: f64, [before, level]: [f64; 2], loads: usize, passes: usize) -> Stage {
        if loads < STEPS.len() {
            return Stage::Ladder { estimate, level, loads, passes };
        }
        let Range { least, most, .. } = self.range;
        match passes {
            0 if before <= least => Stage::Ended(Capacity::Below(least)),
            0 => self.another_bracket(level, None, Some(before)),
            _ if passes == loads && before >= most => Stage::Ended(Capacity::AtLeast(most)),
            _ if passes == loads => self.another_bracket(level, Some(before), None),
            _ => Stage::Ended(Capacity::At(level)),
        }
    }

    /// The region was not where it was thought to be.
    fn another_bracket(&mut self, level: f64, passed: Option<f64>, failed: Option<f64>) -> Stage {
        if self.brackets == MOST_BRACKETS {
            return Stage::Ended(Capacity::Unsettled);
        }
        self.brackets += 1;
        let level = if self.range.whole { level.round() } else { level };
        Stage::Bracket { level, passed, failed }
    }
}

/// The end of steps, with the largest one that passed and the smallest one that failed.
fn ended(passed: Option<f64>, failed: Option<f64>) -> Stage {
    Stage::Ended(match (passed, failed) {
        (Some(passed), Some(failed)) => Capacity::At((passed * failed).sqrt()),
        (Some(passed), None) => Capacity::AtLeast(passed),
        (None, Some(failed)) => Capacity::Below(failed),
        (None, None) => Capacity::Unsettled,
    })
}

fn ladder(estimate: f64) -> Stage {
    Stage::Ladder { estimate, level: estimate, loads: 0, passes: 0 }
}

/// The load a step above `level`, or below it.
fn moved(level: f64, step: f64, up: bool) -> f64 {
    if up { level * (1.0 + step) } else { level / (1.0 + step) }
}

/// The capacity that the loads of a search show, in the order in which they were tried; none where the search was cut off.
///
/// It is where the ladder ends, or where the strain of its loads [crosses](crossing) 1: in a short load of a queue near its
/// capacity, requests that miss come in bursts, so that most loads have fewer than there are on average, and a ladder, which
/// only asks which loads pass, climbs too high.
#[must_use]
pub fn capacity(tried: &[Tried]) -> Option<Capacity> {
    let last = tried.last()?;
    match last.part {
        Part::Step => Some(of_steps(tried)),
        Part::Bracket => {
            let largest = tried.iter().filter(|one| one.passed).map(|one| one.level).reduce(f64::max);
            Some(largest.map_or(Capacity::Below(last.level), Capacity::AtLeast))
        }
        Part::Ladder => {
            let mut parts = tried.chunk_by(|one, other| one.part == other.part);
            let ladder = parts.next_back()?;
            let brackets = parts.filter(|loads| loads[0].part == Part::Bracket).count();
            let (loads, passes) = (ladder.len(), ladder.iter().filter(|one| one.passed).count());
            match (loads == STEPS.len(), passes) {
                (false, _) => None,
                (true, _) if brackets == MOST_BRACKETS as usize && (passes == 0 || passes == loads) => {
                    Some(Capacity::Unsettled)
                }
                (true, 0) => Some(Capacity::Below(last.level)),
                (true, _) if passes == loads => Some(Capacity::AtLeast(last.level)),
                (true, _) => {
                    let end = moved(last.level, STEPS[loads - 1], last.passed);
                    Some(Capacity::At(crossing(ladder).unwrap_or(end)))
                }
            }
        }
    }
}

/// The capacity that equal steps show: between the largest one that passed and the smallest one that failed, where the strain
/// of the two (if both have one) crosses 1 on logarithmic axes, or in the middle.
fn of_steps(tried: &[Tried]) -> Capacity {
    let passed = tried.iter().filter(|one| one.passed).max_by(|one, other| one.level.total_cmp(&other.level));
    let failed = tried.iter().filter(|one| !one.passed).min_by(|one, other| one.level.total_cmp(&other.level));
    let (below, above) = match (passed, failed) {
        (Some(below), Some(above)) => (below, above),
        (Some(below), None) => return Capacity::AtLeast(below.level),
        (None, Some(above)) => return Capacity::Below(above.level),
        (None, None) => return Capacity::Unsettled,
    };
    let share = match (below.strain, above.strain) {
        (Some(low), Some(high)) if below.level < above.level && low > 0.0 && low < 1.0 && high > 1.0 => {
            low.ln() / (low.ln() - high.ln())
        }
        _ => 0.5,
    };
    Capacity::At(below.level * (above.level / below.level).powf(share))
}

/// How many loads of a ladder must have a strain that tells how near they were to the capacity, at least: neither none, nor
/// more than [`MOST_STRAIN`] as of a system that breaks down.
const TELLING: usize = 6;
const MOST_STRAIN: f64 = 10.0;

/// The steepest and the flattest growth of the strain that a fit may have: its logarithm over that of the load.
const SLOPES: [f64; 2] = [8.0, 60.0];

/// The load at which the mean strain is 1, by a quasi-Poisson regression with a logarithmic link (McCullagh and Nelder,
/// *Generalized Linear Models*, 1989) of the strain on the logarithm of the load; none where too few loads are telling. The
/// mean of strains is what counts over a longer time, whatever their distribution over short loads.
fn crossing(ladder: &[Tried]) -> Option<f64> {
    let telling = |one: &&Tried| one.strain.is_some_and(|strain| strain > 0.0 && strain < MOST_STRAIN);
    if ladder.iter().filter(telling).count() < TELLING {
        return None;
    }
    let points: Vec<[f64; 2]> = ladder.iter().filter_map(|one| Some([one.level.ln(), one.strain?])).collect();
    let centre = points.iter().map(|[x, _]| x).sum::<f64>() / points.len() as f64;
    let all: f64 = points.iter().map(|[_, strain]| strain).sum();
    let weights = |slope: f64| points.iter().map(|[x, _]| (slope * (x - centre)).exp()).collect::<Vec<f64>>();
    // The derivative of the likelihood by the slope, with the intercept that fits it best: it falls as the slope grows.
    let score = |slope: f64| {
        let weights = weights(slope);
        let sum: f64 = weights.iter().sum();
        points
            .iter()
            .zip(&weights)
            .map(|([x, strain], weight)| (x - centre) * (strain - all * weight / sum))
            .sum::<f64>()
    };
    let [mut flat, mut steep] = SLOPES;
    if score(flat) <= 0.0 {
        steep = flat;
    } else if score(steep) >= 0.0 {
        flat = steep;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(flat, steep);
        if score(middle) > 0.0 { flat = middle } else { steep = middle }
    }
    let slope = f64::midpoint(flat, steep);
    let intercept = (all / weights(slope).iter().sum::<f64>()).ln();
    Some((centre - intercept / slope).exp())
}

/// The number of loads that a search on a first start takes at most, if it brackets once; or of equal steps.
#[must_use]
pub fn most_loads(range: Range) -> usize {
    if let Some(step) = range.step {
        return 1 + ((range.most - range.first).max(0.0) / step).floor() as usize;
    }
    let doublings = |ratio: f64| ratio.max(1.0).log2().ceil() as usize;
    let outwards = doublings(range.most / range.first).max(doublings(range.first / range.least));
    // Two halvings of the logarithm take a bracket of a factor of 2 below 1.2.
    1 + outwards + 2 + STEPS.len()
}

/// The fewest values without a miss from which a share of misses up to `share` follows, at 95 %: `share` is 0.01 for a 99th
/// percentile, and for at most 1 % of errors. (1 − share)^n ≤ 0.05, the rule of three.
#[must_use]
pub fn values_to_show(share: f64) -> u64 {
    if share <= 0.0 || share >= 1.0 {
        return 1;
    }
    (0.05_f64.ln() / (-share).ln_1p()).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, close};
    use proptest::prelude::*;

    const RANGE: Range = Range { first: 10.0, least: 1.0, most: 1000.0, whole: true, step: None };

    /// Searches a system that carries loads below `truth`.
    fn searched(mut search: Search, passes: &mut dyn FnMut(f64) -> bool) -> (Capacity, Vec<Tried>) {
        let mut tried = Vec::new();
        loop {
            match search.next() {
                Next::End(capacity) => return (capacity, tried),
                Next::Load(level, part) => {
                    let passed = passes(level);
                    tried.push(Tried { level, part, passed, strain: None });
                    search.record(passed);
                }
            }
        }
    }

    #[test]
    fn steps_go_up_to_the_largest_load_or_to_the_end() {
        let steps = Search::new(Range { step: Some(50.0), first: 50.0, most: 220.0, ..RANGE });
        let (found, tried) = searched(steps, &mut |level| level < 120.0);
        assert_eq!(tried.iter().map(|one| one.level).collect::<Vec<f64>>(), [50.0, 100.0, 150.0, 200.0]);
        assert_eq!(tried.len(), most_loads(Range { step: Some(50.0), first: 50.0, most: 220.0, ..RANGE }));
        assert_eq!(found, Capacity::At(15_000_f64.sqrt()));
        assert_eq!(searched(steps, &mut |_| true).0, Capacity::AtLeast(200.0));
        assert_eq!(searched(steps, &mut |_| false).0, Capacity::Below(50.0));
        let mut broken = steps;
        [true, false].into_iter().for_each(|passed| broken.record(passed));
        broken.end_steps();
        assert_eq!(broken.next(), Next::End(Capacity::At(5_000_f64.sqrt())));
        let mut limited = steps;
        limited.record(true);
        limited.cannot_be_offered();
        assert_eq!(limited.next(), Next::End(Capacity::AtLeast(50.0)));
    }

    #[test]
    fn between_two_steps_the_strain_tells_where() {
        let step =
            |level: f64, strain: f64| Tried { level, part: Part::Step, passed: strain <= 1.0, strain: Some(strain) };
        let of = |tried: &[Tried]| match capacity(tried) {
            Some(Capacity::At(level)) => level,
            other => panic!("{other:?}"),
        };
        // The strain grows with the fourth power of the load.
        let truth = 130.0_f64;
        let tried: Vec<Tried> = [50.0, 100.0, 150.0, 200.0].map(|level| step(level, (level / truth).powi(4))).to_vec();
        close(of(&tried), truth, 1e-9);
        let never = [step(100.0, 0.0), step(150.0, 4.0)];
        close(of(&never), 15_000_f64.sqrt(), 1e-9);
        let contradicting = [step(100.0, 1.2), step(150.0, 0.8), step(200.0, 2.0)];
        close(of(&contradicting), 15_000_f64.sqrt(), 1e-9);
    }

    #[test]
    fn a_bracket_doubles_until_a_load_fails_and_a_ladder_ends_at_the_capacity() {
        let (found, tried) = searched(Search::new(RANGE), &mut |level| level < 100.0);
        let levels: Vec<f64> = tried.iter().map(|one| one.level).collect();
        assert_eq!(levels[..7], [10.0, 20.0, 40.0, 80.0, 160.0, 113.0, 95.0]);
        assert_eq!(tried[7].part, Part::Ladder);
        assert_eq!(tried.len(), 15);
        let Capacity::At(found) = found else { panic!("{found:?}") };
        close(found, 100.0, 1.5);
        assert_eq!(capacity(&tried), Some(Capacity::At(found)));
    }

    #[test]
    fn what_never_fails_or_always_fails_is_censored() {
        let (found, tried) = searched(Search::new(RANGE), &mut |_| true);
        assert_eq!((found, tried.len()), (Capacity::AtLeast(1000.0), 8));
        assert_eq!(capacity(&tried), Some(found));
        let (found, tried) = searched(Search::new(RANGE), &mut |_| false);
        assert_eq!((found, tried.len()), (Capacity::Below(1.0), 5));
        assert_eq!(capacity(&tried), Some(found));
        assert_eq!(capacity(&[]), None);
        let mut limited = Search::new(RANGE);
        limited.cannot_be_offered();
        assert_eq!(limited.next(), Next::Load(10.0, Part::Bracket), "nothing has passed yet");
        limited.record(true);
        limited.cannot_be_offered();
        assert_eq!(limited.next(), Next::End(Capacity::AtLeast(10.0)));
    }

    #[test]
    fn a_wrong_estimate_leads_to_another_bracket() {
        for estimate in [20.0, 600.0] {
            let (found, _) = searched(Search::around(RANGE, estimate), &mut |level| level < 100.0);
            let Capacity::At(found) = found else { panic!("{found:?}") };
            close(found, 100.0, 1.5);
        }
    }

    #[test]
    fn a_capacity_that_moves_is_not_found() {
        // Whatever a bracket finds to be too much passes on the ladder.
        let (mut search, mut tried) = (Search::around(RANGE, 50.0), Vec::new());
        while let Next::Load(level, part) = search.next() {
            let passed = part == Part::Ladder;
            tried.push(Tried { level, part, passed, strain: None });
            search.record(passed);
        }
        assert_eq!((search.next(), tried.len()), (Next::End(Capacity::Unsettled), 4 * 8 + 3));
        assert_eq!(capacity(&tried), Some(Capacity::Unsettled));
    }

    #[test]
    fn a_search_goes_on_where_the_systems_died() {
        let mut search = Search::new(RANGE);
        [true, true, false].into_iter().for_each(|passed| search.record(passed));
        assert_eq!(search.on_another_start().next(), search.next(), "a bracket keeps what it knows");
        let mut search = Search::around(RANGE, 100.0);
        [true, false].into_iter().for_each(|passed| search.record(passed));
        assert_eq!(search.on_another_start(), Search::around(RANGE, 100.0));
    }

    #[test]
    fn few_users_are_found_to_the_user() {
        for truth in [1.5, 2.5, 3.5, 7.5, 20.5] {
            let (found, _) = searched(Search::new(RANGE), &mut |level| level.round() < truth);
            let Capacity::At(found) = found else { panic!("{truth}: {found:?}") };
            assert!((found - truth).abs() < 0.7, "{truth}: {found}");
        }
    }

    #[test]
    fn a_cut_off_search_has_no_capacity() {
        let (_, tried) = searched(Search::around(RANGE, 100.0), &mut |level| level < 100.0);
        assert_eq!(tried.len(), STEPS.len());
        assert!((1..STEPS.len()).all(|loads| capacity(&tried[..loads]).is_none()));
    }

    #[test]
    fn strains_cross_where_their_mean_is_one() {
        let of =
            |level: f64, strain: f64| Tried { level, part: Part::Ladder, passed: strain <= 1.0, strain: Some(strain) };
        let levels = [100.0, 106.0, 103.0, 100.0, 101.5, 103.0, 101.5, 102.5];
        let smooth: Vec<Tried> = levels.iter().map(|level| of(*level, (level / 104.0).powf(20.0))).collect();
        let Some(Capacity::At(found)) = capacity(&smooth) else { panic!("{:?}", capacity(&smooth)) };
        close(found, 104.0, 0.01);
        let breaks_down: Vec<Tried> =
            levels.iter().map(|level| of(*level, if *level < 102.0 { 0.0 } else { 20.0 })).collect();
        let Some(Capacity::At(found)) = capacity(&breaks_down) else { panic!("{:?}", capacity(&breaks_down)) };
        close(found, 102.5 / 1.01, 1e-9);
        // Strains that fall with the load have no crossing of their own; the flattest slope keeps it near the loads.
        let falls: Vec<Tried> = levels.iter().map(|level| of(*level, (100.0 / level).powf(20.0) * 1.2)).collect();
        let Some(Capacity::At(found)) = capacity(&falls) else { panic!("{:?}", capacity(&falls)) };
        assert!((98.0..110.0).contains(&found), "{found}");
    }

    #[test]
    fn values_to_show_are_those_of_the_rule_of_three() {
        assert_eq!([0.05, 0.01, 0.001].map(values_to_show), [59, 299, 2995]);
        assert_eq!([0.0, 1.0].map(values_to_show), [1, 1]);
    }

    #[test]
    fn loads_that_pass_by_chance_are_averaged_out() {
        let mut noise = Noise::new(7);
        let logs: Vec<f64> = (0..2000)
            .map(|_| {
                let mut passes = |level: f64| level < 300.0 * (0.02 * noise.normal()).exp();
                let Capacity::At(found) = searched(Search::around(RANGE, 300.0), &mut passes).0 else {
                    panic!("the capacity is inside the range")
                };
                (found / 300.0).ln()
            })
            .collect();
        let mean = crate::mean(&logs).expect("values");
        let sd = crate::standard_deviation(&logs).expect("values");
        assert!(mean.abs() < 0.002 && sd < 0.02, "{mean}, {sd}");
    }

    proptest! {
        #[test]
        fn every_search_ends(seed in 0_u64..5000, first in 1.0..1e5_f64, most in 1.0..1e6_f64, whole: bool) {
            let (mut noise, most) = (Noise::new(seed), if whole { most.floor() } else { most });
            let range = Range { first, least: 1.0, most, whole, step: None };
            let (found, tried) = searched(Search::new(range), &mut |_| noise.uniform() < 0.5);
            let most_tried = 3 * most_loads(Range { first: 1.0, least: 1.0, ..range }) + 60;
            prop_assert!(tried.len() <= most_tried);
            prop_assert!(tried.iter().all(|one| one.level >= 1.0 && one.level <= most.max(1.0)));
            prop_assert!(capacity(&tried).is_some(), "{:?}", found);
        }
    }
}
