//! Axes: the positions of values and the labelled ticks.

use plimsoll_drawing::width_of;
use plimsoll_model::factor::Level;
use plimsoll_model::measure::Unit;

/// Values that span more than this factor are drawn on a logarithmic axis.
const LOGARITHMIC_FROM_SPAN: f64 = 20.0;

/// Gaps between levels that differ by this factor make an axis logarithmic too.
const LOGARITHMIC_FROM_GAPS: f64 = 4.0;

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) logarithmic: bool,
    low: f64,
    high: f64,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis for measured values: linear from zero, or logarithmic where they span too much.
    pub(crate) fn of_values(unit: Unit, values: impl Iterator<Item = f64>) -> Axis {
        let (low, high, smallest) = values.filter(|value| value.is_finite()).fold(
            (f64::INFINITY, 0.0_f64, f64::INFINITY),
            |(low, high, smallest), value| {
                (low.min(value), high.max(value), if value > 0.0 { smallest.min(value) } else { smallest })
            },
        );
        let logarithmic = low > 0.0 && high / smallest > LOGARITHMIC_FROM_SPAN;
        let high = if high > 0.0 { high } else { 1.0 };
        let (low, high, ticks) = if logarithmic {
            let ticks = logarithmic_ticks(low, high);
            (low / 1.15, high * 1.15, ticks)
        } else {
            let ticks = linear_ticks(high, unit);
            (0.0, high.max(*ticks.last().unwrap_or(&high)) * 1.02, ticks)
        };
        let ticks = ticks.into_iter().map(|value| (value, tick(value, unit))).collect();
        Axis { label: String::new(), logarithmic, low, high, ticks }
    }

    /// A logarithmic axis for measured values, of a decade at least. Zero has no place on it.
    pub(crate) fn logarithmic(unit: Unit, values: impl Iterator<Item = f64>) -> Axis {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            positive.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let (middle, reach) = ((low * high).sqrt(), (high / low).max(10.0).sqrt());
        let (low, high) = (middle / reach, middle * reach);
        let ticks = logarithmic_ticks(low, high).into_iter().map(|value| (value, tick(value, unit))).collect();
        Axis { label: String::new(), logarithmic: true, low: low / 1.15, high: high * 1.15, ticks }
    }

    /// A logarithmic axis for sizes, ascending, with their labels.
    pub(crate) fn of_sizes(sizes: Vec<(f64, String)>) -> Axis {
        let low = sizes.first().map_or(1.0, |size| size.0).max(1.0);
        let high = sizes.last().map_or(1.0, |size| size.0).max(low);
        let room = (high / low).powf(0.08).max(1.2);
        let label = "size (log scale)".to_owned();
        Axis { label, logarithmic: true, low: low / room, high: high * room, ticks: sizes }
    }

    /// A logarithmic axis for loads, in users or arrivals.
    pub(crate) fn of_loads(noun: &str, loads: impl Iterator<Item = f64>) -> Axis {
        Axis { label: format!("{noun} (log scale)"), ..Axis::logarithmic(Unit::Count, loads) }
    }

    /// An axis for the seconds of a trial.
    pub(crate) fn of_seconds(from: f64, to: f64) -> Axis {
        let step = nice_step(to - from, 5.0).max(1.0);
        let first = (from / step).ceil() as i64;
        let last = (to / step).floor() as i64;
        let ticks = (first..=last).map(|index| index as f64 * step).map(|at| (at, format!("{at}"))).collect();
        Axis { label: "seconds of the measure phase".to_owned(), logarithmic: false, low: from, high: to, ticks }
    }

    /// An axis for the levels of a factor: by their value if all are numbers, otherwise side by
    /// side.
    pub(crate) fn of_levels(label: &str, levels: &[Level]) -> Axis {
        let at = |index: usize| position(levels, index);
        let ticks: Vec<(f64, String)> =
            levels.iter().enumerate().map(|(index, level)| (at(index), level.to_string())).collect();
        let low = ticks.iter().map(|tick| tick.0).fold(f64::INFINITY, f64::min);
        let high = ticks.iter().map(|tick| tick.0).fold(f64::NEG_INFINITY, f64::max);
        let logarithmic =
            are_numbers(levels) && low > 0.0 && (high / low > LOGARITHMIC_FROM_SPAN || are_uneven(&ticks));
        let (low, high) = if logarithmic {
            let room = (high / low).powf(0.06);
            (low / room, high * room)
        } else {
            let room = if high > low { (high - low) * 0.06 } else { 0.5 };
            let room = if are_numbers(levels) { room } else { 0.5 };
            (low - room, high + room)
        };
        let label = if logarithmic { format!("{label} (log scale)") } else { label.to_owned() };
        Axis { label, logarithmic, low, high, ticks }
    }

    /// The position of `value`: 0 at the low end, 1 at the high one.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// The ticks whose labels do not run into one another when the axis is `length` pixels long.
    /// The outermost ones stay.
    pub(crate) fn ticks_with_room(&self, length: f64) -> Vec<(f64, String)> {
        let mut kept: Vec<(f64, String)> = Vec::new();
        let fits = |one: &(f64, String), other: &(f64, String)| {
            let apart = (self.share(one.0) - self.share(other.0)).abs() * length;
            apart > f64::midpoint(width_of(&one.1), width_of(&other.1)) + 4.0
        };
        let Some(last) = self.ticks.last() else { return kept };
        for tick in &self.ticks[..self.ticks.len() - 1] {
            if kept.last().is_none_or(|before| fits(before, tick)) && (kept.is_empty() || fits(tick, last)) {
                kept.push(tick.clone());
            }
        }
        kept.push(last.clone());
        kept
    }
}

