//! Formats numbers: units chosen by size, a fixed number of digits.

use plimsoll_model::measure::{Effect, Measure, Unit};

/// Formats a value in the unit that suits its size: `2.19 ms`, `23.4 MB`, `4,532 /s`.
#[must_use]
pub fn show(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => scaled(value * 1e9, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
        Unit::Bytes => scaled(value, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
        Unit::BytesPerSecond => scaled(value, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")]),
        // The mean of a few events over several repeats: rounded, it would say that there was none.
        Unit::Count if value > 0.0 && value < 0.995 => number(value),
        Unit::Count => grouped(value.round()),
        Unit::Number => number(value),
        Unit::PerSecond if value >= 100.0 => format!("{} /s", grouped(value.round())),
        Unit::PerSecond => format!("{} /s", significant(value)),
        Unit::PerMinute if value >= 100.0 => format!("{} /min", grouped(value.round())),
        Unit::PerMinute => format!("{} /min", significant(value)),
        Unit::Cores if value == 0.0 => "0 cores".to_owned(),
        Unit::Cores if value < 0.0995 => format!("{value:.3} cores"),
        Unit::Cores => format!("{value:.2} cores"),
        Unit::Share => percent(value),
    }
}

/// Decimals of a percentage, at most: what is smaller than one of a hundred million is an error of rounding.
const MOST_DECIMALS: usize = 6;

/// Formats a share as a percentage: `5 %`, `0.25 %`. A share just below 1 is never rounded up to 100 %: `99.97 %`.
/// A small one is not rounded to none: `0.0001 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if (99.5..100.0).contains(&percent) {
        let rounded_down = (percent * 1000.0 + 1e-6).floor() / 1000.0;
        let decimals = if percent < 99.95 { 1 } else { 3 };
        return format!("{} %", without_trailing_zeros(&format!("{rounded_down:.decimals$}")));
    }
    let decimals = if percent == 0.0 || percent.abs() >= 9.995 {
        0
    } else if percent.abs() >= 0.095 {
        1
    } else if percent.abs() >= 0.000_5 {
        3
    } else {
        ((1.0 - percent.abs().log10().floor()) as usize).min(MOST_DECIMALS)
    };
    format!("{} %", without_trailing_zeros(&format!("{percent:.decimals$}")))
}

/// Ratios from this one on are written as multiples, not as percentages.
pub const MULTIPLE: f64 = 5.0;

/// Formats a ratio as a change: `+3.1 %`, `−0.4 %`, `×6.2`.
#[must_use]
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if ratio >= MULTIPLE {
        return format!("×{}", significant(ratio));
    }
    let decimals = match percent.abs() {
        size if size < 99.95 => 1,
        // Enough digits for what is left.
        _ if percent < 0.0 && ratio > 0.0 => (100.0 * ratio).log10().floor().abs() as usize,
        _ => 0,
    };
    let digits = format!("{:.decimals$}", percent.abs());
    let sign = match percent {
        _ if digits.parse() == Ok(0.0) => "±",
        percent if percent > 0.0 => "+",
        _ => "−",
    };
    format!("{sign}{digits} %")
}

/// The notation of ratios that stand together: all as changes, or all as multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `+3.1 %`, `−0.4 %`.
    Changes,
    /// `×6.2`, `×0.98`.
    Multiples,
}

impl Notation {
    /// The notation that suits all `ratios`.
    #[must_use]
    pub fn of(ratios: impl IntoIterator<Item = f64>) -> Notation {
        if ratios.into_iter().any(|ratio| ratio >= MULTIPLE) { Notation::Multiples } else { Notation::Changes }
    }

    /// Formats a ratio in this notation.
    #[must_use]
    pub fn show(self, ratio: f64) -> String {
        match self {
            Notation::Changes => change(ratio),
            Notation::Multiples => times(ratio),
        }
    }
}

/// Formats a ratio as a multiple: one more digit near 1, and two digits where it is small.
fn times(ratio: f64) -> String {
    let decimals = match ratio {
        ratio if ratio <= 0.0 || ratio >= 1.0995 => return format!("×{}", significant(ratio)),
        ratio if ratio > 0.9 => 3,
        ratio if ratio >= 0.0995 => 2,
        ratio => (1.0 - ratio.log10().floor()) as usize,
    };
    format!("×{ratio:.decimals$}")
}

