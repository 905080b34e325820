//! Reads a bundle back: everything that is intact, with a message for everything that is not.

use crate::consistency::{facts_fault, plan_fault, start_fault};
use crate::earlier::{EarlierPlan, TrialSummary};
use crate::error::BundleError;
use crate::files::{self, FACTS, HOST, PLAN, STUDY, VERSIONS, read_json, sha256};
use crate::interval_log::{self, Selection};
use crate::manifest::{self, Manifest, STUDY_PART, VERSIONS_PART};
use crate::tables::{ErrorRow, TotalRow, read_csv};
use plimsoll_model::host::{Host, Version, WORKLOAD};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{LONGEST, RecordedPhase, Subject, Tally};
use plimsoll_model::result::{
    FinishedStart, GeneratorRow, LoadResult, LoadSecond, LoadSummary, PooledLoads, PooledRungs, StartResult,
    common_cuts, validity_of_loads, whole_turns,
};
use plimsoll_model::start::{Design, Validity};
use plimsoll_model::study::{Origin, StudyFacts};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The contents of a bundle.
#[derive(Debug)]
pub struct Contents {
    /// The study as written; empty where the file is damaged.
    pub study: String,
    /// The facts about the study that a report needs.
    pub facts: StudyFacts,
    /// The plan as it was carried out: with the blocks that ran again, without the repeats that were no longer needed.
    pub plan: Plan,
    /// The machine.
    pub host: Host,
    /// The versions of what was run.
    pub versions: Vec<Version>,
    /// The starts that are intact, in the order in which they ran.
    pub starts: Vec<StartResult>,
    /// A sentence for everything that is damaged, missing, or was changed since the run.
    pub problems: Vec<String>,
    /// True if the run came to its end.
    pub complete: bool,
    /// Where the results come from.
    pub origin: Origin,
    /// True if facts and plan are those that were declared before the run, by the hashes in the manifest.
    pub declared: bool,
}

/// Reads the bundle in `folder`.
///
/// # Errors
/// It is no bundle, its format is newer, or study or plan cannot be read.
pub fn read(folder: &Path) -> Result<Contents, BundleError> {
    let mut manifest = manifest::read(folder)?;
    let plan = read_plan(folder, &manifest)?;
    let plan = manifest.carried_out(plan);
    let mut problems = manifest.problems.clone();
    for part in [STUDY_PART, VERSIONS_PART] {
        problems.extend(faults_of(folder, &manifest, part));
    }
    let facts: StudyFacts = read_required(folder, FACTS)?;
    let facts = consistent(folder, FACTS, facts_fault(&facts), facts)?;
    let host = read_or_default(folder, HOST, &mut problems);
    let versions: Vec<Version> = read_or_default(folder, VERSIONS, &mut problems);
    problems.extend(changed_programs(&versions));
    let starts = read_starts(folder, &manifest, &plan, &mut problems);
    problems.extend(manifest.unfinished(&plan, starts.len()));
    let study = fs::read_to_string(folder.join(STUDY)).unwrap_or_default();
    let (complete, declared) = (manifest.complete, is_declared(folder, &manifest));
    let origin = manifest.origin;
    Ok(Contents { study, facts, plan, host, versions, starts, problems, complete, origin, declared })
}

/// The design with which the run of a bundle began.
///
/// # Errors
/// It is no bundle, or its plan cannot be read.
pub fn design_of(folder: &Path) -> Result<Design, BundleError> {
    Ok(read_plan(folder, &manifest::read(folder)?)?.design)
}

/// Reads the plan in the bundle's format.
pub(crate) fn read_plan(folder: &Path, manifest: &Manifest) -> Result<Plan, BundleError> {
    let plan = if manifest.layout().is_earlier() {
        read_required::<EarlierPlan>(folder, PLAN).map(Plan::from)
    } else {
        read_required(folder, PLAN)
    };
    plan.and_then(|plan| consistent(folder, PLAN, plan_fault(&plan), plan))
}

