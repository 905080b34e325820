//! The search for the largest load that a system carries, by loads that pass or fail.
//!
//! A *bracket* finds the region: twice the load after a pass, half of it after a failure, until a load that passed and one
//! that failed are near each other. A *ladder* finds the place: short loads around an estimate, each a step above the one
//! before it after a pass, a step below after a failure, the steps getting smaller each time that the direction turns, and
//! larger again where it does not. The mean of its levels is the capacity on this start of the systems: one value of many, as
//! loads near the capacity pass or fail by chance, and as starts differ. One bisection would give a single value that looks
//! exact and scatters as much.
//!
//! On a machine that changes its speed, loads contradict one another: one passes that is larger than one that failed. Then
//! the steps of a ladder are as large as that, or as starts differ, it goes on for longer, and the interval over the starts is no
//! narrower than the loads of one start agree.
//!
//! Loads that go up by equal steps, as of a stress test, are tried in the same way: they show how a system does over a whole
//! range, and the capacity only as well as their distance allows.
//!
//! The ladder is an up-and-down design (Dixon and Mood, *A Method for Obtaining and Analyzing Sensitivity Data*, 1948) whose
//! steps shrink at turns (Kesten, *Accelerated Stochastic Approximation*, 1958) and whose levels are averaged (Polyak and
//! Juditsky, *Acceleration of Stochastic Approximation by Averaging*, 1992); its numbers are chosen by simulation, which
//! docs/method-evidence.md shows.

mod ladder;

pub use self::ladder::{CONTRADICTION, LOADS, MOST_LOADS};

use self::ladder::Ladder;
use crate::t::{Summary, TTest};

/// A bracket is narrow enough where the load that failed is at most this many times the one that passed: a ladder from
/// its middle reaches beyond both ends.
const NARROW: f64 = 1.2;

/// By how much of itself a sum of decimal fractions may be off.
const ROUNDING: f64 = 1e-9;

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

impl Range {
    /// The load that is a step above this one, if it is not beyond the largest. Sums of decimal fractions are not exact: a load that
    /// is beyond it by next to nothing is the largest.
    fn step_above(&self, level: f64, step: f64) -> Option<f64> {
        let above = level + step;
        (above <= self.most * (1.0 + ROUNDING)).then(|| above.min(self.most))
    }
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
    seen: Seen,
}

/// How far loads and starts disagree, as a search knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    /// How far earlier starts disagree: see [`Search::around`].
    earlier: f64,
    /// The largest load of a ladder that passed on this start, and the smallest that failed.
    passed: f64,
    failed: f64,
}

impl Seen {
    fn nothing(earlier: f64) -> Seen {
        Seen { earlier, passed: 0.0, failed: f64::INFINITY }
    }

    fn with(self, level: f64, has_passed: bool) -> Seen {
        match has_passed {
            true => Seen { passed: self.passed.max(level), ..self },
            false => Seen { failed: self.failed.min(level), ..self },
        }
    }

    /// The [`contradiction`] on this start.
    fn here(self) -> f64 {
        (self.passed / self.failed).ln().max(0.0)
    }

    fn disagreement(self) -> f64 {
        self.here().max(self.earlier)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Bracket { level: f64, passed: Option<f64>, failed: Option<f64> },
    Ladder { estimate: f64, ladder: Ladder },
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
        Search { range, stage, brackets: 1, seen: Seen::nothing(0.0) }
    }

    /// A search on a further start, with an estimate from earlier ones. `disagreement` is how far those disagree: the logarithm of
    /// the largest capacity over the smallest, or the widest [`contradiction`] on one of them.
    #[must_use]
    pub fn around(range: Range, estimate: f64, disagreement: f64) -> Search {
        let stage = ladder_around(estimate.min(range.most).max(range.least));
        Search { range, stage, brackets: 0, seen: Seen::nothing(disagreement) }
    }

    /// The search on a further start, where the systems of this one died before its end: it keeps what the bracket has
    /// found, or the estimate from which the ladder began.
    #[must_use]
    pub fn on_another_start(self) -> Search {
        match self.stage {
            Stage::Ladder { estimate, .. } => Search::around(self.range, estimate, self.seen.earlier),
            Stage::Steps { .. } => Search::new(self.range),
            Stage::Bracket { .. } | Stage::Ended(_) => self,
        }
    }

