//! Counters of the whole machine.

use crate::sockets::SocketCounters;
use plimsoll_model::sample::HostSample;
use procfs::{CpuPressure, Current, CurrentSI, IoPressure, KernelStats, Meminfo, MemoryPressure, ProcResult};
use std::collections::BTreeMap;
use std::time::Duration;

/// Disks that are no devices: files, memory, and what is put together from devices that are counted themselves.
const NO_DEVICES: [&str; 5] = ["loop", "ram", "zram", "dm-", "md"];

/// Counters of the machine at one instant, CPU in ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounters {
    used: u64,
    steal: u64,
    iowait: u64,
    context_switches: u64,
    runnable: u64,
    memory_available: u64,
    /// The time in which each disk had something to do, in milliseconds, by name.
    disks: BTreeMap<String, u64>,
    waited: Waited,
    sockets: SocketCounters,
}

/// The time in which some task of the machine waited, in microseconds (pressure stall information); none where the kernel does not
/// count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waited {
    cpu: Option<u64>,
    io: Option<u64>,
    memory: Option<u64>,
}

impl Waited {
    fn read() -> Waited {
        Waited {
            cpu: CpuPressure::current().ok().map(|pressure| pressure.some.total),
            io: IoPressure::current().ok().map(|pressure| pressure.some.total),
            memory: MemoryPressure::current().ok().map(|pressure| pressure.some.total),
        }
    }
}

fn disks() -> BTreeMap<String, u64> {
    let all = procfs::diskstats().unwrap_or_default();
    let devices = all.into_iter().filter(|disk| !NO_DEVICES.iter().any(|kind| disk.name.starts_with(kind)));
    devices.map(|disk| (disk.name, disk.time_in_progress)).collect()
}

impl HostCounters {
    pub(crate) fn read() -> ProcResult<HostCounters> {
        let stats = KernelStats::current()?;
        let memory = Meminfo::current()?;
        let cpu = &stats.total;
        // Guests are part of `user` and `nice` already.
        let interrupts = cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0);
        Ok(HostCounters {
            used: cpu.user + cpu.nice + cpu.system + interrupts,
            steal: cpu.steal.unwrap_or(0),
            iowait: cpu.iowait.unwrap_or(0),
            context_switches: stats.ctxt,
            runnable: u64::from(stats.procs_running.unwrap_or(0)),
            memory_available: memory.mem_available.unwrap_or(memory.mem_free),
            disks: disks(),
            waited: Waited::read(),
            sockets: SocketCounters::read(),
        })
    }

    /// The usage since `before`, which was `span` ago. The caller sets instant, machine and clock frequency. The kernel
    /// may count IO wait backwards; that counts as zero.
    pub(crate) fn since(&self, before: &HostCounters, span: Duration, ticks_per_second: u64) -> HostSample {
        let cores =
            |now: u64, then: u64| now.saturating_sub(then) as f64 / ticks_per_second as f64 / span.as_secs_f64();
        // The kernel counts these in steps, which may lie a little outside of the span.
        let share = |now: u64, then: u64, per_second: f64| {
            (now.saturating_sub(then) as f64 / per_second / span.as_secs_f64()).min(1.0)
        };
        let busy = |(name, now): (&String, &u64)| Some(share(*now, *before.disks.get(name)?, 1e3));
        let pressure = |now: Option<u64>, then: Option<u64>| Some(share(now?, then?, 1e6));
        let (waited, had_waited) = (self.waited, before.waited);
        let mut sample = HostSample {
            at: 0.0,
            machine: String::new(),
            cpu_cores: cores(self.used, before.used),
            steal_cores: cores(self.steal, before.steal),
            iowait_cores: cores(self.iowait, before.iowait),
            memory_available: self.memory_available,
            runnable: self.runnable,
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            frequency_mhz: None,
            disk_busy: self.disks.iter().filter_map(busy).reduce(f64::max),
            cpu_pressure: pressure(waited.cpu, had_waited.cpu),
            io_pressure: pressure(waited.io, had_waited.io),
            memory_pressure: pressure(waited.memory, had_waited.memory),
            ..HostSample::default()
        };
        self.sockets.add_to(&mut sample, &before.sockets, span);
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_over_the_span_and_never_negative() {
        let disks = |sda, sdb| BTreeMap::from([("sda".to_owned(), sda), ("sdb".to_owned(), sdb)]);
        let before = HostCounters {
            used: 1000,
            steal: 10,
            iowait: 50,
            context_switches: 7,
            disks: disks(5000, 1000),
            waited: Waited { cpu: Some(1_000_000), io: Some(7), memory: None },
            ..HostCounters::default()
        };
        let after = HostCounters {
            used: 1300,
            steal: 30,
            iowait: 40,
            context_switches: 107,
            runnable: 3,
            memory_available: 99,
            disks: disks(5500, 2500),
            waited: Waited { cpu: Some(9_000_000), io: Some(500_007), memory: Some(1) },
            ..HostCounters::default()
        };
        let sample = after.since(&before, Duration::from_secs(2), 100);
        let expected = HostSample {
            at: 0.0,
            machine: String::new(),
            cpu_cores: 1.5,
            steal_cores: 0.1,
            iowait_cores: 0.0,
            memory_available: 99,
            runnable: 3,
            context_switches: 100,
            frequency_mhz: None,
            disk_busy: Some(0.75),
            cpu_pressure: Some(1.0),
            io_pressure: Some(0.25),
            memory_pressure: None,
            ..HostSample::default()
        };
        assert_eq!(sample, expected);
    }
}
