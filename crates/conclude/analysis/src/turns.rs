//! What the turns of starts show: the ratio of each start, how much starts and turns differ, and what a slice does to the
//! next one, or to the one beside it. On numbers alone, so that simulations call exactly the rules of the product.

use crate::effect::{ends, natural_interval};
use crate::estimate::MIN_REPEATS;
use plimsoll_model::measure::Measure;
use plimsoll_statistics::trimmed::dropped;
use plimsoll_statistics::{Interval, StartOfTurns, TTest, TwoLevels, mean_of_trimmed, one_sample, rank_slope, trimmed};

/// The share of the turns of a start that is dropped from either end of their ratios.
pub const TRIMMED: f64 = 0.25;

/// What the turns of a comparison show beside its size.
#[derive(Clone, Debug, PartialEq)]
pub struct InTurns {
    /// The variances of turns and of starts, of the log ratio; none for fewer than two starts.
    pub levels: Option<TwoLevels>,
    /// What a slice of the variant does to others; none for a noise floor, without a duplicate, and for fewer than two
    /// starts that show it.
    pub influence: Option<Influence>,
}

/// The ratio of two variants on a start on which they took turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartRatio {
    /// The geometric mean of the baseline over the turns that are kept.
    pub baseline: f64,
    /// The same of the variant: over that of the baseline, it is the trimmed mean ratio.
    pub variant: f64,
    /// The logarithm of the ratio, with its error.
    pub of_turns: Option<StartOfTurns>,
}

/// The ratio of a start from the values of baseline and variant in its turns: their geometric means over the turns that
/// are left when [`TRIMMED`] of them is dropped from either end of their ratios. A machine that changes its speed spoils
/// the ratio of one turn, and no other. None without turns, and where a value is not above zero.
#[must_use]
pub fn ratio(turns: &[(f64, f64)]) -> Option<StartRatio> {
    if turns.is_empty() || !turns.iter().all(|(baseline, variant)| *baseline > 0.0 && *variant > 0.0) {
        return None;
    }
    let mut logs: Vec<(f64, f64)> = turns.iter().map(|(baseline, variant)| (baseline.ln(), variant.ln())).collect();
    logs.sort_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
    let dropped = dropped(logs.len(), TRIMMED);
    let kept = &logs[dropped..logs.len() - dropped];
    let mean = |of: fn(&(f64, f64)) -> f64| kept.iter().map(of).sum::<f64>() / kept.len() as f64;
    let ratios: Vec<f64> = logs.iter().map(|(baseline, variant)| variant - baseline).collect();
    let of_turns = trimmed(&ratios, TRIMMED).and_then(|found| {
        Some(StartOfTurns { value: found.mean, squared_error: found.squared_error?, turns: turns.len() })
    });
    Some(StartRatio { baseline: mean(|log| log.0).exp(), variant: mean(|log| log.1).exp(), of_turns })
}

/// The ratio of a start whose turns have the baseline, its duplicate and the variant: the mean of the ratios to each of the
/// two. Each is trimmed by itself. Where slices are skewed, the ratio of one value to the mean of two others is skewed even
/// if all three are equal, and its trimmed mean is off; the ratio of two equal values is never skewed. None as for
/// [`ratio`].
#[must_use]
pub fn ratio_to_both(turns: &[[f64; 3]]) -> Option<StartRatio> {
    let [to_baseline, to_duplicate] =
        [0, 1].map(|copy| turns.iter().map(|turn| (turn[copy], turn[2])).collect::<Vec<(f64, f64)>>());
    let logs = |pairs: &[(f64, f64)]| pairs.iter().map(|(one, variant)| (variant / one).ln()).collect::<Vec<f64>>();
    let (first, second) = (ratio(&to_baseline)?, ratio(&to_duplicate)?);
    let of_turns = mean_of_trimmed(&logs(&to_baseline), &logs(&to_duplicate), TRIMMED).and_then(|found| {
        Some(StartOfTurns { value: found.mean, squared_error: found.squared_error?, turns: turns.len() })
    });
    Some(StartRatio {
        baseline: (first.baseline * second.baseline).sqrt(),
        variant: (first.variant * second.variant).sqrt(),
        of_turns,
    })
}

/// The baseline and its duplicate in a turn: who had the slice before each, and how much the two differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnOfDuplicates {
    /// The systems whose slice came right before that of the baseline.
    pub before_baseline: Before,
    /// The systems whose slice came right before that of the duplicate.
    pub before_duplicate: Before,
    /// ln(baseline / duplicate).
    pub difference: f64,
}

/// The systems whose slice came right before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The variant whose carry-over is looked for.
    Variant,
    /// The same systems: they had two slices in a row, and nothing took turns.
    Itself,
    /// Any others; where one variant is compared, the other of baseline and duplicate.
    Other,
}

