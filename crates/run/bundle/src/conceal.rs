//! Removes secrets from the output of systems, and looks for them everywhere else in a bundle.

use crate::error::BundleError;
use crate::files::{STARTS, files_in};
use memchr::memmem::Finder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are searched at a time.
const CHUNK: usize = 1 << 20;

/// Overwrites `secret` with asterisks in all logs directly in `folder`.
pub(crate) fn conceal_in_logs(folder: &Path, secret: &str) -> Result<(), BundleError> {
    let conceal_all = || -> io::Result<()> {
        let files = files_in(folder)?;
        let mut logs = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.try_for_each(|path| conceal(path, secret))
    };
    conceal_all().map_err(BundleError::io("take a secret out of the output in", folder))
}

/// Overwrites every occurrence of `secret` in the file with asterisks. The file keeps its length.
fn conceal(path: &Path, secret: &str) -> io::Result<()> {
    if secret.is_empty() {
        return Ok(());
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let stars = "*".repeat(secret.len());
    for place in occurrences(&file, &Finder::new(secret), CHUNK)? {
        file.write_all_at(stars.as_bytes(), place)?;
    }
    Ok(())
}

/// The least length of a text that is looked for in all files. Ten letters stand in an encoded histogram by chance about
/// once in 10¹⁸ places.
const LEAST_LENGTH: usize = 10;

/// The files of a bundle that hold one of `secrets`, by their paths in it: those in its folder itself, but for logs, which
/// [`conceal_in_logs`] is for, and all of its starts. Data of databases may lie beside them as long as the run lasts.
/// Texts of fewer than [`LEAST_LENGTH`] bytes are not looked for: they occur by chance.
pub(crate) fn files_that_hold(folder: &Path, secrets: &[String]) -> Result<Vec<PathBuf>, BundleError> {
    let long: Vec<Finder<'_>> = secrets
        .iter()
        .filter(|secret| secret.len() >= LEAST_LENGTH)
        .map(|secret| Finder::new(secret.as_str()))
        .collect();
    if long.is_empty() {
        return Ok(Vec::new());
    }
    let search = || -> io::Result<Vec<PathBuf>> {
        let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
        let mut files: Vec<PathBuf> = files_in(folder)?.into_iter().filter(|path| !is_log(path)).collect();
        let starts = folder.join(STARTS);
        if starts.is_dir() {
            for entry in fs::read_dir(starts)? {
                let start = entry?.path();
                // Another program's file, such as `.DS_Store`, is no start.
                if start.is_dir() {
                    files.extend(files_in(&start)?);
                }
            }
        }
        let mut found = Vec::new();
        for path in files {
            if holds_one(&path, &long)? {
                found.push(path.strip_prefix(folder).unwrap_or(&path).to_owned());
            }
        }
        found.sort();
        Ok(found)
    };
    search().map_err(BundleError::io("look for secrets in", folder))
}

fn holds_one(path: &Path, secrets: &[Finder<'_>]) -> io::Result<bool> {
    let longest = secrets.iter().map(|secret| secret.needle().len()).max().unwrap_or_default();
    let mut is_found = false;
    windows(&File::open(path)?, longest, CHUNK, |_, window| {
        is_found = secrets.iter().any(|secret| secret.find(window).is_some());
        !is_found
    })?;
    Ok(is_found)
}

/// The offsets at which a text begins in the file, also where it crosses the border of two chunks.
fn occurrences(file: &File, text: &Finder<'_>, chunk: usize) -> io::Result<Vec<u64>> {
    let mut places = Vec::new();
    windows(file, text.needle().len(), chunk, |begin, window| {
        places.extend(text.find_iter(window).map(|index| begin + index as u64));
        true
    })?;
    Ok(places)
}

/// Reads the file in windows, so that each text of at most `longest` bytes lies in one of them as a whole, until `look`
/// returns false. It gets the offset of each window.
fn windows(mut file: &File, longest: usize, chunk: usize, mut look: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
    let mut window: Vec<u8> = Vec::new();
    let mut begin = 0;
    while file.by_ref().take(chunk as u64).read_to_end(&mut window)? > 0 && look(begin, &window) {
        // The kept bytes are too short for a whole occurrence of the longest text, so that it is not found twice.
        let kept = window.len().min(longest.saturating_sub(1));
        begin += (window.len() - kept) as u64;
        window.drain(..window.len() - kept);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_chunks_end() {
        let text = b"--key--keykey-ke-k";
        let mut file = tempfile::tempfile().expect("a file");
        io::Write::write_all(&mut file, text).expect("room");
        for chunk in 1..=text.len() + 1 {
            io::Seek::rewind(&mut file).expect("a file");
            assert_eq!(
                occurrences(&file, &Finder::new("key"), chunk).expect("readable"),
                [2, 7, 10],
                "chunks of {chunk}"
            );
        }
    }

    #[test]
    fn a_secret_is_gone_and_the_rest_is_as_it_was() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "user root, secret s3cr3t!\nsecret s3cr3t!").expect("room");
        conceal(file.path(), "s3cr3t!").expect("writable");
        conceal(file.path(), "").expect("nothing to do");
        let text = std::fs::read_to_string(file.path()).expect("text");
        assert_eq!(text, "user root, secret *******\nsecret *******");
    }

    #[test]
    fn files_that_hold_a_secret_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("room");
        };
        write("study.toml", "key = 'long secret'");
        write("build-web.log", "long secret");
        write("starts/0001/output-web.log", "another long secret");
        write("starts/0002/start.json", "nothing of the kind, but a hunter2");
        write("data/table", "long secret");
        write("starts/.DS_Store", "no start");
        let secrets = ["long secret", "hunter2"].map(str::to_owned);
        let found = files_that_hold(folder.path(), &secrets).expect("readable");
        assert_eq!(found, ["starts/0001/output-web.log", "study.toml"].map(PathBuf::from));
    }
}
