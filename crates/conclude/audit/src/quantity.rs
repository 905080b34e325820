//! Parses numbers with units as people write them: `1.09 s`, `719.94µs`, `1,300`, `8m3s`, `2,500+`.
//!
//! A published number is rounded, so each carries its largest rounding error. Every lint that
//! calculates with numbers allows for that error.

use crate::fault::Unreadable;
use crate::unit::{nearest, unit};
use plimsoll_analysis::quantity::show;
use plimsoll_model::measure::Unit;

/// The largest accepted value in any unit; squares of larger values would overflow.
const MAX_VALUE: f64 = 1e30;

/// A published number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    /// In base units: seconds, bytes, shares.
    pub(crate) value: f64,
    /// Half a step of its last digit: the largest rounding error.
    pub(crate) half_step: f64,
    /// The largest rounding error if the trailing zeros of a whole number were rounded too: 50 for
    /// `1,300`.
    pub(crate) coarse_half_step: f64,
    /// Its unit.
    pub(crate) unit: Unit,
    /// The size of its written unit in base units: 0.001 for milliseconds.
    pub(crate) unit_factor: f64,
    /// True if it is written without a unit.
    pub(crate) plain: bool,
    /// True if it is a bound: `2,500+`, `> 10 s`.
    pub(crate) bound: bool,
    /// The number of its digits, without leading zeros.
    pub(crate) digits: usize,
    /// As published.
    pub(crate) text: String,
}

/// The kind of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The measured number is not larger: `< 0.1 %`.
    Upper,
    /// The measured number is not smaller: `> 10 s`, `2,500+`.
    Lower,
}

impl Quantity {
    /// A number that is calculated from published ones.
    pub(crate) fn calculated(value: f64, half_step: f64, unit: Unit) -> Quantity {
        let text = show(value, unit);
        Quantity {
            value,
            half_step,
            coarse_half_step: half_step,
            unit,
            unit_factor: 1.0,
            plain: false,
            bound: false,
            digits: 3,
            text,
        }
    }

    /// The kind of bound that it is; none of an exact number.
    pub(crate) fn kind_of_bound(&self) -> Option<Bound> {
        let has = |signs: &[char]| self.bound && self.text.contains(signs);
        if has(&['<', '≤']) { Some(Bound::Upper) } else { has(&['>', '≥', '+']).then_some(Bound::Lower) }
    }

    /// The smallest possible value before rounding.
    pub(crate) fn low(&self) -> f64 {
        self.value - self.half_step
    }

    /// The largest possible value before rounding.
    pub(crate) fn high(&self) -> f64 {
        self.value + self.half_step
    }

    /// This number in another unit, with `scale` as the size of that unit.
    fn scaled(self, scale: f64, unit: Unit) -> Quantity {
        Quantity {
            value: self.value * scale,
            half_step: self.half_step * scale,
            coarse_half_step: self.coarse_half_step * scale,
            unit_factor: self.unit_factor * scale,
            unit,
            ..self
        }
    }

    /// A plain zero beside `other`, in the unit of `other`.
    pub(crate) fn like(self, other: &Quantity) -> Quantity {
        self.scaled(other.unit_factor, other.unit)
    }

    /// A number that was set and not measured, so without rounding error.
    pub(crate) fn exact(self) -> Quantity {
        Quantity { half_step: 0.0, coarse_half_step: 0.0, ..self }
    }

    /// A plain number in the unit from a heading, a `unit` column or its neighbours.
    pub(crate) fn in_unit(self, name: &str, scale: f64, unit: Unit) -> Quantity {
        let text = if name == "%" { format!("{} %", self.text) } else { format!("{} {name}", self.text) };
        Quantity { text, ..self.scaled(scale, unit) }
    }
}

/// True for texts that stand for a missing number.
pub(crate) fn is_absent(text: &str) -> bool {
    matches!(text.to_lowercase().as_str(), "" | "-" | "–" | "—" | "n/a" | "na" | "?" | "not stated" | "unknown")
}

