//! The file that marks a folder as Plimsoll's and describes its data.

use crate::error::DatabaseError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// The name of the file.
pub(crate) const MARK: &str = "plimsoll.json";
/// The file that the user of a folder locks.
pub(crate) const LOCK: &str = "plimsoll.lock";
/// The value of `made_by`.
const MAKER: &str = "plimsoll";
/// The version of the layout of folders.
const LAYOUT: u32 = 1;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    made_by: String,
    layout: u32,
    /// True if the data is complete. It is not if the run was killed while it made the data.
    pub(crate) finished: bool,
    /// The inputs of the data: names and values.
    pub(crate) made_from: BTreeMap<String, String>,
    /// The size of the data in bytes.
    pub(crate) size: u64,
}

/// The owner of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FolderOwner {
    /// The folder is empty, or does not exist.
    Empty,
    /// Plimsoll made the folder.
    Marked(Mark),
    /// Plimsoll did not make the folder, with the reason for that conclusion.
    Foreign(String),
}

impl Mark {
    /// The mark of a folder whose data is about to be made.
    pub(crate) fn begun(made_from: BTreeMap<String, String>) -> Mark {
        Mark { made_by: MAKER.to_owned(), layout: LAYOUT, finished: false, made_from, size: 0 }
    }

    /// The mark of the same folder once the data is complete.
    pub(crate) fn finished(self, size: u64) -> Mark {
        Mark { finished: true, size, ..self }
    }

    /// Determines the owner of a folder.
    pub(crate) fn find(folder: &Path) -> FolderOwner {
        match fs::read(folder.join(MARK)) {
            Ok(bytes) => Mark::parse(&bytes).map_or_else(FolderOwner::Foreign, FolderOwner::Marked),
            Err(_) if is_empty(folder) => FolderOwner::Empty,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                FolderOwner::Foreign(format!("it has no {MARK}"))
            }
            Err(error) => FolderOwner::Foreign(format!("its {MARK} cannot be read: {error}")),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Mark, String> {
        let mark: Mark = serde_json::from_slice(bytes).map_err(|error| format!("its {MARK} is another's: {error}"))?;
        match mark.made_by == MAKER && mark.layout == LAYOUT {
            true => Ok(mark),
            false => Err(format!("its {MARK} is of {} with layout {}, not {LAYOUT}", mark.made_by, mark.layout)),
        }
    }

    /// Writes the mark atomically, and syncs it.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), DatabaseError> {
        let new = folder.join("plimsoll.json.new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()?;
            fs::rename(&new, folder.join(MARK))?;
            File::open(folder)?.sync_all()
        };
        write().map_err(DatabaseError::io("write", &folder.join(MARK)))
    }

    /// Describes the inputs in which the data differs from what the study asks for.
    pub(crate) fn differences(&self, asked: &BTreeMap<String, String>) -> Vec<String> {
        let none = || "nothing".to_owned();
        let names = self.made_from.keys().chain(asked.keys().filter(|name| !self.made_from.contains_key(*name)));
        let differing = names.filter(|name| self.made_from.get(*name) != asked.get(*name));
        let described = differing.map(|name| {
            let of = |values: &BTreeMap<String, String>| values.get(name).cloned().unwrap_or_else(none);
            format!("{name}: it has {}, the study asks for {}", of(&self.made_from), of(asked))
        });
        described.collect()
    }
}

fn is_empty(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == LOCK)),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Locks a folder for this process, until the file is dropped. The error names the process that has it.
pub(crate) fn lock(folder: &Path) -> Result<File, DatabaseError> {
    let path = folder.join(LOCK);
    let open = || File::options().create(true).truncate(false).read(true).write(true).open(&path);
    let mut file = open().map_err(DatabaseError::io("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder); // empty for an instant after it was taken
            return Err(DatabaseError::Failed(format!(
                "{} is in use by another run (process {}); wait until that is over, or name another folder",
                folder.display(),
                holder.trim()
            )));
        }
        Err(error) => return Err(DatabaseError::io("lock", &path)(error.into())),
    }
    let mut note = || {
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{}", std::process::id())
    };
    note().map_err(DatabaseError::io("write", &path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_from(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn a_mark_is_found_as_it_was_written_and_nothing_else_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(Mark::find(&path.join("absent")), FolderOwner::Empty);
        let _lock = lock(path).unwrap();
        assert_eq!(Mark::find(path), FolderOwner::Empty, "a lock alone is nothing");
        let mark = Mark::begun(made_from(&[("server", "PostgreSQL 15.18")])).finished(42);
        mark.write(path).unwrap();
        assert_eq!(Mark::find(path), FolderOwner::Marked(mark));
        for other in ["{}", r#"{"made_by":"plimsoll","layout":2,"finished":true,"made_from":{},"size":1}"#, "x"] {
            fs::write(path.join(MARK), other).unwrap();
            assert!(matches!(Mark::find(path), FolderOwner::Foreign(_)), "{other}");
        }
        fs::remove_file(path.join(MARK)).unwrap();
        fs::write(path.join("PG_VERSION"), "15").unwrap();
        assert_eq!(Mark::find(path), FolderOwner::Foreign("it has no plimsoll.json".to_owned()));
    }

    #[test]
    fn whatever_differs_is_told_with_both_values() {
        let mark =
            Mark::begun(made_from(&[("server", "PostgreSQL 15.18"), ("data", "TPC-C, 2 warehouses"), ("init", "")]));
        assert_eq!(mark.differences(&mark.made_from.clone()), Vec::<String>::new());
        let asked = made_from(&[("server", "PostgreSQL 17.2"), ("data", "TPC-C, 2 warehouses"), ("schema", "3")]);
        assert_eq!(
            mark.differences(&asked),
            [
                "init: it has , the study asks for nothing",
                "server: it has PostgreSQL 15.18, the study asks for PostgreSQL 17.2",
                "schema: it has nothing, the study asks for 3",
            ]
        );
    }

    #[test]
    fn two_runs_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        let said = lock(folder.path()).unwrap_err().to_string();
        assert!(said.contains(&format!("in use by another run (process {})", std::process::id())), "{said}");
        drop(first);
        lock(folder.path()).unwrap();
    }
}
