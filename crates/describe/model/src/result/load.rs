//! Everything that was recorded of a load. Where variants took turns, it is put together from slices.

use super::{GeneratorRow, LoadSecond, LoadSummary, LoadTiming, RungResult};
use crate::record::{Subject, Tally};
use crate::start::{Load, PhaseLengths};
use crate::units::{Instant, Nanos};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Everything that was recorded of a load.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// The short facts.
    pub summary: LoadSummary,
    /// The first second of the measure phase that counts. Earlier seconds are left out of all loads under the
    /// condition, because one of the loads was not steady yet.
    pub cut: i64,
    /// What the measure phase scheduled and what ended from `cut` on, by subject: all those
    /// seconds and the drain merged.
    pub tallies: BTreeMap<Subject, Tally>,
    /// The load second by second, warm-up and drain included, in order of time.
    pub seconds: Vec<LoadSecond>,
    /// How the generator did, second by second.
    pub generator: Vec<GeneratorRow>,
    /// The slices that the rest of this is put together from, where variants took turns; empty otherwise. Each has a
    /// row in `seconds` and one in `generator`.
    pub slices: Vec<Slice>,
    /// The loads of a search for the capacity, in the order in which they ran; empty elsewhere.
    pub rungs: Vec<RungResult>,
    /// The light loads by which systems recovered from some of those.
    pub recoveries: Vec<RungResult>,
}

/// A short load of a variant in one of the turns of a start.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The turn.
    pub turn: u32,
    /// The length of what was measured.
    pub length: Nanos,
    /// The begin of the measured part, on the clock of the start.
    pub zero: Instant,
    /// The load before that.
    pub settle: Nanos,
    /// The variant that had the slice right before this one on the start, whether that one counts or not; none for the
    /// first slice.
    pub after: Option<usize>,
    /// The variant that was loaded at the same time; none where each slice is alone.
    pub beside: Option<usize>,
    /// The slices of the variant between the one before this and this one, which do not count.
    pub left_out: Vec<LeftOutSlice>,
    tallies: PackedTallies,
}

/// A slice that does not count, because its turn does not. Telemetry is that of its variant under load all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOutSlice {
    /// The begin of the measured part, on the clock of the start.
    pub zero: Instant,
    /// The load before that.
    pub settle: Nanos,
    /// The length of the measured part.
    pub length: Nanos,
}

/// Tallies by subject as text: a histogram in memory takes fifty times as much.
#[derive(Clone, Debug)]
struct PackedTallies(String);

impl PackedTallies {
    fn pack(tallies: &BTreeMap<Subject, Tally>) -> PackedTallies {
        let rows: Vec<(&Subject, &Tally)> = tallies.iter().collect();
        PackedTallies(serde_json::to_string(&rows).expect("tallies are plain data"))
    }

    fn unpack(&self) -> BTreeMap<Subject, Tally> {
        let rows: Vec<(Subject, Tally)> = serde_json::from_str(&self.0).expect("its own text");
        rows.into_iter().collect()
    }
}

/// Puts the slices of a start together: one load for each variant. Slices come in the order in which they ran.
#[derive(Debug, Default)]
pub struct PooledLoads {
    loads: BTreeMap<usize, LoadResult>,
    /// The slices that were left out since the last one of the variant that counts.
    left_out: BTreeMap<usize, Vec<LeftOutSlice>>,
    /// The variant of the last slice.
    last: Option<usize>,
}

impl PooledLoads {
    /// Adds a slice that counts.
    pub fn add(&mut self, slice: &LoadResult) {
        let variant = slice.summary.load.variant;
        let after = self.last.replace(variant);
        let left_out = self.left_out.remove(&variant).unwrap_or_default();
        match self.loads.entry(variant) {
            Entry::Vacant(entry) => {
                let mut first = LoadResult { seconds: Vec::new(), generator: Vec::new(), ..slice.clone() };
                first.summary.load = Load {
                    number: variant as u32 + 1,
                    turn: 1,
                    beside: None,
                    rung: None,
                    lengths: PhaseLengths::default(),
                    ..first.summary.load
                };
                first.summary.timing.window = Nanos(0);
                first.tallies.clear();
                entry.insert(first).add_slice(slice, after, left_out);
            }
            Entry::Occupied(entry) => entry.into_mut().add_slice(slice, after, left_out),
        }
    }

    /// Leaves out a slice, which ran and does not count.
    pub fn leave_out(&mut self, slice: &LoadSummary) {
        let LoadSummary { load, timing, .. } = slice;
        self.last = Some(load.variant);
        // Nothing is read of the time before the first slice that counts.
        if self.loads.contains_key(&load.variant) {
            self.left_out.entry(load.variant).or_default().push(LeftOutSlice {
                zero: timing.zero,
                settle: load.lengths.warmup.into(),
                length: timing.window,
            });
        }
    }

    /// The loads, by variant.
    #[must_use]
    pub fn finish(self) -> Vec<LoadResult> {
        self.loads.into_values().collect()
    }
}

