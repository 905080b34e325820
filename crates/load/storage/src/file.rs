//! Objects as files of a directory, on any file system.
//!
//! Each user has an open folder, in which names are looked up: no call builds or walks a path. Writes
//! take bytes straight from [`Content`]; reads go into one buffer per user.

use super::content::{ALIGNMENT, AlignedBuffer};
use super::{Cleaning, Content, Expected, Object, Session, Store, in_words, mount, residency, user_folder};
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::record::{ErrorKind, Part};
use plimsoll_model::storage::{FileSystem, Mode, Residency, Storage, StorageFacts};
use rustix::fs::{AtFlags, CWD, Mode as Permissions, OFlags, StatxFlags, fsync, openat, statvfs, statx, unlinkat};
use rustix::io::{Errno, read, retry_on_intr, write};
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

#[cfg(test)]
mod tests;

/// The smallest unit of lengths for `O_DIRECT`: the smallest sector of disks.
const SECTOR: u64 = 512;

/// The time in which a file system hears that files of a deleted folder are closed.
const LATE_CLOSES: Duration = Duration::from_secs(5);

/// A directory, of this machine or of a network file system that is mounted here.
#[derive(Debug)]
pub(crate) struct DirectoryStore {
    path: PathBuf,
    storage: Arc<Storage>,
    content: Arc<Content>,
    trial_directory: Mutex<TrialDirectory>,
}

/// The directory of a trial, and the properties of its file system.
#[derive(Debug, Default)]
struct TrialDirectory {
    made_directory: bool,
    trial: Option<PathBuf>,
    file_system: Option<FileSystem>,
    /// The unit of lengths for `O_DIRECT`.
    direct_unit: Option<u64>,
}

/// The open folder and the buffer of one user.
struct DirectorySession {
    storage: Arc<Storage>,
    content: Arc<Content>,
    path: PathBuf,
    folder: OwnedFd,
    /// The flags for opening files, without those for reading or writing.
    flags: OFlags,
    /// The unit of the length of reads: 1, or more with `O_DIRECT`.
    unit: usize,
    /// A buffer for a block and a unit.
    buffer: AlignedBuffer,
}

impl DirectoryStore {
    /// A store below `path`, which is made if it is missing.
    ///
    /// # Errors
    /// The size of objects does not allow `O_DIRECT`.
    pub(crate) fn new(storage: &Storage, path: PathBuf, content: Arc<Content>) -> Result<DirectoryStore, String> {
        if storage.mode == Mode::Direct {
            check_lengths(storage, SECTOR)?;
        }
        Ok(DirectoryStore { path, storage: Arc::new(storage.clone()), content, trial_directory: Mutex::default() })
    }

    fn make(&self) -> Result<(), Failure> {
        let mut directory_of_trial = self.trial_directory();
        directory_of_trial.made_directory = make_if_missing(&self.path)?;
        let directory = self.path.canonicalize().map_err(|error| failed("look at", &self.path, error))?;
        let trial = directory.join(trial_folder());
        self.make_folder(&trial)?;
        directory_of_trial.trial = Some(trial.clone());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        directory_of_trial.file_system = mount::file_system(&mounts, &directory);
        if self.storage.mode == Mode::Direct {
            let unit = direct_unit(&trial)?;
            check_lengths(&self.storage, unit).map_err(|fault| Failure::new(ErrorKind::Io, fault))?;
            directory_of_trial.direct_unit = Some(unit);
        }
        Ok(())
    }

    /// Makes a folder that did not exist. In mode `durable` it survives a loss of power, unless the study
    /// leaves out syncing directories.
    fn make_folder(&self, path: &Path) -> Result<(), Failure> {
        fs::create_dir(path).map_err(|error| failed("make", path, error))?;
        if self.storage.syncs_directory() {
            let parent = path.parent().expect("folders of a trial have a parent");
            let synced = fs::File::open(parent).and_then(|folder| folder.sync_all());
            synced.map_err(|error| failed("sync", parent, error))?;
        }
        Ok(())
    }

    fn begin(&self, user: u32) -> Result<DirectorySession, Failure> {
        let path = self.trial().join(user_folder(user));
        self.make_folder(&path)?;
        let folder = openat(CWD, &path, OFlags::DIRECTORY | OFlags::CLOEXEC, Permissions::empty());
        let folder = folder.map_err(|error| failed("open", &path, error))?;
        let unit = self.trial_directory().direct_unit;
        let direct = unit.map_or(OFlags::empty(), |_| OFlags::DIRECT);
        let unit = unit.unwrap_or(1) as usize;
        Ok(DirectorySession {
            storage: Arc::clone(&self.storage),
            content: Arc::clone(&self.content),
            path,
            folder,
            flags: OFlags::CLOEXEC | direct,
            unit,
            buffer: AlignedBuffer::new(self.storage.block as usize + unit),
        })
    }

