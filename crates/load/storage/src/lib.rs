//! Storage: objects in directories, behind NFS and behind the API of S3.
//!
//! A back end is a [`Store`]. Each user has a [`Session`] with it, on a thread of its own, and makes one
//! [`Call`] at a time. Written bytes come from [`Content`], which can give any part of any object again, so
//! that reads can be verified.

mod compiled;
mod connect;
mod content;
mod file;
mod mount;
mod nfs;
mod residency;
mod s3;
mod users;

pub use compiled::CompiledStorage;
pub(crate) use content::Content;
pub(crate) use file::DirectoryStore;
pub(crate) use nfs::NfsStore;
pub(crate) use s3::S3Store;
pub use users::{StorageUser, StorageUsers};

use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::storage::{Residency, StorageFacts};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of objects that a user has: more than one number where it is not known of some whether they are there.
pub(crate) type Expected = RangeInclusive<usize>;

/// The number, or numbers, in words.
pub(crate) fn in_words(expected: &Expected) -> String {
    match (expected.start(), expected.end()) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// A clean-up under way, shared with whoever waits for it.
#[derive(Debug, Default)]
pub(crate) struct Cleaning {
    steps: AtomicU64,
    is_given_up: AtomicBool,
}

impl Cleaning {
    /// Notes progress. Returns false if nobody waits any more: then the rest must stay, because the next trial may be under way.
    pub(crate) fn goes_on(&self) -> bool {
        self.steps.fetch_add(1, Ordering::Relaxed);
        !self.is_given_up.load(Ordering::Relaxed)
    }
}

/// A back end, shared by all users.
pub(crate) trait Store: Send + Sync {
    /// Makes the place for the objects of this trial, and determines its properties.
    ///
    /// # Errors
    /// The back end cannot store objects.
    fn prepare(&self) -> Result<(), Failure>;

    /// Opens the session of a user: folder, connection, buffers. Called on that user's own thread.
    ///
    /// # Errors
    /// The back end cannot be reached, or refuses.
    fn session(&self, user: u32) -> Result<Box<dyn Session>, Failure>;

    /// The free space in bytes, after [`Store::prepare`]; none if it is unknown.
    fn free_space(&self) -> Option<u64> {
        None
    }

    /// Fills in the facts of the back end, after [`Store::prepare`]: kind, place, file system, details.
    fn describe(&self, facts: &mut StorageFacts);

    /// Removes the place that [`Store::prepare`] made, with all objects of this trial in it, and nothing
    /// else. Returns the paths that could not be removed, with reasons. It stops when [`Cleaning::goes_on`] says so; nobody reads
    /// what it returns then.
    fn clean_up(&self, cleaning: &Cleaning) -> Vec<String>;
}

/// The session of one user with a back end. The caller times each operation as a whole; the session records
/// its parts and bytes in `call`.
pub(crate) trait Session: Send {
    /// Writes the whole object.
    fn write(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure>;

    /// Reads the whole object, and compares it with [`Content`] if the study verifies reads.
    fn read(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure>;

    /// Lists the names of this user's objects; there must be as many of them as expected.
    fn list(&mut self, expected: &Expected, call: &mut Call) -> Result<(), Failure>;

    /// Deletes the object.
    fn delete(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure>;

    /// Deletes an object that may not be there, untimed.
    fn discard(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        self.delete(object, call)
    }

    /// Prepares a read, untimed. In mode `cold` it drops the object from the page cache and verifies that.
    /// Returns how much of the object is in the page cache, if this machine has one for it.
    fn before_read(&mut self, _object: &Object) -> Result<Residency, Failure> {
        Ok(Residency::default())
    }
}

/// An object that a user has, or is about to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its name below the user's own folder or prefix.
    pub(crate) name: String,
    /// The number that determines its content, unique in a trial.
    pub(crate) number: u64,
    /// Its size in bytes.
    pub(crate) size: u64,
}

/// The folder of user `user` below the trial's own.
pub(crate) fn user_folder(user: u32) -> String {
    format!("user-{user}")
}
