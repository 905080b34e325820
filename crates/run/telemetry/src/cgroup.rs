//! Limits that control groups, and so containers, put on CPU and memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A limit of version 1 this high means that there is none.
const V1_NO_LIMIT: u64 = 1 << 62;

/// The tightest limits on the way from a group to the root.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// In cores.
    pub(crate) cpu: Option<f64>,
    /// In bytes.
    pub(crate) memory: Option<u64>,
}

/// The limits on this process.
pub(crate) fn own_limits() -> Limits {
    limits(&own_groups(), Path::new("/sys/fs/cgroup"))
}

/// Memory in bytes that the control groups of this process leave; none without a limit. Files in the page cache that
/// nothing has used of late count as free.
pub(crate) fn own_memory_left() -> Option<u64> {
    memory_left(&own_groups(), Path::new("/sys/fs/cgroup"))
}

/// A control group that limits the CPU of a system, with its counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Quota {
    folder: PathBuf,
    /// The limit, in cores.
    pub(crate) cores: f64,
    /// Scheduling periods in which it had something to do.
    periods: u64,
    /// Scheduling periods in which it had used up its limit.
    throttled: u64,
}

impl Quota {
    /// The share of the periods since `before` in which the limit was used up; none without a period, or for another group.
    pub(crate) fn throttled_since(&self, before: &Quota) -> Option<f64> {
        let periods = self.periods.checked_sub(before.periods).filter(|periods| *periods > 0)?;
        let throttled = self.throttled.saturating_sub(before.throttled);
        (self.folder == before.folder).then(|| throttled as f64 / periods as f64)
    }
}

/// The tightest limit on the CPU of a process whose `/proc/PID/cgroup` reads `groups`, of those that are not on this process
/// as well.
pub(crate) fn quota(groups: &str) -> Option<Quota> {
    quota_below(groups, &own_groups(), Path::new("/sys/fs/cgroup"))
}

fn quota_below(groups: &str, own: &str, mount: &Path) -> Option<Quota> {
    let mut shared = BTreeSet::new();
    walk_all(own, mount, |folder, _| _ = shared.insert(folder.to_owned()));
    let mut tightest: Option<(PathBuf, f64)> = None;
    walk_all(groups, mount, |folder, version| {
        let limit = match version {
            Version::V2 => v2_cpu(folder),
            Version::V1 => v1_cpu(folder),
        };
        let is_tighter = |cores: &f64| tightest.as_ref().is_none_or(|(_, least)| cores < least);
        if let Some(cores) = limit.filter(|_| !shared.contains(folder)).filter(is_tighter) {
            tightest = Some((folder.to_owned(), cores));
        }
    });
    let (folder, cores) = tightest?;
    let stat = read(&folder.join("cpu.stat")).unwrap_or_default();
    let count = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
    Some(Quota { cores, periods: count("nr_periods "), throttled: count("nr_throttled "), folder })
}

/// The processes in the control group of a container, where `groups` is what `/proc/PID/cgroup` reads of one of them. None
/// where that group is this process's own, or that of all: then it says nothing about the container.
pub(crate) fn members(groups: &str) -> Vec<i32> {
    members_below(groups, &own_groups(), Path::new("/sys/fs/cgroup"))
}

fn members_below(groups: &str, own: &str, mount: &Path) -> Vec<i32> {
    let path_of = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    let shared: BTreeSet<String> = own.lines().filter_map(path_of).chain(["/".to_owned()]).collect();
    let mut members = Vec::new();
    walk_groups(groups, mount, |hierarchy, group, _| {
        let folder = hierarchy.join(group.trim_start_matches('/'));
        if members.is_empty() && !shared.contains(group) {
            add_members(&folder, &mut members);
        }
    });
    members
}

/// Adds the processes of a group and of the groups in it.
fn add_members(folder: &Path, members: &mut Vec<i32>) {
    let listed = read(&folder.join("cgroup.procs")).unwrap_or_default();
    members.extend(listed.lines().filter_map(|line| line.parse::<i32>().ok()));
    for inside in fs::read_dir(folder).into_iter().flatten().flatten() {
        if inside.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_members(&inside.path(), members);
        }
    }
}

/// The control groups of this process, a line each.
fn own_groups() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

fn memory_left(groups: &str, mount: &Path) -> Option<u64> {
    let mut least: Option<u64> = None;
    walk_all(groups, mount, |folder, version| {
        let (limit, used) = match version {
            Version::V2 => (v2_memory(folder), "memory.current"),
            Version::V1 => (v1_memory(folder), "memory.usage_in_bytes"),
        };
        let number = |file: &str| read(&folder.join(file))?.parse::<u64>().ok();
        if let (Some(limit), Some(used)) = (limit, number(used)) {
            let left = limit.saturating_sub(used.saturating_sub(inactive_files(folder)));
            least = Some(least.map_or(left, |least| least.min(left)));
        }
    });
    least
}