/// The content of a file, unless it has a fault.
fn consistent<T>(folder: &Path, name: &str, fault: Option<String>, content: T) -> Result<T, BundleError> {
    fault.map_or(Ok(content), |fault| Err(BundleError::Damaged { path: folder.join(name), fault }))
}

/// True if the margins and the order that verdicts depend on are those that were declared before the run.
fn is_declared(folder: &Path, manifest: &Manifest) -> bool {
    let is_unchanged = |files: &BTreeMap<String, String>, name: &str| {
        files.get(name).is_none_or(|hash| sha256(&folder.join(name)).is_ok_and(|found| found == *hash))
    };
    let part = manifest.sealed.get(STUDY_PART);
    part.is_none_or(|files| [FACTS, PLAN].into_iter().all(|name| is_unchanged(files, name)))
}

/// A sentence for each program or file of the workload that changed during the run: the same file has two hashes. Paths
/// that depend on the folder of a system are left out, because they may name different files.
fn changed_programs(versions: &[Version]) -> Vec<String> {
    let is_known = |version: &Version| Path::new(&version.program).is_absolute() || version.name == WORKLOAD;
    let is_file = |version: &&Version| is_known(version) && version.sha256.is_some();
    let known: Vec<&Version> = versions.iter().filter(is_file).collect();
    let changed = known.iter().enumerate().filter(|(index, version)| {
        known[..*index].iter().any(|before| before.program == version.program && before.sha256 != version.sha256)
    });
    let sentence = |program: &str| {
        format!("{program} changed during the run, so the trials are not all of the same programs: see {VERSIONS}")
    };
    changed.map(|(_, version)| sentence(&version.program)).collect()
}

/// Reads a file that a report cannot do without.
fn read_required<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T, BundleError> {
    let path = folder.join(name);
    read_json(&path).map_err(|fault| BundleError::Damaged { path, fault })
}

/// Reads a file that a report can do without.
fn read_or_default<T: DeserializeOwned + Default>(folder: &Path, name: &str, problems: &mut Vec<String>) -> T {
    read_json(&folder.join(name)).unwrap_or_else(|fault| {
        problems.push(format!("{name} cannot be read ({fault})"));
        T::default()
    })
}

fn read_starts(folder: &Path, manifest: &Manifest, plan: &Plan, problems: &mut Vec<String>) -> Vec<StartResult> {
    let layout = manifest.layout();
    let mut intact: Vec<(PathBuf, FinishedStart)> = Vec::new();
    for number in manifest.starts() {
        let faults = faults_of(folder, manifest, &layout.part_of(number));
        if !faults.is_empty() {
            problems.extend(faults);
            problems.push(format!("trial {number} is left out"));
            continue;
        }
        let start = layout.start_folder(folder, number);
        match read_finished(&start, manifest, plan) {
            Ok(finished) if plan.starts.contains(&finished.summary.start) => intact.push((start, finished)),
            Ok(_) => problems.push(format!("trial {number} is not in the plan and is left out")),
            Err(fault) => problems.push(format!("trial {number} is left out: {fault}")),
        }
    }
    let current = intact.iter().map(|(_, finished)| finished);
    let cuts = common_cuts(current.filter(|finished| !plan.is_superseded(&finished.summary.start)));
    let mut starts = Vec::new();
    for (folder, finished) in intact {
        let start = &finished.summary.start;
        let (number, cut) = (start.number, cuts.get(&start.condition).copied().unwrap_or(0));
        let reader =
            StartReader { folder: &folder, starts_folder: layout.folder, numbered_loads: layout.numbered_loads, cut };
        match reader.read(finished) {
            Ok(start) => starts.push(start),
            Err(fault) => problems.push(format!("trial {number} is left out: {fault}")),
        }
    }
    problems.extend(unlisted(folder, manifest));
    starts
}

/// Reads the short facts of a start in the bundle's format.
fn read_finished(start: &Path, manifest: &Manifest, plan: &Plan) -> Result<FinishedStart, String> {
    let layout = manifest.layout();
    let path = start.join(layout.summary);
    let finished = if layout.is_earlier() {
        read_json::<TrialSummary>(&path).map(|summary| summary.finished_start(plan))
    } else {
        read_json(&path)
    };
    let finished: FinishedStart = finished.map_err(in_file(layout.summary))?;
    match start_fault(&finished) {
        None => Ok(finished),
        Some(fault) => Err(in_file(layout.summary)(fault)),
    }
}

