//! What telemetry samples once a second: the system's processes, its waits and its metrics, the host, and the counters of
//! databases.

use crate::exposed::MetricSample;
use crate::host::local;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(1);

/// All processes of one system together, or of one of its services, over one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Seconds from the start of the measure phase, at the end of the sampled span; negative in
    /// warm-up.
    pub at: f64,
    /// The machine that they run on.
    #[serde(default = "local")]
    pub machine: String,
    /// Name of the system, or of one of its services ([`name_of_service`]).
    pub system: String,
    /// The variant that the system is of.
    #[serde(default)]
    pub variant: usize,
    /// Processes.
    pub processes: u64,
    /// CPU used over the span, in cores.
    pub cpu_cores: f64,
    /// CPU that the busiest of their threads used over the span, in cores; none where it is not known.
    #[serde(default)]
    pub busiest_thread: Option<f64>,
    /// Cores that a control group allows them together; none without a group of their own that limits CPU.
    #[serde(default)]
    pub cpu_quota: Option<f64>,
    /// The share of the group's scheduling periods in which it had used up its limit and had to wait (throttling); none
    /// without such a group, and where the group did nothing.
    #[serde(default)]
    pub throttled: Option<f64>,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Threads.
    pub threads: u64,
    /// Open file descriptors.
    pub open_files: u64,
    /// Read from storage over the span, in bytes.
    pub read_bytes: u64,
    /// Written to storage over the span, in bytes.
    pub written_bytes: u64,
    /// Voluntary and involuntary context switches over the span.
    pub context_switches: u64,
}

/// The whole machine, over one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Seconds from the start of the measure phase, at the end of the sampled span.
    pub at: f64,
    /// Which machine.
    #[serde(default = "local")]
    pub machine: String,
    /// CPU used by anything, in cores.
    pub cpu_cores: f64,
    /// CPU that the hypervisor took away, in cores.
    pub steal_cores: f64,
    /// Time waiting for storage, in cores.
    pub iowait_cores: f64,
    /// Memory that is free for use, in bytes.
    pub memory_available: u64,
    /// Runnable tasks.
    pub runnable: u64,
    /// Context switches over the span.
    pub context_switches: u64,
    /// Mean clock frequency of the processors at the end of the span, in megahertz; none where it
    /// cannot be read.
    #[serde(default)]
    pub frequency_mhz: Option<f64>,
    /// The share of the span in which the busiest disk had something to do; none where it is not known.
    #[serde(default)]
    pub disk_busy: Option<f64>,
    /// The share of the span in which some task waited for a processor (PSI); none where the kernel does not count it.
    #[serde(default)]
    pub cpu_pressure: Option<f64>,
    /// The same for storage.
    #[serde(default)]
    pub io_pressure: Option<f64>,
    /// The same for memory.
    #[serde(default)]
    pub memory_pressure: Option<f64>,
    /// TCP sockets in use at that instant, of the network that Plimsoll sees; none where the kernel does not say.
    #[serde(default)]
    pub tcp_sockets: Option<u64>,
    /// TCP connections that wait for late packets after their end (TIME_WAIT), at that instant.
    #[serde(default)]
    pub tcp_time_wait: Option<u64>,
    /// TCP segments that were sent again, per second of the span.
    #[serde(default)]
    pub tcp_retransmitted: Option<f64>,
    /// Packets of new connections that were dropped because the queue of a listening socket was full, per second of the span.
    #[serde(default)]
    pub listen_overflows: Option<f64>,
}

/// A counter of a database over one second, as the server reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseSample {
    /// Seconds from the start of the measure phase, at the end of the sampled span.
    pub at: f64,
    /// Name of the database.
    pub database: String,
    /// The variant that the database is of.
    #[serde(default)]
    pub variant: usize,
    /// What is counted: one of [`DATABASE_COUNTERS`], or the server's own name for it.
    pub counter: String,
    /// The counter's increase per second of the span; for a gauge, its level.
    pub value: f64,
}

/// Lines in the output of a system that say that something waited, over one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitSample {
    /// Seconds from the start of the measure phase, at the end of the sampled span.
    pub at: f64,
    /// Name of the system.
    pub system: String,
    /// The variant that the system is of.
    pub variant: usize,
    /// The name that the study gives to what is waited for.
    pub wait: String,
    /// The lines that were complete in the span.
    pub lines: u64,
}

/// What was sampled over some span, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// The processes of the systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessSample>,
    /// The machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostSample>,
    /// The counters of databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<DatabaseSample>,
    /// The waits that systems write of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitSample>,
    /// The metrics that systems expose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSample>,
}

