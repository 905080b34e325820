//! The manifest: the list of what the bundle holds, one JSON object a line, only ever appended to.

use crate::FORMAT;
use crate::earlier::{Layout, Trial};
use crate::error::BundleError;
use crate::files::{MANIFEST, VERSIONS, drop_cut_off_line, open_lines, sha256};
use plimsoll_model::start::{Plan, Start};
use plimsoll_model::study::Origin;
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
        /// Where the results come from.
        #[serde(default)]
        origin: Origin,
    },
    /// A part is whole and on the disk.
    Sealed {
        /// `study`, `versions`, `start 7`.
        part: String,
        /// SHA-256 by path in the bundle.
        files: BTreeMap<String, String>,
    },
    /// A start that the plan did not have, of a block that runs again. It begins only once this line
    /// is on the disk.
    Decided {
        /// The start.
        start: Start,
    },
    /// The same in formats before 3: a whole block of trials.
    Added {
        /// The trials, in their order.
        trials: Vec<Trial>,
    },
    /// A look at the verdicts was taken.
    Looked {
        /// The repeats that had run.
        repeats: u32,
        /// True if every verdict was reached.
        decided: bool,
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

/// What a manifest says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    /// Files with their hashes, by part: the last line about a part counts.
    pub(crate) sealed: BTreeMap<String, BTreeMap<String, String>>,
    /// The version of the format.
    pub(crate) format: u32,
    /// Where the results come from.
    pub(crate) origin: Origin,
    /// The starts that the run decided on beside those of the plan, each once.
    pub(crate) decided: Vec<Start>,
    /// The looks that were taken: after how many repeats, and whether every verdict was reached.
    pub(crate) looks: Vec<(u32, bool)>,
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

    /// The plan as it was carried out: with the starts that the run decided on, and without those
    /// that a run which could end early no longer needed.
    pub(crate) fn carried_out(&mut self, mut plan: Plan) -> Plan {
        let known = |variant: &usize| *variant < plan.block_size();
        let fits = |start: &Start| start.variants.iter().all(known) && start.condition < plan.conditions.len();
        let (fitting, strange): (Vec<Start>, Vec<Start>) = self.decided.iter().cloned().partition(fits);
        let strange = strange.iter().map(|start| format!("trial {} was added to another plan", start.number));
        self.problems.extend(strange);
        plan.starts.extend(fitting);
        match self.decided_after {
            Some(repeats) => plan.up_to(repeats),
            None => plan,
        }
    }

    /// Takes note of a start that the run decided on. One with its number that was never finished is
    /// replaced.
    fn decide(&mut self, start: Start) {
        self.decided.retain(|known| known.number != start.number);
        self.decided.push(start);
    }

    /// The names in the bundle.
    pub(crate) fn layout(&self) -> Layout {
        Layout::of(self.format)
    }

    /// The numbers of the starts that it lists.
    pub(crate) fn starts(&self) -> Vec<u32> {
        let part = self.layout().part;
        let number = |name: &String| name.strip_prefix(part)?.strip_prefix(' ')?.parse().ok();
        let mut numbers: Vec<u32> = self.sealed.keys().filter_map(number).collect();
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
            (0, Some(Line::Bundle { format, origin, .. })) => {
                manifest.format = format;
                manifest.origin = origin;
            }
            (0, _) => {
                let fault = "its first line does not name the format".to_owned();
                return Err(BundleError::Damaged { path, fault });
            }
            (_, Some(Line::Sealed { part, files })) => {
                manifest.enter(part, files);
            }
            (_, Some(Line::Decided { start })) => manifest.decide(start),
            (_, Some(Line::Added { trials })) => trials.into_iter().for_each(|trial| manifest.decide(trial.into())),
            (_, Some(Line::Looked { repeats, decided })) => manifest.looks.push((repeats, decided)),
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
        let plimsoll = env!("CARGO_PKG_VERSION").to_owned();
        manifest.append(&Line::Bundle { format: FORMAT, plimsoll, created, origin: Origin::Measured })?;
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
