//! How many turns a start should have, and how many starts a study, when starts and the turns on them each have a
//! variance of their own.
//!
//! Kalibera and Jones, *Rigorous Benchmarking in Reasonable Time* (2013): see [`levels`](crate::levels), which has the
//! same for any number of levels whose values count in full. Here a start is summarised by a trimmed mean of its turns.

use crate::sample::{mean, standard_deviation};
use crate::t::t_quantile;

/// The fewest turns that are advised: with less, a trimmed mean has next to nothing to drop.
pub const FEWEST_TURNS: u32 = 8;

/// The most turns that are advised: beyond, what a machine does over minutes differs between turns of one start.
pub const MOST_TURNS: u32 = 200;

/// A start as its turns summarise it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartOfTurns {
    /// The mean of its turns, which may be trimmed.
    pub value: f64,
    /// The square of the standard error of that mean.
    pub squared_error: f64,
    /// The number of turns.
    pub turns: usize,
}

/// The variances of starts and of turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoLevels {
    /// The variance of turns on one start. For trimmed means it is that of plain turns whose mean would be as exact:
    /// the squared standard error times the number of turns.
    pub of_turns: f64,
    /// The variance that starts add. Below zero where the values of starts vary less by chance than their turns
    /// explain; wherever it is used it counts as zero then.
    pub of_starts: f64,
}

/// The time that each level takes, in the same unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Of a start, without its turns: to set it up, warm it up and stop it.
    pub start: f64,
    /// Of a turn: a slice of each variant.
    pub turn: f64,
}

impl TwoLevels {
    /// What is assumed of a study before anything is known of it: starts add 15 % of the standard deviation of a turn.
    /// Whether they add nothing or more than twice as much, the lengths that follow from it give nearly the narrowest
    /// interval of their time.
    pub const ASSUMED: TwoLevels = TwoLevels { of_turns: 1.0, of_starts: 0.15 * 0.15 };

    /// Estimates both by analysis of variance: the variance of the starts' values, less what the turns explain of it.
    /// `None` for fewer than two starts, or numbers that are not finite.
    #[must_use]
    pub fn of(starts: &[StartOfTurns]) -> Option<TwoLevels> {
        let each = |of: fn(&StartOfTurns) -> f64| starts.iter().map(of).collect::<Vec<f64>>();
        let between = standard_deviation(&each(|start| start.value))?.powi(2);
        let explained = mean(&each(|start| start.squared_error))?;
        let of_turns = mean(&each(|start| start.squared_error * start.turns as f64))?;
        Some(TwoLevels { of_turns, of_starts: between - explained })
    }

    /// The mean of several estimates; `None` for none.
    #[must_use]
    pub fn mean_of(all: &[TwoLevels]) -> Option<TwoLevels> {
        let each = |of: fn(&TwoLevels) -> f64| mean(&all.iter().map(of).collect::<Vec<f64>>());
        Some(TwoLevels { of_turns: each(|one| one.of_turns)?, of_starts: each(|one| one.of_starts)? })
    }

    /// The standard deviation of turns.
    #[must_use]
    pub fn sd_of_turns(&self) -> f64 {
        self.of_turns.max(0.0).sqrt()
    }

    /// The standard deviation that starts add.
    #[must_use]
    pub fn sd_of_starts(&self) -> f64 {
        self.of_starts.max(0.0).sqrt()
    }

    /// The variance of the value of a start with so many turns.
    #[must_use]
    pub fn of_a_start(&self, turns: u32) -> f64 {
        self.of_starts.max(0.0) + self.of_turns.max(0.0) / f64::from(turns.max(1))
    }

    /// The number of turns on a start with which an interval of a given width takes the least time:
    /// √(cost of a start / cost of a turn · variance of turns / variance of starts), rounded up, from [`FEWEST_TURNS`]
    /// to [`MOST_TURNS`]. Where starts add no variance the most, where turns have none the fewest.
    #[must_use]
    pub fn turns_per_start(&self, costs: Costs) -> u32 {
        let best = (costs.start.max(0.0) / costs.turn * self.of_turns.max(0.0) / self.of_starts.max(0.0)).sqrt();
        // Neither starts nor turns vary, or nothing takes time: no number is better than another.
        if best.is_nan() { FEWEST_TURNS } else { best.ceil().clamp(FEWEST_TURNS.into(), MOST_TURNS.into()) as u32 }
    }

