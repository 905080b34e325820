//! The processes of a system at one instant.

use crate::cgroup::{Quota, members, quota};
use procfs::process::{Process, Stat, all_processes};
use procfs::{ProcError, ProcResult};
use rustix::io::Errno;
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

/// `SIGCHLD` in a mask of signals.
const CHILD_ENDED: u64 = 1 << (Signal::CHILD.as_raw() - 1);

/// The processes of one system at one instant, with running totals since each began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// The totals that the parent of the system has inherited from processes that it waited for.
    pub(crate) above: Totals,
    /// The system's processes.
    pub(crate) processes: BTreeMap<Identity, ProcessReading>,
    /// The limit on the CPU of all of them, where they are in the same control group.
    pub(crate) quota: Option<Quota>,
    /// Use of processes that had ended by then, which their parents take over after this snapshot only.
    pub(crate) owed: Owed,
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
    /// The number of its parent.
    pub(crate) parent: i32,
    /// True if it ignores `SIGCHLD`: the kernel removes its children when they end, and it takes over no total of them.
    pub(crate) ignores_children: bool,
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
    /// Bytes of storage, moved by it and by the children that it waited for; none where they cannot be read.
    pub(crate) io: Option<StorageIo>,
}

/// Bytes that were moved from and to storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StorageIo {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// Use of ended processes that no parent has taken over yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owed {
    /// CPU, in ticks.
    pub(crate) cpu: u64,
    pub(crate) io: StorageIo,
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

/// All processes of the machine at one instant. It holds none of them open: a machine may have more of them than this process
/// may have files.
pub(crate) struct ProcessTree {
    /// When each was started, in ticks since the machine was.
    started: HashMap<i32, u64>,
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
    ///
    /// # Errors
    /// They cannot be listed, or this process lacks descriptors or memory to read them.
    pub(crate) fn read() -> ProcResult<ProcessTree> {
        let mut tree = ProcessTree { started: HashMap::new(), children: HashMap::new() };
        for process in all_processes()? {
            // It may end between being listed and being read; that is no error.
            if let Some(stat) = readable(process.and_then(|process| process.stat()))? {
                tree.children.entry(stat.ppid).or_default().push(stat.pid);
                tree.started.insert(stat.pid, stat.starttime);
            }
        }
        Ok(tree)
    }

