//! Time series: the samples of a metric that have the same tags, added up for outputs that send them to a server at
//! intervals.
//!
//! Each thread of users adds to a table of its own, which costs it no waiting: a [`Collector`] takes the tables of all
//! threads whenever it likes. What a table holds is bounded, and the samples that it has no room for are counted.

mod distribution;

pub use distribution::{BOUNDS, Buckets, Distribution, Percentiles};

use crate::metrics::{Kind, MetricId, Registry, TagSet};
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// The most series of a table.
pub const MOST_SERIES: usize = 100_000;

/// The most different values, rounded to 0.05 %, that the trends of a table keep apart, all series together.
pub const MOST_VALUES: usize = 4_000_000;

/// Names and values of tags, sorted by name, none of them empty.
pub type Tags = [(Box<str>, Box<str>)];

/// Collects the series of all threads.
#[derive(Debug)]
pub struct Collector {
    distribution: Distribution,
    tables: Mutex<Vec<Arc<SharedTable>>>,
}

/// The table of one thread, which its users add to and the collector empties.
#[derive(Debug)]
pub(crate) struct SharedTable(Mutex<Table>);

impl Collector {
    /// A collector whose trends keep their distribution in this form.
    #[must_use]
    pub fn new(distribution: Distribution) -> Collector {
        Collector { distribution, tables: Mutex::default() }
    }

    /// An empty table of the same form, into which the tables of threads can be taken.
    #[must_use]
    pub fn table(&self) -> Table {
        Table::new(self.distribution)
    }

    /// The table of one more thread.
    pub(crate) fn thread(&self) -> Arc<SharedTable> {
        let table = Arc::new(SharedTable(Mutex::new(self.table())));
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&table));
        table
    }

    /// Moves what all threads have into a table. `mask` replaces secrets in the values of tags, so that series which
    /// are the same without them are added up.
    pub fn take_into(&self, all: &mut Table, mask: &(impl Fn(&str) -> Cow<'_, str> + ?Sized)) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|table| {
            // Nobody adds to the table of a thread that is gone, so that it is not asked again.
            let is_in_use = Arc::strong_count(table) > 1;
            let taken = mem::replace(&mut *table.lock(), self.table());
            all.merge(taken, mask);
            is_in_use
        });
    }
}

impl SharedTable {
    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds samples of this moment.
    pub(crate) fn add(&self, registry: &Registry, samples: &[(MetricId, f64)], tags: &TagSet<'_>) {
        let mut tags: Vec<(&str, &str)> =
            tags.iter().filter(|(name, value)| !name.is_empty() && !value.is_empty()).collect();
        tags.sort_unstable();
        self.lock().add(registry, samples, &tags, Timestamp::now().as_millisecond());
    }
}

/// Series by their tags.
#[derive(Debug)]
pub struct Table {
    distribution: Distribution,
    /// By the hash of their tags: the tags of a sample are borrowed, those of a group are its own.
    groups: HashMap<u64, Vec<Group>>,
    /// Room for more series, and for more values of trends.
    room: Room,
    left_out: u64,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    series: usize,
    values: usize,
}

/// The series with the same tags.
#[derive(Debug)]
struct Group {
    tags: Box<Tags>,
    series: Vec<Series>,
}

/// A series: the samples of a metric that have the same tags.
#[derive(Debug)]
pub struct Series {
    /// The metric.
    pub metric: MetricId,
    /// All its samples.
    pub measure: Measure,
    /// The instant of the latest one, in milliseconds since 1970.
    pub at: i64,
    /// True from when a sample is added until the owner of the table says otherwise.
    pub is_new: bool,
    /// For the owner of the table: the last instant for which it sent a value, in milliseconds since 1970.
    pub sent: i64,
}

/// The aggregated samples of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// The sum of a counter.
    Sum(f64),
    /// The latest sample of a gauge.
    Last(f64),
    /// The samples of a rate.
    Rate {
        /// Samples that are not zero.
        trues: u64,
        /// Samples that are zero.
        falses: u64,
    },
    /// The distribution of a trend, for its percentiles.
    Percentiles(Percentiles),
    /// The distribution of a trend, by fixed bounds.
    Buckets(Buckets),
}

