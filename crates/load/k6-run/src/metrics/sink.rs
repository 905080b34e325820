//! Aggregation of the samples of a metric.

use super::{Kind, Trend};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The aggregated samples of a metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Sink {
    /// Of a counter.
    Counter {
        /// The sum of all samples.
        sum: f64,
        /// The number of samples.
        samples: u64,
    },
    /// Of a gauge.
    Gauge {
        /// The latest one.
        last: f64,
        /// The instant of the latest one.
        at: Duration,
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
        /// The number of samples.
        samples: u64,
    },
    /// Of a rate.
    Rate {
        /// The samples that are not zero.
        trues: u64,
        /// All samples.
        total: u64,
    },
    /// Of a trend.
    Trend(Trend),
}

/// An aggregation of a sink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregation {
    /// The mean of a trend.
    Avg,
    /// The least sample of a trend or gauge.
    Min,
    /// The greatest sample of a trend or gauge.
    Max,
    /// The median of a trend.
    Med,
    /// A percentile of a trend.
    Percentile(f64),
    /// The sum of a counter, or the number of samples of a trend.
    Count,
    /// The sum of a counter per second, or the share of a rate.
    Rate,
    /// The latest sample of a gauge.
    Value,
}

impl Sink {
    /// A sink without a sample.
    #[must_use]
    pub fn new(kind: Kind) -> Sink {
        match kind {
            Kind::Counter => Sink::Counter { sum: 0.0, samples: 0 },
            Kind::Gauge => Sink::Gauge { last: 0.0, at: Duration::ZERO, min: 0.0, max: 0.0, samples: 0 },
            Kind::Rate => Sink::Rate { trues: 0, total: 0 },
            Kind::Trend => Sink::Trend(Trend::default()),
        }
    }

    /// Adds a sample that was taken at this instant of the run.
    #[inline]
    pub fn add(&mut self, value: f64, at: Duration) {
        match self {
            Sink::Counter { sum, samples } => (*sum, *samples) = (*sum + value, *samples + 1),
            Sink::Gauge { .. } => self.add_to_gauge(value, at),
            Sink::Rate { trues, total } => (*trues, *total) = (*trues + u64::from(value != 0.0), *total + 1),
            Sink::Trend(trend) => trend.add(value),
        }
    }

    /// Apart from the above, which is called a dozen times for each request, and never for a gauge.
    #[inline(never)]
    fn add_to_gauge(&mut self, value: f64, at: Duration) {
        self.merge(&Sink::Gauge { last: value, at, min: value, max: value, samples: 1 });
    }

    /// Adds what another sink of the same kind has, as that of another thread.
    ///
    /// # Panics
    ///
    /// If it is of another kind.
    pub fn merge(&mut self, other: &Sink) {
        match (self, other) {
            (_, Sink::Gauge { samples: 0, .. }) => {}
            (own @ Sink::Gauge { samples: 0, .. }, other @ Sink::Gauge { .. }) => own.clone_from(other),
            (
                Sink::Gauge { last, at, min, max, samples },
                Sink::Gauge { last: later, at: when, min: low, max: high, samples: more },
            ) => {
                if *when >= *at {
                    (*last, *at) = (*later, *when);
                }
                (*min, *max, *samples) = (min.min(*low), max.max(*high), *samples + more);
            }
            (Sink::Counter { sum, samples }, Sink::Counter { sum: more, samples: also }) => {
                (*sum, *samples) = (*sum + more, *samples + also);
            }
            (Sink::Rate { trues, total }, Sink::Rate { trues: more, total: also }) => {
                (*trues, *total) = (*trues + more, *total + also);
            }
            (Sink::Trend(own), Sink::Trend(other)) => own.merge(other),
            _ => panic!("sinks of one metric are of one kind"),
        }
    }

    /// The kind of the metric.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Sink::Counter { .. } => Kind::Counter,
            Sink::Gauge { .. } => Kind::Gauge,
            Sink::Rate { .. } => Kind::Rate,
            Sink::Trend(_) => Kind::Trend,
        }
    }

    /// How many samples it has.
    #[must_use]
    pub fn samples(&self) -> u64 {
        match self {
            Sink::Counter { samples, .. } | Sink::Gauge { samples, .. } => *samples,
            Sink::Rate { total, .. } => *total,
            Sink::Trend(trend) => trend.totals().count,
        }
    }

    /// The value of an aggregation, where `elapsed` is how long the run has taken; `None` where this kind of metric has
    /// no such thing. Without a sample it is 0.
    #[must_use]
    pub fn get(&self, what: Aggregation, elapsed: Duration) -> Option<f64> {
        Some(match (self, what) {
            (Sink::Counter { sum, .. }, Aggregation::Count) => *sum,
            (Sink::Counter { sum, .. }, Aggregation::Rate) => ratio(*sum, elapsed.as_secs_f64()),
            (Sink::Gauge { last, .. }, Aggregation::Value) => *last,
            (Sink::Gauge { min, .. }, Aggregation::Min) => *min,
            (Sink::Gauge { max, .. }, Aggregation::Max) => *max,
            (Sink::Rate { trues, total }, Aggregation::Rate) => ratio(*trues as f64, *total as f64),
            (Sink::Trend(trend), Aggregation::Avg) => trend.totals().avg(),
            (Sink::Trend(trend), Aggregation::Min) => trend.totals().min(),
            (Sink::Trend(trend), Aggregation::Max) => trend.totals().max(),
            (Sink::Trend(trend), Aggregation::Med) => trend.percentile(50.0),
            (Sink::Trend(trend), Aggregation::Percentile(percent)) => trend.percentile(percent),
            (Sink::Trend(trend), Aggregation::Count) => trend.totals().count as f64,
            _ => return None,
        })
    }
}

