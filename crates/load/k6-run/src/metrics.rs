//! Metrics: their names and kinds, and the sinks that aggregate their samples.

pub mod builtin;
mod registry;
mod sink;
mod tags;
mod totals;
pub(crate) mod trend;

pub use registry::{Metric, MetricId, NameFault, Registry, Sinks, Submetric};
pub use sink::{Aggregation, Sink};
pub use tags::{Measured, TagSet};
pub use totals::Totals;
pub use trend::Trend;

use plimsoll_model::record;
use std::fmt;

/// How a metric aggregates its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Adds them up.
    Counter,
    /// Keeps the last one.
    Gauge,
    /// Counts those that are not zero.
    Rate,
    /// Keeps how they are distributed.
    Trend,
}

/// The unit of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contains {
    /// Just numbers.
    Default,
    /// Milliseconds.
    Time,
    /// Bytes.
    Data,
}

impl From<Kind> for record::Metric {
    fn from(kind: Kind) -> record::Metric {
        match kind {
            Kind::Counter => record::Metric::Counter,
            Kind::Gauge => record::Metric::Gauge,
            Kind::Rate => record::Metric::Rate,
            Kind::Trend => record::Metric::Trend,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Rate => "rate",
            Kind::Trend => "trend",
        })
    }
}

impl fmt::Display for Contains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contains::Default => "default",
            Contains::Time => "time",
            Contains::Data => "data",
        })
    }
}
