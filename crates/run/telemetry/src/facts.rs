//! Facts about the machine.

use crate::cgroup::own_limits;
use plimsoll_model::host::Host;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs;
use std::path::Path;

/// Describes this machine, whose name in the run is `machine`, and the limits under which this process runs on it.
/// What cannot be read is `None`.
#[must_use]
pub fn host_facts(machine: &str) -> Host {
    let limits = own_limits();
    let cpu_facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Host {
        machine: machine.to_owned(),
        cpu_model: cpu_model(&cpu_facts),
        processors: allowed_processors().len(),
        memory: memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        kernel: kernel(),
        distribution: distribution(&fs::read_to_string("/etc/os-release").unwrap_or_default()),
        governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        cpu_limit: limits.cpu,
        memory_limit: limits.memory,
        virtualization: virtualization(&cpu_facts),
        load_before: load_averages(&fs::read_to_string("/proc/loadavg").unwrap_or_default()),
    }
}

/// The name of this machine in its network.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A text that is the same for all processes whose loopback is the same: the kernel's boot and the network namespace. None if
/// the kernel does not say.
#[must_use]
pub fn network() -> Option<String> {
    let boot = line_of("/proc/sys/kernel/random/boot_id")?;
    let namespace = fs::read_link("/proc/self/ns/net").ok()?;
    Some(format!("{boot} {}", namespace.display()))
}

/// The processors that this thread may use, in ascending order; empty if the kernel does not say.
#[must_use]
pub fn allowed_processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None);
    allowed.map_or_else(|_| Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// x86 says `model name`; other architectures say `Model`, `cpu model`, `cpu` or `Processor`.
fn cpu_model(facts: &str) -> Option<String> {
    let names = ["model name", "cpu model", "Model", "cpu", "Processor"];
    names.iter().find_map(|name| field(facts, name)).map(str::to_owned)
}

/// In bytes, from `MemTotal:  8123456 kB`.
fn memory(facts: &str) -> Option<u64> {
    let kilobytes: u64 = field(facts, "MemTotal")?.strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn kernel() -> Option<String> {
    let uname = rustix::system::uname();
    let parts = [uname.sysname(), uname.release(), uname.machine()];
    Some(parts.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" "))
}

/// `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"`.
fn distribution(facts: &str) -> Option<String> {
    let name = facts.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches(['"', '\'']).to_owned())
}

/// Hypervisor, then container; each only if something shows it.
fn virtualization(cpu_facts: &str) -> Option<String> {
    let found: Vec<String> = hypervisor(cpu_facts).into_iter().chain(container()).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

fn hypervisor(cpu_facts: &str) -> Option<String> {
    let is_guest = field(cpu_facts, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let product = [line_of("/sys/class/dmi/id/sys_vendor"), line_of("/sys/class/dmi/id/product_name")];
    let product = product.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let kind = line_of("/sys/hypervisor/type");
    match (is_guest || kind.is_some(), kind, product.is_empty()) {
        (false, ..) => None,
        (true, Some(kind), _) => Some(kind),
        (true, None, false) => Some(format!("virtual machine ({product})")),
        (true, None, true) => Some("virtual machine".to_owned()),
    }
}

fn container() -> Option<String> {
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let marked = marks.iter().find(|(file, _)| Path::new(file).exists()).map(|(_, name)| (*name).to_owned());
    let name = marked.or_else(|| line_of("/run/systemd/container"))?;
    Some(format!("container ({name})"))
}

/// `0.31 0.28 0.20 2/345 6789`.
fn load_averages(facts: &str) -> Option<[f64; 3]> {
    let mut averages = facts.split(' ').map_while(|average| average.parse().ok());
    Some([averages.next()?, averages.next()?, averages.next()?])
}

/// The first value of `name`, in a file of lines `name : value`.
fn field<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    let mut values = facts.lines().filter_map(|line| line.split_once(':'));
    values.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// The one line of a file; none where it is empty or not there.
pub(crate) fn line_of(file: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_in_the_kernels_own_words() {
        let x86 = "processor\t: 0\nmodel name\t: Fast(R) CPU @ 3.00GHz\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Fast(R) CPU @ 3.00GHz"));
        assert!(hypervisor(x86).is_some());
        assert_eq!(cpu_model("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
        assert_eq!(memory("MemTotal:        2048 kB\nMemFree: 1 kB\n"), Some(2_097_152));
        assert_eq!(distribution("ID=x\nPRETTY_NAME=\"Some Linux 12\"\n").as_deref(), Some("Some Linux 12"));
        assert_eq!(load_averages("0.31 0.28 0.20 2/345 6789\n"), Some([0.31, 0.28, 0.2]));
        assert_eq!(load_averages(""), None);
    }

    #[test]
    fn this_machine_has_the_facts_that_every_linux_has() {
        let host = host_facts("here");
        assert!(host.processors >= 1);
        assert_eq!(host.processors, allowed_processors().len());
        assert!(host.memory.unwrap() > 1 << 20);
        assert!(host.kernel.unwrap().starts_with("Linux "));
        assert!(host.load_before.is_some());
    }
}
