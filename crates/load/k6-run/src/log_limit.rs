//! A limit on repeated log lines. A server that is down, or a script that throws, writes the same line again and again:
//! the first of each kind are written, the others are counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The most lines of one kind that are written.
const MOST_WRITTEN: u64 = 3;

/// The most kinds that are told apart. All further kinds count as [`OTHERS`].
const MOST_KINDS: usize = 100;

const OTHERS: &str = "other lines";

/// The suffix of the last line of a kind that is written.
const LAST: &str = " (more of these are counted, and told at the end)";

/// Counts the lines of all users of a run, by kind.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<BTreeMap<String, u64>>);

impl LogLimit {
    /// Counts a line of this kind. Returns the suffix with which it is to be written; none if it is suppressed.
    #[must_use]
    pub fn admit(&self, kind: &str) -> Option<&'static str> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told_apart = kinds.len() < MOST_KINDS || kinds.contains_key(kind);
        let kind = if is_told_apart { kind } else { OTHERS };
        if !kinds.contains_key(kind) {
            kinds.insert(kind.to_owned(), 0);
        }
        let count = kinds.get_mut(kind)?;
        *count += 1;
        (*count <= MOST_WRITTEN).then_some(if *count == MOST_WRITTEN { LAST } else { "" })
    }

    /// The kinds of which lines were suppressed, and how many.
    #[must_use]
    pub fn suppressed(&self) -> Vec<(String, u64)> {
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = kinds.iter().filter(|(_, count)| **count > MOST_WRITTEN);
        over.map(|(kind, count)| (kind.clone(), count - MOST_WRITTEN)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_of_a_kind_are_written_and_the_others_counted() {
        let limit = LogLimit::default();
        let written: Vec<_> = (0..25).filter_map(|_| limit.admit("refused")).collect();
        assert_eq!((written.len(), written[0], written[2]), (3, "", LAST));
        assert_eq!(limit.admit("reset"), Some(""));
        assert_eq!(limit.suppressed(), [("refused".to_owned(), 22)]);
    }

    #[test]
    fn kinds_beyond_the_most_count_as_one() {
        let limit = LogLimit::default();
        let written = (0..1000).filter(|number| limit.admit(&format!("user {number} is gone")).is_some()).count();
        assert_eq!(written, MOST_KINDS + 3);
        assert_eq!(limit.suppressed(), [(OTHERS.to_owned(), 897)]);
    }
}
