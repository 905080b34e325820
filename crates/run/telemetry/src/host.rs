//! Counters of the whole machine.

use plimsoll_model::sample::HostSample;
use procfs::{Current, CurrentSI, KernelStats, Meminfo, ProcResult};
use std::time::Duration;

/// Counters of the machine at one instant, CPU in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounters {
    used: u64,
    steal: u64,
    iowait: u64,
    context_switches: u64,
    runnable: u64,
    memory_available: u64,
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
        })
    }

    /// The usage since `before`, which was `span` ago. The caller sets instant, machine and clock frequency. The kernel
    /// may count IO wait backwards; that counts as zero.
    pub(crate) fn since(&self, before: &HostCounters, span: Duration, ticks_per_second: u64) -> HostSample {
        let cores =
            |now: u64, then: u64| now.saturating_sub(then) as f64 / ticks_per_second as f64 / span.as_secs_f64();
        HostSample {
            at: 0.0,
            machine: String::new(),
            cpu_cores: cores(self.used, before.used),
            steal_cores: cores(self.steal, before.steal),
            iowait_cores: cores(self.iowait, before.iowait),
            memory_available: self.memory_available,
            runnable: self.runnable,
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            frequency_mhz: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_over_the_span_and_never_negative() {
        let before = HostCounters { used: 1000, steal: 10, iowait: 50, context_switches: 7, ..HostCounters::default() };
        let after = HostCounters {
            used: 1300,
            steal: 30,
            iowait: 40,
            context_switches: 107,
            runnable: 3,
            memory_available: 99,
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
        };
        assert_eq!(sample, expected);
    }
}
