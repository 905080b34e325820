//! OTLP, the protocol of OpenTelemetry, version 1: a message of protobuf, over HTTP or gRPC. Names and kinds of metrics
//! are those of k6's output.

use crate::push::Point;
use plimsoll_k6_run::metrics::{Contains, MetricId, Totals};
use plimsoll_k6_run::series::{BOUNDS, Buckets, Measure};
use prost::{Message, Oneof};
use std::collections::BTreeMap;

/// The headers of a request.
pub(crate) const HEADERS: [(&str, &str); 1] = [("Content-Type", "application/x-protobuf")];

/// The method that takes the same message by gRPC.
pub(crate) const METHOD: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

/// Sums and histograms have everything since the beginning of the run.
const CUMULATIVE: i32 = 2;

const NANOSECONDS_OF_MILLISECOND: i64 = 1_000_000;

/// The settings of OTLP.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Otlp {
    pub(crate) service_name: String,
    pub(crate) service_version: String,
    /// The beginning of the names of metrics.
    pub(crate) prefix: String,
}

impl Otlp {
    /// The body of a request with these points of a run that began at `start`, in milliseconds since 1970.
    pub(crate) fn encode(&self, points: &[Point<'_>], start: i64) -> Vec<u8> {
        let mut by_metric: BTreeMap<MetricId, Vec<&Point<'_>>> = BTreeMap::new();
        for point in points {
            by_metric.entry(point.id).or_default().push(point);
        }
        let metrics = by_metric.values().filter_map(|points| self.metric(points, nanoseconds(start))).collect();
        let attributes = [("service.name", &self.service_name), ("service.version", &self.service_version)];
        let request = ExportRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(Resource {
                    attributes: attributes.map(|(name, value)| KeyValue::new(name, value)).into(),
                }),
                scope_metrics: vec![ScopeMetrics { scope: Some(Scope { name: "k6".to_owned() }), metrics }],
            }],
        };
        request.encode_to_vec()
    }

    /// A metric from all its points, of which there is one at least.
    fn metric(&self, points: &[&Point<'_>], start: u64) -> Option<Metric> {
        let first = points.first()?;
        let unit = match first.metric.contains {
            Contains::Time => "ms",
            Contains::Data => "By",
            Contains::Default => "",
        };
        let name = format!("{}{}", self.prefix, first.metric.name);
        let numbers = |numbers: &dyn Fn(&Point<'_>) -> Vec<NumberPoint>| {
            points.iter().flat_map(|point| numbers(point)).collect::<Vec<NumberPoint>>()
        };
        let sum = |data_points| Data::Sum(Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true });
        let (name, unit, data) = match first.measure {
            Measure::Sum(_) => (name, unit, sum(numbers(&|point| point.number(start)))),
            Measure::Last(_) => (name, unit, Data::Gauge(Gauge { data_points: numbers(&|point| point.number(start)) })),
            // As k6 does it: a counter with two series, from which a share can be computed over any time.
            Measure::Rate { .. } => (format!("{name}.total"), "", sum(numbers(&|point| point.conditions(start)))),
            Measure::Buckets(_) => {
                let data_points = points.iter().filter_map(|point| point.histogram(start)).collect();
                (name, unit, Data::Histogram(Histogram { data_points, aggregation_temporality: CUMULATIVE }))
            }
            // Series of this output keep buckets.
            Measure::Percentiles(_) => return None,
        };
        Some(Metric { name, unit: unit.to_owned(), data: Some(data) })
    }
}

impl Point<'_> {
    fn attributes(&self) -> Vec<KeyValue> {
        self.tags.iter().map(|(name, value)| KeyValue::new(name, value)).collect()
    }

    fn number(&self, start: u64) -> Vec<NumberPoint> {
        let (Measure::Sum(value) | Measure::Last(value)) = self.measure else { return Vec::new() };
        // A gauge has no beginning.
        let start_time_unix_nano = if matches!(self.measure, Measure::Sum(_)) { start } else { 0 };
        vec![NumberPoint {
            attributes: self.attributes(),
            start_time_unix_nano,
            time_unix_nano: nanoseconds(self.at),
            value: Some(Number::AsDouble(*value)),
        }]
    }

    /// The two counts of a rate, of those that have counted something.
    fn conditions(&self, start: u64) -> Vec<NumberPoint> {
        let Measure::Rate { trues, falses } = self.measure else { return Vec::new() };
        let counted = [("nonzero", trues), ("zero", falses)].into_iter().filter(|(_, count)| **count > 0);
        let point = |(condition, count): (&str, &u64)| {
            let mut attributes = self.attributes();
            attributes.retain(|attribute| attribute.key != "condition");
            attributes.push(KeyValue::new("condition", condition));
            NumberPoint {
                attributes,
                start_time_unix_nano: start,
                time_unix_nano: nanoseconds(self.at),
                value: Some(Number::AsInt(i64::try_from(*count).unwrap_or(i64::MAX))),
            }
        };
        counted.map(point).collect()
    }

    fn histogram(&self, start: u64) -> Option<HistogramPoint> {
        let Measure::Buckets(Buckets { totals: Totals { count, sum, least, greatest }, counts }) = self.measure else {
            return None;
        };
        let extreme = |value: &f64| (*count > 0).then_some(*value);
        Some(HistogramPoint {
            attributes: self.attributes(),
            start_time_unix_nano: start,
            time_unix_nano: nanoseconds(self.at),
            count: *count,
            sum: Some(*sum),
            bucket_counts: counts.to_vec(),
            explicit_bounds: BOUNDS.to_vec(),
            min: extreme(least),
            max: extreme(greatest),
        })
    }
}

