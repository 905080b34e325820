//! Lines that come again and again, because a server is down or a script throws: the first of each kind are written,
//! the others counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How many lines of one kind are written.
const WRITTEN: u64 = 3;

/// How many kinds are told apart; all further ones are one more.
const KINDS: usize = 100;

const OTHERS: &str = "other lines";

/// What stands behind the last line of a kind that is written.
const LAST: &str = " (more of these are counted, and told at the end)";

/// Lines of all users of a run, by kind.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<BTreeMap<String, u64>>);

impl Repeats {
    /// Counts a line of this kind. Comes with what is to stand behind it; with nothing where it is not to be written.
    #[must_use]
    pub fn note(&self, kind: &str) -> Option<&'static str> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told_apart = kinds.len() < KINDS || kinds.contains_key(kind);
        let kind = if is_told_apart { kind } else { OTHERS };
        if !kinds.contains_key(kind) {
            kinds.insert(kind.to_owned(), 0);
        }
        let count = kinds.get_mut(kind)?;
        *count += 1;
        (*count <= WRITTEN).then_some(if *count == WRITTEN { LAST } else { "" })
    }

    /// How many lines of each kind were not written, where that is any.
    #[must_use]
    pub fn left_out(&self) -> Vec<(String, u64)> {
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = kinds.iter().filter(|(_, count)| **count > WRITTEN);
        over.map(|(kind, count)| (kind.clone(), count - WRITTEN)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_of_a_kind_are_written_and_the_others_counted() {
        let repeats = Repeats::default();
        let written: Vec<_> = (0..25).filter_map(|_| repeats.note("refused")).collect();
        assert_eq!((written.len(), written[0], written[2]), (3, "", LAST));
        assert_eq!(repeats.note("reset"), Some(""));
        assert_eq!(repeats.left_out(), [("refused".to_owned(), 22)]);
    }

    #[test]
    fn there_is_an_end_to_kinds() {
        let repeats = Repeats::default();
        let written = (0..1000).filter(|number| repeats.note(&format!("user {number} is gone")).is_some()).count();
        assert_eq!(written, KINDS + 3);
        assert_eq!(repeats.left_out(), [(OTHERS.to_owned(), 897)]);
    }
}
