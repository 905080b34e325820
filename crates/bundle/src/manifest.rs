//! The manifest: the list of what the bundle holds, one JSON object a line, only ever appended to.

use crate::FORMAT;
use crate::error::BundleError;
use crate::files::{MANIFEST, sha256};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first.
    Bundle {
        /// Version of the format.
        format: u32,
        /// Version of the program.
        plimsoll: String,
        /// When, in UTC.
        created: String,
    },
    /// A part is whole and on the disk.
    Sealed {
        /// `study`, `versions`, `trial 7`.
        part: String,
        /// SHA-256 by path in the bundle.
        files: BTreeMap<String, String>,
    },
    /// The run has come to its end.
    Complete {
        /// When, in UTC.
        at: String,
    },
}

/// The name of a trial's part.
pub(crate) fn trial_part(number: u32) -> String {
    format!("trial {number}")
}

/// What a manifest says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    /// Files with their hashes, by part: the last line about a part counts.
    pub(crate) sealed: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) complete: bool,
    /// What is wrong with the manifest itself.
    pub(crate) problems: Vec<String>,
    /// Length of its whole lines in bytes: what lies behind was cut off.
    whole: u64,
}

impl Manifest {
    /// The numbers of the trials that it lists.
    pub(crate) fn trials(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.sealed.keys().filter_map(|part| part.strip_prefix("trial ")?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// Reads the manifest of a bundle, as far as it goes.
pub(crate) fn read(bundle: &Path) -> Result<Manifest, BundleError> {
    let path = bundle.join(MANIFEST);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(BundleError::NoBundle(bundle.to_owned()));
        }
        Err(error) => return Err(BundleError::io("read", &path)(error)),
    };
    let mut manifest = Manifest::default();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let parsed = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice(line).ok());
        match (index, parsed) {
            (0, Some(Line::Bundle { format, .. })) if format > FORMAT => {
                return Err(BundleError::Newer { path: bundle.to_owned(), found: format });
            }
            (0, Some(Line::Bundle { .. })) => {}
            (0, _) => {
                let fault = "its first line does not name the format".to_owned();
                return Err(BundleError::Damaged { path, fault });
            }
            (_, Some(Line::Sealed { part, files })) => {
                manifest.sealed.insert(part, files);
            }
            (_, Some(Line::Complete { .. })) => manifest.complete = true,
            (_, Some(Line::Bundle { .. }) | None) => {
                let number = index + 1;
                manifest
                    .problems
                    .push(format!("{MANIFEST}: line {number} is damaged or cut off; what it listed is left out"));
                continue;
            }
        }
        manifest.whole += line.len() as u64;
    }
    if bytes.is_empty() {
        return Err(BundleError::Damaged { path, fault: "it is empty".to_owned() });
    }
    Ok(manifest)
}

/// The manifest of a bundle that is being written.
#[derive(Debug)]
pub(crate) struct ManifestWriter {
    path: PathBuf,
    file: File,
}

impl ManifestWriter {
    /// A new manifest.
    pub(crate) fn create(bundle: &Path, created: String) -> Result<ManifestWriter, BundleError> {
        let path = bundle.join(MANIFEST);
        let file = File::create_new(&path).map_err(BundleError::io("create", &path))?;
        let mut manifest = ManifestWriter { path, file };
        manifest.append(&Line::Bundle { format: FORMAT, plimsoll: env!("CARGO_PKG_VERSION").to_owned(), created })?;
        Ok(manifest)
    }

    /// An existing one; a line that was cut off is dropped.
    pub(crate) fn open(bundle: &Path, manifest: &Manifest) -> Result<ManifestWriter, BundleError> {
        let path = bundle.join(MANIFEST);
        let open = || {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            if manifest.problems.is_empty() {
                file.set_len(manifest.whole)?;
            }
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(BundleError::io("open", &path))?;
        Ok(ManifestWriter { path, file })
    }

    /// Enters a part whose files are whole and synced.
    pub(crate) fn seal(&mut self, bundle: &Path, part: String, paths: &[PathBuf]) -> Result<(), BundleError> {
        let mut files = BTreeMap::new();
        for path in paths {
            let hash = sha256(path).map_err(BundleError::io("read", path))?;
            let name = path.strip_prefix(bundle).unwrap_or(path).to_string_lossy().into_owned();
            files.insert(name, hash);
        }
        self.append(&Line::Sealed { part, files })
    }

    /// Appends a line, and syncs it.
    pub(crate) fn append(&mut self, line: &Line) -> Result<(), BundleError> {
        let mut text = serde_json::to_vec(line).expect("a line is plain data");
        text.push(b'\n');
        self.file
            .write_all(&text)
            .and_then(|()| self.file.sync_data())
            .map_err(BundleError::io("append to", &self.path))
    }
}
