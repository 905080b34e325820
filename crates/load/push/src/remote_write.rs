//! Prometheus remote write, version 0.1.0: a message of protobuf, compressed with Snappy. Names are those of k6's output.

use crate::push::Point;
use plimsoll_k6_run::metrics::{Aggregation, Contains};
use plimsoll_k6_run::series::{Measure, Percentiles};
use prost::Message;

/// The headers of a request.
pub(crate) const HEADERS: [(&str, &str); 3] = [
    ("Content-Encoding", "snappy"),
    ("Content-Type", "application/x-protobuf"),
    ("X-Prometheus-Remote-Write-Version", "0.1.0"),
];

const NAME: &str = "__name__";

/// The value that says that a series has ended: a certain number that is none, by its bits.
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// The settings of remote write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RemoteWrite {
    /// The values of a trend, a series each.
    pub(crate) trend_stats: Vec<TrendStat>,
    /// True if series are marked as ended when the run is over.
    pub(crate) stale_markers: bool,
}

/// A value of a trend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrendStat {
    /// The end of the name of its series: `p99`.
    pub(crate) suffix: String,
    statistic: Statistic,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    Avg,
    Min,
    Max,
    Count,
    Sum,
    Percentile(f64),
}

impl TrendStat {
    /// Reads `avg`, `min`, `med`, `max`, `count`, `sum` or `p(N)`.
    pub(crate) fn parse(text: &str) -> Result<TrendStat, String> {
        let statistic = match Aggregation::parse(text) {
            _ if text == "sum" => Statistic::Sum,
            Ok(Aggregation::Avg) => Statistic::Avg,
            Ok(Aggregation::Min) => Statistic::Min,
            Ok(Aggregation::Max) => Statistic::Max,
            Ok(Aggregation::Med) => Statistic::Percentile(50.0),
            Ok(Aggregation::Count) => Statistic::Count,
            Ok(Aggregation::Percentile(percent)) => Statistic::Percentile(percent),
            Ok(Aggregation::Rate | Aggregation::Value) | Err(_) => {
                let known = "`avg`, `min`, `med`, `max`, `count`, `sum` and `p(N)` with a number from 0 to 100";
                return Err(format!("expected some of {known}, found `{text}`"));
            }
        };
        Ok(TrendStat { suffix: text.replace(['(', ')', '.'], ""), statistic })
    }

    /// Its value in the base unit of Prometheus: seconds instead of milliseconds.
    fn value(&self, trend: &Percentiles, contains: Contains) -> f64 {
        let value = match self.statistic {
            Statistic::Count => return trend.totals().count as f64,
            Statistic::Avg => trend.totals().avg(),
            Statistic::Min => trend.totals().min(),
            Statistic::Max => trend.totals().max(),
            Statistic::Sum => trend.totals().sum,
            Statistic::Percentile(percent) => trend.percentile(percent),
        };
        if contains == Contains::Time { value / 1000.0 } else { value }
    }
}