impl Table {
    fn new(distribution: Distribution) -> Table {
        let room = Room { series: MOST_SERIES, values: MOST_VALUES };
        Table { distribution, groups: HashMap::new(), room, left_out: 0 }
    }

    /// Adds samples with the same sorted tags.
    fn add(&mut self, registry: &Registry, samples: &[(MetricId, f64)], tags: &[(&str, &str)], at: i64) {
        let distribution = self.distribution;
        let Some(group) = group(&mut self.groups, tags, &self.room) else {
            self.left_out += samples.len() as u64;
            return;
        };
        for (metric, value) in samples {
            let room = &mut self.room;
            let series = group.series(*metric, room, || Measure::new(registry.metric(*metric).kind, distribution));
            let added = series.is_some_and(|series| series.add(*value, at, &mut room.values));
            self.left_out += u64::from(!added);
        }
    }

    /// Adds what another table has, of later samples or of samples of the same time, with masked values of tags.
    fn merge(&mut self, other: Table, mask: &(impl Fn(&str) -> Cow<'_, str> + ?Sized)) {
        self.left_out += other.left_out;
        for Group { tags, series } in other.groups.into_values().flatten() {
            let values: Vec<Cow<'_, str>> = tags.iter().map(|(_, value)| mask(value)).collect();
            let masked: Vec<(&str, &str)> =
                tags.iter().zip(&values).map(|((name, _), value)| (&**name, &**value)).collect();
            let Some(group) = group(&mut self.groups, &masked, &self.room) else {
                self.left_out += series.iter().map(|series| series.measure.samples()).sum::<u64>();
                continue;
            };
            for series in &series {
                let room = &mut self.room;
                let lost = match group.series(series.metric, room, || series.measure.empty()) {
                    Some(own) => own.merge(series, &mut room.values),
                    None => series.measure.samples(),
                };
                self.left_out += lost;
            }
        }
    }

    /// All series with their tags.
    pub fn series_mut(&mut self) -> impl Iterator<Item = (&Tags, &mut Series)> {
        let groups = self.groups.values_mut().flatten();
        groups.flat_map(|Group { tags, series }| series.iter_mut().map(|series| (&**tags, series)))
    }

    /// The samples that there was no room for.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn hash(tags: &[(&str, &str)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tags.hash(&mut hasher);
    hasher.finish()
}

/// The group of these tags, which is made if there is none and there is room for a series. A group without series would
/// take memory that nothing bounds.
fn group<'g>(groups: &'g mut HashMap<u64, Vec<Group>>, tags: &[(&str, &str)], room: &Room) -> Option<&'g mut Group> {
    let same_hash = match groups.entry(hash(tags)) {
        Entry::Vacant(_) if room.series == 0 => return None,
        entry => entry.or_default(),
    };
    let place = match same_hash.iter().position(|group| group.has(tags)) {
        Some(place) => place,
        None if room.series == 0 => return None,
        None => {
            let tags = tags.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            same_hash.push(Group { tags, series: Vec::new() });
            same_hash.len() - 1
        }
    };
    Some(&mut same_hash[place])
}

impl Group {
    fn has(&self, tags: &[(&str, &str)]) -> bool {
        self.tags.len() == tags.len()
            && self.tags.iter().zip(tags).all(|((name, value), tag)| (&**name, &**value) == *tag)
    }

    /// The series of a metric, which is made if there is none and there is room for one.
    fn series(&mut self, metric: MetricId, room: &mut Room, measure: impl FnOnce() -> Measure) -> Option<&mut Series> {
        let place = match self.series.iter().position(|series| series.metric == metric) {
            Some(place) => place,
            None => {
                room.series = room.series.checked_sub(1)?;
                self.series.push(Series { metric, measure: measure(), at: i64::MIN, is_new: false, sent: i64::MIN });
                self.series.len() - 1
            }
        };
        Some(&mut self.series[place])
    }
}

