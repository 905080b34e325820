//! A load second by second.

use crate::record::{Interval, Subject, Tally};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// What ended in one second for one subject, whatever phase scheduled it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSecond {
    /// The number of the load on its start.
    #[serde(default = "first_load")]
    pub load: u32,
    /// The second, from the start of the measure phase.
    pub second: i64,
    /// The subject: iterations, a request, or connections.
    pub subject: Subject,
    /// How many ended.
    pub count: u64,
    /// How many of them failed.
    pub failed: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Mean service time in nanoseconds.
    pub mean: f64,
    /// Median service time in nanoseconds.
    pub p50: u64,
    /// 95th percentile of the service time in nanoseconds.
    pub p95: u64,
    /// 99th percentile of the service time in nanoseconds.
    pub p99: u64,
    /// Longest service time in nanoseconds.
    pub max: u64,
    /// 95th percentile of the response time in nanoseconds; 0 in closed load.
    pub response_p95: u64,
}

/// The number of a start's only load: the default for rows that were written before a start could have several.
fn first_load() -> u32 {
    1
}

impl LoadSecond {
    /// A second of a start's first load in which nothing of this subject ended.
    #[must_use]
    pub fn empty(second: i64, subject: Subject) -> LoadSecond {
        LoadSecond {
            load: first_load(),
            second,
            subject,
            count: 0,
            failed: 0,
            bytes_out: 0,
            bytes_in: 0,
            mean: 0.0,
            p50: 0,
            p95: 0,
            p99: 0,
            max: 0,
            response_p95: 0,
        }
    }

    /// The row for what ended for `subject` in a second of the load with this number.
    #[must_use]
    pub fn of(load: u32, second: i64, subject: &Subject, tally: &Tally) -> LoadSecond {
        let at = |quantile| tally.service.value_at_quantile(quantile);
        LoadSecond {
            load,
            second,
            subject: subject.clone(),
            count: tally.count(),
            failed: tally.failed(),
            bytes_out: tally.bytes_out,
            bytes_in: tally.bytes_in,
            mean: tally.service.mean(),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: tally.service.max(),
            response_p95: tally.response.value_at_quantile(0.95),
        }
    }
}

/// How the generator did in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorRow {
    /// The number of the load on its start.
    #[serde(default = "first_load")]
    pub load: u32,
    /// The second, from the start of the measure phase.
    pub second: i64,
    /// CPU of all its threads, in cores.
    pub cpu_cores: f64,
    /// CPU of its busiest thread, in cores.
    pub cpu_busiest: f64,
    /// Users at work.
    pub users: u64,
    /// Exchanges under way.
    pub in_flight: u64,
    /// Arrivals due and not started.
    pub backlog: u64,
    /// Sockets that users hold open. Old bundles do not tell.
    #[serde(default)]
    pub sockets: u64,
    /// How late due work was started although a user was free: 99th percentile, in nanoseconds.
    pub lateness_p99: u64,
    /// The same, longest.
    pub lateness_max: u64,
    /// The longest time in which the event loop did not poll for new events, in nanoseconds.
    pub stall: u64,
}

impl GeneratorRow {
    /// The row for an interval of the load with this number.
    #[must_use]
    pub fn of(load: u32, interval: &Interval) -> GeneratorRow {
        let Interval { second, length, generator, .. } = interval;
        let cores = |cpu: Nanos| if length.0 == 0 { 0.0 } else { cpu.seconds() / length.seconds() };
        GeneratorRow {
            load,
            second: *second,
            cpu_cores: cores(generator.cpu),
            cpu_busiest: cores(generator.cpu_busiest),
            users: generator.users,
            in_flight: generator.in_flight,
            backlog: generator.backlog,
            sockets: generator.sockets,
            lateness_p99: generator.lateness.value_at_quantile(0.99),
            lateness_max: generator.lateness.max(),
            stall: generator.stall.0,
        }
    }
}