    fn trial(&self) -> PathBuf {
        self.trial_directory().trial.clone().expect("sessions begin after the place was made")
    }

    fn trial_directory(&self) -> MutexGuard<'_, TrialDirectory> {
        self.trial_directory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for DirectoryStore {
    fn prepare(&self) -> Result<(), Failure> {
        self.make().inspect_err(|_| drop(self.clean_up(&Cleaning::default())))
    }

    fn session(&self, user: u32) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(self.begin(user)?))
    }

    fn free_space(&self) -> Option<u64> {
        free_space(&self.trial()).ok()
    }

    fn describe(&self, facts: &mut StorageFacts) {
        let TrialDirectory { file_system, direct_unit, .. } = &*self.trial_directory();
        facts.kind = "directory".to_owned();
        facts.place = self.path.display().to_string();
        facts.file_system.clone_from(file_system);
        facts.on_this_machine = file_system.as_ref().is_some_and(mount::on_this_machine);
        facts.page_cache = true;
        let network = file_system.as_ref().is_some_and(|file_system| file_system.network);
        let tunnel = "mounted from a loopback address: a server here, or a tunnel to one elsewhere";
        let tunnel = (network && facts.on_this_machine).then(|| tunnel.to_owned());
        let unit = direct_unit.map(|unit| format!("O_DIRECT in multiples of {unit} bytes"));
        facts.details.extend(tunnel.into_iter().chain(unit));
    }

    fn clean_up(&self, cleaning: &Cleaning) -> Vec<String> {
        let mut directory_of_trial = self.trial_directory();
        let mut left = Vec::new();
        let mut note = |path: &Path, removed: io::Result<()>| {
            left.extend(removed.err().map(|error| format!("{}: {error}", path.display())));
        };
        if let Some(trial) = directory_of_trial.trial.take() {
            if !remove_objects(&trial, cleaning) {
                return Vec::new();
            }
            note(&trial, remove_folder(&trial));
        }
        if std::mem::take(&mut directory_of_trial.made_directory) {
            // Others may use it by now.
            note(&self.path, fs::remove_dir(&self.path).or_else(unless_in_use));
        }
        left
    }
}

/// Removes a folder with all that is in it. A file that was deleted while it was open is put aside in its folder by FUSE and
/// NFS, and they hear of its close some time later: the folder is empty then.
fn remove_folder(folder: &Path) -> io::Result<()> {
    let give_up = Instant::now() + LATE_CLOSES;
    loop {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(20));
            }
            ended => return ended,
        }
    }
}

/// Removes the objects in the folders of all users, one by one, so that whoever waits sees that it goes on. Returns false if
/// nobody does any more. Whatever cannot be removed is found when the folders are.
fn remove_objects(trial: &Path, cleaning: &Cleaning) -> bool {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    for user in entries(trial) {
        for object in entries(&user.path()) {
            if fs::remove_file(object.path()).is_ok() && !cleaning.goes_on() {
                return false;
            }
        }
    }
    true
}

impl Session for DirectorySession {
    fn write(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let (file, new) = call.part(Part::Open, |_| self.open_to_write(&object.name))?;
        call.part(Part::Data, |call| self.write_content(&file, object, call))?;
        if self.storage.mode == Mode::Durable {
            call.part(Part::Sync, |_| self.sync(&file, &object.name, new))?;
        }
        close(call, file)
    }

    fn read(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let file = call.part(Part::Open, |_| self.open(&object.name, OFlags::RDONLY | self.flags, "open"))?;
        call.part(Part::Data, |call| self.read_content(&file, object, call))?;
        close(call, file)
    }

    fn list(&mut self, expected: &Expected, _call: &mut Call) -> Result<(), Failure> {
        let counted = |counts: fn(&DirEntry) -> bool| {
            let mut entries = fs::read_dir(&self.path)?;
            entries.try_fold(0, |count, entry| Ok(count + usize::from(counts(&entry?))))
        };
        let is_object = |entry: &DirEntry| !is_put_aside(&entry.file_name());
        // Names take time, and are asked for only where the number is not right.
        let found = match counted(|_| true) {
            Ok(found) if !expected.contains(&found) => counted(is_object),
            found => found,
        };
        let found: usize = found.map_err(|error: io::Error| failed("list", &self.path, error))?;
        if !expected.contains(&found) {
            let expected = in_words(expected);
            let detail = format!("expected {expected} objects in {}, found {found}", self.path.display());
            return Err(Failure::new(ErrorKind::Check, detail));
        }
        Ok(())
    }

