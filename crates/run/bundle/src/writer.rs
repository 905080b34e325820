//! Writes a bundle: begun once, grown by starts, gone on with after an interruption.

use crate::FORMAT;
use crate::conceal::conceal_in_logs;
use crate::earlier::Layout;
use crate::error::BundleError;
use crate::files::{
    self, EVENTS, FACTS, HOST, PLAN, STARTS, STUDY, SUMMARY, VERSIONS, drop_cut_off_line, files_in, open_lines,
    partial_folder, plain, read_json, start_folder, sync, sync_folder,
};
use crate::manifest::{self, Line, Manifest, ManifestWriter, STUDY_PART, VERSIONS_PART};
use crate::note::Note;
use crate::read::{faults_of, read_plan};
use crate::start::{Series, StartWriter};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_model::event::Event;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::result::FinishedStart;
use plimsoll_model::start::{Plan, Start};
use plimsoll_model::study::StudyFacts;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A bundle that is being written.
#[derive(Debug)]
pub struct BundleWriter {
    folder: PathBuf,
    manifest: ManifestWriter,
    events: File,
    finished: BTreeMap<u32, FinishedStart>,
    decided: Vec<Start>,
    looks: Vec<(u32, bool)>,
}

/// An event with its time.
#[derive(Serialize)]
struct Dated<'a> {
    at: String,
    #[serde(flatten)] // nobody but the program writes it, and events are read by other tools
    event: &'a Event,
}

impl BundleWriter {
    /// Begins a bundle in a new or empty folder.
    ///
    /// # Errors
    /// The folder holds something, or the disk does not take what is written.
    pub fn create(
        folder: &Path,
        study: &str,
        facts: &StudyFacts,
        plan: &Plan,
        host: &Host,
    ) -> Result<BundleWriter, BundleError> {
        let starts = folder.join(STARTS);
        let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if occupied {
            return Err(BundleError::NotEmpty(folder.to_owned()));
        }
        fs::create_dir_all(&starts).map_err(BundleError::io("make the folder", &starts))?;
        files::write(&folder.join(STUDY), study.as_bytes())?;
        files::write_json(&folder.join(FACTS), facts)?;
        files::write_json(&folder.join(PLAN), plan)?;
        files::write_json(&folder.join(HOST), host)?;
        let events = open_events(folder)?;
        // The manifest comes last, so that a folder that has one has whatever a run needs to go on.
        let mut manifest = ManifestWriter::create(folder, Timestamp::now().to_string())?;
        seal_study(&mut manifest, folder)?;
        sync_folder(folder)?;
        if let Some(above) = folder.canonicalize().ok().as_deref().and_then(Path::parent) {
            sync_folder(above)?;
        }
        let (finished, decided, looks) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(BundleWriter { folder: folder.to_owned(), manifest, events, finished, decided, looks })
    }

    /// Opens a bundle that an interrupted run has left, to go on with the same study.
    ///
    /// # Errors
    /// It is no bundle, it is complete, it is of an earlier format, it was begun with another study or
    /// plan, files of its starts were changed, or another run is writing it.
    pub fn resume(folder: &Path, study: &str, facts: &StudyFacts, plan: &Plan) -> Result<BundleWriter, BundleError> {
        let manifest = manifest::read(folder)?;
        if manifest.format != FORMAT && !manifest.complete {
            return Err(BundleError::Earlier { path: folder.to_owned(), found: manifest.format });
        }
        let other = |what| BundleError::OtherStudy { path: folder.to_owned(), what };
        if fs::read(folder.join(STUDY)).ok().as_deref() != Some(study.as_bytes()) {
            return Err(other("study"));
        }
        if read_plan(folder, &manifest).ok().as_ref() != Some(plan) {
            return Err(other("plan"));
        }
        if read_json::<StudyFacts>(&folder.join(FACTS)).as_ref() != Ok(facts) {
            return Err(other("resolved study"));
        }
        if manifest.complete {
            return Err(BundleError::Complete(folder.to_owned()));
        }
        let finished = finished(folder, &manifest)?;
        let (decided, looks) = (manifest.decided.clone(), manifest.looks.clone());
        let study_is_sealed = manifest.sealed.contains_key(STUDY_PART);
        let mut manifest = ManifestWriter::open(folder)?;
        if !study_is_sealed {
            seal_study(&mut manifest, folder)?;
        }
        manifest.append(&Line::Resumed { at: Timestamp::now().to_string() })?;
        let events = open_events(folder)?;
        Ok(BundleWriter { folder: folder.to_owned(), manifest, events, finished, decided, looks })
    }

