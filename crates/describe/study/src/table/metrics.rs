//! `[system.NAME.metrics]`: the metrics that a system exposes, and the series that are kept of them.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, table};
use crate::table::ready::HttpUrl;
use crate::value::{Entries, Literal, Problem, Scalar, Scope, Templated, Text, Word, keyword};
use plimsoll_model::exposed::{ExposedMetrics, ExposedSeries};
use plimsoll_model::factor::Level;
use plimsoll_model::measure::{Direction, Measure, Series, Statistic, Unit};
use serde_json::{Value, json};
use toml::de::DeValue;

table! {
    /// The metrics that a system exposes in the text format of Prometheus or OpenMetrics. They are read once a second.
    struct MetricsTable {
        /// Where they are: an http:// URL. Default: "http://{address}/metrics".
        url: Option<Templated<HttpUrl>>,
        /// The series that are kept beside those of the process and of the Go runtime, by the names that reports give them: the
        /// name of a metric, or a table.
        series: Option<Entries<SeriesValue>>,
    }
}

table! {
    /// A series that is kept of a system's metrics.
    struct SeriesTable {
        /// The name of the metric; of a histogram or summary without `_bucket`, `_sum` and `_count`.
        metric: Literal<Text>,
        /// The values that labels must have. Default: any.
        labels: Option<Entries<Literal<Word>>>,
        /// The label of which each value makes a series of its own. Default: all are summed.
        by: Option<Literal<Text>>,
        /// What the values are counted in: "seconds" or "bytes". Default: as the end of the metric's name says.
        unit: Option<Literal<SeriesUnit>>,
        /// Which way is better: "lower" or "higher". Default: "higher" of rates and counts, "lower" of all else.
        better: Option<Literal<Direction>>,
    }
}

/// A series as the study has it: the name of a metric, or a table.
#[derive(Clone, Debug)]
pub(crate) enum SeriesValue {
    Metric(Literal<Text>),
    Table(Box<SeriesTable>),
}

impl FromToml for SeriesValue {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Table(_) => Some(SeriesValue::Table(Box::new(SeriesTable::from_toml(node, faults)?))),
            _ => Literal::from_toml(node, faults).map(SeriesValue::Metric),
        }
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [{ "type": "string" }, SeriesTable::json_schema(schemas)] })
    }
}

/// The unit of a series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeriesUnit(Unit);

impl Scalar for SeriesUnit {
    const EXPECTED: &'static str = "\"seconds\" or \"bytes\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("seconds", SeriesUnit(Unit::Seconds)), ("bytes", SeriesUnit(Unit::Bytes))])
    }

    fn schema() -> Value {
        json!({ "enum": ["seconds", "bytes"] })
    }
}

impl Scalar for Direction {
    const EXPECTED: &'static str = "\"lower\" or \"higher\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("lower", Direction::Lower), ("higher", Direction::Higher)])
    }

    fn schema() -> Value {
        json!({ "enum": ["lower", "higher"] })
    }
}

impl SeriesValue {
    /// Checks that it is not a part of a histogram: its buckets are counts of all that is at most their bound.
    fn check(&self, faults: &mut Faults) {
        let (metric, of_labels) = match self {
            SeriesValue::Metric(metric) => (metric, Vec::new()),
            SeriesValue::Table(table) => {
                let labels = table.labels.iter().flat_map(Entries::names);
                let by = table.by.iter().map(|by| (by.value.0.as_str(), &by.span));
                (&table.metric, labels.chain(by).collect())
            }
        };
        let help = |name: &str| format!("name the histogram, `{name}`: it has `avg`, `p99`, `rate` and so on");
        if let Some(name) = metric.value.0.strip_suffix("_bucket") {
            let fault = Fault::error(&metric.span, "the buckets of a histogram are no series of their own");
            faults.add(fault.help(help(name)));
        }
        for (label, span) in of_labels.into_iter().filter(|(label, _)| ["le", "quantile"].contains(label)) {
            let fault = Fault::error(span, format!("`{label}` is a part of a histogram or a summary, and no label"));
            faults.add(fault.help("leave it out: `p1` to `p99.99` of the series come of its buckets"));
        }
    }

    fn series(&self, name: &str) -> ExposedSeries {
        let name = name.to_owned();
        match self {
            SeriesValue::Metric(metric) => {
                let metric = metric.value.0.clone();
                ExposedSeries { name, metric, labels: [].into(), by: None, unit: None, better: None }
            }
            SeriesValue::Table(table) => {
                let labels = table.labels.iter().flat_map(Entries::iter);
                ExposedSeries {
                    name,
                    metric: table.metric.value.0.clone(),
                    labels: labels.map(|(name, value)| (name.to_owned(), value.value.0.clone())).collect(),
                    by: table.by.as_ref().map(|by| by.value.0.clone()),
                    unit: table.unit.as_ref().map(|unit| unit.value.0),
                    better: table.better.as_ref().map(|better| better.value),
                }
            }
        }
    }
}

