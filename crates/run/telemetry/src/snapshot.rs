//! The processes of a system at one instant.

use crate::cgroup::{Quota, members, quota};
use procfs::process::{Process, Stat, all_processes};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

/// The processes of one system at one instant, with running totals since each began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// The totals that the parent of the system has inherited from processes that it waited for.
    pub(crate) above: Totals,
    /// The system's processes.
    pub(crate) processes: BTreeMap<Identity, ProcessReading>,
    /// The limit on the CPU of all of them, where they are in the same control group.
    pub(crate) quota: Option<Quota>,
}

/// Identifies a process: its number may be reused later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// When it was started, in ticks since the machine was.
    pub(crate) started: u64,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessReading {
    /// Running totals.
    pub(crate) totals: Totals,
    /// What it has now; `None` for a zombie, which has nothing but its totals.
    pub(crate) holds: Option<HeldResources>,
    /// Each of its threads, by number.
    pub(crate) threads: BTreeMap<i32, ThreadReading>,
}

/// Running totals of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadReading {
    /// CPU, in ticks.
    pub(crate) cpu: u64,
    /// Context switches.
    pub(crate) switches: u64,
}

/// Totals of a process since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// CPU of its own threads, ended ones included, in ticks.
    pub(crate) cpu: u64,
    /// CPU of the children that it waited for, and of theirs, in ticks.
    pub(crate) children_cpu: u64,
    /// Bytes read from storage, by it and by the children that it waited for.
    pub(crate) read_bytes: u64,
    /// Bytes written to storage, by it and by the children that it waited for.
    pub(crate) written_bytes: u64,
}

/// Resources that a process holds at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldResources {
    /// Its own resident memory, in bytes: without what it shares.
    pub(crate) resident: u64,
    /// Resident memory that other processes may hold as well, in bytes: a database's buffers.
    pub(crate) shared: u64,
    pub(crate) threads: u64,
    pub(crate) open_files: u64,
}

/// All processes of the machine at one instant.
pub(crate) struct ProcessTree {
    processes: HashMap<i32, (Process, Stat)>,
    /// The processes that each has started, or inherited.
    children: HashMap<i32, Vec<i32>>,
}

/// The processes from which all processes of a system, or of a part of it, are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Roots {
    /// They are the descendants of this process, the warden of the system. It is not one of them itself.
    Warden(i32),
    /// They are in containers, which an engine starts. What is below the warden is a client, which talks to the engine and
    /// passes output on.
    Containers {
        /// The first process of each. All processes in their control groups are meant.
        first: Vec<i32>,
        /// The process that passes on to a container what comes to the port of the system, if there is one.
        forwarder: Option<i32>,
    },
}

impl ProcessTree {
    /// Reads all processes of the machine.
    pub(crate) fn read() -> ProcessTree {
        let mut tree = ProcessTree { processes: HashMap::new(), children: HashMap::new() };
        // A process may end between being listed and being read; that is no error.
        for process in all_processes().into_iter().flatten().flatten() {
            if let Ok(stat) = process.stat() {
                tree.children.entry(stat.ppid).or_default().push(stat.pid);
                tree.processes.insert(stat.pid, (process, stat));
            }
        }
        tree
    }

    /// The processes that these are the roots of.
    pub(crate) fn of(&self, roots: &Roots) -> Snapshot {
        let (own, above, forwarder): (BTreeSet<i32>, _, _) = match roots {
            Roots::Warden(warden) => (self.below(*warden), above(*warden), None),
            Roots::Containers { first, forwarder } => {
                (first.iter().flat_map(|first| self.container(*first)).collect(), None, *forwarder)
            }
        };
        let mut snapshot = Snapshot { above: above.unwrap_or_default(), ..Snapshot::default() };
        let mut groups: BTreeSet<String> = own.iter().filter_map(|pid| groups_of(*pid)).collect();
        snapshot.quota = groups.pop_first().filter(|_| groups.is_empty()).and_then(|groups| quota(&groups));
        let all = own.into_iter().chain(forwarder);
        for (process, stat) in all.filter_map(|pid| self.processes.get(&pid)) {
            let identity = Identity { pid: stat.pid, started: stat.starttime };
            snapshot.processes.insert(identity, reading(process, stat));
        }
        snapshot
    }

    /// The descendants of the process `root`, without itself.
    fn below(&self, root: i32) -> BTreeSet<i32> {
        let (mut found, mut parents) = (BTreeSet::new(), vec![root]);
        while let Some(parent) = parents.pop() {
            let children = self.children.get(&parent).into_iter().flatten();
            parents.extend(children.filter(|child| found.insert(**child)));
        }
        found
    }

    /// The processes of the container whose first process is `first`: that and its descendants, and what was started in it
    /// from outside, such as a check of its health, which is in the same control group.
    fn container(&self, first: i32) -> BTreeSet<i32> {
        let mut found = self.below(first);
        found.insert(first);
        found.extend(groups_of(first).iter().flat_map(|groups| members(groups)));
        found
    }
}

/// The control groups of a process, a line each.
fn groups_of(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()
}

fn above(root: i32) -> Option<Totals> {
    let process = Process::new(root).ok()?;
    let stat = process.stat().ok()?;
    Some(totals(&process, &stat))
}

fn reading(process: &Process, stat: &Stat) -> ProcessReading {
    if matches!(stat.state, 'Z' | 'X') {
        return ProcessReading { totals: totals(process, stat), ..ProcessReading::default() };
    }
    let shared = process.status().ok().and_then(|status| status.rssshmem).unwrap_or(0) * 1024;
    let holds = HeldResources {
        resident: stat.rss.saturating_mul(procfs::page_size()).saturating_sub(shared),
        shared,
        threads: u64::try_from(stat.num_threads).unwrap_or(0),
        open_files: process.fd_count().map_or(0, |count| count as u64),
    };
    ProcessReading { totals: totals(process, stat), holds: Some(holds), threads: threads(process) }
}

fn totals(process: &Process, stat: &Stat) -> Totals {
    let io = process.io().ok();
    Totals {
        cpu: stat.utime + stat.stime,
        children_cpu: u64::try_from(stat.cutime + stat.cstime).unwrap_or(0),
        read_bytes: io.map_or(0, |io| io.read_bytes),
        written_bytes: io.map_or(0, |io| io.write_bytes),
    }
}

/// `/proc/PID/status` covers the first thread alone, so each thread is read.
fn threads(process: &Process) -> BTreeMap<i32, ThreadReading> {
    let tasks = process.tasks().into_iter().flatten().flatten();
    let read = tasks.filter_map(|task| {
        let (status, stat) = (task.status().ok()?, task.stat().ok()?);
        let switches = status.voluntary_ctxt_switches? + status.nonvoluntary_ctxt_switches?;
        Some((task.tid, ThreadReading { cpu: stat.utime + stat.stime, switches }))
    });
    read.collect()
}
