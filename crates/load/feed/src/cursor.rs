//! Chooses the next row.
//!
//! Threads do not communicate: thread `i` of `n` takes the positions `i`, `i + n`, `i + 2n`, …, as it
//! takes the arrivals, users and connections of the load. So no two threads take the same position,
//! without a lock, and the number of threads does not change which rows a load takes.

use plimsoll_model::load::Share;

/// The rule by which users take rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// User k keeps row k.
    PerUser(AtEnd),
    /// All users together take one row after the other, a row for each iteration.
    InOrder(AtEnd),
    /// A random row for each iteration, from the seed, without end.
    Random,
    /// As in order, but each row once: at the end users stop.
    Unique,
}

/// What happens after the last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// The first row comes again.
    StartOver,
    /// Users that need a row stop.
    Stop,
}

/// The user and iteration for which a row is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The user among all users of the load, from 0.
    pub user: u64,
    /// The iteration among those of this user, from 0.
    pub iteration: u64,
}

/// Hands out the rows of one table on one thread.
#[derive(Clone, Debug)]
pub struct Cursor {
    order: Order,
    rows: usize,
    seed: u64,
    share: Share,
    /// The number of rows that this thread has taken in order.
    taken: u64,
}

impl AtEnd {
    /// The row at a position, counted through all who take rows; `None` behind the end.
    #[must_use]
    pub fn row(self, position: u64, rows: usize) -> Option<usize> {
        let rows = rows as u64;
        let row = match self {
            AtEnd::StartOver => position.checked_rem(rows),
            AtEnd::Stop => Some(position).filter(|position| *position < rows),
        };
        row.map(|row| row as usize)
    }
}

impl Cursor {
    /// A cursor over a table with this number of rows. Tables of one study need different seeds, or
    /// their random rows correlate.
    #[must_use]
    pub fn new(order: Order, rows: usize, seed: u64, share: Share) -> Cursor {
        Cursor { order, rows, seed, share, taken: 0 }
    }

    /// The row for this turn; `None` if the user must stop.
    pub fn take(&mut self, turn: Turn) -> Option<usize> {
        match self.order {
            Order::PerUser(at_end) => at_end.row(turn.user, self.rows),
            Order::InOrder(at_end) => at_end.row(self.next_position(), self.rows),
            Order::Unique => AtEnd::Stop.row(self.next_position(), self.rows),
            Order::Random => drawn(self.seed, turn, self.rows),
        }
    }

    fn next_position(&mut self) -> u64 {
        let position = self.share.index as u64 + self.taken * self.share.of as u64;
        self.taken += 1;
        position
    }
}

/// A row that depends on seed and turn alone, so it is the same on any thread.
fn drawn(seed: u64, turn: Turn, rows: usize) -> Option<usize> {
    let bits = mixed(mixed(mixed(seed).wrapping_add(turn.user)).wrapping_add(turn.iteration));
    let row = (u128::from(bits) * rows as u128) >> 64;
    (rows > 0).then_some(row as usize)
}

/// The step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014): each bit of the result depends on each bit of what goes in.
fn mixed(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALONE: Share = Share { index: 0, of: 1 };

    fn cursors(order: Order, rows: usize, threads: usize) -> Vec<Cursor> {
        (0..threads).map(|index| Cursor::new(order, rows, 7, Share { index, of: threads })).collect()
    }

    fn turn(user: u64, iteration: u64) -> Turn {
        Turn { user, iteration }
    }

    /// What a load of so many iterations takes, each thread its share of them; sorted.
    fn taken(order: Order, rows: usize, threads: usize, iterations: usize) -> Vec<Option<usize>> {
        let mut cursors = cursors(order, rows, threads);
        // Users are shared out as threads are: user k is on thread k modulo threads, 12 in all.
        let numbers = (0..iterations).map(|number| (number % threads, turn(number as u64 % 12, number as u64 / 12)));
        let mut taken: Vec<_> = numbers.map(|(thread, turn)| cursors[thread].take(turn)).collect();
        taken.sort_unstable();
        taken
    }

    #[test]
    fn one_thread_goes_through_the_rows() {
        let rows = |order| {
            let mut cursor = Cursor::new(order, 3, 7, ALONE);
            (0..5).map(|number| cursor.take(turn(number, 0))).collect::<Vec<_>>()
        };
        let (over, stop) = (AtEnd::StartOver, AtEnd::Stop);
        let first = [Some(0), Some(1), Some(2)];
        let again = [first.as_slice(), &[Some(0), Some(1)]].concat();
        let end = [first.as_slice(), &[None, None]].concat();
        assert_eq!((rows(Order::InOrder(over)), rows(Order::InOrder(stop))), (again.clone(), end.clone()));
        assert_eq!((rows(Order::PerUser(over)), rows(Order::PerUser(stop))), (again, end.clone()));
        assert_eq!(rows(Order::Unique), end);
    }

    #[test]
    fn a_user_keeps_its_row() {
        let mut cursor = Cursor::new(Order::PerUser(AtEnd::StartOver), 3, 7, ALONE);
        assert_eq!([0, 1, 9].map(|iteration| cursor.take(turn(4, iteration))), [Some(1); 3]);
    }

    #[test]
    fn random_rows_are_uniform_and_follow_from_the_seed() {
        let rows = |seed, users: u64| {
            let mut cursor = Cursor::new(Order::Random, 10, seed, ALONE);
            let turns = (0..users).flat_map(|user| (0..100_000 / users).map(move |iteration| turn(user, iteration)));
            turns.map(|turn| cursor.take(turn).expect("random has no end")).collect::<Vec<_>>()
        };
        for users in [1, 100, 100_000] {
            let drawn = rows(1, users);
            let squares = (0..10).map(|row| drawn.iter().filter(|drawn| **drawn == row).count() as f64 - 10_000.0);
            let chi_squared: f64 = squares.map(|off| off * off / 10_000.0).sum();
            // The 0.999 quantile of chi-squared with 9 degrees of freedom.
            assert!(chi_squared < 27.88, "{users} users: {chi_squared}");
        }
        assert_eq!(rows(1, 10), rows(1, 10));
        assert_ne!(rows(1, 10), rows(2, 10));
    }

    proptest! {
        #[test]
        fn unique_takes_every_row_once_whatever_the_threads_and_their_pace(
            rows in 1_usize..200,
            threads in 1_usize..9,
            pace in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
        ) {
            let mut cursors = cursors(Order::Unique, rows, threads);
            let mut seen = vec![0; rows];
            for thread in pace.iter().map(|index| index.index(threads)).chain((0..rows).flat_map(|_| 0..threads)) {
                cursors[thread].take(turn(0, 0)).into_iter().for_each(|row| seen[row] += 1);
            }
            prop_assert_eq!(seen, vec![1; rows]);
            prop_assert!(cursors.iter_mut().all(|cursor| cursor.take(turn(0, 0)).is_none()));
        }

        #[test]
        fn a_load_takes_the_same_rows_whatever_the_threads(
            rows in 1_usize..50,
            threads in prop::sample::select(vec![2_usize, 3, 4, 6, 12]),
            iterations in 0_usize..300,
        ) {
            let (over, stop) = (AtEnd::StartOver, AtEnd::Stop);
            let orders = [Order::PerUser(over), Order::PerUser(stop), Order::InOrder(over), Order::InOrder(stop)];
            for order in orders.into_iter().chain([Order::Random, Order::Unique]) {
                prop_assert_eq!(taken(order, rows, threads, iterations), taken(order, rows, 1, iterations), "{:?}", order);
            }
        }
    }
}