impl MetricsTable {
    /// The metrics of a system with this port, in the trial that `scope` stands for.
    pub(crate) fn resolve(&self, port: Option<u16>, scope: &Scope<'_>, faults: &mut Faults) -> Option<ExposedMetrics> {
        let url = match (&self.url, port) {
            (Some(url), _) => url.resolve(scope, faults)?.0,
            (None, Some(port)) => format!("http://{}/metrics", scope.own_address(port)),
            (None, None) => {
                let fault = Fault::error(&self.place, "nothing tells where the metrics are: the system has no port");
                faults.add(fault.help("set `url`, as in `url = \"http://127.0.0.1:9100/metrics\"`"));
                return None;
            }
        };
        Some(ExposedMetrics { url, series: self.series() })
    }

    /// The series: those of the study, then the usual ones.
    pub(crate) fn series(&self) -> Vec<ExposedSeries> {
        let named = self.series.iter().flat_map(Entries::iter).map(|(name, value)| value.series(name));
        first_of_each_name(named.chain(ExposedSeries::usual()))
    }

    /// Checks the names of series: measures are written with them.
    pub(crate) fn check(&self, faults: &mut Faults) {
        for (name, place) in self.series.iter().flat_map(Entries::names) {
            check_name(name, place, faults);
        }
        self.series.iter().flat_map(Entries::iter).for_each(|(_, value)| value.check(faults));
    }
}

/// The series without those that have the name of one before them.
pub(crate) fn first_of_each_name(series: impl Iterator<Item = ExposedSeries>) -> Vec<ExposedSeries> {
    let mut first: Vec<ExposedSeries> = Vec::new();
    for one in series {
        if first.iter().all(|known| known.name != one.name) {
            first.push(one);
        }
    }
    first
}

fn check_name(name: &str, place: &Span, faults: &mut Faults) {
    let series = Series::Exposed(name.to_owned());
    let measure = Measure::new(series.clone(), Statistic::Avg);
    let is_read_back = measure.to_string().parse::<Measure>().is_ok_and(|read| read == measure);
    // `x.p95` would be a series and a statistic of another one.
    let is_measure = series.to_string().parse::<Measure>().is_ok();
    if name.trim().is_empty() || name.contains(['[', ']']) || !is_read_back || is_measure {
        let fault = Fault::error(place, format!("`{name}` cannot be the name of a series"));
        faults.add(fault.help("take a name without brackets and without a statistic such as `.p95`, as in `api`"));
    }
}

#[cfg(test)]
mod tests {
    use crate::table::system::SystemTable;
    use crate::table::testing::{faults_of, no_faults, read_table};

    #[test]
    fn series_are_named_in_short_or_in_full() {
        let table: SystemTable = read_table(
            "start = 'x'\n[metrics]\nurl = 'http://127.0.0.1:1/m'\n[metrics.series]\nrequests = 'http_requests_total'\n\
             goroutines = 'my_goroutines'\n\
             api = { metric = 'api_time', labels = { code = 200 }, by = 'handler', unit = 'seconds' }\n",
        );
        let series = table.metrics.as_ref().expect("metrics").series();
        let names: Vec<(&str, &str)> = series.iter().map(|one| (&*one.name, &*one.metric)).collect();
        let own = [("requests", "http_requests_total"), ("goroutines", "my_goroutines"), ("api", "api_time")];
        assert_eq!(names[..3], own);
        assert!(names[3..].contains(&("Go heap in use", "go_memstats_heap_inuse_bytes")));
        assert!(!names[3..].iter().any(|(name, _)| *name == "goroutines"));
        assert_eq!(series[2].labels, [("code".to_owned(), "200".to_owned())].into());
        assert_eq!(series[2].by.as_deref(), Some("handler"));
        let mut faults = no_faults();
        table.metrics.expect("metrics").check(&mut faults);
        assert!(faults.into_diagnostics().is_empty());
    }

    #[test]
    fn parts_of_histograms_and_names_like_measures_are_refused() {
        for (series, what) in [
            ("a = 'api_seconds_bucket'", "no series of their own"),
            ("a = { metric = 'api_seconds', by = 'le' }", "`le` is a part of a histogram"),
            ("a = { metric = 'api_seconds', labels = { quantile = 0.5 } }", "`quantile` is a part of a histogram"),
            ("'a.p95' = 'api_seconds'", "`a.p95` cannot be the name of a series"),
            ("'a[b]' = 'api_seconds'", "`a[b]` cannot be the name of a series"),
        ] {
            let table: SystemTable = read_table(&format!("start = 'x'\n[metrics.series]\n{series}\n"));
            let mut faults = no_faults();
            table.metrics.expect("metrics").check(&mut faults);
            let found: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(matches!(&found[..], [fault] if fault.contains(what)), "{series}: {found:?}");
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, what) in [
            ("metrics = { url = 'https://a/' }", "http:// URL"),
            ("metrics = { url = '127.0.0.1:1' }", "http:// URL"),
            ("metrics = { series = { a = { name = 'b' } } }", "`metric` is missing"),
            ("metrics = { series = { a = { metric = 'b', unit = 'ms' } } }", "\"seconds\" or \"bytes\""),
            ("metrics = { series = { a = { metric = 'b', better = 'more' } } }", "\"lower\" or \"higher\""),
            ("metrics = { series = { a = 3 } }", "a text"),
            ("metrics = { serie = { a = 'b' } }", "did you mean `series`"),
        ] {
            let faults = faults_of::<SystemTable>(&format!("start = 'x'\n{text}"));
            assert!(faults.iter().any(|fault| fault.contains(what)), "{text}: {faults:?}");
        }
    }
}
