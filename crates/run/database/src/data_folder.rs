//! The folder with the data of one database between trials.

use crate::disk::{self, Method};
use crate::engine::{self, Installation, Place};
use crate::error::DatabaseError;
use crate::mark::{FolderOwner, LOCK, MARK, Mark, lock};
use crate::scratch::open_folder;
use crate::shared_memory;
use plimsoll_model::database::{Condition, Dataset, LOADED, SERVICE, Server, Snapshot};
use plimsoll_model::storage::Secret;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of the loaded data.
const SNAPSHOT: &str = "loaded";
/// The file with the password of its user, for later runs.
const PASSWORD: &str = "password";
/// The file with the conditions of the data right after it was loaded.
const CONDITIONS: &str = "conditions.json";
/// The prefix of folders with copies for trials; a number follows.
const COPY: &str = "trial-";

/// Raised whenever `plimsoll_oltp::load` makes other tables, or other rows, of the same dataset: data
/// that was kept before is then refused. Tests of `plimsoll_oltp` notice that it does.
const SCHEMA: u32 = 1;

/// The data of one database.
#[derive(Debug)]
pub(crate) struct DataFolder {
    folder: PathBuf,
    /// The lock of a kept folder while it is in use.
    _lock: Option<File>,
    /// The folder with a folder for each of its servers.
    pub(crate) sockets: PathBuf,
    pub(crate) password: Secret,
    /// Bytes of the snapshot.
    pub(crate) size: u64,
    /// True if an earlier run has made it.
    pub(crate) kept: bool,
    copies: AtomicU32,
    /// The servers that had a place so far.
    servers: AtomicU32,
}

/// Writes the conditions of the data right after it was loaded. Some cannot be evaluated later.
pub(crate) fn write_conditions(folder: &Path, conditions: &[Condition]) -> Result<(), DatabaseError> {
    let path = folder.join(CONDITIONS);
    let text = serde_json::to_vec(conditions).map_err(io::Error::from);
    text.and_then(|text| fs::write(&path, text)).map_err(DatabaseError::io("write", &path))
}

/// A folder that was claimed for the data of a database.
#[derive(Debug)]
pub(crate) enum Claim {
    /// It has the data that the study asks for.
    Kept { lock: File, size: u64, password: Secret },
    /// It is empty now. `made` is true if it did not exist before.
    Empty { lock: Option<File>, made: bool },
}

