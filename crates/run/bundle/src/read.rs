//! Reads a bundle back: whatever is whole, with a word on whatever is not.

use crate::error::BundleError;
use crate::files::{self, FACTS, HOST, PLAN, STUDY, TRIALS, VERSIONS, read_json, sha256, trial_folder};
use crate::interval_log;
use crate::manifest::{self, Manifest, STUDY_PART, VERSIONS_PART, trial_part};
use crate::tables::{ErrorRow, TotalRow, read_csv};
use plimsoll_model::host::{Host, Version, WORKLOAD};
use plimsoll_model::record::{LONGEST, RecordedPhase, Subject, Tally};
use plimsoll_model::result::{GeneratorRow, LoadSecond, TrialResult, TrialSummary, common_cuts};
use plimsoll_model::study::StudyFacts;
use plimsoll_model::trial::Plan;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a bundle holds.
#[derive(Debug)]
pub struct Contents {
    /// The study as written; empty where the file is damaged.
    pub study: String,
    /// What a report needs to know of the study.
    pub facts: StudyFacts,
    /// The plan, with the blocks that were run again; without the repeats that a run did not need
    /// any more.
    pub plan: Plan,
    /// The machine.
    pub host: Host,
    /// What was run.
    pub versions: Vec<Version>,
    /// The trials that are whole, in the order in which they ran.
    pub trials: Vec<TrialResult>,
    /// What is damaged, changed since the run, or missing: one sentence each.
    pub problems: Vec<String>,
    /// Whether the run came to its end.
    pub complete: bool,
    /// Whether facts and plan are those that were declared before the run: they have the hashes of
    /// the manifest.
    pub declared: bool,
}

/// Reads the bundle in `folder`.
///
/// # Errors
/// It is no bundle, its format is newer, or study or plan cannot be read.
pub fn read(folder: &Path) -> Result<Contents, BundleError> {
    let mut manifest = manifest::read(folder)?;
    let plan = manifest.carried_out(needed(folder, PLAN)?);
    let mut problems = manifest.problems.clone();
    for part in [STUDY_PART, VERSIONS_PART] {
        problems.extend(faults_of(folder, &manifest, part));
    }
    let facts = needed(folder, FACTS)?;
    let host = wanted(folder, HOST, &mut problems);
    let versions: Vec<Version> = wanted(folder, VERSIONS, &mut problems);
    problems.extend(changed_programs(&versions));
    let trials = read_trials(folder, &manifest, &plan, &mut problems);
    let missing = plan.trials.len() - trials.len().min(plan.trials.len());
    if !manifest.complete {
        problems
            .push(format!("the run did not come to its end: {missing} of {} trials are missing", plan.trials.len()));
    }
    let study = fs::read_to_string(folder.join(STUDY)).unwrap_or_default();
    let (complete, declared) = (manifest.complete, is_declared(folder, &manifest));
    Ok(Contents { study, facts, plan, host, versions, trials, problems, complete, declared })
}

/// Whether what is judged by, margins and order, is what was declared before the run.
fn is_declared(folder: &Path, manifest: &Manifest) -> bool {
    let is_as_it_was = |files: &BTreeMap<String, String>, name: &str| {
        files.get(name).is_none_or(|hash| sha256(&folder.join(name)).is_ok_and(|found| found == *hash))
    };
    let part = manifest.sealed.get(STUDY_PART);
    part.is_none_or(|files| [FACTS, PLAN].into_iter().all(|name| is_as_it_was(files, name)))
}

/// The programs and files of the workload of which there were two during the run: one and the same
/// file with two hashes. Of paths that depend on the folder of a system this cannot be told.
fn changed_programs(versions: &[Version]) -> Vec<String> {
    let is_known = |version: &Version| Path::new(&version.program).is_absolute() || version.name == WORKLOAD;
    let is_file = |version: &&Version| is_known(version) && version.sha256.is_some();
    let known: Vec<&Version> = versions.iter().filter(is_file).collect();
    let again = known.iter().enumerate().filter(|(index, version)| {
        known[..*index].iter().any(|before| before.program == version.program && before.sha256 != version.sha256)
    });
    let sentence = |program: &str| {
        format!("{program} changed during the run, so the trials are not all of the same programs: see {VERSIONS}")
    };
    again.map(|(_, version)| sentence(&version.program)).collect()
}