/// A difference in a unit, with its sign: `+0.12 points` for shares, `−3` for counts.
#[must_use]
pub fn difference(value: f64, unit: Unit) -> String {
    let size = match unit {
        Unit::Share => format!("{} points", percent(value.abs()).trim_end_matches(" %")),
        Unit::Count => significant(value.abs()),
        unit => show(value.abs(), unit),
    };
    let is_nothing = size.chars().all(|character| !matches!(character, '1'..='9'));
    let sign = if is_nothing {
        "±"
    } else if value > 0.0 {
        "+"
    } else {
        "−"
    };
    format!("{sign}{size}")
}

/// A margin as people write it: `5 %`, `0.1 points`.
#[must_use]
pub fn margin(margin: f64, measure: &Measure) -> String {
    match measure.effect() {
        Effect::Ratio => percent(margin),
        Effect::Difference => difference(margin, measure.unit()).trim_start_matches('+').to_owned(),
    }
}

/// A p-value: `p = 0.03`, `p < 0.001`.
#[must_use]
pub fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// A level of confidence: `95 %`, `97.8 %`.
#[must_use]
pub fn confidence(alpha: f64) -> String {
    format!("{} %", without_trailing_zeros(&format!("{:.1}", (1.0 - alpha) * 100.0)))
}

/// The size of a change without its direction: `3.1 %`.
#[must_use]
pub fn size_of_change(ratio: f64) -> String {
    change(ratio).trim_start_matches(['+', '−', '±', '×']).to_owned()
}

/// Formats a multiple, as short as possible: `6.21`, `18`, `1,160`.
#[must_use]
pub fn multiple(ratio: f64) -> String {
    without_trailing_zeros(&significant(ratio)).to_owned()
}

/// Formats a number with three digits, however small, or with all of its whole digits if it has
/// more.
fn number(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 {
        grouped(value)
    } else if size >= 0.995 {
        significant(value)
    } else {
        let decimals = (2.0 - size.log10().floor()) as usize;
        format!("{value:.decimals$}")
    }
}

/// Formats a number with three digits, or with all of its whole digits if it has more.
#[must_use]
pub fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    if decimals == 0 { grouped(value.round()) } else { format!("{value:.decimals$}") }
}

/// A whole number with commas between its thousands.
#[must_use]
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value <= -0.5 { format!("−{grouped}") } else { grouped }
}

