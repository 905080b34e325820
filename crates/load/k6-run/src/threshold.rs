//! Thresholds: conditions on metrics. If one does not hold, the run has failed.

use crate::metrics::{Aggregation, Kind, MetricId, NameFault, Registry, Sink, Sinks};
use std::fmt;
use std::time::Duration;

/// A condition on a metric, such as `p(95)<500`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The script's text.
    pub source: String,
    /// The aggregation that is compared.
    pub aggregation: Aggregation,
    /// The comparison.
    pub operator: Operator,
    /// The limit.
    pub limit: f64,
    /// True if the run ends at once when it does not hold.
    pub abort_on_fail: bool,
    /// The time before which it does not end the run.
    pub delay: Duration,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `==` or `===`
    Equal,
    /// `!=`
    Unequal,
}

/// Longer ones first: `<=` also begins with `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("===", Operator::Equal),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Below),
    (">", Operator::Above),
];

/// Why a threshold is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdFault {
    /// The text is no threshold.
    #[error("expected a threshold such as `p(95)<500`, found `{source_text}`: {why}")]
    Malformed {
        /// The text.
        source_text: String,
        /// The reason.
        why: String,
    },
    /// Its metric has no such aggregation.
    #[error("the metric `{metric}` is a {kind}: expected {expected} in its threshold, found `{source_text}`")]
    Unfit {
        /// The name of the metric.
        metric: String,
        /// Its kind.
        kind: Kind,
        /// The aggregations of that kind.
        expected: &'static str,
        /// The text.
        source_text: String,
    },
    /// Its metric is unknown.
    #[error(transparent)]
    Metric(#[from] NameFault),
}

/// The thresholds of one metric or submetric.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The metric.
    pub metric: MetricId,
    /// The index of the submetric, if it is one.
    pub submetric: Option<usize>,
    /// The selector in the script.
    pub name: String,
    /// The thresholds.
    pub thresholds: Vec<Threshold>,
}

/// The outcome of a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// True if it holds.
    pub holds: bool,
    /// The value that was compared.
    pub value: f64,
}

impl Threshold {
    /// Reads a threshold.
    pub fn parse(text: &str) -> Result<Threshold, ThresholdFault> {
        let malformed = |why: String| ThresholdFault::Malformed { source_text: text.to_owned(), why };
        let at = text.find(['<', '>', '=', '!']);
        let found =
            at.and_then(|at| OPERATORS.iter().find(|(sign, _)| text[at..].starts_with(sign)).map(|sign| (at, *sign)));
        let Some((at, (sign, operator))) = found else {
            return Err(malformed("it has none of the signs `<`, `<=`, `>`, `>=`, `==`, `===`, `!=`".to_owned()));
        };
        let aggregation = Aggregation::parse(text[..at].trim()).map_err(malformed)?;
        let limit = text[at + sign.len()..].trim();
        let limit =
            limit.parse().map_err(|_| malformed(format!("expected a number behind `{sign}`, found `{limit}`")))?;
        let source = text.to_owned();
        Ok(Threshold { source, aggregation, operator, limit, abort_on_fail: false, delay: Duration::ZERO })
    }

    fn check(&self, metric: &str, kind: Kind) -> Result<(), ThresholdFault> {
        let (fits, expected) = match kind {
            Kind::Counter => (matches!(self.aggregation, Aggregation::Count | Aggregation::Rate), "`count` or `rate`"),
            Kind::Gauge => (self.aggregation == Aggregation::Value, "`value`"),
            Kind::Rate => (self.aggregation == Aggregation::Rate, "`rate`"),
            Kind::Trend => {
                let others = [Aggregation::Count, Aggregation::Rate, Aggregation::Value];
                (!others.contains(&self.aggregation), "`avg`, `min`, `max`, `med` or `p(N)`")
            }
        };
        let unfit =
            || ThresholdFault::Unfit { metric: metric.to_owned(), kind, expected, source_text: self.source.clone() };
        fits.then_some(()).ok_or_else(unfit)
    }

