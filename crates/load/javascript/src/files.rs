//! The files that a script may read: those in its own folder, and in the folders that the user of the program allows.

use plimsoll_model::suggestion::did_you_mean;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Reads files in the allowed folders, each once: all runtimes of a program share their content.
#[derive(Debug)]
pub struct Files {
    folders: Vec<PathBuf>,
    /// The option that allows another folder, as a fragment: "`--files`".
    opened_by: Option<&'static str>,
    read: Mutex<BTreeMap<PathBuf, Arc<[u8]>>>,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It lies outside, maybe by a symbolic link.
    #[error("`{}` lies outside the folders that this script may read ({}); allow its folder{}, or move the file",
        path.display(), listed(folders), opened_by.map(|knob| format!(" with {knob}")).unwrap_or_default())]
    Outside {
        /// Its path in the script.
        path: PathBuf,
        /// The allowed folders.
        folders: Vec<PathBuf>,
        /// The option that allows another folder.
        opened_by: Option<&'static str>,
    },
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// Its path in the script.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
        /// A question with the name of a file beside it that is almost the same.
        near: Option<String>,
    },
}

impl FileError {
    /// Help that is not part of the message: "did you mean `shop.js`?".
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        match self {
            FileError::Outside { .. } => None,
            FileError::Unreadable { near, .. } => near.as_deref(),
        }
    }
}

impl Files {
    /// Files in `folders`, and below.
    ///
    /// # Errors
    /// One of the folders cannot be found.
    pub fn within<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Result<Self, FileError> {
        let canonical = |folder: P| {
            let folder = folder.as_ref();
            folder.canonicalize().map_err(|source| unreadable(folder, source))
        };
        let folders = folders.into_iter().map(canonical).collect::<Result<_, _>>()?;
        Ok(Self { folders, opened_by: None, read: Mutex::default() })
    }

    /// The same, with the option that allows another folder, as a fragment: "`--files`".
    #[must_use]
    pub fn opened_by(self, option: &'static str) -> Self {
        Self { opened_by: Some(option), ..self }
    }

    /// The content of a file.
    ///
    /// # Errors
    /// It lies outside the allowed folders, or cannot be read.
    pub fn read(&self, path: &Path) -> Result<Arc<[u8]>, FileError> {
        // The real path: neither `..` nor a symbolic link leads out.
        let real = match path.canonicalize() {
            Err(_) if !self.may_name(path) => return Err(self.outside(path)),
            real => real.map_err(|source| unreadable(path, source))?,
        };
        if !self.folders.iter().any(|folder| real.starts_with(folder)) {
            return Err(self.outside(path));
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = read.get(&real) {
            return Ok(Arc::clone(content));
        }
        let content = std::fs::read(&real).map_err(|source| unreadable(path, source))?;
        let content: Arc<[u8]> = content.into();
        read.insert(real, Arc::clone(&content));
        Ok(content)
    }

    /// All files that were read so far, with their content.
    #[must_use]
    pub fn all_read(&self) -> Vec<(PathBuf, Arc<[u8]>)> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.iter().map(|(path, content)| (path.clone(), Arc::clone(content))).collect()
    }

    /// True if a path that does not exist lies in an allowed folder. A script must not learn which other files exist.
    fn may_name(&self, path: &Path) -> bool {
        let folder = path.ancestors().skip(1).find_map(|folder| match folder.as_os_str().is_empty() {
            true => Path::new(".").canonicalize().ok(),
            false => folder.canonicalize().ok(),
        });
        folder.is_some_and(|folder| self.folders.iter().any(|allowed| folder.starts_with(allowed)))
    }

    fn outside(&self, path: &Path) -> FileError {
        FileError::Outside { path: path.to_owned(), folders: self.folders.clone(), opened_by: self.opened_by }
    }
}

fn unreadable(path: &Path, source: io::Error) -> FileError {
    let near = if source.kind() == io::ErrorKind::NotFound { near(path) } else { None };
    FileError::Unreadable { path: path.to_owned(), source, near }
}

/// A question with the name of a file beside a missing one that is almost the same.
fn near(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    did_you_mean(path.file_name()?.to_str()?, names.iter().map(String::as_str))
}

fn listed(folders: &[PathBuf]) -> String {
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    folders.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder `in` that is allowed, and a file beside it that is not.
    fn folders() -> (tempfile::TempDir, Files) {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(home.path().join("in/deep")).expect("a folder");
        std::fs::write(home.path().join("in/deep/data.csv"), "a,b").expect("a file");
        std::fs::write(home.path().join("secret"), "no").expect("a file");
        let files = Files::within([home.path().join("in")]).expect("the folder is there");
        (home, files)
    }

    #[test]
    fn a_file_inside_is_read_once() {
        let (home, files) = folders();
        let path = home.path().join("in/deep/../deep/data.csv");
        let first = files.read(&path).expect("it is allowed");
        std::fs::write(&path, "changed").expect("a file");
        let second = files.read(&path).expect("it is allowed");
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(files.all_read().len(), 1);
    }

    #[test]
    fn nothing_leads_out() {
        let (home, files) = folders();
        std::os::unix::fs::symlink(home.path().join("secret"), home.path().join("in/link")).expect("a link");
        for path in ["in/../secret", "secret", "in/link", "in/../not-there"] {
            let refused = files.read(&home.path().join(path)).expect_err("it lies outside");
            assert!(matches!(refused, FileError::Outside { .. }), "{path}: {refused}");
        }
        let refused = files.opened_by("`--files`").read(&home.path().join("secret")).expect_err("it lies outside");
        assert!(refused.to_string().ends_with("; allow its folder with `--files`, or move the file"), "{refused}");
    }

    #[test]
    fn a_missing_file_inside_is_named() {
        let (home, files) = folders();
        let missing = files.read(&home.path().join("in/gone.csv")).expect_err("it is not there");
        assert!(missing.to_string().contains("gone.csv`: No such file"), "{missing}");
        assert_eq!(missing.help(), None);
        let missing = files.read(&home.path().join("in/deep/dat.csv")).expect_err("it is not there");
        assert_eq!(missing.help(), Some("did you mean `data.csv`?"));
    }
}