/// Bytes of files in the page cache that nothing has used of late.
fn inactive_files(folder: &Path) -> u64 {
    let stat = read(&folder.join("memory.stat")).unwrap_or_default();
    let line = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    line("total_inactive_file ").or_else(|| line("inactive_file ")).unwrap_or(0)
}

/// The limits on a process whose `/proc/PID/cgroup` reads `groups`, with hierarchies below `mount`.
fn limits(groups: &str, mount: &Path) -> Limits {
    let mut found = Limits::default();
    walk_all(groups, mount, |folder, version| match version {
        Version::V1 => found.tighten(v1_cpu(folder), v1_memory(folder)),
        Version::V2 => found.tighten(v2_cpu(folder), v2_memory(folder)),
    });
    found
}

/// The version of a hierarchy of control groups, which says how its files are named.
#[derive(Clone, Copy)]
enum Version {
    V1,
    V2,
}

/// Visits the folders of all groups that `groups` names and that limit CPU or memory.
fn walk_all(groups: &str, mount: &Path, mut visit: impl FnMut(&Path, Version)) {
    walk_groups(groups, mount, |hierarchy, group, version| walk(hierarchy, group, |folder| visit(folder, version)));
}

/// Visits each hierarchy of groups that limit CPU or memory, with the group that `groups` names in it.
fn walk_groups(groups: &str, mount: &Path, mut visit: impl FnMut(&Path, &str, Version)) {
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            // Version 2, alone or beside version 1.
            for hierarchy in [mount.to_owned(), mount.join("unified")] {
                visit(&hierarchy, group, Version::V2);
            }
        }
        for controller in controllers.split(',').filter(|controller| matches!(*controller, "cpu" | "memory")) {
            let hierarchy = mount.join(if mount.join(controllers).is_dir() { controllers } else { controller });
            visit(&hierarchy, group, Version::V1);
        }
    }
}

impl Limits {
    fn tighten(&mut self, cpu: Option<f64>, memory: Option<u64>) {
        self.cpu = self.cpu.into_iter().chain(cpu).reduce(f64::min);
        self.memory = self.memory.into_iter().chain(memory).min();
    }
}

/// Visits the folder of `group`, those above it, and the root of the hierarchy. Inside a
/// container, the group's path may be that of the host; only the root is there then.
fn walk(hierarchy: &Path, group: &str, mut visit: impl FnMut(&Path)) {
    let group = PathBuf::from(group.trim_start_matches('/'));
    for part in group.ancestors() {
        visit(&hierarchy.join(part));
    }
}

