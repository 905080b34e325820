//! Finished starts with their loads, as a bundle stores them and as analysis reads them.

use crate::database::DatabaseFacts;
use crate::record::{Account, ErrorKind, Interval, SequenceCheck, Subject, Tally};
use crate::sample::{DatabaseSample, HostSample, ProcessSample};
use crate::script::ScriptFacts;
use crate::start::{Load, PhaseLengths, Start, Turns, Validity};
use crate::storage::StorageFacts;
use crate::units::{Instant, Nanos, Processors};
use crate::words::without_repeats;
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// What a bundle has recorded of a run so far. From it, a resumed run comes to the same next step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRun {
    /// The starts that are complete, by their numbers.
    pub starts: BTreeMap<u32, FinishedStart>,
    /// The starts that the plan's strategy decided on beside those of the plan, in order.
    pub decided: Vec<Start>,
    /// The looks that were taken: after how many repeats, and true if every verdict was reached.
    pub looks: Vec<(u32, bool)>,
}

/// The short facts of a finished start, without those of its loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartSummary {
    /// Identity: which start.
    pub start: Start,
    /// Whether it counts, judged by what concerns all of its loads: its systems stayed alive, and their data is
    /// consistent.
    pub validity: Validity,
    /// Remarks for the reader that do not keep it from counting.
    pub warnings: Vec<String>,
    /// When, and for how long.
    pub timing: StartTiming,
    /// The systems of each variant that was alive on it, in the order in which they started.
    pub systems: Vec<VariantSystems>,
}

/// When a start ran, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTiming {
    /// The begin of its setup, in milliseconds since 1970, UTC.
    pub started_unix_ms: i64,
    /// From the begin of its setup to the end of its teardown.
    pub took: Nanos,
}

/// The systems of one variant on a start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantSystems {
    /// The variant, as in [`Start::variants`].
    pub variant: usize,
    /// From the start of its first system to the readiness of its last.
    pub ready_after: Nanos,
    /// The processors that its systems may use, in order; none if one of them may use all, or is not started here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// The databases that were started or used.
    pub databases: Vec<DatabaseFacts>,
}

/// The short facts of a finished load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// Identity: which load of its start.
    pub load: Load,
    /// Whether it counts, judged by what concerns this load alone.
    pub validity: Validity,
    /// Remarks for the reader that do not keep it from counting.
    pub warnings: Vec<String>,
    /// When, and for how long.
    pub timing: LoadTiming,
    /// From when on it was steady.
    pub steadiness: Steadiness,
    /// How near the generator came to its limits.
    pub headroom: Headroom,
    /// CPU that others used meanwhile, in cores: neither Plimsoll nor its systems, and what the hypervisor took away.
    /// None where that is not known, as of systems that run already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// What was found in the replies.
    pub replies: Replies,
    /// The kind of work that users did.
    pub work: Work,
}

/// When the measure phase of a load ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTiming {
    /// Its begin, on the clock of its start: counted from the begin of the first load's measure phase.
    pub zero: Instant,
    /// Its actual length.
    pub window: Nanos,
}

/// From when on the measure phase of a load is steady.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steadiness {
    /// The instant, counted from the begin of the measure phase; none if it never became steady, or if that was not
    /// judged.
    pub from: Option<Nanos>,
    /// True if the load is void only because it never became steady: a longer warm-up may help.
    pub unsteady: bool,
    /// Why it was not judged; none if it was judged, or if the load is meant to change.
    pub unjudged: Option<String>,
}

/// What the replies to a load showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replies {
    /// True if the load was open: response times exist then.
    pub open_load: bool,
    /// The check over all replies, where the study asks for one: by request name.
    pub sequences: BTreeMap<String, SequenceCheck>,
    /// An example of the text that came with each kind of error, by request name.
    pub error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// What became of everything that was sent, by request name and for connections. Empty in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, Account>,
}

/// The kind of work that users do in a load, with its facts beside the records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// The steps of the study: requests, or transactions of a database.
    #[default]
    Steps,
    /// Operations on objects of a storage back end.
    Storage(Box<StorageFacts>),
    /// A script.
    Script(ScriptFacts),
}

impl Work {
    /// The facts of the storage back end, where the work was storage.
    #[must_use]
    pub fn storage(&self) -> Option<&StorageFacts> {
        match self {
            Work::Storage(facts) => Some(facts),
            Work::Steps | Work::Script(_) => None,
        }
    }

