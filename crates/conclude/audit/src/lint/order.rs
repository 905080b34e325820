//! Sequential order: all runs of one variant, then all of the next. Drift over the session (a disk
//! that fills, a cache that warms, a machine that heats up) then looks like a difference between
//! variants.
//!
//! A t-test on such runs calls identical variants different far more often than its level says;
//! randomised blocks, compared block by block, keep the level (Abedi and Brecht, ICPE 2017).

use super::Context;
use crate::cell::TimeOfRun;
use crate::compare::{groups, variants};
use crate::finding::{Evidence, Finding};
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::change;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let said: Vec<u64> =
        context.rows.iter().filter(|row| row.order == Some(TimeOfRun::Sequential)).map(|row| row.line).collect();
    let mut evidence: Vec<Evidence> = groups(context.rows).iter().filter_map(|group| in_sequence(group)).collect();
    if !said.is_empty() {
        evidence.push(Evidence::new(said, "all runs of a variant came before those of the next, as the table says"));
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Problem,
        topic: "order",
        sentence:
            "All runs of one variant came before those of another: a drift over the session cannot be told from a \
                   difference between them."
                .to_owned(),
        evidence,
        advice: "Let variants take turns in blocks of one run each, in random order, and compare within blocks.",
    }]
}

/// Evidence that the runs of a group were made variant by variant.
fn in_sequence(group: &[&Row]) -> Option<Evidence> {
    let mut placed: Vec<(&Vec<u64>, &Row)> = group
        .iter()
        .filter_map(|row| match &row.order {
            Some(TimeOfRun::At(at)) if row.variant.is_some() => Some((at, *row)),
            _ => None,
        })
        .collect();
    placed.sort_by(|one, other| one.0.cmp(other.0));
    let rows: Vec<&Row> = placed.iter().map(|(_, row)| *row).collect();
    let variants = variants(&rows);
    let mut turns: Vec<&str> = rows.iter().filter_map(|row| row.variant.as_deref()).collect();
    turns.dedup();
    let repeated = variants.iter().filter(|(_, rows)| rows.len() >= 2).count() >= 1;
    if variants.len() < 2 || !repeated || turns.len() > variants.len() {
        return None;
    }
    let listed: Vec<String> = variants.iter().map(|(name, rows)| format!("{} × {name}", rows.len())).collect();
    let condition = rows[0].condition();
    let place = if condition.is_empty() { String::new() } else { format!("{condition}: ") };
    let drift = drift(&variants).map(|drift| format!("; {drift}")).unwrap_or_default();
    Some(Evidence::new(
        rows.iter().map(|row| row.line).collect::<Vec<_>>(),
        format!("{place}{}{drift}", listed.join(", then ")),
    ))
}

/// The difference between the first two variants that the trend within the variants alone would
/// cause: a straight line with one slope for both, fitted to the runs in their order.
fn drift(variants: &[(&str, Vec<&Row>)]) -> Option<String> {
    let [(_, first), (_, second), ..] = variants else { return None };
    let values = |rows: &[&Row]| -> Option<Vec<f64>> { rows.iter().map(|row| Some(row.centre()?.value)).collect() };
    let (first, second) = (values(first)?, values(second)?);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mut product, mut square) = (0.0, 0.0);
    for values in [&first, &second] {
        let (centre, middle) = (mean(values), (values.len() as f64 - 1.0) / 2.0);
        for (place, value) in values.iter().enumerate() {
            product += (place as f64 - middle) * (value - centre);
            square += (place as f64 - middle).powi(2);
        }
    }
    let distance = (first.len() + second.len()) as f64 / 2.0;
    let (from, to) = (mean(&first), mean(&second));
    if square == 0.0 || from <= 0.0 || to <= 0.0 {
        return None;
    }
    let by_drift = (from + product / square * distance) / from;
    (by_drift > 0.0).then(|| {
        format!(
            "they differ by {}, and the trend inside the variants alone would make {}",
            change(to / from),
            change(by_drift)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::{evidence, found};

    fn table(pattern: &str, column: &str) -> String {
        let rows = (1..).zip(pattern.chars()).map(|(place, variant)| {
            let time = if column == "order" { place.to_string() } else { format!("2026-01-31 {:02}:00", place + 5) };
            format!("{variant},{time},{} ms\n", 100 + place)
        });
        format!("variant,{column},mean\n{}", rows.collect::<String>())
    }

    #[test]
    fn variants_one_after_the_other_are_found() {
        for column in ["order", "started"] {
            for (pattern, expected) in [
                ("AAABBB", true),
                ("AABBCC", true),
                ("AAB", true),
                ("ABABAB", false),
                ("ABBA", false),
                ("AB", false),
                ("AAA", false),
            ] {
                assert_eq!(!found(lint, &table(pattern, column)).is_empty(), expected, "{pattern}");
            }
        }
    }

    #[test]
    fn the_drift_inside_variants_is_held_against_the_difference() {
        let expected =
            "3 × A, then 3 × B; they differ by +2.9 %, and the trend inside the variants alone would make +2.9 %";
        assert_eq!(evidence(lint, &table("AAABBB", "order")), [expected]);
    }

    #[test]
    fn a_word_says_it_too() {
        let findings = found(lint, "# order: AAABBB\nvariant,n,mean\na,3,1 s\nb,3,2 s\n");
        assert_eq!(findings[0].evidence[0].lines, [3, 4]);
        assert!(found(lint, "# order: interleaved\nvariant,n,mean\na,3,1 s\nb,3,2 s\n").is_empty());
    }
}
