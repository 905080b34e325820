//! Random orders of the variants in the blocks of one condition.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// Draws the order of one block after the other, balanced over positions: over all blocks a variant
/// has one position at most ceil(blocks / variants) times.
pub(crate) struct BlockOrders {
    /// `remaining[position][variant]`: how often the variant may still have that position.
    remaining: Vec<Vec<u32>>,
}

impl BlockOrders {
    pub(crate) fn new(variants: usize, blocks: u32) -> BlockOrders {
        let most = blocks.div_ceil(u32::try_from(variants).unwrap_or(u32::MAX).max(1));
        BlockOrders { remaining: vec![vec![most; variants]; variants] }
    }

    /// The variants of the next block, by position.
    ///
    /// There is always one while blocks remain: the remaining uses of positions and variants form a
    /// regular bipartite graph, and such a graph has a perfect matching (Hall, 1935). It is found
    /// with augmenting paths that try variants in random order, which gives every variant the same
    /// chance: nothing in it depends on a variant's number.
    pub(crate) fn next(&mut self, random: &mut Pcg64) -> Vec<usize> {
        let variants = self.remaining.len();
        let mut matching = Matching {
            preferences: (0..variants).map(|_| shuffled(variants, random)).collect(),
            position_of: vec![None; variants],
        };
        for position in shuffled(variants, random) {
            let assigned = matching.assign(position, &self.remaining, &mut vec![false; variants]);
            debug_assert!(assigned, "a regular bipartite graph has a perfect matching");
        }
        let mut order = vec![0; variants];
        for (variant, position) in matching.position_of.iter().enumerate() {
            let position = position.expect("every position is seated");
            order[position] = variant;
            self.remaining[position][variant] -= 1;
        }
        order
    }
}

/// A matching of positions to variants in progress (Kuhn's algorithm).
struct Matching {
    /// For each position the variants, in the order in which it tries them.
    preferences: Vec<Vec<usize>>,
    /// The position of each variant.
    position_of: Vec<Option<usize>>,
}

impl Matching {
    /// Assigns a variant to `position`; a variant that is taken is reassigned if its position finds
    /// another.
    fn assign(&mut self, position: usize, remaining: &[Vec<u32>], visited: &mut [bool]) -> bool {
        for rank in 0..self.preferences[position].len() {
            let variant = self.preferences[position][rank];
            if remaining[position][variant] == 0 || std::mem::replace(&mut visited[variant], true) {
                continue;
            }
            let free = match self.position_of[variant] {
                None => true,
                Some(other) => self.assign(other, remaining, visited),
            };
            if free {
                self.position_of[variant] = Some(position);
                return true;
            }
        }
        false
    }
}

/// The numbers below `count` in random order (Fisher and Yates).
pub(crate) fn shuffled(count: usize, random: &mut Pcg64) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        numbers.swap(last, below(last + 1, random));
    }
    numbers
}

/// A uniform random number below `bound`: draws from the incomplete last round of `bound` are
/// rejected.
fn below(bound: usize, random: &mut Pcg64) -> usize {
    let bound = bound as u64;
    let whole_rounds = u64::MAX - u64::MAX % bound;
    loop {
        let draw = random.next_u64();
        if draw < whole_rounds {
            return (draw % bound) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::SeedableRng;
    use std::collections::BTreeMap;

    #[test]
    fn every_order_of_three_comes_up_about_equally_often() {
        let mut counts: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        let mut random = Pcg64::seed_from_u64(7);
        for _ in 0..6000 {
            *counts.entry(BlockOrders::new(3, 1).next(&mut random)).or_default() += 1;
        }
        // 1,000 expected of each; the standard deviation is 29.
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (880..1120).contains(count)), "{counts:?}");
    }

    #[test]
    fn two_variants_lead_about_equally_often_over_the_repeats() {
        let mut random = Pcg64::seed_from_u64(1);
        for blocks in 1..=12 {
            let mut orders = BlockOrders::new(2, blocks);
            let first_leads = (0..blocks).filter(|_| orders.next(&mut random) == [0, 1]).count() as u32;
            assert!(first_leads.abs_diff(blocks - first_leads) <= 1, "{first_leads} of {blocks}");
        }
    }
}
