//! Writes a bundle: creates it, adds starts, and resumes it after an interruption.

use crate::FORMAT;
use crate::earlier::Layout;
use crate::error::BundleError;
use crate::files::{
    self, EVENTS, FACTS, HOST, PLAN, STARTS, STUDY, SUMMARY, VERSIONS, drop_cut_off_line, files_in, open_lines,
    read_json, start_folder, sync, sync_folder,
};
use crate::manifest::{self, Manifest, ManifestLine, ManifestWriter, STUDY_PART, VERSIONS_PART};
use crate::read::{faults_of, read_plan};
use crate::run_folder::RunFolder;
use crate::start::StartWriter;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_model::event::Event;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::result::{FinishedStart, RecordedRun};
use plimsoll_model::start::Start;
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
    /// When the bundle was begun, in UTC.
    created: String,
    manifest: ManifestWriter,
    events: File,
    recorded: RecordedRun,
    /// The start under way.
    start: Option<StartWriter>,
}

/// An event with its time.
#[derive(Serialize)]
struct TimedEvent {
    at: String,
    #[serde(flatten)] // nobody but the program writes it, and events are read by other tools
    event: Event,
}

impl BundleWriter {
    /// Begins a bundle in a new or empty folder, or in one of a run that was killed before its bundle had begun.
    ///
    /// # Errors
    /// The folder is not empty, or the disk does not accept what is written.
    pub fn create(
        folder: &Path,
        study: &str,
        facts: &StudyFacts,
        plan: &Plan,
        host: &Host,
    ) -> Result<BundleWriter, BundleError> {
        let starts = folder.join(STARTS);
        if is_occupied(folder) {
            return Err(BundleError::NotEmpty(folder.to_owned()));
        }
        fs::create_dir_all(&starts).map_err(BundleError::io("make the folder", &starts))?;
        files::write(&folder.join(STUDY), study.as_bytes())?;
        files::write_json(&folder.join(FACTS), facts)?;
        files::write_json(&folder.join(PLAN), plan)?;
        files::write_json(&folder.join(HOST), host)?;
        let events = open_events(folder)?;
        // The manifest is written last, so that a folder with a manifest has everything that a run needs to resume.
        let created = Timestamp::now().to_string();
        let mut manifest = ManifestWriter::create(folder, created.clone())?;
        seal_study(&mut manifest, folder)?;
        sync_folder(folder)?;
        if let Some(above) = folder.canonicalize().ok().as_deref().and_then(Path::parent) {
            sync_folder(above)?;
        }
        let recorded = RecordedRun::default();
        Ok(BundleWriter { folder: folder.to_owned(), created, manifest, events, recorded, start: None })
    }

    /// Opens the bundle of an interrupted run, to resume it with the same study.
    ///
    /// # Errors
    /// It is no bundle, it is complete, it is of an earlier format, it was begun with another study or
    /// plan, files of its starts were changed, or another run is writing it.
    pub fn resume(folder: &Path, study: &str, facts: &StudyFacts, plan: &Plan) -> Result<BundleWriter, BundleError> {
        // Nobody writes to a complete bundle any more, so it takes no lock, and may be on a read-only disk.
        if let Ok(manifest) = manifest::read(folder)
            && manifest.complete
        {
            must_be_of(folder, &manifest, study, facts, plan)?;
            return Err(BundleError::Complete(folder.to_owned()));
        }
        // Whoever holds the lock may seal starts. What is read before would lack them, and they would run again.
        let mut writer = ManifestWriter::open(folder)?;
        let manifest = manifest::read(folder)?;
        if manifest.format != FORMAT && !manifest.complete {
            return Err(BundleError::Earlier { path: folder.to_owned(), found: manifest.format });
        }
        must_be_of(folder, &manifest, study, facts, plan)?;
        if manifest.complete {
            return Err(BundleError::Complete(folder.to_owned()));
        }
        let starts = finished(folder, &manifest)?;
        let Manifest { sealed, created, decided, looks, .. } = manifest;
        writer.repair()?;
        if !sealed.contains_key(STUDY_PART) {
            seal_study(&mut writer, folder)?;
        }
        writer.append(&ManifestLine::Resumed { at: Timestamp::now().to_string() })?;
        let events = open_events(folder)?;
        let recorded = RecordedRun { starts, decided, looks };
        Ok(BundleWriter { folder: folder.to_owned(), created, manifest: writer, events, recorded, start: None })
    }

    /// A name of the run, which it keeps when it is interrupted and goes on: the instant at which it began.
    #[must_use]
    pub fn run_name(&self) -> &str {
        &self.created
    }

    /// What the bundle has recorded of the run so far.
    #[must_use]
    pub fn recorded(&self) -> &RecordedRun {
        &self.recorded
    }

    /// The bundle's folder, for the parts of a run that put files there.
    #[must_use]
    pub fn folder(&self) -> RunFolder {
        RunFolder::at(&self.folder)
    }

