//! Parameters of statements.

use crate::SqlError;
use plimsoll_model::record::ErrorKind;
use std::fmt;

/// A parameter of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// An integer, for columns of any size.
    Int(i64),
    /// A number with a fixed point.
    Decimal(Decimal),
    /// A text; also for dates, in the form `2026-11-22 12:00:00`.
    Text(&'a str),
}

impl fmt::Display for Value<'_> {
    /// Writes its text; NULL as `NULL`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Decimal(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// A number with a fixed point: `unscaled / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The digits.
    pub unscaled: i64,
    /// The number of digits after the point.
    pub scale: u8,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let (digits, width) = (self.unscaled.unsigned_abs(), usize::from(self.scale));
        match 10_u64.checked_pow(self.scale.into()) {
            Some(1) => write!(f, "{sign}{digits}"),
            Some(unit) => write!(f, "{sign}{}.{:0width$}", digits / unit, digits % unit),
            // More places than an i64 has digits.
            None => write!(f, "{sign}0.{digits:0width$}"),
        }
    }
}

/// Parses a text such as `-12.50` into units of `10^-scale`; none if digits would be lost.
pub(crate) fn parse_decimal(text: &str, scale: u8) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = usize::from(scale);
    let (kept, rest) = fraction.split_at_checked(scale).unwrap_or((fraction, ""));
    if whole.is_empty() || rest.bytes().any(|digit| digit != b'0') {
        return None;
    }
    let zeros = std::iter::repeat_n(b'0', scale - kept.len());
    // As a negative number: `i64::MIN` has no positive counterpart.
    let number = whole.bytes().chain(kept.bytes()).chain(zeros).try_fold(0_i64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_sub(digit)
    })?;
    if is_negative { Some(number) } else { number.checked_neg() }
}

/// The error for a number of parameters that differs from the number of placeholders.
pub(crate) fn wrong_parameter_count(expected: usize, given: usize) -> SqlError {
    SqlError::new(ErrorKind::Sql, format!("it has {expected} placeholders, but {given} parameters were given"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(unscaled: i64, scale: u8) -> String {
        Decimal { unscaled, scale }.to_string()
    }

    #[test]
    fn the_point_is_where_the_scale_says() {
        assert_eq!(written(1250, 2), "12.50");
        assert_eq!(written(-5, 2), "-0.05");
        assert_eq!(written(-5, 0), "-5");
        assert_eq!(written(i64::MIN, 4), "-922337203685477.5808");
        assert_eq!(written(7, 20), "0.00000000000000000007");
    }

    #[test]
    fn places_that_would_be_lost_are_refused() {
        assert_eq!(parse_decimal("1.50", 1), Some(15));
        assert_eq!(parse_decimal("1.50", 4), Some(15000));
        assert_eq!(parse_decimal("1.55", 1), None);
        assert_eq!(parse_decimal("9223372036854775807", 1), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", ".5", "NaN", "1e5", "1.2.3", "1,5", "--1", "Infinity"] {
            assert_eq!(parse_decimal(text, 2), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_decimal_comes_back(unscaled: i64, scale in 0_u8..30) {
            prop_assert_eq!(parse_decimal(&written(unscaled, scale), scale), Some(unscaled));
        }
    }
}
