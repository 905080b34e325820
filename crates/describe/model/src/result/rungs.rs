//! The loads of a search for the capacity, put together: one load for each variant of a start.

use super::{GeneratorRow, Headroom, LoadResult, LoadSecond, LoadSummary};
use crate::objective::Passed;
use crate::record::Subject;
use crate::start::{Load, PhaseLengths, Rung, RungPart};
use crate::units::Nanos;
use std::collections::BTreeMap;

/// A load of a search.
#[derive(Clone, Debug)]
pub struct RungResult {
    /// Its place in the search.
    pub rung: Rung,
    /// Its short facts.
    pub summary: LoadSummary,
    /// Iterations that ended in its measure phase, whichever phase scheduled them.
    pub iterations: u64,
    /// The same for requests.
    pub requests: u64,
    /// The time that those took, all together, in seconds.
    pub in_requests: f64,
    /// CPU of the generator, in cores: the mean over the measure phase.
    pub generator_cpu: Option<f64>,
}

/// Puts the loads of the searches on a start together. What is measured of a variant is what its ladder showed, whose loads
/// lie near its capacity; of equal steps the largest one that passed, or the first; of anything else the last load that counts.
#[derive(Debug, Default)]
pub struct PooledRungs(BTreeMap<usize, Vec<LoadResult>>);

impl PooledRungs {
    /// Adds a load, in the order in which they ran.
    pub fn add(&mut self, load: LoadResult) {
        self.0.entry(load.summary.load.variant).or_default().push(load);
    }

    /// The loads, by variant.
    #[must_use]
    pub fn finish(self) -> Vec<LoadResult> {
        self.0.into_iter().map(|(variant, loads)| pooled(variant, &loads)).collect()
    }
}

fn pooled(variant: usize, all: &[LoadResult]) -> LoadResult {
    let part = |load: &LoadResult| load.summary.load.rung.map(|rung| rung.part);
    let (light, loads): (Vec<&LoadResult>, Vec<&LoadResult>) =
        all.iter().partition(|load| part(load) == Some(RungPart::Recovery));
    let counting = || loads.iter().copied().filter(|load| load.summary.validity.counts());
    let ladder: Vec<&LoadResult> = counting().filter(|load| part(load) == Some(RungPart::Ladder)).collect();
    let mut steps = counting().filter(|load| part(load) == Some(RungPart::Step));
    let near = match (ladder.is_empty(), steps.clone().rfind(|load| passed(load)).or_else(|| steps.next())) {
        (false, _) => ladder,
        (true, Some(step)) => vec![step],
        (true, None) => counting().next_back().into_iter().collect(),
    };
    let number = variant as u32 + 1;
    let first = near.first().copied().unwrap_or(&all[0]);
    let mut pool = LoadResult {
        cut: 0,
        tallies: BTreeMap::new(),
        seconds: Vec::new(),
        generator: Vec::new(),
        rungs: loads.iter().copied().filter_map(rung).collect(),
        recoveries: light.into_iter().filter_map(rung).collect(),
        ..first.clone()
    };
    pool.summary.load = Load { number, turn: 1, rung: None, lengths: PhaseLengths::default(), ..first.summary.load };
    pool.summary.objective = None;
    pool.summary.headroom = Headroom::default();
    pool.summary.timing.window = Nanos(0);
    let mut second = 0;
    for load in near {
        second = pool.append(load, number, second);
    }
    pool
}

fn passed(load: &LoadResult) -> bool {
    load.summary.objective.as_ref().is_some_and(|judged| judged.passed == Passed::Yes)
}

fn rung(load: &LoadResult) -> Option<RungResult> {
    let rung = load.summary.load.rung?;
    let iterations = measured(load).filter(|row| row.subject == Subject::Iteration).map(|row| row.count).sum();
    let requests = || measured(load).filter(|row| row.subject.is_request());
    let generator = load.generator.iter().filter(|row| (0..seconds(load)).contains(&row.second));
    let cpu: Vec<f64> = generator.map(|row| row.cpu_cores).collect();
    Some(RungResult {
        rung,
        summary: load.summary.clone(),
        iterations,
        requests: requests().map(|row| row.count).sum(),
        in_requests: requests().map(|row| row.mean * row.count as f64 / 1e9).sum(),
        generator_cpu: (!cpu.is_empty()).then(|| cpu.iter().sum::<f64>() / cpu.len() as f64),
    })
}

/// The rows of the measure phase of a load.
fn measured(load: &LoadResult) -> impl Iterator<Item = &LoadSecond> {
    load.seconds.iter().filter(|row| (0..seconds(load)).contains(&row.second))
}

/// How many seconds of rows a measure phase has.
fn seconds(load: &LoadResult) -> i64 {
    load.summary.timing.window.0.div_ceil(1_000_000_000) as i64
}