    /// The facts of the script, where the work was one.
    #[must_use]
    pub fn script(&self) -> Option<&ScriptFacts> {
        match self {
            Work::Script(facts) => Some(facts),
            Work::Steps | Work::Storage(_) => None,
        }
    }
}

impl LoadSummary {
    /// The summary of a load that was not offered: nothing is known of it.
    #[must_use]
    pub fn not_offered(load: Load) -> LoadSummary {
        LoadSummary {
            load,
            validity: Validity::Valid,
            warnings: Vec::new(),
            timing: LoadTiming::default(),
            steadiness: Steadiness::default(),
            headroom: Headroom::default(),
            others: None,
            replies: Replies::default(),
            work: Work::default(),
        }
    }
}

/// A finished start with its loads, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedStart {
    /// What concerns all loads.
    pub summary: StartSummary,
    /// Its loads, in order.
    pub loads: Vec<LoadSummary>,
}

impl StartSummary {
    /// The validity of the start with these loads.
    fn validity_with<'a>(&self, loads: impl Iterator<Item = &'a LoadSummary>) -> Validity {
        self.validity.and(&validity_of_loads(&loads.collect::<Vec<_>>()))
    }
}

impl FinishedStart {
    /// The validity of the start with all of its loads.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.summary.validity_with(self.loads.iter())
    }
}

/// The validity of the loads of a start together. A void slice takes no more than its turn along, while enough turns
/// are left; a failed one fails them all.
#[must_use]
pub fn validity_of_loads(loads: &[&LoadSummary]) -> Validity {
    let all = || loads.iter().fold(Validity::Valid, |known, load| known.and(&load.validity));
    let turns = loads.iter().map(|load| load.load.turn).max().unwrap_or(1);
    if turns == 1 {
        return all();
    }
    let failed = loads.iter().filter(|load| matches!(load.validity, Validity::Failed(_)));
    if let Some(first) = failed.min_by_key(|load| load.load.number) {
        return first.validity.clone();
    }
    let whole = whole_turns(loads.iter().copied()).len();
    if whole >= Turns::needed_of(turns) as usize {
        return Validity::Valid;
    }
    Validity::Void(vec![format!(
        "only {whole} of {turns} turns count: {}",
        without_repeats(all().reasons(), "slices").join("; ")
    )])
}

/// The turns in which the load of every variant counts.
#[must_use]
pub fn whole_turns<'a>(loads: impl Iterator<Item = &'a LoadSummary> + Clone) -> BTreeSet<u32> {
    let broken: BTreeSet<u32> =
        loads.clone().filter(|load| !load.validity.counts()).map(|load| load.load.turn).collect();
    loads.map(|load| load.load.turn).filter(|turn| !broken.contains(turn)).collect()
}

/// How near the generator came to its limits over a measure phase. Its validity is judged by this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// Mean CPU of its busiest thread, in cores.
    pub busiest: f64,
    /// How late due work was started although a user was free: 99th percentile.
    pub lateness: Nanos,
}

/// Everything that was recorded of a start.
#[derive(Clone, Debug)]
pub struct StartResult {
    /// The folder of its files, relative to that of the bundle: `starts/0001`.
    pub folder: String,
    /// The short facts.
    pub summary: StartSummary,
    /// Its loads, in order.
    pub loads: Vec<LoadResult>,
    /// The processes of its systems, second by second and system by system.
    pub processes: Vec<ProcessSample>,
    /// The machine, second by second.
    pub host: Vec<HostSample>,
    /// What databases counted, second by second.
    pub databases: Vec<DatabaseSample>,
}

impl StartResult {
    /// The validity of the start with all of its loads.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.summary.validity_with(self.loads.iter().map(|load| &load.summary))
    }

    /// Its loads, each with the start.
    pub fn trials(&self) -> impl Iterator<Item = TrialResult<'_>> {
        self.loads.iter().map(move |load| TrialResult { start: self, load })
    }
}

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
    tallies: PackedTallies,
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
    /// The variant of the last slice.
    last: Option<usize>,
}

impl PooledLoads {
    /// Adds a slice that counts.
    pub fn add(&mut self, slice: &LoadResult) {
        let variant = slice.summary.load.variant;
        let after = self.last.replace(variant);
        match self.loads.entry(variant) {
            Entry::Vacant(entry) => {
                let mut first = LoadResult { seconds: Vec::new(), generator: Vec::new(), ..slice.clone() };
                first.summary.load = Load {
                    number: variant as u32 + 1,
                    turn: 1,
                    beside: None,
                    lengths: PhaseLengths::default(),
                    ..first.summary.load
                };
                first.summary.timing.window = Nanos(0);
                first.tallies.clear();
                entry.insert(first).add_slice(slice, after);
            }
            Entry::Occupied(entry) => entry.into_mut().add_slice(slice, after),
        }
    }

