//! A finding: a fault or a weakness of a table, with its evidence.

use plimsoll_analysis::finding::Severity;
use plimsoll_model::words::and_list;

/// A fault or a weakness of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it affects the table's claims.
    pub severity: Severity,
    /// The topic, in a word or two.
    pub topic: &'static str,
    /// The finding, in a sentence or two.
    pub sentence: String,
    /// The evidence.
    pub evidence: Vec<Evidence>,
    /// Advice for the author of the table.
    pub advice: &'static str,
}

/// The evidence of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Lines of the file.
    pub lines: Vec<u64>,
    /// Their content, with what follows from it.
    pub text: String,
}

impl Evidence {
    pub(crate) fn new(lines: impl Into<Vec<u64>>, text: impl Into<String>) -> Evidence {
        Evidence { lines: lines.into(), text: text.into() }
    }

    /// Evidence in one row, with its name.
    pub(crate) fn of(row: &crate::row::Row, text: impl AsRef<str>) -> Evidence {
        Evidence::new([row.line], format!("{}: {}", row.name(), text.as_ref()))
    }
}

/// `line 3`, `lines 3, 4 and 9`, `lines 3 to 8`.
pub(crate) fn lines(numbers: &[u64]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let in_a_row = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match numbers.as_slice() {
        [] => String::new(),
        [one] => format!("line {one}"),
        [_, _] => format!("lines {}", and_list(&numbers)),
        [first, .., last] if in_a_row => format!("lines {first} to {last}"),
        [first, .., last] if numbers.len() > 6 => format!("{} lines from {first} to {last}", numbers.len()),
        several => format!("lines {}", and_list(several)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_briefly() {
        for (numbers, expected) in [
            (&[3][..], "line 3"),
            (&[4, 3, 3], "lines 3 and 4"),
            (&[3, 4, 5], "lines 3 to 5"),
            (&[3, 5, 9], "lines 3, 5 and 9"),
            (&[1, 3, 5, 7, 9, 11, 13], "7 lines from 1 to 13"),
            (&[], ""),
        ] {
            assert_eq!(lines(numbers), expected);
        }
    }
}
