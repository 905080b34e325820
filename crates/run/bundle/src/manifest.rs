//! The manifest: the list of the bundle's contents, one JSON object a line. Lines are only ever appended.

use crate::FORMAT;
use crate::consistency;
use crate::earlier::{Layout, Trial};
use crate::error::BundleError;
use crate::files::{MANIFEST, VERSIONS, drop_cut_off_line, sha256};
use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::Start;
use plimsoll_model::study::Origin;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A line of the manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ManifestLine {
    /// The first line.
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
    /// A part is complete and on the disk.
    Sealed {
        /// `study`, `versions`, `start 7`.
        part: String,
        /// SHA-256 by path in the bundle.
        files: BTreeMap<String, String>,
    },
    /// The run decided on a start that was not planned, of a block that runs again. The start begins only once this
    /// line is on the disk.
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
    Looked(Look),
    /// The run broke off, because others used too much of the processors.
    BrokenOff {
        /// When, in UTC.
        at: String,
        /// The blocks in a row that did not count.
        blocks: u32,
        /// CPU that others used meanwhile, in cores.
        others: f64,
    },
    /// An interrupted run resumes here.
    Resumed {
        /// When, in UTC.
        at: String,
    },
    /// The run has come to its end.
    Complete {
        /// When, in UTC.
        at: String,
        /// After how many repeats it ended, if it ended early because every verdict was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided_after: Option<u32>,
    },
}

/// The name of the part with the study, its plan and the host.
pub(crate) const STUDY_PART: &str = "study";

/// The name of the part with the versions of what was run.
pub(crate) const VERSIONS_PART: &str = "versions";

/// The contents of a manifest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    /// Files with their hashes, by part. The last line about a part counts.
    pub(crate) sealed: BTreeMap<String, BTreeMap<String, String>>,
    /// The version of the format.
    pub(crate) format: u32,
    /// When the run began, in UTC.
    pub(crate) created: String,
    /// Where the results come from.
    pub(crate) origin: Origin,
    /// The starts that the run decided on in addition to the plan, each once.
    pub(crate) decided: Vec<Start>,
    /// The looks that were taken.
    pub(crate) looks: Vec<Look>,
    pub(crate) complete: bool,
    /// The blocks in a row that did not count, and the cores that others used meanwhile, if the run broke off and has not
    /// resumed.
    pub(crate) broken_off: Option<(u32, f64)>,
    /// After how many repeats the run ended, if that was before the last.
    pub(crate) decided_after: Option<u32>,
    /// What is wrong with the manifest itself.
    pub(crate) problems: Vec<String>,
    /// True if the run has resumed and its versions have not been listed again yet.
    resumed: bool,
}

impl Manifest {
    /// Records that a part was sealed. A run that resumes lists its versions again. The list is the same unless a
    /// program has changed; later, programs behind wrappers may be added to it.
    fn note_sealed(&mut self, part: String, files: BTreeMap<String, String>) {
        let changed = self.sealed.get(&part).is_some_and(|before| *before != files);
        if part == VERSIONS_PART && std::mem::take(&mut self.resumed) && changed {
            self.problems.push(format!(
                "what was run changed while the run was interrupted, so the trials are not all of the same programs: \
                 see {VERSIONS}"
            ));
        }
        self.sealed.insert(part, files);
    }

    /// The plan as it was carried out: with the starts that the run decided on, and without those that a run that ended
    /// early no longer needed.
    pub(crate) fn carried_out(&mut self, mut plan: Plan) -> Plan {
        let (fitting, misfits): (Vec<Start>, Vec<Start>) =
            self.decided.iter().cloned().partition(|start| consistency::fits(start, &plan));
        let misfits = misfits.iter().map(|start| format!("trial {} was added to another plan", start.number));
        self.problems.extend(misfits);
        plan.starts.extend(fitting);
        // A bundle may say anything of looks that were never declared.
        let declared = |look: &&Look| look.repeats < plan.repeats && plan.looks.contains(&look.repeats);
        let looks: Vec<Look> = self.looks.iter().filter(declared).cloned().collect();
        let plan = plan.without_spared(&looks);
        match self.decided_after {
            Some(repeats) => plan.up_to(repeats),
            None => plan,
        }
    }

    /// Why the run has not come to its end, and what is missing of `plan`; none if it has.
    pub(crate) fn unfinished(&self, plan: &Plan, starts: usize) -> Option<String> {
        let (planned, unit) = (plan.starts.len(), if plan.design.is_trials() { "trials" } else { "starts" });
        let missing = planned - starts.min(planned);
        let why = match self.broken_off {
            _ if self.complete => return None,
            Some((blocks, others)) => format!(
                "the run broke off after {blocks} blocks in a row that do not count, in which others used {others:.1} cores"
            ),
            None => "the run did not come to its end".to_owned(),
        };
        Some(format!("{why}: {missing} of {planned} {unit} are missing"))
    }