impl LoadResult {
    fn add_slice(&mut self, slice: &LoadResult, after: Option<usize>, left_out: Vec<LeftOutSlice>) {
        let second = self.slices.len() as i64;
        let LoadSummary { load, timing, .. } = &slice.summary;
        self.slices.push(Slice {
            turn: load.turn,
            length: timing.window,
            zero: timing.zero,
            settle: load.lengths.warmup.into(),
            after,
            beside: load.beside,
            left_out,
            tallies: PackedTallies::pack(&slice.tallies),
        });
        for (subject, tally) in &slice.tallies {
            self.seconds.push(LoadSecond::of(self.summary.load.number, second, subject, tally));
            self.tallies.entry(subject.clone()).or_default().merge(tally);
        }
        let measured = slice.generator.iter().find(|row| row.second >= 0);
        self.generator.extend(measured.map(|row| GeneratorRow {
            load: self.summary.load.number,
            second,
            ..row.clone()
        }));
        // The first slice is where the pool comes from.
        self.summary.add(&slice.summary, second > 0);
    }

    /// A slice as a load of its own, to read measures from.
    #[must_use]
    pub fn slice(&self, slice: &Slice) -> LoadResult {
        let tallies = slice.tallies.unpack();
        let row = |(subject, tally)| LoadSecond::of(self.summary.load.number, 0, subject, tally);
        let mut summary = self.summary.clone();
        summary.timing = LoadTiming { zero: slice.zero, window: slice.length };
        LoadResult {
            summary,
            cut: 0,
            seconds: tallies.iter().map(row).collect(),
            tallies,
            generator: Vec::new(),
            slices: Vec::new(),
            rungs: Vec::new(),
            recoveries: Vec::new(),
        }
    }

    /// The load before each slice that is not measured; none for a trial.
    #[must_use]
    pub fn settle(&self) -> Nanos {
        self.slices.last().map_or(Nanos(0), |last| last.settle)
    }

    /// From the begin of the measure phase to its end; in turns, to the end of the last slice.
    #[must_use]
    pub fn span(&self) -> Nanos {
        let LoadTiming { zero, window } = self.summary.timing;
        self.slices.last().map_or(window, |last| Nanos(last.zero.since(zero).0 + last.length.0))
    }

    /// The length of the part of the measure phase that counts, from the cut on, in seconds.
    #[must_use]
    pub fn counted_seconds(&self) -> f64 {
        (self.summary.timing.window.seconds() - self.cut as f64).max(0.0)
    }

    /// True if a second lies in the part of the measure phase that counts.
    #[must_use]
    pub fn counts_second(&self, second: i64) -> bool {
        // The rows of slices hold only what was measured.
        !self.slices.is_empty() || second >= self.cut && (second as f64) < self.summary.timing.window.seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::summary::tests::slices;

    #[test]
    fn slices_are_pooled_by_variant_and_come_back() {
        let mut pooled = PooledLoads::default();
        for (number, mut summary) in (1_u64..).zip(slices(4)) {
            summary.others = Some(number as f64);
            let mut tally = Tally::default();
            tally.service.record_n(number * 1000, number).expect("in range");
            let tallies = BTreeMap::from([(Subject::Iteration, tally)]);
            let (seconds, generator, slices, rungs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            pooled.add(&LoadResult {
                summary,
                cut: 0,
                tallies,
                seconds,
                generator,
                slices,
                rungs,
                recoveries: Vec::new(),
            });
        }
        let loads = pooled.finish();
        let counts: Vec<u64> = loads.iter().map(|load| load.tallies[&Subject::Iteration].count()).collect();
        assert_eq!(counts, [1 + 3 + 5 + 7, 2 + 4 + 6 + 8]);
        assert_eq!(loads[0].summary.others, Some(4.0), "the mean of 1, 3, 5 and 7");
        let second = &loads[1];
        assert_eq!((second.counted_seconds(), second.span().seconds()), (2.0, 6.5));
        assert_eq!(second.seconds.iter().map(|row| row.count).collect::<Vec<u64>>(), [2, 4, 6, 8]);
        let third = second.slice(&second.slices[2]);
        assert_eq!((second.slices[2].turn, third.tallies[&Subject::Iteration].count()), (3, 6));
        assert_eq!(third.counted_seconds(), 0.5);
        let before = |load: &LoadResult| load.slices.iter().map(|slice| slice.after).collect::<Vec<_>>();
        assert_eq!(before(&loads[0]), [None, Some(1), Some(1), Some(1)]);
        assert_eq!(before(second), [Some(0); 4]);
    }

    #[test]
    fn slices_that_are_left_out_are_kept_as_time_under_load_between_those_that_count() {
        let mut pooled = PooledLoads::default();
        for summary in slices(6) {
            // Of six turns the first, the third, the fourth and the last do not count.
            if [1, 3, 4, 6].contains(&summary.load.turn) {
                pooled.leave_out(&summary);
                continue;
            }
            let (tallies, seconds, generator) = (BTreeMap::new(), Vec::new(), Vec::new());
            let (slices, rungs, recoveries) = (Vec::new(), Vec::new(), Vec::new());
            pooled.add(&LoadResult { summary, cut: 0, tallies, seconds, generator, slices, rungs, recoveries });
        }
        let left_out = |second: i64| LeftOutSlice {
            zero: Instant(second * 1_000_000_000),
            settle: Nanos(0),
            length: Nanos(500_000_000),
        };
        for (variant, load) in pooled.finish().iter().enumerate() {
            assert_eq!(load.slices.iter().map(|slice| slice.turn).collect::<Vec<u32>>(), [2, 5]);
            assert_eq!(load.slices[0].left_out, [], "before the first that counts");
            let of_third_and_fourth = [4, 6].map(|second| left_out(second + variant as i64));
            assert_eq!(load.slices[1].left_out, of_third_and_fourth);
        }
    }
}
