//! Bundles that earlier versions of the program wrote.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a bundle that is only read: `format_1`, `format_2`.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name)
}

/// A copy of a bundle, to be changed.
pub(crate) fn copy(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    copy_files(&folder(name), copy.path());
    copy
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_files(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a file");
        }
    }
}
