//! What a run finds around it: a small disk, few ports, a date that jumps.

use rustix::process::geteuid;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The command, run by a shell after something else.
pub(super) fn in_shell(command: &Command, before: &str) -> Command {
    let script = format!("{before}; exec \"$0\" \"$@\"");
    around(command, "sh", &["-c", &script])
}

/// The command as further arguments of a program.
fn around(command: &Command, program: &str, arguments: &[&str]) -> Command {
    let mut outer = Command::new(program);
    outer.args(arguments).arg(command.get_program()).args(command.get_args());
    outer.current_dir(command.get_current_dir().expect("it has a folder"));
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer
}

fn is_there(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|found| found.status.success())
}

pub(super) fn can_have_a_network() -> bool {
    geteuid().is_root() && is_there("unshare") && is_there("ip")
}

/// The command in a network of its own, which has the loopback alone, and so many ports for whoever asks for any.
pub(super) fn in_network_of(command: &Command, ports: u32) -> Command {
    const FIRST: u32 = 40_000;
    let range = format!("{FIRST} {}", FIRST + ports - 1);
    let inside = in_shell(command, &format!("ip link set lo up; echo {range} >/proc/sys/net/ipv4/ip_local_port_range"));
    around(&inside, "unshare", &["--net"])
}

/// A file system of its own in memory, which is unmounted when this is dropped.
pub(super) struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    pub(super) fn mount(folder: &Path, kib: u32) -> SmallDisk {
        fs::create_dir(folder).unwrap();
        let size = format!("size={kib}k");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).status().unwrap();
        assert!(mounted.success(), "a small disk");
        SmallDisk { folder: folder.to_owned() }
    }

    /// Gives it room enough.
    pub(super) fn grow(&self) {
        let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&self.folder).status().unwrap();
        assert!(grown.success(), "a larger disk");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}

/// A date that all processes of a run share, and that may jump.
pub(super) struct SteppedClock {
    file: PathBuf,
}

impl SteppedClock {
    /// The library that moves the date of a process, if it can be built here.
    pub(super) fn library() -> Option<&'static Path> {
        static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
        let build = || {
            let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clock.so");
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/clock.c");
            let compiled =
                Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).status();
            compiled.is_ok_and(|status| status.success()).then_some(library)
        };
        LIBRARY.get_or_init(build).as_deref()
    }

    /// Lets the command, and all that it starts, see the date that `file` moves.
    pub(super) fn of(command: &mut Command, file: &Path) -> SteppedClock {
        let clock = SteppedClock { file: file.to_owned() };
        clock.step(0);
        command.env("LD_PRELOAD", SteppedClock::library().expect("it was looked for")).env("TEST_CLOCK_STEP", file);
        clock
    }

    /// The date is so many seconds later than it is, or earlier. The file keeps its place, since it is mapped.
    pub(super) fn step(&self, seconds: i64) {
        let mut file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&self.file).unwrap();
        file.write_all(&seconds.to_ne_bytes()).unwrap();
    }
}