    /// The starts that are in the bundle, by their numbers.
    #[must_use]
    pub fn finished_starts(&self) -> &BTreeMap<u32, FinishedStart> {
        &self.finished
    }

    /// The looks that were taken: after how many repeats, and whether every verdict was reached.
    #[must_use]
    pub fn looks(&self) -> &[(u32, bool)] {
        &self.looks
    }

    /// The starts that the run decided on beside those of the plan, in order.
    #[must_use]
    pub fn decided_starts(&self) -> &[Start] {
        &self.decided
    }

    /// Adds a start that the plan does not have. When this comes back, readers know it, whether it
    /// has begun or not.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn decide(&mut self, start: &Start) -> Result<(), BundleError> {
        if !self.decided.contains(start) {
            self.manifest.append(&Line::Decided { start: start.clone() })?;
            self.decided.retain(|known| known.number != start.number);
            self.decided.push(start.clone());
        }
        Ok(())
    }

    /// Adds a look at the verdicts after so many repeats.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn look(&mut self, repeats: u32, decided: bool) -> Result<(), BundleError> {
        self.manifest.append(&Line::Looked { repeats, decided })?;
        self.looks.push((repeats, decided));
        Ok(())
    }

    /// Writes asterisks over `secret` wherever builds and the making of data have written it.
    ///
    /// # Errors
    /// Their output cannot be read or written.
    pub fn conceal(&self, secret: &str) -> Result<(), BundleError> {
        conceal_in_logs(&self.folder, secret)
    }

    /// Writes asterisks over `secret` in what a start has left whose writer is gone and that was not
    /// sealed.
    ///
    /// # Errors
    /// Its output cannot be read or written.
    pub fn conceal_in_unfinished(&self, start: u32, secret: &str) -> Result<(), BundleError> {
        let folder = partial_folder(&self.folder, start);
        if folder.is_dir() { conceal_in_logs(&folder, secret) } else { Ok(()) }
    }

    /// The bundle's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the run keeps the data of its databases. What a run has noted that was killed is still
    /// there when it goes on.
    #[must_use]
    pub fn data_note(&self) -> Note {
        Note::at(self.folder.join(files::DATA))
    }

    /// The file for what the build of the system `name` writes.
    #[must_use]
    pub fn build_log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("build-{}.log", plain(name)))
    }

    /// Adds what is run now to what an interrupted run may have entered: a program that has
    /// changed in between stands there twice.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn versions(&mut self, versions: &[Version]) -> Result<(), BundleError> {
        let path = self.folder.join(VERSIONS);
        let mut all: Vec<Version> = read_json(&path).unwrap_or_default();
        for version in versions {
            if !all.contains(version) {
                all.push(version.clone());
            }
        }
        let new = self.folder.join(format!("{VERSIONS}.partial"));
        files::write_json(&new, &all)?;
        fs::rename(&new, &path).map_err(BundleError::io("rename", &new))?;
        sync_folder(&self.folder)?;
        self.manifest.seal(&self.folder, VERSIONS_PART.to_owned(), &[path])
    }

    /// Appends an event, with the time.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn event(&mut self, event: &Event) -> Result<(), BundleError> {
        // What ended in a second stands in the tables of its start.
        let short = match event {
            Event::SecondPassed(second) => Some(Event::SecondPassed(Box::new(second.without_rows()))),
            _ => None,
        };
        let dated = Dated { at: Timestamp::now().to_string(), event: short.as_ref().unwrap_or(event) };
        let mut line = serde_json::to_vec(&dated).expect("an event is plain data");
        line.push(b'\n');
        self.events.write_all(&line).map_err(BundleError::io("append to", &self.folder.join(EVENTS)))
    }

    /// Begins a start.
    ///
    /// # Errors
    /// Its folder cannot be made.
    pub fn begin_start(&self, start: &Start) -> Result<StartWriter, BundleError> {
        StartWriter::begin(&self.folder, start)
    }

    /// Ends a start: when this comes back, it is on the disk and stays there.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn seal_start(
        &mut self,
        writer: StartWriter,
        finished: &FinishedStart,
        series: &Series<'_>,
    ) -> Result<(), BundleError> {
        let number = writer.number();
        let partial = writer.finish(finished, series)?;
        let written = files_in(&partial).map_err(BundleError::io("read", &partial))?;
        // The outputs of systems among them, which nobody has synced yet.
        written.iter().try_for_each(|file| sync(file))?;
        sync_folder(&partial)?;
        let folder = start_folder(&self.folder, number);
        if folder.exists() {
            // Left by a run that died between renaming a start and entering it in the manifest.
            fs::remove_dir_all(&folder).map_err(BundleError::io("remove the unlisted", &folder))?;
        }
        fs::rename(&partial, &folder).map_err(BundleError::io("rename", &partial))?;
        sync_folder(&self.folder.join(STARTS))?;
        self.events.sync_data().map_err(BundleError::io("sync", &self.folder.join(EVENTS)))?;
        let files: Vec<PathBuf> = written.iter().filter_map(|file| Some(folder.join(file.file_name()?))).collect();
        self.manifest.seal(&self.folder, Layout::of(FORMAT).part_of(number), &files)?;
        self.finished.insert(number, finished.clone());
        Ok(())
    }

    /// The run has come to its end.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn complete(&mut self) -> Result<(), BundleError> {
        self.end(None)
    }

    /// The run has come to its end after so many repeats, because every verdict is reached. Later
    /// repeats are not missing then.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn complete_after(&mut self, repeats: u32) -> Result<(), BundleError> {
        self.end(Some(repeats))
    }

    fn end(&mut self, decided_after: Option<u32>) -> Result<(), BundleError> {
        self.manifest.append(&Line::Complete { at: Timestamp::now().to_string(), decided_after })
    }
}

