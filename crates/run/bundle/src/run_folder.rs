//! The files of a bundle that others than its writer make: what systems, builds and databases write, and notes of what
//! a run must remove.

use crate::conceal::conceal_in_logs;
use crate::error::BundleError;
use crate::files::{self, partial_folder, plain};
use crate::note::Note;
use std::path::{Path, PathBuf};

/// The folder of a bundle under way, for those who put files there.
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

    /// The file for what the system `name` writes on the start of this number.
    #[must_use]
    pub fn output(&self, start: u32, name: &str) -> PathBuf {
        partial_folder(&self.folder, start).join(format!("output-{}.log", plain(name)))
    }

    /// The file for what the build of the system `name` writes.
    #[must_use]
    pub fn build_log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("build-{}.log", plain(name)))
    }

    /// A text that names files of a start under way, as it is read later: the start's folder then has its own name.
    #[must_use]
    pub fn as_sealed(&self, text: &str, start: u32) -> String {
        let partial = partial_folder(&self.folder, start);
        text.replace(&*partial.to_string_lossy(), &partial.with_extension("").to_string_lossy())
    }

    /// Where the run keeps the data of its databases. What a run has noted that was killed is still
    /// there when it goes on.
    #[must_use]
    pub fn data_note(&self) -> Note {
        Note::at(self.folder.join(files::DATA))
    }

    /// Where an attempt at a start that was broken off keeps objects that nobody has removed. To be read before the
    /// start begins anew.
    #[must_use]
    pub fn objects_left(&self, start: u32) -> Option<String> {
        Note::at(partial_folder(&self.folder, start).join(files::OBJECTS)).read()
    }

    /// Writes asterisks over `secret` wherever builds and the making of data have written it.
    ///
    /// # Errors
    /// Their output cannot be read or written.
    pub fn conceal(&self, secret: &str) -> Result<(), BundleError> {
        conceal_in_logs(&self.folder, secret)
    }

    /// Writes asterisks over `secret` wherever the systems of a start that is not sealed have written it. To be called
    /// when they have ended.
    ///
    /// # Errors
    /// Their output cannot be read or written.
    pub fn conceal_in_start(&self, start: u32, secret: &str) -> Result<(), BundleError> {
        let folder = partial_folder(&self.folder, start);
        if folder.is_dir() { conceal_in_logs(&folder, secret) } else { Ok(()) }
    }
}