impl LoadResult {
    /// Appends the measure phase of a load, whose first second becomes `second`; returns the next one.
    fn append(&mut self, load: &LoadResult, number: u32, second: i64) -> i64 {
        let seconds = seconds(load);
        for (subject, tally) in &load.tallies {
            self.tallies.entry(subject.clone()).or_default().merge(tally);
        }
        self.seconds.extend(measured(load).map(|row| LoadSecond {
            load: number,
            second: second + row.second,
            ..row.clone()
        }));
        let rows = load.generator.iter().filter(|row| (0..seconds).contains(&row.second));
        self.generator.extend(rows.map(|row| GeneratorRow {
            load: number,
            second: second + row.second,
            ..row.clone()
        }));
        // Where a load is too much, the systems may take processors from the generator: that tells nothing of it.
        let headroom = if passed(load) { load.summary.headroom } else { Headroom::default() };
        // The first one is where the pool comes from.
        self.summary.add(&LoadSummary { headroom, ..load.summary.clone() }, second > 0);
        second + seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Judged;
    use crate::record::Tally;
    use crate::result::summary::tests::slices;
    use crate::start::Validity;

    fn load(number: u32, level: f64, part: RungPart, count: u64) -> LoadResult {
        let mut summary = slices(8).swap_remove(number as usize);
        summary.load = Load { number, variant: 1, rung: Some(Rung { level, part }), ..summary.load };
        summary.timing.window = Nanos(2_000_000_000);
        let mut tally = Tally::default();
        tally.service.record_n(1000, count).expect("in range");
        let row = |second| LoadSecond::of(number, second, &Subject::Iteration, &tally);
        LoadResult {
            summary,
            cut: 0,
            seconds: [-1, 0, 1, 2].map(row).into(),
            tallies: BTreeMap::from([(Subject::Iteration, tally.clone())]),
            generator: Vec::new(),
            slices: Vec::new(),
            rungs: Vec::new(),
            recoveries: Vec::new(),
        }
    }

    #[test]
    fn the_loads_of_the_ladder_are_what_is_measured() {
        let mut pooled = PooledRungs::default();
        pooled.add(load(1, 10.0, RungPart::Bracket, 1));
        pooled.add(load(2, 12.0, RungPart::Ladder, 10));
        let mut void = load(3, 12.7, RungPart::Ladder, 100);
        void.summary.validity = Validity::Void(vec!["late".to_owned()]);
        pooled.add(void);
        pooled.add(load(4, 12.7, RungPart::Ladder, 1000));
        pooled.add(load(5, 3.0, RungPart::Recovery, 5));
        pooled.add(load(6, 11.0, RungPart::Confirmation, 7));
        let loads = pooled.finish();
        let [load] = &loads[..] else { panic!("{} loads", loads.len()) };
        assert_eq!(load.tallies[&Subject::Iteration].count(), 1010);
        assert_eq!(
            load.seconds.iter().map(|row| (row.second, row.count)).collect::<Vec<_>>(),
            [(0, 10), (1, 10), (2, 1000), (3, 1000)]
        );
        assert_eq!(load.counted_seconds(), 4.0);
        let levels: Vec<f64> = load.rungs.iter().map(|rung| rung.rung.level).collect();
        assert_eq!(levels, [10.0, 12.0, 12.7, 12.7, 11.0]);
        assert_eq!(load.recoveries.iter().map(|light| light.rung.level).collect::<Vec<f64>>(), [3.0]);
        assert_eq!(load.rungs[3].iterations, 2000, "those of two of its four rows");
    }

    #[test]
    fn of_steps_it_is_the_largest_that_passed() {
        let step = |number: u32, passed: Passed| {
            let mut load = load(number, 10.0 * f64::from(number), RungPart::Step, u64::from(number));
            let (readings, reasons) = (Vec::new(), Vec::new());
            load.summary.objective =
                Some(Judged { passed, readings, reasons, share_of_needed: 1.0, strain: None, share_to_weigh: None });
            load
        };
        let of = |all: [Passed; 3]| {
            let mut pooled = PooledRungs::default();
            (1..).zip(all).for_each(|(number, passed)| pooled.add(step(number, passed)));
            pooled.finish()[0].tallies[&Subject::Iteration].count()
        };
        assert_eq!(of([Passed::Yes, Passed::Yes, Passed::No]), 2);
        assert_eq!(of([Passed::No; 3]), 1);
    }

    #[test]
    fn without_a_ladder_it_is_the_last_load() {
        let mut pooled = PooledRungs::default();
        pooled.add(load(1, 10.0, RungPart::Bracket, 1));
        pooled.add(load(2, 20.0, RungPart::Bracket, 2));
        assert_eq!(pooled.finish()[0].tallies[&Subject::Iteration].count(), 2);
    }
}
