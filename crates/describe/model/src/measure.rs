//! Measures: the one number that a trial gives for a question, such as `iteration_duration.p95`.

use crate::record::{Metric, Part, Subject};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// One number per trial: a statistic of a series.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Measure {
    /// The series that it summarises.
    pub series: Series,
    /// Which statistic of the series.
    pub statistic: Statistic,
    /// Unit and direction of a script's own metric, or of one that a system exposes. The measure's name does not tell them, so the
    /// comparison of two measures ignores them.
    pub noted: Option<Noted>,
}

impl PartialEq for Measure {
    fn eq(&self, other: &Measure) -> bool {
        (&self.series, self.statistic) == (&other.series, other.statistic)
    }
}

/// Unit and better direction of a series that Plimsoll does not make itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The unit of the values, seconds or bytes; none where nobody says.
    pub unit: Option<Unit>,
    /// True if they are counts that grow by such units.
    pub is_total: bool,
    /// The better direction; none where nobody says.
    pub better: Option<Direction>,
}

impl Noted {
    /// Values that are times.
    pub const TIMES: Noted = Noted { unit: Some(Unit::Seconds), is_total: false, better: None };
}

/// The series of values that a measure summarises. Without a name it covers all requests (or systems) together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Series {
    /// Whole iterations, without think time.
    IterationDuration,
    /// Service time: from the send to the end of the response.
    RequestDuration(Option<String>),
    /// Response time: from the scheduled instant, in open load only.
    ResponseTime(Option<String>),
    /// From the send to the first byte of the response.
    FirstByte(Option<String>),
    /// A part of a request that is timed separately.
    PartDuration(Part, Option<String>),
    /// Making a connection.
    ConnectDuration,
    /// Iterations.
    Iterations,
    /// Exchanges.
    Requests,
    /// Requests of which exchanges consist, every attempt counting.
    Subrequests,
    /// Deliveries to the sockets of users who listen, one for each user.
    Deliveries,
    /// Deliveries that did not come, or came too late.
    LostDeliveries,
    /// Bytes read by the generator.
    DataReceived,
    /// Bytes written by the generator.
    DataSent,
    /// The largest load that meets the study's objective: users, or arrivals per second.
    Capacity,
    /// The time until all iterations were done, where a number of them ends a trial.
    ElapsedTime,
    /// TPC-C's new orders that were committed; its rate is per minute, and known as NOTPM.
    NewOrders,
    /// Exchanges that failed.
    Errors,
    /// Iterations that failed, whether or not one of their exchanges failed.
    FailedIterations,
    /// Checks of a script that passed.
    Checks(Option<String>),
    /// A metric of a script's own.
    Custom(Metric, String),
    /// A metric that systems expose, by the name that the study gives it.
    Exposed(String),
    /// CPU of the system, in cores.
    Cpu(Option<String>),
    /// Resident memory of the system, in bytes.
    Memory(Option<String>),
}

/// Which number of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Arithmetic mean.
    Avg,
    /// Smallest.
    Min,
    /// Median.
    Med,
    /// Largest.
    Max,
    /// A percentile, from 1 to 99.99.
    Percentile(f64),
    /// How many, or how much in all.
    Count,
    /// Per second of the measure phase.
    Rate,
    /// Share of all, 0 to 1.
    Ratio,
    /// All of it.
    Total,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// How two values of a measure are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// By their ratio; the margin is a share.
    Ratio,
    /// By their difference, because zero is a common value; the margin is in the measure's unit.
    Difference,
}

/// What a measure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A number of things.
    Count,
    /// A number, not necessarily whole, of whatever a script measures.
    Number,
    /// Things per second.
    PerSecond,
    /// Things per minute.
    PerMinute,
    /// Processor cores.
    Cores,
    /// A share, 0 to 1.
    Share,
}

/// The word before the name of a metric that systems expose.
const EXPOSED: &str = "metric";

type OfName = fn(Option<String>) -> Series;

