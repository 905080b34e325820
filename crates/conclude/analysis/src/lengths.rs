//! How many turns a start should have, and how many starts a study, from what this one shows of both.

use crate::compare::Comparison;
use crate::decide::MAX_FORECAST_REPEATS;
use crate::input::Input;
use crate::verdict::Outcome;
use plimsoll_model::measure::Measure;
use plimsoll_model::result::{LoadResult, Slice, StartResult};
use plimsoll_statistics::{Costs, TwoLevels, mean, t_quantile};

/// The design at hand, and the one that gives the same width in the least time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths {
    /// The measure that it is about: the first that decides.
    pub measure: Measure,
    /// The variances of turns and of starts: the mean of all comparisons in that measure.
    pub levels: TwoLevels,
    /// What a start and a turn took, in seconds.
    pub costs: Costs,
    /// Turns on a start in this study.
    pub turns: u32,
    /// Turns on a start that take the least time.
    pub best: u32,
    /// The time that those take for intervals as wide as these, over the time of this study.
    pub time: f64,
    /// The starts that they take; none above [`MAX_FORECAST_REPEATS`].
    pub starts: Option<usize>,
}

impl Lengths {
    /// The best design takes this share of the time, or less: it is worth a change of the study.
    pub const WORTH_A_CHANGE: f64 = 0.5;

    /// True if another number of turns gives the same in half the time or less.
    #[must_use]
    pub fn worth_a_change(&self) -> bool {
        self.time <= Lengths::WORTH_A_CHANGE
    }
}

/// The lengths that the comparisons in the first measure that decides ask for; none without turns.
pub(crate) fn lengths(input: &Input, comparisons: &[Comparison], alpha: f64) -> Option<Lengths> {
    let turns = input.plan.design.turns()?.count;
    let measure = crate::catalogue::headline(&input.facts).measure;
    let is_void = |one: &Comparison| one.verdict.as_ref().is_some_and(|verdict| verdict.outcome == Outcome::Void);
    let of_measure: Vec<&Comparison> =
        comparisons.iter().filter(|one| one.measure == measure && !is_void(one)).collect();
    let each: Vec<TwoLevels> = of_measure.iter().filter_map(|one| one.in_turns.as_ref()?.levels).collect();
    let levels = TwoLevels::mean_of(&each)?;
    let costs = costs(input, turns)?;
    let best = levels.turns_per_start(costs);
    let (at_hand, least) = (levels.time(turns, costs), levels.time(best, costs));
    let repeats = of_measure.iter().map(|one| one.pairs.len()).max().filter(|repeats| *repeats >= 2)?;
    let half_width =
        t_quantile(1.0 - alpha / 2.0, (repeats - 1) as f64) * (levels.of_a_start(turns) / repeats as f64).sqrt();
    let starts = levels.starts_needed(best, half_width, alpha, MAX_FORECAST_REPEATS);
    let time = if at_hand > 0.0 { least / at_hand } else { 1.0 };
    Some(Lengths { measure, levels, costs, turns, best, time, starts })
}

/// What a start and a turn took, as means over the starts that count.
fn costs(input: &Input, turns: u32) -> Option<Costs> {
    let each: Vec<(f64, f64)> = input
        .starts
        .iter()
        .filter(|start| start.validity().counts())
        .filter_map(|start| Some((start.summary.timing.took.seconds(), seconds_of_turn(start)?)))
        .collect();
    let turn = mean(&each.iter().map(|(_, turn)| *turn).collect::<Vec<f64>>()).filter(|turn| *turn > 0.0)?;
    let start = mean(&each.iter().map(|(start, _)| *start).collect::<Vec<f64>>())?;
    Some(Costs { start: (start - turn * f64::from(turns)).max(0.0), turn })
}

/// How long a turn took: the mean distance of the slices of a variant, from the second turn on. The first turn has the
/// warm-up.
fn seconds_of_turn(start: &StartResult) -> Option<f64> {
    let of_load = |load: &LoadResult| {
        let mut later = load.slices.iter().filter(|slice| slice.turn > 1);
        let (first, last): (&Slice, &Slice) = (later.next()?, later.next_back()?);
        Some(last.zero.since(first.zero).seconds() / f64::from(last.turn - first.turn))
    };
    mean(&start.loads.iter().filter_map(of_load).collect::<Vec<f64>>())
}
