//! The manifest: the list of what the bundle holds, one JSON object a line, only ever appended to.

use crate::FORMAT;
use crate::error::BundleError;
use crate::files::{MANIFEST, VERSIONS, drop_cut_off_line, open_lines, sha256};
use plimsoll_model::trial::{Plan, Trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write;
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
        #[serde(default)] // so that a later format may drop it and still be told by its number
        plimsoll: String,
        /// When, in UTC.
        #[serde(default)]
        created: String,
    },
    /// A part is whole and on the disk.
    Sealed {
        /// `study`, `versions`, `trial 7`.
        part: String,
        /// SHA-256 by path in the bundle.
        files: BTreeMap<String, String>,
    },
    /// Trials that the plan did not have: a block that is run again. They begin only once this line
    /// is on the disk.
    Added {
        /// The trials, in their order.
        trials: Vec<Trial>,
    },
    /// A run that was interrupted goes on from here.
    Resumed {
        /// When, in UTC.
        at: String,
    },
    /// The run has come to its end.
    Complete {
        /// When, in UTC.
        at: String,
        /// After how many repeats, where it ended early because every verdict was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided_after: Option<u32>,
    },
}

/// The part of the study with its plan and host.
pub(crate) const STUDY_PART: &str = "study";

/// The part of what was run.
pub(crate) const VERSIONS_PART: &str = "versions";

/// The name of a trial's part.
pub(crate) fn trial_part(number: u32) -> String {
    format!("trial {number}")
}

/// What a manifest says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    /// Files with their hashes, by part: the last line about a part counts.
    pub(crate) sealed: BTreeMap<String, BTreeMap<String, String>>,
    /// The trials that were added to the plan.
    pub(crate) added: Vec<Trial>,
    pub(crate) complete: bool,
    /// After how many repeats the run ended, where that was before the last.
    pub(crate) decided_after: Option<u32>,
    /// What is wrong with the manifest itself.
    pub(crate) problems: Vec<String>,
    /// Whether the run has gone on and not said yet what it runs.
    resumed: bool,
}

impl Manifest {
    /// Takes what a line says of a part. What is run is listed anew when a run goes on, and is the
    /// same unless a program has changed. Later, programs behind wrappers may join the list.
    fn enter(&mut self, part: String, files: BTreeMap<String, String>) {
        let changed = self.sealed.get(&part).is_some_and(|before| *before != files);
        if part == VERSIONS_PART && std::mem::take(&mut self.resumed) && changed {
            self.problems.push(format!(
                "what was run changed while the run was interrupted, so the trials are not all of the same programs: \
                 see {VERSIONS}"
            ));
        }
        self.sealed.insert(part, files);
    }

    /// The plan as it was carried out: with the trials that were added to it, and without those
    /// that a run which could end early no longer needed.
    pub(crate) fn carried_out(&mut self, mut plan: Plan) -> Plan {
        let fits = |trial: &Trial| trial.variant < plan.block_size() && trial.condition < plan.conditions.len();
        let (fitting, strange): (Vec<Trial>, Vec<Trial>) = self.added.iter().partition(|trial| fits(trial));
        let strange = strange.iter().map(|trial| format!("trial {} was added to another plan", trial.number));
        self.problems.extend(strange);
        plan.trials.extend(fitting);
        match self.decided_after {
            Some(repeats) => plan.up_to(repeats),
            None => plan,
        }
    }

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
                manifest.enter(part, files);
            }
            (_, Some(Line::Added { trials })) => manifest.added.extend(trials),
            (_, Some(Line::Resumed { .. })) => manifest.resumed = true,
            (_, Some(Line::Complete { decided_after, .. })) => {
                manifest.complete = true;
                manifest.decided_after = decided_after;
            }
            (_, Some(Line::Bundle { .. }) | None) => {
                let number = index + 1;
                manifest
                    .problems
                    .push(format!("{MANIFEST}: line {number} is damaged or cut off; what it listed is left out"));
            }
        }
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
        lock(&file, bundle)?;
        let mut manifest = ManifestWriter { path, file };
        manifest.append(&Line::Bundle { format: FORMAT, plimsoll: env!("CARGO_PKG_VERSION").to_owned(), created })?;
        Ok(manifest)
    }

    /// An existing one, to go on with. A last line that was cut off is dropped; a damaged line
    /// before it stays, because nothing is ever taken from a manifest.
    pub(crate) fn open(bundle: &Path) -> Result<ManifestWriter, BundleError> {
        let path = bundle.join(MANIFEST);
        let mut file = open_lines(&path).map_err(BundleError::io("open", &path))?;
        lock(&file, bundle)?;
        drop_cut_off_line(&mut file).map_err(BundleError::io("repair", &path))?;
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

/// Keeps other runs from writing the same bundle. The lock goes with the process, however it ends;
/// a file system that knows no locks is taken as it is.
fn lock(manifest: &File, bundle: &Path) -> Result<(), BundleError> {
    match manifest.try_lock() {
        Err(TryLockError::WouldBlock) => Err(BundleError::InUse(bundle.to_owned())),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}
