//! When work is due: pure functions of the load profile and a seed, tested without a clock.
//!
//! Every thread of the generator computes the whole schedule and takes its share, so that the
//! load offered is the same however many threads send it.

use crate::clock::nanos;
use plimsoll_model::load::{Arrivals, Profile, Shape, Share, Think};
use plimsoll_model::units::Instant;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::f64::consts::TAU;
use std::time::Duration;

/// The part of the load that one thread carries: every `threads`-th member of its machine's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadShare {
    /// The share of the machine.
    pub machine: Share,
    /// The thread, from 0 on each machine.
    pub thread: usize,
    /// Threads of the machine.
    pub threads: usize,
}

impl ThreadShare {
    /// The thread's share of the whole load. The shares of all threads together are the machine's.
    #[must_use]
    pub fn share(self) -> Share {
        let Share { index, of } = self.machine;
        Share { index: index + self.thread * of, of: of * self.threads }
    }

    /// The part of this thread if only the first `threads` threads of the machine take part; none if it is not one of
    /// them.
    #[must_use]
    pub fn among(self, threads: usize) -> Option<ThreadShare> {
        (self.thread < threads).then_some(ThreadShare { threads, ..self })
    }
}

/// A seeded source of uniform numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The source for `stream` of the study's `seed`: streams do not overlap in practice.
    #[must_use]
    pub fn seeded(seed: u64, stream: u64) -> Random {
        Random(Pcg64Mcg::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform in `0 < x <= 1`, so that its logarithm exists.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// Normal with mean 0 and deviation 1, after Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (TAU * self.unit()).cos()
    }
}

/// The instants at which iterations arrive in open load, one after the other.
///
/// With `Λ(t)` the expected number of arrivals until `t`, arrival `i` comes where `Λ` reaches
/// `i` (constant) or a sum of `i` exponential draws with mean 1 (Poisson: the time-change of a
/// unit Poisson process, which is exact for rates that vary).
#[derive(Debug)]
pub struct ArrivalTimes {
    rate: RateCurve,
    arrivals: Arrivals,
    random: Random,
    expected: f64,
    drawn: u64,
    share: Share,
}

impl ArrivalTimes {
    /// Arrivals from `first` (the start of warm-up) on; the iterator returns only those of `share`.
    #[must_use]
    pub fn new(rate: &Profile, arrivals: Arrivals, first: Instant, seed: u64, share: Share) -> ArrivalTimes {
        ArrivalTimes {
            rate: RateCurve::new(rate, first),
            arrivals,
            random: Random::seeded(seed, 1),
            expected: 0.0,
            drawn: 0,
            share,
        }
    }

    /// Puts the first of evenly spaced arrivals one gap after the start, and not at the start. All arrivals come
    /// slightly earlier than that, so that one that is due at the very end of a ramp belongs to the ramp.
    #[must_use]
    pub fn after_a_gap(self) -> ArrivalTimes {
        const HAIR: f64 = 1e-6;
        ArrivalTimes { expected: 1.0 - HAIR, ..self }
    }

    /// Skips most of the evenly spaced arrivals until an instant, however many they are: all but the last few. Returns how
    /// many of its own it has skipped. Random arrivals have to be drawn one by one.
    pub(crate) fn skip_until(&mut self, until: Instant) -> u64 {
        if self.arrivals != Arrivals::Constant {
            return 0;
        }
        let next = self.expected + if self.drawn == 0 { 0.0 } else { 1.0 };
        let expected = self.rate.until(until.0 as f64 / 1e9) - next;
        // The rest stays for the exact way: rounding may be wrong by one.
        let skipped = (expected.max(0.0) as u64).saturating_sub(2 * self.share.of as u64);
        if skipped == 0 {
            return 0;
        }
        let own_before = |drawn: u64| {
            let (of, index) = (self.share.of as u64, self.share.index as u64);
            drawn / of + u64::from(drawn % of > index)
        };
        let own = own_before(self.drawn + skipped) - own_before(self.drawn);
        self.drawn += skipped;
        self.expected = next + (skipped - 1) as f64;
        own
    }
}

impl Iterator for ArrivalTimes {
    type Item = Instant;

    /// The next arrival; none when the rate has fallen to zero for good.
    fn next(&mut self) -> Option<Instant> {
        loop {
            self.expected += match self.arrivals {
                // The first of evenly spaced arrivals comes at the start, not one gap later.
                Arrivals::Constant if self.drawn == 0 => 0.0,
                Arrivals::Constant => 1.0,
                Arrivals::Poisson => self.random.exponential(),
            };
            let mine = self.drawn % self.share.of as u64 == self.share.index as u64;
            self.drawn += 1;
            if mine {
                return self.rate.when(self.expected);
            }
        }
    }
}

