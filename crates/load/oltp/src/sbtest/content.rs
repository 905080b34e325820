//! The content of rows: groups of eleven digits, as in sysbench.

use plimsoll_feed::{IntegerSampler, RandomSource, SeededRandom};
use plimsoll_model::sql::Distribution;
use std::fmt::Write;

/// The number of groups in the columns `c` and `pad`.
const GROUPS_OF_C: usize = 10;
const GROUPS_OF_PAD: usize = 5;

/// The columns of a row beside its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) k: i64,
    pub(super) c: String,
    pub(super) pad: String,
}

impl Row {
    /// Draws new content, and reuses the memory of the old.
    pub(super) fn fill(&mut self, keys: &IntegerSampler, random: &mut dyn RandomSource) {
        self.k = keys.sample(random);
        fill_c(&mut self.c, random);
        digits(&mut self.pad, GROUPS_OF_PAD, random);
    }
}

pub(super) fn fill_c(c: &mut String, random: &mut dyn RandomSource) {
    digits(c, GROUPS_OF_C, random);
}

fn digits(text: &mut String, groups: usize, random: &mut dyn RandomSource) {
    text.clear();
    for group in 0..groups {
        let dash = if group == 0 { "" } else { "-" };
        let number = random.between(0, 99_999_999_999);
        write!(text, "{dash}{number:011}").expect("a text takes whatever is written to it");
    }
}

/// The content of the tables. Keys have sysbench's default distribution.
pub(super) struct Content {
    keys: IntegerSampler,
    seed: u64,
}

impl Content {
    pub(super) fn new(rows: u64, seed: u64) -> Content {
        Content { keys: IntegerSampler::new(1, rows as i64, Distribution::Special), seed }
    }

    /// Returns a function that fills the rows of a table from `first` on, one after the other. They
    /// depend on the seed alone, however many connections load them.
    pub(super) fn rows(&self, table: u32, first: u64) -> impl FnMut(&mut Row) {
        let mut random = part_random(self.seed, table, first);
        move |row| row.fill(&self.keys, &mut random)
    }
}

/// The random numbers for the part of a table that begins at row `first`.
fn part_random(seed: u64, table: u32, first: u64) -> SeededRandom {
    let part = (u64::from(table) << 40) ^ first;
    SeededRandom::new(seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_rows(seed: u64, table: u32, first: u64) -> [Row; 3] {
        let content = Content::new(1_000, seed);
        let mut next = content.rows(table, first);
        std::array::from_fn(|_| {
            let mut row = Row::default();
            next(&mut row);
            row
        })
    }

    #[test]
    fn columns_are_groups_of_eleven_digits() {
        for row in first_rows(1, 1, 1) {
            for (text, groups) in [(&row.c, 10), (&row.pad, 5)] {
                let found: Vec<&str> = text.split('-').collect();
                assert_eq!(found.len(), groups, "{text}");
                assert!(found.iter().all(|group| group.len() == 11 && group.bytes().all(|byte| byte.is_ascii_digit())));
            }
            assert_eq!((row.c.len(), row.pad.len()), (119, 59));
            assert!((1..=1_000).contains(&row.k));
        }
    }

    #[test]
    fn content_follows_from_seed_table_and_row_alone() {
        assert_eq!(first_rows(7, 2, 1), first_rows(7, 2, 1));
        for other in [first_rows(8, 2, 1), first_rows(7, 1, 1), first_rows(7, 2, 5_001)] {
            assert_ne!(first_rows(7, 2, 1), other);
        }
    }
}
