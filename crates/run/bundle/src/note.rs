//! Notes of places outside the bundle that a run must remove, in case the run is killed.

use crate::error::BundleError;
use crate::files;
use std::fs;
use std::path::PathBuf;

/// A file that names a place which the run must remove. The file exists as long as the place does.
#[derive(Clone, Debug)]
pub struct Note(PathBuf);

impl Note {
    pub(crate) fn at(path: PathBuf) -> Note {
        Note(path)
    }

    /// The place; none if no place was noted, or the note was removed.
    #[must_use]
    pub fn read(&self) -> Option<String> {
        fs::read_to_string(&self.0).ok()
    }

    /// Writes the note, atomically: a reader finds a complete note or none.
    ///
    /// # Errors
    /// The disk does not accept it.
    pub fn write(&self, place: &str) -> Result<(), BundleError> {
        let new = self.0.with_extension("new");
        files::write(&new, place.as_bytes())?;
        fs::rename(&new, &self.0).map_err(BundleError::io("write", &self.0))
    }

    /// Removes the note: the place is gone, or a warning elsewhere says why not.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self) -> Result<(), BundleError> {
        if self.0.exists() { fs::remove_file(&self.0).map_err(BundleError::io("remove", &self.0)) } else { Ok(()) }
    }
}
