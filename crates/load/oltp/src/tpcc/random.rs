//! Random values as TPC-C defines them: NURand, last names, strings (clauses 2.1.6 and 4.3.2).

use plimsoll_feed::{RandomSource, SeededRandom};

/// The number of customers of a district.
pub(super) const CUSTOMERS: i64 = 3_000;
/// The number of items.
pub(super) const ITEMS: i64 = 100_000;
/// The largest number of a last name.
const LARGEST_NAME: i64 = 999;

/// A seeded source of random values.
#[derive(Debug)]
pub(super) struct Random(SeededRandom);

impl Random {
    /// The source for the purpose that `parts` name, independent of those for other parts.
    pub(super) fn of(seed: u64, parts: &[u64]) -> Random {
        let mixed = parts.iter().fold(seed, |state, part| {
            (state ^ part).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        });
        Random(SeededRandom::new(mixed))
    }

    /// A text of letters and digits, from `shortest` to `longest` characters.
    pub(super) fn letters(&mut self, shortest: i64, longest: i64) -> String {
        const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let length = self.between(shortest, longest);
        self.symbols(ALPHABET, length)
    }

    /// A text of `length` digits.
    pub(super) fn digits(&mut self, length: i64) -> String {
        self.symbols(b"0123456789", length)
    }

    /// Reads each random number as a fraction in base `alphabet.len()`, and uses ten places of it. One
    /// random number for each character would take most of the time of a load.
    fn symbols(&mut self, alphabet: &[u8], length: i64) -> String {
        let mut fraction = 0;
        let symbol = |place| {
            if place % 10 == 0 {
                fraction = self.0.bits();
            }
            let shifted = u128::from(fraction) * alphabet.len() as u128;
            fraction = shifted as u64;
            char::from(alphabet[(shifted >> 64) as usize])
        };
        (0..length).map(symbol).collect()
    }

    /// The integers from 1 to `count` in random order.
    pub(super) fn permutation(&mut self, count: i64) -> Vec<i64> {
        let mut numbers: Vec<i64> = (1..=count).collect();
        for last in (1..numbers.len()).rev() {
            numbers.swap(last, self.between(0, last as i64) as usize);
        }
        numbers
    }
}

impl RandomSource for Random {
    fn unit(&mut self) -> f64 {
        self.0.unit()
    }
}

/// The constants C of NURand, one for each kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constants {
    last_name: i64,
    customer: i64,
    item: i64,
}

impl Constants {
    /// The constants for loading data.
    pub(super) fn of_data(seed: u64) -> Constants {
        let mut random = Random::of(seed, &[0xC]);
        Constants { last_name: random.between(0, 255), ..Constants::drawn(&mut random) }
    }

    /// The constants for the transactions on such data. The constant of last names keeps the distance
    /// from the load's that clause 2.1.6.1 demands.
    pub(super) fn of_run(data_seed: u64, seed: u64) -> Constants {
        let loaded = Constants::of_data(data_seed).last_name;
        let allowed: Vec<i64> = (0..=255).filter(|constant| is_far_enough(constant - loaded)).collect();
        let mut random = Random::of(seed, &[0xC]);
        let last_name = allowed[random.between(0, allowed.len() as i64 - 1) as usize];
        Constants { last_name, ..Constants::drawn(&mut random) }
    }

    fn drawn(random: &mut Random) -> Constants {
        Constants { last_name: 0, customer: random.between(0, 1023), item: random.between(0, 8191) }
    }

    /// Draws the number of a customer.
    pub(super) fn customer(&self, random: &mut dyn RandomSource) -> i64 {
        nurand(random, 1023, 1, CUSTOMERS, self.customer)
    }

    /// Draws the number of an item.
    pub(super) fn item(&self, random: &mut dyn RandomSource) -> i64 {
        nurand(random, 8191, 1, ITEMS, self.item)
    }

    /// Draws the number of a last name.
    pub(super) fn last_name(&self, random: &mut dyn RandomSource) -> i64 {
        nurand(random, 255, 0, LARGEST_NAME, self.last_name)
    }
}

/// Clause 2.1.6.1: from 65 to 119, but neither 96 nor 112.
fn is_far_enough(distance: i64) -> bool {
    let distance = distance.abs();
    (65..=119).contains(&distance) && distance != 96 && distance != 112
}

/// NURand(A, x, y) of clause 2.1.6.
fn nurand(random: &mut dyn RandomSource, a: i64, low: i64, high: i64, constant: i64) -> i64 {
    (((random.between(0, a) | random.between(low, high)) + constant) % (high - low + 1)) + low
}

/// The last name of a number from 0 to 999 (clause 4.3.2.3).
pub(super) fn last_name(number: i64) -> String {
    const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn the_constant_of_a_run_is_as_far_from_that_of_the_load_as_it_must_be() {
        for seed in 0..2_000 {
            let loaded = Constants::of_data(seed % 50).last_name;
            let run = Constants::of_run(seed % 50, seed).last_name;
            let distance = (run - loaded).abs();
            assert!((65..=119).contains(&distance) && ![96, 112].contains(&distance), "{loaded} and {run}");
            assert!((0..=255).contains(&run) && (0..=255).contains(&loaded));
        }
    }

    /// With A = 255 and C = 0, `rand(0, A) | rand(0, 999)` has each of its lowest eight bits set in
    /// three of four draws, or nearly so.
    #[test]
    fn nurand_prefers_what_its_definition_prefers_and_stays_in_range() {
        let (mut random, draws) = (Random::of(1, &[]), 100_000);
        let mut set = [0_u32; 8];
        for _ in 0..draws {
            let number = nurand(&mut random, 255, 0, 1023, 0);
            assert!((0..=1023).contains(&number));
            (0..8).for_each(|bit| set[bit] += (number >> bit & 1) as u32);
        }
        for count in set {
            let share = f64::from(count) / f64::from(draws);
            assert!((share - 0.75).abs() < 0.01, "{share}");
        }
    }

    #[test]
    fn the_constant_moves_the_numbers_and_changes_nothing_else() {
        let numbers = |constant| {
            let mut random = Random::of(5, &[]);
            (0..1_000).map(|_| nurand(&mut random, 1023, 1, CUSTOMERS, constant)).collect::<Vec<i64>>()
        };
        let moved: Vec<i64> = numbers(0).iter().map(|number| (number - 1 + 259) % CUSTOMERS + 1).collect();
        assert_eq!(numbers(259), moved);
    }

    #[test]
    fn strings_have_the_lengths_and_letters_that_were_asked_for() {
        let mut random = Random::of(2, &[]);
        let mut seen = [false; 128];
        for _ in 0..1_000 {
            let text = random.letters(8, 16);
            assert!((8..=16).contains(&text.len()) && text.bytes().all(|letter| letter.is_ascii_alphanumeric()));
            text.bytes().for_each(|letter| seen[usize::from(letter)] = true);
        }
        assert_eq!(seen.iter().filter(|seen| **seen).count(), 62);
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        let mut numbers = Random::of(3, &[]).permutation(3_000);
        assert_ne!(numbers, Random::of(4, &[]).permutation(3_000));
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=3_000));
    }
}