/// A sentence for each file of a part that is missing or was changed.
pub(crate) fn faults_of(folder: &Path, manifest: &Manifest, part: &str) -> Vec<String> {
    let Some(files) = manifest.sealed.get(part) else { return Vec::new() };
    let fault = |(name, hash): (&String, &String)| match sha256(&folder.join(name)) {
        Ok(found) if found == *hash => None,
        Ok(_) => Some(format!("{name} was changed after the run: its SHA-256 is not the one in the manifest")),
        Err(error) => Some(format!("{name} cannot be read ({error})")),
    };
    files.iter().filter_map(fault).collect()
}

/// A sentence for each folder of a start that the manifest does not list, because the run ended before it was sealed.
fn unlisted(folder: &Path, manifest: &Manifest) -> Vec<String> {
    let starts_folder = manifest.layout().folder;
    let Ok(entries) = fs::read_dir(folder.join(starts_folder)) else {
        return vec![format!("the folder {starts_folder} is missing")];
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    let listed: Vec<String> = manifest.starts().iter().map(|number| format!("{number:04}")).collect();
    names.retain(|name| !listed.contains(name));
    let sentence = |name: String| match name.strip_suffix(".partial") {
        Some(_) => format!("{starts_folder}/{name} was not finished and is left out"),
        None => format!("{starts_folder}/{name} is not in the manifest and is left out"),
    };
    names.into_iter().map(sentence).collect()
}

/// Reads the results of a start.
struct StartReader<'a> {
    /// The folder of the start.
    folder: &'a Path,
    /// The folder of all starts, relative to the bundle's.
    starts_folder: &'a str,
    /// True if histograms are marked with the number of their load.
    numbered_loads: bool,
    /// The first second of the measure phases that counts.
    cut: i64,
}

/// The tables of a start, with the rows of all its loads.
struct Tables {
    seconds: Vec<LoadSecond>,
    generator: Vec<GeneratorRow>,
    totals: Vec<TotalRow>,
    errors: Vec<ErrorRow>,
}