/// The starts that a manifest lists and whose folders are there. A folder that was deleted is that
/// of a start that runs anew; one that was changed is not to be gone on with.
fn finished(folder: &Path, manifest: &Manifest) -> Result<BTreeMap<u32, FinishedStart>, BundleError> {
    let (mut finished, mut faults) = (BTreeMap::new(), Vec::new());
    for number in manifest.starts().into_iter().filter(|number| start_folder(folder, *number).is_dir()) {
        let changed = faults_of(folder, manifest, &manifest.layout().part_of(number));
        if !changed.is_empty() {
            faults.extend(changed);
            continue;
        }
        let path = start_folder(folder, number).join(SUMMARY);
        match read_json(&path) {
            Ok(start) => drop(finished.insert(number, start)),
            Err(fault) => faults.push(format!("{} cannot be read ({fault})", path.display())),
        }
    }
    if faults.is_empty() { Ok(finished) } else { Err(BundleError::Changed { path: folder.to_owned(), faults }) }
}

fn seal_study(manifest: &mut ManifestWriter, folder: &Path) -> Result<(), BundleError> {
    let files = [STUDY, FACTS, PLAN, HOST].map(|name| folder.join(name));
    manifest.seal(folder, STUDY_PART.to_owned(), &files)
}

fn open_events(folder: &Path) -> Result<File, BundleError> {
    let path = folder.join(EVENTS);
    let mut events = open_lines(&path).map_err(BundleError::io("open", &path))?;
    drop_cut_off_line(&mut events).map_err(BundleError::io("repair", &path))?;
    Ok(events)
}

/// The present time in UTC as part of a folder's name: `20261121-014205`.
#[must_use]
pub fn folder_time() -> String {
    Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S").to_string()
}