    /// Writes an event. When this returns for the results of a start, a decision or a look, they are durably on the
    /// disk.
    ///
    /// # Errors
    /// The disk does not accept it.
    pub fn on_event(&mut self, event: &Event) -> Result<(), BundleError> {
        match event {
            Event::VersionsFound { versions } => self.versions(versions)?,
            Event::StartDecided { start } => self.decide(start)?,
            Event::LookTaken { look, .. } => self.look(look)?,
            Event::TooDisturbed { blocks, others, goes_on: false } => self.break_off(*blocks, *others)?,
            Event::StartBegun { start, .. } => self.start = Some(self.begin_start(start)?),
            Event::ResultsComplete(finished) => {
                let start = self.start.take().expect("a start has begun that has results");
                self.seal_start(start, finished)?;
            }
            event => self.start.as_mut().map_or(Ok(()), |start| start.on_event(event))?,
        }
        self.log(event)?;
        match event {
            Event::RunFinished { complete: true, decided_after } => self.complete(*decided_after),
            _ => Ok(()),
        }
    }

    /// Adds a start that is not in the plan. When this returns, readers know it, whether it has begun or not.
    ///
    /// # Errors
    /// The disk does not accept it.
    fn decide(&mut self, start: &Start) -> Result<(), BundleError> {
        if !self.recorded.decided.contains(start) {
            self.manifest.append(&ManifestLine::Decided { start: start.clone() })?;
            self.recorded.decided.retain(|known| known.number != start.number);
            self.recorded.decided.push(start.clone());
        }
        Ok(())
    }

    /// Adds a look at the verdicts.
    ///
    /// # Errors
    /// The disk does not accept it.
    fn look(&mut self, look: &Look) -> Result<(), BundleError> {
        self.manifest.append(&ManifestLine::Looked(look.clone()))?;
        self.recorded.looks.push(look.clone());
        Ok(())
    }

    /// Records why the run ends before its plan does.
    ///
    /// # Errors
    /// The disk does not accept it.
    fn break_off(&mut self, blocks: u32, others: f64) -> Result<(), BundleError> {
        self.manifest.append(&ManifestLine::BrokenOff { at: Timestamp::now().to_string(), blocks, others })
    }

    /// Adds the versions of what is run now to those that an interrupted run may have listed. A program that has
    /// changed in between is then listed twice.
    ///
    /// # Errors
    /// The disk does not accept it.
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

    /// Appends the short form of an event to the log, with the time.
    fn log(&mut self, event: &Event) -> Result<(), BundleError> {
        let Some(event) = event.in_short() else { return Ok(()) };
        let mut line = serde_json::to_vec(&TimedEvent { at: Timestamp::now().to_string(), event }).expect("plain data");
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

    /// Seals a start. When this returns, it is durably on the disk.
    ///
    /// # Errors
    /// The disk does not accept it.
    fn seal_start(&mut self, writer: StartWriter, finished: &FinishedStart) -> Result<(), BundleError> {
        let number = writer.number();
        let partial = writer.finish(finished)?;
        let written = files_in(&partial).map_err(BundleError::io("read", &partial))?;
        // Among them is the output of systems, which has not been synced yet.
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

    /// Records that the run is complete, and after how many repeats if every verdict was reached before the last. Later
    /// repeats then do not count as missing.
    ///
    /// # Errors
    /// The disk does not accept it.
    fn complete(&mut self, decided_after: Option<u32>) -> Result<(), BundleError> {
        self.manifest.append(&ManifestLine::Complete { at: Timestamp::now().to_string(), decided_after })
    }
}

/// Refuses a bundle that was begun with another study or plan.
fn must_be_of(
    folder: &Path,
    manifest: &Manifest,
    study: &str,
    facts: &StudyFacts,
    plan: &Plan,
) -> Result<(), BundleError> {
    let other = |what| BundleError::OtherStudy { path: folder.to_owned(), what };
    if fs::read(folder.join(STUDY)).ok().as_deref() != Some(study.as_bytes()) {
        return Err(other("study"));
    }
    if read_plan(folder, manifest).ok().as_ref() != Some(plan) {
        return Err(other("plan"));
    }
    let begun_with = read_json::<StudyFacts>(&folder.join(FACTS)).map_err(|_| other("resolved study"))?;
    // Defaults of the floor's rule and of the design have changed. The same text means what the run was begun with,
    // whatever its file is called now.
    let StudyFacts { floor_rule, design_reason, can_take_turns, file, .. } = begun_with.clone();
    if begun_with != (StudyFacts { floor_rule, design_reason, can_take_turns, file, ..facts.clone() }) {
        return Err(other("resolved study"));
    }
    Ok(())
}

/// True if a folder has files that a bundle must not replace. Those of a run that was killed before it wrote its
/// manifest hold nothing yet.
fn is_occupied(folder: &Path) -> bool {
    let own = [STUDY, FACTS, PLAN, HOST, EVENTS, STARTS];
    let is_left_over = |entry: &fs::DirEntry| {
        own.iter().any(|name| entry.file_name() == *name)
            && (entry.file_name() != STARTS
                || fs::read_dir(entry.path()).is_ok_and(|mut starts| starts.next().is_none()))
    };
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten().peekable();
    let has_begun_nothing = folder.join(PLAN).is_file() || folder.join(STARTS).is_dir();
    entries.peek().is_some() && !(has_begun_nothing && entries.all(|entry| is_left_over(&entry)))
}

/// The starts that a manifest lists and whose folders exist. A start whose folder was deleted runs again; a bundle with
/// a changed folder cannot be resumed.
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

/// The present time in UTC, in a form for names of folders: `20261121-014205`.
#[must_use]
pub fn folder_time() -> String {
    Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S").to_string()
}
