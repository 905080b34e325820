//! Writes a bundle: begun once, grown by starts, gone on with after an interruption.

use crate::FORMAT;
use crate::earlier::Layout;
use crate::error::BundleError;
use crate::files::{
    self, EVENTS, FACTS, HOST, PLAN, STARTS, STUDY, SUMMARY, VERSIONS, drop_cut_off_line, files_in, open_lines,
    read_json, start_folder, sync, sync_folder,
};
use crate::manifest::{self, Line, Manifest, ManifestWriter, STUDY_PART, VERSIONS_PART};
use crate::read::{faults_of, read_plan};
use crate::run_folder::RunFolder;
use crate::start::StartWriter;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_model::event::Event;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::result::{FinishedStart, RecordedRun};
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
    recorded: RecordedRun,
    /// The start under way.
    start: Option<StartWriter>,
}

/// An event with its time.
#[derive(Serialize)]
struct Dated {
    at: String,
    #[serde(flatten)] // nobody but the program writes it, and events are read by other tools
    event: Event,
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
        let recorded = RecordedRun::default();
        Ok(BundleWriter { folder: folder.to_owned(), manifest, events, recorded, start: None })
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
        let starts = finished(folder, &manifest)?;
        let recorded = RecordedRun { starts, decided: manifest.decided.clone(), looks: manifest.looks.clone() };
        let study_is_sealed = manifest.sealed.contains_key(STUDY_PART);
        let mut manifest = ManifestWriter::open(folder)?;
        if !study_is_sealed {
            seal_study(&mut manifest, folder)?;
        }
        manifest.append(&Line::Resumed { at: Timestamp::now().to_string() })?;
        let events = open_events(folder)?;
        Ok(BundleWriter { folder: folder.to_owned(), manifest, events, recorded, start: None })
    }

    /// What the bundle has of the run by now.
    #[must_use]
    pub fn recorded(&self) -> &RecordedRun {
        &self.recorded
    }

    /// The bundle's folder, for those who put files of their own there.
    #[must_use]
    pub fn folder(&self) -> RunFolder {
        RunFolder::at(&self.folder)
    }

    /// Writes what an event says. When this comes back from the results of a start, from a decision or a look, they are
    /// on the disk and stay there.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn hear(&mut self, event: &Event) -> Result<(), BundleError> {
        match event {
            Event::VersionsFound { versions } => self.versions(versions)?,
            Event::StartDecided { start } => self.decide(start)?,
            Event::LookTaken { repeats, decided } => self.look(*repeats, *decided)?,
            Event::StartBegun { start, .. } => self.start = Some(self.begin_start(start)?),
            Event::ResultsComplete(finished) => {
                let start = self.start.take().expect("a start has begun that has results");
                self.seal_start(start, finished)?;
            }
            event => self.start.as_mut().map_or(Ok(()), |start| start.hear(event))?,
        }
        self.log(event)?;
        match event {
            Event::RunFinished { complete: true, decided_after } => self.complete(*decided_after),
            _ => Ok(()),
        }
    }

    /// Adds a start that the plan does not have. When this comes back, readers know it, whether it
    /// has begun or not.
    ///
    /// # Errors
    /// The disk does not take it.
    fn decide(&mut self, start: &Start) -> Result<(), BundleError> {
        if !self.recorded.decided.contains(start) {
            self.manifest.append(&Line::Decided { start: start.clone() })?;
            self.recorded.decided.retain(|known| known.number != start.number);
            self.recorded.decided.push(start.clone());
        }
        Ok(())
    }

    /// Adds a look at the verdicts after so many repeats.
    ///
    /// # Errors
    /// The disk does not take it.
    fn look(&mut self, repeats: u32, decided: bool) -> Result<(), BundleError> {
        self.manifest.append(&Line::Looked { repeats, decided })?;
        self.recorded.looks.push((repeats, decided));
        Ok(())
    }

    /// Adds what is run now to what an interrupted run may have entered: a program that has
    /// changed in between stands there twice.
    ///
    /// # Errors
    /// The disk does not take it.
    fn versions(&mut self, versions: &[Version]) -> Result<(), BundleError> {
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

    /// Appends an event in short, with the time.
    fn log(&mut self, event: &Event) -> Result<(), BundleError> {
        let Some(event) = event.in_short() else { return Ok(()) };
        let mut line = serde_json::to_vec(&Dated { at: Timestamp::now().to_string(), event }).expect("plain data");
        line.push(b'\n');
        self.events.write_all(&line).map_err(BundleError::io("append to", &self.folder.join(EVENTS)))
    }

    /// Begins a start.
    ///
    /// # Errors
    /// Its folder cannot be made.
    fn begin_start(&self, start: &Start) -> Result<StartWriter, BundleError> {
        StartWriter::begin(&self.folder, start)
    }

    /// Ends a start: when this comes back, it is on the disk and stays there.
    ///
    /// # Errors
    /// The disk does not take it.
    fn seal_start(&mut self, writer: StartWriter, finished: &FinishedStart) -> Result<(), BundleError> {
        let number = writer.number();
        let partial = writer.finish(finished)?;
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
        self.recorded.starts.insert(number, finished.clone());
        Ok(())
    }

    /// The run has come to its end: after so many repeats, where every verdict was reached before the last. Later
    /// repeats are not missing then.
    ///
    /// # Errors
    /// The disk does not take it.
    fn complete(&mut self, decided_after: Option<u32>) -> Result<(), BundleError> {
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
