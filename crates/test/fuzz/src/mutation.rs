//! Seeded mutations of inputs.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// Bytes that often lie at the edges of formats.
const EDGES: [u8; 12] = [0, 1, 0x7f, 0x80, 0xfb, 0xfe, 0xff, b'\n', b'"', b'[', b'{', b'('];

/// The longest mutation in bytes.
const LONGEST: usize = 64 * 1024;

/// Mutations of the inputs of a corpus, without an end: each is one input with one to eight changes.
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    random: Pcg64Mcg,
}

impl<'a> Mutator<'a> {
    /// Mutates the inputs of this corpus, which is not empty.
    #[must_use]
    pub fn new(corpus: &'a [Vec<u8>], seed: u64) -> Mutator<'a> {
        Mutator { corpus, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let part = self.part_of(input.len());
        match self.below(7) {
            0 => input[part].iter_mut().take(1).for_each(|byte| *byte ^= 1 << (self.random.next_u32() % 8)),
            1 => {
                let edge = EDGES[self.below(EDGES.len())];
                input[part].iter_mut().take(4).for_each(|byte| *byte = edge);
            }
            2 => drop(input.drain(part)),
            3 => input.truncate(part.start),
            4 => {
                let again = input[part.clone()].repeat(1 + self.below(16));
                input.splice(part.end..part.end, again);
            }
            5 => {
                let other = self.any_input();
                let from = self.part_of(other.len());
                input.splice(part, other[from].iter().copied());
            }
            _ => {
                let bytes = self.random.next_u64().to_ne_bytes();
                let count = 1 + self.below(bytes.len());
                input.splice(part.start..part.start, bytes[..count].iter().copied());
            }
        }
    }

    fn any_input(&mut self) -> &'a [u8] {
        &self.corpus[self.below(self.corpus.len())]
    }

    /// A part of that many bytes, mostly a short one.
    fn part_of(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        let longest = if self.below(4) == 0 { length } else { 16 };
        start..(start + self.below(longest + 1)).min(length)
    }

    /// A number below `end`, which is at least 1.
    fn below(&mut self, end: usize) -> usize {
        (self.random.next_u64() % end as u64) as usize
    }
}

impl Iterator for Mutator<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut input = self.any_input().to_vec();
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        Some(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_follow_from_the_seed() {
        let corpus = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), Vec::new()];
        let some = |seed| Mutator::new(&corpus, seed).take(100).collect::<Vec<_>>();
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        assert!(some(1).iter().all(|input| input.len() <= LONGEST));
    }
}