/// True if ticks are so unevenly spaced, like levels that double, that the small ones would crowd
/// on a linear axis.
fn are_uneven(ticks: &[(f64, String)]) -> bool {
    let gaps = ticks.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let (least, most) = gaps.fold((f64::INFINITY, 0.0_f64), |(least, most), gap| (least.min(gap), most.max(gap)));
    least > 0.0 && least.is_finite() && most >= LOGARITHMIC_FROM_GAPS * least
}

/// The position of the level with this index on an [`Axis::of_levels`].
pub(crate) fn position(levels: &[Level], index: usize) -> f64 {
    match levels[index] {
        Level::Integer(number) if are_numbers(levels) => number as f64,
        Level::Number(number) if are_numbers(levels) => number,
        _ => index as f64,
    }
}

pub(crate) fn are_numbers(levels: &[Level]) -> bool {
    levels.iter().all(|level| matches!(level, Level::Integer(_) | Level::Number(_)))
}

/// Multiples of a round step from zero, the last at or above `high`. Bytes step in their own
/// units, as everything else does.
fn linear_ticks(high: f64, unit: Unit) -> Vec<f64> {
    let step = match unit {
        Unit::Count => nice_step(high, 4.0).max(1.0),
        _ => nice_step(high, 4.0),
    };
    let count = (high / step - 1e-9).ceil() as u32;
    (0..=count).map(|index| f64::from(index) * step).collect()
}

/// 1, 2, 5 times a power of ten: every one, or the powers alone where there are many.
fn logarithmic_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let factors: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    (first..=last)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)))
        .filter(|value| (low / 1.15..=high * 1.15).contains(value))
        .collect()
}

/// A round step of which about `wanted` make up `span`.
fn nice_step(span: f64, wanted: f64) -> f64 {
    let rough = span / wanted;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| rough <= factor * power * 1.0001).unwrap_or(10.0);
    factor * power
}

/// Decimals of a label, at most: more of them leave no room for the chart.
const MOST_DECIMALS: f64 = 12.0;