impl StartReader<'_> {
    fn read(&self, finished: FinishedStart) -> Result<StartResult, String> {
        let FinishedStart { summary, loads } = finished;
        let tables = Tables {
            seconds: table(self.folder, files::LOAD)?,
            generator: table(self.folder, files::GENERATOR)?,
            totals: table(self.folder, files::TOTALS)?,
            errors: table(self.folder, files::ERRORS)?,
        };
        let loads = if loads.iter().any(|load| load.load.rung.is_some()) {
            self.read_rungs(loads, &tables)?
        } else if loads.iter().any(|load| load.load.turn > 1) {
            self.read_slices(loads, &tables)?
        } else {
            loads.into_iter().map(|load| self.read_load(load, &tables)).collect::<Result<_, String>>()?
        };
        let mut start = StartResult {
            folder: format!("{}/{:04}", self.starts_folder, summary.start.number),
            summary,
            loads,
            processes: table(self.folder, files::PROCESSES)?,
            host: table(self.folder, files::HOST_SERIES)?,
            databases: optional_table(self.folder, files::DATABASES)?,
            waits: optional_table(self.folder, files::WAITS)?,
            metrics: optional_table(self.folder, files::METRICS)?,
        };
        if !self.numbered_loads {
            mark_with_only_variant(&mut start);
        }
        Ok(start)
    }

    fn read_load(&self, summary: LoadSummary, tables: &Tables) -> Result<LoadResult, String> {
        let number = summary.load.number;
        let seconds: Vec<LoadSecond> = tables.seconds.iter().filter(|row| row.load == number).cloned().collect();
        let generator: Vec<GeneratorRow> = tables.generator.iter().filter(|row| row.load == number).cloned().collect();
        let tallies = match self.cut {
            ..=0 => self.read_tallies(number, tables)?,
            cut => {
                let first_second = tables.generator.first().map_or(0, |row| row.second);
                let zero = summary.timing.zero.0 as f64 / 1e9;
                // Logs have times in milliseconds, so half a millisecond allows for rounding.
                let into_log = zero + (cut - first_second) as f64 - 0.0005;
                let from = Duration::from_secs_f64(into_log.max(0.0));
                self.read_tallies_from(number, from, &seconds, tables)?
            }
        };
        Ok(LoadResult {
            summary,
            cut: self.cut,
            tallies,
            seconds,
            generator,
            slices: Vec::new(),
            rungs: Vec::new(),
            recoveries: Vec::new(),
        })
    }

    /// Puts the slices of the turns that count together, variant by variant. Where too few count to judge by, all do.
    fn read_slices(&self, loads: Vec<LoadSummary>, tables: &Tables) -> Result<Vec<LoadResult>, String> {
        let validity = validity_of_loads(&loads.iter().collect::<Vec<_>>());
        let whole = whole_turns(loads.iter());
        let counts = |load: &LoadSummary| whole.is_empty() || whole.contains(&load.load.turn);
        let logs = interval_log::by_load(&self.measure_log()?);
        let mut pooled = PooledLoads::default();
        for summary in loads {
            if !counts(&summary) {
                pooled.leave_out(&summary);
                continue;
            }
            pooled.add(&self.read_short_load(summary, &logs, tables)?);
        }
        let with_validity = |mut load: LoadResult| {
            load.summary.validity = validity.clone();
            load
        };
        Ok(pooled.finish().into_iter().map(with_validity).collect())
    }

    /// A load of several on a start, whose histograms are in `logs` by its number; without its rows over time.
    fn read_short_load(
        &self,
        summary: LoadSummary,
        logs: &BTreeMap<u32, Vec<u8>>,
        tables: &Tables,
    ) -> Result<LoadResult, String> {
        let number = summary.load.number;
        let log = logs.get(&number).map_or(&[][..], Vec::as_slice);
        let tallies = self.with_totals(self.read_log(log, number, Duration::ZERO)?, number, tables)?;
        let generator = tables.generator.iter().filter(|row| row.load == number).cloned().collect();
        let (seconds, slices, rungs, recoveries) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(LoadResult { summary, cut: 0, tallies, seconds, generator, slices, rungs, recoveries })
    }

    /// Puts the loads of searches together, variant by variant.
    fn read_rungs(&self, loads: Vec<LoadSummary>, tables: &Tables) -> Result<Vec<LoadResult>, String> {
        let validity = |variant: usize| {
            let of_variant = loads.iter().filter(|load| load.load.variant == variant);
            validity_of_loads(&of_variant.collect::<Vec<_>>())
        };
        let validities: BTreeMap<usize, Validity> =
            loads.iter().map(|load| (load.load.variant, validity(load.load.variant))).collect();
        let logs = interval_log::by_load(&self.measure_log()?);
        let mut pooled = PooledRungs::default();
        for summary in loads {
            let number = summary.load.number;
            let seconds = tables.seconds.iter().filter(|row| row.load == number).cloned().collect();
            pooled.add(LoadResult { seconds, ..self.read_short_load(summary, &logs, tables)? });
        }
        let with_validity = |mut load: LoadResult| {
            load.summary.validity = validities[&load.summary.load.variant].clone();
            load
        };
        Ok(pooled.finish().into_iter().map(with_validity).collect())
    }

    /// The tallies of what the measure phase scheduled: histograms from the interval log, the rest from the tables.
    fn read_tallies(&self, load: u32, tables: &Tables) -> Result<BTreeMap<Subject, Tally>, String> {
        let histograms = self.read_log(&self.measure_log()?, load, Duration::ZERO)?;
        self.with_totals(histograms, load, tables)
    }

    /// The tallies of a load with their bytes and errors.
    fn with_totals(
        &self,
        mut tallies: BTreeMap<Subject, Tally>,
        load: u32,
        tables: &Tables,
    ) -> Result<BTreeMap<Subject, Tally>, String> {
        for row in tables.measured_totals(load) {
            let tally = tallies.entry(subject(&row.subject)?).or_default();
            tally.bytes_out = row.bytes_out;
            tally.bytes_in = row.bytes_in;
            tally.saturated = row.saturated;
        }
        tables.add_errors(load, &mut tallies, i64::MIN)?;
        Ok(tallies)
    }

    /// The same for what ended from the cut on, which is `from` after the base of the log. No table has the bytes of
    /// the two phases separately by second. So the bytes are those of everything that ended from the cut on; of the
    /// warm-up, that is only what was still under way.
    fn read_tallies_from(
        &self,
        load: u32,
        from: Duration,
        seconds: &[LoadSecond],
        tables: &Tables,
    ) -> Result<BTreeMap<Subject, Tally>, String> {
        let mut tallies = self.read_log(&self.measure_log()?, load, from)?;
        for row in seconds.iter().filter(|row| row.second >= self.cut) {
            if let Some(tally) = tallies.get_mut(&row.subject) {
                tally.bytes_out += row.bytes_out;
                tally.bytes_in += row.bytes_in;
            }
        }
        for row in tables.measured_totals(load) {
            if let Some(tally) = tallies.get_mut(&subject(&row.subject)?) {
                // A histogram holds longer durations as the longest that it can keep.
                tally.saturated = row.saturated.min(tally.service.count_at(LONGEST));
            }
        }
        tables.add_errors(load, &mut tallies, self.cut)?;
        Ok(tallies)
    }

    fn measure_log(&self) -> Result<Vec<u8>, String> {
        fs::read(self.folder.join(files::MEASURE_LOG)).map_err(|error| format!("{}: {error}", files::MEASURE_LOG))
    }

    fn read_log(&self, log: &[u8], load: u32, from: Duration) -> Result<BTreeMap<Subject, Tally>, String> {
        let selection = Selection { load: self.numbered_loads.then_some(load), from };
        Ok(interval_log::read(log, selection).map_err(in_file(files::MEASURE_LOG))?.into_iter().collect())
    }
}