impl RemoteWrite {
    /// The body of a request with these points.
    pub(crate) fn encode(&self, points: &[Point<'_>]) -> Vec<u8> {
        compressed(points.iter().flat_map(|point| self.series(point)).collect())
    }

    /// The body of a request which says that the series of these points have ended.
    pub(crate) fn encode_stale(&self, points: &[Point<'_>]) -> Vec<u8> {
        let mut series: Vec<TimeSeries> = points.iter().flat_map(|point| self.series(point)).collect();
        series.iter_mut().flat_map(|series| &mut series.samples).for_each(|sample| sample.value = STALE);
        compressed(series)
    }

    fn series(&self, point: &Point<'_>) -> Vec<TimeSeries> {
        let series = |suffix: &str, value: f64| TimeSeries {
            labels: labels(point, suffix),
            samples: vec![Sample { value, timestamp: point.at }],
        };
        match point.measure {
            Measure::Sum(sum) => vec![series("_total", *sum)],
            Measure::Last(last) => vec![series("", *last)],
            Measure::Rate { trues, falses } => {
                vec![series("_rate", *trues as f64 / (*trues + *falses).max(1) as f64)]
            }
            Measure::Percentiles(trend) => {
                let value = |stat: &TrendStat| stat.value(trend, point.metric.contains);
                self.trend_stats.iter().map(|stat| series(&format!("_{}", stat.suffix), value(stat))).collect()
            }
            // Series of this output keep percentiles.
            Measure::Buckets(_) => Vec::new(),
        }
    }
}

fn compressed(timeseries: Vec<TimeSeries>) -> Vec<u8> {
    let request = WriteRequest { timeseries }.encode_to_vec();
    snap::raw::Encoder::new().compress_vec(&request).expect("a request of a bounded number of series is below 4 GiB")
}

/// The labels of a series, sorted by name and each once, as the protocol asks for.
fn labels(point: &Point<'_>, suffix: &str) -> Vec<Label> {
    let name = Label { name: NAME.to_owned(), value: format!("k6_{}{suffix}", point.metric.name) };
    let tags = point.tags.iter().map(|(name, value)| Label { name: label_name(name), value: value.to_string() });
    let mut labels: Vec<Label> = std::iter::once(name).chain(tags).collect();
    labels.sort_by(|one, other| one.name.cmp(&other.name));
    labels.dedup_by(|later, earlier| later.name == earlier.name);
    labels
}

/// The name of a tag as that of a label: letters, digits and underscores, with no digit first. A receiver refuses all of
/// a request for another one.
fn label_name(tag: &str) -> String {
    let name = tag.replace(|char: char| !char.is_ascii_alphanumeric() && char != '_', "_");
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::push::tests::{point, table, with_points};
    use plimsoll_k6_run::metrics::builtin;
    use plimsoll_k6_run::series::Distribution;

    /// The series of a request: labels, value, and instant.
    pub(crate) fn decoded(body: &[u8]) -> Vec<(Vec<String>, f64, i64)> {
        let plain = snap::raw::Decoder::new().decompress_vec(body).expect("Snappy");
        let request = WriteRequest::decode(&*plain).expect("protobuf");
        let labels = |series: &TimeSeries| series.labels.iter().map(|l| format!("{}={}", l.name, l.value)).collect();
        let all = request.timeseries.iter().map(|s| (labels(s), s.samples[0].value, s.samples[0].timestamp));
        let mut all: Vec<_> = all.collect();
        all.sort_by(|one: &(Vec<String>, f64, i64), other| one.0.cmp(&other.0));
        all
    }

    fn remote_write(stats: &[&str]) -> RemoteWrite {
        let trend_stats = stats.iter().map(|stat| TrendStat::parse(stat).expect("a statistic")).collect();
        RemoteWrite { trend_stats, stale_markers: true }
    }

    #[test]
    fn metrics_are_named_by_their_kind_and_times_are_seconds() {
        let samples = [
            (builtin::HTTP_REQS, 2.0),
            (builtin::HTTP_REQ_FAILED, 1.0),
            (builtin::HTTP_REQ_FAILED, 0.0),
            (builtin::HTTP_REQ_DURATION, 250.0),
            (builtin::HTTP_REQ_DURATION, 750.0),
            (builtin::VUS, 5.0),
        ];
        let body = with_points(&mut table(Distribution::Percentiles, &samples, &[("name", "a")]), |points| {
            remote_write(&["p(99.5)", "count", "sum", "med"]).encode(points)
        });
        let found = decoded(&body);
        let named = |metric: &str| vec![format!("__name__={metric}"), "name=a".to_owned()];
        let expected = [
            (named("k6_http_req_duration_count"), 2.0),
            (named("k6_http_req_duration_med"), 0.5),
            (named("k6_http_req_duration_p995"), 0.7475),
            (named("k6_http_req_duration_sum"), 1.0),
            (named("k6_http_req_failed_rate"), 0.5),
            (named("k6_http_reqs_total"), 2.0),
            (named("k6_vus"), 5.0),
        ];
        assert_eq!(found.iter().map(|(labels, value, _)| (labels.clone(), *value)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn labels_are_sorted_and_named_as_prometheus_asks_for() {
        let point = point(&[("a-b", "1"), ("a_b", "2"), ("9", "3"), ("Z", "4"), ("__name__", "x"), ("ü", "5")]);
        let labels: Vec<String> = labels(&point, "").iter().map(|l| format!("{}={}", l.name, l.value)).collect();
        assert_eq!(labels, ["Z=4", "_=5", "_9=3", "__name__=k6_vus", "a_b=1"]);
    }

    #[test]
    fn a_series_that_has_ended_has_prometheus_own_value_that_is_none() {
        let body = remote_write(&["p(99)"]).encode_stale(&[point(&[])]);
        let found = decoded(&body);
        assert_eq!((found[0].1.to_bits(), found[0].2), (0x7ff0_0000_0000_0002, 1000));
    }

    #[test]
    fn bytes_are_those_of_the_protocol() {
        let plain = WriteRequest {
            timeseries: vec![TimeSeries {
                labels: vec![Label { name: "a".into(), value: "b".into() }],
                samples: vec![Sample { value: 1.0, timestamp: 300 }],
            }],
        };
        let series = b"\x0a\x06\x0a\x01a\x12\x01b\x12\x0c\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02";
        assert_eq!(plain.encode_to_vec(), [&[0x0a, series.len() as u8], &series[..]].concat());
    }

    #[test]
    fn statistics_of_trends_are_read_as_k6_reads_them() {
        for (text, suffix) in
            [("avg", "avg"), ("p(99)", "p99"), ("p(99.9)", "p999"), ("sum", "sum"), ("count", "count")]
        {
            assert_eq!(TrendStat::parse(text).map(|stat| stat.suffix), Ok(suffix.to_owned()), "{text}");
        }
        for text in ["", "rate", "value", "p99", "p(101)"] {
            assert!(TrendStat::parse(text).is_err(), "{text}");
        }
    }
}
