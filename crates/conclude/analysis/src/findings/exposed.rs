//! Series that some variants expose and others do not: what appeared, and what vanished. A series that is not there is never
//! taken for one that fell to zero.

use super::Context;
use crate::exposed::exposing;
use crate::finding::{Finding, Severity};
use crate::measure::TrialReader;
use plimsoll_model::words::and_list;
use std::collections::{BTreeMap, BTreeSet};

/// The most series that are named for the same variants.
const NAMED: usize = 10;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let trials = || context.counted().map(TrialReader::trial);
    let variants: BTreeSet<usize> = trials().map(|trial| trial.variant()).collect();
    let mut by_variants: BTreeMap<BTreeSet<usize>, Vec<String>> = BTreeMap::new();
    let of = exposing(trials()).into_iter().map(|(name, of)| (name, of.into_keys().collect::<BTreeSet<usize>>()));
    for (name, of) in of.filter(|(_, of)| *of != variants) {
        by_variants.entry(of).or_default().push(name);
    }
    if by_variants.is_empty() {
        return Vec::new();
    }
    let labels = |of: &BTreeSet<usize>| and_list(of.iter().map(|one| context.variant(*one)).collect::<Vec<String>>());
    let line = |(of, names): (&BTreeSet<usize>, &Vec<String>)| {
        let more = names.len().saturating_sub(NAMED);
        let mut named = names[..names.len() - more].to_vec();
        named.extend((more > 0).then(|| format!("{more} more")));
        format!("only {}: {}", labels(of), and_list(&named))
    };
    let count: usize = by_variants.values().map(Vec::len).sum();
    vec![Finding {
        severity: Severity::Note,
        topic: "metrics",
        sentence: format!(
            "{} of the systems' metrics {} not exposed by all variants, and cannot be compared.",
            count,
            if count == 1 { "is" } else { "are" }
        ),
        evidence: by_variants.iter().map(line).collect(),
    }]
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::finding::Finding;
    use crate::testing::{input, start};
    use plimsoll_model::exposed::{BucketCounts, MetricKind, MetricSample};

    fn found(old: &[&str], new: &[&str]) -> Option<Finding> {
        let mut input = input(3, |number| start(1.0 + f64::from(number) / 100.0));
        for start in &mut input.starts {
            let variant = start.loads[0].summary.load.variant;
            let sample = |name: &&str| MetricSample {
                at: 0.5,
                system: "web".to_owned(),
                variant,
                series: "api".to_owned(),
                label: (*name).to_owned(),
                kind: MetricKind::Gauge,
                value: 1.0,
                sum: None,
                buckets: BucketCounts::default(),
            };
            start.metrics = [old, new][variant].iter().map(sample).collect();
        }
        analyse(&input).findings.into_iter().find(|finding| finding.topic == "metrics")
    }

    #[test]
    fn what_appeared_and_what_vanished_is_named() {
        let finding = found(&["get", "old"], &["get", "new", "newer"]).expect("they differ");
        assert!(
            finding.sentence.starts_with("3 of the systems' metrics are not exposed by all variants"),
            "{finding:?}"
        );
        assert_eq!(finding.evidence.len(), 2);
        assert!(finding.evidence[0].ends_with(": api[old]"), "{finding:?}");
        assert!(finding.evidence[1].ends_with(": api[new] and api[newer]"), "{finding:?}");
        assert_eq!(found(&["get"], &["get"]), None);
    }
}
