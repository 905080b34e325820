//! Takes the series that a study names from the text of an endpoint.

mod counts;

use crate::exposition::{self, Fault, Kind, Line, Sample};
use counts::{Counts, LabelSet, label_set};
use plimsoll_model::exposed::{BucketCounts, ExposedSeries, MetricKind};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most series that are kept of a system. A label with a value for each user would fill the disk.
pub(crate) const MOST_SERIES: usize = 2000;

/// The series to be taken, by the names of the samples that they are made of.
#[derive(Debug)]
pub(crate) struct Selection {
    series: Vec<ExposedSeries>,
    /// For each name of a sample the places of the series that it may be of, each with what it would be of that series.
    by_sample: HashMap<String, Vec<(usize, Part)>>,
    /// What is kept of them since the first answer: [`MOST_SERIES`] at most, however many come and go.
    kept: BTreeSet<Key>,
    /// The counts since the first answer.
    counts: Counts,
}

/// The place of a series, and the value of the label that it is split by.
pub(crate) type Key = (usize, String);

/// The part that a sample is of its metric, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// It has the metric's own name.
    Whole,
    /// `_total`, of a counter in OpenMetrics.
    Total,
    /// `_bucket`, of a histogram.
    Bucket,
    /// `_sum`, of a histogram or summary.
    Sum,
    /// `_count`, of a histogram or summary.
    Count,
}

const ENDS: [(&str, Part); 5] = [
    ("", Part::Whole),
    ("_total", Part::Total),
    ("_bucket", Part::Bucket),
    ("_sum", Part::Sum),
    ("_count", Part::Count),
];

/// The values of a text: one for each series and value of its label.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) values: BTreeMap<Key, Value>,
    /// The places of series of which a count went back.
    pub(crate) went_back: BTreeSet<usize>,
    /// The places of series of whose metrics there was a sample, whatever its labels and its value.
    pub(crate) seen: BTreeSet<usize>,
    /// The series beyond [`MOST_SERIES`].
    pub(crate) left_out: BTreeSet<Key>,
}

/// The samples of a label set, or of all that are not told apart.
#[derive(Debug)]
struct Found {
    value: Value,
    has_count: bool,
    /// How many samples there are of the bucket with each bound.
    bounds: Vec<(f64, usize)>,
}

/// The value of a series at an instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) kind: MetricKind,
    /// The value as in a [`MetricSample`](plimsoll_model::exposed::MetricSample).
    pub(crate) value: f64,
    pub(crate) sum: Option<f64>,
    pub(crate) buckets: BucketCounts,
}

/// A series that a sample is of: its place, the part that the sample is, and its kind.
type Meant = (usize, Part, MetricKind);

impl Value {
    fn nothing(kind: MetricKind) -> Value {
        Value { kind, value: 0.0, sum: None, buckets: BucketCounts::default() }
    }

    /// Adds another one. Of two histograms with bounds of their own, those are left that both have.
    fn add(&mut self, other: &Value) {
        self.value += other.value;
        if let Some(sum) = other.sum {
            *self.sum.get_or_insert(0.0) += sum;
        }
        let (own, others) = (&mut self.buckets.0, &other.buckets.0);
        if own.is_empty() {
            own.clone_from(others);
        } else if !others.is_empty() {
            own.retain_mut(|(bound, count)| match others.iter().find(|(known, _)| *known == *bound) {
                Some((_, more)) => {
                    *count += more;
                    true
                }
                None => false,
            });
        }
    }
}

impl Found {
    fn nothing(kind: MetricKind) -> Found {
        Found { value: Value::nothing(kind), has_count: false, bounds: Vec::new() }
    }