fn ratio(of: f64, to: f64) -> f64 {
    if to > 0.0 { of / to } else { 0.0 }
}

impl Aggregation {
    /// Reads a name as scripts write it: `avg`, `p(95)`; else why it is none.
    pub fn parse(text: &str) -> Result<Aggregation, String> {
        let named = ["avg", "min", "max", "med", "count", "rate", "value"].iter().position(|name| *name == text);
        let percentile = text.strip_prefix("p(").and_then(|text| text.strip_suffix(')'));
        match (named, percentile) {
            (Some(index), _) => Ok([
                Aggregation::Avg,
                Aggregation::Min,
                Aggregation::Max,
                Aggregation::Med,
                Aggregation::Count,
                Aggregation::Rate,
                Aggregation::Value,
            ][index]),
            (None, Some(percent)) => match percent.parse() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Aggregation::Percentile(percent)),
                _ => Err(format!("expected a number from 0 to 100 in `p(…)`, found `{percent}`")),
            },
            (None, None) => Err(format!(
                "expected one of `avg`, `min`, `max`, `med`, `p(N)`, `count`, `rate`, `value`, found `{text}`"
            )),
        }
    }
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aggregation::Avg => f.write_str("avg"),
            Aggregation::Min => f.write_str("min"),
            Aggregation::Max => f.write_str("max"),
            Aggregation::Med => f.write_str("med"),
            Aggregation::Percentile(percent) => write!(f, "p({percent})"),
            Aggregation::Count => f.write_str("count"),
            Aggregation::Rate => f.write_str("rate"),
            Aggregation::Value => f.write_str("value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sink(kind: Kind, values: &[f64]) -> Sink {
        let mut sink = Sink::new(kind);
        values.iter().zip(1..).for_each(|(value, second)| sink.add(*value, SECOND * second));
        sink
    }

    #[test]
    fn each_kind_makes_of_its_samples_what_it_is_for() {
        let values = [2.0, 0.0, 4.0];
        let get = |kind, what| sink(kind, &values).get(what, SECOND * 4);
        assert_eq!(
            [Aggregation::Count, Aggregation::Rate].map(|what| get(Kind::Counter, what)),
            [Some(6.0), Some(1.5)]
        );
        assert_eq!(get(Kind::Rate, Aggregation::Rate), Some(2.0 / 3.0));
        let of_gauge = [Aggregation::Value, Aggregation::Min, Aggregation::Max].map(|what| get(Kind::Gauge, what));
        assert_eq!(of_gauge, [Some(4.0), Some(0.0), Some(4.0)]);
        let of_trend = [Aggregation::Avg, Aggregation::Med, Aggregation::Percentile(75.0)];
        assert_eq!(of_trend.map(|what| get(Kind::Trend, what)), [Some(2.0), Some(2.0), Some(3.0)]);
        assert_eq!((get(Kind::Counter, Aggregation::Avg), get(Kind::Gauge, Aggregation::Count)), (None, None));
    }

    #[test]
    fn threads_are_merged() {
        for kind in [Kind::Counter, Kind::Gauge, Kind::Rate, Kind::Trend] {
            let mut merged = sink(kind, &[1.0, 5.0]);
            merged.merge(&sink(kind, &[3.0]));
            merged.merge(&Sink::new(kind));
            assert_eq!(merged.samples(), 3, "{kind}");
            let mut first = Sink::new(kind);
            first.merge(&sink(kind, &[-1.0]));
            assert_eq!(first.samples(), 1, "{kind}");
        }
        let mut gauge = sink(Kind::Gauge, &[1.0, 5.0]);
        gauge.merge(&sink(Kind::Gauge, &[9.0]));
        assert_eq!(gauge.get(Aggregation::Value, SECOND), Some(5.0), "the other thread's came earlier");
        assert_eq!(gauge.get(Aggregation::Max, SECOND), Some(9.0));
    }

    #[test]
    fn aggregations_are_read_as_they_are_written() {
        for text in ["avg", "min", "max", "med", "count", "rate", "value", "p(95)", "p(99.9)", "p(0)"] {
            assert_eq!(Aggregation::parse(text).map(|parsed| parsed.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "p95", "p( 95 )", "p(x)", "p(101)", "AVG", "p(95"] {
            assert!(Aggregation::parse(text).is_err(), "{text}");
        }
    }
}
