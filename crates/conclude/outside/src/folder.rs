//! Folders: a version has files, or runs, or cases that have either.

use crate::fault::Fault;
use crate::recorded::{Case, Recorded, Run, Version};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of a file.
const MOST: u64 = 64 << 20;

/// The name of a folder that is a run, before its number.
const RUN: &str = "run";

/// True if a folder has results of other tools, at any depth that they can have.
#[must_use]
pub fn is_outside(folder: &Path) -> bool {
    fn has_results(folder: &Path, depth: usize) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        let mut paths = entries.flatten().map(|entry| entry.path());
        paths.any(|path| is_result(&path) || (depth > 0 && path.is_dir() && has_results(&path, depth - 1)))
    }
    has_results(folder, 2)
}

/// Reads the results of a version.
///
/// # Errors
/// What is not as it should be, with the path of the file.
pub fn read(folder: &Path) -> Result<Version, Fault> {
    let name = folder.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let name = name.unwrap_or_else(|| folder.display().to_string());
    let Contents { files, folders } = contents(folder)?;
    if !files.is_empty() || folders.iter().all(|path| is_run(path)) {
        return Ok(Version { name, cases: BTreeMap::from([(String::new(), case(folder)?)]) });
    }
    let cases = folders.iter().map(|path| Ok((name_of(path), case(path)?))).collect::<Result<_, Fault>>()?;
    Ok(Version { name, cases })
}

/// The runs of a folder: itself, or the folders in it.
fn case(folder: &Path) -> Result<Case, Fault> {
    let Contents { files, folders } = contents(folder)?;
    match (files.is_empty(), folders.is_empty()) {
        (false, false) => Err(Fault::FilesAndFolders { path: folder.to_owned() }),
        (true, true) => Err(Fault::NoResults { path: folder.to_owned() }),
        (false, true) => Ok(vec![run(&files)?]),
        (true, false) => match folders.iter().find(|path| !is_run(path)) {
            Some(path) => Err(Fault::NoRun { path: path.clone() }),
            None => folders.iter().map(|path| run_in(path)).collect(),
        },
    }
}

fn run_in(folder: &Path) -> Result<Run, Fault> {
    let Contents { files, folders } = contents(folder)?;
    match (files.is_empty(), folders.is_empty()) {
        (false, false) => Err(Fault::FilesAndFolders { path: folder.to_owned() }),
        (true, _) => Err(Fault::NoResults { path: folder.to_owned() }),
        (false, true) => run(&files),
    }
}

fn run(files: &[PathBuf]) -> Result<Run, Fault> {
    let mut run = Run::default();
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let recorded = file(path)?;
        if run.measures.insert(name.clone(), recorded).is_some() {
            return Err(Fault::Twice { path: path.clone(), name });
        }
    }
    Ok(run)
}

fn file(path: &Path) -> Result<Recorded, Fault> {
    let unreadable = |error| Fault::Unreadable { path: path.to_owned(), error };
    if fs::metadata(path).map_err(unreadable)?.len() > MOST {
        return Err(Fault::TooLarge { path: path.to_owned(), most: MOST });
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let is_json = has_extension(path, "json");
    let recorded = if is_json { Recorded::of_query_range(&bytes) } else { Recorded::of_csv(&bytes) };
    recorded.map_err(|problem| Fault::Malformed { path: path.to_owned(), problem })
}

/// What lies in a folder, by name. Anything but results and folders is left out, as a README.
struct Contents {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

fn contents(folder: &Path) -> Result<Contents, Fault> {
    let unreadable = |error| Fault::Unreadable { path: folder.to_owned(), error };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>, _>>().map_err(unreadable)?;
    // Names such as `.git` are not results.
    paths.retain(|path| !name_of(path).starts_with('.'));
    paths.sort();
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| path.is_dir());
    Ok(Contents { files: files.into_iter().filter(|path| is_result(path)).collect(), folders })
}

fn is_result(path: &Path) -> bool {
    path.is_file() && (has_extension(path, "csv") || has_extension(path, "json"))
}

/// True for `run`, `run-1`, `run_1` and `run1`. A folder `runc` is a case.
fn is_run(path: &Path) -> bool {
    let name = name_of(path);
    let number = name.strip_prefix(RUN).map(|rest| rest.strip_prefix(['-', '_']).unwrap_or(rest));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(files: &[(&str, &str)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        place
    }

    #[test]
    fn a_version_has_files_runs_or_cases() {
        let table = "label,value\nget,1\n";
        for (files, cases) in [
            (&[("api_seconds.csv", table), ("README.md", "hello")][..], vec![("", 1)]),
            (&[("run-1/api_seconds.csv", table), ("run-2/api_seconds.csv", table)], vec![("", 2)]),
            (
                &[("pg/api_seconds.csv", table), ("my/run1/a.csv", table), ("my/run2/a.csv", table)],
                vec![("my", 2), ("pg", 1)],
            ),
            (
                &[("runc/a.csv", table), ("runsc/run_1/a.csv", table), ("runsc/run_2/a.csv", table)],
                vec![("runc", 1), ("runsc", 2)],
            ),
        ] {
            let place = place(files);
            assert!(is_outside(place.path()));
            let version = read(place.path()).expect("a version");
            let found: Vec<(&str, usize)> =
                version.cases.iter().map(|(name, runs)| (name.as_str(), runs.len())).collect();
            assert_eq!(found, cases);
        }
    }

    #[test]
    fn a_folder_without_results_is_refused_by_name() {
        let nothing = place(&[("README.md", "hello")]);
        assert!(!is_outside(nothing.path()));
        let refused = |files: &[(&str, &str)]| read(place(files).path()).expect_err("refused").to_string();
        assert!(refused(&[("README.md", "hello")]).contains("has no results: expected"));
        assert!(
            refused(&[("a.csv", "label,value\nx,1\n"), ("pg/a.csv", "label,value\nx,1\n")])
                .contains("both files and folders")
        );
        assert!(
            refused(&[("pg/small/a.csv", "label,value\nx,1\n"), ("pg/large/a.csv", "label,value\nx,1\n")])
                .contains("large is no run: ")
        );
        assert!(refused(&[("pg/run-1/deep/a.csv", "label,value\nx,1\n")]).contains("run-1 has no results: "));
        assert!(refused(&[("a.csv", "label,value\nx,1\n"), ("a.json", "{}")]).contains("a.json: "));
        assert!(
            refused(&[("a.csv", "label,value\nx,one\n")]).contains("a.csv: line 2: expected a number, found `one`")
        );
        assert!(
            read(Path::new("/nowhere/at/all")).expect_err("refused").to_string().starts_with("failed to read /nowhere")
        );
    }
}
