//! What goes on on the machine at present, and how it is set up for load: what `plimsoll doctor`
//! looks at beside [`host_facts`](crate::host_facts).

use crate::cgroup::own_memory_left;
use crate::facts::{allowed_processors, line_of};
use crate::lateness::{UnknownLateness, WakeupLateness, lateness};
use crate::others::UsageOfAll;
use plimsoll_model::host::OtherProcesses;
use procfs::{Current, Meminfo};
use rustix::process::{Resource, getrlimit};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The machine at present. What cannot be read is `None`.
#[derive(Clone, Debug)]
pub struct MachineState {
    /// The usage of other processes during the observation.
    pub others: Option<OtherProcesses>,
    /// How late a waiting thread is woken.
    pub lateness: Result<WakeupLateness, UnknownLateness>,
    /// The frequency governors of all processors, each once.
    pub governors: BTreeSet<String>,
    /// Whether processors may run faster than their nominal frequency.
    pub turbo: Option<bool>,
    /// Of the processors that Plimsoll may use, those that share a core with one before them.
    pub siblings: Vec<[usize; 2]>,
    /// The processors that Plimsoll may use, in ascending order.
    pub allowed: Vec<usize>,
    /// How many processors there are, those that Plimsoll may not use included.
    pub online: usize,
    /// Memory that is free for use, in bytes.
    pub memory_available: Option<u64>,
    /// Swap in use, in bytes.
    pub swap_used: Option<u64>,
    /// The most files that a process may have open: the hard limit, to which Plimsoll raises its
    /// own. None where there is no limit.
    pub open_files: Option<u64>,
    /// First and last port of those that outgoing connections take.
    pub ports: Option<(u16, u16)>,
    /// Closed connections whose ports are still held.
    pub time_wait: Option<u64>,
    /// `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// The share of the last minute in which something waited, 0 to 1, by resource: `cpu`,
    /// `memory`, `io`. Empty where the kernel does not count it.
    pub pressure: BTreeMap<&'static str, f64>,
}

/// The hard limit of the files that a process may open, connections included; none where there is no limit.
#[must_use]
pub fn most_open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Memory in bytes that programs can still get on this machine, within the limits of the control groups of this process.
/// None where that cannot be read.
#[must_use]
pub fn memory_available() -> Option<u64> {
    let of_machine = Meminfo::current().ok().and_then(|memory| memory.mem_available);
    of_machine.into_iter().chain(own_memory_left()).min()
}

