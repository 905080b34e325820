//! Interrupts a run by a signal.

use crate::say;
use anyhow::Context;
use plimsoll_javascript::busy;
use plimsoll_system::Interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register;
use signal_hook::low_level::{self, pipe};
use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const FAILED: &str = "failed to listen for signals";

/// The status of this process in Linux, with the signals that it ignores.
const STATUS: &str = "/proc/self/status";

/// The longest that a command waits at its end until the words for a signal are written: nobody may read standard error.
const SAYING: Duration = Duration::from_secs(1);

/// SIGINT, SIGTERM and SIGHUP as a request to stop; a SIGHUP that is ignored already stays so. The first one sets the
/// [`Interrupt`], and what runs is stopped in order: users of scripts that run go on for half a second at most. The
/// second one ends the program at once; the wardens then end the systems under test. Until [`Listener::say`] is called
/// nothing runs that has to be stopped in order, and the first signal ends the program. Where a command ends right
/// after a signal, dropping this waits until the words for it are written.
#[derive(Debug)]
pub(super) struct Listener {
    interrupt: Interrupt,
    /// None as long as nothing runs.
    words: Arc<Mutex<Option<Words>>>,
    /// The folder that is removed before a signal ends the program. It is locked while it is made or removed.
    scratch: Arc<Mutex<Option<PathBuf>>>,
    /// Told once the words for the first signal are written.
    said: Receiver<()>,
}

/// A folder that is removed when this is dropped, or before a signal ends the program.
pub(super) struct Scratch {
    path: PathBuf,
    of_listener: Arc<Mutex<Option<PathBuf>>>,
}

/// What is said on standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    /// At the first signal.
    pub(super) first: Option<String>,
    /// At the second signal, before the program ends.
    pub(super) second: Option<String>,
}

/// What is said before there are words for what runs.
const NOTHING_RAN: &str = "interrupted before the run began: nothing was started, and nothing was written";

impl Listener {
    /// Listens from now on. `exit_code` is that of a program that the second signal ends.
    pub(super) fn start(exit_code: i32) -> anyhow::Result<Listener> {
        let (saying, said) = channel();
        let listener = Listener { interrupt: Interrupt::new(), words: Arc::default(), scratch: Arc::default(), said };
        busy::hurry_when(listener.interrupt.flag());
        // Each signal writes a byte, so that none is lost where two come at once.
        let (mut read, write) = UnixStream::pair().context(FAILED)?;
        // `nohup` has a hang-up ignored, and a handler would end that.
        let hang_up = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
            register(signal, Arc::clone(listener.interrupt.flag())).context(FAILED)?;
            pipe::register(signal, write.try_clone().context(FAILED)?).context(FAILED)?;
        }
        let (words, scratch) = (Arc::clone(&listener.words), Arc::clone(&listener.scratch));
        let listen = move || {
            let mut is_first = true;
            while read.read_exact(&mut [0]).is_ok() {
                let said = locked(&words).clone();
                let ends = !is_first || said.is_none();
                let nothing_ran = || Words { first: Some(NOTHING_RAN.to_owned()), second: None };
                let Words { first, second } = said.unwrap_or_else(nothing_ran);
                if let Some(text) = if is_first { first } else { second } {
                    say::note(&text);
                }
                if ends {
                    end(&scratch, exit_code);
                }
                is_first = false;
                // Nobody waits any more where the command has ended.
                let _ = saying.send(());
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).context(FAILED)?;
        Ok(listener)
    }

    /// What the first signal sets.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Says this from now on, and stops in order at the first signal.
    pub(super) fn say(&self, words: Words) {
        *locked(&self.words) = Some(words);
    }

    /// Makes a folder that is removed before a signal ends the program. There is one at a time.
    pub(super) fn scratch(&self, path: PathBuf) -> io::Result<Scratch> {
        let mut folder = locked(&self.scratch);
        fs::create_dir(&path)?;
        *folder = Some(path.clone());
        Ok(Scratch { path, of_listener: Arc::clone(&self.scratch) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.interrupt.is_set() {
            // The handler sets the flag before the thread for signals can know of it.
            let _ = self.said.recv_timeout(SAYING);
        }
    }
}

impl Scratch {
    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If a signal ends the program, this waits for that end.
        let mut folder = locked(&self.of_listener);
        remove(&self.path);
        *folder = None;
    }
}

/// Removes the scratch folder and ends the program. The folder stays locked meanwhile, so that a thread that misses it
/// does not end the program in another way.
fn end(scratch: &Mutex<Option<PathBuf>>, exit_code: i32) -> ! {
    let folder = locked(scratch);
    if let Some(path) = folder.as_deref() {
        remove(path);
    }
    low_level::exit(exit_code)
}

/// The number of times that the removal of a folder is tried.
const REMOVALS: usize = 10;

/// Removes a folder. What still runs may write a file into it meanwhile, so that the first removal fails.
fn remove(folder: &Path) {
    for _ in 0..REMOVALS {
        if fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            return;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if this process ignores the signal, as one that `nohup` has started does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    fs::read_to_string(STATUS).is_ok_and(|status| ignores(&status, signal))
}

/// True if a process with this status ignores the signal: `SigIgn` is a mask in hexadecimal digits, whose lowest bit is
/// signal 1.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (mask >> (signal - 1)) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status_of_a_process() {
        let status = "Name:\tplimsoll\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\n";
        assert_eq!([SIGHUP, SIGINT, SIGTERM].map(|signal| ignores(status, signal)), [true, false, false]);
        assert!(!ignores("Name:\tplimsoll\n", SIGHUP));
    }

    #[test]
    fn a_scratch_folder_lasts_as_long_as_its_value() {
        let listener =
            Listener { interrupt: Interrupt::new(), words: Arc::default(), scratch: Arc::default(), said: channel().1 };
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("scratch");
        let scratch = listener.scratch(path.clone()).expect("a new folder");
        fs::write(scratch.path().join("file"), "text").expect("a file");
        assert_eq!(*locked(&listener.scratch), Some(path.clone()), "a signal would remove it");
        drop(scratch);
        assert_eq!((path.exists(), locked(&listener.scratch).clone()), (false, None));
        fs::create_dir(&path).expect("a folder of somebody else");
        assert!(listener.scratch(path.clone()).is_err() && locked(&listener.scratch).is_none());
        assert!(path.exists());
    }
}