    /// What to do next.
    #[must_use]
    pub fn next(&self) -> Next {
        match self.stage {
            Stage::Bracket { level, .. } => Next::Load(level, Part::Bracket),
            Stage::Ladder { ladder, .. } => Next::Load(ladder.level, Part::Ladder),
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
            Stage::Ladder { estimate, ladder } => {
                self.seen = self.seen.with(ladder.level, has_passed);
                let after =
                    ladder.after(has_passed, self.seen.disagreement()).within(self.range.least, self.range.most);
                self.climbed(estimate, ladder.level, after)
            }
            Stage::Steps { step, level, passed, failed } => {
                let passed = if has_passed { Some(level) } else { passed };
                let failed = if has_passed { failed } else { failed.or(Some(level)) };
                match self.range.step_above(level, step) {
                    Some(level) => Stage::Steps { step, level, passed, failed },
                    None => ended(passed, failed),
                }
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
                    return ladder_around(middle);
                }
                middle
            }
        };
        let level = if whole { level.round() } else { level };
        Stage::Bracket { level, passed, failed }
    }

    /// The stage after a load at `before`, with which the ladder has come to where it is.
    fn climbed(&mut self, estimate: f64, before: f64, ladder: Ladder) -> Stage {
        let Some(mean) = ladder.mean().filter(|_| ladder.is_over(self.seen.here())) else {
            return Stage::Ladder { estimate, ladder };
        };
        let Range { least, most, .. } = self.range;
        match ladder.one_way() {
            Some(false) if before <= least => Stage::Ended(Capacity::Below(least)),
            Some(false) => self.another_bracket(ladder.level, None, Some(before)),
            Some(true) if before >= most => Stage::Ended(Capacity::AtLeast(most)),
            Some(true) => self.another_bracket(ladder.level, Some(before), None),
            None => Stage::Ended(Capacity::At(mean)),
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

fn ladder_around(estimate: f64) -> Stage {
    Stage::Ladder { estimate, ladder: Ladder::at(estimate) }
}

/// The capacity that the loads of a search show, in the order in which they were tried; none where the search was cut off before
/// its ladder had [`LOADS`] loads.
///
/// It is the mean of the ladder's levels, or where the strain of its loads [crosses](crossing) 1: in a short load of a queue
/// near its capacity, requests that miss come in bursts, so that most loads have fewer than there are on average, and a
/// ladder, which only asks which loads pass, climbs too high.
#[must_use]
pub fn capacity(tried: &[Tried]) -> Option<Capacity> {
    let last = tried.last()?;
    match last.part {
        Part::Step => Some(of_steps(tried)),
        Part::Bracket => Some(of_last_bracket(tried, last.level)),
        Part::Ladder => {
            let mut parts = tried.chunk_by(|one, other| one.part == other.part);
            let loads = parts.next_back()?;
            let brackets = parts.filter(|loads| loads[0].part == Part::Bracket).count();
            let ladder = Ladder::of(loads.iter().map(|one| (one.level, one.passed)));
            let mean = ladder.mean()?;
            Some(match ladder.one_way() {
                Some(_) if brackets == MOST_BRACKETS as usize => Capacity::Unsettled,
                Some(false) => Capacity::Below(last.level),
                Some(true) => Capacity::AtLeast(last.level),
                None => Capacity::At(crossing(loads).unwrap_or(mean)),
            })
        }
    }
}

/// The bound that the last bracket shows, where a search ended in it or was cut off; `last` is its last level. A
/// bracket after a ladder begins from the last load of that ladder. Loads before it count for nothing: the ladder has
/// shown that the region was another, or that the machine has changed its speed since then.
fn of_last_bracket(tried: &[Tried], last: f64) -> Capacity {
    let loads = tried.iter().rev().take_while(|one| one.part == Part::Bracket).count();
    let counting = tried.iter().rev().take(loads + 1);
    let largest = counting.filter(|one| one.passed).map(|one| one.level).reduce(f64::max);
    largest.map_or(Capacity::Below(last), Capacity::AtLeast)
}

/// How far the loads of a search's ladders contradict one another: the logarithm of the largest that passed over the smallest that
/// failed, or 0. Loads of a bracket do not count: they may be shorter, and are further apart.
#[must_use]
pub fn contradiction(tried: &[Tried]) -> f64 {
    let of_ladders = tried.iter().filter(|one| one.part == Part::Ladder);
    of_ladders.fold(Seen::nothing(0.0), |seen, one| seen.with(one.level, one.passed)).here()
}

/// The mean of the logarithms of the capacities of several starts, from which their interval follows; none of fewer than two.
///
/// `widest` is the largest [`contradiction`] on one of the starts. Half of it is the least that their standard deviation is
/// taken for: where all starts met the machine at the same one of its speeds by chance, they agree better than they should.
#[must_use]
pub fn over_starts(capacities: &[f64], widest: f64) -> Option<TTest> {
    let logs: Vec<f64> = capacities.iter().map(|value| value.ln()).collect();
    let summary = Summary::of(&logs)?;
    Summary { sd: summary.sd.max(widest / 2.0), ..summary }.one_sample()
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
/// *Generalized Linear Models*, 1989) of the strain on the logarithm of the load; none where too few loads are telling, or one
/// failed for something that has no strain, or had too few requests: the fit would not know of it. The mean of strains is what counts over a longer
/// time, whatever their distribution over short loads.
fn crossing(ladder: &[Tried]) -> Option<f64> {
    if ladder.iter().any(|one| !one.passed && one.strain.is_none()) {
        return None;
    }
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

/// The number of loads that a search on a first start takes at most, if it brackets once and its loads do not contradict one
/// another; or of equal steps.
#[must_use]
pub fn most_loads(range: Range) -> usize {
    if let Some(step) = range.step {
        return 1 + ((range.most * (1.0 + ROUNDING) - range.first).max(0.0) / step).floor() as usize;
    }
    let doublings = |ratio: f64| ratio.max(1.0).log2().ceil() as usize;
    let outwards = doublings(range.most / range.first).max(doublings(range.first / range.least));
    // Two halvings of the logarithm take a bracket of a factor of 2 below 1.2.
    1 + outwards + 2 + LOADS
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

/// The values of which so many may miss that what misses can be weighed: `share` is 0.05 for a 95th percentile. Misses of a queue
/// come in bursts, and with fewer of them a load says too little of how many there are over a longer time.
#[must_use]
pub fn values_to_weigh(share: f64) -> f64 {
    MISSES / share
}

/// See [`values_to_weigh`]; chosen by simulation, which docs/method-evidence.md shows.
pub const MISSES: f64 = 100.0;

#[cfg(test)]
mod tests;