/// The carry-over on one start, as a log ratio: by how much more a slice of the baseline or of its duplicate reads right
/// after a slice of the variant than after any other. The two are the same systems, loaded in the same turn; in some
/// turns the baseline follows the variant, in some the duplicate, in others neither. So it is the slope of their
/// difference over which of them followed, by ranks: a machine that changes its speed in one turn hardly matters.
///
/// None where no turn differs from the others in that.
#[must_use]
pub fn carry_over_of_start(turns: &[TurnOfDuplicates]) -> Option<InfluenceOfStart> {
    let follows = |before: Before| f64::from(u8::from(before == Before::Variant));
    let points: Vec<(f64, f64)> = turns
        .iter()
        .filter(|turn| turn.before_baseline != Before::Itself && turn.before_duplicate != Before::Itself)
        .map(|turn| (follows(turn.before_baseline) - follows(turn.before_duplicate), turn.difference))
        .collect();
    let followed: f64 = turns.iter().map(|turn| follows(turn.before_baseline) + follows(turn.before_duplicate)).sum();
    Some(InfluenceOfStart { value: rank_slope(&points)?, share: followed / (2 * turns.len()) as f64 })
}

/// The interference on one start, as a log ratio: by how much more the baseline reads beside the variant than beside its
/// duplicate, which is the same system as itself. Of each turn this takes the two values, and of the turns their trimmed
/// mean ratio. None without turns, and where a value is not above zero.
#[must_use]
pub fn interference_of_start(turns: &[(f64, f64)]) -> Option<InfluenceOfStart> {
    let beside_duplicate_first: Vec<(f64, f64)> =
        turns.iter().map(|(variant, duplicate)| (*duplicate, *variant)).collect();
    let found = ratio(&beside_duplicate_first)?;
    Some(InfluenceOfStart { value: (found.variant / found.baseline).ln(), share: 1.0 })
}

/// What slices of a variant do to those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfluenceKind {
    /// They leave something to the next ones, which carry it over.
    CarryOver,
    /// They interfere with those that run at the same time.
    Interference,
}

/// The influence on a start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InfluenceOfStart {
    /// By how much more a slice reads under the influence of the variant, as a log ratio.
    pub value: f64,
    /// The share of the slices that the variant is compared with that are under it.
    pub share: f64,
}

/// What a slice of a variant does to others: by how much more a slice of the baseline reads right after, or beside, one
/// of the variant than after or beside one of the same systems as its own. On the additive scale of
/// [`decide`](crate::decide).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Influence {
    /// What it is.
    pub kind: InfluenceKind,
    /// The mean over starts.
    pub value: f64,
    /// Student's interval over starts; none for fewer than [`MIN_REPEATS`].
    pub interval: Option<Interval>,
    /// The number of starts that show it.
    pub starts: usize,
    /// The interval of the difference of the variant from the baseline over these starts with the influence taken out:
    /// of each start the influence times the share of the slices compared with that are under it. None where the other
    /// has none.
    pub without: Option<Interval>,
    /// The standard deviation of those differences.
    pub sd_without: f64,
}

impl Influence {
    /// Both ends of its interval as text: `+1.2 %`, `+4 %`.
    #[must_use]
    pub fn ends(&self, measure: &Measure) -> Option<[String; 2]> {
        self.interval.map(|interval| ends(natural_interval(measure.effect(), interval), measure))
    }
}

