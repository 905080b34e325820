//! docs/bundle.md describes what is there.

use crate::given;
use plimsoll_model::look::Look;
use plimsoll_model::result::{FinishedStart, LoadSummary, Work};
use plimsoll_model::start::{Load, Rung, RungPart};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../../../docs/bundle.md");

/// The keys of a start's facts whose values are described where they stand, or are names from the
/// study.
const DESCRIBED_IN_WORDS: [&str; 14] = [
    "bound_to",
    "start",
    "lengths",
    "rules",
    "validity",
    "sequences",
    "error_examples",
    "file_system",
    "steps",
    "residency",
    "retries",
    "accounts",
    "others_elsewhere",
    "condition",
];

/// The part of the page under the heading that names `file`.
fn section(file: &str) -> &'static str {
    let heading = format!("\n### {file}\n");
    let start = PAGE.find(&heading).unwrap_or_else(|| panic!("docs/bundle.md has no heading `### {file}`"));
    let text = &PAGE[start + heading.len()..];
    &text[..text.find("\n#").unwrap_or(text.len())]
}

/// The names in the first column of a table, in order.
fn described(section: &str) -> Vec<&str> {
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name).collect()
}

#[test]
fn the_page_is_about_the_format_that_is_written() {
    let format = plimsoll_bundle::FORMAT;
    assert!(PAGE.contains(&format!("It describes format {format}.")));
    assert!(PAGE.contains(&format!("\n## What changed from format {} to {format}\n", format - 1)));
}

#[test]
fn every_column_of_every_table_is_described_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 1);
    let of_load = ["load.csv", "errors.csv", "totals.csv", "ticks.csv", "generator.csv"];
    for table in of_load.into_iter().chain(["processes.csv", "host.csv", "databases.csv", "waits.csv", "metrics.csv"]) {
        let text = fs::read_to_string(folder.path().join("starts/0001").join(table)).expect("a table");
        let columns: Vec<&str> = text.lines().next().expect("a head").split(',').collect();
        assert_eq!(described(section(table)), columns, "{table}");
    }
}

/// Adds the keys of a value, at any depth.
fn keys_of(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => {
            keys.extend(entries.keys().cloned());
            let inner = entries.iter().filter(|(key, _)| !DESCRIBED_IN_WORDS.contains(&key.as_str()));
            inner.for_each(|(_, value)| keys_of(value, keys));
        }
        Value::Array(items) => items.iter().for_each(|item| keys_of(item, keys)),
        _ => {}
    }
}

#[test]
fn every_key_of_a_start_s_facts_is_described() {
    let FinishedStart { summary, mut loads } = given::finished(1);
    let rung = Some(Rung { level: 12.5, part: RungPart::Ladder });
    let load = Load { number: 2, rung, ..loads[0].load };
    loads.push(LoadSummary { work: Work::Script(given::script()), ..given::load_summary(load) });
    let written = serde_json::to_value(FinishedStart { summary, loads }).expect("plain data");
    let mut keys = BTreeSet::new();
    keys_of(&written, &mut keys);
    let keys: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(described(section("start.json")).into_iter().collect::<BTreeSet<_>>(), keys);
}

#[test]
fn every_line_of_a_manifest_is_described() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(given::create(folder.path(), 2));
    let mut bundle = given::resume(folder.path(), 2);
    given::look(&mut bundle, &Look { repeats: 1, decided: true, conditions: vec![0] });
    given::decide(&mut bundle, &given::start(1).again(3, 2, false));
    given::end(&mut bundle, Some(1));
    let text = fs::read_to_string(folder.path().join("manifest.jsonl")).expect("a manifest");
    let mut kinds = BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let (kind, said) = line.as_object().and_then(|line| line.iter().next()).expect("one kind");
        kinds.insert(kind.clone());
        let example = PAGE.lines().find(|line| line.trim_start().starts_with(&format!("{{\"{kind}\":{{")));
        let example = example.unwrap_or_else(|| panic!("docs/bundle.md has no example of `{kind}`"));
        for key in said.as_object().expect("an object").keys() {
            assert!(example.contains(&format!("\"{key}\":")) || PAGE.contains(&format!("`{key}`")), "{kind}: {key}");
        }
    }
    assert_eq!(kinds.len(), 6, "all kinds of lines: {kinds:?}");
}

#[test]
fn every_file_is_described() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 1);
    given::tell_versions(&mut bundle, &given::versions());
    given::begin(&mut bundle, 1);
    [1, 2].iter().for_each(|load| given::add_lines(&mut bundle, *load, "a line\n"));
    given::seal_start(&mut bundle, &given::finished(1));
    for place in [folder.path().to_owned(), folder.path().join("starts/0001")] {
        for name in names(&place) {
            let name = name.replace("counter", "NAME").replace("console-2", "console-N");
            assert!(PAGE.contains(&format!("`{name}`")) || PAGE.contains(&format!("### {name}")), "{name}");
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