    /// Leaves out a slice of `variant`, which ran and does not count.
    pub fn leave_out(&mut self, variant: usize) {
        self.last = Some(variant);
    }

    /// The loads, by variant.
    #[must_use]
    pub fn finish(self) -> Vec<LoadResult> {
        self.loads.into_values().collect()
    }
}

impl LoadResult {
    fn add_slice(&mut self, slice: &LoadResult, after: Option<usize>) {
        let second = self.slices.len() as i64;
        let LoadSummary { load, warnings, timing, headroom, replies, .. } = &slice.summary;
        self.slices.push(Slice {
            turn: load.turn,
            length: timing.window,
            zero: timing.zero,
            settle: load.lengths.warmup.into(),
            after,
            beside: load.beside,
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
        let summary = &mut self.summary;
        let (before, length) = (summary.timing.window.seconds(), timing.window.seconds());
        summary.others = summary.others.zip(slice.summary.others).map(|(known, of_slice)| match before + length {
            0.0 => of_slice,
            both => (known * before + of_slice * length) / both,
        });
        summary.timing.window.0 += timing.window.0;
        summary.load.lengths.warmup += load.lengths.warmup;
        summary.load.lengths.measure += load.lengths.measure;
        summary.load.lengths.drain = load.lengths.drain;
        summary.headroom.busiest = summary.headroom.busiest.max(headroom.busiest);
        summary.headroom.lateness = summary.headroom.lateness.max(headroom.lateness);
        for warning in warnings {
            if !summary.warnings.contains(warning) {
                summary.warnings.push(warning.clone());
            }
        }
        for (name, check) in &replies.sequences {
            let known = summary.replies.sequences.entry(name.clone()).or_default();
            *known = if second == 0 { check.clone() } else { known.clone().and(check) };
        }
        for (name, examples) in &replies.error_examples {
            let known = summary.replies.error_examples.entry(name.clone()).or_default();
            examples.iter().for_each(|(kind, text)| {
                known.entry(*kind).or_insert_with(|| text.clone());
            });
        }
        for (name, account) in &replies.accounts {
            let known = summary.replies.accounts.entry(name.clone()).or_default();
            *known = if second == 0 { account.clone() } else { std::mem::take(known).and(account) };
        }
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

/// A load together with the start that it ran on: where the value of a measure comes from.
#[derive(Clone, Copy, Debug)]
pub struct TrialResult<'a> {
    /// The start.
    pub start: &'a StartResult,
    /// One of its loads.
    pub load: &'a LoadResult,
}

impl<'a> TrialResult<'a> {
    /// Which start.
    #[must_use]
    pub fn identity(&self) -> &'a Start {
        &self.start.summary.start
    }

    /// The number of the start.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.identity().number
    }

    /// The variant that took the load.
    #[must_use]
    pub fn variant(&self) -> usize {
        self.load.summary.load.variant
    }

    /// The condition, as an index into the plan's.
    #[must_use]
    pub fn condition(&self) -> usize {
        self.identity().condition
    }

    /// The validity of start and load together.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.start.summary.validity.and(&self.load.summary.validity)
    }

    /// True if start and load count.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.start.summary.validity.counts() && self.load.summary.validity.counts()
    }

    /// The warnings of the load, then those of the start.
    pub fn warnings(&self) -> impl Iterator<Item = &'a String> {
        self.load.summary.warnings.iter().chain(&self.start.summary.warnings)
    }

    /// The systems of the variant that took the load.
    #[must_use]
    pub fn systems(&self) -> Option<&'a VariantSystems> {
        self.start.summary.systems.iter().find(|systems| systems.variant == self.variant())
    }

    /// The databases of the variant that took the load.
    #[must_use]
    pub fn databases(&self) -> &'a [DatabaseFacts] {
        self.systems().map_or(&[], |systems| &systems.databases)
    }

    /// From the start of the variant's first system to the readiness of its last.
    #[must_use]
    pub fn ready_after(&self) -> Nanos {
        self.systems().map_or(Nanos(0), |systems| systems.ready_after)
    }
}

