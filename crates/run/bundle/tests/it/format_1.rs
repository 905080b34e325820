//! Bundles of format 1, which earlier versions of the program have written.

use crate::given;
use plimsoll_bundle::read;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// What format 2 added to the objects of a bundle.
const NEW: [&str; 13] = [
    "attempt",
    "extended",
    "with_duplicate",
    "spare_blocks",
    "looks",
    "mean_think",
    "commands",
    "steady_from",
    "unsteady",
    "unjudged",
    "headroom",
    "frequency_mhz",
    "databases",
];

/// Takes the new keys out of a value, at any depth.
fn strip(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|key, _| !NEW.contains(&key.as_str()));
            entries.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn strip_file(path: &Path) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    strip(&mut value);
    fs::write(path, serde_json::to_vec(&value).expect("JSON")).expect("a file");
}

/// Makes a bundle one of format 1, whole with its hashes.
fn age(folder: &Path) {
    let trials = fs::read_dir(folder.join("trials")).expect("trials").map(|entry| entry.expect("an entry").path());
    for trial in trials {
        strip_file(&trial.join("trial.json"));
        for table in ["ticks.csv", "databases.csv"] {
            fs::remove_file(trial.join(table)).expect("a file");
        }
    }
    strip_file(&folder.join("plan.json"));
    strip_file(&folder.join("study.json"));
    let path = folder.join("manifest.jsonl");
    let aged =
        fs::read_to_string(&path).expect("a manifest").lines().map(|line| aged_line(folder, line)).collect::<String>();
    fs::write(path, aged).expect("a file");
}

fn aged_line(folder: &Path, line: &str) -> String {
    let mut line: Value = serde_json::from_str(line).expect("JSON");
    if let Some(bundle) = line.get_mut("bundle") {
        bundle["format"] = 1.into();
    }
    if let Some(files) = line.pointer_mut("/sealed/files").and_then(Value::as_object_mut) {
        files.retain(|name, _| folder.join(name).exists());
        for (name, hash) in files {
            let bytes = fs::read(folder.join(name)).expect("a file");
            *hash = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        }
    }
    format!("{line}\n")
}

#[test]
fn a_bundle_of_format_1_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 2);
    age(folder.path());
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    assert!(contents.complete);
    assert_eq!(given::numbers(&contents), [1, 2]);
    let plan = &contents.plan;
    assert_eq!((plan.duplicate(), plan.spare_blocks, plan.looks.len()), (None, 0, 0));
    assert_eq!(plan.trials, given::plan(2).trials, "each trial was the first attempt");
    assert_eq!(contents.facts.mean_think, None);
    assert!(contents.trials.iter().all(|trial| trial.summary.validity.counts() && trial.summary.steady_from.is_none()));
    assert!(contents.trials.iter().all(|trial| trial.summary.databases.is_empty() && trial.databases.is_empty()));
}
