//! Saved copies of remote modules. Nothing is ever fetched: an import of `https://…` is read from a folder in which each
//! file stands under its URL, `jslib.k6.io/k6-utils/1.4.0/index.js`, if it still has the SHA-256 with which it was taken.
//! The hashes are in a file beside them, in the format of the program `sha256sum`.

use crate::files::FileError;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the folder with copies in that of a project.
pub const FOLDER_OF_COPIES: &str = "vendor";

/// The name of the file with the hashes.
pub const HASHES_OF_COPIES: &str = "SHA256SUMS";

const SCHEME: &str = "https://";

/// A folder with copies of remote modules.
#[derive(Debug)]
pub struct Copies {
    folder: PathBuf,
    /// The SHA-256 of each copy that was taken, in hexadecimal, by its path in the folder.
    hashes: BTreeMap<String, String>,
    /// The command that takes copies: `plimsoll script vendor load.js`.
    taken_by: String,
}

/// A remote module that a script imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteImport {
    /// Its URL.
    pub url: String,
    /// The path of its copy, which may not exist yet.
    pub file: PathBuf,
    /// What there is of that.
    pub copy: Copy,
    /// Its SHA-256, in hexadecimal, if it is there.
    pub sha256: Option<String>,
}

/// What there is of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// Nothing.
    Missing,
    /// One that was not taken before.
    New,
    /// The one that was taken before.
    Known,
    /// Another one than was taken before.
    Changed,
}

impl Copies {
    /// The copies in `folder`, which need not exist. `taken_by` is the command that takes copies, for errors.
    ///
    /// # Errors
    /// The list of hashes cannot be read.
    pub fn within(folder: PathBuf, taken_by: String) -> Result<Self, FileError> {
        let folder = folder.strip_prefix(".").map(Path::to_owned).unwrap_or(folder);
        let list = folder.join(HASHES_OF_COPIES);
        let text = match std::fs::read_to_string(&list) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|source| FileError::Unreadable { path: list.clone(), source, near: None })?,
        };
        // Two characters part hash and name: a space, and one that says how the file was read.
        let entry = |line: &str| Some((line.get(66..)?.to_owned(), line.get(..64)?.to_owned()));
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let entries = lines.map(|(at, line)| {
            entry(line).ok_or_else(|| {
                let message = format!("line {}: expected a SHA-256 and the name of a file, found `{line}`", at + 1);
                FileError::Unreadable { path: list.clone(), source: io::Error::other(message), near: None }
            })
        });
        Ok(Self { hashes: entries.collect::<Result<_, _>>()?, folder, taken_by })
    }

    /// The file of the copy of a URL.
    pub(crate) fn file(&self, url: &str) -> PathBuf {
        self.folder.join(path_of(url))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The error if there is no copy of a URL.
    pub(crate) fn missing(&self, url: &str) -> FileError {
        let (url, next) = (url.to_owned(), self.taken_by.clone());
        FileError::NoCopy { file: self.file(&url), url, next }
    }

    /// Checks that a copy is the one that was taken.
    ///
    /// # Errors
    /// It was not taken yet, or has changed since.
    pub(crate) fn check(&self, url: &str, content: &[u8]) -> Result<(), FileError> {
        let (file, next, found) = (self.file(url), self.taken_by.clone(), sha256(content));
        let url = url.to_owned();
        match self.hashes.get(path_of(&url)) {
            Some(expected) if *expected == found => Ok(()),
            Some(expected) => Err(FileError::CopyChanged { url, file, next, expected: expected.clone(), found }),
            None => Err(FileError::CopyNotTaken { url, file, next }),
        }
    }

    /// The import of a URL, whose copy has this content.
    pub(crate) fn import(&self, url: &str, content: Option<&[u8]>) -> RemoteImport {
        let sha256 = content.map(sha256);
        let copy = match (&sha256, self.hashes.get(path_of(url))) {
            (None, _) => Copy::Missing,
            (Some(_), None) => Copy::New,
            (Some(found), Some(before)) if found == before => Copy::Known,
            (Some(_), Some(_)) => Copy::Changed,
        };
        RemoteImport { url: url.to_owned(), file: self.file(url), copy, sha256 }
    }

    /// Takes the copies of these imports, besides those that were taken before: writes their hashes.
    pub(crate) fn take(&self, imports: &[RemoteImport]) -> io::Result<()> {
        let taken = |import: &RemoteImport| Some((path_of(&import.url).to_owned(), import.sha256.clone()?));
        let mut hashes = self.hashes.clone();
        hashes.extend(imports.iter().filter_map(taken));
        if hashes == self.hashes {
            return Ok(());
        }
        let lines: String = hashes.iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect();
        std::fs::write(self.folder.join(HASHES_OF_COPIES), lines)
    }
}