/// Scales to the largest unit of which there is at least one. It goes by the printed digits, so
/// that `1.00 ms` never appears as `1,000 µs`.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units.len() - 1;
    let index = units.iter().position(|(size, _)| value.abs() / size >= 0.9995).unwrap_or(last);
    let (size, unit) = units[index];
    if value == 0.0 || (size == 1.0 && value.fract() == 0.0) {
        return format!("{} {unit}", grouped(value));
    }
    format!("{} {unit}", significant(value / size))
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_unit_that_suits_them() {
        for (value, unit, expected) in [
            (0.000_719_94, Unit::Seconds, "720 µs"),
            (0.002_19, Unit::Seconds, "2.19 ms"),
            (0.013_34, Unit::Seconds, "13.3 ms"),
            (0.000_999_97, Unit::Seconds, "1.00 ms"),
            (1.02, Unit::Seconds, "1.02 s"),
            (15.44, Unit::Seconds, "15.4 s"),
            (3600.0, Unit::Seconds, "3,600 s"),
            (0.000_000_042, Unit::Seconds, "42 ns"),
            (0.0, Unit::Seconds, "0 ns"),
            (23_400_000.0, Unit::Bytes, "23.4 MB"),
            (512.0, Unit::Bytes, "512 B"),
            (754_000.0, Unit::BytesPerSecond, "754 kB/s"),
            (135_980.0, Unit::Count, "135,980"),
            (1.0 / 3.0, Unit::Count, "0.333"),
            (1.0, Unit::Count, "1"),
            (0.0, Unit::Count, "0"),
            (135_980.0, Unit::Number, "135,980"),
            (5.0, Unit::Number, "5"),
            (1.4239, Unit::Number, "1.42"),
            (0.25, Unit::Number, "0.250"),
            (0.001_239, Unit::Number, "0.00124"),
            (4_532.286, Unit::PerSecond, "4,532 /s"),
            (3.25, Unit::PerSecond, "3.25 /s"),
            (0.514, Unit::Cores, "0.51 cores"),
            (0.0712, Unit::Cores, "0.071 cores"),
            (0.0, Unit::Cores, "0 cores"),
            (0.0, Unit::Share, "0 %"),
            (0.0123, Unit::Share, "1.2 %"),
            (0.000_02, Unit::Share, "0.002 %"),
            (0.000_001, Unit::Share, "0.0001 %"),
            (0.000_000_123, Unit::Share, "0.000012 %"),
            (2.5e-9, Unit::Share, "0 %"),
            (0.5, Unit::Share, "50 %"),
            (0.994, Unit::Share, "99 %"),
            (0.995, Unit::Share, "99.5 %"),
            (0.9996, Unit::Share, "99.96 %"),
            (0.999_999_9, Unit::Share, "99.999 %"),
            (1.0, Unit::Share, "100 %"),
        ] {
            assert_eq!(show(value, unit), expected);
        }
    }

    #[test]
    fn ratios_read_as_changes() {
        for (ratio, expected, size) in [
            (1.031, "+3.1 %", "3.1 %"),
            (0.996, "−0.4 %", "0.4 %"),
            (1.0, "±0.0 %", "0.0 %"),
            (0.99999, "±0.0 %", "0.0 %"),
            (2.5, "+150 %", "150 %"),
            (6.21, "×6.21", "6.21"),
            (0.01, "−99.0 %", "99.0 %"),
            (0.0004, "−99.96 %", "99.96 %"),
            (0.000_01, "−99.999 %", "99.999 %"),
            (0.0, "−100 %", "100 %"),
        ] {
            assert_eq!(change(ratio), expected);
            assert_eq!(size_of_change(ratio), size);
        }
    }

    #[test]
    fn ratios_that_belong_together_have_one_unit() {
        for (low, high, expected) in
            [(0.996, 1.031, ["−0.4 %", "+3.1 %"]), (0.9, 6.2, ["×0.90", "×6.20"]), (17.96, 116.2, ["×18.0", "×116"])]
        {
            assert_eq!([low, high].map(|ratio| Notation::of([low, high]).show(ratio)), expected);
        }
        assert_eq!([17.96, 116.2, 6.21].map(multiple), ["18", "116", "6.21"]);
        let together = [17.96, 1.031, 0.9996, 0.4, 0.004_21];
        assert_eq!(
            together.map(|ratio| Notation::of(together).show(ratio)),
            ["×18.0", "×1.031", "×1.000", "×0.40", "×0.0042"]
        );
    }

    #[test]
    fn differences_have_their_sign_and_unit() {
        for (value, unit, expected) in [
            (0.0012, Unit::Share, "+0.1 points"),
            (-0.02, Unit::Share, "−2 points"),
            (0.0, Unit::Share, "±0 points"),
            (0.000_001, Unit::Share, "+0.0001 points"),
            (-3.0, Unit::Count, "−3.00"),
        ] {
            assert_eq!(difference(value, unit), expected);
        }
    }

    #[test]
    fn margins_are_shares_or_amounts() {
        let of = |measure: &str, value| margin(value, &measure.parse().expect("a measure"));
        assert_eq!(of("iterations.rate", 0.05), "5 %");
        assert_eq!(of("errors.ratio", 0.001), "0.1 points");
    }

    #[test]
    fn levels_of_confidence_are_short() {
        assert_eq!([0.05, 0.0221, 0.0294].map(confidence), ["95 %", "97.8 %", "97.1 %"]);
        assert_eq!([0.04, 0.000_2].map(p_value), ["p = 0.040", "p < 0.001"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        for (value, expected) in [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(grouped(value), expected);
        }
        assert_eq!(grouped(-1200.0), "−1,200");
    }
}