/// The influence over starts, each with the difference of the variant from the baseline on it, at the two-sided level
/// `alpha`; none for fewer than two starts. `resolution` is the standard deviation that rounding alone gives.
#[must_use]
pub fn influence(
    kind: InfluenceKind,
    starts: &[(f64, InfluenceOfStart)],
    resolution: f64,
    alpha: f64,
) -> Option<Influence> {
    let test = |of: fn(&(f64, InfluenceOfStart)) -> f64| {
        let test = one_sample(&starts.iter().map(of).collect::<Vec<f64>>())?;
        let standard_error = test.standard_error.max(resolution / (starts.len() as f64).sqrt());
        Some(TTest { standard_error, ..test })
    };
    let itself = test(|(_, found)| found.value)?;
    let without = test(|(difference, found)| difference + found.share * found.value)?;
    let interval = |test: &TTest| (starts.len() >= MIN_REPEATS).then(|| test.interval(1.0 - alpha));
    Some(Influence {
        kind,
        value: itself.estimate,
        interval: interval(&itself),
        starts: starts.len(),
        without: interval(&without),
        sd_without: without.standard_error * (starts.len() as f64).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(before_baseline: Before, before_duplicate: Before, difference: f64) -> TurnOfDuplicates {
        TurnOfDuplicates { before_baseline, before_duplicate, difference }
    }

    #[test]
    fn the_ratio_of_a_start_is_that_of_its_values() {
        // Ratios 0.5, 1.1, 1.2, 1.3 and 9: one is dropped from either end.
        let turns = [(1.0, 9.0), (2.0, 2.2), (4.0, 2.0), (1.0, 1.2), (3.0, 3.9)];
        let found = ratio(&turns).expect("turns");
        assert!((found.baseline - 6.0_f64.cbrt()).abs() < 1e-12, "{found:?}");
        let of_turns = found.of_turns.expect("three are kept");
        assert!((of_turns.value - (found.variant / found.baseline).ln()).abs() < 1e-12, "{found:?}");
        assert!((of_turns.value - (1.1_f64 * 1.2 * 1.3).ln() / 3.0).abs() < 1e-12, "{found:?}");
        assert_eq!(of_turns.turns, 5);
        assert_eq!(ratio(&[]), None);
        assert_eq!(ratio(&[(1.0, 0.0), (1.0, 1.0)]), None);
    }

    #[test]
    fn the_ratio_to_both_is_the_mean_of_the_ratios_to_each() {
        // The variant takes twice as long as the baseline and 1.5 times as long as the duplicate, but for one turn each.
        let turns = [[1.0, 4.0 / 3.0, 2.0], [2.0, 8.0 / 3.0, 4.0], [3.0, 9.0, 6.0], [9.0, 4.0 / 3.0, 2.0]];
        let found = ratio_to_both(&turns).expect("turns");
        let of_turns = found.of_turns.expect("two of each are kept");
        assert!((of_turns.value - 3.0_f64.sqrt().ln()).abs() < 1e-12, "{found:?}");
        assert!((of_turns.value - (found.variant / found.baseline).ln()).abs() < 1e-12, "{found:?}");
        assert_eq!((of_turns.turns, of_turns.squared_error), (4, 0.0));
        assert_eq!(ratio_to_both(&[[1.0, 0.0, 1.0]]), None);
    }

    #[test]
    fn what_follows_the_variant_shows_its_carry_over() {
        use Before::{Itself, Other, Variant};
        // The duplicate's own systems are slower by 2 % on this start, and a slice after the variant by 4 %.
        let (own, carry) = (-0.02, 0.04);
        let mut turns = vec![
            turn(Variant, Other, own + carry),
            turn(Other, Variant, own - carry),
            turn(Other, Other, own),
            turn(Variant, Variant, own),
            turn(Variant, Other, own + carry),
            turn(Itself, Variant, 0.3),
        ];
        let found = carry_over_of_start(&turns).expect("it shows");
        assert!((found.value - carry).abs() < 1e-12 && found.share == 0.5, "{found:?}"); // 6 of 12 slices
        turns.push(turn(Other, Variant, 0.5)); // The machine changed its speed between the two.
        let found = carry_over_of_start(&turns).expect("it shows");
        assert!((found.value - carry).abs() < 0.021, "{found:?}");
        assert_eq!(carry_over_of_start(&[turn(Other, Other, 0.1), turn(Variant, Variant, 0.2)]), None);
        assert_eq!(carry_over_of_start(&[]), None);
    }

    #[test]
    fn the_baseline_beside_the_variant_shows_its_interference() {
        // Beside the variant the baseline takes 3 % longer; in one turn the machine changed its speed between the two.
        let mut turns = vec![(1.03, 1.0), (2.06, 2.0), (1.545, 1.5), (1.03, 1.0)];
        turns.push((5.0, 1.0));
        let found = interference_of_start(&turns).expect("five turns");
        assert!((found.value - 1.03_f64.ln()).abs() < 1e-12 && found.share == 1.0, "{found:?}");
        assert_eq!(interference_of_start(&[]), None);
        assert_eq!(interference_of_start(&[(0.0, 1.0)]), None);
    }

    #[test]
    fn influence_has_the_interval_of_starts_and_can_be_taken_out() {
        let starts = |values: &[f64]| -> Vec<(f64, InfluenceOfStart)> {
            values.iter().map(|value| (-0.4 * value, InfluenceOfStart { value: *value, share: 0.4 })).collect()
        };
        // Mean 3, sd √2.5, t(0.975, 4) = 2.776: 3 ± 1.963.
        let found =
            influence(InfluenceKind::CarryOver, &starts(&[1.0, 2.0, 3.0, 4.0, 5.0]), 1e-9, 0.05).expect("five starts");
        let interval = found.interval.expect("an interval");
        assert!((interval.low - 1.0368).abs() < 1e-3 && (interval.high - 4.9632).abs() < 1e-3, "{interval:?}");
        let without = found.without.expect("an interval");
        assert!(without.contains(0.0) && without.half_width() < 1e-6, "it is the whole difference: {found:?}");
        let alike = influence(InfluenceKind::CarryOver, &starts(&[1.0; 5]), 0.1, 0.05)
            .expect("five starts")
            .interval
            .expect("an interval");
        assert!(alike.half_width() > 0.1, "never surer than the resolution: {alike:?}");
        assert_eq!(
            influence(InfluenceKind::CarryOver, &starts(&[1.0, 2.0]), 1e-9, 0.05).expect("two starts").interval,
            None
        );
        assert_eq!(influence(InfluenceKind::CarryOver, &starts(&[1.0]), 1e-9, 0.05), None);
    }
}