    /// Records a start that the run decided on. It replaces an unfinished start with the same number.
    fn decide(&mut self, start: Start) {
        self.decided.retain(|known| known.number != start.number);
        self.decided.push(start);
    }

    /// The names of files and folders in the bundle.
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

/// Reads the manifest of a bundle, as far as its lines are intact.
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
            (0, Some(ManifestLine::Bundle { format, .. })) if format > FORMAT => {
                return Err(BundleError::Newer { path: bundle.to_owned(), found: format });
            }
            (0, Some(ManifestLine::Bundle { format, created, origin, .. })) => {
                manifest.format = format;
                manifest.created = created;
                manifest.origin = origin;
            }
            (0, _) => {
                let fault = "its first line does not name the format".to_owned();
                return Err(BundleError::Damaged { path, fault });
            }
            (_, Some(ManifestLine::Sealed { part, files })) => {
                manifest.note_sealed(part, files);
            }
            (_, Some(ManifestLine::Decided { start })) => manifest.decide(start),
            (_, Some(ManifestLine::Added { trials })) => {
                trials.into_iter().for_each(|trial| manifest.decide(trial.into()));
            }
            (_, Some(ManifestLine::Looked(look))) => manifest.looks.push(look),
            (_, Some(ManifestLine::BrokenOff { blocks, others, .. })) => manifest.broken_off = Some((blocks, others)),
            (_, Some(ManifestLine::Resumed { .. })) => {
                manifest.resumed = true;
                manifest.broken_off = None;
            }
            (_, Some(ManifestLine::Complete { decided_after, .. })) => {
                manifest.complete = true;
                manifest.decided_after = decided_after;
            }
            (_, Some(ManifestLine::Bundle { .. }) | None) => {
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
    /// Creates a new manifest.
    pub(crate) fn create(bundle: &Path, created: String) -> Result<ManifestWriter, BundleError> {
        let path = bundle.join(MANIFEST);
        let file = File::create_new(&path).map_err(BundleError::io("create", &path))?;
        lock(&file, bundle)?;
        let mut manifest = ManifestWriter { path, file };
        let plimsoll = env!("CARGO_PKG_VERSION").to_owned();
        manifest.append(&ManifestLine::Bundle { format: FORMAT, plimsoll, created, origin: Origin::Measured })?;
        Ok(manifest)
    }

    /// Opens an existing manifest and locks it, so that nobody else writes the bundle from then on. It stays as it is.
    pub(crate) fn open(bundle: &Path) -> Result<ManifestWriter, BundleError> {
        let path = bundle.join(MANIFEST);
        let opened = File::options().read(true).append(true).open(&path);
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => BundleError::NoBundle(bundle.to_owned()),
            _ => BundleError::io("open", &path)(error),
        })?;
        lock(&file, bundle)?;
        Ok(ManifestWriter { path, file })
    }

    /// Removes a last line that was cut off. A damaged line before it stays, because nothing else is ever removed from
    /// a manifest.
    pub(crate) fn repair(&mut self) -> Result<(), BundleError> {
        drop_cut_off_line(&mut self.file).map_err(BundleError::io("repair", &self.path))
    }

    /// Enters a part whose files are whole and synced.
    pub(crate) fn seal(&mut self, bundle: &Path, part: String, paths: &[PathBuf]) -> Result<(), BundleError> {
        let mut files = BTreeMap::new();
        for path in paths {
            let hash = sha256(path).map_err(BundleError::io("read", path))?;
            let name = path.strip_prefix(bundle).unwrap_or(path).to_string_lossy().into_owned();
            files.insert(name, hash);
        }
        self.append(&ManifestLine::Sealed { part, files })
    }

    /// Appends a line, and syncs it.
    pub(crate) fn append(&mut self, line: &ManifestLine) -> Result<(), BundleError> {
        let mut text = serde_json::to_vec(line).expect("a line is plain data");
        text.push(b'\n');
        self.file
            .write_all(&text)
            .and_then(|()| self.file.sync_data())
            .map_err(BundleError::io("append to", &self.path))
    }
}

/// Keeps other runs from writing the same bundle. The kernel releases the lock when the process ends in any way. On a
/// file system without locks there is no protection.
fn lock(manifest: &File, bundle: &Path) -> Result<(), BundleError> {
    match manifest.try_lock() {
        Err(TryLockError::WouldBlock) => Err(BundleError::InUse(bundle.to_owned())),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}
