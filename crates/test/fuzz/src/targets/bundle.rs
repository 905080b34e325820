//! Bundles: what a run leaves, and what a stranger may send.

use super::text;
use plimsoll_analysis::{Input, analyse};
use plimsoll_bundle::{BundleError, Contents};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use tempfile::TempDir;

/// A bundle whose manifest names no hashes, so that changed files are read.
const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/template");

/// The files of the template, relative to it.
static FILES: LazyLock<Vec<PathBuf>> = LazyLock::new(|| files(Path::new(TEMPLATE)));

/// The copy of the template in which one file after the other is replaced.
static FOLDER: LazyLock<Mutex<TempDir>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    copy(Path::new(TEMPLATE), folder.path());
    Mutex::new(folder)
});

/// Reads a bundle in which one file is replaced: the first line of the input names it, the rest is its content.
pub(super) fn bundle(input: &[u8]) {
    let _ = read(input);
}

/// Reads and analyses the same, and writes the report for the terminal.
pub(super) fn report(input: &[u8]) {
    if let Ok(contents) = read(input) {
        let input = input_of(contents);
        let analysis = analyse(&input);
        let _ = plimsoll_report::terminal(&input, &analysis);
    }
}

fn read(input: &[u8]) -> Result<Contents, BundleError> {
    let name = text(input.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let content = input.get(name.len() + 1..).unwrap_or_default();
    // Where the name is none, the manifest is replaced: it leads to everything else.
    let name = FILES.iter().find(|file| file.as_os_str() == &*name).cloned();
    let name = name.unwrap_or_else(|| PathBuf::from("manifest.jsonl"));
    let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    fs::write(folder.path().join(&name), content).expect("the file can be written");
    let read = plimsoll_bundle::read(folder.path());
    let _ = plimsoll_bundle::design_of(folder.path());
    fs::copy(Path::new(TEMPLATE).join(&name), folder.path().join(&name)).expect("the file can be restored");
    read
}

fn input_of(contents: Contents) -> Input {
    Input {
        facts: contents.facts,
        plan: contents.plan,
        starts: contents.starts,
        origin: contents.origin,
        host: contents.host,
        versions: contents.versions,
        problems: contents.problems,
        complete: contents.complete,
        declared: contents.declared,
    }
    .with_units_noted()
}

/// The files of a folder and of those in it, relative to it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(folder).expect("it lies inside").to_owned());
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let copy = to.join(&file);
        fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        fs::copy(from.join(&file), copy).expect("a copy");
    }
}
