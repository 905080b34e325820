//! `plimsoll release-report`: the report of a release, written from its bundles alone.

use super::report::{input_of, write_documents};
use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::{Context, anyhow};
use plimsoll_analysis::analyse;
use plimsoll_report::Document;
use plimsoll_report::release::{Part, TITLE, release};
use std::path::{Path, PathBuf};

const README: &str = "README.md";

/// The files and folders of a report.
const FILES: [&str; 2] = [README, "index.html"];
const FOLDERS: [&str; 2] = ["graphs", "data"];

pub(super) fn release_report(bundles: &[PathBuf], out: &Path) -> Result<Exit, Failure> {
    let parts = bundles.iter().map(|folder| part(folder)).collect::<anyhow::Result<Vec<Part>>>();
    let parts = parts.map_err(|error| Failure::new(Exit::Usage, error))?;
    let documents = release(&parts).map_err(|error| Failure::new(Exit::Usage, anyhow!(error)))?;
    write(&documents, out, bundles)?;
    say::result(&format!("report  {0}/index.html\n        {0}/README.md", out.display()))?;
    Ok(Exit::Fine)
}

fn part(folder: &Path) -> anyhow::Result<Part> {
    let contents = plimsoll_bundle::read(folder)?;
    for problem in &contents.problems {
        say::note(&format!("{}: {problem}", folder.display()));
    }
    let input = input_of(contents);
    let plimsoll = plimsoll_bundle::written_by(folder).unwrap_or_else(|| "of unknown version".to_owned());
    Ok(Part { analysis: analyse(&input), input, plimsoll })
}

/// Writes the report of a release, whose results lie in these folders, in place of an earlier one. A folder with anything else
/// is left alone.
pub(super) fn write(documents: &[Document], out: &Path, results: &[PathBuf]) -> Result<(), Failure> {
    if let Some(why) = why_no_folder_for_a_report(&entries(out)?, out, results) {
        let message = anyhow!(
            "{} is no folder for a report: {why}; `--out` takes a folder that is new, empty, or has an earlier report",
            out.display()
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    for folder in FOLDERS.map(|name| out.join(name)).iter().filter(|folder| folder.is_dir()) {
        std::fs::remove_dir_all(folder).with_context(|| format!("failed to remove {}", folder.display()))?;
    }
    write_documents(documents, out)
}

/// Why a report may not take the place of what is in a folder; none where it may. A folder `data` alone may be anybody's.
fn why_no_folder_for_a_report(names: &[String], out: &Path, results: &[PathBuf]) -> Option<String> {
    let has = |known: &str| names.iter().any(|name| name == known);
    if let Some(strange) = names.iter().find(|name| !FILES.iter().chain(&FOLDERS).any(|known| known == name)) {
        return Some(format!("it has {strange}, which no report has"));
    }
    if let Some(missing) = FILES.iter().find(|file| !names.is_empty() && !has(file)) {
        return Some(format!("it has {} and no {missing}, without which no report is", names[0]));
    }
    let lies_in = |folder: &&PathBuf| match (folder.canonicalize(), out.canonicalize()) {
        (Ok(folder), Ok(out)) => folder.starts_with(out),
        _ => false,
    };
    if let Some(within) = results.iter().find(lies_in) {
        return Some(format!("the results {} lie in it", within.display()));
    }
    // A site of somebody else's has files of these names, too.
    let title = format!("# {TITLE}: ");
    let is_ours = || std::fs::read_to_string(out.join(README)).is_ok_and(|text| text.starts_with(&title));
    let is_strange = !names.is_empty() && !is_ours();
    is_strange.then(|| format!("its {README} does not begin with `{title}`, as that of a report does"))
}

/// The names in a folder; none where it is not there.
fn entries(folder: &Path) -> Result<Vec<String>, Failure> {
    match std::fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            Err(Failure::new(Exit::Usage, anyhow!("failed to read the folder {}: {error}", folder.display())))
        }
    }
}