/// What ended in one second for one subject, whatever phase scheduled it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSecond {
    /// The number of the load on its start.
    #[serde(default = "first_load")]
    pub load: u32,
    /// The second, from the start of the measure phase.
    pub second: i64,
    /// What it is about.
    pub subject: Subject,
    /// How many ended.
    pub count: u64,
    /// How many of them failed.
    pub failed: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Mean service time in nanoseconds.
    pub mean: f64,
    /// Median service time in nanoseconds.
    pub p50: u64,
    /// 95th percentile of the service time in nanoseconds.
    pub p95: u64,
    /// 99th percentile of the service time in nanoseconds.
    pub p99: u64,
    /// Longest service time in nanoseconds.
    pub max: u64,
    /// 95th percentile of the response time in nanoseconds; 0 in closed load.
    pub response_p95: u64,
}

/// The number of a start's only load: the default for rows that were written before a start could have several.
fn first_load() -> u32 {
    1
}

impl LoadSecond {
    /// A second of a start's first load in which nothing of this subject ended.
    #[must_use]
    pub fn empty(second: i64, subject: Subject) -> LoadSecond {
        LoadSecond {
            load: first_load(),
            second,
            subject,
            count: 0,
            failed: 0,
            bytes_out: 0,
            bytes_in: 0,
            mean: 0.0,
            p50: 0,
            p95: 0,
            p99: 0,
            max: 0,
            response_p95: 0,
        }
    }

    /// The row for what ended for `subject` in a second of the load with this number.
    #[must_use]
    pub fn of(load: u32, second: i64, subject: &Subject, tally: &Tally) -> LoadSecond {
        let at = |quantile| tally.service.value_at_quantile(quantile);
        LoadSecond {
            load,
            second,
            subject: subject.clone(),
            count: tally.count(),
            failed: tally.failed(),
            bytes_out: tally.bytes_out,
            bytes_in: tally.bytes_in,
            mean: tally.service.mean(),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: tally.service.max(),
            response_p95: tally.response.value_at_quantile(0.95),
        }
    }
}

/// How the generator did in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorRow {
    /// The number of the load on its start.
    #[serde(default = "first_load")]
    pub load: u32,
    /// The second, from the start of the measure phase.
    pub second: i64,
    /// CPU of all its threads, in cores.
    pub cpu_cores: f64,
    /// CPU of its busiest thread, in cores.
    pub cpu_busiest: f64,
    /// Users at work.
    pub users: u64,
    /// Exchanges under way.
    pub in_flight: u64,
    /// Arrivals due and not started.
    pub backlog: u64,
    /// How late due work was started although a user was free: 99th percentile, in nanoseconds.
    pub lateness_p99: u64,
    /// The same, longest.
    pub lateness_max: u64,
    /// The longest time in which the event loop did not poll for new events, in nanoseconds.
    pub stall: u64,
}

impl GeneratorRow {
    /// The row for an interval of the load with this number.
    #[must_use]
    pub fn of(load: u32, interval: &Interval) -> GeneratorRow {
        let Interval { second, length, generator, .. } = interval;
        let cores = |cpu: Nanos| if length.0 == 0 { 0.0 } else { cpu.seconds() / length.seconds() };
        GeneratorRow {
            load,
            second: *second,
            cpu_cores: cores(generator.cpu),
            cpu_busiest: cores(generator.cpu_busiest),
            users: generator.users,
            in_flight: generator.in_flight,
            backlog: generator.backlog,
            lateness_p99: generator.lateness.value_at_quantile(0.99),
            lateness_max: generator.lateness.max(),
            stall: generator.stall.0,
        }
    }
}