/// Parses a number with or without a unit.
pub(crate) fn quantity(text: &str) -> Result<Quantity, Unreadable> {
    let text = text.trim();
    let (bound, rest) = without_bound(text);
    let (mut whole, mut scale, mut rest) = part(rest)?;
    // `8m3s`, `8 min 3 s`: more parts of a time, in smaller and smaller units.
    while !rest.is_empty() {
        let (next, next_scale, after) = part(rest)?;
        if whole.unit != Unit::Seconds || next.unit != Unit::Seconds || next_scale >= scale {
            return Err(Unreadable::expected("one number"));
        }
        whole = Quantity { value: whole.value + next.value, digits: whole.digits + next.digits, ..next };
        (scale, rest) = (next_scale, after);
    }
    Ok(Quantity { bound, text: text.trim_start_matches(['\\', '~', '≈']).trim().to_owned(), ..whole })
}

/// Splits off the sign of a bound: `> 10 s`, `≥ 5`, `2,500+`, `2,500+ users`.
fn without_bound(text: &str) -> (bool, &str) {
    let text = text.trim_start_matches(['~', '≈', '\\', '±']).trim_start();
    let rest = text.trim_start_matches(['>', '≥', '<', '≤', '=']).trim_start();
    let after = after_number(rest);
    // The sign before a number is none: `+5 %`.
    let has_plus = after.len() < rest.len() && after.starts_with('+');
    (rest.len() < text.len() || has_plus, rest)
}

fn after_number(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','))
}

fn unknown_unit(name: &str) -> Unreadable {
    let expected = Unreadable::expected("a number with a unit such as s, ms, µs, MB, MB/s, /s or %, or none");
    match nearest(name) {
        Some(near) => expected.with_hint(format!("the unit `{name}` is not known: did you mean `{near}`?")),
        None => expected.with_hint(format!("the unit `{name}` is not known: leave it out if things are counted")),
    }
}

/// Parses a number with its unit. Returns it with the size of the unit in base units, and the
/// remaining text.
fn part(text: &str) -> Result<(Quantity, f64, &str), Unreadable> {
    let (number, rest) = split(text)?;
    let (name, rest) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
    let (scale, of) = unit(name).ok_or_else(|| unknown_unit(name.trim()))?;
    let number = Quantity { plain: name.trim().is_empty(), ..number.scaled(scale, of) };
    if number.value.abs() > MAX_VALUE {
        return Err(Unreadable::expected("a number of a size that something can have"));
    }
    Ok((number, scale, rest))
}

/// Parses a number, and returns the remaining text.
fn split(text: &str) -> Result<(Quantity, &str), Unreadable> {
    let expected = || Unreadable::expected("a number such as `1.09 s`, `719.94µs`, `1300` or `13 %`");
    let (negative, digits) = match text.strip_prefix(['-', '−', '–']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text).trim_start()),
    };
    let end = end_of_number(digits);
    let (number, rest) = digits.split_at(end);
    let plain = without_thousands(number)?;
    let size: f64 = plain.parse().map_err(|_| expected())?;
    if !size.is_finite() || plain.is_empty() {
        return Err(expected());
    }
    let rest = rest.strip_prefix('+').unwrap_or(rest).trim();
    let (mantissa, exponent) = plain.split_once(['e', 'E']).unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().map_err(|_| expected())?;
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let step = 10_f64.powi(exponent - decimals.len() as i32);
    let zeros = if decimals.is_empty() && size > 0.0 { whole.len() - whole.trim_end_matches('0').len() } else { 0 };
    let quantity = Quantity {
        value: if negative { -size } else { size },
        half_step: step / 2.0,
        coarse_half_step: step * 10_f64.powi(zeros as i32) / 2.0,
        unit: Unit::Count,
        unit_factor: 1.0,
        plain: true,
        bound: false,
        digits: format!("{whole}{decimals}").trim_start_matches('0').len(),
        text: String::new(),
    };
    Ok((quantity, rest))
}

/// The end of a number: digits, points, commas and spaces between thousands, an exponent.
fn end_of_number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(byte) if byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'_') => at += 1,
            Some(b' ') if digit(at + 1) && digit(at + 2) && digit(at + 3) && !digit(at + 4) => at += 1,
            Some(b'e' | b'E') if digit(at + 1) => at += 1,
            Some(b'e' | b'E') if matches!(bytes.get(at + 1), Some(b'+' | b'-')) && digit(at + 2) => at += 2,
            _ => return at,
        }
    }
}

