//! Why a bundle cannot be written or read at all.

use std::io;
use std::path::{Path, PathBuf};

/// Why a bundle cannot be written or read at all. A bundle that is damaged in parts is read, and
/// [`Contents::problems`](crate::Contents::problems) names the damage.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file or folder could not be read or written.
    #[error("failed to {doing} {}: {error}", path.display())]
    Io {
        /// What was being done: `write`, `read`.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The folder for a new bundle is not empty.
    #[error("expected a new or empty folder for the bundle, found files in {}; name another one, or go on with `--resume`", .0.display())]
    NotEmpty(PathBuf),
    /// Another run is writing the bundle.
    #[error("{} is being written by another run: wait for its end, or stop it", .0.display())]
    InUse(PathBuf),
    /// The folder is no bundle.
    #[error("expected a bundle, found no manifest.jsonl in {}; a run that was killed before it began leaves none, and then starts anew without `--resume`", .0.display())]
    NoBundle(PathBuf),
    /// The bundle was written by a later version.
    #[error("{} has format {found}; this program reads up to {}: use the version that wrote it, or a newer one", path.display(), crate::FORMAT)]
    Newer {
        /// The bundle.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A run cannot resume in a bundle that an earlier version began.
    #[error(
        "cannot go on with {}: it has format {found}, and this program writes {}; go on with the version that began it, \
         or start a new bundle", path.display(), crate::FORMAT
    )]
    Earlier {
        /// The bundle.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A file that a bundle cannot do without is damaged.
    #[error("{} is damaged ({fault}), and nothing can be reported without it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
    /// A run cannot resume, because its study or plan is not the one that the bundle began with.
    #[error("cannot go on with {}: its {what} differs from the one that was begun; start a new bundle", path.display())]
    OtherStudy {
        /// The bundle.
        path: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// A run cannot resume, because files of its results were changed.
    #[error(
        "cannot go on with {}: {}; restore what was changed, or delete the folder of its trial, to have that run again",
        path.display(), faults.join("; ")
    )]
    Changed {
        /// The bundle.
        path: PathBuf,
        /// The files that are missing or were changed.
        faults: Vec<String>,
    },
    /// A run cannot resume, because it is complete.
    #[error("{} is complete: there is nothing left to run", .0.display())]
    Complete(PathBuf),
}

impl BundleError {
    /// Converts an error of the operating system, with what was being done to which path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BundleError {
        move |error| BundleError::Io { doing, path: path.to_owned(), error }
    }
}