/// The number of arrivals in a warm-up and the first `measured` of the measure phase: exact if they are evenly spaced,
/// otherwise the mean.
#[must_use]
pub fn arrivals_within(rate: &Profile, warmup: Duration, measured: Duration) -> u64 {
    RateCurve::new(rate, Instant(-nanos(warmup))).until(measured.as_secs_f64()).ceil() as u64
}

/// The expected number of arrivals over time, in pieces that are at most quadratic.
#[derive(Debug)]
struct RateCurve {
    pieces: Vec<Piece>,
    /// The piece of the last lookup; lookups only go forward.
    at: usize,
}

/// From `begin` (seconds) on, the rate starts at `rate` and changes by `slope` per second;
/// `before` arrivals are expected until then.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: f64,
    length: f64,
    rate: f64,
    slope: f64,
    before: f64,
}

impl Piece {
    /// Expected arrivals in the first `seconds` of the piece.
    fn expected(&self, seconds: f64) -> f64 {
        (self.rate + self.slope * seconds / 2.0) * seconds
    }

    /// The seconds after which `count` arrivals are expected in the piece: the root of
    /// `rate·s + slope·s²/2 = count`, in the form that does not cancel for small slopes.
    fn seconds_until(&self, count: f64) -> f64 {
        if count <= 0.0 {
            return 0.0;
        }
        let root = (self.rate * self.rate + 2.0 * self.slope * count).max(0.0).sqrt();
        2.0 * count / (self.rate + root)
    }
}

impl RateCurve {
    fn new(rate: &Profile, first: Instant) -> RateCurve {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut push = |begin: f64, length: f64, rate: f64, target: f64| {
            let before = pieces.last().map_or(0.0, |last| last.before + last.expected(last.length));
            let slope = if length.is_finite() { (target - rate) / length } else { 0.0 };
            if length > 0.0 {
                pieces.push(Piece { begin, length, rate, slope, before });
            }
        };
        let warmup = -(first.0 as f64) / 1e9;
        push(-warmup, warmup, rate.start, rate.start);
        let (mut begin, mut value) = (0.0, rate.start);
        for stage in &rate.stages {
            let length = stage.length.as_secs_f64();
            let from = if stage.shape == Shape::Ramp { value } else { stage.target };
            push(begin, length, from, stage.target);
            (begin, value) = (begin + length, stage.target);
        }
        push(begin, f64::INFINITY, value, value);
        RateCurve { pieces, at: 0 }
    }

    /// Expected arrivals until `seconds` of the measure phase.
    fn until(&self, seconds: f64) -> f64 {
        let piece = self.pieces.iter().rev().find(|piece| piece.begin < seconds);
        piece.map_or(0.0, |piece| piece.before + piece.expected(seconds - piece.begin))
    }

    fn when(&mut self, count: f64) -> Option<Instant> {
        loop {
            let piece = self.pieces[self.at];
            let wanted = count - piece.before;
            if piece.length.is_finite() && wanted > piece.expected(piece.length) {
                self.at += 1;
                continue;
            }
            let seconds = piece.begin + piece.seconds_until(wanted);
            return seconds.is_finite().then_some(Instant((seconds * 1e9) as i64));
        }
    }
}

/// The number of closed-loop users of one share that are meant to work at an instant.
#[must_use]
pub fn users_at(users: &Profile, at: Instant, share: Share) -> usize {
    let total = users.at(at.0 as f64 / 1e9).round().max(0.0) as u64;
    usize::try_from(share.of_first(total)).unwrap_or(usize::MAX)
}

/// True if the number of closed-loop users that are meant to work stays the same from this instant on.
#[must_use]
pub fn is_settled(users: &Profile, at: Instant) -> bool {
    users.all_have_joined(at.0 as f64 / 1e9) && (users.stages.is_empty() || at.0 >= nanos(users.length()))
}

