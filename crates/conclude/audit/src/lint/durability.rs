//! Settings that trade durability for speed: after a crash or a power failure, acknowledged work is
//! lost, or the data is damaged.
//!
//! [`durability`](plimsoll_analysis::durability) has the list.

use super::Context;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::durability::weakness_of;
use plimsoll_analysis::finding::Severity;
use std::collections::BTreeSet;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut settings: BTreeSet<&str> = BTreeSet::new();
    for row in context.rows {
        for (key, value) in &row.settings {
            let Some(weakness) = weakness_of(key, value) else { continue };
            settings.insert(weakness.setting);
            let text = format!("{key} = {value}: {} ({})", weakness.risk, weakness.source);
            match evidence.iter_mut().find(|known| known.text == text) {
                Some(known) => known.lines.push(row.line),
                None => evidence.push(Evidence::new([row.line], text)),
            }
        }
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Caution,
        topic: "durability",
        sentence: format!(
            "{} speed with safety: the numbers are not those of a system that keeps what it has acknowledged.",
            if settings.len() == 1 { "A setting buys".to_owned() } else { format!("{} settings buy", settings.len()) }
        ),
        evidence,
        advice: "List these settings beside the result, and measure with the safe ones as well: what safety costs may differ \
                 between variants.",
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::{evidence, found};

    #[test]
    fn each_is_told_once_with_all_its_rows() {
        let table = "# settings: fsync=off\nmeasure,settings,value\na,,1\nb,appendfsync=everysec,2\n";
        let findings = found(lint, table);
        assert!(findings[0].sentence.starts_with("2 settings buy speed with safety"), "{findings:?}");
        assert_eq!(findings[0].evidence[0].lines, [3, 4]);
        assert!(evidence(lint, table)[1].starts_with("appendfsync = everysec: a second of writes"), "{findings:?}");
    }
}
