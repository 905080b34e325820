//! Copies of folders, and the disk space for them.

use crate::account::Account;
use crate::error::DatabaseError;
use plimsoll_system::free_space;
use rustix::fs::{ioctl_ficlone, syncfs};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The free bytes to leave beside a copy, for what the server writes.
const MARGIN: u64 = 64 << 20;
/// The unit in which the kernel counts what a file takes on its disk, whatever the blocks of that disk.
const BLOCK: u64 = 512;

/// How files were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// By reference to the same blocks.
    Reflink,
    /// Byte by byte.
    Plain,
}

impl Method {
    /// The text for reports.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Method::Reflink => "copied (reflink)",
            Method::Plain => "copied",
        }
    }
}

/// Copies the folder `from` with its content to `to`, which the user then owns. Syncs the copy, so that its
/// write-back does not disturb what follows.
pub(crate) fn copy(from: &Path, to: &Path, user: &Account, size: u64) -> Result<Method, DatabaseError> {
    let mut copier = Copier { copy: to, user, size, method: Method::Reflink };
    copier.folder(from, to)?;
    sync(to)?;
    Ok(copier.method)
}

/// Syncs the file system of `path`.
pub(crate) fn sync(path: &Path) -> Result<(), DatabaseError> {
    let write = || io::Result::Ok(syncfs(File::open(path)?)?);
    write().map_err(DatabaseError::io("sync the disk of", path))
}

struct Copier<'a> {
    /// The folder of the copy, and its size in bytes.
    copy: &'a Path,
    size: u64,
    user: &'a Account,
    /// Reflinks, until the file system refuses one.
    method: Method,
}

impl Copier<'_> {
    fn folder(&mut self, from: &Path, to: &Path) -> Result<(), DatabaseError> {
        self.user.make_folder(to, 0o700).map_err(DatabaseError::io("make", to))?;
        for entry in entries(from)? {
            let to = to.join(entry.file_name());
            let kind = entry.file_type().map_err(DatabaseError::io("read", &entry.path()))?;
            if kind.is_dir() {
                self.folder(&entry.path(), &to)?;
            } else {
                self.file(&entry.path(), &to)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), DatabaseError> {
        let failed = DatabaseError::io("copy", from);
        let mut source = File::open(from).map_err(DatabaseError::io("read", from))?;
        let mut target = File::create_new(to).map_err(DatabaseError::io("make", to))?;
        if self.method == Method::Reflink && ioctl_ficlone(&target, &source).is_err() {
            self.method = Method::Plain;
            check_space(self.copy, self.size, "a copy of the data, which every trial needs")?;
        }
        let mut rest = || {
            if self.method == Method::Plain {
                io::copy(&mut source, &mut target)?;
            }
            target.set_permissions(source.metadata()?.permissions())?;
            self.user.give(to)
        };
        rest().map_err(failed)
    }
}

/// The size of all files below `folder` in bytes. Fails for symbolic links: all copies would share their
/// targets.
pub(crate) fn size_of(folder: &Path) -> Result<u64, DatabaseError> {
    let mut size = 0;
    for entry in entries(folder)? {
        let metadata = entry.metadata().map_err(DatabaseError::io("look at", &entry.path()))?;
        if metadata.is_symlink() {
            return Err(DatabaseError::Failed(format!(
                "{} is a link to another place, which cannot be restored with the data; leave out the argument of \
                 `init`, or the tablespace, that makes it",
                entry.path().display()
            )));
        }
        size += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(size)
}

/// The bytes that all files below `folder` take on their disk, as far as they can be looked at. Unlike their size, that
/// leaves out what was never written.
pub(crate) fn allocated(folder: &Path) -> u64 {
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => allocated(&entry.path()),
        Ok(metadata) => metadata.blocks() * BLOCK,
        Err(_) => 0, // it is gone already
    };
    fs::read_dir(folder).into_iter().flatten().flatten().map(of).sum()
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, DatabaseError> {
    let read = || fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>();
    read().map_err(DatabaseError::io("list", folder))
}

/// Fails unless the disk of `folder` has `size` bytes free, and [`MARGIN`] more.
fn check_space(folder: &Path, size: u64, what: &str) -> Result<(), DatabaseError> {
    let free = free_bytes(folder)?;
    if free >= size + MARGIN {
        return Ok(());
    }
    Err(DatabaseError::Failed(format!(
        "no space: {what}, takes {} MiB, and {} MiB are free on the disk of {}; free some of it, or let `data` name a \
         folder on another disk",
        (size >> 20) + (MARGIN >> 20),
        free >> 20,
        folder.display()
    )))
}

/// The free bytes on the disk of `folder`.
pub(crate) fn free_bytes(folder: &Path) -> Result<u64, DatabaseError> {
    free_space(folder).map_err(DatabaseError::io("look at the disk of", folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_copy_has_all_files_with_their_content_and_modes_and_its_size_is_known() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("base/empty")).unwrap();
        fs::write(from.join("PG_VERSION"), "15\n").unwrap();
        fs::write(from.join("base/1"), vec![7; 100_000]).unwrap();
        fs::set_permissions(from.join("base/1"), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(size_of(&from).unwrap(), 100_003);
        copy(&from, &to, &Account::find(None).unwrap(), 100_003).unwrap();
        assert_eq!(size_of(&to).unwrap(), 100_003);
        assert_eq!(fs::read(to.join("base/1")).unwrap(), vec![7; 100_000]);
        assert!(to.join("base/empty").is_dir());
        assert_eq!(fs::metadata(to.join("base/1")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn data_that_leads_elsewhere_is_refused() {
        let place = tempfile::tempdir().unwrap();
        symlink("/elsewhere", place.path().join("pg_wal")).unwrap();
        let said = size_of(place.path()).unwrap_err().to_string();
        assert!(said.contains("pg_wal is a link to another place"), "{said}");
    }

    #[test]
    fn a_disk_that_is_too_small_is_named_with_what_it_would_take() {
        let place = tempfile::tempdir().unwrap();
        check_space(place.path(), 0, "nothing").unwrap();
        let said = check_space(place.path(), 1 << 60, "a copy").unwrap_err().to_string();
        assert!(said.starts_with("no space: a copy, takes 1099511627840 MiB, and "), "{said}");
    }
}