/// The series of durations, with k6's names for the same series.
const DURATIONS: [(&str, OfName); 13] = [
    ("iteration_duration", |_| Series::IterationDuration),
    ("request_duration", Series::RequestDuration),
    ("grpc_req_duration", Series::RequestDuration),
    ("http_req_duration", Series::RequestDuration),
    ("response_time", Series::ResponseTime),
    ("time_to_first_byte", Series::FirstByte),
    ("connect_duration", |_| Series::ConnectDuration),
    ("open_duration", |name| Series::PartDuration(Part::Open, name)),
    ("data_duration", |name| Series::PartDuration(Part::Data, name)),
    ("sync_duration", |name| Series::PartDuration(Part::Sync, name)),
    ("close_duration", |name| Series::PartDuration(Part::Close, name)),
    ("subrequest_duration", |name| Series::PartDuration(Part::Subrequest, name)),
    ("delivery_duration", |name| Series::PartDuration(Part::Delivery, name)),
];

/// The series of counts.
const COUNTS: [(&str, Series); 8] = [
    ("iterations", Series::Iterations),
    ("requests", Series::Requests),
    ("subrequests", Series::Subrequests),
    ("deliveries", Series::Deliveries),
    ("new_orders", Series::NewOrders),
    ("data_received", Series::DataReceived),
    ("data_sent", Series::DataSent),
    ("capacity", Series::Capacity),
];

/// The percentiles that a study can ask for. Beyond them hardly any trial has enough requests.
pub const PERCENTILES: RangeInclusive<f64> = 1.0..=99.99;

/// Every form that a measure can be written in, for messages and the schema.
pub const FORMS: &str = "<duration>.<avg|min|med|max|p1 to p99.99>, where <duration> is iteration_duration, \
request_duration, response_time, time_to_first_byte, connect_duration, or of storage open_duration, data_duration, \
sync_duration, close_duration or subrequest_duration, of sockets delivery_duration (`request_duration:NAME` for one \
request); <iterations|requests|subrequests|deliveries|new_orders|data_received|data_sent|capacity>.<rate|count>; \
elapsed_time.total; <errors|failed_iterations|lost_deliveries>.<ratio|count>; <cpu|memory>.<avg|max>; of scripts checks.ratio \
(`checks:NAME.ratio` for one), counter:NAME.<count|rate>, rate:NAME.ratio, <gauge|trend>:NAME.<avg|min|med|max|p1 to p99.99>; \
of metrics that systems expose metric:NAME.<avg|min|med|max|p1 to p99.99|count|rate>";

impl Measure {
    /// A measure from its parts.
    #[must_use]
    pub fn new(series: Series, statistic: Statistic) -> Measure {
        Measure { series, statistic, noted: None }
    }

    /// True if the values are times.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.unit() == Unit::Seconds
    }

    /// Which way is better.
    #[must_use]
    pub fn direction(&self) -> Direction {
        if let Some(better) = self.noted.and_then(|noted| noted.better) {
            return better;
        }
        match self.series {
            Series::Iterations
            | Series::Requests
            | Series::Deliveries
            | Series::NewOrders
            | Series::DataReceived
            | Series::DataSent
            | Series::Capacity
            | Series::Checks(_)
            // Only those who make a metric know what it means. A counter or rate is taken for work that was done, anything
            // else for time that was spent.
            | Series::Custom(Metric::Counter | Metric::Rate, _) => Direction::Higher,
            Series::Exposed(_) if matches!(self.statistic, Statistic::Count | Statistic::Rate) => Direction::Higher,
            _ => Direction::Lower,
        }
    }

    /// How two values of it are compared.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self.series {
            Series::Errors
            | Series::FailedIterations
            | Series::LostDeliveries
            | Series::Checks(_)
            | Series::Custom(Metric::Rate, _) => Effect::Difference,
            _ => Effect::Ratio,
        }
    }

    /// What the number is counted in.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match (&self.series, self.statistic) {
            (_, Statistic::Ratio) => Unit::Share,
            (Series::Exposed(_), statistic) => self.unit_of_exposed(statistic),
            (Series::Cpu(_), _) => Unit::Cores,
            (Series::Memory(_), _) => Unit::Bytes,
            (Series::DataReceived | Series::DataSent, Statistic::Rate) => Unit::BytesPerSecond,
            (Series::DataReceived | Series::DataSent, _) => Unit::Bytes,
            (Series::NewOrders, Statistic::Rate) => Unit::PerMinute,
            (
                Series::Iterations
                | Series::Requests
                | Series::Subrequests
                | Series::Deliveries
                | Series::Capacity
                | Series::Custom(Metric::Counter, _),
                Statistic::Rate,
            ) => Unit::PerSecond,
            (
                Series::Iterations
                | Series::Requests
                | Series::Subrequests
                | Series::Deliveries
                | Series::LostDeliveries
                | Series::NewOrders
                | Series::Capacity
                | Series::Errors
                | Series::FailedIterations
                | Series::Checks(_),
                _,
            ) => Unit::Count,
            (Series::Custom(..), _) => self.noted.and_then(|noted| noted.unit).unwrap_or(Unit::Number),
            _ => Unit::Seconds,
        }
    }

    /// The unit of a metric that systems expose. A rate of seconds per second is a plain number.
    fn unit_of_exposed(&self, statistic: Statistic) -> Unit {
        let total = self.noted.filter(|noted| noted.is_total).and_then(|noted| noted.unit);
        match (statistic, total) {
            (Statistic::Rate, Some(Unit::Bytes)) => Unit::BytesPerSecond,
            (Statistic::Rate, Some(_)) => Unit::Number,
            (Statistic::Rate, None) => Unit::PerSecond,
            (Statistic::Count, total) => total.unwrap_or(Unit::Count),
            _ => self.noted.and_then(|noted| noted.unit).unwrap_or(Unit::Number),
        }
    }
}

