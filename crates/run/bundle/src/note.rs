//! Where something lies that is not part of a bundle, noted for the case that the run is killed.

use crate::error::BundleError;
use crate::files;
use std::fs;
use std::path::PathBuf;

/// A note of where something lies that is to be removed: it stands as long as that is there.
#[derive(Clone, Debug)]
pub struct Note(PathBuf);

impl Note {
    pub(crate) fn at(path: PathBuf) -> Note {
        Note(path)
    }

    /// The place, if one was noted and the note not removed.
    #[must_use]
    pub fn read(&self) -> Option<String> {
        fs::read_to_string(&self.0).ok()
    }

    /// Notes the place: under its name a note is whole, or it is not there.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn write(&self, place: &str) -> Result<(), BundleError> {
        let new = self.0.with_extension("new");
        files::write(&new, place.as_bytes())?;
        fs::rename(&new, &self.0).map_err(BundleError::io("write", &self.0))
    }

    /// Removes the note: what it speaks of is gone, or it is said elsewhere why not.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self) -> Result<(), BundleError> {
        if self.0.exists() { fs::remove_file(&self.0).map_err(BundleError::io("remove", &self.0)) } else { Ok(()) }
    }
}