/// `cpu.max`: `150000 100000` is 1.5 cores, `max 100000` is no limit.
fn v2_cpu(folder: &Path) -> Option<f64> {
    let text = read(&folder.join("cpu.max"))?;
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn v2_memory(folder: &Path) -> Option<u64> {
    read(&folder.join("memory.max"))?.parse().ok() // `max` is no number, and no limit
}

fn v1_cpu(folder: &Path) -> Option<f64> {
    let quota: f64 = read(&folder.join("cpu.cfs_quota_us"))?.parse().ok()?;
    let period: f64 = read(&folder.join("cpu.cfs_period_us"))?.parse().ok()?;
    (quota > 0.0).then_some(quota / period)
}

fn v1_memory(folder: &Path) -> Option<u64> {
    let limit: u64 = read(&folder.join("memory.limit_in_bytes"))?.parse().ok()?;
    (limit < V1_NO_LIMIT).then_some(limit)
}

fn read(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_of_a_container_are_those_of_its_group_and_of_the_groups_in_it() {
        let version_2 = hierarchy(&[
            ("cgroup.procs", "1\n2\n"),
            ("docker/ab/cgroup.procs", "70\n71\n"),
            ("docker/ab/inside/cgroup.procs", "72"),
        ]);
        let members = |mount: &tempfile::TempDir, groups, own| members_below(groups, own, mount.path());
        assert_eq!(members(&version_2, "0::/docker/ab", "0::/"), [70, 71, 72]);
        assert_eq!(members(&version_2, "0::/", "0::/user"), [0; 0], "the group of all");
        assert_eq!(members(&version_2, "0::/docker/ab", "0::/docker/ab"), [0; 0], "the own one");
        let version_1 = hierarchy(&[("memory/docker/ab/cgroup.procs", "70"), ("cpu/docker/ab/cgroup.procs", "70")]);
        assert_eq!(members(&version_1, "4:memory:/docker/ab\n1:cpu:/docker/ab\n0::/", "4:memory:/\n1:cpu:/"), [70]);
    }

    fn hierarchy(files: &[(&str, &str)]) -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = mount.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
        mount
    }

    #[test]
    fn version_2_takes_the_tightest_limit_up_to_the_root() {
        let mount = hierarchy(&[
            ("a/b/cpu.max", "max 100000"),
            ("a/cpu.max", "150000 100000"),
            ("cpu.max", "400000 100000"),
            ("a/b/memory.max", "2048"),
            ("a/memory.max", "max"),
        ]);
        assert_eq!(limits("0::/a/b\n", mount.path()), Limits { cpu: Some(1.5), memory: Some(2048) });
        assert_eq!(limits("0::/\n", mount.path()), Limits { cpu: Some(4.0), memory: None });
        let of_the_host = limits("0::/docker/0123abcd\n", mount.path());
        assert_eq!(of_the_host.cpu, Some(4.0), "a path of the host still finds the container's root");
    }

    #[test]
    fn memory_that_is_left_is_the_least_of_all_groups() {
        let mount = hierarchy(&[
            ("a/b/memory.max", "1000"),
            ("a/b/memory.current", "900"),
            ("a/b/memory.stat", "anon 500\ninactive_file 400\nactive_file 0"),
            ("a/memory.max", "2000"),
            ("a/memory.current", "1700"),
            ("memory.max", "max"),
            ("memory.current", "5000"),
        ]);
        assert_eq!(memory_left("0::/a/b\n", mount.path()), Some(300));
        assert_eq!(memory_left("0::/\n", mount.path()), None);
        let v1 = hierarchy(&[
            ("memory/x/memory.limit_in_bytes", "1000"),
            ("memory/x/memory.usage_in_bytes", "900"),
            ("memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 50"),
        ]);
        assert_eq!(memory_left("5:memory:/x\n", v1.path()), Some(150));
    }

    #[test]
    fn a_quota_is_of_a_group_that_this_process_is_not_in() {
        let mount = hierarchy(&[
            ("run/cpu.max", "200000 100000"),
            ("run/web/cpu.max", "50000 100000"),
            ("run/web/cpu.stat", "usage_usec 77\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9"),
            ("run/web/worker/cpu.max", "max 100000"),
        ]);
        let of = |group: &str| quota_below(&format!("0::{group}\n"), "0::/run\n", mount.path());
        let quota = of("/run/web/worker").expect("a limit");
        assert_eq!((quota.cores, quota.periods, quota.throttled), (0.5, 40, 30));
        assert_eq!(of("/run/web"), Some(quota.clone()), "the same group");
        assert_eq!(of("/run/other"), None, "the limit on both");
        let later = Quota { periods: 60, throttled: 45, ..quota.clone() };
        assert_eq!(later.throttled_since(&quota), Some(0.75));
        assert_eq!(quota.throttled_since(&quota), None, "nothing to do");
        assert_eq!(Quota { folder: PathBuf::new(), ..later }.throttled_since(&quota), None, "another group");
        let v1 = hierarchy(&[
            ("cpu/x/cpu.cfs_quota_us", "30000"),
            ("cpu/x/cpu.cfs_period_us", "100000"),
            ("cpu/x/cpu.stat", "nr_periods 10\nnr_throttled 1\nthrottled_time 5"),
        ]);
        let quota = quota_below("2:cpu:/x\n", "2:cpu:/\n", v1.path()).expect("a limit");
        assert_eq!((quota.cores, quota.periods, quota.throttled), (0.3, 10, 1));
    }

    #[test]
    fn version_1_knows_no_limit_in_two_ways() {
        let mount = hierarchy(&[
            ("cpu,cpuacct/x/cpu.cfs_quota_us", "50000"),
            ("cpu,cpuacct/x/cpu.cfs_period_us", "100000"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1"),
            ("cpu,cpuacct/cpu.cfs_period_us", "100000"),
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/x/memory.limit_in_bytes", "1048576"),
        ]);
        let groups = |group: &str| format!("5:memory:{group}\n4:cpu,cpuacct:{group}\n3:pids:{group}\n");
        assert_eq!(limits(&groups("/x"), mount.path()), Limits { cpu: Some(0.5), memory: Some(1_048_576) });
        assert_eq!(limits(&groups("/"), mount.path()), Limits::default());
    }
}