/// True if a specifier or the name of a module is the URL of a remote one.
pub(crate) fn is_remote(name: &str) -> bool {
    name.starts_with(SCHEME)
}

/// The URL that `request` is in the module `base`: a URL itself, or a path in that of a remote module. Its path has no
/// detours, its fragment is dropped.
pub(crate) fn url(base: &str, request: &str) -> String {
    let request = request.split('#').next().unwrap_or_default();
    let (host, path) = match request.strip_prefix(SCHEME) {
        Some(url) => {
            let (host, path) = url.split_once('/').unwrap_or((url, ""));
            (host, path.to_owned())
        }
        None => {
            let (host, path) = path_of(base).split_once('/').unwrap_or((path_of(base), ""));
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = request.strip_prefix('/').map_or_else(|| format!("{folder}/{request}"), str::to_owned);
            (host, path)
        }
    };
    let mut segments: Vec<&str> = Vec::new();
    let (path, query) = path.split_once('?').map_or((path.as_str(), None), |(path, query)| (path, Some(query)));
    for segment in path.split('/') {
        match segment {
            "." | "" => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let query = query.map(|query| format!("?{}", query.replace('/', "%2F"))).unwrap_or_default();
    format!("{SCHEME}{host}/{}{query}", segments.join("/"))
}

/// The path of a copy in the folder: its URL without the scheme.
fn path_of(url: &str) -> &str {
    url.strip_prefix(SCHEME).unwrap_or(url)
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_resolved_and_have_no_detours() {
        let base = "https://jslib.k6.io/utils/1.0/index.js";
        for (request, expected) in [
            ("https://cdn.test/a/./b/../c.js#part", "https://cdn.test/a/c.js"),
            ("https://cdn.test/a.js?min=1", "https://cdn.test/a.js?min=1"),
            ("https://cdn.test/../../a.js", "https://cdn.test/a.js"),
            ("./b.js", "https://jslib.k6.io/utils/1.0/b.js"),
            ("../../../b.js", "https://jslib.k6.io/b.js"),
            ("/b.js", "https://jslib.k6.io/b.js"),
        ] {
            assert_eq!(url(base, request), expected, "{request}");
        }
    }

    #[test]
    fn the_list_of_hashes_is_that_of_sha256sum() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("vendor");
        let open = || Copies::within(folder.clone(), "take them".to_owned());
        let url = "https://cdn.test/a.js";
        let new = open().expect("there are none").import(url, Some(b"abc"));
        assert_eq!(new.copy, Copy::New);
        std::fs::create_dir(&folder).expect("a folder");
        open().expect("there are none").take(&[new]).expect("it is written");
        let list = std::fs::read_to_string(folder.join(HASHES_OF_COPIES)).expect("a file");
        assert_eq!(list, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  cdn.test/a.js\n");
        let copies = open().expect("it is whole");
        assert!(copies.check(url, b"abc").is_ok());
        let changed = copies.check(url, b"abd").expect_err("it has changed").to_string();
        assert!(changed.contains("expected the SHA-256 ba7816bf") && changed.contains("`take them`"), "{changed}");
        let unknown = copies.check("https://cdn.test/b.js", b"abc").expect_err("it was not taken").to_string();
        assert!(unknown.contains("vendor/cdn.test/b.js") && unknown.contains("`take them`"), "{unknown}");
        let found = [None, Some(&b"abc"[..]), Some(b"abd")].map(|content| copies.import(url, content).copy);
        assert_eq!(found, [Copy::Missing, Copy::Known, Copy::Changed]);
        std::fs::write(folder.join(HASHES_OF_COPIES), "what is this").expect("a file");
        let faulty = open().expect_err("it is no list").to_string();
        assert!(faulty.contains("SHA256SUMS") && faulty.contains("line 1: expected a SHA-256"), "{faulty}");
    }
}
