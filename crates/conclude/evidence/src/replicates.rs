//! Replicates simulated studies, and counts the share of them in which something happens.

use crate::random::RandomStream;
use std::thread;

/// The number of studies that use one stream of random numbers. Streams belong to chunks and not to
/// threads, so that the results do not depend on the number of threads.
const CHUNK: usize = 100;

/// Fewest studies for a number.
const MIN_STUDIES: usize = 20;

/// The size of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Simulated studies for each number.
    pub replicates: usize,
    /// Threads at work.
    pub threads: usize,
}

impl Effort {
    /// The effort for docs/method-evidence.md.
    #[must_use]
    pub fn full() -> Effort {
        Effort { replicates: 20_000, threads: 2 }
    }

    /// A small effort, for tests.
    #[must_use]
    pub fn fast() -> Effort {
        Effort { replicates: 400, threads: 1 }
    }

    /// Divides the number of studies: for simulations that take longer each.
    #[must_use]
    pub fn divided_by(self, divisor: usize) -> Effort {
        Effort { replicates: (self.replicates / divisor).max(MIN_STUDIES), ..self }
    }
}

/// A share of studies, as a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Studies in which it happened.
    pub hits: u64,
    /// Studies in which it could have happened.
    pub of: u64,
}

impl Share {
    /// The share from 0 to 1; 0 without studies.
    #[must_use]
    pub fn value(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.hits as f64 / self.of as f64 }
    }

    /// Its standard error: √(p(1 − p)/n).
    #[must_use]
    pub fn standard_error(self) -> f64 {
        if self.of == 0 { 0.0 } else { (self.value() * (1.0 - self.value()) / self.of as f64).sqrt() }
    }

    fn record(&mut self, happened: Option<bool>) {
        self.hits += u64::from(happened == Some(true));
        self.of += u64::from(happened.is_some());
    }

    fn add(&mut self, other: Share) {
        self.hits += other.hits;
        self.of += other.of;
    }
}

/// The shares of studies in which each of `K` events happens.
pub fn shares<const K: usize>(
    name: &str,
    effort: Effort,
    study: impl Fn(&mut RandomStream) -> [bool; K] + Sync,
) -> [Share; K] {
    shares_where(name, effort, |random| study(random).map(Some))
}

/// The shares where an event may also be inapplicable; such studies do not count for it.
pub fn shares_where<const K: usize>(
    name: &str,
    effort: Effort,
    study: impl Fn(&mut RandomStream) -> [Option<bool>; K] + Sync,
) -> [Share; K] {
    let mut sums = [Share::default(); K];
    for happened in values(name, effort, study) {
        sums.iter_mut().zip(happened).for_each(|(sum, happened)| sum.record(happened));
    }
    sums
}

/// The value of each study, in an order that does not depend on the threads.
pub fn values<T: Send>(name: &str, effort: Effort, study: impl Fn(&mut RandomStream) -> T + Sync) -> Vec<T> {
    let chunks = effort.replicates.div_ceil(CHUNK);
    let chunk = |part: usize| -> Vec<T> {
        let mut random = RandomStream::named(name, part as u64);
        let size = CHUNK.min(effort.replicates - part * CHUNK);
        (0..size).map(|_| study(&mut random)).collect()
    };
    let threads = effort.threads.max(1);
    let mut done: Vec<(usize, Vec<T>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                scope
                    .spawn(move || (first..chunks).step_by(threads).map(|part| (part, chunk(part))).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a simulation does not panic")).collect()
    });
    done.sort_by_key(|(part, _)| *part);
    done.into_iter().flat_map(|(_, values)| values).collect()
}

/// Adds up the shares of several cells.
#[must_use]
pub fn sum_of_shares(shares: impl IntoIterator<Item = Share>) -> Share {
    shares.into_iter().fold(Share::default(), |mut sum, share| {
        sum.add(share);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_do_not_change_the_result() {
        let run = |threads| values("threads", Effort { replicates: 1050, threads }, RandomStream::seed);
        assert_eq!(run(1), run(2));
        assert_eq!(run(1).len(), 1050);
    }

    #[test]
    fn a_share_counts_what_could_have_happened() {
        let [even, of_even] = shares_where("shares", Effort::fast(), |random| {
            let even = random.seed() % 2 == 0;
            [Some(even), even.then(|| random.happens(0.25))]
        });
        assert_eq!((even.of, of_even.of), (400, even.hits));
        assert!((even.value() - 0.5).abs() < 4.0 * even.standard_error());
        assert!((of_even.value() - 0.25).abs() < 4.0 * of_even.standard_error());
        assert_eq!(Share::default().value(), 0.0);
    }
}
