//! The metrics that systems expose in the text formats of Prometheus and OpenMetrics: what is read of them, and what was.

use crate::measure::{Direction, Noted, Unit};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The metrics that are read of a system, once a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExposedMetrics {
    /// The `http://` URL that they are read from.
    pub url: String,
    /// The series that are kept.
    pub series: Vec<ExposedSeries>,
}

/// A series that is kept of a system's metrics, or one for each value of a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExposedSeries {
    /// The name that the study gives it.
    pub name: String,
    /// The name of the metric. Of histograms and summaries, the name without `_bucket`, `_sum` and `_count`.
    pub metric: String,
    /// Labels that samples must have, with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The label of which each value makes a series. Over all other labels values are summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The unit of its values, seconds or bytes; none where the study leaves it to the name of the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// The better direction; none where the study leaves it to the statistic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Direction>,
}

impl ExposedSeries {
    /// The series that are kept of every system whose metrics are read, where it has them: those of its process, and of the Go
    /// runtime.
    ///
    /// *Source: the names that Prometheus' guide for client libraries gives to metrics of processes, and those of its Go
    /// client.*
    pub fn usual() -> impl Iterator<Item = ExposedSeries> {
        USUAL.into_iter().map(|(name, metric)| ExposedSeries {
            name: name.to_owned(),
            metric: metric.to_owned(),
            labels: BTreeMap::new(),
            by: None,
            unit: None,
            better: None,
        })
    }

    /// True if `name` is this series, or that of one of its labels: see [`full_name`].
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        match name.strip_prefix(self.name.as_str()) {
            Some("") => self.by.is_none(),
            Some(label) => self.by.is_some() && label.starts_with('[') && label.ends_with(']'),
            None => false,
        }
    }

    /// True for a series that is kept where it is there, and not missed where it is not.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        USUAL.contains(&(&self.name, &self.metric))
    }

    /// The unit and the better direction of its values, by the study or by the name of the metric.
    ///
    /// *Source: Prometheus and OpenMetrics end the names of metrics with their base unit, and those of counters with `_total`.*
    #[must_use]
    pub fn noted(&self) -> Noted {
        let (name, is_total) = match self.metric.strip_suffix("_total") {
            Some(name) => (name, true),
            None => (self.metric.as_str(), false),
        };
        let of_name = || {
            let units = [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)];
            units.into_iter().find_map(|(end, unit)| name.ends_with(end).then_some(unit))
        };
        Noted { unit: self.unit.or_else(of_name), is_total, better: self.better }
    }
}

const USUAL: [(&str, &str); 8] = [
    ("goroutines", "go_goroutines"),
    ("Go heap in use", "go_memstats_heap_inuse_bytes"),
    ("Go stacks in use", "go_memstats_stack_inuse_bytes"),
    ("Go garbage collection pauses", "go_gc_duration_seconds"),
    ("operating system threads", "go_threads"),
    ("process CPU time", "process_cpu_seconds_total"),
    ("process memory", "process_resident_memory_bytes"),
    ("process open files", "process_open_fds"),
];

/// The name of a series with the value of the label that it is split by: `api[createPost]`.
#[must_use]
pub fn full_name(series: &str, label: &str) -> String {
    if label.is_empty() { series.to_owned() } else { format!("{series}[{label}]") }
}

/// The value of a series at an instant, as the system gave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    /// Seconds from the start of the measure phase to the question.
    pub at: f64,
    /// Name of the system.
    pub system: String,
    /// The variant that the system is of.
    pub variant: usize,
    /// The name that the study gives to the series.
    pub series: String,
    /// The value of the label that the series is split by; empty where it is not.
    pub label: String,
    /// The kind of the metric.
    pub kind: MetricKind,
    /// Of a counter its count, of a gauge its level, of histograms and summaries the number of values. Counts are those since
    /// the system began, summed over its sets of labels; where one begins anew or is gone, they do not fall.
    pub value: f64,
    /// The sum of the values of a histogram or summary.
    pub sum: Option<f64>,
    /// The buckets of a histogram.
    pub buckets: BucketCounts,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// It grows, and begins again at 0 where its process does.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts of values by upper bounds, with their sum.
    Histogram,
    /// The number of values and their sum. Quantiles that a system computes itself cannot be merged, and are left out.
    Summary,
}

impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
            MetricKind::Summary => "summary",
        })
    }
}

/// Upper bounds, each with the number of values that are at most that. In tables `0.1:50 0.2:90 inf:98`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BucketCounts(pub Vec<(f64, f64)>);

impl Serialize for BucketCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all: Vec<String> = self.0.iter().map(|(bound, count)| format!("{bound}:{count}")).collect();
        serializer.serialize_str(&all.join(" "))
    }
}

impl<'de> Deserialize<'de> for BucketCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BucketCounts, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bucket = |text: &str| {
            let (bound, count) = text.split_once(':')?;
            Some((bound.parse().ok()?, count.parse().ok()?))
        };
        let all: Option<Vec<(f64, f64)>> = text.split(' ').filter(|text| !text.is_empty()).map(bucket).collect();
        let wrong = || D::Error::custom(format!("expected buckets as in `0.1:50 inf:98`, found `{text}`"));
        all.map(BucketCounts).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_read_back_as_written() {
        for buckets in [vec![], vec![(0.005, 3.0), (1.0, 1e15), (f64::INFINITY, 1e15)]] {
            let buckets = BucketCounts(buckets);
            let text = serde_json::to_string(&buckets).expect("text");
            assert_eq!(serde_json::from_str::<BucketCounts>(&text).expect(&text), buckets);
        }
        for wrong in ["\"1\"", "\"a:1\"", "\"1:b\"", "1"] {
            assert!(serde_json::from_str::<BucketCounts>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_tells_the_unit() {
        let series = |metric: &str| ExposedSeries {
            name: "a".to_owned(),
            metric: metric.to_owned(),
            labels: BTreeMap::new(),
            by: None,
            unit: None,
            better: None,
        };
        assert_eq!(series("api_time_seconds").noted(), Noted::TIMES);
        assert_eq!(series("sent_bytes_total").noted(), Noted { unit: Some(Unit::Bytes), is_total: true, better: None });
        assert_eq!(series("requests_total").noted().unit, None);
        assert_eq!(ExposedSeries { unit: Some(Unit::Seconds), ..series("api_time") }.noted(), Noted::TIMES);
        assert!(ExposedSeries::usual().all(|series| series.is_usual()) && !series("go_goroutines").is_usual());
        let split = ExposedSeries { by: Some("handler".to_owned()), ..series("api_time") };
        assert!(split.is_named("a[GET /]") && !split.is_named("a") && !split.is_named("ab[c]"));
        assert!(series("api_time").is_named("a") && !series("api_time").is_named("a[b]"));
    }
}
