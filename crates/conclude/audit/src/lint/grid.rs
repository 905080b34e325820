//! A grid of settings allows two fair questions, which can have opposite answers: the difference at
//! the same setting, and the difference with the best setting for each variant. A reader who may
//! choose the setting wants the second answer. So the lint prints both, and where they disagree.

use super::Context;
use crate::cell::{Change, Claim};
use crate::compare::{Comparison, groups, split, variants};
use crate::finding::{Evidence, Finding};
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_model::measure::Direction;

/// Differences whose ratio and distance exceed these two limits differ in size.
const LARGE_RATIO: f64 = 2.0;
const LARGE_DIFFERENCE: f64 = 0.05;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut evidence = Vec::new();
    let mut severity = Severity::Note;
    // What was measured cold is no setting, and its best is not that of what was measured warm.
    for group in groups(context.rows).iter().flat_map(|group| split(group, Row::circumstances)) {
        let Some((grave, mut found)) = same_and_best_settings(context, &group) else { continue };
        severity = severity.min(grave);
        evidence.append(&mut found);
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    let sentence = match severity {
        Severity::Problem => "The best setting of each gives another answer than the same setting for both.",
        Severity::Caution => {
            "The best setting of each gives a difference of another size than the same setting for both."
        }
        Severity::Note => "The best setting of each and the same setting for both give the same answer.",
    };
    vec![Finding {
        severity,
        topic: "best of each",
        sentence: sentence.to_owned(),
        evidence,
        advice: "Lead with the question that readers have: who can choose the setting compares the best of each. Choose the \
                 best setting from other runs than those that are compared.",
    }]
}

/// One comparison within the grid.
struct SettingComparison {
    /// The variant that is compared with the first.
    variant: Option<String>,
    evidence: Evidence,
    change: Option<Change>,
    /// True for an improvement, false for a regression; `None` for no difference or an unknown
    /// direction.
    better: Option<bool>,
}

impl SettingComparison {
    fn of(comparison: &Comparison<'_>, text: String) -> SettingComparison {
        let claimed = comparison.claim.and_then(|claim| match claim {
            Claim::Improvement => Some(true),
            Claim::Regression => Some(false),
            Claim::Same => None,
        });
        SettingComparison {
            variant: comparison.row.variant.clone(),
            evidence: Evidence::new(comparison.lines.clone(), text),
            change: comparison.change.clone(),
            better: comparison.is_better().or(claimed),
        }
    }

    fn size(&self) -> f64 {
        self.change.as_ref().map_or(0.0, |change| (1.0 + change.middle()).max(f64::MIN_POSITIVE).ln().abs())
    }
}

/// The comparisons at the same setting and at the best settings, if the settings of a group form a
/// grid.
fn same_and_best_settings(context: &Context<'_>, group: &[&Row]) -> Option<(Severity, Vec<Evidence>)> {
    let keys = varying(group);
    if keys.is_empty() {
        return None;
    }
    let lines: Vec<u64> = group.iter().map(|row| row.line).collect();
    let of_group: Vec<&Comparison<'_>> =
        context.comparisons.iter().filter(|one| one.lines.iter().all(|line| lines.contains(line))).collect();
    let same: Vec<SettingComparison> = of_group
        .iter()
        .filter(|one| one.change.is_some() || one.claim.is_some())
        .map(|one| {
            SettingComparison::of(
                one,
                format!("the same for both, {}: {}", setting(one.row, &keys), numbers_and_claim(one)),
            )
        })
        .collect();
    let best: Vec<SettingComparison> = match of_group.iter().find(|one| one.row.best) {
        Some(one) => vec![SettingComparison::of(
            one,
            format!("the best of each, {}: {}", setting(one.row, &keys), numbers_and_claim(one)),
        )],
        None => best_of_each(group, &keys),
    };
    if same.len() < 2 || best.is_empty() {
        return None;
    }
    // The best of one variant says nothing of another variant at the same setting.
    let of_best = |one: &SettingComparison| {
        let best = best.iter().filter(|other| other.variant == one.variant);
        best.map(|other| disagreement(one, other)).min()
    };
    let severity = same.iter().filter_map(of_best).min()?;
    Some((severity, same.into_iter().chain(best).map(|side| side.evidence).collect()))
}

/// The settings that vary within a group.
fn varying<'a>(group: &[&'a Row]) -> Vec<&'a str> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, value) in group.iter().flat_map(|row| &row.settings) {
        let differs = group.iter().flat_map(|row| &row.settings).any(|(other, level)| other == key && level != value);
        if differs && !keys.contains(&key.as_str()) && varies_within_a_variant(group, key) {
            keys.push(key);
        }
    }
    keys
}

/// True if the setting varies within a variant. A setting that only differs between variants is
/// part of the variants, and no grid.
fn varies_within_a_variant(group: &[&Row], key: &str) -> bool {
    let level = |row: &Row| row.settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
    let named = variants(group);
    if named.is_empty() {
        return true;
    }
    named.iter().any(|(_, rows)| rows.iter().any(|row| level(row) != level(rows[0])))
}