/// Draws one pause.
#[must_use]
pub fn think_time(think: Think, random: &mut Random) -> i64 {
    match think {
        Think::Constant(pause) => nanos(pause),
        Think::Uniform { from, to } => {
            let width = to.saturating_sub(from).as_secs_f64();
            nanos(from + Duration::from_secs_f64(width * random.unit()))
        }
        Think::Exponential(mean) => (nanos(mean) as f64 * random.exponential()) as i64,
        Think::LogNormal { median, sigma } => (nanos(median) as f64 * (sigma * random.normal()).exp()) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::load::{Joining, Stage};
    use proptest::prelude::*;

    const ALL: Share = Share { index: 0, of: 1 };

    fn seconds(rate: &Profile, arrivals: Arrivals, first: Instant, until: f64) -> Vec<f64> {
        ArrivalTimes::new(rate, arrivals, first, 7, ALL)
            .map(|at| at.0 as f64 / 1e9)
            .take_while(|at| *at < until)
            .collect()
    }

    #[test]
    fn users_are_settled_once_all_have_joined_and_all_stages_are_over() {
        let stages = vec![Stage { length: Duration::from_secs(2), target: 1.0, shape: Shape::Ramp }];
        let ramp = Profile { start: 5.0, stages, joining: None };
        let joining = Profile { joining: Some(Joining { from: -1.0, per_second: 2.0 }), ..Profile::constant(5.0) };
        let settled_from = |users: &Profile| {
            let instants = (-20..40).map(|tenths| Instant(tenths * 100_000_000));
            instants.skip_while(|at| !is_settled(users, *at)).collect::<Vec<_>>()
        };
        for (users, from) in [(Profile::constant(5.0), -2_000_000_000), (ramp, 2_000_000_000), (joining, 1_000_000_000)]
        {
            let settled = settled_from(&users);
            assert_eq!(settled[0], Instant(from));
            let last = users_at(&users, Instant(i64::MAX), ALL);
            assert!(settled.iter().all(|at| is_settled(&users, *at) && users_at(&users, *at, ALL) == last));
        }
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced_from_the_start_of_warm_up() {
        let times = seconds(&Profile::constant(4.0), Arrivals::Constant, Instant(-500_000_000), 1.0);
        assert_eq!(times, [-0.5, -0.25, 0.0, 0.25, 0.5, 0.75]);
    }

    #[test]
    fn after_a_gap_the_end_of_a_ramp_has_an_arrival_and_its_start_has_none() {
        let second = |start, target| {
            let stages = vec![Stage { length: Duration::from_secs(1), target, shape: Shape::Ramp }];
            let rate = Profile { start, stages, joining: None };
            let times = ArrivalTimes::new(&rate, Arrivals::Constant, Instant(0), 7, ALL).after_a_gap();
            times.take_while(|at| at.0 < 1_000_000_000).collect::<Vec<_>>()
        };
        for (start, target, count) in [(0.0, 20.0, 10), (20.0, 0.0, 10), (10.0, 20.0, 15), (5.0, 6.0, 5)] {
            let times = second(start, target);
            assert_eq!(times.len(), count, "from {start} to {target}");
            assert!(times[0].0 > 40_000_000, "{:?}", times[0]);
        }
    }

    #[test]
    fn arrivals_that_are_skipped_are_counted_and_the_others_come_when_they_are_due() {
        let stages = vec![Stage { length: Duration::from_secs(1), target: 100.0, shape: Shape::Ramp }];
        for rate in [Profile::constant(1000.0), Profile { start: 2000.0, stages, joining: None }] {
            for share in [ALL, Share { index: 0, of: 3 }, Share { index: 2, of: 3 }] {
                let times = || ArrivalTimes::new(&rate, Arrivals::Constant, Instant(0), 7, share);
                for (taken, until) in [(0, 500_000_000), (40, 700_000_000), (5, 10_000_000), (5, 0)] {
                    let all: Vec<Instant> = times().take_while(|at| at.0 < 1_000_000_000).collect();
                    let mut some = times();
                    let mut came: Vec<Instant> = some.by_ref().take(taken).collect();
                    let skipped = some.skip_until(Instant(until)) as usize;
                    came.extend(some.take_while(|at| at.0 < 1_000_000_000));
                    assert_eq!(came.len() + skipped, all.len(), "{share:?}, {taken}, {until}");
                    assert_eq!(came[taken..], all[taken + skipped..], "{share:?}, {taken}, {until}");
                    let due = all.iter().filter(|at| at.0 <= until).count();
                    assert!(
                        taken.max(due) - (taken + skipped).min(taken.max(due)) <= 3,
                        "{taken} + {skipped} of {due}"
                    );
                }
            }
        }
        let mut random = ArrivalTimes::new(&Profile::constant(1000.0), Arrivals::Poisson, Instant(0), 7, ALL);
        assert_eq!(random.skip_until(Instant(1_000_000_000)), 0);
    }

    #[test]
    fn a_ramp_offers_the_area_under_it() {
        let stages = vec![Stage { length: Duration::from_secs(10), target: 100.0, shape: Shape::Ramp }];
        let rate = Profile { start: 0.0, stages, joining: None };
        let times = seconds(&rate, Arrivals::Constant, Instant(0), 10.0);
        assert_eq!(times.len(), 500);
        let in_last_second = times.iter().filter(|at| **at >= 9.0).count();
        assert!((94..=96).contains(&in_last_second), "{in_last_second} arrivals at 95 per second");
    }

    #[test]
    fn a_rate_of_zero_ends_the_arrivals() {
        let stages = vec![Stage { length: Duration::from_secs(1), target: 0.0, shape: Shape::Hold }];
        let rate = Profile { start: 10.0, stages, joining: None };
        let mut times = ArrivalTimes::new(&rate, Arrivals::Constant, Instant(-1_000_000_000), 7, ALL);
        assert_eq!(times.by_ref().take(100).count(), 11);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential() {
        let times = seconds(&Profile::constant(1000.0), Arrivals::Poisson, Instant(0), 100.0);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // 100,000 draws: the standard error of the mean is 0.3 %, that of the deviation 0.4 %.
        assert!((mean * 1000.0 - 1.0).abs() < 0.015, "mean gap {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "deviation {}", variance.sqrt());
    }

    #[test]
    fn think_times_keep_their_bounds() {
        let mut random = Random::seeded(1, 2);
        let (from, to) = (Duration::from_millis(10), Duration::from_millis(30));
        for _ in 0..1000 {
            let pause = think_time(Think::Uniform { from, to }, &mut random);
            assert!((10_000_000..=30_000_000).contains(&pause));
        }
        assert_eq!(think_time(Think::Constant(to), &mut random), 30_000_000);
    }

    #[test]
    fn log_normal_pauses_have_the_median_the_mean_and_the_spread_that_theory_gives_them() {
        let think = Think::LogNormal { median: Duration::from_secs(2), sigma: 0.5 };
        let mut random = Random::seeded(3, 4);
        let mut pauses: Vec<f64> = (0..100_000).map(|_| think_time(think, &mut random) as f64 / 1e9).collect();
        let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
        pauses.sort_by(f64::total_cmp);
        let at = |share: f64| pauses[(share * pauses.len() as f64) as usize];
        // 100,000 draws: the standard errors are 0.17 % (mean), 0.2 % (median) and 0.25 % (one deviation up).
        assert!((mean / think.mean() - 1.0).abs() < 0.01, "mean {mean} against {}", think.mean());
        assert!((at(0.5) / 2.0 - 1.0).abs() < 0.01, "median {}", at(0.5));
        assert!((at(0.841_345) / (2.0 * 0.5_f64.exp()) - 1.0).abs() < 0.012, "one deviation up {}", at(0.841_345));
    }

    fn profiles() -> impl Strategy<Value = Profile> {
        let stage = (1_u64..5000, 0.0..500.0, any::<bool>()).prop_map(|(ms, target, ramp)| Stage {
            length: Duration::from_millis(ms),
            target,
            shape: if ramp { Shape::Ramp } else { Shape::Hold },
        });
        (0.0..500.0, prop::collection::vec(stage, 0..5)).prop_map(|(start, stages)| Profile {
            start,
            stages,
            joining: None,
        })
    }

    proptest! {
        #[test]
        fn arrivals_never_go_back(rate in profiles(), poisson: bool, seed: u64) {
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let times: Vec<Instant> =
                ArrivalTimes::new(&rate, arrivals, Instant(-1_000_000_000), seed, ALL).take(2000).collect();
            prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        }

        #[test]
        fn shares_together_are_the_whole(rate in profiles(), of in 1_usize..6, seed: u64) {
            let times = |share, count: usize| -> Vec<Instant> {
                ArrivalTimes::new(&rate, Arrivals::Poisson, Instant(-1_000_000_000), seed, share).take(count).collect()
            };
            let whole = times(ALL, 300);
            let mut parts: Vec<Instant> = (0..of).flat_map(|index| times(Share { index, of }, 300)).collect();
            parts.sort_unstable();
            parts.truncate(whole.len());
            prop_assert_eq!(whole, parts);
        }

        #[test]
        fn threads_together_have_the_share_of_their_machine(total in 0_u64..500, of in 1_usize..4, threads in 1_usize..5) {
            for index in 0..of {
                let machine = Share { index, of };
                let part = |thread| ThreadShare { machine, thread, threads }.share().of_first(total);
                prop_assert_eq!((0..threads).map(part).sum::<u64>(), machine.of_first(total));
            }
        }

        #[test]
        fn every_user_belongs_to_one_share(total in 0_u64..5000, of in 1_usize..9) {
            let sum: u64 = (0..of).map(|index| Share { index, of }.of_first(total)).sum();
            prop_assert_eq!(sum, total);
        }
    }
}
