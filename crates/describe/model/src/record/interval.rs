//! The records of one second: histograms and counts that can be merged, and sent between machines.

use super::{ErrorKind, RecordedPhase, Subject};
use crate::units::Nanos;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod text;

/// The largest duration a histogram keeps, in nanoseconds: one hour. Longer ones are counted at
/// this value and in [`Tally::saturated`].
pub const LONGEST: u64 = 3_600_000_000_000;

/// Significant decimal digits kept by every histogram.
pub const DIGITS: u8 = 3;

/// An empty histogram of nanoseconds that grows with its largest value.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new(DIGITS).expect("three digits are within the library's 0 to 5");
    histogram.auto(true);
    histogram
}

/// Durations in nanoseconds, on their way to another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Durations(#[serde(with = "text::histogram")] pub Histogram<u64>);

/// The records of one subject over some span: mergeable, and bounded in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// From the actual send to the end, in nanoseconds. Failed work is included, a time-out with its limit. For a
    /// metric these are its values times [`METRIC_SCALE`], for a check zeros.
    #[serde(with = "text::histogram")]
    pub service: Histogram<u64>,
    /// From the scheduled instant to the end, in nanoseconds; empty in closed load.
    #[serde(with = "text::histogram")]
    pub response: Histogram<u64>,
    /// From the actual send to the first byte of the response, in nanoseconds.
    #[serde(with = "text::histogram")]
    pub first_byte: Histogram<u64>,
    /// Errors by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Durations above [`LONGEST`].
    pub saturated: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            service: histogram(),
            response: histogram(),
            first_byte: histogram(),
            errors: BTreeMap::new(),
            bytes_out: 0,
            bytes_in: 0,
            saturated: 0,
        }
    }
}

impl Tally {
    /// How many ended, well or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.service.len()
    }

    /// How many ended with an error.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds the records of `other`. The order in which tallies are merged does not matter.
    pub fn merge(&mut self, other: &Tally) {
        for (into, from) in [
            (&mut self.service, &other.service),
            (&mut self.response, &other.response),
            (&mut self.first_byte, &other.first_byte),
        ] {
            into.add(from).expect("a growing histogram takes what an equal one holds");
        }
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
        self.saturated += other.saturated;
    }
}

/// Iterations that failed although none of their exchanges did, by kind of error: a script threw, or a loop of a flow did
/// not end.
#[must_use]
pub fn failed_alone(requests: &Tally, iterations: Option<&Tally>) -> BTreeMap<ErrorKind, u64> {
    let of_kinds = iterations.into_iter().flat_map(|tally| &tally.errors);
    let alone = of_kinds.map(|(kind, failed)| {
        let with_an_exchange = requests.errors.get(kind).copied().unwrap_or_default();
        (*kind, failed.saturating_sub(with_an_exchange))
    });
    alone.filter(|(_, failed)| *failed > 0).collect()
}

/// The errors of a load: failed exchanges, and iterations that failed without one; and of how many exchanges and such
/// iterations.
#[must_use]
pub fn failed_of_all(requests: &Tally, iterations: Option<&Tally>) -> [u64; 2] {
    let alone: u64 = failed_alone(requests, iterations).values().sum();
    [requests.failed() + alone, requests.count() + alone]
}

/// What the generator recorded in one second (or the shorter rest of a phase).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The second, from the start of the measure phase; warm-up has negative ones. The measure
    /// phase has the seconds from 0 to below its length in seconds, the last one cut short where
    /// that is no whole number; draining goes on counting from there.
    pub second: i64,
    /// How long it was: one second, but for the last one of the measure phase and of the drain.
    pub length: Nanos,
    /// What ended in this second, by the phase that scheduled it and by subject.
    #[serde(with = "text::tallies")]
    pub tallies: BTreeMap<(RecordedPhase, Subject), Tally>,
    /// The iterations that ended in each tenth of this second, whatever phase scheduled them.
    pub ticks: [Tick; TICKS],
    /// How the generator itself did.
    pub generator: GeneratorSecond,
}

impl Interval {
    /// True if nothing was recorded in no time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Interval::default()
    }

    /// What ended for each subject, whatever phase scheduled it.
    #[must_use]
    pub fn by_subject(&self) -> BTreeMap<&Subject, Tally> {
        let mut tallies: BTreeMap<&Subject, Tally> = BTreeMap::new();
        for ((_, subject), tally) in &self.tallies {
            tallies.entry(subject).or_default().merge(tally);
        }
        tallies
    }

    /// Adds what another generator thread recorded in the same second.
    pub fn merge(&mut self, other: &Interval) {
        for (key, tally) in &other.tallies {
            self.tallies.entry(key.clone()).or_default().merge(tally);
        }
        self.length = self.length.max(other.length);
        self.ticks.iter_mut().zip(&other.ticks).for_each(|(into, from)| into.merge(*from));
        self.generator.merge(&other.generator);
    }
}

/// The seconds of several recorders, merged, each until all of them have passed it.
#[derive(Debug)]
pub struct MergedSeconds {
    pending: BTreeMap<i64, Interval>,
    /// The last second that each recorder has passed.
    passed: Vec<i64>,
}

impl MergedSeconds {
    /// A merger for so many recorders.
    #[must_use]
    pub fn of(recorders: usize) -> MergedSeconds {
        MergedSeconds { pending: BTreeMap::new(), passed: vec![i64::MIN; recorders] }
    }

