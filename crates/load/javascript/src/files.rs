//! The files that a script may read: those of its project, and in the folders that the user of the program allows.

use crate::copies::{Copies, RemoteImport};
use plimsoll_model::suggestion::did_you_mean;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The largest file that is read, in bytes. All users of a script share its content.
const LARGEST_FILE: u64 = 1024 * MIB;

const MIB: u64 = 1024 * 1024;

/// Reads files in the allowed folders, each once: all runtimes of a program share their content.
#[derive(Debug)]
pub struct Files {
    folders: Vec<PathBuf>,
    /// The option that allows another folder, as a fragment: "`--files`".
    opened_by: Option<&'static str>,
    copies: Option<Copies>,
    read: Mutex<BTreeMap<PathBuf, Arc<[u8]>>>,
}

/// What only the folder of a project has.
const SIGNS_OF_A_PROJECT: [&str; 2] = [".git", "package.json"];

/// The folder of the project to which the scripts in `folder` belong: the nearest one, from `folder` upwards, that has
/// `.git` or `package.json`; without one `folder` itself. The home of the user does not count as a project: scripts
/// somewhere in it must not read all of it because somebody keeps it under version control.
#[must_use]
pub fn project_of(folder: &Path) -> PathBuf {
    nearest_project(folder, std::env::home_dir().as_deref())
}

fn nearest_project(folder: &Path, home: Option<&Path>) -> PathBuf {
    let Ok(own) = folder.canonicalize() else { return folder.to_owned() };
    let home = home.and_then(|home| home.canonicalize().ok());
    let may_be = |above: &&Path| above.parent().is_some() && Some(*above) != home.as_deref();
    let is_project = |above: &&Path| SIGNS_OF_A_PROJECT.iter().any(|sign| above.join(sign).exists());
    own.ancestors().take_while(may_be).find(is_project).map_or_else(|| folder.to_owned(), Path::to_owned)
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
    /// It is a remote module without a copy.
    #[error("`{url}` is not fetched; save it as `{}`, then run `{next}`", file.display())]
    NoCopy {
        /// Its URL.
        url: String,
        /// The file of the copy.
        file: PathBuf,
        /// The command that takes copies.
        next: String,
    },
    /// It is the copy of a remote module, and nobody has said that it may run.
    #[error("the copy of `{url}` was not taken yet; look at `{}`, then run `{next}`", file.display())]
    CopyNotTaken {
        /// Its URL.
        url: String,
        /// The file of the copy.
        file: PathBuf,
        /// The command that takes copies.
        next: String,
    },
    /// It is the copy of a remote module, with another content than the one that was taken.
    #[error(
        "the copy of `{url}` has changed since it was taken: expected the SHA-256 {expected} of `{}`, found {found}; \
         save it again, or run `{next}` to take it as it is",
        file.display()
    )]
    CopyChanged {
        /// Its URL.
        url: String,
        /// The file of the copy.
        file: PathBuf,
        /// The command that takes copies.
        next: String,
        /// The SHA-256 of what was taken, in hexadecimal.
        expected: String,
        /// That of what is there.
        found: String,
    },
}

impl FileError {
    /// Help that is not part of the message: "did you mean `shop.js`?".
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        match self {
            FileError::Unreadable { near, .. } => near.as_deref(),
            _ => None,
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
        Ok(Self { folders, opened_by: None, copies: None, read: Mutex::default() })
    }

    /// The same, with the option that allows another folder, as a fragment: "`--files`".
    #[must_use]
    pub fn opened_by(self, option: &'static str) -> Self {
        Self { opened_by: Some(option), ..self }
    }

    /// The same, with copies of remote modules.
    #[must_use]
    pub fn with_copies(self, copies: Copies) -> Self {
        Self { copies: Some(copies), ..self }
    }

    pub(crate) fn copies(&self) -> Option<&Copies> {
        self.copies.as_ref()
    }