/// Removes thousands separators, which must be in the right places.
fn without_thousands(number: &str) -> Result<String, Unreadable> {
    let separators = [',', ' ', '_'];
    let whole = number.split(['.', 'e', 'E']).next().unwrap_or_default();
    let groups: Vec<&str> = whole.split(separators).collect();
    let sound =
        groups.len() == 1 || ((1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3));
    if !sound || number[whole.len()..].contains(separators) {
        return Err(Unreadable::expected("a number")
            .with_hint("commas stand between thousands, as in 1,300; decimals follow a point, as in 12.5"));
    }
    Ok(number.replace(separators, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, value, half_step, unit) in [
            ("1.09 s", 1.09, 0.005, Unit::Seconds),
            ("719.94µs", 719.94e-6, 5e-9, Unit::Seconds),
            ("2.31ms", 2.31e-3, 5e-6, Unit::Seconds),
            ("±7.05 s", 7.05, 0.005, Unit::Seconds),
            ("8m3s", 483.0, 0.5, Unit::Seconds),
            ("8 min 3 s", 483.0, 0.5, Unit::Seconds),
            ("10081", 10_081.0, 0.5, Unit::Count),
            ("1,300", 1300.0, 0.5, Unit::Count),
            ("13 185", 13_185.0, 0.5, Unit::Count),
            ("12M posts", 12e6, 5e5, Unit::Count),
            ("37 MB", 37e6, 5e5, Unit::Bytes),
            ("1.0 MB/s", 1e6, 5e4, Unit::BytesPerSecond),
            ("4532.286646/s", 4_532.286_646, 5e-7, Unit::PerSecond),
            ("13%", 0.13, 0.005, Unit::Share),
            ("\\+5.66%", 0.0566, 0.00005, Unit::Share),
            ("−42 %", -0.42, 0.005, Unit::Share),
            ("1.5e3", 1500.0, 50.0, Unit::Count),
            ("≈ 28MB", 28e6, 5e5, Unit::Bytes),
        ] {
            let read = quantity(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert!((read.value - value).abs() <= value.abs() * 1e-12, "{text}: {read:?}");
            assert!((read.half_step - half_step).abs() <= half_step * 1e-9, "{text}: {read:?}");
            assert_eq!(read.unit, unit, "{text}");
        }
        assert_eq!(quantity("1,300").map(|read| (read.coarse_half_step, read.digits)), Ok((50.0, 4)));
        for (text, plain) in [("1e-05", true), ("2,500+", true), ("12M", false), ("12 users", false), ("5 %", false)] {
            assert_eq!(quantity(text).map(|read| read.plain), Ok(plain), "{text}");
        }
        for bound in ["2,500+", "2,500+ users", "> 10 s", "≥ 3"] {
            assert!(quantity(bound).is_ok_and(|read| read.bound), "{bound}");
        }
        assert!(quantity("+5 %").is_ok_and(|read| !read.bound), "a sign");
        for (text, kind) in [
            ("2,500+", Some(Bound::Lower)),
            (">= 3 %", Some(Bound::Lower)),
            ("< 0.1 %", Some(Bound::Upper)),
            ("~≤ 5", Some(Bound::Upper)),
            ("0.1 %", None),
            ("+5 %", None),
            ("= 5", None),
        ] {
            assert_eq!(quantity(text).map(|read| read.kind_of_bound()), Ok(kind), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_told_with_a_hint() {
        for (text, hint) in [
            ("fast", None),
            ("12,5 ms", Some("decimals follow a point")),
            ("1,3,00", Some("commas stand between thousands")),
            ("1.09 sek", Some("the unit `sek` is not known: did you mean `sec`?")),
            ("3 elephants", Some("leave it out if things are counted")),
            ("8m3x", Some("not known")),
            ("1.2.3", None),
            ("1e999", None),
        ] {
            let error = quantity(text).expect_err(text);
            let found = error.hint.unwrap_or_default();
            assert!(found.contains(hint.unwrap_or_default()), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".{0,24}") {
            if let Ok(read) = quantity(&text) {
                prop_assert!(read.value.is_finite() && read.half_step > 0.0);
            }
        }

        #[test]
        fn what_is_printed_is_read(value in -1e6..1e6_f64, decimals in 0..6_usize) {
            let read = quantity(&format!("{value:.decimals$} ms")).expect("a time");
            prop_assert!((read.value * 1e3 - value).abs() <= read.half_step * 1e3 * 1.0001);
        }
    }
}
