//! The scratch folder of a run, for everything that it does not keep.

use crate::error::DatabaseError;
use crate::mark::{FolderOwner, Mark, lock};
use crate::shared_memory;
use plimsoll_system::random_text;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The standard folder for large temporary files. Unlike `/tmp`, it is on a disk. Paths below it are short
/// enough for UNIX sockets (107 bytes).
pub(crate) const PLACE: &str = "/var/tmp";
const PREFIX: &str = "plimsoll-";

/// The scratch folder of a run. Its name is known from the start; it is made at the first use, and removed when
/// dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    lock: Option<File>,
    folders: u32,
}

impl Scratch {
    /// A scratch folder with a unique name, which does not exist yet.
    pub(crate) fn new() -> Scratch {
        let name = random_text(8).unwrap_or_else(|_| std::process::id().to_string());
        Scratch { path: Path::new(PLACE).join(format!("{PREFIX}{}", name.to_lowercase())), lock: None, folders: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a new folder in it.
    pub(crate) fn folder(&mut self) -> Result<PathBuf, DatabaseError> {
        self.make()?;
        self.folders += 1;
        let folder = self.path.join(self.folders.to_string());
        open_folder(&folder).map_err(DatabaseError::io("make", &folder))?;
        Ok(folder)
    }

    fn make(&mut self) -> Result<(), DatabaseError> {
        if self.lock.is_some() {
            return Ok(());
        }
        remove_all_leftovers();
        open_folder(&self.path).map_err(DatabaseError::io("make", &self.path))?;
        // The mark comes after the lock, so that no other run takes the folder for a leftover.
        self.lock = Some(lock(&self.path)?);
        Mark::begun(BTreeMap::new()).write(&self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = discard(&self.path); // the next run removes what stays
        }
    }
}

/// Removes the scratch folder of a run that was killed, at the path that
/// [`Databases::scratch_folder`] gave. Returns false if it does not exist.
///
/// # Errors
/// Plimsoll did not make the folder, or its run is alive.
///
/// [`Databases::scratch_folder`]: crate::Databases::scratch_folder
pub fn remove_leftovers(place: &Path) -> Result<bool, DatabaseError> {
    match Mark::find(place) {
        FolderOwner::Empty if !place.exists() => return Ok(false),
        FolderOwner::Marked(_) => {}
        FolderOwner::Empty => return Err(foreign(place, "it is empty")),
        FolderOwner::Foreign(why) => return Err(foreign(place, &why)),
    }
    let _lock = lock(place)?;
    discard(place).map_err(DatabaseError::io("remove", place))?;
    Ok(true)
}

/// Removes the folder with all data in it. The servers must have ended.
fn discard(place: &Path) -> io::Result<()> {
    let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    below(place).flat_map(|folder| below(&folder).collect::<Vec<_>>()).for_each(|data| shared_memory::remove(&data));
    // The mark goes last. A server that still writes may keep its folder: with the mark, the next run removes that.
    below(place).filter(|path| path.is_dir()).try_for_each(fs::remove_dir_all)?;
    fs::remove_dir_all(place)
}

fn foreign(place: &Path, why: &str) -> DatabaseError {
    DatabaseError::Failed(format!("{} was not made by Plimsoll: {why}; it is left as it is", place.display()))
}

/// Removes the scratch folders of killed runs of this user, and of killed agents, with the data in them.
pub fn remove_all_leftovers() {
    remove_all_leftovers_in(Path::new(PLACE));
}

fn remove_all_leftovers_in(place: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|folder| folder.is_dir() && folder.uid() == own);
        if ours {
            let _ = remove_leftovers(&entry.path()); // fails for a living run, or for a foreign folder
        }
    }
}

/// Makes a folder through which other users can reach their own files in it.
pub(crate) fn open_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o711))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_is_made_late_and_goes_with_its_run() {
        let mut scratch = Scratch::new();
        let path = scratch.path().to_owned();
        assert!(!path.exists());
        let (first, second) = (scratch.folder().unwrap(), scratch.folder().unwrap());
        assert_ne!(first, second);
        assert!(first.starts_with(&path) && first.is_dir());
        let said = remove_leftovers(&path).unwrap_err().to_string();
        assert!(said.contains("in use by another run"), "{said}");
        drop(scratch);
        assert!(!path.exists());
        assert!(!remove_leftovers(&path).unwrap());
    }

    #[test]
    fn what_a_killed_run_left_is_swept_and_what_is_not_ours_stays() {
        let place = tempfile::tempdir().unwrap();
        let [left, alive, foreign, other] =
            ["plimsoll-left", "plimsoll-alive", "plimsoll-foreign", "other"].map(|name| place.path().join(name));
        for folder in [&left, &alive, &foreign, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "").unwrap();
        }
        for folder in [&left, &alive, &other] {
            Mark::begun(BTreeMap::new()).write(folder).unwrap();
        }
        let _alive = lock(&alive).unwrap();
        remove_all_leftovers_in(place.path());
        assert_eq!([&left, &alive, &foreign, &other].map(|folder| folder.exists()), [false, true, true, true]);
        assert!(remove_leftovers(&foreign).unwrap_err().to_string().contains("was not made by Plimsoll"));
    }
}