impl Series {
    /// Adds a sample. False if there is no room for it.
    fn add(&mut self, value: f64, at: i64, room: &mut usize) -> bool {
        let added = match &mut self.measure {
            Measure::Sum(sum) => {
                *sum += value;
                true
            }
            Measure::Last(last) => {
                *last = value;
                true
            }
            Measure::Rate { trues, falses } => {
                *if value == 0.0 { falses } else { trues } += 1;
                true
            }
            Measure::Percentiles(trend) => trend.add(value, room),
            Measure::Buckets(trend) => {
                trend.add(value);
                true
            }
        };
        self.touch(at);
        added
    }

    /// Adds what the series of another thread has. Returns how many samples there was no room for.
    fn merge(&mut self, other: &Series, room: &mut usize) -> u64 {
        let mut lost = 0;
        match (&mut self.measure, &other.measure) {
            (Measure::Sum(sum), Measure::Sum(more)) => *sum += more,
            (Measure::Last(last), Measure::Last(other_last)) if other.at >= self.at => *last = *other_last,
            (Measure::Rate { trues, falses }, Measure::Rate { trues: more, falses: others }) => {
                (*trues, *falses) = (*trues + more, *falses + others);
            }
            (Measure::Percentiles(own), Measure::Percentiles(other)) => lost = own.merge(other, room),
            (Measure::Buckets(own), Measure::Buckets(other)) => own.merge(other),
            // The gauge of another thread that is older. A metric has one kind, and a run one form of distributions.
            _ => {}
        }
        self.touch(other.at);
        lost
    }

    fn touch(&mut self, at: i64) {
        self.at = self.at.max(at);
        self.is_new = true;
    }
}

impl Measure {
    fn new(kind: Kind, distribution: Distribution) -> Measure {
        match (kind, distribution) {
            (Kind::Counter, _) => Measure::Sum(0.0),
            (Kind::Gauge, _) => Measure::Last(0.0),
            (Kind::Rate, _) => Measure::Rate { trues: 0, falses: 0 },
            (Kind::Trend, Distribution::Percentiles) => Measure::Percentiles(Percentiles::default()),
            (Kind::Trend, Distribution::Buckets) => Measure::Buckets(Buckets::default()),
        }
    }

    /// One of the same kind without samples.
    fn empty(&self) -> Measure {
        match self {
            Measure::Sum(_) => Measure::Sum(0.0),
            Measure::Last(_) => Measure::Last(0.0),
            Measure::Rate { .. } => Measure::Rate { trues: 0, falses: 0 },
            Measure::Percentiles(_) => Measure::Percentiles(Percentiles::default()),
            Measure::Buckets(_) => Measure::Buckets(Buckets::default()),
        }
    }

    /// The number of its samples; 1 for a sum or a gauge, which do not count them.
    fn samples(&self) -> u64 {
        match self {
            Measure::Sum(_) | Measure::Last(_) => 1,
            Measure::Rate { trues, falses } => trues + falses,
            Measure::Percentiles(trend) => trend.totals().count,
            Measure::Buckets(trend) => trend.totals.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Contains, builtin};

    const TAGS: TagSet<'_> = TagSet { own: &[("b", "2"), ("a", "1"), ("none", "")], ..EMPTY };
    const EMPTY: TagSet<'_> = TagSet { measured: None, own: &[], group: None, user: &[], metadata: &[] };

    fn unmasked(text: &str) -> Cow<'_, str> {
        text.into()
    }

    /// The series of a table by metric and tags.
    fn told(table: &mut Table) -> Vec<(MetricId, String, Measure)> {
        let tags = |tags: &Tags| tags.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
        let mut told: Vec<_> =
            table.series_mut().map(|(with, series)| (series.metric, tags(with), series.measure.clone())).collect();
        told.sort_by_key(|(metric, tags, _)| (*metric, tags.clone()));
        told
    }