/// A file without which there is no report.
fn needed<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T, BundleError> {
    let path = folder.join(name);
    read_json(&path).map_err(|fault| BundleError::Damaged { path, fault })
}

/// A file that a report can do without.
fn wanted<T: DeserializeOwned + Default>(folder: &Path, name: &str, problems: &mut Vec<String>) -> T {
    read_json(&folder.join(name)).unwrap_or_else(|fault| {
        problems.push(format!("{name} cannot be read ({fault})"));
        T::default()
    })
}

fn read_trials(folder: &Path, manifest: &Manifest, plan: &Plan, problems: &mut Vec<String>) -> Vec<TrialResult> {
    let mut whole: Vec<(PathBuf, TrialSummary)> = Vec::new();
    for number in manifest.trials() {
        let faults = faults_of(folder, manifest, &trial_part(number));
        if !faults.is_empty() {
            problems.extend(faults);
            problems.push(format!("trial {number} is left out"));
            continue;
        }
        let trial = trial_folder(folder, number);
        match read_json::<TrialSummary>(&trial.join(files::SUMMARY)).map_err(in_file(files::SUMMARY)) {
            Ok(summary) if plan.trials.contains(&summary.trial) => whole.push((trial, summary)),
            Ok(_) => problems.push(format!("trial {number} is not in the plan and is left out")),
            Err(fault) => problems.push(format!("trial {number} is left out: {fault}")),
        }
    }
    let standing = whole.iter().map(|(_, summary)| summary).filter(|summary| !plan.is_superseded(&summary.trial));
    let cuts = common_cuts(standing);
    let mut trials = Vec::new();
    for (folder, summary) in whole {
        let (number, cut) = (summary.trial.number, cuts.get(&summary.trial.condition).copied().unwrap_or(0));
        match read_trial(&folder, summary, cut) {
            Ok(trial) => trials.push(trial),
            Err(fault) => problems.push(format!("trial {number} is left out: {fault}")),
        }
    }
    problems.extend(unlisted(folder, manifest));
    trials
}

/// The files of a part that are missing or are not what they were.
pub(crate) fn faults_of(folder: &Path, manifest: &Manifest, part: &str) -> Vec<String> {
    let Some(files) = manifest.sealed.get(part) else { return Vec::new() };
    let fault = |(name, hash): (&String, &String)| match sha256(&folder.join(name)) {
        Ok(found) if found == *hash => None,
        Ok(_) => Some(format!("{name} was changed after the run: its SHA-256 is not the one in the manifest")),
        Err(error) => Some(format!("{name} cannot be read ({error})")),
    };
    files.iter().filter_map(fault).collect()
}

/// Folders of trials that the manifest does not list: cut off before they were sealed.
fn unlisted(folder: &Path, manifest: &Manifest) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder.join(TRIALS)) else { return vec![format!("the folder {TRIALS} is missing")] };
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    let listed: Vec<String> = manifest.trials().iter().map(|number| format!("{number:04}")).collect();
    names.retain(|name| !listed.contains(name));
    let sentence = |name: String| match name.strip_suffix(".partial") {
        Some(_) => format!("{TRIALS}/{name} was not finished and is left out"),
        None => format!("{TRIALS}/{name} is not in the manifest and is left out"),
    };
    names.into_iter().map(sentence).collect()
}