impl Tables {
    /// The totals of the measure phase of a load.
    fn measured_totals(&self, load: u32) -> impl Iterator<Item = &TotalRow> {
        self.totals.iter().filter(move |row| row.load == load && row.phase == RecordedPhase::Measure)
    }

    /// Adds the errors of a load from second `from` on.
    fn add_errors(&self, load: u32, tallies: &mut BTreeMap<Subject, Tally>, from: i64) -> Result<(), String> {
        let measured = |row: &&ErrorRow| row.load == load && row.phase == RecordedPhase::Measure;
        for row in self.errors.iter().filter(measured).filter(|row| row.second >= from) {
            *tallies.entry(subject(&row.subject)?).or_default().errors.entry(row.kind).or_default() += row.count;
        }
        Ok(())
    }
}

/// Sets the variant of each sample, for formats without that column, in which a start has only one variant.
fn mark_with_only_variant(start: &mut StartResult) {
    let variant = start.summary.start.only_variant().unwrap_or_default();
    start.processes.iter_mut().for_each(|sample| sample.variant = variant);
    start.databases.iter_mut().for_each(|sample| sample.variant = variant);
}

fn subject(text: &str) -> Result<Subject, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn table<R: DeserializeOwned>(folder: &Path, name: &'static str) -> Result<Vec<R>, String> {
    read_csv(&folder.join(name)).map_err(in_file(name))
}

/// Reads a table that earlier bundles do not have; a missing file is an empty table. If the manifest lists the file,
/// the check of hashes has already reported that it is missing.
fn optional_table<R: DeserializeOwned>(folder: &Path, name: &'static str) -> Result<Vec<R>, String> {
    if folder.join(name).exists() { table(folder, name) } else { Ok(Vec::new()) }
}

fn in_file(name: &'static str) -> impl Fn(String) -> String {
    move |fault| format!("{name} cannot be read ({fault})")
}
