//! docs/bundle.md describes what is there.

use crate::given;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../../../docs/bundle.md");

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
fn every_column_of_every_table_is_described_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 1);
    let of_load = ["load.csv", "errors.csv", "totals.csv", "ticks.csv", "generator.csv"];
    for table in of_load.into_iter().chain(["processes.csv", "host.csv", "databases.csv"]) {
        let text = fs::read_to_string(folder.path().join("trials/0001").join(table)).expect("a table");
        let columns: Vec<&str> = text.lines().next().expect("a head").split(',').collect();
        assert_eq!(described(section(table)), columns, "{table}");
    }
}

#[test]
fn every_key_of_a_trial_s_summary_is_described() {
    let text = serde_json::to_string(&given::summary(1)).expect("plain data");
    let keys: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).expect("an object");
    let inner =
        |value: &'_ serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let database = &keys["databases"][0];
    let of_database = [
        database,
        &database["settings"][0],
        &database["conditions"][0],
        &database["work"],
        &database["work"]["statements"][0],
        &database["work"]["mix"][0],
    ];
    let nested = of_database.into_iter().chain([&keys["storage"]]).flat_map(inner);
    let keys: BTreeSet<String> = keys.keys().cloned().chain(nested).collect();
    let keys: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(described(section("trial.json")).into_iter().collect::<BTreeSet<_>>(), keys);
}

#[test]
fn every_file_is_described() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 1);
    for place in [folder.path().to_owned(), folder.path().join("trials/0001")] {
        for name in names(&place) {
            let name = name.replace("counter", "NAME");
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