    fn compare(&self, value: f64) -> bool {
        match self.operator {
            Operator::Below => value < self.limit,
            Operator::AtMost => value <= self.limit,
            Operator::Above => value > self.limit,
            Operator::AtLeast => value >= self.limit,
            Operator::Equal => value == self.limit,
            Operator::Unequal => value != self.limit,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl Limits {
    /// Finds the metric of these thresholds, and checks that it has their aggregations.
    pub fn new(registry: &mut Registry, name: &str, thresholds: Vec<Threshold>) -> Result<Limits, ThresholdFault> {
        let (metric, submetric) = registry.select(name)?;
        let kind = registry.metric(metric).kind;
        thresholds.iter().try_for_each(|threshold| threshold.check(name, kind))?;
        Ok(Limits { metric, submetric, name: name.to_owned(), thresholds })
    }

    /// The outcome of each threshold after this time. A metric without samples is 0; where a rate has none, all of its
    /// thresholds hold, as in k6.
    #[must_use]
    pub fn judge(&self, sinks: &Sinks, elapsed: Duration) -> Vec<Outcome> {
        let sink = sinks.get(self.metric, self.submetric);
        let judge = |threshold: &Threshold| {
            let value = sink.get(threshold.aggregation, elapsed).unwrap_or_default();
            let has_no_rate = matches!(sink, Sink::Rate { total: 0, .. });
            Outcome { holds: has_no_rate || threshold.compare(value), value }
        };
        self.thresholds.iter().map(judge).collect()
    }

    /// True if the run must end now. A metric without samples may get some yet.
    #[must_use]
    pub fn aborts(&self, sinks: &Sinks, elapsed: Duration) -> bool {
        if sinks.get(self.metric, self.submetric).samples() == 0 {
            return false;
        }
        let judged = self.judge(sinks, elapsed);
        let mut both = self.thresholds.iter().zip(judged);
        both.any(|(threshold, judged)| threshold.abort_on_fail && elapsed >= threshold.delay && !judged.holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::TagSet;

    #[test]
    fn thresholds_are_read_as_k6_reads_them() {
        let cases = [
            ("p(95)<500", Aggregation::Percentile(95.0), Operator::Below, 500.0),
            (" avg <= 1e3 ", Aggregation::Avg, Operator::AtMost, 1000.0),
            ("count>+5", Aggregation::Count, Operator::Above, 5.0),
            ("rate>=.5", Aggregation::Rate, Operator::AtLeast, 0.5),
            ("value==-3", Aggregation::Value, Operator::Equal, -3.0),
            ("med===1", Aggregation::Med, Operator::Equal, 1.0),
            ("max!=0", Aggregation::Max, Operator::Unequal, 0.0),
        ];
        for (text, aggregation, operator, limit) in cases {
            let found = Threshold::parse(text).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!((found.aggregation, found.operator, found.limit), (aggregation, operator, limit), "{text}");
            assert_eq!(found.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let cases = [
            ("p(95)", "none of the signs"),
            ("p(95)<", "expected a number behind `<`, found ``"),
            ("avg<1.5.2", "found `1.5.2`"),
            ("avg=<1", "none of the signs"),
            ("foo<1", "expected one of `avg`"),
            ("p( 95 )<2", "from 0 to 100 in `p(…)`, found ` 95 `"),
            ("p(101)<3", "found `101`"),
            ("AVG<5", "found `AVG`"),
        ];
        for (text, why) in cases {
            let fault = Threshold::parse(text).expect_err(text).to_string();
            assert!(fault.contains(why) && fault.contains(text), "{fault}");
        }
    }

    #[test]
    fn a_threshold_must_fit_the_kind_of_its_metric() {
        let refused = |name, text| {
            let threshold = Threshold::parse(text).expect(text);
            Limits::new(&mut Registry::default(), name, vec![threshold]).err().map(|fault| fault.to_string())
        };
        for (name, text) in [
            ("http_req_duration{name:login}", "p(99)<1"),
            ("http_reqs", "rate>1"),
            ("checks", "rate>0.9"),
            ("vus", "value<10"),
        ] {
            assert_eq!(refused(name, text), None, "{name}");
        }
        assert_eq!(
            refused("http_req_duration", "count<1").as_deref(),
            Some(
                "the metric `http_req_duration` is a trend: expected `avg`, `min`, `max`, `med` or `p(N)` in its \
                  threshold, found `count<1`"
            )
        );
        assert!(refused("checks", "count>1").is_some_and(|fault| fault.contains("is a rate: expected `rate`")));
        assert!(refused("nope", "count>1").is_some_and(|fault| fault.contains("found `nope`")));
    }

    #[test]
    fn a_rate_without_samples_breaks_no_threshold() {
        let mut registry = Registry::default();
        let threshold = Threshold::parse("rate>0.9").expect("a threshold");
        let limits = Limits::new(&mut registry, "checks", vec![threshold]).expect("a metric");
        let mut sinks = Sinks::new(&registry);
        let holds = |sinks: &Sinks| limits.judge(sinks, Duration::from_secs(1))[0].holds;
        assert!(holds(&sinks));
        sinks.add(&registry, &[(limits.metric, 0.0)], &TagSet::default(), Duration::from_secs(1));
        assert!(!holds(&sinks));
    }

    #[test]
    fn a_metric_that_has_no_samples_yet_ends_no_run() {
        let mut registry = Registry::default();
        let threshold = Threshold { abort_on_fail: true, ..Threshold::parse("count>0").expect("a threshold") };
        let limits = Limits::new(&mut registry, "http_reqs{scenario:late}", vec![threshold]).expect("a metric");
        let (sinks, second) = (Sinks::new(&registry), Duration::from_secs(1));
        assert!(!limits.aborts(&sinks, second));
        assert!(!limits.judge(&sinks, second)[0].holds, "at the end it counts as none");
    }

    #[test]
    fn thresholds_are_judged_by_samples() {
        let mut registry = Registry::default();
        let thresholds = ["p(95)<100", "max<90"].map(|text| Threshold::parse(text).expect(text)).to_vec();
        let mut limits = Limits::new(&mut registry, "http_req_duration", thresholds).expect("a metric");
        let mut sinks = Sinks::new(&registry);
        let second = Duration::from_secs(1);
        let empty = limits.judge(&sinks, second);
        assert_eq!(empty, [Outcome { holds: true, value: 0.0 }; 2]);
        sinks.add(&registry, &[(limits.metric, 95.0)], &TagSet::default(), second);
        let judged = limits.judge(&sinks, second);
        assert_eq!(judged, [Outcome { holds: true, value: 95.0 }, Outcome { holds: false, value: 95.0 }]);
        assert!(!limits.aborts(&sinks, second));
        limits.thresholds[1] = Threshold { abort_on_fail: true, delay: second * 5, ..limits.thresholds[1].clone() };
        assert_eq!((limits.aborts(&sinks, second * 4), limits.aborts(&sinks, second * 5)), (false, true));
    }
}
