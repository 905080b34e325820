//! Reads a bundle back: whatever is whole, with a word on whatever is not.

use crate::error::BundleError;
use crate::files::{self, FACTS, HOST, PLAN, STUDY, TRIALS, VERSIONS, read_json, sha256, trial_folder};
use crate::interval_log;
use crate::manifest::{self, Manifest, STUDY_PART, VERSIONS_PART, trial_part};
use crate::tables::{ErrorRow, TotalRow, read_csv};
use plimsoll_model::host::{Host, Version};
use plimsoll_model::record::{RecordedPhase, Subject, Tally};
use plimsoll_model::result::{TrialResult, TrialSummary};
use plimsoll_model::study::StudyFacts;
use plimsoll_model::trial::Plan;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What a bundle holds.
#[derive(Debug)]
pub struct Contents {
    /// The study as written; empty where the file is damaged.
    pub study: String,
    /// What a report needs to know of the study.
    pub facts: StudyFacts,
    /// The plan.
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
}

/// Reads the bundle in `folder`.
///
/// # Errors
/// It is no bundle, its format is newer, or study or plan cannot be read.
pub fn read(folder: &Path) -> Result<Contents, BundleError> {
    let manifest = manifest::read(folder)?;
    let mut problems = manifest.problems.clone();
    for part in [STUDY_PART, VERSIONS_PART] {
        problems.extend(faults_of(folder, &manifest, part));
    }
    let facts = needed(folder, FACTS)?;
    let plan: Plan = needed(folder, PLAN)?;
    let host = wanted(folder, HOST, &mut problems);
    let versions = wanted(folder, VERSIONS, &mut problems);
    let trials = read_trials(folder, &manifest, &plan, &mut problems);
    let missing = plan.trials.len() - trials.len().min(plan.trials.len());
    if !manifest.complete {
        problems
            .push(format!("the run did not come to its end: {missing} of {} trials are missing", plan.trials.len()));
    }
    let study = fs::read_to_string(folder.join(STUDY)).unwrap_or_default();
    Ok(Contents { study, facts, plan, host, versions, trials, problems, complete: manifest.complete })
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
    let mut trials = Vec::new();
    for number in manifest.trials() {
        let faults = faults_of(folder, manifest, &trial_part(number));
        if !faults.is_empty() {
            problems.extend(faults);
            problems.push(format!("trial {number} is left out"));
            continue;
        }
        match read_trial(&trial_folder(folder, number)) {
            Ok(trial) if plan.trials.contains(&trial.summary.trial) => trials.push(trial),
            Ok(_) => problems.push(format!("trial {number} is not in the plan and is left out")),
            Err(fault) => problems.push(format!("trial {number} is left out: {fault}")),
        }
    }
    problems.extend(unlisted(folder, manifest));
    trials
}

/// The files of a part that are missing or are not what they were.
fn faults_of(folder: &Path, manifest: &Manifest, part: &str) -> Vec<String> {
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

fn read_trial(folder: &Path) -> Result<TrialResult, String> {
    let summary: TrialSummary = read_json(&folder.join(files::SUMMARY)).map_err(in_file(files::SUMMARY))?;
    Ok(TrialResult {
        summary,
        tallies: read_tallies(folder)?,
        seconds: table(folder, files::LOAD)?,
        generator: table(folder, files::GENERATOR)?,
        processes: table(folder, files::PROCESSES)?,
        host: table(folder, files::HOST_SERIES)?,
    })
}

/// What the measure phase scheduled: histograms from the interval log, the rest from the tables.
fn read_tallies(folder: &Path) -> Result<BTreeMap<Subject, Tally>, String> {
    let log = fs::read(folder.join(files::MEASURE_LOG)).map_err(|error| format!("{}: {error}", files::MEASURE_LOG))?;
    let logged = interval_log::read(&log).map_err(in_file(files::MEASURE_LOG))?;
    let mut tallies: BTreeMap<Subject, Tally> = logged.into_iter().collect();
    for row in table::<TotalRow>(folder, files::TOTALS)?.iter().filter(|row| row.phase == RecordedPhase::Measure) {
        let tally = tallies.entry(subject(&row.subject)?).or_default();
        tally.bytes_out = row.bytes_out;
        tally.bytes_in = row.bytes_in;
        tally.saturated = row.saturated;
    }
    for row in table::<ErrorRow>(folder, files::ERRORS)?.iter().filter(|row| row.phase == RecordedPhase::Measure) {
        *tallies.entry(subject(&row.subject)?).or_default().errors.entry(row.kind).or_default() += row.count;
    }
    Ok(tallies)
}

fn subject(text: &str) -> Result<Subject, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn table<R: DeserializeOwned>(folder: &Path, name: &'static str) -> Result<Vec<R>, String> {
    read_csv(&folder.join(name)).map_err(in_file(name))
}

fn in_file(name: &'static str) -> impl Fn(String) -> String {
    move |fault| format!("{name} cannot be read ({fault})")
}