/// Looks at the machine for `span`, while doing next to nothing itself.
#[must_use]
pub fn machine_state(span: Duration) -> MachineState {
    let before = UsageOfAll::read();
    let lateness = lateness(span);
    let others = before.and_then(|before| before.others_since());
    let memory = Meminfo::current().ok();
    let allowed = allowed_processors();
    let folder = Path::new("/sys/devices/system/cpu");
    MachineState {
        others,
        lateness,
        governors: governors(folder),
        turbo: turbo(folder),
        siblings: siblings(folder, &allowed),
        online: processors(),
        allowed,
        memory_available: memory.as_ref().map(|memory| memory.mem_available.unwrap_or(memory.mem_free)),
        swap_used: memory.map(|memory| memory.swap_total.saturating_sub(memory.swap_free)),
        open_files: most_open_files(),
        ports: fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok().and_then(|text| port_range(&text)),
        time_wait: fs::read_to_string("/proc/net/sockstat").ok().and_then(|text| time_wait(&text)),
        huge_pages: line_of("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| chosen(&text)),
        pressure: pressure(Path::new("/proc/pressure")),
    }
}

fn governors(processors: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(processors).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter_map(|folder| line_of(folder.join("cpufreq/scaling_governor"))).collect()
}

/// Drivers report it in two files, one of them inverted.
fn turbo(processors: &Path) -> Option<bool> {
    let is_one = |file: &str| line_of(processors.join(file)).map(|line| line == "1");
    is_one("intel_pstate/no_turbo").map(|off| !off).or_else(|| is_one("cpufreq/boost"))
}

/// How many processors there are, those that Plimsoll may not use included.
#[must_use]
pub fn processors() -> usize {
    let list = line_of(Path::new("/sys/devices/system/cpu/online"));
    list.and_then(|list| numbers(&list)).map_or_else(|| allowed_processors().len(), |all| all.len())
}

/// Each processor with the first one on its core, where that is another one.
fn siblings(processors: &Path, allowed: &[usize]) -> Vec<[usize; 2]> {
    let first_on_core = |processor: usize| {
        let list = line_of(processors.join(format!("cpu{processor}/topology/thread_siblings_list")))?;
        let on_core = numbers(&list)?;
        allowed.iter().copied().find(|one| on_core.contains(one))
    };
    let pairs = allowed.iter().filter_map(|&processor| Some([first_on_core(processor)?, processor]));
    pairs.filter(|[first, processor]| first != processor).collect()
}

/// `0-1,8` is 0, 1 and 8.
fn numbers(list: &str) -> Option<BTreeSet<usize>> {
    let mut numbers = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(numbers)
}

/// First and last, with white space between them.
fn port_range(text: &str) -> Option<(u16, u16)> {
    let mut ports = text.split_whitespace().map_while(|port| port.parse().ok());
    Some((ports.next()?, ports.next()?))
}

/// From the line `TCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1`.
fn time_wait(text: &str) -> Option<u64> {
    let mut words = text.lines().find_map(|line| line.strip_prefix("TCP: "))?.split(' ');
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// From the lines `some avg10=0.12 avg60=0.05 avg300=0.01 total=123`.
fn pressure(folder: &Path) -> BTreeMap<&'static str, f64> {
    let of_minute = |resource: &'static str| {
        let text = fs::read_to_string(folder.join(resource)).ok()?;
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let average: f64 = some.split(' ').find_map(|word| word.strip_prefix("avg60="))?.parse().ok()?;
        Some((resource, average / 100.0))
    };
    ["cpu", "memory", "io"].into_iter().filter_map(of_minute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_in_the_kernels_own_words() {
        assert_eq!(port_range("32768\t60999\n"), Some((32768, 60999)));
        assert_eq!(port_range("32768"), None);
        assert_eq!(time_wait("sockets: used 5\nTCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1\nUDP: inuse 0\n"), Some(12));
        assert_eq!(time_wait("sockets: used 5\n"), None);
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("always"), None);
        assert_eq!(numbers("0-2,8"), Some([0, 1, 2, 8].into()));
        assert_eq!(numbers("0-x"), None);
    }

    #[test]
    fn processors_are_read_from_the_kernels_files() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("cpu1/cpufreq/scaling_governor", "performance\n"),
            ("intel_pstate/no_turbo", "0\n"),
            ("cpu0/topology/thread_siblings_list", "0,2\n"),
            ("cpu1/topology/thread_siblings_list", "1,3\n"),
            ("cpu2/topology/thread_siblings_list", "0,2\n"),
            ("cpu3/topology/thread_siblings_list", "1,3\n"),
        ] {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        assert_eq!(governors(folder.path()), ["performance".to_owned(), "powersave".to_owned()].into());
        assert_eq!(turbo(folder.path()), Some(true));
        assert_eq!(siblings(folder.path(), &[0, 1, 2, 3]), [[0, 2], [1, 3]]);
        assert_eq!(siblings(folder.path(), &[1, 2]), [[0; 2]; 0], "no two of them are on one core");
        assert_eq!(turbo(&folder.path().join("nowhere")), None);
    }

    #[test]
    fn waiting_is_read_per_resource() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cpu"), "some avg10=4.40 avg60=4.80 avg300=5.40 total=6\n").unwrap();
        fs::write(folder.path().join("io"), "none of this\n").unwrap();
        assert_eq!(pressure(folder.path()), [("cpu", 0.048)].into());
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let present = machine_state(Duration::from_millis(20));
        assert!(present.others.is_some() && present.lateness.is_ok());
        assert!(present.memory_available.is_some_and(|bytes| bytes > 0));
        assert_eq!(present.allowed, allowed_processors());
    }
}