    fn delete(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        unlinkat(&self.folder, &object.name, AtFlags::empty())
            .map_err(|error| self.failed("delete", &object.name, error))?;
        self.sync_deletion(call)
    }

    fn discard(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        match unlinkat(&self.folder, &object.name, AtFlags::empty()) {
            // An earlier attempt may have deleted it, and failed afterwards.
            Ok(()) | Err(Errno::NOENT) => self.sync_deletion(call),
            Err(error) => Err(self.failed("delete", &object.name, error)),
        }
    }

    fn before_read(&mut self, object: &Object) -> Result<Residency, Failure> {
        let file = self.open(&object.name, OFlags::RDONLY | OFlags::CLOEXEC, "open")?;
        if self.storage.mode != Mode::Cold {
            // Not every kernel can tell.
            return Ok(residency::residency(file.as_fd(), object.size).unwrap_or_default());
        }
        let left = residency::drop_from_cache(file.as_fd(), object.size);
        let left = left.map_err(|error| failed("drop the cached pages of", &self.path.join(&object.name), error))?;
        if left.cached > 0 { Err(self.stayed(&object.name, left)) } else { Ok(left) }
    }
}

impl DirectorySession {
    /// Syncs the directory after a deletion, if the study syncs directories.
    fn sync_deletion(&self, call: &mut Call) -> Result<(), Failure> {
        if self.storage.syncs_directory() {
            call.part(Part::Sync, |_| fsync(&self.folder).map_err(|error| failed("sync", &self.path, error)))?;
        }
        Ok(())
    }

    /// Opens the file of an object for writing. Returns also whether it is new.
    fn open_to_write(&self, name: &str) -> Result<(OwnedFd, bool), Failure> {
        let flags = OFlags::WRONLY | self.flags;
        if self.storage.overwrite {
            match openat(&self.folder, name, flags | OFlags::TRUNC, Permissions::empty()) {
                Err(Errno::NOENT) => {}
                opened => return opened.map(|file| (file, false)).map_err(|error| self.failed("open", name, error)),
            }
        }
        self.open(name, flags | OFlags::CREATE | OFlags::EXCL, "create").map(|file| (file, true))
    }

    fn open(&self, name: &str, flags: OFlags, doing: &str) -> Result<OwnedFd, Failure> {
        let opened = openat(&self.folder, name, flags, Permissions::from_raw_mode(0o666));
        opened.map_err(|error| self.failed(doing, name, error))
    }

    fn write_content(&self, file: &OwnedFd, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let mut offset = 0;
        while offset < object.size {
            call.go_on()?;
            let block = self.content.slice(object.number, offset, (object.size - offset) as usize);
            let written = retry_on_intr(|| write(file, block));
            let written = written.map_err(|error| self.failed("write", &object.name, error))?;
            call.sent(written);
            offset += written as u64;
        }
        Ok(())
    }

    /// Syncs the bytes of an object, and its name if it is new and the study syncs directories.
    fn sync(&self, file: &OwnedFd, name: &str, new: bool) -> Result<(), Failure> {
        fsync(file).map_err(|error| self.failed("sync", name, error))?;
        if new && self.storage.syncs_directory() {
            fsync(&self.folder).map_err(|error| failed("sync", &self.path, error))?;
        }
        Ok(())
    }

    /// Reads a whole object. The last read requests a little more than the object should have, so that an
    /// object that is too long is found without another call.
    fn read_content(&mut self, file: &OwnedFd, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let block = self.storage.block as usize;
        let mut offset = 0;
        loop {
            call.go_on()?;
            let left = (object.size - offset) as usize;
            let longest = if left <= block { left + self.unit } else { block };
            let count = retry_on_intr(|| read(file, &mut self.buffer.bytes_mut()[..longest]));
            let count = count.map_err(|error| self.failed("read", &object.name, error))?;
            call.saw_first_byte();
            call.received(count);
            self.check(object, offset, count)?;
            offset += count as u64;
            if offset == object.size {
                return Ok(());
            }
        }
    }