/// The inputs of a snapshot, as texts. Two snapshots with equal inputs are the same.
pub(crate) fn made_from(
    installation: &Installation,
    server: &Server,
    dataset: &Dataset,
) -> Result<BTreeMap<String, String>, DatabaseError> {
    let snapshot = match server.snapshot {
        Snapshot::Copy => "copy",
        Snapshot::Template => "template",
    };
    let mut parts = vec![
        ("server", installation.version.clone()),
        ("init", installation.init.join(" ")),
        ("user", installation.user.name.clone()),
        ("snapshot", snapshot.to_owned()),
        ("schema", SCHEMA.to_string()),
    ];
    // Without these, data that was kept before studies could name them would be refused.
    for (what, names, usual) in [("databases", &server.databases, LOADED), ("roles", &server.roles, SERVICE)] {
        if names.as_slice() != [usual] {
            parts.push((what, names.join(", ")));
        }
    }
    match dataset {
        Dataset::Tpcc { warehouses, seed } => {
            parts.extend([
                ("data", "TPC-C".to_owned()),
                ("warehouses", warehouses.to_string()),
                ("seed", seed.to_string()),
            ]);
        }
        Dataset::Sbtest { tables, rows, seed } => {
            parts.extend([("data", "sysbench OLTP".to_owned()), ("tables", tables.to_string())]);
            parts.extend([("rows", rows.to_string()), ("seed", seed.to_string())]);
        }
        Dataset::Scripts(files) => {
            let hash = |file: &PathBuf| plimsoll_system::sha256(file).map_err(DatabaseError::io("read", file));
            let hashes = files.iter().map(hash).collect::<Result<Vec<String>, _>>()?;
            parts.push(("data", format!("SQL files with SHA-256 {}", hashes.join(", "))));
        }
        Dataset::Empty => parts.push(("data", "nothing".to_owned())),
    }
    Ok(parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Fails if a folder cannot hold the data. Does not touch the folder.
pub(crate) fn check(folder: &Path, asked: &BTreeMap<String, String>) -> Result<(), DatabaseError> {
    match Mark::find(folder) {
        FolderOwner::Empty => Ok(()),
        FolderOwner::Foreign(why) => Err(DatabaseError::Failed(format!(
            "{} was not made by Plimsoll: {why}; it is left as it is. Let `data` name a folder that is empty or not \
             there yet",
            folder.display()
        ))),
        FolderOwner::Marked(mark) if !mark.finished => Ok(()),
        FolderOwner::Marked(mark) => match mark.differences(asked) {
            none if none.is_empty() => Ok(()),
            differences => Err(DatabaseError::Failed(format!(
                "the data kept in {} is not what the study asks for ({}); let `data` name another folder (it may hold \
                 placeholders, like `data-{{version}}`), or remove this one, so that it is made anew",
                folder.display(),
                differences.join("; ")
            ))),
        },
    }
}

/// Claims a kept folder for this run alone.
pub(crate) fn claim(folder: &Path, asked: &BTreeMap<String, String>) -> Result<Claim, DatabaseError> {
    check(folder, asked)?;
    let made = !folder.exists();
    if made {
        let parent = folder.parent().unwrap_or(folder);
        let make = || fs::create_dir_all(parent).and_then(|()| open_folder(folder));
        make().map_err(DatabaseError::io("make", folder))?;
    }
    let lock = lock(folder)?;
    check(folder, asked)?; // another run may have had it until now
    remove_copies(folder);
    match Mark::find(folder) {
        FolderOwner::Marked(mark) if mark.finished => {
            let path = folder.join(PASSWORD);
            let password = fs::read_to_string(&path).map(Secret).map_err(DatabaseError::io("read", &path))?;
            Ok(Claim::Kept { lock, size: mark.size, password })
        }
        _ => {
            clear(folder)?;
            Mark::begun(asked.clone()).write(folder)?;
            Ok(Claim::Empty { lock: Some(lock), made })
        }
    }
}

/// The bytes that [`claim`] frees on the disk of a folder: copies that a killed run has left, and data that it has not
/// finished. If another run still has the folder, `claim` fails and nothing is made.
pub(crate) fn left_over(folder: &Path) -> u64 {
    let FolderOwner::Marked(mark) = Mark::find(folder) else { return 0 };
    let is_left = |name: &str| name.starts_with(COPY) || (name == SNAPSHOT && !mark.finished);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let left = entries.filter(|entry| is_left(&entry.file_name().to_string_lossy()));
    left.map(|entry| disk::allocated(&entry.path())).sum()
}

/// Removes the copies that a killed run has left.
fn remove_copies(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(COPY) {
            let _ = discard(&entry.path()); // otherwise the disk may lack space for the next
        }
    }
}

/// Removes the data of a server that has ended.
fn discard(data: &Path) -> io::Result<()> {
    shared_memory::remove(data);
    fs::remove_dir_all(data)
}

/// Removes the data in a marked folder, but not its mark.
fn clear(folder: &Path) -> Result<(), DatabaseError> {
    let snapshot = folder.join(SNAPSHOT);
    if snapshot.exists() {
        discard(&snapshot).map_err(DatabaseError::io("remove", &snapshot))?;
    }
    for name in [PASSWORD, CONDITIONS] {
        let _ = fs::remove_file(folder.join(name)); // it may not be there
    }
    Ok(())
}

/// Restores a folder to its state before it was claimed.
pub(crate) fn release(folder: &Path, made: bool) {
    // If this fails, the mark says that the data is unfinished, and the next run makes it anew.
    if clear(folder).is_ok() {
        let _ = fs::remove_file(folder.join(MARK));
        let _ = fs::remove_file(folder.join(LOCK));
        if made {
            let _ = fs::remove_dir(folder);
        }
    }
}

impl DataFolder {
    /// A folder whose data an earlier run has made.
    pub(crate) fn kept(folder: PathBuf, sockets: PathBuf, lock: File, size: u64, password: Secret) -> DataFolder {
        DataFolder {
            folder,
            _lock: Some(lock),
            sockets,
            password,
            size,
            kept: true,
            copies: AtomicU32::new(0),
            servers: AtomicU32::new(0),
        }
    }

    /// A folder whose data was just made.
    pub(crate) fn made(
        folder: PathBuf,
        sockets: PathBuf,
        lock: Option<File>,
        password: Secret,
        made_from: BTreeMap<String, String>,
    ) -> Result<DataFolder, DatabaseError> {
        let snapshot = folder.join(SNAPSHOT);
        let size = disk::size_of(&snapshot)?;
        if lock.is_some() {
            engine::write_secret(&folder.join(PASSWORD), &password.0, None)?;
            disk::sync(&folder)?; // the mark must not be there before the data
            Mark::begun(made_from).finished(size).write(&folder)?;
        } else {
            disk::sync(&folder)?;
        }
        Ok(DataFolder {
            folder,
            _lock: lock,
            sockets,
            password,
            size,
            kept: false,
            copies: AtomicU32::new(0),
            servers: AtomicU32::new(0),
        })
    }

    /// The working folder for commands of the server.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the loaded data.
    pub(crate) fn snapshot(&self) -> PathBuf {
        snapshot_in(&self.folder)
    }

    /// The conditions of the data right after it was loaded; empty if an older version has not written them.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let noted = fs::read(self.folder.join(CONDITIONS)).ok();
        noted.and_then(|noted| serde_json::from_slice(&noted).ok()).unwrap_or_default()
    }

    /// Copies the snapshot for a trial.
    pub(crate) fn copy(&self, installation: &Installation) -> Result<(Copy, Method), DatabaseError> {
        let number = self.copies.fetch_add(1, Ordering::Relaxed) + 1;
        let copy = Copy(self.folder.join(format!("{COPY}{number}")));
        let method = disk::copy(&self.snapshot(), &copy.0, &installation.user, self.size)?;
        Ok((copy, method))
    }

    /// The place for a server of `data`, with a new folder for its socket: where variants take turns, several servers of
    /// one database are alive.
    pub(crate) fn place(
        &self,
        installation: &Installation,
        data: PathBuf,
        listen: IpAddr,
        port: u16,
    ) -> Result<Place, DatabaseError> {
        let number = self.servers.fetch_add(1, Ordering::Relaxed) + 1;
        let sockets = self.sockets.join(number.to_string());
        installation.user.make_folder(&sockets, 0o755).map_err(DatabaseError::io("make", &sockets))?;
        let place = Place { data, sockets, listen, port };
        installation.write_access(&place)?;
        Ok(place)
    }
}