/// A round value, as short as it can be written.
pub(crate) fn tick(value: f64, unit: Unit) -> String {
    let units: &[(f64, &str)] = match unit {
        Unit::Seconds => &[(1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")],
        Unit::Bytes => &[(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")],
        Unit::BytesPerSecond => &[(1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1.0, " B/s")],
        Unit::Share => &[(0.01, " %")],
        Unit::Count | Unit::Number | Unit::PerSecond | Unit::PerMinute => &[(1e6, "M"), (1e3, "k"), (1.0, "")],
        Unit::Cores => &[(1.0, "")],
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    let (size, unit) = units.iter().find(|(size, _)| value >= size * 0.9999).unwrap_or(&units[units.len() - 1]);
    let scaled = value / size;
    // What is smaller than the smallest unit has three digits too: in three decimals it may be zero.
    let decimals = (2.0 - scaled.abs().log10().floor()).clamp(3.0, MOST_DECIMALS) as usize;
    let digits = format!("{scaled:.decimals$}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn values_start_at_zero_unless_they_span_too_much() {
        let narrow = Axis::of_values(Unit::Seconds, [0.001, 0.0019].into_iter());
        assert_eq!(labels(&narrow), ["0", "500 µs", "1 ms", "1.5 ms", "2 ms"]);
        assert_eq!(narrow.share(0.0), 0.0);
        let wide = Axis::of_values(Unit::Seconds, [0.001, 0.05].into_iter());
        assert_eq!(labels(&wide), ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]);
        let wider = Axis::of_values(Unit::PerSecond, [9.0, 20_000.0].into_iter());
        assert_eq!(labels(&wider), ["10", "100", "1k", "10k"]);
    }

    #[test]
    fn small_values_have_labels_that_differ() {
        for (unit, most, expected) in [
            (Unit::Number, 0.0004, ["0", "0.0001", "0.0002", "0.0003", "0.0004"]),
            (Unit::Share, 0.000_01, ["0", "0.00025 %", "0.0005 %", "0.00075 %", "0.001 %"]),
            (Unit::Cores, 0.01, ["0", "0.0025", "0.005", "0.0075", "0.01"]),
        ] {
            assert_eq!(labels(&Axis::of_values(unit, [most].into_iter())), expected);
        }
        assert_eq!([0.0, 1e-300, 0.1 + 0.2].map(|value| tick(value, Unit::Number)), ["0", "0", "0.3"]);
    }

    #[test]
    fn a_logarithmic_axis_has_a_decade_or_more_and_labels() {
        for (values, expected) in [
            (&[1.05, 1.06][..], &["500 ms", "1 s", "2 s"][..]),
            (&[0.0001, 0.0, 100.0], &["100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"]),
            (&[], &["500 ms", "1 s", "2 s"]),
            (&[0.0], &["500 ms", "1 s", "2 s"]),
        ] {
            assert_eq!(labels(&Axis::logarithmic(Unit::Seconds, values.iter().copied())), expected, "{values:?}");
        }
        let one_size = Axis::of_sizes(vec![(1e6, "1MB".to_owned())]);
        assert!((one_size.share(1e6) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn values_that_are_all_zero_have_an_axis() {
        let axis = Axis::of_values(Unit::Cores, [0.0, 0.0].into_iter());
        assert!(axis.share(0.0) == 0.0 && axis.ticks.len() > 1);
        assert!(Axis::of_values(Unit::Bytes, std::iter::empty()).ticks.len() > 1);
    }

    #[test]
    fn numbers_lie_by_value_and_words_side_by_side() {
        let users = [10, 100, 1000].map(Level::Integer);
        let axis = Axis::of_levels("users", &users);
        assert!((axis.share(100.0) - 0.5).abs() < 1e-9);
        assert_eq!(axis.label, "users (log scale)");
        let doubled = Axis::of_levels("threads", &[1, 2, 4, 8, 16].map(Level::Integer));
        assert_eq!(doubled.ticks_with_room(250.0).len(), 5, "every level has its label");
        let words = ["local", "nfs", "s3"].map(|word| Level::Text(word.to_owned()));
        let axis = Axis::of_levels("storage", &words);
        assert!((axis.share(position(&words, 1)) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn labels_that_would_touch_are_left_out() {
        let users = [10, 100, 200, 300, 500, 1000].map(Level::Integer);
        let axis = Axis::of_levels("users", &users);
        let kept = axis.ticks_with_room(240.0);
        assert_eq!((kept[0].1.as_str(), kept[kept.len() - 1].1.as_str()), ("10", "1000"));
        assert!(kept.len() < 6 && axis.ticks_with_room(2000.0).len() == 6);
    }
}
