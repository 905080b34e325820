//! Confounders: any difference between two variants besides the factor may have caused the
//! difference in the numbers.
//!
//! The factor is the setting whose value appears in the variant's name (`10 connections`,
//! `MAX_CONNECTIONS=10`). Everything else in `settings`, and the columns `mode`, `target`, `method`
//! and `data`, must be the same for both variants.

use super::Context;
use crate::compare::{groups, variants};
use crate::finding::{Evidence, Finding};
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use std::collections::BTreeSet;

const NOT_STATED: &str = "not stated";

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut evidence: Vec<Evidence> = Vec::new();
    for group in groups(context.rows) {
        let variants = variants(&group);
        let Some(((first, baseline), others)) = variants.split_first() else { continue };
        for (name, rows) in others {
            for text in differences((first, baseline), (name, rows)) {
                let lines = baseline.iter().chain(rows).map(|row| row.line);
                match evidence.iter_mut().find(|known| known.text == text) {
                    Some(known) => known.lines.extend(lines),
                    None => evidence.push(Evidence::new(lines.collect::<Vec<_>>(), text)),
                }
            }
        }
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    let sentence = match evidence.len() {
        1 => "The variants differ in something else than the factor, which may be what made the difference.".to_owned(),
        several => format!(
            "The variants differ in {several} things besides the factor; any of them may have made the difference."
        ),
    };
    vec![Finding {
        severity: Severity::Problem,
        topic: "unequal settings",
        sentence,
        evidence,
        advice: "Change one thing at a time: run both variants with the same settings, or make the other difference a factor.",
    }]
}

type VariantRows<'a> = (&'a str, &'a [&'a Row]);

/// The differences between two variants, a text each.
fn differences((first, baseline): (&&str, &Vec<&Row>), (name, rows): (&&str, &Vec<&Row>)) -> Vec<String> {
    let sides: [VariantRows<'_>; 2] = [(first, baseline), (name, rows)];
    let keys: BTreeSet<Key<'_>> = sides.iter().flat_map(|(_, rows)| rows.iter().flat_map(|row| keys(row))).collect();
    keys.into_iter().filter_map(|key| difference(key, sides)).collect()
}

/// The name of a setting, or of a column that says how a row was measured. A setting can have the name of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    name: &'a str,
    is_column: bool,
}

fn difference(key: Key<'_>, sides: [VariantRows<'_>; 2]) -> Option<String> {
    let [one, other] = sides.map(|(_, rows)| levels(key, rows));
    let same = one.iter().map(|level| level.to_lowercase()).eq(other.iter().map(|level| level.to_lowercase()));
    let silent = |rows: &[&Row]| rows.iter().all(|row| row.settings.is_empty());
    let nothing_said = !key.is_column && sides.iter().any(|(_, rows)| silent(rows));
    if same || nothing_said || (is_factor(&one, sides[0].0) && is_factor(&other, sides[1].0)) {
        return None;
    }
    let shown = |levels: &BTreeSet<String>| levels.iter().cloned().collect::<Vec<_>>().join(", ");
    Some(format!("{}: {} for {}, {} for {}", key.name, shown(&one), sides[0].0, shown(&other), sides[1].0))
}

/// True if a variant's name contains the level.
fn is_factor(levels: &BTreeSet<String>, variant: &str) -> bool {
    let variant = variant.to_lowercase();
    let words: Vec<&str> = variant.split(|c: char| !(c.is_alphanumeric() || c == '.')).collect();
    levels.iter().all(|level| {
        let level = level.to_lowercase();
        words.contains(&level.as_str()) || (level.len() > 2 && variant.contains(&level))
    })
}

const COLUMNS: [&str; 4] = ["data", "method", "mode", "target"];

fn keys(row: &Row) -> Vec<Key<'_>> {
    let columns = COLUMNS.into_iter().map(|name| Key { name, is_column: true });
    let columns = columns.filter(|key| level(*key, row).is_some());
    row.settings.iter().map(|(name, _)| Key { name: name.as_str(), is_column: false }).chain(columns).collect()
}

fn level(key: Key<'_>, row: &Row) -> Option<String> {
    match key.name {
        "data" if key.is_column => row.data.clone(),
        "method" if key.is_column => row.method.clone(),
        "mode" if key.is_column => row.mode.clone(),
        "target" if key.is_column => row.target.clone(),
        name => row.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()),
    }
}

fn levels(key: Key<'_>, rows: &[&Row]) -> BTreeSet<String> {
    rows.iter().map(|row| level(key, row).unwrap_or_else(|| NOT_STATED.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::evidence;

    #[test]
    fn differences_besides_the_factor_are_found() {
        for (table, expected) in [
            ("variant,settings,value\n5.0,pool=2G,1\n5.1,pool=4G,2\n", &["pool: 2G for 5.0, 4G for 5.1"][..]),
            ("variant,settings,value\n10 connections,MAX=10,1\n30 connections,MAX=30,2\n", &[]),
            ("variant,settings,value\na,t=0,1\na,t=8,1\nb,t=0,2\nb,t=8,2\n", &[]),
            ("variant,settings,value\na,x=1; y=2,1\nb,x=1,2\n", &["y: 2 for a, not stated for b"]),
            ("variant,settings,value\na,x=1,1\nb,,2\n", &[]),
            ("variant,settings,value\na,x=ON,1\nb,x=on,2\n", &[]),
            ("variant,mode,target,value\na,warm,loopback,1\nb,cold,loopback,2\n", &["mode: warm for a, cold for b"]),
            ("variant,users,settings,value\na,1,x=1,1\nb,2,x=2,2\n", &[]),
            ("variant,settings,value\na,mode=fast,1\nb,mode=safe,2\n", &["mode: fast for a, safe for b"]),
            ("variant,settings,value\na,data=x,1\nb,,2\n", &[]),
        ] {
            assert_eq!(evidence(lint, table), expected, "{table}");
        }
    }
}