    fn add(&mut self, part: Part, sample: &Sample<'_>) {
        match part {
            Part::Whole | Part::Total => self.value.value += sample.value,
            Part::Count => {
                self.value.value += sample.value;
                self.has_count = true;
            }
            Part::Sum => *self.value.sum.get_or_insert(0.0) += sample.value,
            Part::Bucket => {
                let bound = sample.labels.iter().find(|(name, _)| name == "le").and_then(|(_, le)| le.parse().ok());
                let Some(bound) = bound else { return };
                match self.bounds.iter_mut().find(|(known, _)| *known == bound) {
                    Some((_, samples)) => *samples += 1,
                    None => self.bounds.push((bound, 1)),
                }
                let buckets = &mut self.value.buckets.0;
                match buckets.iter_mut().find(|(known, _)| *known == bound) {
                    Some((_, count)) => *count += sample.value,
                    None => buckets.push((bound, sample.value)),
                }
            }
        }
    }

    /// Makes a whole of the samples. Of several histograms with bounds of their own, those are left that all have. The last
    /// bucket holds all values: where the system leaves it out it is added, and where it leaves out their number, it is that.
    fn complete(self) -> Value {
        let Found { mut value, has_count, bounds } = self;
        let of_all = bounds.iter().map(|(_, samples)| *samples).max();
        let is_in_all = |bound: f64| bounds.iter().any(|(known, samples)| *known == bound && Some(*samples) == of_all);
        let buckets = &mut value.buckets.0;
        buckets.retain(|(bound, _)| is_in_all(*bound));
        if let Some((_, all)) = buckets.iter().find(|(bound, _)| *bound == f64::INFINITY && !has_count) {
            value.value = *all;
        }
        if !buckets.is_empty() && buckets.iter().all(|(bound, _)| *bound != f64::INFINITY) {
            buckets.push((f64::INFINITY, value.value));
        }
        value
    }
}

impl Selection {
    pub(crate) fn new(series: &[ExposedSeries]) -> Selection {
        let mut by_sample: HashMap<String, Vec<(usize, Part)>> = HashMap::new();
        for (place, one) in series.iter().enumerate() {
            for (end, part) in ENDS {
                by_sample.entry(format!("{}{end}", one.metric)).or_default().push((place, part));
            }
        }
        Selection { series: series.to_vec(), by_sample, kept: BTreeSet::new(), counts: Counts::default() }
    }

    /// The series.
    pub(crate) fn series(&self) -> &[ExposedSeries] {
        &self.series
    }

