//! The files that a workload needs, on their way to agents. They keep their paths, below a folder of the agent's own: what
//! lies beside one another here lies beside one another there.

use crate::message::SentFile;
use plimsoll_model::workload::{GrpcSchema, Steps, Workload};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most files of a workload. Whoever names `/` as a folder of imports does not mean all that is in it.
const MOST_FILES: usize = 10_000;

/// The most bytes of all of them.
const MOST_BYTES: u64 = 1 << 30;

/// The files of a workload, with their content by its SHA-256.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) files: Vec<SentFile>,
    /// A file with each content.
    pub(crate) contents: BTreeMap<String, PathBuf>,
    bytes: u64,
}

/// Collects what the workload needs, and makes its paths absolute.
///
/// # Errors
/// A file cannot be read, or there are too many.
pub(crate) fn gather(workload: &mut Workload) -> Result<Gathered, String> {
    let is_script = matches!(workload.steps, Steps::Script(_));
    for path in workload.paths_mut() {
        // What a script loads is known by its place behind all links.
        let real = path.canonicalize().ok().filter(|_| is_script);
        *path = real.map_or_else(|| std::path::absolute(&*path), Ok).map_err(|error| unread(path, &error))?;
    }
    let mut gathered = Gathered::default();
    // What a script imports and opens is found by loading it, and all of it lies in its project.
    for file in plimsoll_generator::sources(workload).into_iter().chain(plimsoll_generator::hashes_of_copies(workload))
    {
        gathered.add_file(&std::path::absolute(&file).map_err(|error| unread(&file, &error))?)?;
    }
    let mark = plimsoll_generator::project(workload).map(|project| project.join(".git"));
    let mark = mark.map(|mark| std::path::absolute(&mark).map_err(|error| unread(&mark, &error))).transpose()?;
    gathered.files.extend(mark.map(|path| SentFile { path, sha256: None }));
    let is_proto = |path: &Path| path.extension().is_some_and(|extension| extension == "proto");
    let of_imports = matches!(workload.steps, Steps::Grpc { schema: GrpcSchema::Files { .. }, .. });
    // A script that runs by itself opens its files while it is loaded, and has them by now.
    let has_all = matches!(&workload.steps, Steps::Script(script) if script.own_load.is_some());
    let paths: Vec<PathBuf> = workload.paths_mut().into_iter().map(|path| path.clone()).collect();
    for path in paths {
        match path.is_dir() && has_all {
            true => gathered.files.push(SentFile { path, sha256: None }),
            false => gathered.add(&path, &|file| !of_imports || is_proto(file))?,
        }
    }
    Ok(gathered)
}