    /// Checks the `count` bytes in the buffer, which were read at `offset` of the object.
    fn check(&self, object: &Object, offset: u64, count: usize) -> Result<(), Failure> {
        let path = || self.path.join(&object.name).display().to_string();
        let end = offset + count as u64;
        if end > object.size {
            let detail = format!("expected {} bytes in {}, found more", object.size, path());
            return Err(Failure::new(ErrorKind::Check, detail));
        }
        if count == 0 && end < object.size {
            let detail = format!("expected {} bytes in {}, found {end}", object.size, path());
            return Err(Failure::new(ErrorKind::Closed, detail));
        }
        let bytes = &self.buffer.bytes()[..count];
        let different = self.storage.verify.then(|| self.content.first_difference(object.number, offset, bytes));
        different.flatten().map_or(Ok(()), |at| {
            let detail = format!("{} differs from what was written at byte {at}", path());
            Err(Failure::new(ErrorKind::Check, detail))
        })
    }

    fn failed(&self, doing: &str, name: &str, error: Errno) -> Failure {
        let path = self.path.join(name);
        if self.storage.mode == Mode::Direct && error == Errno::INVAL {
            refused(&path)
        } else {
            failed(doing, &path, error)
        }
    }

    fn stayed(&self, name: &str, found: Residency) -> Failure {
        let detail = format!(
            "failed to drop {} from the page cache: {} of {} pages stayed, as they do on a file system that lives in \
             memory, or while another process maps the file; use another directory, or a mode other than `cold`",
            self.path.join(name).display(),
            found.cached,
            found.pages
        );
        Failure::new(ErrorKind::Io, detail)
    }
}

/// True for a file that was deleted while the file system still had it open, which keeps it under a name of its own until
/// it is closed: FUSE closes files some time after the program has, and NFS's client has no other way either.
fn is_put_aside(name: &OsStr) -> bool {
    [b".fuse_hidden".as_slice(), b".nfs"].iter().any(|begin| name.as_bytes().starts_with(begin))
}

/// Bytes that an unprivileged user can still write to the file system of `path`.
fn free_space(path: &Path) -> io::Result<u64> {
    let found = statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Closes a file. A network file system may send buffered bytes only now, so an error may appear only
/// here.
fn close(call: &mut Call, file: OwnedFd) -> Result<(), Failure> {
    call.part(Part::Close, |_| {
        let raw = file.into_raw_fd();
        #[allow(unsafe_code)] // dropping it would lose the result of close(2)
        // SAFETY: the descriptor was owned here and is owned by nobody from now on.
        let closed = unsafe { rustix::io::try_close(raw) };
        closed.map_err(|error| Failure::io("close the file", &error.into()))
    })
}

fn make_if_missing(path: &Path) -> Result<bool, Failure> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        made => made.map(|()| true).map_err(|error| failed("make", path, error)),
    }
}

/// A name that no other trial uses or has used.
fn trial_folder() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("plimsoll-{:x}-{:x}", std::process::id(), now.as_nanos())
}

fn unless_in_use(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::DirectoryNotEmpty { Ok(()) } else { Err(error) }
}

/// The unit of lengths for `O_DIRECT` in this folder. It makes a file, which is removed with the folder.
fn direct_unit(folder: &Path) -> Result<u64, Failure> {
    let path = folder.join("direct");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = openat(CWD, &path, flags, Permissions::from_raw_mode(0o666)).map_err(|error| match error {
        Errno::INVAL => refused(&path),
        error => failed("create", &path, error),
    })?;
    match statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(found) if found.stx_mask & StatxFlags::DIOALIGN.bits() == 0 => Ok(ALIGNMENT as u64),
        Ok(found) if found.stx_dio_offset_align == 0 => Err(refused(&path)),
        Ok(found) => Ok(found.stx_dio_offset_align.into()),
        Err(_) => Ok(ALIGNMENT as u64),
    }
}

/// Fails unless the lengths of objects and blocks are multiples of `unit`, as `O_DIRECT` requires.
fn check_lengths(storage: &Storage, unit: u64) -> Result<(), String> {
    let size = ("object", storage.size);
    let block = ("block", if storage.block < storage.size { storage.block } else { 0 });
    match [size, block].into_iter().find(|(_, bytes)| bytes % unit != 0) {
        None => Ok(()),
        Some((what, bytes)) => Err(format!(
            "expected a multiple of {unit} bytes for each {what}, as O_DIRECT wants it, found {bytes}; \
             use {} or {}, or a mode other than `direct`",
            bytes / unit * unit,
            bytes.next_multiple_of(unit)
        )),
    }
}

fn refused(path: &Path) -> Failure {
    let detail = format!(
        "failed to open or use {} with O_DIRECT: its file system refuses that; use a mode other than `direct`, or a \
         directory on another file system",
        path.display()
    );
    Failure::new(ErrorKind::Io, detail)
}

fn failed(doing: &str, path: &Path, error: impl Into<io::Error>) -> Failure {
    Failure::io(&format!("{doing} {}", path.display()), &error.into())
}