fn read_trial(folder: &Path, summary: TrialSummary, cut: i64) -> Result<TrialResult, String> {
    let seconds: Vec<LoadSecond> = table(folder, files::LOAD)?;
    let generator: Vec<GeneratorRow> = table(folder, files::GENERATOR)?;
    let first_second = generator.first().map_or(0, |row| row.second);
    let tallies = match cut {
        ..=0 => read_tallies(folder)?,
        cut => read_tallies_from(folder, cut, first_second, &seconds)?,
    };
    Ok(TrialResult {
        summary,
        cut,
        tallies,
        seconds,
        generator,
        processes: table(folder, files::PROCESSES)?,
        host: table(folder, files::HOST_SERIES)?,
        databases: added_table(folder, files::DATABASES)?,
    })
}

/// What the measure phase scheduled: histograms from the interval log, the rest from the tables.
fn read_tallies(folder: &Path) -> Result<BTreeMap<Subject, Tally>, String> {
    let mut tallies = read_log(folder, Duration::ZERO)?;
    for row in table::<TotalRow>(folder, files::TOTALS)?.iter().filter(|row| row.phase == RecordedPhase::Measure) {
        let tally = tallies.entry(subject(&row.subject)?).or_default();
        tally.bytes_out = row.bytes_out;
        tally.bytes_in = row.bytes_in;
        tally.saturated = row.saturated;
    }
    add_errors(folder, &mut tallies, i64::MIN)?;
    Ok(tallies)
}

/// The same for what ended from second `cut` on. No table tells the bytes of both phases apart
/// second by second: they are those of everything that ended from then on, which is the measure
/// phase's but for what the warm-up left under way.
fn read_tallies_from(
    folder: &Path,
    cut: i64,
    first_second: i64,
    seconds: &[LoadSecond],
) -> Result<BTreeMap<Subject, Tally>, String> {
    let into_log = u64::try_from(cut - first_second).unwrap_or(0);
    let mut tallies = read_log(folder, Duration::from_secs(into_log))?;
    for row in seconds.iter().filter(|row| row.second >= cut) {
        if let Some(tally) = tallies.get_mut(&row.subject) {
            tally.bytes_out += row.bytes_out;
            tally.bytes_in += row.bytes_in;
        }
    }
    for row in table::<TotalRow>(folder, files::TOTALS)?.iter().filter(|row| row.phase == RecordedPhase::Measure) {
        if let Some(tally) = tallies.get_mut(&subject(&row.subject)?) {
            // What is above the longest that a histogram keeps stands there as the longest.
            tally.saturated = row.saturated.min(tally.service.count_at(LONGEST));
        }
    }
    add_errors(folder, &mut tallies, cut)?;
    Ok(tallies)
}

fn read_log(folder: &Path, from: Duration) -> Result<BTreeMap<Subject, Tally>, String> {
    let log = fs::read(folder.join(files::MEASURE_LOG)).map_err(|error| format!("{}: {error}", files::MEASURE_LOG))?;
    Ok(interval_log::read(&log, from).map_err(in_file(files::MEASURE_LOG))?.into_iter().collect())
}

/// Adds the errors that ended from second `from` on.
fn add_errors(folder: &Path, tallies: &mut BTreeMap<Subject, Tally>, from: i64) -> Result<(), String> {
    let rows: Vec<ErrorRow> = table(folder, files::ERRORS)?;
    for row in rows.iter().filter(|row| row.phase == RecordedPhase::Measure && row.second >= from) {
        *tallies.entry(subject(&row.subject)?).or_default().errors.entry(row.kind).or_default() += row.count;
    }
    Ok(())
}

fn subject(text: &str) -> Result<Subject, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn table<R: DeserializeOwned>(folder: &Path, name: &'static str) -> Result<Vec<R>, String> {
    read_csv(&folder.join(name)).map_err(in_file(name))
}

/// A table that earlier bundles do not have: nothing there is nothing in it. Where the manifest lists
/// one, that it is missing has been found before.
fn added_table<R: DeserializeOwned>(folder: &Path, name: &'static str) -> Result<Vec<R>, String> {
    if folder.join(name).exists() { table(folder, name) } else { Ok(Vec::new()) }
}

fn in_file(name: &'static str) -> impl Fn(String) -> String {
    move |fault| format!("{name} cannot be read ({fault})")
}
