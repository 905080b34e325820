//! The folder of an agent's own for what a run sends, and for the output of systems: it goes with the work for the run. What
//! agents left that were killed, the next agent on their host removes.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use tempfile::TempDir;

const PREFIX: &str = "plimsoll-agent-";

/// A file in the folder that its agent has locked as long as it lives.
const LOCK: &str = "lock";

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    folder: TempDir,
    _lock: File,
}

impl OwnFolder {
    /// Makes a folder.
    ///
    /// # Errors
    /// The disk.
    pub(crate) fn make() -> io::Result<OwnFolder> {
        OwnFolder::make_in(&std::env::temp_dir())
    }

    fn make_in(place: &Path) -> io::Result<OwnFolder> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // It appears under its name once it is locked, so that no agent takes the folder for a leftover.
        let (path, before) = (folder.path().join(LOCK), folder.path().join("lock-to-be"));
        let lock = File::create(&before)?;
        lock.lock()?;
        fs::rename(before, path)?;
        Ok(OwnFolder { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of agents that were killed.
pub(crate) fn remove_leftovers() {
    remove_leftovers_in(&std::env::temp_dir());
}

fn remove_leftovers_in(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !name.to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // The folder of another user cannot be opened, and that of an agent that lives is locked.
        let unlocked = File::open(path.join(LOCK)).ok().filter(|lock| lock.try_lock().is_ok());
        if unlocked.is_some() {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_agents_are_removed_and_no_others() {
        let place = tempfile::tempdir().expect("a folder");
        let lives = OwnFolder::make_in(place.path()).expect("a folder");
        let OwnFolder { folder, _lock: lock } = OwnFolder::make_in(place.path()).expect("a folder");
        // Its agent was killed: nothing removes the folder, and the kernel gives up the lock.
        let killed = folder.keep();
        drop(lock);
        fs::write(killed.join("data"), "sent by a run").expect("a file");
        let foreign = place.path().join("plimsoll-agent-of-somebody");
        fs::create_dir(&foreign).expect("a folder");
        remove_leftovers_in(place.path());
        assert_eq!([lives.path(), &killed, &foreign].map(Path::exists), [true, false, true]);
    }
}