    /// Takes them from a text.
    ///
    /// # Errors
    /// The text is none of the formats.
    pub(crate) fn take(&mut self, text: &str) -> Result<Taken, Fault> {
        let mut kinds: HashMap<&str, Kind> = HashMap::new();
        let mut taken = Taken::default();
        let mut found: BTreeMap<Key, BTreeMap<LabelSet, Found>> = BTreeMap::new();
        // The series that the samples of a name are of. Samples of the same name stand together.
        let mut meant: Option<(Cow<'_, str>, Vec<Meant>)> = None;
        for line in exposition::lines(text) {
            match line? {
                Line::Type { family, kind } => {
                    kinds.insert(family, kind);
                    meant = None;
                }
                Line::Sample(sample) => {
                    let (_, series) = match meant.take() {
                        Some(known) if known.0 == sample.name => meant.insert(known),
                        _ => meant.insert((sample.name.clone(), self.meant_by(&sample.name, &kinds))),
                    };
                    for (place, part, kind) in &*series {
                        taken.seen.insert(*place);
                        let Some(label) = label_of(&self.series[*place], &sample) else { continue };
                        let key = (*place, label);
                        let set = label_set(*kind, *part, &sample);
                        // Most samples are further ones of a histogram.
                        if let Some(known) = found.get_mut(&key).and_then(|sets| sets.get_mut(&set)) {
                            known.add(*part, &sample);
                            continue;
                        }
                        let is_kept = self.kept.contains(&key);
                        if !is_kept && self.kept.len() == MOST_SERIES {
                            taken.left_out.insert(key);
                            continue;
                        }
                        if !is_kept {
                            self.kept.insert(key.clone());
                        }
                        let set = self.counts.admit(&key, *kind, set);
                        let sets = found.entry(key).or_default();
                        sets.entry(set).or_insert_with(|| Found::nothing(*kind)).add(*part, &sample);
                    }
                }
            }
        }
        for (key, sets) in found {
            let sets = sets.into_iter().map(|(set, found)| (set, found.complete())).collect();
            if let Some((value, went_back)) = self.summed(&key, sets) {
                taken.went_back.extend(went_back.then_some(key.0));
                taken.values.insert(key, value);
            }
        }
        Ok(taken)
    }

    /// The sum of a series over the label sets of an answer, and true if a count went back. None where it is no number: a
    /// gauge may be none, and so is what comes of it.
    fn summed(&mut self, key: &Key, sets: BTreeMap<LabelSet, Value>) -> Option<(Value, bool)> {
        let kind = sets.values().next()?.kind;
        let mut sum = Value::nothing(kind);
        sets.values().for_each(|value| sum.add(value));
        if !sum.value.is_finite() {
            return None;
        }
        Some(if kind == MetricKind::Gauge { (sum, false) } else { self.counts.add(key, kind, sets) })
    }

    /// The series that samples of this name are of.
    fn meant_by(&self, name: &str, kinds: &HashMap<&str, Kind>) -> Vec<Meant> {
        let parts = self.by_sample.get(name).into_iter().flatten();
        parts.filter_map(|(place, part)| Some((*place, *part, kind_of(&self.series[*place], *part, kinds)?))).collect()
    }

    /// The names of the metrics in a text that could be meant by `wanted`: those that have a part of its name in common.
    pub(crate) fn alike<'t>(wanted: &str, text: &'t str) -> Vec<&'t str> {
        let words: Vec<&str> = wanted.split('_').filter(|word| word.len() > 2 && !COMMON.contains(word)).collect();
        let families = exposition::lines(text).filter_map(|line| match line {
            Ok(Line::Type { family, .. }) => Some(family),
            _ => None,
        });
        let mut alike: Vec<(usize, &str)> = families
            .map(|family| (words.iter().filter(|word| family.split('_').any(|one| one == **word)).count(), family))
            .filter(|(common, _)| *common > 0)
            .collect();
        alike.sort_by_key(|(common, _)| std::cmp::Reverse(*common));
        alike.into_iter().map(|(_, family)| family).collect()
    }
}

/// Words that tell no metric from another.
const COMMON: [&str; 5] = ["total", "seconds", "bytes", "count", "sum"];

/// The kind of a series, if a sample with this part of its name is one of it. Where the text does not tell the type, the name
/// does.
fn kind_of(series: &ExposedSeries, part: Part, kinds: &HashMap<&str, Kind>) -> Option<MetricKind> {
    let metric = series.metric.as_str();
    let known = || kinds.get(metric).copied();
    match part {
        Part::Whole => match known().or_else(|| kinds.get(metric.strip_suffix("_total")?).copied()) {
            Some(Kind::Counter) => Some(MetricKind::Counter),
            // Of a histogram it would be another sample of the same name; of a summary it is a quantile.
            Some(Kind::Histogram | Kind::Summary) => None,
            Some(Kind::Gauge) => Some(MetricKind::Gauge),
            Some(Kind::Other) | None if metric.ends_with("_total") => Some(MetricKind::Counter),
            // A series of a histogram by its full name: `api_seconds_count`.
            Some(Kind::Other) | None if is_count_of_values(metric, kinds) => Some(MetricKind::Counter),
            Some(Kind::Other) | None => Some(MetricKind::Gauge),
        },
        Part::Total => (known() == Some(Kind::Counter)).then_some(MetricKind::Counter),
        Part::Bucket => (known() == Some(Kind::Histogram)).then_some(MetricKind::Histogram),
        Part::Sum | Part::Count => match known()? {
            Kind::Histogram => Some(MetricKind::Histogram),
            Kind::Summary => Some(MetricKind::Summary),
            _ => None,
        },
    }
}

/// True if a metric is the number or the sum of the values of a histogram or summary.
fn is_count_of_values(metric: &str, kinds: &HashMap<&str, Kind>) -> bool {
    let family = metric.strip_suffix("_count").or_else(|| metric.strip_suffix("_sum"));
    family.is_some_and(|family| matches!(kinds.get(family), Some(Kind::Histogram | Kind::Summary)))
}