/// The first second that counts, by condition: one cut for all loads under it, at which the last of them became steady.
/// Starts and loads that do not count are ignored.
#[must_use]
pub fn common_cuts<'a>(starts: impl IntoIterator<Item = &'a FinishedStart>) -> BTreeMap<usize, i64> {
    let mut cuts = BTreeMap::new();
    for finished in starts.into_iter().filter(|finished| finished.summary.validity.counts()) {
        for load in finished.loads.iter().filter(|load| load.validity.counts()) {
            let steady = load.steadiness.from.map_or(0, |from| from.0.div_ceil(1_000_000_000) as i64);
            let cut: &mut i64 = cuts.entry(finished.summary.start.condition).or_default();
            *cut = steady.max(*cut);
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::PhaseLengths;

    fn finished(condition: usize, steady_from: Option<u64>, validity: Validity) -> FinishedStart {
        let start = Start {
            number: 1,
            block: 1,
            repeat: 1,
            attempt: 1,
            extended: false,
            position: 1,
            condition,
            variants: vec![0],
        };
        let load = Load { number: 1, variant: 0, turn: 1, beside: None, lengths: PhaseLengths::default() };
        let from = steady_from.map(|milliseconds| Nanos(milliseconds * 1_000_000));
        let steadiness = Steadiness { from, ..Steadiness::default() };
        FinishedStart {
            summary: StartSummary {
                start,
                validity: Validity::Valid,
                warnings: Vec::new(),
                timing: StartTiming::default(),
                systems: Vec::new(),
            },
            loads: vec![LoadSummary { validity, steadiness, ..LoadSummary::not_offered(load) }],
        }
    }

    #[test]
    fn a_condition_is_cut_where_the_last_of_its_loads_that_count_became_steady() {
        let void = Validity::Void(vec!["no steady state".to_owned()]);
        let starts = [
            finished(0, Some(0), Validity::Valid),
            finished(0, Some(1200), Validity::Valid),
            finished(0, Some(4000), void),
            finished(1, Some(3000), Validity::Valid),
            finished(2, None, Validity::Valid),
        ];
        assert_eq!(common_cuts(&starts), BTreeMap::from([(0, 2), (1, 3), (2, 0)]));
    }

    #[test]
    fn a_start_counts_as_a_whole_if_each_of_its_loads_does() {
        let mut start = finished(0, None, Validity::Valid);
        assert!(start.validity().counts());
        let void = Validity::Void(vec!["stalled".to_owned()]);
        let load = LoadSummary { validity: void.clone(), ..start.loads[0].clone() };
        start.loads.push(load);
        assert_eq!(start.validity(), void);
    }

    /// Slices of two variants in `turns` turns.
    fn slices(turns: u32) -> Vec<LoadSummary> {
        let of = |(number, turn, variant)| {
            let load = Load { number, variant, turn, beside: None, lengths: PhaseLengths::default() };
            let mut summary = LoadSummary::not_offered(load);
            let zero = Instant(i64::from(number - 1) * 1_000_000_000);
            summary.timing = LoadTiming { zero, window: Nanos(500_000_000) };
            summary
        };
        let places = (1..=turns).flat_map(|turn| [(2 * turn - 1, turn, 0), (2 * turn, turn, 1)]);
        places.map(of).collect()
    }

    #[test]
    fn a_void_slice_takes_its_turn_along_while_enough_are_left() {
        let mut start = FinishedStart { loads: slices(8), ..finished(0, None, Validity::Valid) };
        let void = Validity::Void(vec!["a stall".to_owned()]);
        for spoilt in [0, 3, 5, 6] {
            assert!(start.validity().counts());
            start.loads[2 * spoilt].validity = void.clone();
        }
        assert!(start.validity().counts(), "half of the turns are enough");
        assert_eq!(whole_turns(start.loads.iter()), BTreeSet::from([2, 3, 5, 8]));
        start.loads[3].validity = void;
        assert_eq!(
            start.validity(),
            Validity::Void(vec!["only 3 of 8 turns count: a stall (the first of 5 slices)".to_owned()])
        );
        for (slice, late) in [(3, "7.5 ms late"), (5, "12 ms late")] {
            start.loads[slice].validity = Validity::Void(vec![late.to_owned()]);
        }
        let reasons = "a stall (the first of 4 slices); 7.5 ms late (the first of 2 slices)";
        let expected = format!("only 2 of 8 turns count: {reasons}");
        assert_eq!(start.validity(), Validity::Void(vec![expected]));
        let failed = Validity::Failed(vec!["wrong replies".to_owned()]);
        start.loads[15].validity = failed.clone();
        assert_eq!(start.validity(), failed, "a wrong reply is no matter of a turn");
    }

    #[test]
    fn slices_are_pooled_by_variant_and_come_back() {
        let mut pooled = PooledLoads::default();
        for (number, mut summary) in (1_u64..).zip(slices(4)) {
            summary.others = Some(number as f64);
            let mut tally = Tally::default();
            tally.service.record_n(number * 1000, number).expect("in range");
            let tallies = BTreeMap::from([(Subject::Iteration, tally)]);
            let (seconds, generator, slices) = (Vec::new(), Vec::new(), Vec::new());
            pooled.add(&LoadResult { summary, cut: 0, tallies, seconds, generator, slices });
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
}
