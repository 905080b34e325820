//! Computes when replies are due, as a pure function of arrival instants, so that the delays of timers never
//! add up.

use super::behaviour::{Service, Timing};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::time::{Duration, Instant};

/// The sojourn of a request: how long it stayed with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sojourn {
    /// When it was completely read, from the start of the server.
    pub arrived: Duration,
    /// Its service time; zero if the behaviour is no queue.
    pub service: Duration,
    /// When the reply was due, from the start of the server: waiting and service after `arrived`.
    pub due: Duration,
    /// When the reply was handed to the kernel, from the start of the server: how much later than
    /// `due` is the server's own inaccuracy.
    pub answered: Duration,
}

/// The state of a behaviour's timing.
#[derive(Debug)]
pub(super) struct Queue {
    timing: Timing,
    first: Option<Instant>,
    free: Option<Instant>,
    random: Pcg64,
}

/// When a reply is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) service: Duration,
}

impl Queue {
    pub(super) fn new(timing: Timing) -> Queue {
        let seed = match timing {
            Timing::Queue(Service::Exponential { seed, .. }) => seed,
            _ => 0,
        };
        Queue { timing, first: None, free: None, random: Pcg64::seed_from_u64(seed) }
    }

    /// When the reply to a request that `arrived` after all others is due. `None` means never.
    pub(super) fn enter(&mut self, arrived: Instant) -> Option<Due> {
        let first = *self.first.get_or_insert(arrived);
        let (at, service) = match self.timing {
            Timing::Never => return None,
            Timing::After(delay) => (arrived + delay, Duration::ZERO),
            Timing::Stalling { at, length } => (after_stall(arrived, first + at, length), Duration::ZERO),
            Timing::Settling { slow, settled, after } => {
                let delay = if arrived - first < after { slow } else { settled };
                (arrived + delay, Duration::ZERO)
            }
            Timing::Slowing { from, more } => {
                (arrived + from + more.mul_f64((arrived - first).as_secs_f64()), Duration::ZERO)
            }
            Timing::Queue(service) => {
                let service = self.draw(service);
                let begin = self.free.map_or(arrived, |free| free.max(arrived));
                self.free = Some(begin + service);
                (begin + service, service)
            }
        };
        Some(Due { at, service })
    }

    fn draw(&mut self, service: Service) -> Duration {
        match service {
            Service::Constant(time) => time,
            Service::Exponential { mean, .. } => {
                // 53 bits make a double in [0, 1); the logarithm of 1 - u is finite for all of them.
                let uniform = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                mean.mul_f64(-(-uniform).ln_1p())
            }
        }
    }
}

fn after_stall(arrived: Instant, begin: Instant, length: Duration) -> Instant {
    let end = begin + length;
    if arrived >= begin && arrived < end { end } else { arrived }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_stall_holds_what_comes_in_it_until_its_end() {
        let mut queue = Queue::new(Timing::Stalling { at: ms(100), length: ms(1_000) });
        let start = Instant::now();
        for (arrives, leaves) in [(0, 0), (99, 99), (100, 1_100), (600, 1_100), (1_100, 1_100), (1_101, 1_101)] {
            let due = queue.enter(start + ms(arrives)).unwrap();
            assert_eq!(due.at - start, ms(leaves), "arrival at {arrives} ms");
        }
    }

    #[test]
    fn a_server_settles_once_and_slows_down_for_good() {
        let settling = Timing::Settling { slow: ms(30), settled: ms(10), after: ms(500) };
        let slowing = Timing::Slowing { from: ms(10), more: ms(4) };
        for (timing, expected) in [
            (settling, [(0, 30), (499, 529), (500, 510), (9_000, 9_010)]),
            (slowing, [(0, 10), (250, 261), (1_000, 1_014), (2_500, 2_520)]),
        ] {
            let mut queue = Queue::new(timing);
            let start = Instant::now();
            for (arrives, leaves) in expected {
                assert_eq!(queue.enter(start + ms(arrives)).unwrap().at - start, ms(leaves), "arrival at {arrives} ms");
            }
        }
    }

    #[test]
    fn a_queue_serves_one_after_the_other() {
        let mut queue = Queue::new(Timing::Queue(Service::Constant(ms(10))));
        let start = Instant::now();
        for (arrives, leaves) in [(0, 10), (1, 20), (2, 30), (100, 110)] {
            assert_eq!(queue.enter(start + ms(arrives)).unwrap().at - start, ms(leaves), "arrival at {arrives} ms");
        }
    }

    #[test]
    fn exponential_service_has_its_mean_its_spread_and_its_seed() {
        let draws = |seed| {
            let service = Service::Exponential { mean: ms(2), seed };
            let mut queue = Queue::new(Timing::Queue(service));
            (0..100_000).map(|_| queue.draw(service).as_secs_f64()).collect::<Vec<_>>()
        };
        let times = draws(7);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
        assert!((mean / 0.002 - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance.sqrt() / 0.002 - 1.0).abs() < 0.03, "standard deviation {}", variance.sqrt());
        assert_eq!(times, draws(7));
        assert_ne!(times, draws(8));
    }
}
