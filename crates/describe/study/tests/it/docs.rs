//! The reference and the guide for users: their examples read, and no key is missing from the
//! reference.

use crate::read_text;
use serde_json::Value;
use std::collections::BTreeSet;

const REFERENCE: &str = include_str!("../../../../../docs/study-file.md");

const GUIDE: &str = include_str!("../../../../../docs/guide.md");

/// The TOML examples of a page, in order.
fn examples(page: &'static str) -> Vec<&'static str> {
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("an end")).collect()
}

/// The tables of an example, each with its header; keys above the first header come first.
fn tables(example: &str) -> Vec<(String, String)> {
    let mut tables = vec![(String::new(), String::new())];
    for line in example.lines() {
        if line.starts_with('[') {
            tables.push((line.to_owned(), String::new()));
        }
        let (_, table) = tables.last_mut().expect("there is one");
        *table += line;
        table.push('\n');
    }
    tables
}

/// `study` with the tables of `example` in place of its own, and with the keys that the example has above them.
fn completed(study: &str, example: &str) -> String {
    let (new, old) = (tables(example), tables(study));
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let (added, kept) = (&new[0].1, &old[0].1);
    let names: BTreeSet<String> = added.lines().filter_map(key).collect();
    let kept = kept.lines().filter(|line| key(line).is_none_or(|key| !names.contains(&key)));
    let head: String = kept.chain(added.lines()).map(|line| format!("{line}\n")).collect();
    let old = old[1..].iter().filter(|(header, _)| !new.iter().any(|(h, _)| h == header));
    std::iter::once(head).chain(old.chain(&new[1..]).map(|(_, table)| table.clone())).collect()
}

#[test]
fn every_example_reads_without_faults() {
    for page in [REFERENCE, GUIDE] {
        let all = examples(page);
        let study = all[0];
        let (read, diagnostics) = read_text(study);
        assert!(read.is_some() && diagnostics.is_empty(), "the complete example: {diagnostics:?}");
        assert!(all.len() > 5, "an example for each table or task");
        for example in all {
            let whole = example.starts_with("title");
            let text = if whole { example.to_owned() } else { completed(study, example) };
            let (_, diagnostics) = read_text(&text);
            // An example need not use the factors of the study that it is shown in.
            let faults: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            let faults: Vec<&String> = faults.iter().filter(|fault| !fault.contains("is used nowhere")).collect();
            assert!(faults.is_empty(), "{faults:#?} in\n{example}");
        }
    }
}

#[test]
fn every_key_is_in_the_reference() {
    let mut keys = BTreeSet::new();
    collect_keys(&plimsoll_study::json_schema(), &mut keys);
    assert!(keys.len() > 50, "{keys:?}");
    let missing: Vec<&String> = keys.iter().filter(|key| !mentions(key)).collect();
    assert!(missing.is_empty(), "not in docs/study-file.md: {missing:?}");
}

/// As a key in a table of keys, or as the heading of a table of the study.
fn mentions(key: &str) -> bool {
    ["`KEY`", "`[KEY]`", "`[KEY."].iter().any(|form| REFERENCE.contains(&form.replace("KEY", key)))
}

fn collect_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(entries) => entries.values().for_each(|entry| collect_keys(entry, keys)),
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}