impl Drop for DataFolder {
    /// Removes shared memory of a server that has served the snapshot itself.
    fn drop(&mut self) {
        shared_memory::remove(&self.snapshot());
    }
}

/// The folder of the snapshot in a data folder.
pub(crate) fn snapshot_in(folder: &Path) -> PathBuf {
    folder.join(SNAPSHOT)
}

/// The copy for a trial. It is removed when dropped.
#[derive(Debug)]
pub(crate) struct Copy(pub(crate) PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = discard(&self.0); // what stays is removed with the folder, or by the next run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_from(schema: &str) -> BTreeMap<String, String> {
        [("data", "TPC-C"), ("schema", schema)].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn a_snapshot_that_is_older_than_the_schema_is_refused_and_left() {
        let folder = tempfile::tempdir().unwrap();
        Mark::begun(made_from("1")).finished(7).write(folder.path()).unwrap();
        assert!(check(folder.path(), &made_from("1")).is_ok());
        let said = claim(folder.path(), &made_from("2")).unwrap_err().to_string();
        assert!(said.contains("schema: it has 1, the study asks for 2"), "{said}");
        assert!(said.contains("let `data` name another folder") && said.contains("remove this one"), "{said}");
        assert!(folder.path().join(MARK).exists() && !folder.path().join(LOCK).exists());
    }

    #[test]
    fn a_folder_is_given_back_as_it_was_found() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("deeper/data");
        let Claim::Empty { lock, made } = claim(&folder, &made_from("1")).unwrap() else { panic!("it is empty") };
        assert!(lock.is_some() && made);
        fs::create_dir(folder.join(SNAPSHOT)).unwrap();
        release(&folder, made);
        assert!(!folder.exists() && place.path().join("deeper").exists());
    }

    #[test]
    fn what_a_claim_removes_is_counted_before() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["trial-1", SNAPSHOT] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("1"), vec![7; 1 << 20]).unwrap();
        }
        assert_eq!(left_over(folder.path()), 0, "it is not Plimsoll's");
        Mark::begun(made_from("1")).finished(1 << 20).write(folder.path()).unwrap();
        let of_copy = left_over(folder.path());
        assert!(of_copy > 0);
        Mark::begun(made_from("1")).write(folder.path()).unwrap();
        assert!(left_over(folder.path()) > of_copy, "data that was not finished goes too");
        let _claim = claim(folder.path(), &made_from("1")).unwrap();
        assert_eq!((left_over(folder.path()), folder.path().join(SNAPSHOT).exists()), (0, false));
    }
}