impl Statistic {
    /// The statistic of durations in nanoseconds, in seconds; none without any.
    #[must_use]
    pub fn of(self, durations: &Histogram<u64>) -> Option<f64> {
        let nanoseconds = match self {
            _ if durations.is_empty() => return None,
            Statistic::Avg => durations.mean(),
            Statistic::Min => durations.min() as f64,
            Statistic::Max => durations.max() as f64,
            Statistic::Percentile(p) => durations.value_at_quantile(p / 100.0) as f64,
            _ => durations.value_at_quantile(0.5) as f64,
        };
        Some(nanoseconds / 1e9)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.series, self.statistic)
    }
}

impl Series {
    /// The subject under which the values of a named series are recorded.
    #[must_use]
    pub fn named_subject(&self) -> Option<Subject> {
        Some(match self {
            Series::RequestDuration(Some(name)) | Series::ResponseTime(Some(name)) | Series::FirstByte(Some(name)) => {
                Subject::Request(name.clone())
            }
            Series::PartDuration(part, Some(name)) => Subject::Part(*part, name.clone()),
            Series::Checks(Some(name)) => Subject::Check(name.clone()),
            Series::Custom(metric, name) => Subject::Custom(*metric, name.clone()),
            _ => return None,
        })
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part_word;
        let (word, name) = match self {
            Series::PartDuration(part, name) => {
                part_word = format!("{}_duration", part.name());
                (part_word.as_str(), name)
            }
            Series::IterationDuration => ("iteration_duration", &None),
            Series::RequestDuration(name) => ("request_duration", name),
            Series::ResponseTime(name) => ("response_time", name),
            Series::FirstByte(name) => ("time_to_first_byte", name),
            Series::ConnectDuration => ("connect_duration", &None),
            Series::Iterations => ("iterations", &None),
            Series::Requests => ("requests", &None),
            Series::Subrequests => ("subrequests", &None),
            Series::Deliveries => ("deliveries", &None),
            Series::LostDeliveries => ("lost_deliveries", &None),
            Series::NewOrders => ("new_orders", &None),
            Series::DataReceived => ("data_received", &None),
            Series::DataSent => ("data_sent", &None),
            Series::Capacity => ("capacity", &None),
            Series::ElapsedTime => ("elapsed_time", &None),
            Series::Errors => ("errors", &None),
            Series::FailedIterations => ("failed_iterations", &None),
            Series::Checks(name) => ("checks", name),
            Series::Custom(metric, name) => return write!(f, "{}:{name}", metric.name()),
            Series::Exposed(name) => return write!(f, "{EXPOSED}:{name}"),
            Series::Cpu(system) => ("cpu", system),
            Series::Memory(system) => ("memory", system),
        };
        match name {
            Some(name) => write!(f, "{word}:{name}"),
            None => f.write_str(word),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Avg => f.write_str("avg"),
            Statistic::Min => f.write_str("min"),
            Statistic::Med => f.write_str("med"),
            Statistic::Max => f.write_str("max"),
            Statistic::Percentile(p) => write!(f, "p{p}"),
            Statistic::Count => f.write_str("count"),
            Statistic::Rate => f.write_str("rate"),
            Statistic::Ratio => f.write_str("ratio"),
            Statistic::Total => f.write_str("total"),
        }
    }
}

