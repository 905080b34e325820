//! Storage: objects in directories, behind NFS and behind the API of S3.
//!
//! A back end is a [`Store`]; each user holds a [`Session`] with it, on a thread of its own, and
//! makes one [`Call`] at a time. What is written comes from [`Content`], which any part of any
//! object can be asked of again, so that what is read can be held against it.

mod compiled;
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

/// A back end, shared by all users.
pub(crate) trait Store: Send + Sync {
    /// Makes the place in which this trial keeps its objects, and looks at what it is.
    ///
    /// # Errors
    /// Objects cannot be kept there.
    fn prepare(&self) -> Result<(), Failure>;

    /// Opens what user `user` works with: folder, connection, buffers. Called on that user's own
    /// thread.
    ///
    /// # Errors
    /// The back end cannot be reached, or refuses.
    fn session(&self, user: u32) -> Result<Box<dyn Session>, Failure>;

    /// Bytes that can still be written, after [`Store::prepare`], where that is known.
    fn room(&self) -> Option<u64> {
        None
    }

    /// What is known of the back end, after [`Store::prepare`]: kind, place, file system, details.
    fn describe(&self, facts: &mut StorageFacts);

    /// Removes the place that [`Store::prepare`] made and whatever of this trial is left in it;
    /// nothing else. Returns what could not be removed, with the reason.
    fn clean_up(&self) -> Vec<String>;
}

/// What one user works with. Every call is timed as a whole by the caller; the parts of it and the
/// bytes that moved are told to `call`.
pub(crate) trait Session: Send {
    /// Writes the whole object.
    fn write(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure>;

    /// Reads the whole object, and holds it against [`Content`] where the study asks for that.
    fn read(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure>;

    /// Lists the names of this user's objects; there must be `expected` of them.
    fn list(&mut self, expected: usize, call: &mut Call) -> Result<(), Failure>;

    /// Deletes the object.
    fn delete(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure>;

    /// Before a read, untimed: drops the object from the page cache in mode `cold` and proves it
    /// absent; says how much of it lies in the page cache, where this machine has one.
    fn before_read(&mut self, _object: &Object) -> Result<Residency, Failure> {
        Ok(Residency::default())
    }
}

/// An object that a user has, or is about to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its name below the user's own folder or prefix.
    pub(crate) name: String,
    /// What its content follows from: unique in a trial.
    pub(crate) number: u64,
    /// Bytes.
    pub(crate) size: u64,
}

/// The folder of user `user` below the trial's own.
pub(crate) fn user_folder(user: u32) -> String {
    format!("user-{user}")
}