    /// The time that an interval of a given width takes with so many turns on a start, in proportion.
    #[must_use]
    pub fn time(&self, turns: u32, costs: Costs) -> f64 {
        self.of_a_start(turns) * (costs.start + costs.turn * f64::from(turns))
    }

    /// The number of turns on a start, from [`FEWEST_TURNS`] to [`MOST_TURNS`], whose interval is the narrowest if all starts
    /// together take `time`. `None` if that is too little for two starts of [`FEWEST_TURNS`].
    #[must_use]
    pub fn turns_within(&self, time: f64, costs: Costs, alpha: f64) -> Option<u32> {
        let half_width = |turns: &u32| self.half_width_within(*turns, time, costs, alpha);
        let widths = (FEWEST_TURNS..=MOST_TURNS).filter_map(|turns| Some((turns, half_width(&turns)?)));
        widths.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(turns, _)| turns)
    }

    /// How far Student's interval at `1 - alpha` reaches to either side, over as many starts of so many turns as `time`
    /// has room for; `None` for fewer than two.
    #[must_use]
    pub fn half_width_within(&self, turns: u32, time: f64, costs: Costs, alpha: f64) -> Option<f64> {
        let starts = (time / (costs.start + costs.turn * f64::from(turns))).floor();
        (starts >= 2.0).then(|| t_quantile(1.0 - alpha / 2.0, starts - 1.0) * (self.of_a_start(turns) / starts).sqrt())
    }

    /// The least number of starts whose Student's interval at `1 - alpha` reaches no further than `half_width` to
    /// either side, if the variances are as they seem; `None` where even `most` are not enough, or a number is out of
    /// range.
    #[must_use]
    pub fn starts_needed(&self, turns: u32, half_width: f64, alpha: f64, most: usize) -> Option<usize> {
        if !(half_width > 0.0 && alpha > 0.0 && alpha < 1.0) {
            return None;
        }
        let variance = self.of_a_start(turns);
        let enough =
            |n: usize| t_quantile(1.0 - alpha / 2.0, (n - 1) as f64) * (variance / n as f64).sqrt() <= half_width;
        (2..=most).find(|n| enough(*n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::Levels;
    use crate::testing::{Noise, close};
    use crate::trimmed::trimmed;
    use proptest::prelude::*;

    fn starts(values: &[f64], turns: usize, share: f64) -> Vec<StartOfTurns> {
        let start = |of_start: &[f64]| {
            let found = trimmed(of_start, share).expect("values");
            StartOfTurns { value: found.mean, squared_error: found.squared_error.expect("several"), turns }
        };
        values.chunks(turns).map(start).collect()
    }

    #[test]
    fn without_trimming_it_is_the_design_of_two_levels() {
        let values = [9.0, 5.0, 8.0, 3.0, 10.0, 6.0, 7.0, 11.0, 1.0, 12.0, 2.0, 4.0];
        let levels = Levels::new(&values, &[3, 4]).expect("it fits");
        let found = TwoLevels::of(&starts(&values, 4, 0.0)).expect("three starts");
        close(found.of_turns, levels.unbiased[0], 1e-12);
        close(found.of_starts, levels.unbiased[1], 1e-12);
        // Kalibera and Jones: √(100/1 · 12.67/0.41) = 55, of which no bound is in the way.
        let best = levels.optimal_repetitions(&[100.0, 1.0]).expect("costs")[0].expect("both vary");
        assert_eq!(found.turns_per_start(Costs { start: 100.0, turn: 1.0 }), best.ceil() as u32);
    }

    #[test]
    fn both_variances_are_found_again() {
        let mut noise = Noise::new(17);
        let (mut of_turns, mut of_starts) = (0.0, 0.0);
        for _ in 0..400 {
            let values: Vec<f64> = (0..8)
                .flat_map(|_| {
                    let start = 0.02 * noise.normal();
                    (0..20).map(|_| start + 0.09 * noise.normal()).collect::<Vec<f64>>()
                })
                .collect();
            let found = TwoLevels::of(&starts(&values, 20, 0.25)).expect("starts");
            of_turns += found.of_turns / 400.0;
            of_starts += found.of_starts / 400.0;
        }
        // Trimming a quarter from either end of normal values costs a sixth: the variance counts 1.2 times.
        assert!((of_turns.sqrt() - 0.09 * 1.2_f64.sqrt()).abs() < 0.005, "{of_turns}");
        assert!((of_starts.sqrt() - 0.02).abs() < 0.003, "{of_starts}");
    }

    #[test]
    fn turns_follow_from_costs_and_variances() {
        let levels = |turns: f64, starts: f64| TwoLevels { of_turns: turns, of_starts: starts };
        let costs = Costs { start: 12.0, turn: 1.2 };
        for (two, turns) in [
            (levels(0.09 * 0.09, 0.012 * 0.012), 24), // √(10 · 56.25) = 23.7
            (levels(0.01, 0.01), FEWEST_TURNS),
            (levels(1.0, 0.000_01), MOST_TURNS),
            (levels(0.01, 0.0), MOST_TURNS),
            (levels(0.01, -0.001), MOST_TURNS),
            (levels(0.0, 0.01), FEWEST_TURNS),
            (levels(0.0, 0.0), FEWEST_TURNS),
        ] {
            assert_eq!(two.turns_per_start(costs), turns, "{two:?}");
        }
        for costs in [Costs { start: 0.0, turn: 1.0 }, Costs { start: 1.0, turn: 0.0 }, Costs { start: 0.0, turn: 0.0 }]
        {
            assert!((FEWEST_TURNS..=MOST_TURNS).contains(&levels(0.01, 0.01).turns_per_start(costs)), "{costs:?}");
        }
    }

    #[test]
    fn turns_follow_from_a_time() {
        let costs = Costs { start: 3.0, turn: 1.2 };
        let turns = |time| TwoLevels::ASSUMED.turns_within(time, costs, 0.05);
        assert_eq!([10.0, 80.0, 300.0].map(turns), [None, Some(8), Some(10)]);
        // What the variances would have asked for, had they been known, is narrower by a ninth at most.
        for (sd_of_starts, time) in
            [0.0, 0.1, 0.2, 0.4].into_iter().flat_map(|sd| [80.0, 300.0, 600.0].map(|time| (sd, time)))
        {
            let known = TwoLevels { of_turns: 1.0, of_starts: sd_of_starts * sd_of_starts };
            let width = |turns: Option<u32>| known.half_width_within(turns?, time, costs, 0.05);
            let (best, chosen) = (width(known.turns_within(time, costs, 0.05)), width(turns(time)));
            let loss = chosen.expect("room") / best.expect("room");
            assert!((1.0..1.125).contains(&loss), "{sd_of_starts} {time}: {loss}");
        }
    }

    #[test]
    fn starts_follow_from_the_width() {
        // Six starts with a standard deviation of 0.01: 2.571 · 0.01 / √6 = 0.0105; five: 0.0124.
        let two = TwoLevels { of_turns: 0.0016, of_starts: 0.000_02 };
        close(two.of_a_start(20), 0.0001, 1e-12);
        assert_eq!(two.starts_needed(20, 0.0106, 0.05, 100), Some(6));
        assert_eq!(two.starts_needed(20, 0.0123, 0.05, 100), Some(6));
        assert_eq!(two.starts_needed(20, 0.0125, 0.05, 100), Some(5));
        assert_eq!(two.starts_needed(20, 1e-6, 0.05, 100), None);
        assert_eq!(two.starts_needed(20, 0.0, 0.05, 100), None);
        assert_eq!(TwoLevels { of_turns: 0.0, of_starts: -1.0 }.starts_needed(8, 0.01, 0.05, 100), Some(2));
    }

    #[test]
    fn one_start_shows_no_variance_of_starts() {
        assert_eq!(TwoLevels::of(&[]), None);
        assert_eq!(TwoLevels::of(&[StartOfTurns { value: 1.0, squared_error: 0.1, turns: 8 }]), None);
        assert_eq!(TwoLevels::mean_of(&[]), None);
    }

    proptest! {
        #[test]
        fn no_other_number_of_turns_takes_less_time(
            turns in 1e-6..1.0_f64,
            starts in 1e-6..1.0_f64,
            start in 0.1..100.0_f64,
            turn in 0.1..100.0_f64,
            other in FEWEST_TURNS..=MOST_TURNS,
        ) {
            let (two, costs) = (TwoLevels { of_turns: turns, of_starts: starts }, Costs { start, turn });
            let best = two.turns_per_start(costs);
            // Rounded up, so it may be one more than the best whole number.
            prop_assert!(two.time(best, costs) <= two.time(other, costs) * 1.01);
        }
    }
}