    #[test]
    fn samples_with_the_same_tags_are_one_series_whatever_thread_took_them() {
        let registry = Registry::default();
        let collector = Collector::new(Distribution::Buckets);
        let (one, other) = (collector.thread(), collector.thread());
        let samples = [(builtin::HTTP_REQS, 1.0), (builtin::HTTP_REQ_FAILED, 0.0)];
        one.add(&registry, &samples, &TAGS);
        other.add(&registry, &samples, &TagSet { own: &[("a", "1"), ("b", "2")], ..EMPTY });
        other.add(&registry, &[(builtin::HTTP_REQ_FAILED, 1.0)], &TAGS);
        one.add(&registry, &samples, &EMPTY);
        let mut all = collector.table();
        collector.take_into(&mut all, &unmasked);
        let tagged = "a=1 b=2 ".to_owned();
        let expected = [
            (builtin::HTTP_REQS, String::new(), Measure::Sum(1.0)),
            (builtin::HTTP_REQS, tagged.clone(), Measure::Sum(2.0)),
            (builtin::HTTP_REQ_FAILED, String::new(), Measure::Rate { trues: 0, falses: 1 }),
            (builtin::HTTP_REQ_FAILED, tagged, Measure::Rate { trues: 1, falses: 2 }),
        ];
        assert_eq!(told(&mut all), expected);
        assert_eq!(all.left_out(), 0);
    }

    #[test]
    fn a_collector_adds_what_came_since_and_forgets_threads_that_are_gone() {
        let registry = Registry::default();
        let collector = Collector::new(Distribution::Percentiles);
        let mut all = collector.table();
        let thread = collector.thread();
        thread.add(&registry, &[(builtin::ITERATIONS, 1.0), (builtin::VUS, 5.0)], &EMPTY);
        collector.take_into(&mut all, &unmasked);
        all.series_mut().for_each(|(_, series)| series.is_new = false);
        thread.add(&registry, &[(builtin::VUS, 3.0)], &EMPTY);
        drop(thread);
        collector.take_into(&mut all, &unmasked);
        assert_eq!(collector.tables.lock().expect("no thread panicked").len(), 0);
        let new: Vec<_> =
            all.series_mut().filter(|(_, series)| series.is_new).map(|(_, series)| series.metric).collect();
        assert_eq!(new, [builtin::VUS], "only it had a sample since");
        let measures: Vec<Measure> = told(&mut all).into_iter().map(|(.., measure)| measure).collect();
        assert_eq!(measures, [Measure::Last(3.0), Measure::Sum(1.0)]);
    }

    #[test]
    fn an_older_value_of_a_gauge_does_not_replace_a_newer_one() {
        let registry = Registry::default();
        let (mut newer, mut older) = (Table::new(Distribution::Buckets), Table::new(Distribution::Buckets));
        newer.add(&registry, &[(builtin::VUS, 7.0)], &[], 2000);
        older.add(&registry, &[(builtin::VUS, 5.0)], &[], 1000);
        newer.merge(older, &unmasked);
        assert_eq!(told(&mut newer)[0].2, Measure::Last(7.0));
    }

    #[test]
    fn a_table_is_bounded_and_counts_what_it_leaves_out() {
        let registry = Registry::default();
        let mut table = Table::new(Distribution::Percentiles);
        table.room = Room { series: 2, values: 2 };
        for name in ["a", "b", "c", "b"] {
            table.add(&registry, &[(builtin::ITERATION_DURATION, 1.0)], &[("name", name)], 0);
        }
        assert_eq!((told(&mut table).len(), table.left_out()), (2, 1), "`c` came too late");
        assert_eq!(table.groups.values().flatten().count(), 2, "what has no room takes none");
        assert_eq!(table.groups.len(), 2);
        table.add(&registry, &[(builtin::ITERATION_DURATION, 2.0)], &[("name", "a")], 0);
        assert_eq!(table.left_out(), 2, "two values are kept apart");
        let mut full = Table::new(Distribution::Percentiles);
        full.room = Room { series: 0, values: 0 };
        full.merge(table, &unmasked);
        assert_eq!((told(&mut full).len(), full.left_out()), (0, 2 + 3));
        assert_eq!(full.groups.len(), 0);
    }

    #[test]
    fn a_metric_of_the_script_has_the_measure_of_its_kind() {
        let mut registry = Registry::default();
        let own = registry.register("queue", Kind::Trend, Contains::Default).expect("a name");
        let mut table = Table::new(Distribution::Buckets);
        table.add(&registry, &[(own, 7.0)], &[], 0);
        let Measure::Buckets(buckets) = &told(&mut table)[0].2 else { panic!("it is a trend") };
        assert_eq!((buckets.totals.count, buckets.totals.sum), (1, 7.0));
    }
}
