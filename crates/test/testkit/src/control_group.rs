//! Control groups with a limit, for processes of tests.

use rustix::process::geteuid;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A scheduling period, in microseconds: what a limit on CPU is written for.
const PERIOD: u32 = 100_000;

/// A control group whose processes have a limit together. It is removed when this is dropped; its processes must have ended.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
}

/// A kind of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Mebibytes of memory.
    Memory(u32),
    /// Hundredths of a processor.
    Cpu(u32),
}

impl ControlGroup {
    /// A new group; none where none of this kind is possible.
    ///
    /// # Panics
    /// It is possible, and fails all the same.
    #[must_use]
    pub fn with(limit: Limit) -> Option<ControlGroup> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (root, file, text) = limit.file()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = root.join(format!("plimsoll-test-{}-{number}", std::process::id()));
        fs::create_dir(&folder).expect("a control group");
        let group = ControlGroup { folder };
        fs::write(group.folder.join(file), text).expect("a limit");
        Some(group)
    }

    /// A command of a shell that brings it and all that it starts into the group.
    #[must_use]
    pub fn enter(&self) -> String {
        format!("echo $$ >{}", self.folder.join("cgroup.procs").display())
    }
}

impl Limit {
    /// True if this process can make a group with it.
    #[must_use]
    pub fn is_possible(self) -> bool {
        self.file().is_some()
    }

    /// The folder of all groups of this kind, the file with the limit and its content, in version 1 of control groups or in 2.
    fn file(self) -> Option<(PathBuf, &'static str, String)> {
        let (controller, first, second, text) = match self {
            Limit::Memory(mib) => ("memory", "memory.limit_in_bytes", "memory.max", format!("{mib}M")),
            Limit::Cpu(hundredths) => ("cpu", "cpu.cfs_quota_us", "cpu.max", (hundredths * PERIOD / 100).to_string()),
        };
        if !geteuid().is_root() {
            return None;
        }
        let mount = Path::new("/sys/fs/cgroup");
        if mount.join(controller).join(first).exists() {
            return Some((mount.join(controller), first, text));
        }
        let controlled = fs::read_to_string(mount.join("cgroup.subtree_control")).ok()?;
        controlled.split_whitespace().any(|one| one == controller).then(|| (mount.to_owned(), second, text))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Processes that are at their end keep it for a moment.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