/// The value of the label that the series is split by, if the sample has all labels that it must have. A sample of a split
/// series without that label has a name of its own, which is not that of the whole.
fn label_of(series: &ExposedSeries, sample: &Sample<'_>) -> Option<String> {
    // A label that is not there is the same as one that is empty.
    let value = |name: &str| sample.labels.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
    let fits = series.labels.iter().all(|(name, wanted)| value(name) == wanted);
    fits.then(|| match series.by.as_deref() {
        None => String::new(),
        Some(by) => match value(by) {
            "" => format!("no {by}"),
            value => value.to_owned(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::exposed::full_name;

    fn series(name: &str, metric: &str) -> ExposedSeries {
        let (name, metric) = (name.to_owned(), metric.to_owned());
        ExposedSeries { name, metric, labels: BTreeMap::new(), by: None, unit: None, better: None }
    }

    fn take(series: ExposedSeries, text: &str) -> Vec<(String, Value)> {
        let taken = Selection::new(&[series]).take(text).expect("a text");
        taken.values.into_iter().map(|((_, label), value)| (label, value)).collect()
    }

    fn plain(kind: MetricKind, value: f64) -> Value {
        Value { kind, value, sum: None, buckets: BucketCounts::default() }
    }

    const API: &str = "# TYPE api_seconds histogram\n\
        api_seconds_bucket{handler=\"post\",code=\"200\",le=\"0.1\"} 5\n\
        api_seconds_bucket{handler=\"post\",code=\"200\",le=\"+Inf\"} 7\n\
        api_seconds_sum{handler=\"post\",code=\"200\"} 1.5\napi_seconds_count{handler=\"post\",code=\"200\"} 7\n\
        api_seconds_bucket{handler=\"post\",code=\"500\",le=\"0.1\"} 1\n\
        api_seconds_bucket{handler=\"post\",code=\"500\",le=\"+Inf\"} 1\n\
        api_seconds_sum{handler=\"post\",code=\"500\"} 0.5\napi_seconds_count{handler=\"post\",code=\"500\"} 1\n\
        api_seconds_bucket{handler=\"get\",code=\"200\",le=\"0.1\"} 2\n\
        api_seconds_bucket{handler=\"get\",code=\"200\",le=\"+Inf\"} 2\n\
        api_seconds_sum{handler=\"get\",code=\"200\"} 0.25\napi_seconds_count{handler=\"get\",code=\"200\"} 2\n";

    #[test]
    fn histograms_are_split_by_a_label_and_summed_over_the_others() {
        let histogram = |value, sum, at_most| Value {
            kind: MetricKind::Histogram,
            value,
            sum: Some(sum),
            buckets: BucketCounts(vec![(0.1, at_most), (f64::INFINITY, value)]),
        };
        let split = ExposedSeries { by: Some("handler".to_owned()), ..series("api", "api_seconds") };
        let expected = [("get".to_owned(), histogram(2.0, 0.25, 2.0)), ("post".to_owned(), histogram(8.0, 2.0, 6.0))];
        assert_eq!(take(split, API), expected);
        assert_eq!(take(series("api", "api_seconds"), API), [(String::new(), histogram(10.0, 2.25, 8.0))]);
        let labels = [("code".to_owned(), "500".to_owned())].into();
        let failed = ExposedSeries { labels, ..series("failed", "api_seconds_count") };
        assert_eq!(take(failed, API), [(String::new(), plain(MetricKind::Counter, 1.0))]);
    }

    #[test]
    fn the_kind_is_that_of_the_text_or_of_the_name() {
        for (metric, text, kind) in [
            ("a", "# TYPE a gauge\na 3\n", Some(MetricKind::Gauge)),
            ("a", "# TYPE a counter\na 3\n", Some(MetricKind::Counter)),
            ("a_total", "# TYPE a counter\na_total 3\n", Some(MetricKind::Counter)),
            ("a", "# TYPE a counter\na_total 3\na_created 17e9\n", Some(MetricKind::Counter)),
            ("a_total", "a_total 3\n", Some(MetricKind::Counter)),
            ("a", "# TYPE a untyped\na 3\n", Some(MetricKind::Gauge)),
            ("a", "# TYPE a summary\na{quantile=\"0.5\"} 9\na_sum 7\na_count 3\n", Some(MetricKind::Summary)),
            ("a", "b 3\n", None),
            ("a", "# TYPE a gauge\na NaN\n", None),
            ("a", "# TYPE a gauge\na 1\na{b=\"c\"} +Inf\n", None),
        ] {
            let found = take(series("a", metric), text);
            assert_eq!(found.first().map(|(_, value)| value.kind), kind, "{text}");
            assert!(found.iter().all(|(_, value)| value.value == 3.0), "{text}");
        }
        let summary = take(series("a", "a"), "# TYPE a summary\na_sum 7\na_count 3\n");
        assert_eq!(summary[0].1.sum, Some(7.0));
    }

    /// Rust's own client of OpenMetrics, with what a service would have.
    #[test]
    fn the_output_of_rusts_client_is_taken() {
        use prometheus_client::encoding::text::encode;
        use prometheus_client::metrics::counter::Counter;
        use prometheus_client::metrics::family::Family;
        use prometheus_client::metrics::gauge::Gauge;
        use prometheus_client::metrics::histogram::Histogram;
        use prometheus_client::registry::{Registry, Unit};

        type Labels = Vec<(String, String)>;
        let labels = |path: &str| vec![("path".to_owned(), path.to_owned())];
        let mut registry = Registry::default();
        let (requests, queue): (Family<Labels, Counter>, Gauge) = (Family::default(), Gauge::default());
        let api: Family<Labels, Histogram> = Family::new_with_constructor(|| Histogram::new([0.1, 0.5]));
        registry.register("requests", "Requests of \"all\" kinds", requests.clone());
        registry.register("queue", "Jobs", queue.clone());
        registry.register_with_unit("api", "Time", Unit::Seconds, api.clone());
        requests.get_or_create(&labels("/a, {b} c")).inc_by(3);
        requests.get_or_create(&labels("/")).inc();
        queue.set(-7);
        api.get_or_create(&labels("/")).observe(0.25);
        let mut text = String::new();
        encode(&mut text, &registry).expect("a text");

        assert_eq!(take(series("a", "requests_total"), &text), [(String::new(), plain(MetricKind::Counter, 4.0))]);
        let by_path = ExposedSeries { by: Some("path".to_owned()), ..series("a", "requests") };
        let expected = [("/", 1.0), ("/a, {b} c", 3.0)];
        let expected = expected.map(|(path, count)| (path.to_owned(), plain(MetricKind::Counter, count)));
        assert_eq!(take(by_path, &text), expected);
        assert_eq!(take(series("a", "queue"), &text), [(String::new(), plain(MetricKind::Gauge, -7.0))]);
        let api = take(series("a", "api_seconds"), &text);
        assert_eq!(api[0].1.buckets, BucketCounts(vec![(0.1, 0.0), (0.5, 1.0), (f64::INFINITY, 1.0)]), "{text}");
    }

    /// What Java's own client (io.prometheus, 1.5.0) wrote of such a service, and of its virtual machine.
    #[test]
    fn the_output_of_javas_client_is_taken() {
        let text = include_str!("../tests/it/java_client.txt");
        let by_path = ExposedSeries { by: Some("path".to_owned()), ..series("requests", "requests_total") };
        let expected = [("/", 1.0), ("/a \"b\" \\ {c}\nd", 3.0)];
        let expected = expected.map(|(path, count)| (path.to_owned(), plain(MetricKind::Counter, count)));
        assert_eq!(take(by_path, text), expected);
        for (metric, kind) in [
            ("api_seconds", MetricKind::Histogram),
            ("store_seconds", MetricKind::Summary),
            ("jvm_threads_current", MetricKind::Gauge),
            ("jvm_gc_collection_seconds", MetricKind::Summary),
        ] {
            assert_eq!(take(series("a", metric), text).first().map(|(_, value)| value.kind), Some(kind), "{metric}");
        }
        assert_eq!(take(series("a", "queue"), text), [], "it is no number there");
    }

    #[test]
    fn a_label_with_a_value_for_each_user_has_a_bound() {
        let text: String = (0..MOST_SERIES + 10).map(|user| format!("a_total{{user=\"{user}\"}} 1\n")).collect();
        let split = ExposedSeries { by: Some("user".to_owned()), ..series("a", "a_total") };
        let mut selection = Selection::new(&[split]);
        let taken = selection.take(&text).expect("a text");
        assert_eq!((taken.values.len(), taken.left_out.len()), (MOST_SERIES, 10));
        let others = selection.take("a_total{user=\"one more\"} 1\na_total{user=\"7\"} 2\n").expect("a text");
        assert_eq!((others.values.len(), others.left_out.len()), (1, 1), "the bound is that of the run");
        let histogram = ExposedSeries { by: Some("user".to_owned()), ..series("b", "b") };
        let of_user =
            |user: usize| format!("b_bucket{{user=\"{user}\",le=\"+Inf\"}} 1\nb_count{{user=\"{user}\"}} 1\n");
        let text = (0..MOST_SERIES + 10).map(of_user).collect::<String>();
        let taken = Selection::new(&[histogram]).take(&format!("# TYPE b histogram\n{text}")).expect("a text");
        assert_eq!(taken.left_out.len(), 10, "each counts once, whatever it consists of");
    }

    #[test]
    fn histograms_with_other_bounds_have_those_in_common() {
        let text = "# TYPE a histogram\na_bucket{r=\"a\",le=\"0.1\"} 5\na_bucket{r=\"a\",le=\"1\"} 9\n\
            a_bucket{r=\"a\",le=\"+Inf\"} 10\na_count{r=\"a\"} 10\n\
            a_bucket{r=\"b\",le=\"1\"} 8\na_bucket{r=\"b\",le=\"+Inf\"} 10\na_count{r=\"b\"} 10\n";
        assert_eq!(take(series("a", "a"), text)[0].1.buckets, BucketCounts(vec![(1.0, 17.0), (f64::INFINITY, 20.0)]));
    }

    /// The values of a series in these answers, one after the other, each with whether a count went back.
    fn in_turn(series: ExposedSeries, answers: &[&str]) -> Vec<(Value, bool)> {
        let mut selection = Selection::new(&[series]);
        let mut values = Vec::new();
        for answer in answers {
            let taken = selection.take(answer).expect("a text");
            values.push((taken.values[&(0, String::new())].clone(), taken.went_back.contains(&0)));
        }
        values
    }

    #[test]
    fn a_count_does_not_fall_where_a_label_set_goes_away_or_begins_anew() {
        let answers = [
            "a_total{m=\"get\",c=\"1\"} 100\na_total{m=\"post\",c=\"2\"} 50\n",
            // One is gone, and there is a new one.
            "a_total{m=\"get\",c=\"1\"} 103\na_total{m=\"put\"} 2\n",
            // It is there again, with its labels in another order.
            "a_total{m=\"get\",c=\"1\"} 104\na_total{c=\"2\",m=\"post\"} 55\na_total{m=\"put\"} 2\n",
            // The process began anew, and not all label sets are there yet.
            "a_total{m=\"get\",c=\"1\"} 3\n",
            "a_total{m=\"get\",c=\"1\"} 4\na_total{m=\"post\",c=\"2\"} 1\n",
        ];
        let found = in_turn(series("a", "a_total"), &answers);
        let found: Vec<(f64, bool)> = found.into_iter().map(|(value, went_back)| (value.value, went_back)).collect();
        assert_eq!(found, [(150.0, false), (155.0, false), (161.0, false), (164.0, true), (166.0, true)]);
        let levels = in_turn(series("a", "a"), &["# TYPE a gauge\na{b=\"c\"} 7\na 2\n", "# TYPE a gauge\na 1\n"]);
        assert_eq!(levels, [9.0, 1.0].map(|level| (plain(MetricKind::Gauge, level), false)), "what is gone has none");
    }

    #[test]
    fn buckets_do_not_fall_where_a_label_set_goes_away_or_begins_anew() {
        let set = |name: &str, fast: u32, all: u32, sum: f64| {
            format!(
                "a_bucket{{r=\"{name}\",le=\"1\"}} {fast}\na_bucket{{r=\"{name}\",le=\"+Inf\"}} {all}\n\
                 a_sum{{r=\"{name}\"}} {sum}\na_count{{r=\"{name}\"}} {all}\n"
            )
        };
        let text = |sets: &[String]| format!("# TYPE a histogram\n{}", sets.concat());
        let answers = [
            text(&[set("a", 5, 9, 20.0), set("b", 10, 30, 80.0)]),
            text(&[set("a", 6, 11, 25.0)]),
            text(&[set("a", 1, 2, 4.0)]),
        ];
        let histogram = |fast, value, sum| Value {
            kind: MetricKind::Histogram,
            value,
            sum: Some(sum),
            buckets: BucketCounts(vec![(1.0, fast), (f64::INFINITY, value)]),
        };
        let expected = [
            (histogram(15.0, 39.0, 100.0), false),
            (histogram(16.0, 41.0, 105.0), false),
            (histogram(17.0, 43.0, 109.0), true),
        ];
        assert_eq!(in_turn(series("a", "a"), &answers.each_ref().map(String::as_str)), expected);
    }

    #[test]
    fn label_sets_beyond_the_bound_count_as_one() {
        let text = |users: std::ops::Range<usize>| -> String {
            users.map(|user| format!("a_total{{user=\"{user}\"}} 1\n")).collect()
        };
        let answers = [text(0..MOST_SERIES + 3), text(1..MOST_SERIES + 2), text(0..1)];
        let found = in_turn(series("a", "a_total"), &answers.each_ref().map(String::as_str));
        let values: Vec<(f64, bool)> = found.into_iter().map(|(value, went_back)| (value.value, went_back)).collect();
        let most = MOST_SERIES as f64;
        // The last three count 3 together, then 2, and are gone in the end.
        assert_eq!(values, [(most + 3.0, false), (most + 5.0, true), (most + 5.0, false)]);
    }

    #[test]
    fn samples_without_the_label_of_a_split_series_are_not_named_like_the_whole() {
        let split = ExposedSeries { by: Some("handler".to_owned()), ..series("a", "a_total") };
        let text = "a_total{handler=\"get\"} 1\na_total{handler=\"\",b=\"c\"} 2\na_total 3\n";
        let found = take(split.clone(), text);
        let expected = [("get", 1.0), ("no handler", 5.0)];
        assert_eq!(found, expected.map(|(label, count)| (label.to_owned(), plain(MetricKind::Counter, count))));
        let has_unit = |(label, _): &(String, Value)| split.is_named(&full_name("a", label));
        assert!(found.iter().all(has_unit), "they have that of the series");
    }

    #[test]
    fn a_histogram_without_its_number_has_that_of_its_last_bucket() {
        let text = "# TYPE a histogram\na_bucket{le=\"1\"} 3\na_bucket{le=\"+Inf\"} 5\n";
        assert_eq!(take(series("a", "a"), text)[0].1.value, 5.0);
    }

    #[test]
    fn the_last_bucket_holds_all_values_also_where_it_is_left_out() {
        let text = "# TYPE a histogram\na_bucket{le=\"1\"} 3\na_sum 9\na_count 5\n";
        assert_eq!(take(series("a", "a"), text)[0].1.buckets, BucketCounts(vec![(1.0, 3.0), (f64::INFINITY, 5.0)]));
    }

    #[test]
    fn names_alike_share_a_word() {
        let text = "# TYPE http_requests_total counter\n# TYPE api_seconds histogram\n# TYPE go_gc_total counter\n";
        assert_eq!(Selection::alike("requests_count", text), ["http_requests_total"]);
        assert!(Selection::alike("store_total", text).is_empty());
    }
}
