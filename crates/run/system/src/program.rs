//! Finds the program of a command, and hashes it.

use crate::error::SystemError;
use plimsoll_model::system::{CommandLine, Probe, SystemSpec};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Checks the programs of all commands of a system before any of them runs, each program once. With a build
/// command, programs with a path are not checked: the build may create them.
#[must_use]
pub fn check_commands(spec: &SystemSpec) -> Vec<SystemError> {
    if !spec.dir.is_dir() {
        return vec![SystemError::NoFolder { system: spec.name.clone(), dir: spec.dir.clone() }];
    }
    let probe = match &spec.ready.probe {
        Probe::Command(command) => Some(command),
        _ => None,
    };
    let there_now = |command: &&CommandLine| spec.build.is_none() || !command.program().contains('/');
    let later = [Some(&spec.start), spec.version.as_ref(), probe].into_iter().flatten().filter(there_now);
    let mut seen = BTreeSet::new();
    let each_once = spec.build.iter().chain(later).filter(|command| seen.insert(command.program()));
    each_once.filter_map(|command| check_command(command, spec).err()).collect()
}

/// Finds the program of `command`. A name is looked up in `PATH` (the system's own, if its `env` sets one). A
/// path is relative to the system's folder.
pub fn check_command(command: &CommandLine, spec: &SystemSpec) -> Result<PathBuf, SystemError> {
    let program = command.program();
    let not_found = |looked_for: String| SystemError::NotFound {
        system: spec.name.clone(),
        program: program.to_owned(),
        command: command.clone(),
        looked_for,
    };
    let not_executable = |file: &Path, found| SystemError::NotExecutable {
        system: spec.name.clone(),
        program: program.to_owned(),
        file: file.to_owned(),
        found,
    };
    if program.contains('/') {
        let file = absolute(&spec.dir).join(program);
        return match kind(&file) {
            Kind::Program => Ok(file),
            Kind::Other(found) => Err(not_executable(&file, found)),
            Kind::Missing => Err(not_found(file.display().to_string())),
        };
    }
    let path = spec.env.get("PATH").map_or_else(|| std::env::var_os("PATH").unwrap_or_default(), Into::into);
    let folders: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| absolute(&spec.dir).join(folder)).collect();
    let found = folders.iter().map(|folder| folder.join(program)).find(|file| matches!(kind(file), Kind::Program));
    found.ok_or_else(|| {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        not_found(format!("it in PATH: {}", folders.join(", ")))
    })
}

/// The variable that tells an agent where its broker is.
const ADDRESS_OF_BROKER: &str = "PLIMSOLL_NATS";

/// Gives a command the environment of a system: of this process's own variables those that it inherits (all where there is no
/// list), and `env`.
pub(crate) fn set_environment(command: &mut Command, inherit: Option<&[String]>, env: &BTreeMap<String, String>) {
    // What an agent needs for its broker, a password perhaps, is no system's business.
    command.env_remove(ADDRESS_OF_BROKER);
    if let Some(inherited) = inherit {
        command.env_clear().envs(inherited.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    }
    command.envs(env);
}

/// SHA-256 of a file in hexadecimal. Variants share programs, which may be large: a file that was read before and has not
/// changed since is not read again.
///
/// # Errors
/// The file cannot be read.
pub fn sha256(file: &Path) -> io::Result<String> {
    static KNOWN: Mutex<BTreeMap<UnchangedFile, String>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::open(file)?;
    let unchanged = UnchangedFile::of(&file.metadata()?);
    if let Some(hash) = unchanged.as_ref().and_then(|unchanged| known().get(unchanged).cloned()) {
        return Ok(hash);
    }
    let hash = hash_of(file)?;
    if let Some(unchanged) = unchanged {
        known().insert(unchanged, hash.clone());
    }
    Ok(hash)
}

/// A file with its content. Whatever changes the content sets the time of its last change.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UnchangedFile {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds since 1970.
    changed: (i64, i64),
}

impl UnchangedFile {
    /// None of a file that was changed so recently that its next change could have the same time.
    fn of(metadata: &Metadata) -> Option<UnchangedFile> {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        let is_settled = u64::try_from(changed.0).is_ok_and(|second| second + 1 < now);
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.len());
        is_settled.then_some(UnchangedFile { device, inode, size, changed })
    }
}

/// Reads piece by piece.
fn hash_of(mut file: File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
        text
    }))
}

enum Kind {
    Program,
    Other(&'static str),
    Missing,
}

fn kind(file: &Path) -> Kind {
    match file.metadata() {
        Err(_) => Kind::Missing,
        Ok(metadata) if metadata.is_dir() => Kind::Other("a folder"),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Kind::Other("a file without execute permission"),
        Ok(_) => Kind::Program,
    }
}

/// The absolute path of a folder, which a command that runs in it needs for its program.
fn absolute(dir: &Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_just_now_is_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let hash = |content: &str| {
            std::fs::write(&path, content).unwrap();
            assert!(UnchangedFile::of(&path.metadata().unwrap()).is_none());
            sha256(&path).unwrap()
        };
        assert_ne!(hash("one"), hash("two"));
    }

    #[test]
    fn a_file_that_has_not_changed_has_its_hash_of_before() {
        let path = Path::new("/bin/sh");
        let unchanged = || UnchangedFile::of(&path.metadata().unwrap());
        assert!(unchanged().is_some() && unchanged() == unchanged());
        assert_eq!(sha256(path).unwrap(), sha256(path).unwrap());
        assert_eq!(sha256(path).unwrap(), hash_of(File::open(path).unwrap()).unwrap());
    }
}