fn nanoseconds(milliseconds: i64) -> u64 {
    u64::try_from(milliseconds.saturating_mul(NANOSECONDS_OF_MILLISECOND)).unwrap_or_default()
}

/// The number of points of a request that the receiver did not take, and why, by its answer. None if it took all, or says
/// nothing of it.
pub(crate) fn rejected(answer: &[u8]) -> Option<(u64, String)> {
    let PartialSuccess { rejected_data_points, error_message } = ExportResponse::decode(answer).ok()?.partial_success?;
    let rejected = u64::try_from(rejected_data_points).ok().filter(|rejected| *rejected > 0)?;
    Some((rejected, error_message))
}

#[derive(Clone, PartialEq, Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "Data", tags = "5, 7, 9")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(Histogram),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4, 6")]
    value: Option<Number>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Number {
    #[prost(double, tag = "4")]
    AsDouble(f64),
    #[prost(sfixed64, tag = "6")]
    AsInt(i64),
}

#[derive(Clone, PartialEq, Message)]
struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    count: u64,
    #[prost(double, optional, tag = "5")]
    sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    explicit_bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(double, optional, tag = "11")]
    min: Option<f64>,
    #[prost(double, optional, tag = "12")]
    max: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

impl KeyValue {
    fn new(key: &str, text: &str) -> KeyValue {
        KeyValue { key: key.to_owned(), value: Some(AnyValue { text: text.to_owned() }) }
    }
}

/// A value of an attribute. Of the kinds that it may have, only texts are sent.
#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, tag = "1")]
    text: String,
}

#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_data_points: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::tests::{table, with_points};
    use plimsoll_k6_run::metrics::builtin;
    use plimsoll_k6_run::series::Distribution;

    fn otlp() -> Otlp {
        Otlp { service_name: "shop".into(), service_version: "1".into(), prefix: "k6_".into() }
    }

    #[test]
    fn metrics_have_the_kind_and_unit_that_k6_gives_them() {
        let samples = [
            (builtin::DATA_SENT, 2.5),
            (builtin::CHECKS, 1.0),
            (builtin::CHECKS, 0.0),
            (builtin::CHECKS, 1.0),
            (builtin::HTTP_REQ_DURATION, 5.0),
            (builtin::HTTP_REQ_DURATION, 20000.0),
            (builtin::VUS, 5.0),
        ];
        let body = with_points(&mut table(Distribution::Buckets, &samples, &[("name", "a")]), |points| {
            otlp().encode(points, 500)
        });
        let request = ExportRequest::decode(&*body).expect("protobuf");
        let [resource] = &request.resource_metrics[..] else { panic!("one resource") };
        let named = |attributes: &[KeyValue]| -> Vec<String> {
            let text = |one: &KeyValue| one.value.as_ref().map(|value| value.text.clone()).unwrap_or_default();
            attributes.iter().map(|one| format!("{}={}", one.key, text(one))).collect()
        };
        let attributes = resource.resource.as_ref().map(|resource| named(&resource.attributes));
        assert_eq!(attributes, Some(vec!["service.name=shop".to_owned(), "service.version=1".to_owned()]));
        let metrics = &resource.scope_metrics[0].metrics;
        let metric = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("{name}"));
        let sent = metric("k6_data_sent");
        let Some(Data::Sum(sum)) = &sent.data else { panic!("a sum") };
        assert_eq!((sent.unit.as_str(), sum.is_monotonic, sum.aggregation_temporality), ("By", true, 2));
        let [point] = &sum.data_points[..] else { panic!("one point") };
        assert_eq!((&point.value, named(&point.attributes)), (&Some(Number::AsDouble(2.5)), vec!["name=a".to_owned()]));
        assert_eq!(point.start_time_unix_nano, 500_000_000);
        let Some(Data::Sum(checks)) = &metric("k6_checks.total").data else { panic!("a sum") };
        let counts: Vec<_> =
            checks.data_points.iter().map(|point| (named(&point.attributes)[1].clone(), &point.value)).collect();
        let (trues, falses) = (Some(Number::AsInt(2)), Some(Number::AsInt(1)));
        assert_eq!(counts, [("condition=nonzero".to_owned(), &trues), ("condition=zero".to_owned(), &falses)]);
        let duration = metric("k6_http_req_duration");
        let Some(Data::Histogram(histogram)) = &duration.data else { panic!("a histogram") };
        let point = &histogram.data_points[0];
        assert_eq!(
            (duration.unit.as_str(), point.count, point.sum, point.max),
            ("ms", 2, Some(20005.0), Some(20000.0))
        );
        assert_eq!((point.bucket_counts[1], point.bucket_counts[15], point.bucket_counts.len()), (1, 1, 16));
        assert_eq!(point.explicit_bounds[1], 5.0);
        let Some(Data::Gauge(gauge)) = &metric("k6_vus").data else { panic!("a gauge") };
        assert_eq!(gauge.data_points[0].value, Some(Number::AsDouble(5.0)));
    }

    #[test]
    fn what_a_receiver_rejects_is_read_from_its_answer() {
        let answer = |rejected_data_points| {
            let partial = PartialSuccess { rejected_data_points, error_message: "too old".to_owned() };
            ExportResponse { partial_success: Some(partial) }.encode_to_vec()
        };
        assert_eq!(rejected(&answer(3)), Some((3, "too old".to_owned())));
        for answer in [answer(0), Vec::new(), b"fine".to_vec()] {
            assert_eq!(rejected(&answer), None, "{answer:?}");
        }
    }
}
