//! The check that the numbers in all replies of a trial are 1, 2, … N, each exactly once.
//!
//! Each number takes one bit, in pages, so that a trial of ten million calls takes little over a megabyte, and a single
//! absurd number (say 2⁶⁰) takes one page.

use super::SequenceCheck;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const PAGE_BITS: u64 = 1 << 16;

/// The numbers in the replies that one thread, or one generator, has received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceRecorder {
    pages: BTreeMap<u64, Box<[u64]>>,
    replies: u64,
    repeated: u64,
    unanswered: u64,
    unreadable: u64,
}

impl SequenceRecorder {
    /// Records a reply; `number` is the number in it, if one could be found.
    pub fn saw(&mut self, number: Option<u64>) {
        let Some(number) = number.filter(|number| *number >= 1) else {
            self.unreadable += 1;
            return;
        };
        self.replies += 1;
        let page = self.pages.entry(number / PAGE_BITS).or_insert_with(empty_page);
        let (word, bit) = place(number);
        self.repeated += (page[word] >> bit) & 1;
        page[word] |= 1 << bit;
    }

    /// Records a call that ended without a reply: the system may have counted it, or not.
    pub fn missed(&mut self) {
        self.unanswered += 1;
    }

    /// Adds the numbers of another thread, or of another generator.
    pub fn merge(&mut self, other: &SequenceRecorder) {
        for (number, theirs) in &other.pages {
            let ours = self.pages.entry(*number).or_insert_with(empty_page);
            for (our, their) in ours.iter_mut().zip(theirs) {
                self.repeated += u64::from((*our & *their).count_ones());
                *our |= their;
            }
        }
        self.replies += other.replies;
        self.repeated += other.repeated;
        self.unanswered += other.unanswered;
        self.unreadable += other.unreadable;
    }

    /// The result of the check over all numbers.
    #[must_use]
    pub fn check(&self) -> SequenceCheck {
        let distinct: u64 =
            self.pages.values().flat_map(|page| page.iter()).map(|word| u64::from(word.count_ones())).sum();
        let largest = self.largest();
        SequenceCheck {
            replies: self.replies,
            largest,
            repeated: self.repeated,
            missing: largest - distinct,
            unanswered: self.unanswered,
            unreadable: self.unreadable,
        }
    }

    fn largest(&self) -> u64 {
        let Some((number, page)) = self.pages.last_key_value() else { return 0 };
        let word = page.iter().rposition(|word| *word != 0).expect("a page is made for the number it takes");
        let bit = 63 - u64::from(page[word].leading_zeros());
        number * PAGE_BITS + word as u64 * 64 + bit
    }
}

fn empty_page() -> Box<[u64]> {
    vec![0; (PAGE_BITS / 64) as usize].into_boxed_slice()
}

fn place(number: u64) -> (usize, u64) {
    let inside = number % PAGE_BITS;
    ((inside / 64) as usize, inside % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorder_of(numbers: &[u64]) -> SequenceRecorder {
        let mut recorder = SequenceRecorder::default();
        numbers.iter().for_each(|number| recorder.saw(Some(*number)));
        recorder
    }

    #[test]
    fn each_number_once_holds_in_any_order() {
        let numbers: Vec<u64> = (1..=100_000).rev().collect();
        let check = recorder_of(&numbers).check();
        assert!(check.holds());
        assert_eq!((check.replies, check.largest), (100_000, 100_000));
    }

    #[test]
    fn repeats_gaps_and_nonsense_are_told_apart() {
        let mut recorder = recorder_of(&[1, 2, 2, 5]);
        recorder.saw(None);
        recorder.saw(Some(0));
        let check = recorder.check();
        assert_eq!((check.repeated, check.missing, check.unreadable), (1, 2, 2));
        assert!(!check.holds());
    }

    #[test]
    fn a_number_out_of_the_blue_takes_one_page() {
        let recorder = recorder_of(&[1, 1 << 60]);
        assert_eq!(recorder.pages.len(), 2);
        assert_eq!(recorder.check().missing, (1 << 60) - 2);
    }

    proptest! {
        #[test]
        fn splitting_over_threads_changes_nothing(numbers in prop::collection::vec(1_u64..200_000, 0..300), cut in 0_usize..300) {
            let cut = cut.min(numbers.len());
            let mut merged = recorder_of(&numbers[..cut]);
            merged.merge(&recorder_of(&numbers[cut..]));
            prop_assert_eq!(merged.check(), recorder_of(&numbers).check());
        }
    }
}
