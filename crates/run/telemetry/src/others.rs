//! Who else uses the processors: everything but this program and the systems that it runs.

use crate::machine_state::processors;
use plimsoll_model::host::{BusyProcess, OtherProcesses};
use procfs::process::{Process, all_processes};
use procfs::{CurrentSI, KernelStats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// How many of the busiest processes are named.
const BUSIEST: usize = 3;

/// How often a look finds out whether it should end early.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Looks for `span` at who else uses the processors. None where that cannot be read, or where `stopped` becomes true
/// before the end.
#[must_use]
pub fn other_processes(span: Duration, stopped: &dyn Fn() -> bool) -> Option<OtherProcesses> {
    let before = UsageOfAll::read()?;
    while let Some(left) = span.checked_sub(before.at.elapsed()).filter(|left| !left.is_zero()) {
        if stopped() {
            return None;
        }
        thread::sleep(left.min(CHECK_EVERY));
    }
    before.others_since()
}

/// What others used while a start was under load, span by span: the machine's use less that of this process and of the
/// systems, and what the hypervisor took away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UseByOthers(Vec<SpanOfOthers>);

/// The use of one span. Seconds count from an instant that the owner of the span knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpanOfOthers {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) cores: f64,
}

impl UseByOthers {
    /// The same spans, with seconds that count from an instant that is later by `shift` seconds.
    pub(crate) fn new(spans: Vec<SpanOfOthers>, shift: f64) -> UseByOthers {
        let mut others = UseByOthers(spans);
        others.shift(-shift);
        others
    }

    /// Adds so many seconds to all instants.
    pub fn shift(&mut self, seconds: f64) {
        for span in &mut self.0 {
            span.from += seconds;
            span.to += seconds;
        }
    }

    /// The mean from one instant to another, in cores; none where nothing was sampled in between. The use within a span
    /// counts as even, so that of a load that is shorter than a second is that of its second.
    #[must_use]
    pub fn between(&self, from: f64, to: f64) -> Option<f64> {
        let shares = self.0.iter().map(|span| ((span.to.min(to) - span.from.max(from)).max(0.0), span.cores));
        let (seconds, used) = shares.fold((0.0, 0.0), |sum, (share, cores)| (sum.0 + share, sum.1 + share * cores));
        (seconds > 0.0).then(|| used / seconds)
    }
}

/// CPU in ticks since the start of the machine, read at one instant.
pub(crate) struct UsageOfAll {
    at: Instant,
    all: u64,
    steal: u64,
    /// Name and CPU of each process, by its id.
    processes: BTreeMap<i32, (String, u64)>,
}

impl UsageOfAll {
    pub(crate) fn read() -> Option<UsageOfAll> {
        let cpu = KernelStats::current().ok()?.total;
        let processes = all_processes().ok()?.filter_map(|process| {
            let stat = process.ok()?.stat().ok()?;
            Some((stat.pid, (stat.comm, stat.utime + stat.stime)))
        });
        Some(UsageOfAll {
            at: Instant::now(),
            all: cpu.user + cpu.nice + cpu.system + cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0),
            steal: cpu.steal.unwrap_or(0),
            processes: processes.collect(),
        })
    }

    /// What others used from this reading until now.
    pub(crate) fn others_since(&self) -> Option<OtherProcesses> {
        let now = UsageOfAll::read()?;
        Some(now.others(self, now.at.duration_since(self.at)))
    }

    /// What others used between a reading `span` before this one and this one. A process that began in between is among
    /// the busiest as well: a compiler starts many that end soon.
    fn others(&self, before: &UsageOfAll, span: Duration) -> OtherProcesses {
        let cores = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64 / span.as_secs_f64();
        let own = Process::myself().map_or(0, |process| process.pid);
        let used = |pid: &i32| {
            let now = self.processes.get(pid).map_or(0, |(_, ticks)| *ticks);
            now.saturating_sub(before.processes.get(pid).map_or(0, |(_, ticks)| *ticks))
        };
        let mut busiest: Vec<BusyProcess> = self
            .processes
            .iter()
            .filter(|(pid, _)| **pid != own)
            .map(|(pid, (name, _))| BusyProcess { pid: *pid, name: name.clone(), cores: cores(used(pid)) })
            .filter(|process| process.cores >= 0.01)
            .collect();
        busiest.sort_by(|one, other| other.cores.total_cmp(&one.cores));
        busiest.truncate(BUSIEST);
        OtherProcesses {
            cpu_cores: cores(self.all.saturating_sub(before.all).saturating_sub(used(&own))),
            steal_cores: cores(self.steal.saturating_sub(before.steal)),
            processors: processors(),
            busiest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_all_but_this_process() {
        let own = std::process::id() as i32;
        let usage = |all, steal, processes: &[(i32, &str, u64)]| UsageOfAll {
            at: Instant::now(),
            all,
            steal,
            processes: processes.iter().map(|(pid, name, ticks)| (*pid, ((*name).to_owned(), *ticks))).collect(),
        };
        let rate = procfs::ticks_per_second();
        let before = usage(0, 0, &[(own, "this", 0), (2, "busy", 0), (3, "idle", 0)]);
        let processes = [(own, "this", rate), (2, "busy", 2 * rate), (3, "idle", 0), (4, "new", rate)];
        let others = usage(5 * rate, rate, &processes).others(&before, Duration::from_secs(2));
        assert_eq!((others.cpu_cores, others.steal_cores), (2.0, 0.5));
        assert_eq!(others.share(), 2.5 / others.processors as f64);
        let busiest: Vec<(i32, &str, f64)> =
            others.busiest.iter().map(|process| (process.pid, process.name.as_str(), process.cores)).collect();
        assert_eq!(busiest, [(2, "busy", 1.0), (4, "new", 0.5)]);
    }

    #[test]
    fn the_use_of_a_load_is_that_of_the_spans_in_which_it_ran() {
        let span = |from: f64, cores: f64| SpanOfOthers { from, to: from + 1.0, cores };
        let others = UseByOthers::new(vec![span(0.0, 0.0), span(1.0, 2.0), span(2.0, 1.0)], 0.5);
        for (from, to, expected) in [
            (-0.5, 0.5, Some(0.0)),
            (0.0, 1.0, Some(1.0)),
            (0.6, 0.9, Some(2.0)),
            (1.5, 9.0, Some(1.0)),
            (2.5, 3.0, None),
        ] {
            assert_eq!(others.between(from, to), expected, "{from} to {to}");
        }
    }

    #[test]
    fn a_look_ends_early_where_it_is_told_to() {
        let began = Instant::now();
        assert_eq!(other_processes(Duration::from_secs(600), &|| true), None);
        assert!(began.elapsed() < Duration::from_secs(600));
        assert!(other_processes(Duration::from_millis(60), &|| false).is_some());
    }
}
