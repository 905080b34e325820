//! The names of files, and functions that write a file completely to the disk or not at all.

use crate::error::BundleError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

pub(crate) const MANIFEST: &str = "manifest.jsonl";
pub(crate) const STUDY: &str = "study.toml";
pub(crate) const FACTS: &str = "study.json";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const HOST: &str = "host.json";
pub(crate) const VERSIONS: &str = "versions.json";
pub(crate) const EVENTS: &str = "events.jsonl";
pub(crate) const STARTS: &str = "starts";

/// Exists only while a run has data of databases.
pub(crate) const DATA: &str = "databases.txt";

/// Exists only in a start that is being written.
pub(crate) const OBJECTS: &str = "objects.txt";

pub(crate) const SUMMARY: &str = "start.json";
pub(crate) const MEASURE_LOG: &str = "measure.hlog";
pub(crate) const WARMUP_LOG: &str = "warmup.hlog";
pub(crate) const LOAD: &str = "load.csv";
pub(crate) const ERRORS: &str = "errors.csv";
pub(crate) const TOTALS: &str = "totals.csv";
pub(crate) const TICKS: &str = "ticks.csv";
pub(crate) const GENERATOR: &str = "generator.csv";
pub(crate) const PROCESSES: &str = "processes.csv";
pub(crate) const HOST_SERIES: &str = "host.csv";
pub(crate) const DATABASES: &str = "databases.csv";
pub(crate) const WAITS: &str = "waits.csv";
pub(crate) const METRICS: &str = "metrics.csv";

/// The folder of a sealed start.
pub(crate) fn start_folder(bundle: &Path, number: u32) -> PathBuf {
    bundle.join(STARTS).join(format!("{number:04}"))
}

/// The folder of a start that is being written.
pub(crate) fn partial_folder(bundle: &Path, number: u32) -> PathBuf {
    bundle.join(STARTS).join(format!("{number:04}.partial"))
}

/// Converts a name from the study to a part of a file name: characters that are not plain become `_`.
pub(crate) fn plain(name: &str) -> String {
    let keep = |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    name.chars().map(keep).collect()
}

/// Writes a whole file and syncs it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), BundleError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(BundleError::io("write", path))
}

/// Writes a value as indented JSON, which people can read too.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), BundleError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| BundleError::Io {
        doing: "write",
        path: path.to_owned(),
        error: error.into(),
    })?;
    text.push(b'\n');
    write(path, &text)
}

/// Reads a value from JSON. The error says in words what is wrong.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Opens a file to append lines to; makes it if need be.
pub(crate) fn open_lines(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

/// Removes a last line that was cut off, so that the next line is not appended to it.
pub(crate) fn drop_cut_off_line(file: &mut File) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        file.set_len(whole as u64)?;
    }
    Ok(())
}

/// Syncs a file that another process or writer has written.
pub(crate) fn sync(path: &Path) -> Result<(), BundleError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(BundleError::io("sync", path))
}

/// Syncs the names in a folder.
pub(crate) fn sync_folder(path: &Path) -> Result<(), BundleError> {
    sync(path)
}

/// The files of a folder, by name.
pub(crate) fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hash))?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