impl Gathered {
    /// Adds a file, or a folder with those of its files that are wanted.
    fn add(&mut self, path: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<(), String> {
        if !path.is_dir() {
            return self.add_file(path);
        }
        if self.files.len() >= MOST_FILES {
            return Err(too_much());
        }
        self.files.push(SentFile { path: path.to_owned(), sha256: None });
        let entries = fs::read_dir(path).map_err(|error| unread(path, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| unread(path, &error))?.path();
            // A link may lead out of the folder, or back into it.
            if path.is_symlink() || !path.is_dir() && !wanted(&path) {
                continue;
            }
            self.add(&path, wanted)?;
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), String> {
        if self.files.iter().any(|known| known.path == path) {
            return Ok(());
        }
        let content = fs::read(path).map_err(|error| unread(path, &error))?;
        self.bytes += content.len() as u64;
        if self.files.len() >= MOST_FILES || self.bytes > MOST_BYTES {
            return Err(too_much());
        }
        let sha256 = hash(&content);
        self.contents.entry(sha256.clone()).or_insert_with(|| path.to_owned());
        self.files.push(SentFile { path: path.to_owned(), sha256: Some(sha256) });
        Ok(())
    }
}

fn too_much() -> String {
    format!(
        "the workload has more than {MOST_FILES} files, or more than {} MiB of them, to send to agents: name smaller folders",
        MOST_BYTES >> 20
    )
}

fn unread(path: &Path, error: &io::Error) -> String {
    format!("failed to read {} for the agents: {error}", path.display())
}

/// The SHA-256 of a content, in hexadecimal digits.
pub(crate) fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The place of a file below the folder `root` of an agent; none for a path that could lead out of it.
pub(crate) fn place(root: &Path, path: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix("/").ok()?;
    let is_plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| root.join(inside))
}

/// Lets a workload read its files below `root`.
///
/// # Errors
/// A path of it could lead elsewhere.
pub(crate) fn relocate(workload: &mut Workload, root: &Path) -> Result<(), String> {
    for path in workload.paths_mut() {
        let shown = path.display().to_string();
        *path = place(root, path).ok_or_else(|| format!("expected an absolute path without `..`, found {shown}"))?;
    }
    Ok(())
}

/// Writes a file of a workload below `root`, or makes a folder.
///
/// # Errors
/// The disk, or content that is not what was announced.
pub(crate) fn write(root: &Path, file: &SentFile, content: Option<&[u8]>) -> Result<(), String> {
    let shown = file.path.display();
    let place =
        place(root, &file.path).ok_or_else(|| format!("expected an absolute path without `..`, found {shown}"))?;
    let unwritten = |error: io::Error| format!("failed to write {shown} below {}: {error}", root.display());
    let Some(expected) = &file.sha256 else { return fs::create_dir_all(place).map_err(unwritten) };
    let content = content.unwrap_or_default();
    if hash(content) != *expected {
        return Err(format!("{shown} did not arrive as it was sent"));
    }
    fs::create_dir_all(place.parent().unwrap_or(root)).map_err(unwritten)?;
    fs::write(place, content).map_err(unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::workload::Connect;
    use std::time::Duration;

    fn grpc(files: Vec<PathBuf>, include: Vec<PathBuf>) -> Workload {
        let steps = Steps::Grpc { schema: GrpcSchema::Files { files, include }, calls: Vec::new() };
        Workload { target: None, connect: Connect::PerUser, timeout: Duration::from_secs(1), steps }
    }

    #[test]
    fn protos_cross_with_their_imports_and_keep_their_places() {
        let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let write_here = |name: &str, text: &str| {
            let path = here.path().join(name);
            fs::create_dir_all(path.parent().expect("in the folder")).expect("a folder");
            fs::write(&path, text).expect("a file");
            path
        };
        let proto = write_here("api/a.proto", "syntax = 'proto3';");
        write_here("api/common/b.proto", "syntax = 'proto3';");
        write_here("api/large.bin", "not asked for");
        let mut workload = grpc(vec![proto.clone()], vec![here.path().join("api")]);
        let gathered = gather(&mut workload).expect("all of it is there");
        for file in &gathered.files {
            let content = file.sha256.as_ref().map(|sha256| fs::read(&gathered.contents[sha256]).expect("it is there"));
            write(there.path(), file, content.as_deref()).expect("there is room");
        }
        relocate(&mut workload, there.path()).expect("plain paths");
        let Steps::Grpc { schema: GrpcSchema::Files { files, include }, .. } = &workload.steps else {
            panic!("it was gRPC");
        };
        assert_eq!(fs::read_to_string(&files[0]).expect("it crossed"), "syntax = 'proto3';");
        assert!(include[0].join("common/b.proto").exists());
        assert!(!include[0].join("large.bin").exists());
        assert_eq!(gathered.contents.len(), 1, "the same content crosses once");
    }

    #[test]
    fn no_file_is_written_elsewhere_and_none_with_another_content() {
        let root = tempfile::tempdir().expect("a folder");
        for path in ["/../x", "relative", "/a/../../x", ""] {
            let file = SentFile { path: path.into(), sha256: Some(hash(b"x")) };
            assert!(write(root.path(), &file, Some(b"x")).is_err(), "{path}");
        }
        let file = SentFile { path: "/a/x".into(), sha256: Some(hash(b"x")) };
        let error = write(root.path(), &file, Some(b"y")).expect_err("another content");
        assert_eq!(error, "/a/x did not arrive as it was sent");
        write(root.path(), &file, Some(b"x")).expect("as it was sent");
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let error = gather(&mut grpc(vec!["/none/a.proto".into()], Vec::new())).expect_err("there is none");
        assert!(error.starts_with("failed to read /none/a.proto for the agents: "), "{error}");
    }
}