    /// Takes the copies of these remote modules as they are, besides those that were taken before.
    ///
    /// # Errors
    /// The list of hashes cannot be written.
    pub fn take(&self, imports: &[RemoteImport]) -> io::Result<()> {
        self.copies.as_ref().map_or(Ok(()), |copies| copies.take(imports))
    }

    /// The content of the copy of a remote module, whether it was taken or not.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(crate) fn read_copy(&self, copies: &Copies, url: &str) -> Result<Arc<[u8]>, FileError> {
        let path = copies.file(url);
        let not_there = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let real = path.canonicalize().map_err(|source| match source {
            source if not_there(&source) => copies.missing(url),
            source => unreadable(&path, source),
        })?;
        let folder = copies.folder().canonicalize().map_err(|source| unreadable(copies.folder(), source))?;
        if real.starts_with(folder) { self.read_real(&path, real) } else { Err(self.outside(&path)) }
    }

    /// The content of a file.
    ///
    /// # Errors
    /// It lies outside the allowed folders, cannot be read, is no regular file, or has more than 1 GiB.
    pub fn read(&self, path: &Path) -> Result<Arc<[u8]>, FileError> {
        // The real path: neither `..` nor a symbolic link leads out.
        let real = match path.canonicalize() {
            Err(_) if !self.may_name(path) => return Err(self.outside(path)),
            real => real.map_err(|source| unreadable(path, source))?,
        };
        if !self.folders.iter().any(|folder| real.starts_with(folder)) {
            return Err(self.outside(path));
        }
        self.read_real(path, real)
    }

    fn read_real(&self, path: &Path, real: PathBuf) -> Result<Arc<[u8]>, FileError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = read.get(&real) {
            return Ok(Arc::clone(content));
        }
        let content: Arc<[u8]> = content(&real).map_err(|source| unreadable(path, source))?.into();
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

/// The content of a regular file. Reading from a pipe could wait for ever, and from a device could have no end.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe that nobody writes to could not even be opened: it is looked at first.
    let file = path.metadata()?;
    if !file.is_file() {
        return Err(io::Error::other("expected a regular file, found a folder, a pipe, a socket or a device"));
    }
    let too_large = || io::Error::other(format!("expected at most {} MiB, found more", LARGEST_FILE / MIB));
    if file.len() > LARGEST_FILE {
        return Err(too_large());
    }
    // The file may grow meanwhile; files of `/proc` have no length before they are read.
    let mut content = Vec::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST_FILE { Err(too_large()) } else { Ok(content) }
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
    fn only_regular_files_of_bounded_size_are_read() {
        let (home, files) = folders();
        let pipe = home.path().join("in/pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("a command").success());
        let large = home.path().join("in/large");
        File::create(&large).expect("a file").set_len(LARGEST_FILE + 1).expect("a hole");
        for (path, expected) in [
            (pipe, "expected a regular file"),
            (home.path().join("in/deep"), "expected a regular file"),
            (large, "expected at most 1024 MiB, found more"),
        ] {
            let refused = files.read(&path).expect_err(expected).to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn a_project_begins_where_its_repository_or_package_does() {
        let home = tempfile::tempdir().expect("a folder");
        let path = |name: &str| home.path().canonicalize().expect("it is there").join(name);
        std::fs::create_dir_all(path("shop/tests/load")).expect("a folder");
        let project = |folder: &str| nearest_project(&path(folder), Some(home.path()));
        assert_eq!(project("shop/tests/load"), path("shop/tests/load"));
        std::fs::create_dir(path("shop/.git")).expect("a folder");
        assert_eq!((project("shop/tests/load"), project("shop")), (path("shop"), path("shop")));
        std::fs::write(path("shop/tests/package.json"), "{}").expect("a file");
        assert_eq!(project("shop/tests/load"), path("shop/tests"), "the nearest one");
        std::fs::create_dir_all(path("alone")).expect("a folder");
        std::fs::create_dir(path(".git")).expect("a folder");
        assert_eq!(project("alone"), path("alone"), "a home is no project");
        assert_eq!(nearest_project(&path("alone"), None), path(""));
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
