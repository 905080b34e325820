//! Errors of reading.

use std::path::PathBuf;

/// A folder or a file that is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file or folder cannot be read.
    #[error("failed to read {}: {error}", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A file is larger than results are.
    #[error("{} is larger than {} MiB: take a longer step, or one file for each measure", path.display(), most >> 20)]
    TooLarge {
        /// Its path.
        path: PathBuf,
        /// The most bytes.
        most: u64,
    },
    /// A folder has files and folders, of which only the one or the other can be results.
    #[error(
        "{} has both files and folders: results are `FILE.csv` and `FILE.json`, folders are runs (`run-1`, `run-2`) or cases",
        path.display()
    )]
    FilesAndFolders {
        /// Its path.
        path: PathBuf,
    },
    /// A folder of a case is no run.
    #[error(
        "{} is no run: the folders of a case are `run-1`, `run-2` and so on; name cases in one name, as `postgresql-small`",
        path.display()
    )]
    NoRun {
        /// Its path.
        path: PathBuf,
    },
    /// A folder has no results.
    #[error("{} has no results: expected `NAME.csv` or `NAME.json`, or folders with them", path.display())]
    NoResults {
        /// Its path.
        path: PathBuf,
    },
    /// Two files have one measure.
    #[error("{} and another file have the same measure, {name}: keep one of them", path.display())]
    Twice {
        /// The path of the second.
        path: PathBuf,
        /// The measure.
        name: String,
    },
    /// A file is not in a form that can be read.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// Its path.
        path: PathBuf,
        /// What was expected and what was found, with its line.
        problem: String,
    },
    /// The versions have no case in common.
    #[error("{first} and {second} have no case in common: found {of_first} and {of_second}")]
    NothingInCommon {
        /// The name of the first version.
        first: String,
        /// The name of the second.
        second: String,
        /// The cases of the first.
        of_first: String,
        /// The cases of the second.
        of_second: String,
    },
}
