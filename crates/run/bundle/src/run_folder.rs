//! The files of a bundle that its writer does not write itself: the output of systems, builds and databases, and notes
//! of what a run must remove.

use crate::conceal::{conceal_in_logs, files_that_hold};
use crate::error::BundleError;
use crate::files::{self, partial_folder, plain};
use crate::note::Note;
use std::path::{Path, PathBuf};

/// The folder of a bundle under way, for the parts of a run that put files there.
#[derive(Clone, Debug)]
pub struct RunFolder {
    folder: PathBuf,
}

impl RunFolder {
    /// The folder of the bundle at this path.
    #[must_use]
    pub fn at(folder: &Path) -> RunFolder {
        RunFolder { folder: folder.to_owned() }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The file for the output of the system `name` on the start of this number.
    #[must_use]
    pub fn output(&self, start: u32, name: &str) -> PathBuf {
        partial_folder(&self.folder, start).join(format!("output-{}.log", plain(name)))
    }

    /// The folder for the files of systems on the start of this number, as an absolute path: systems have folders of their own
    /// to run in. It is there as long as the systems are.
    #[must_use]
    pub fn files_of_systems(&self, start: u32) -> PathBuf {
        let folder = partial_folder(&self.folder, start).join("files");
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// The file for the output of the build of the system `name`.
    #[must_use]
    pub fn build_log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("build-{}.log", plain(name)))
    }

    /// Replaces the temporary folder name of a start under way in a text by the name that the folder has once it is
    /// sealed.
    #[must_use]
    pub fn as_sealed(&self, text: &str, start: u32) -> String {
        let partial = partial_folder(&self.folder, start);
        text.replace(&*partial.to_string_lossy(), &partial.with_extension("").to_string_lossy())
    }

    /// The note of where the run keeps the data of its databases. The note of a killed run is still there when it
    /// resumes.
    #[must_use]
    pub fn data_note(&self) -> Note {
        Note::at(self.folder.join(files::DATA))
    }

    /// The place of objects that an interrupted attempt at a start has left. It must be read before the start begins
    /// again.
    #[must_use]
    pub fn objects_left(&self, start: u32) -> Option<String> {
        Note::at(partial_folder(&self.folder, start).join(files::OBJECTS)).read()
    }

    /// Overwrites `secret` with asterisks in the output of builds and of the preparation of data.
    ///
    /// # Errors
    /// Their output cannot be read or written.
    pub fn conceal(&self, secret: &str) -> Result<(), BundleError> {
        conceal_in_logs(&self.folder, secret)
    }

    /// The files of the bundle that hold one of `secrets`, by their paths in it. [`RunFolder::conceal`] has taken them out
    /// of what builds put out, so that these files are not looked at.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn files_that_hold(&self, secrets: &[String]) -> Result<Vec<PathBuf>, BundleError> {
        files_that_hold(&self.folder, secrets)
    }

    /// Overwrites `secret` with asterisks in the output of the systems of a start that is not sealed. It must be called
    /// after they have ended.
    ///
    /// # Errors
    /// Their output cannot be read or written.
    pub fn conceal_in_start(&self, start: u32, secret: &str) -> Result<(), BundleError> {
        let folder = partial_folder(&self.folder, start);
        if folder.is_dir() { conceal_in_logs(&folder, secret) } else { Ok(()) }
    }
}