fn setting(row: &Row, keys: &[&str]) -> String {
    let levels = row.settings.iter().filter(|(key, _)| keys.contains(&key.as_str()));
    levels.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// The numbers of a comparison, and the table's claim.
fn numbers_and_claim(comparison: &Comparison<'_>) -> String {
    let numbers = comparison.numbers();
    match comparison.claim {
        Some(claim) if numbers.is_empty() => format!("{}, without a number", claim.called()),
        Some(claim) => format!("{numbers}, {}", claim.called()),
        None => numbers,
    }
}

/// The best row of each variant compared with that of the first.
fn best_of_each(group: &[&Row], keys: &[&str]) -> Vec<SettingComparison> {
    let variants = variants(group);
    let best: Vec<(&str, &Row)> = variants.iter().filter_map(|(name, rows)| Some((*name, best_row(rows)?))).collect();
    let Some(((first_name, first), others)) = best.split_first() else { return Vec::new() };
    let mut sides = Vec::new();
    for (name, row) in others {
        let Some((from, to)) = first.centre().zip(row.centre()) else { continue };
        if from.unit != to.unit || from.value <= 0.0 || to.value <= 0.0 {
            continue;
        }
        let change = Change::calculated(to.value / from.value - 1.0);
        let text = format!(
            "the best of each: {first_name} with {} {}, {name} with {} {}: {}",
            setting(first, keys),
            from.text,
            setting(row, keys),
            to.text,
            change.text
        );
        let better = row.direction().map(|direction| (change.low > 0.0) == (direction == Direction::Higher));
        let better = better.filter(|_| change.low != 0.0);
        sides.push(SettingComparison {
            variant: row.variant.clone(),
            evidence: Evidence::new([first.line, row.line], text),
            change: Some(change),
            better,
        });
    }
    sides
}

fn best_row<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let direction = rows.first()?.direction()?;
    let valued = rows.iter().filter_map(|row| Some((row.centre()?.value, *row)));
    let sign = if direction == Direction::Higher { 1.0 } else { -1.0 };
    valued.max_by(|one, other| (one.0 * sign).total_cmp(&(other.0 * sign))).map(|(_, row)| row)
}

/// The severity of the disagreement between the two answers.
fn disagreement(same: &SettingComparison, best: &SettingComparison) -> Severity {
    if let (Some(one), Some(other)) = (same.better, best.better)
        && one != other
    {
        return Severity::Problem;
    }
    let (one, other) = (same.size(), best.size());
    let known = same.change.is_some() && best.change.is_some();
    if known && (one - other).abs() > LARGE_DIFFERENCE && one.max(other) > LARGE_RATIO * one.min(other) {
        return Severity::Caution;
    }
    Severity::Note
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn a_grid_of_values_gives_both_answers() {
        let table = "measure,variant,settings,value\n\
            NOTPM,old,threads=0,1000\nNOTPM,old,threads=8,500\nNOTPM,new,threads=0,990\nNOTPM,new,threads=8,650\n";
        let findings = found(lint, table);
        assert_eq!((findings[0].severity, findings[0].topic), (Severity::Problem, "best of each"));
        let texts: Vec<&str> = findings[0].evidence.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "the same for both, threads = 0: 1000 → 990, −1.0 %",
                "the same for both, threads = 8: 500 → 650, +30.0 %",
                "the best of each: old with threads = 0 1000, new with threads = 0 990: −1.0 %"
            ]
        );
    }

    #[test]
    fn published_changes_with_the_best_marked_will_do() {
        let table = "measure,settings,change,claim,best\n\
            throughput,t=8; x=1,21-41%,improvement,\nthroughput,t=0; x=1,,slightly worse,yes\n";
        let findings = found(lint, table);
        assert_eq!(findings[0].severity, Severity::Problem);
        assert_eq!(
            findings[0].evidence.last().expect("evidence").text,
            "the best of each, t = 0: called a regression, without a number"
        );
    }

    #[test]
    fn answers_that_agree_are_a_note_and_no_grid_is_nothing() {
        let table =
            "measure,variant,settings,value\nrps,old,t=0,100\nrps,old,t=8,50\nrps,new,t=0,110\nrps,new,t=8,56\n";
        assert_eq!(found(lint, table)[0].severity, Severity::Note);
        let three = "measure,variant,settings,value\nrps,a,t=0,100\nrps,a,t=8,50\nrps,b,t=0,110\nrps,b,t=8,55\n\
                     rps,c,t=0,90\nrps,c,t=8,45\n";
        assert_eq!(found(lint, three)[0].severity, Severity::Note);
        assert!(found(lint, "measure,variant,settings,value\nrps,old,t=0,100\nrps,new,t=8,110\n").is_empty());
        assert!(found(lint, "measure,variant,value\nrps,old,100\nrps,new,110\n").is_empty());
    }
}
