//! Removes the shared memory of a PostgreSQL that was killed: a System V segment, by which it knows that a
//! folder is in use, and files in `/dev/shm`. Neither ends with its processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder of dynamic shared memory.
const SHARED: &str = "/dev/shm/";
const PREFIX: &str = "PostgreSQL.";
/// The state file in its data folder, which it removes when it ends in order.
const STATE: &str = "postmaster.pid";
/// The file in its data folder that lists its files in `/dev/shm`.
const NOTE: &str = "plimsoll-shared-memory";

/// Writes the list of the shared memory files of a server with these processes into its `data`.
pub(crate) fn record(data: &Path, processes: &[i32]) {
    let maps = processes.iter().filter_map(|process| fs::read_to_string(format!("/proc/{process}/maps")).ok());
    let mut names: Vec<String> = maps.flat_map(|maps| names_in(&maps)).collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        let _ = fs::write(data.join(NOTE), names.join("\n")); // without the list they stay
    }
}

fn names_in(maps: &str) -> Vec<String> {
    let files = maps.lines().filter_map(|line| Some(line.split_once(SHARED)?.1.split_whitespace().next()?.to_owned()));
    files.filter(|name| name.starts_with(PREFIX)).collect()
}

/// Removes the shared memory of the server of `data`, if it did not end in order. Its processes must be gone.
pub(crate) fn remove(data: &Path) {
    let Ok(state) = fs::read_to_string(data.join(STATE)) else { return };
    let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    if let Some(segment) = left_segment(&state, &segments) {
        let remove = ["-m", segment];
        // Without the permission or the program, 56 bytes stay.
        let _ = Command::new("ipcrm").args(remove).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    let note = fs::read_to_string(data.join(NOTE)).unwrap_or_default();
    for name in note.lines().filter(|name| name.starts_with(PREFIX) && !name.contains('/')) {
        let _ = fs::remove_file(format!("{SHARED}{name}")); // it may be gone
    }
}

/// The number of the segment that the server with this state file made, if nobody uses it.
fn left_segment<'a>(state: &str, segments: &'a str) -> Option<&'a str> {
    let mut lines = state.lines();
    let process = lines.next()?.trim();
    let [key, number] = lines.nth(5)?.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    segments.lines().find_map(|line| {
        let [its_key, its_number, _, _, maker, _, users, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        ([its_key, its_number, maker, users] == [key, number, process, "0"]).then_some(its_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = "4711\n/data\n1700000000\n5433\n/sockets\n127.0.0.1\n  1048637         7\nready   \n";

    #[test]
    fn only_the_servers_own_segment_that_nobody_uses_is_to_go() {
        let line = |key: u64, number: u32, maker: u32, users: u32| {
            format!("{key} {number} 600 56 {maker} 4712 {users} 65534 65534 65534 65534 0 0 0 4096 0\n")
        };
        let others = line(1_048_638, 7, 4711, 0) + &line(1_048_637, 8, 4711, 0) + &line(1_048_637, 7, 4710, 0);
        assert_eq!(left_segment(STATE, &others), None);
        assert_eq!(left_segment(STATE, &line(1_048_637, 7, 4711, 1)), None, "somebody uses it");
        assert_eq!(left_segment(STATE, &(others + &line(1_048_637, 7, 4711, 0))), Some("7"));
        assert_eq!(left_segment("4711\n/data\n", &line(1_048_637, 7, 4711, 0)), None);
    }

    #[test]
    fn files_in_shared_memory_are_found_among_all_that_is_mapped() {
        let maps = "7f00-7f01 rw-s 0 00:19 5 /dev/shm/PostgreSQL.123\n7f02-7f03 r--p 0 08:01 6 /usr/lib/libc.so\n\
                    7f04-7f05 rw-s 0 00:19 7 /dev/shm/other\n7f06-7f07 rw-s 0 00:01 8 /dev/zero (deleted)\n";
        assert_eq!(names_in(maps), ["PostgreSQL.123"]);
    }
}
