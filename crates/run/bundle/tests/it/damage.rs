//! A damaged bundle: what is intact is read, the damage is named, and nothing panics.

use crate::given::{self, named};
use plimsoll_bundle::{BundleError, Contents, read};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that every start has.
const FILES: [&str; 14] = [
    "start.json",
    "measure.hlog",
    "warmup.hlog",
    "load.csv",
    "errors.csv",
    "totals.csv",
    "ticks.csv",
    "generator.csv",
    "processes.csv",
    "host.csv",
    "databases.csv",
    "waits.csv",
    "metrics.csv",
    "output-counter.log",
];

/// A complete bundle of two starts.
struct Bundle {
    folder: tempfile::TempDir,
}

impl Bundle {
    fn new() -> Bundle {
        let folder = tempfile::tempdir().expect("a folder");
        given::complete(folder.path(), 2);
        Bundle { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn first_start(&self, name: &str) -> PathBuf {
        self.folder.path().join("starts/0001").join(name)
    }

    fn read(&self) -> Contents {
        read(self.folder.path()).expect("a bundle that is damaged in parts only")
    }

    /// Replaces the hash of a file in the manifest by its present one, as a forger would.
    fn forge(&self, manifest: &[u8], file: &Path, before: &[u8]) {
        let hash = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let now = hash(&fs::read(file).expect("a file"));
        let name = file.strip_prefix(self.folder.path()).expect("inside").to_string_lossy().into_owned();
        let text = String::from_utf8(manifest.to_vec()).expect("JSON");
        let (listed, forged) = (format!("\"{name}\":\"{}\"", hash(before)), format!("\"{name}\":\"{now}\""));
        assert!(text.contains(&listed), "{name} is not in the manifest");
        fs::write(self.path("manifest.jsonl"), text.replace(&listed, &forged)).expect("a file");
    }
}

#[test]
fn every_file_of_a_start_is_listed_above() {
    let bundle = Bundle::new();
    let mut found: Vec<String> = fs::read_dir(bundle.path("starts/0001"))
        .expect("a start")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut listed = FILES.map(str::to_owned);
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn a_start_with_a_changed_file_is_left_out_and_the_file_named() {
    let bundle = Bundle::new();
    for name in FILES {
        let path = bundle.first_start(name);
        let before = fs::read(&path).expect("a file");
        fs::write(&path, [&before[..], b" "].concat()).expect("a file");
        let contents = bundle.read();
        assert_eq!(given::numbers(&contents), [2], "{name}");
        assert!(named(&contents.problems, &format!("starts/0001/{name} was changed after the run")), "{contents:?}");
        assert!(named(&contents.problems, "trial 1 is left out"), "{contents:?}");
        fs::write(&path, before).expect("a file");
    }
    assert_eq!(bundle.read().problems, Vec::<String>::new());
}

#[test]
fn a_start_with_a_missing_file_is_left_out_and_the_file_named() {
    for name in FILES {
        let bundle = Bundle::new();
        fs::remove_file(bundle.first_start(name)).expect("a file");
        let contents = bundle.read();
        assert_eq!(given::numbers(&contents), [2], "{name}");
        assert!(named(&contents.problems, &format!("starts/0001/{name} cannot be read")), "{contents:?}");
        given::assert_whole(&contents.starts[0]);
    }
}

#[test]
fn a_missing_start_is_named() {
    let bundle = Bundle::new();
    fs::remove_dir_all(bundle.path("starts/0001")).expect("a folder");
    let contents = bundle.read();
    assert_eq!(given::numbers(&contents), [2]);
    assert!(named(&contents.problems, "trial 1 is left out"), "{contents:?}");
    fs::remove_dir_all(bundle.path("starts")).expect("a folder");
    let contents = bundle.read();
    assert!(contents.starts.is_empty() && named(&contents.problems, "the folder starts is missing"), "{contents:?}");
}

#[test]
fn changed_files_of_the_study_are_named() {
    let bundle = Bundle::new();
    for name in ["study.toml", "study.json", "plan.json", "host.json", "versions.json"] {
        let path = bundle.path(name);
        fs::write(&path, [fs::read(&path).expect("a file"), b"\n".to_vec()].concat()).expect("a file");
        assert!(named(&bundle.read().problems, &format!("{name} was changed after the run")), "{name}");
    }
    assert_eq!(given::numbers(&bundle.read()), [1, 2]);
}

#[test]
fn a_report_can_do_without_host_and_versions_but_not_without_study_and_plan() {
    let bundle = Bundle::new();
    for name in ["host.json", "versions.json", "study.toml"] {
        fs::remove_file(bundle.path(name)).expect("a file");
        let contents = bundle.read();
        assert_eq!(given::numbers(&contents), [1, 2]);
        assert!(named(&contents.problems, &format!("{name} cannot be read")), "{contents:?}");
    }
    for name in ["plan.json", "study.json"] {
        let bundle = Bundle::new();
        fs::write(bundle.path(name), "{").expect("a file");
        let refused = read(bundle.folder.path()).expect_err("nothing can be said without it");
        assert!(matches!(&refused, BundleError::Damaged { path, .. } if path.ends_with(name)), "{refused}");
    }
}

/// Replaces text in a file, every time that it stands there.
fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a file");
    assert!(text.contains(from), "no `{from}` in {text}");
    fs::write(path, text.replace(from, to)).expect("a file");
}

#[test]
fn indices_that_lead_nowhere_are_refused() {
    let edits = [
        ("plan.json", "\"condition\": 0", "\"condition\": 7"),
        ("plan.json", "\"secs\": 1", "\"secs\": 18446744073709551615"),
        ("study.json", "\"baseline\": 0", "\"baseline\": 9"),
    ];
    for (name, from, to) in edits {
        let bundle = Bundle::new();
        edit(&bundle.path(name), from, to);
        let refused = read(bundle.folder.path()).expect_err("nothing can be said with it");
        assert!(matches!(&refused, BundleError::Damaged { path, .. } if path.ends_with(name)), "{refused}");
    }
}

#[test]
fn a_load_of_a_variant_that_its_start_does_not_have_costs_that_start_only() {
    let bundle = Bundle::new();
    let manifest = fs::read(bundle.path("manifest.jsonl")).expect("a manifest");
    let path = bundle.first_start("start.json");
    let before = fs::read(&path).expect("a file");
    edit(&path, "\"variant\": 0", "\"variant\": 5");
    bundle.forge(&manifest, &path, &before);
    let contents = bundle.read();
    assert_eq!(given::numbers(&contents), [2]);
    assert!(named(&contents.problems, "found variant 5"), "{:?}", contents.problems);
}

#[test]
fn a_file_of_a_start_cut_off_anywhere_costs_that_start_only() {
    let bundle = Bundle::new();
    for name in ["measure.hlog", "load.csv", "start.json"] {
        let path = bundle.first_start(name);
        let before = fs::read(&path).expect("a file");
        for length in 0..before.len() {
            fs::write(&path, &before[..length]).expect("a file");
            let contents = bundle.read();
            assert_eq!(given::numbers(&contents), [2], "{name} cut to {length} bytes");
            assert!(named(&contents.problems, name), "{contents:?}");
        }
        fs::write(&path, before).expect("a file");
    }
}

#[test]
fn a_file_cut_off_anywhere_is_no_harm_even_if_the_manifest_was_made_to_fit() {
    let bundle = Bundle::new();
    let manifest = fs::read(bundle.path("manifest.jsonl")).expect("a manifest");
    for name in FILES {
        let path = bundle.first_start(name);
        let before = fs::read(&path).expect("a file");
        for length in (0..before.len()).step_by(7) {
            fs::write(&path, &before[..length]).expect("a file");
            bundle.forge(&manifest, &path, &before);
            let contents = bundle.read();
            assert!(given::numbers(&contents).contains(&2), "{name} cut to {length} bytes");
            assert!(contents.starts.len() == 2 || named(&contents.problems, name), "{contents:?}");
        }
        fs::write(&path, before).expect("a file");
    }
}

#[test]
fn a_manifest_cut_off_anywhere_gives_the_starts_whose_lines_are_whole() {
    let bundle = Bundle::new();
    let path = bundle.path("manifest.jsonl");
    let manifest = fs::read(&path).expect("a manifest");
    let ends: Vec<usize> = (1..=manifest.len()).filter(|end| manifest[end - 1] == b'\n').collect();
    let [format, _study, _versions, first, second, complete] = ends[..] else { panic!("six lines: {ends:?}") };
    for length in 0..manifest.len() {
        fs::write(&path, &manifest[..length]).expect("a file");
        if length < format {
            let refused = read(bundle.folder.path()).expect_err("a bundle without a format");
            assert!(matches!(refused, BundleError::Damaged { .. }), "{refused}");
            continue;
        }
        let contents = bundle.read();
        let expected: &[u32] = match length {
            _ if length >= second => &[1, 2],
            _ if length >= first => &[1],
            _ => &[],
        };
        assert_eq!(given::numbers(&contents), expected, "cut to {length} bytes");
        assert!(!contents.complete, "cut to {length} of {complete} bytes");
        assert!(named(&contents.problems, "the run did not come to its end"), "{contents:?}");
        assert_eq!(named(&contents.problems, "is damaged or cut off"), !ends.contains(&length), "{contents:?}");
        assert_eq!(named(&contents.problems, "starts/0002 is not in the manifest"), expected.len() < 2);
    }
}

#[test]
fn a_damaged_line_of_the_manifest_costs_what_it_lists_only() {
    let bundle = Bundle::new();
    let path = bundle.path("manifest.jsonl");
    let text = fs::read_to_string(&path).expect("a manifest");
    fs::write(&path, text.replace("\"start 1\"", "\"start 1")).expect("a file");
    let contents = bundle.read();
    assert_eq!(given::numbers(&contents), [2]);
    assert!(contents.complete);
    assert!(named(&contents.problems, "manifest.jsonl: line 4 is damaged or cut off"), "{contents:?}");
    assert!(named(&contents.problems, "starts/0001 is not in the manifest and is left out"), "{contents:?}");
}

#[test]
fn a_newer_format_is_refused_whatever_else_its_first_line_says() {
    for first in [r#"{"bundle":{"format":4}}"#, r#"{"bundle":{"format":7,"plimsoll":"9.0.0","created":"x","new":[]}}"#]
    {
        let bundle = Bundle::new();
        fs::write(bundle.path("manifest.jsonl"), format!("{first}\n")).expect("a file");
        let refused = read(bundle.folder.path()).expect_err("a newer format");
        assert!(matches!(refused, BundleError::Newer { found: 4 | 7, .. }), "{refused}");
        assert!(refused.to_string().contains("this program reads up to 3"), "{refused}");
    }
}

#[test]
fn a_folder_without_a_manifest_is_no_bundle() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [folder.path().to_owned(), folder.path().join("nowhere")] {
        let refused = read(&path).expect_err("no bundle");
        assert!(matches!(refused, BundleError::NoBundle(_)), "{refused}");
    }
}

#[test]
fn a_start_that_was_dropped_in_the_middle_is_named_as_unfinished() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 3);
    given::seal(&mut bundle, 1);
    given::begin(&mut bundle, 2);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(given::numbers(&contents), [1]);
    assert!(named(&contents.problems, "starts/0002.partial was not finished and is left out"), "{contents:?}");
    assert!(named(&contents.problems, "2 of 3 trials are missing"), "{contents:?}");
}

#[test]
fn a_start_that_the_plan_does_not_know_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 1);
    given::seal(&mut bundle, 1);
    given::seal(&mut bundle, 2);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(given::numbers(&contents), [1]);
    assert!(named(&contents.problems, "trial 2 is not in the plan"), "{contents:?}");
}