impl Samples {
    /// Adds others behind these.
    pub fn extend(&mut self, others: Samples) {
        self.processes.extend(others.processes);
        self.host.extend(others.host);
        self.databases.extend(others.databases);
        self.waits.extend(others.waits);
        self.metrics.extend(others.metrics);
    }

    /// Lets all instants begin `seconds` earlier.
    pub fn shift(&mut self, seconds: f64) {
        let Samples { processes, host, databases, waits, metrics } = self;
        let instants = processes.iter_mut().map(|sample| &mut sample.at);
        let instants = instants.chain(host.iter_mut().map(|sample| &mut sample.at));
        let instants = instants.chain(databases.iter_mut().map(|sample| &mut sample.at));
        let instants = instants.chain(waits.iter_mut().map(|sample| &mut sample.at));
        let instants = instants.chain(metrics.iter_mut().map(|sample| &mut sample.at));
        instants.for_each(|at| *at -= seconds);
    }

    /// True if nothing was sampled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
            && self.host.is_empty()
            && self.databases.is_empty()
            && self.waits.is_empty()
            && self.metrics.is_empty()
    }
}

/// The names of the counters of a server's connections.
pub const CONNECTIONS: &str = "connections";
/// See [`CONNECTIONS`].
pub const BUSY_CONNECTIONS: &str = "busy_connections";

/// The counters that all servers have: name, unit for people, and meaning. `commits` and `rollbacks` of MariaDB and MySQL
/// are statements COMMIT and ROLLBACK; without any of the first, while rows are read or written, there are no `commits`.
pub const DATABASE_COUNTERS: [(&str, &str, &str); 13] = [
    ("commits", "/s", "transactions committed"),
    ("rollbacks", "/s", "transactions rolled back"),
    ("statements", "/s", "statements run, where the server counts them"),
    ("rows_read", "/s", "rows read"),
    ("rows_written", "/s", "rows inserted, updated or deleted"),
    ("page_hits", "/s", "pages found in the server's own cache"),
    ("page_reads", "/s", "pages asked of the operating system"),
    ("log_bytes", "B/s", "bytes written to the log (WAL, redo)"),
    ("log_syncs", "/s", "times that the log was synced"),
    ("lock_waits", "", "sessions waiting for a lock at that instant"),
    ("deadlocks", "/s", "deadlocks found"),
    (CONNECTIONS, "", "connections of clients at that instant"),
    (BUSY_CONNECTIONS, "", "of these, those with a statement or a transaction under way"),
];

/// The name of one service of a system that has several: `shop/db`.
#[must_use]
pub fn name_of_service(system: &str, service: &str) -> String {
    format!("{system}/{service}")
}

/// True if what is sampled as `part` belongs to `system`, and is not all of it: an instance (`shop-2`), a service
/// (`shop/db`), or a service of an instance (`shop-2/db`).
#[must_use]
pub fn is_part_of(part: &str, system: &str) -> bool {
    let Some(rest) = part.strip_prefix(system) else { return false };
    let (instance, service) =
        rest.split_once('/').map_or((rest, None), |(instance, service)| (instance, Some(service)));
    match instance.strip_prefix('-') {
        Some(number) => number.parse::<u32>().is_ok(),
        None => instance.is_empty() && service.is_some(),
    }
}

/// When the next sample is due, this long after the first. Seconds that were missed are skipped, so that samples do not
/// drift.
#[must_use]
pub fn next_whole_second(elapsed: Duration) -> Duration {
    EVERY * (u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX - 1) + 1)
}

/// Seconds from `from` to `to`, negative if `to` is the earlier one.
#[must_use]
pub fn signed_seconds(from: Instant, to: Instant) -> f64 {
    to.checked_duration_since(from).map_or_else(|| -from.duration_since(to).as_secs_f64(), |span| span.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_due_at_whole_seconds_whatever_the_delay() {
        for (elapsed, due) in [(0, 1), (999, 1), (1000, 2), (1040, 2), (4100, 5)] {
            assert_eq!(next_whole_second(Duration::from_millis(elapsed)), Duration::from_secs(due), "{elapsed} ms");
        }
    }

    #[test]
    fn parts_of_a_system_are_its_instances_and_services() {
        for part in ["shop-2", "shop/db", "shop-12/db", "shop/db-1"] {
            assert!(is_part_of(part, "shop"), "{part}");
        }
        assert!(is_part_of(&name_of_service("shop-2", "db"), "shop-2"));
        for other in ["shop", "shops", "shop-old", "shop-old/db", "shops/db", "web"] {
            assert!(!is_part_of(other, "shop"), "{other}");
        }
    }

    #[test]
    fn zero_may_lie_on_either_side() {
        let now = Instant::now();
        let later = now + Duration::from_millis(2500);
        assert_eq!(signed_seconds(now, later), 2.5);
        assert_eq!(signed_seconds(later, now), -2.5);
    }
}