/// A text that does not name a measure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a measure; expected {FORMS}")]
pub struct UnknownMeasure(pub String);

impl FromStr for Measure {
    type Err = UnknownMeasure;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| UnknownMeasure(text.to_owned()))
    }
}

impl TryFrom<String> for Measure {
    type Error = UnknownMeasure;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Measure> for String {
    fn from(measure: Measure) -> String {
        measure.to_string()
    }
}

fn parse(text: &str) -> Option<Measure> {
    // The first dot that is followed by a statistic: `p99.9` contains a dot itself.
    let (series, statistic) =
        text.match_indices('.').find_map(|(dot, _)| Some((&text[..dot], statistic(&text[dot + 1..])?)))?;
    let (word, name) = match series.split_once(':') {
        Some((word, name)) => (word, Some(name.to_owned())),
        None => (series, None),
    };
    Some(Measure::new(series_of(word, name, statistic)?, statistic))
}

fn series_of(word: &str, name: Option<String>, statistic: Statistic) -> Option<Series> {
    use Statistic::{Avg, Count, Max, Med, Min, Percentile, Rate, Ratio, Total};
    let named = name.is_some();
    let series = match statistic {
        Avg | Max if word == "cpu" => Series::Cpu(name),
        Avg | Max if word == "memory" => Series::Memory(name),
        Ratio | Count if word == "errors" => Series::Errors,
        Ratio | Count if word == "failed_iterations" => Series::FailedIterations,
        Ratio | Count if word == "lost_deliveries" => Series::LostDeliveries,
        Ratio if word == "checks" => Series::Checks(name),
        Ratio | Total if word == EXPOSED => return None,
        _ if word == EXPOSED => Series::Exposed(name?),
        _ if custom(word, statistic).is_some() => Series::Custom(custom(word, statistic)?, name?),
        Avg | Min | Med | Max | Percentile(_) => DURATIONS.iter().find(|(known, _)| *known == word)?.1(name),
        Count | Rate => COUNTS.iter().find(|(known, _)| *known == word)?.1.clone(),
        Total if word == "elapsed_time" => Series::ElapsedTime,
        Ratio | Total => return None,
    };
    let takes_name = matches!(
        series,
        Series::RequestDuration(_)
            | Series::ResponseTime(_)
            | Series::FirstByte(_)
            | Series::PartDuration(..)
            | Series::Checks(_)
            | Series::Custom(..)
            | Series::Exposed(_)
            | Series::Cpu(_)
            | Series::Memory(_)
    );
    (takes_name || !named).then_some(series)
}

/// The kind of script metric with this name, if it has the statistic.
fn custom(word: &str, statistic: Statistic) -> Option<Metric> {
    use Statistic::{Avg, Count, Max, Med, Min, Percentile, Rate, Ratio};
    let metric = Metric::ALL.into_iter().find(|metric| metric.name() == word)?;
    let has = match metric {
        Metric::Counter => matches!(statistic, Count | Rate),
        Metric::Rate => matches!(statistic, Ratio),
        Metric::Gauge | Metric::Trend => matches!(statistic, Avg | Min | Med | Max | Percentile(_)),
    };
    has.then_some(metric)
}

fn statistic(text: &str) -> Option<Statistic> {
    Some(match text {
        "avg" => Statistic::Avg,
        "min" => Statistic::Min,
        "med" => Statistic::Med,
        "max" => Statistic::Max,
        "count" => Statistic::Count,
        "rate" => Statistic::Rate,
        "ratio" => Statistic::Ratio,
        "total" => Statistic::Total,
        _ => {
            let percentile: f64 = text.strip_prefix('p')?.parse().ok()?;
            PERCENTILES.contains(&percentile).then_some(Statistic::Percentile(percentile))?
        }
    })
}

#[cfg(test)]
mod tests;
