//! Bundles that earlier versions of the program wrote: this one reports, compares and judges them as
//! those did, byte for byte. `bundles/README.md` says what each bundle is of, and how one is added.

use crate::common::{Place, files};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bundles, and for each what earlier versions made of it.
const BUNDLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/bundles");

/// Files beside the expected outputs: the bundle, and further commands to run on it.
const GIVEN: [&str; 2] = ["bundle.tar.gz", "also"];

/// A test for each bundle or pair of bundles, and the names of their folders.
macro_rules! bundles {
    ($($test:ident $folder:literal)*) => {
        const NAMES: &[&str] = &[$($folder),*];
        $(
            #[test]
            fn $test() {
                has_the_same_outputs($folder);
            }
        )*
    };
}

bundles! {
    http_closed "http-closed"
    http_open "http-open"
    http_stages "http-stages"
    http_errors "http-errors"
    http_backlog "http-backlog"
    steady_late "steady-late"
    never_steady "never-steady"
    grpc "grpc"
    grpc_again "grpc-again"
    grpc_wrong_replies "grpc-wrong-replies"
    flow "flow"
    flow_again "flow-again"
    flow_errors "flow-errors"
    script_http "script-http"
    script_http_again "script-http-again"
    script_sockets "script-sockets"
    storage_file "storage-file"
    storage_file_again "storage-file-again"
    storage_file_profile "storage-file-profile"
    storage_backends "storage-backends"
    sql_postgresql "sql-postgresql"
    sql_postgresql_again "sql-postgresql-again"
    sql_mariadb "sql-mariadb"
    sql_mysql "sql-mysql"
    sql_tpcc "sql-tpcc"
    sql_engines "sql-engines"
    sql_running_server "sql-running-server"
    looks_ended_early "looks-ended-early"
    looks_decided "looks-decided"
    looks_all "looks-all"
    looks_and_spare "looks-and-spare"
    spare_blocks "spare-blocks"
    spare_blocks_used_up "spare-blocks-used-up"
    void "void"
    broken_off "broken-off"
    interrupted "interrupted"
    killed "killed"
    resumed "resumed"
    resumed_with_another_program "resumed-with-another-program"
    quick "quick"
    doctor_aa "doctor-aa"
    damaged "damaged"
    study_changed "study-changed"
    unreadable_plan "unreadable-plan"
    later_format "later-format"
    format_1 "format-1"
    two_runs_of_grpc "grpc--grpc-again"
    two_runs_of_a_flow "flow--flow-again"
    two_runs_of_a_script "script-http--script-http-again"
    two_runs_of_storage "storage-file--storage-file-again"
    two_runs_of_sql "sql-postgresql--sql-postgresql-again"
    another_profile "storage-file--storage-file-profile"
    another_study "http-closed--http-open"
    a_copy_of_the_same_run "interrupted--resumed"
    a_run_that_was_killed_and_one_that_was_not "killed--resumed"
    a_run_and_one_whose_study_was_changed "flow-again--study-changed"
}

/// Fails at the first difference between what the program makes of a bundle and what is kept of it.
fn has_the_same_outputs(name: &str) {
    let place = Place::empty();
    let outputs = place.path("outputs");
    let mut command = Command::new(Path::new(BUNDLES).join("outputs"));
    command.args([OsStr::new(env!("CARGO_BIN_EXE_plimsoll")), OsStr::new(name), outputs.as_os_str()]);
    // Where and on what terminal it is read makes no difference.
    command.envs([("TZ", "Asia/Kathmandu"), ("COLUMNS", "40"), ("TERM", "dumb")]);
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{name}: {}", String::from_utf8_lossy(&ended.stderr));
    let expected = expected(&Path::new(BUNDLES).join(name));
    assert!(expected.contains_key("printed.txt"), "{name} has no outputs to compare with");
    let found = contents(&outputs, &files(&outputs));
    for (file, expected) in &expected {
        let found = found.get(file).unwrap_or_else(|| panic!("{name}: {file} is no longer written"));
        assert_same(&format!("{name}/{file}"), expected, found);
    }
    let new: Vec<_> = found.keys().filter(|file| !expected.contains_key(*file)).collect();
    assert!(new.is_empty(), "{name}: {new:?} were not written before");
}

/// What is kept of a bundle, by name of file and unpacked.
fn expected(folder: &Path) -> BTreeMap<String, String> {
    let kept: Vec<PathBuf> = files(folder)
        .into_iter()
        .filter(|path| !GIVEN.iter().any(|given| path.file_name() == Some(OsStr::new(given))))
        .collect();
    contents(folder, &kept)
}

fn contents(folder: &Path, files: &[PathBuf]) -> BTreeMap<String, String> {
    let entry = |path: &PathBuf| {
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
        match name.strip_suffix(".gz") {
            Some(name) => (name.to_owned(), unpacked(path)),
            None => (name.to_owned(), fs::read_to_string(path).unwrap()),
        }
    };
    files.iter().map(entry).collect()
}

fn unpacked(path: &Path) -> String {
    let ended = Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    assert!(ended.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// Fails at the first line that differs.
#[track_caller]
fn assert_same(file: &str, expected: &str, found: &str) {
    let mut lines = expected.lines().zip(found.lines()).enumerate();
    if let Some((index, (expected, found))) = lines.find(|(_, (expected, found))| expected != found) {
        panic!("{file}, line {}, was\n{expected}\nand is now\n{found}", index + 1);
    }
    // One is the beginning of the other, or their line ends differ.
    assert!(expected == found, "{file} had {} bytes and has {}", expected.len(), found.len());
}

#[test]
fn every_bundle_has_its_test() {
    let folders = fs::read_dir(BUNDLES).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let folders: BTreeSet<String> =
        folders.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(folders, NAMES.iter().map(|name| (*name).to_owned()).collect());
}

/// The bundle of that name, unpacked.
fn unpack(name: &str) -> Place {
    let place = Place::empty();
    let archive = Path::new(BUNDLES).join(name).join("bundle.tar.gz");
    let status = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(place.path("")).status().unwrap();
    assert!(status.success(), "{name} does not unpack");
    place
}

#[test]
fn a_run_that_an_earlier_version_left_unfinished_is_refused_and_says_what_to_do() {
    let place = unpack("interrupted");
    let before = place.read("bundle/manifest.jsonl");
    let resume = ["run", "bundle/study.toml", "--resume", "--out", "bundle"];
    place.plimsoll(&resume).with(2).says(&["it has format 2", "go on with the version that began it"]);
    assert_eq!(place.read("bundle/manifest.jsonl"), before, "nothing was written");
}