    /// The second of this number, to which what the recorder has recorded in it is to be added. The recorder passes it.
    pub fn second(&mut self, recorder: usize, second: i64) -> &mut Interval {
        self.passed[recorder] = second;
        self.pending.entry(second).or_insert_with(|| Interval { second, ..Interval::default() })
    }

    /// No more seconds come from this recorder.
    pub fn ended(&mut self, recorder: usize) {
        self.passed[recorder] = i64::MAX;
    }

    /// Takes the next second that all recorders have passed.
    pub fn take(&mut self) -> Option<Interval> {
        let all_passed = self.passed.iter().copied().min().unwrap_or(i64::MAX);
        let first = self.pending.first_entry().filter(|first| *first.key() <= all_passed)?;
        Some(first.remove())
    }

    /// The seconds that are left. There are some if a recorder ended early.
    pub fn left(self) -> impl Iterator<Item = Interval> {
        self.pending.into_values()
    }
}

/// The iterations that ended in a tenth of a second. Ticks show from when on a trial is steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// How many ended, well or not.
    pub iterations: u64,
    /// Their durations together, in nanoseconds.
    pub total: u64,
}

/// The length of a [`Tick`].
pub const TICK: Nanos = Nanos(100_000_000);

/// Ticks of a second.
pub const TICKS: usize = 10;

impl Tick {
    /// Adds what `other` holds.
    pub fn merge(&mut self, other: Tick) {
        self.iterations += other.iterations;
        self.total = self.total.saturating_add(other.total);
    }
}

/// How the generator did in one second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratorSecond {
    /// CPU time of all its threads.
    pub cpu: Nanos,
    /// CPU time of its busiest thread.
    pub cpu_busiest: Nanos,
    /// Users at work at the end of the second: in an iteration, or thinking.
    pub users: u64,
    /// Exchanges under way at the end of the second.
    pub in_flight: u64,
    /// Arrivals that were due and not yet started at the end of the second; 0 in closed load.
    pub backlog: u64,
    /// Sockets that users of a flow hold open at the end of the second, beside their requests.
    #[serde(default)]
    pub sockets: u64,
    /// How late due work was started although a user was free, in nanoseconds: delay that the generator itself caused.
    /// Due work is arrivals and ends of think time.
    #[serde(with = "text::histogram")]
    pub lateness: Histogram<u64>,
    /// The longest time in which the event loop did not poll for new events.
    pub stall: Nanos,
}

impl Default for GeneratorSecond {
    fn default() -> Self {
        GeneratorSecond {
            cpu: Nanos(0),
            cpu_busiest: Nanos(0),
            users: 0,
            in_flight: 0,
            backlog: 0,
            sockets: 0,
            lateness: histogram(),
            stall: Nanos(0),
        }
    }
}

impl GeneratorSecond {
    fn merge(&mut self, other: &GeneratorSecond) {
        self.cpu.0 += other.cpu.0;
        self.cpu_busiest = self.cpu_busiest.max(other.cpu_busiest);
        self.users += other.users;
        self.in_flight += other.in_flight;
        self.backlog += other.backlog;
        self.sockets += other.sockets;
        self.lateness.add(&other.lateness).expect("a growing histogram takes what an equal one holds");
        self.stall = self.stall.max(other.stall);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tally of these service times, in nanoseconds, with an error for every tenth.
    fn tally(times: &[u64]) -> Tally {
        let mut tally = Tally::default();
        for (index, time) in times.iter().enumerate() {
            tally.service.record(*time).expect("in range");
            tally.bytes_in += time % 7;
            if index % 10 == 0 {
                *tally.errors.entry(ErrorKind::ALL[index / 10 % ErrorKind::ALL.len()]).or_default() += 1;
            }
        }
        tally
    }

    proptest! {
        #[test]
        fn merging_is_independent_of_order_and_loses_nothing(
            parts in prop::collection::vec(prop::collection::vec(1_u64..LONGEST, 0..40), 1..6),
        ) {
            let tallies: Vec<Tally> = parts.iter().map(|times| tally(times)).collect();
            let (mut forwards, mut backwards) = (Tally::default(), Tally::default());
            tallies.iter().for_each(|part| forwards.merge(part));
            tallies.iter().rev().for_each(|part| backwards.merge(part));
            prop_assert_eq!(&forwards.service, &backwards.service);
            prop_assert_eq!(&forwards.errors, &backwards.errors);
            prop_assert_eq!(forwards.bytes_in, backwards.bytes_in);
            prop_assert_eq!(forwards.count(), parts.iter().map(|times| times.len() as u64).sum::<u64>());
            prop_assert_eq!(forwards.failed(), tallies.iter().map(Tally::failed).sum::<u64>());
        }

        #[test]
        fn a_merged_percentile_is_that_of_all_values_together(
            left in prop::collection::vec(1_u64..LONGEST, 1..100),
            right in prop::collection::vec(1_u64..LONGEST, 1..100),
            q in 0.01_f64..0.99,
        ) {
            let mut merged = tally(&left);
            merged.merge(&tally(&right));
            let together = tally(&[left, right].concat());
            prop_assert_eq!(merged.service.value_at_quantile(q), together.service.value_at_quantile(q));
        }
    }
}
