//! Finds and kills the processes of a command, by `/proc`.

use procfs::process::{Process, all_processes};
use procfs::{ProcError, ProcResult};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// The environment variable that marks every process of a command, however far it moved away.
pub(crate) const MARK: &str = "PLIMSOLL_SYSTEM";

/// How long killing may take before the remaining processes count as impossible to kill.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A living process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
}

/// All children of `root`, their children, and so on. Zombies are left out: they are dead, and
/// have no children any more.
pub(crate) fn descendants(root: i32) -> Vec<Entry> {
    below(root, &living())
}

/// When a process was started, in ticks since the machine was; none if it is not there.
///
/// # Errors
/// It may be there, but cannot be looked at, for want of descriptors perhaps.
pub(crate) fn started(pid: i32) -> ProcResult<Option<u64>> {
    match Process::new(pid).and_then(|process| process.stat()) {
        Ok(stat) => Ok(Some(stat.starttime)),
        Err(ProcError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The processes that [`kill_marked`] has found.
pub(crate) struct Marked {
    /// The number of killed processes.
    pub(crate) killed: usize,
    /// The ids of processes that could not be killed in time.
    pub(crate) left: Vec<i32>,
}

/// Kills every process whose mark in the environment begins with `mark`, until there is none.
pub(crate) fn kill_marked(mark: &str) -> Marked {
    let deadline = Instant::now() + KILL_LIMIT;
    let mut found = BTreeSet::new();
    loop {
        let left = marked(mark);
        found.extend(left.iter().copied());
        if left.is_empty() || Instant::now() > deadline {
            return Marked { killed: found.len() - left.len(), left };
        }
        left.iter().for_each(|pid| kill(*pid));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends SIGKILL. Errors are ignored: the process may be gone, and the caller checks again.
pub(crate) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn living() -> Vec<Entry> {
    let Ok(processes) = all_processes() else { return Vec::new() };
    // A process may end between being listed and being read; skip it.
    let stats = processes.filter_map(|process| process.ok()?.stat().ok());
    let alive = stats.filter(|stat| !matches!(stat.state, 'Z' | 'X'));
    alive.map(|stat| Entry { pid: stat.pid, parent: stat.ppid, group: stat.pgrp }).collect()
}

fn below(root: i32, living: &[Entry]) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in living {
        children.entry(entry.parent).or_default().push(*entry);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

fn marked(mark: &str) -> Vec<i32> {
    let Ok(processes) = all_processes() else { return Vec::new() };
    let carries = |process: &Process| {
        let environment = process.environ().unwrap_or_default();
        environment.get(OsStr::new(MARK)).is_some_and(|value| value.as_bytes().starts_with(mark.as_bytes()))
    };
    let pids: BTreeSet<i32> = processes.flatten().filter(carries).map(|process| process.pid()).collect();
    pids.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_whatever_the_order_and_group() {
        let entry = |pid, parent, group| Entry { pid, parent, group };
        let living = [entry(50, 20, 50), entry(20, 10, 20), entry(30, 1, 30), entry(21, 10, 20), entry(9, 50, 9)];
        let mut pids: Vec<i32> = below(10, &living).iter().map(|entry| entry.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [9, 20, 21, 50]);
    }
}
