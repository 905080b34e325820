//! Counts over all answers of a system, by label set. A series is summed over label sets, of which one may go away, and
//! another may begin anew: what each of them has counted is known before they are summed.

use super::{Key, MOST_SERIES, Part, Value};
use crate::exposition::Sample;
use plimsoll_model::exposed::MetricKind;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The labels of a sample, by a hash of them: so few are kept that two have the same one in no run. None for all that
/// are not told apart.
pub(super) type LabelSet = Option<u64>;

/// The count of each label set, as of its last answer.
#[derive(Debug, Default)]
pub(super) struct Counts {
    series: BTreeMap<Key, BTreeMap<LabelSet, Count>>,
    /// The number of label sets that are told apart: [`MOST_SERIES`] at most, however many come and go.
    told_apart: usize,
}

/// The count of a label set.
#[derive(Debug)]
struct Count {
    /// The sum of its counts before each time that it began anew.
    before: Value,
    /// Its count since then, by the last answer that has it.
    last: Value,
}

impl Counts {
    /// Takes up a label set of a series, and returns what its samples count under: beyond the bound it is not told apart
    /// from others like it.
    pub(super) fn admit(&mut self, key: &Key, kind: MetricKind, set: LabelSet) -> LabelSet {
        if set.is_none() || self.series.get(key).is_some_and(|sets| sets.contains_key(&set)) {
            return set;
        }
        if self.told_apart == MOST_SERIES {
            return None;
        }
        self.told_apart += 1;
        self.series.entry(key.clone()).or_default().insert(set, Count::nothing(kind));
        set
    }

    /// Takes the values of an answer. Returns what all label sets of the series have counted, those that are not in the
    /// answer included, and true if one of them went back.
    pub(super) fn add(&mut self, key: &Key, kind: MetricKind, answer: BTreeMap<LabelSet, Value>) -> (Value, bool) {
        let sets = self.series.entry(key.clone()).or_default();
        let mut went_back = false;
        for (set, value) in answer {
            let count = sets.entry(set).or_insert_with(|| Count::nothing(kind));
            if value.value < count.last.value {
                count.before.add(&count.last);
                went_back = true;
            }
            count.last = value;
        }
        let mut all = Value::nothing(kind);
        for count in sets.values() {
            all.add(&count.before);
            all.add(&count.last);
        }
        (all, went_back)
    }
}

impl Count {
    fn nothing(kind: MetricKind) -> Count {
        Count { before: Value::nothing(kind), last: Value::nothing(kind) }
    }
}

/// The label set of a sample; none of a gauge, whose sets need not be told apart.
pub(super) fn label_set(kind: MetricKind, part: Part, sample: &Sample<'_>) -> LabelSet {
    if kind == MetricKind::Gauge {
        return None;
    }
    let all = sample.labels.iter().map(|(name, value)| (&**name, &**value));
    // The buckets of a histogram differ in `le` alone. A label that is not there is the same as one that is empty.
    let mut labels: Vec<(&str, &str)> =
        all.filter(|(name, value)| !value.is_empty() && (part != Part::Bucket || *name != "le")).collect();
    labels.sort_unstable();
    let mut hasher = DefaultHasher::new();
    labels.hash(&mut hasher);
    Some(hasher.finish())
}