    /// The processes that these are the roots of. One that has ended since the tree was read is left out.
    ///
    /// # Errors
    /// This process lacks descriptors or memory to read them.
    pub(crate) fn of(&self, roots: &Roots) -> ProcResult<Snapshot> {
        let mut own: BTreeSet<i32> = BTreeSet::new();
        let (above, forwarder) = match roots {
            Roots::Warden(warden) => {
                own.extend(self.below(*warden));
                (above(*warden)?, None)
            }
            Roots::Containers { first, forwarder } => {
                for first in first {
                    own.extend(self.container(*first)?);
                }
                (None, *forwarder)
            }
        };
        let mut snapshot = Snapshot { above: above.unwrap_or_default(), ..Snapshot::default() };
        let mut groups: BTreeSet<String> = BTreeSet::new();
        for pid in &own {
            groups.extend(groups_of(*pid)?);
        }
        snapshot.quota = groups.pop_first().filter(|_| groups.is_empty()).and_then(|groups| quota(&groups));
        let identity = |pid: i32| Some(Identity { pid, started: *self.started.get(&pid)? });
        let mut identities: Vec<Identity> = own.into_iter().chain(forwarder).filter_map(identity).collect();
        // Parents before children: the total of a child that ends meanwhile is in at most one of both readings.
        identities.sort_unstable_by_key(|identity| (identity.started, identity.pid));
        for identity in identities {
            if let Some(reading) = reading(identity)? {
                snapshot.processes.insert(identity, reading);
            }
        }
        Ok(snapshot)
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
    fn container(&self, first: i32) -> ProcResult<BTreeSet<i32>> {
        let mut found = self.below(first);
        found.insert(first);
        found.extend(groups_of(first)?.iter().flat_map(|groups| members(groups)));
        Ok(found)
    }
}

/// The result of reading another process; none if that has ended, or may not be looked at.
///
/// # Errors
/// This process lacks descriptors or memory, which says nothing about the other one.
fn readable<T>(read: ProcResult<T>) -> ProcResult<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_lack(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_lack(error: &ProcError) -> bool {
    let ProcError::Io(error, _) = error else { return false };
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// The control groups of a process, a line each.
fn groups_of(pid: i32) -> ProcResult<Option<String>> {
    readable(fs::read_to_string(format!("/proc/{pid}/cgroup")).map_err(ProcError::from))
}

fn above(root: i32) -> ProcResult<Option<Totals>> {
    let Some((process, stat)) = opened(root)? else { return Ok(None) };
    totals(&process, &stat).map(Some)
}

fn opened(pid: i32) -> ProcResult<Option<(Process, Stat)>> {
    let Some(process) = readable(Process::new(pid))? else { return Ok(None) };
    Ok(readable(process.stat())?.map(|stat| (process, stat)))
}

/// Reads a process, which is open no longer than that.
fn reading(identity: Identity) -> ProcResult<Option<ProcessReading>> {
    let Some((process, stat)) = opened(identity.pid)? else { return Ok(None) };
    if stat.starttime != identity.started {
        return Ok(None);
    }
    let totals = totals(&process, &stat)?;
    if matches!(stat.state, 'Z' | 'X') {
        return Ok(Some(ProcessReading { totals, ..ProcessReading::default() }));
    }
    let status = readable(process.status())?;
    let shared = status.as_ref().and_then(|status| status.rssshmem).unwrap_or(0) * 1024;
    let holds = HeldResources {
        resident: stat.rss.saturating_mul(procfs::page_size()).saturating_sub(shared),
        shared,
        threads: u64::try_from(stat.num_threads).unwrap_or(0),
        open_files: readable(process.fd_count())?.map_or(0, |count| count as u64),
    };
    Ok(Some(ProcessReading {
        totals,
        holds: Some(holds),
        threads: threads(&process)?,
        parent: stat.ppid,
        ignores_children: status.is_some_and(|status| status.sigign & CHILD_ENDED != 0),
    }))
}

fn totals(process: &Process, stat: &Stat) -> ProcResult<Totals> {
    let io = readable(process.io())?;
    Ok(Totals {
        cpu: stat.utime + stat.stime,
        children_cpu: u64::try_from(stat.cutime + stat.cstime).unwrap_or(0),
        io: io.map(|io| StorageIo { read_bytes: io.read_bytes, written_bytes: io.write_bytes }),
    })
}

/// `/proc/PID/status` covers the first thread alone, so each thread is read.
fn threads(process: &Process) -> ProcResult<BTreeMap<i32, ThreadReading>> {
    let mut threads = BTreeMap::new();
    // `Process::tasks` passes over a thread that cannot be opened, whatever the reason.
    let listed = readable(fs::read_dir(format!("/proc/{}/task", process.pid)).map_err(ProcError::from))?;
    for entry in listed.into_iter().flatten().flatten() {
        let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let read = process.task_from_tid(tid).and_then(|task| Ok((task.status()?, task.stat()?)));
        let Some((status, stat)) = readable(read)? else { continue };
        let switches = (status.voluntary_ctxt_switches, status.nonvoluntary_ctxt_switches);
        if let (Some(voluntary), Some(forced)) = switches {
            threads.insert(tid, ThreadReading { cpu: stat.utime + stat.stime, switches: voluntary + forced });
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;
    use std::process::{Child, Command};

    fn sleeping() -> Child {
        Command::new("sleep").arg("60").spawn().expect("a process")
    }

    fn pid(child: &Child) -> i32 {
        i32::try_from(child.id()).expect("a number of a process")
    }

    fn end(mut child: Child) {
        child.kill().expect("it runs");
        child.wait().expect("it is a child");
    }

    #[test]
    fn a_tree_holds_no_process_open() {
        let children: Vec<Child> = (0..20).map(|_| sleeping()).collect();
        let tree = ProcessTree::read().expect("/proc");
        let folders: Vec<PathBuf> = children.iter().map(|child| format!("/proc/{}", child.id()).into()).collect();
        let is_held = || {
            let files = fs::read_dir("/proc/self/fd").expect("/proc").flatten();
            files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| folders.contains(&file))
        };
        // Another test may look at one of them at the same time, but not for ever.
        let held = (0..1000).all(|_| is_held());
        let known = children.iter().all(|child| tree.started.contains_key(&pid(child)));
        children.into_iter().for_each(end);
        assert!(known && !held);
    }

    #[test]
    fn a_process_that_has_ended_since_the_tree_was_read_is_left_out() {
        let [ends, stays] = [sleeping(), sleeping()];
        let [ended, there] = [pid(&ends), pid(&stays)];
        let mut tree = ProcessTree::read().expect("/proc");
        end(ends);
        let found = |tree: &ProcessTree| -> Vec<i32> {
            let of_first = |first| Roots::Containers { first: vec![first], forwarder: None };
            let snapshots = [ended, there].map(|first| tree.of(&of_first(first)).expect("/proc"));
            let found = snapshots.iter().flat_map(|snapshot| snapshot.processes.keys().map(|one| one.pid));
            found.filter(|pid| [ended, there].contains(pid)).collect()
        };
        let before = found(&tree);
        // Another process of the same number.
        *tree.started.get_mut(&there).expect("it is known") += 1;
        let after = found(&tree);
        end(stays);
        assert_eq!((before, after), (vec![there], Vec::new()));
    }

    #[test]
    fn a_process_that_is_gone_is_none_and_a_lack_of_descriptors_is_an_error() {
        assert!(readable(Process::new(i32::MAX)).is_ok_and(|process| process.is_none()));
        for lack in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            let error = ProcError::from(io::Error::from(lack));
            assert!(readable::<()>(Err(error)).is_err(), "{lack}");
        }
        for about_the_other in [Errno::SRCH, Errno::NOENT, Errno::ACCESS, Errno::PERM] {
            let error = ProcError::from(io::Error::from(about_the_other));
            assert!(readable::<()>(Err(error)).is_ok(), "{about_the_other}");
        }
    }
}
