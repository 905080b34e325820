//! What the rows hold: groups of eleven digits, as in sysbench.

use crate::distribution::Numbers;
use crate::terminal::Draw;
use plimsoll_model::sql::Distribution;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::fmt::Write;

/// Groups of the columns `c` and `pad`.
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
    /// New content, in the memory of the old one.
    pub(super) fn fill(&mut self, keys: &Numbers, draw: &mut dyn Draw) {
        self.k = keys.draw(draw);
        fill_c(&mut self.c, draw);
        digits(&mut self.pad, GROUPS_OF_PAD, draw);
    }
}

pub(super) fn fill_c(c: &mut String, draw: &mut dyn Draw) {
    digits(c, GROUPS_OF_C, draw);
}

fn digits(text: &mut String, groups: usize, draw: &mut dyn Draw) {
    text.clear();
    for group in 0..groups {
        let dash = if group == 0 { "" } else { "-" };
        let number = draw.between(0, 99_999_999_999);
        write!(text, "{dash}{number:011}").expect("a text takes whatever is written to it");
    }
}

/// What a table holds: keys are drawn as sysbench draws them when nothing else is asked for.
pub(super) struct Content {
    keys: Numbers,
    seed: u64,
}

impl Content {
    pub(super) fn new(rows: u64, seed: u64) -> Content {
        Content { keys: Numbers::new(1, rows as i64, Distribution::Special), seed }
    }

    /// The rows of a table from `first` on, one after the other: the same for the same seed, however
    /// many connections load them.
    pub(super) fn rows(&self, table: u32, first: u64) -> impl FnMut(&mut Row) {
        let mut seeded = Seeded::of(self.seed, table, first);
        move |row| row.fill(&self.keys, &mut seeded)
    }
}

/// The numbers that belong to a part of a table.
struct Seeded(Pcg64Mcg);

impl Seeded {
    fn of(seed: u64, table: u32, first: u64) -> Seeded {
        let part = (u64::from(table) << 40) ^ first;
        Seeded(Pcg64Mcg::seed_from_u64(seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

impl Draw for Seeded {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
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
