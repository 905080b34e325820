//! The folders into which a script may have files written: the current one, and those that the command line names.

use super::summary::{STDERR, STDOUT};
use crate::say;
use std::path::{Path, PathBuf};

/// The folders, with all symbolic links resolved.
pub(super) struct WritableFolders(Vec<PathBuf>);

impl WritableFolders {
    /// The current folder and these. One that is not there can hold no file.
    pub(super) fn new(allowed: &[PathBuf]) -> WritableFolders {
        let all = allowed.iter().map(PathBuf::as_path).chain([Path::new(".")]);
        WritableFolders(all.filter_map(|folder| folder.canonicalize().ok()).collect())
    }

    /// Leaves out the files that lie elsewhere, and says so.
    pub(super) fn retain(&self, mut files: Vec<(PathBuf, Vec<u8>)>) -> Vec<(PathBuf, Vec<u8>)> {
        files.retain(|(to, _)| {
            let may = [STDOUT, STDERR].iter().any(|one| to.as_os_str() == *one) || self.hold(to);
            if !may {
                say::note(&format!(
                    "`handleSummary` may not write {}: expected a file in the current folder or below; \
                     `--allow-write DIR` allows another folder",
                    to.display()
                ));
            }
            may
        });
        files
    }

    /// True if a file that is written to `path` lies in one of the folders, or cannot be written at all.
    fn hold(&self, path: &Path) -> bool {
        let lies_in_one = |target: PathBuf| self.0.iter().any(|folder| target.starts_with(folder));
        // What is written to a link is written to the file that it leads to, which need not be there.
        if path.is_symlink() {
            path.canonicalize().is_ok_and(lies_in_one)
        } else {
            place_of(path).is_none_or(lies_in_one)
        }
    }
}

/// The path of a file that need not be there, with all links of its folder resolved; none if that folder is not there.
fn place_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_lie_in_the_folders_whatever_their_paths_say() {
        let (here, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let (inside, outside) = (here.path().join("out"), elsewhere.path().to_owned());
        std::fs::create_dir(&inside).expect("room");
        symlink(&outside, here.path().join("link")).expect("room");
        symlink(outside.join("file"), here.path().join("file-elsewhere")).expect("room");
        symlink(outside.join("nothing"), here.path().join("dangling")).expect("room");
        symlink(inside.join("file"), here.path().join("file-inside")).expect("room");
        std::fs::write(inside.join("file"), "").expect("room");
        std::fs::write(outside.join("file"), "").expect("room");
        let folders = WritableFolders(vec![here.path().canonicalize().expect("it is there")]);
        for (path, may) in [
            ("a.txt", true),
            ("out/a.txt", true),
            ("out/../a.txt", true),
            ("file-inside", true),
            ("../a.txt", false),
            ("out/../../a.txt", false),
            ("link/a.txt", false),
            ("file-elsewhere", false),
            ("dangling", false),
            ("no-such-folder/a.txt", true),
        ] {
            assert_eq!(folders.hold(&here.path().join(path)), may, "{path}");
        }
        assert!(!folders.hold(&outside.join("a.txt")));
        let both = WritableFolders([here.path(), &outside].map(|path| path.canonicalize().expect("there")).into());
        assert!(both.hold(&outside.join("a.txt")));
    }
}
