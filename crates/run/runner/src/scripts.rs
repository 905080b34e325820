//! Scripts, whose names nobody knows for sure before they have run: those of their metrics as soon as they are loaded,
//! those of checks and requests after the first block.

use plimsoll_model::measure::Measure;
use plimsoll_model::record::Subject;
use plimsoll_model::study::StudyFacts;
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_study::{ScriptMetrics, Study};
use std::collections::BTreeSet;

/// The metrics that scripts make, of each that can be loaded.
pub(crate) fn metrics(study: &Study, workloads: impl Iterator<Item = Workload>) -> Vec<ScriptMetrics> {
    let mut seen: Vec<Workload> = Vec::new();
    let mut all = Vec::new();
    for workload in workloads {
        let Steps::Script(script) = &workload.steps else { continue };
        if seen.contains(&workload) {
            continue;
        }
        let file = script.entry.strip_prefix(study.folder()).unwrap_or(&script.entry).display().to_string();
        all.extend(plimsoll_generator::metrics(&workload).map(|metrics| ScriptMetrics { script: file, metrics }));
        seen.push(workload);
    }
    all
}

/// How many names are told of what was measured instead.
const MOST_NAMES: usize = 8;

/// Looks in the first trials for what the study names: a slip is worth telling before a run has taken hours.
pub(crate) struct FirstLook {
    /// The measures that name what is measured.
    named: Vec<(Measure, Subject)>,
    seen: BTreeSet<Subject>,
    trials_left: usize,
}

impl FirstLook {
    /// One at so many trials; at none, nothing is told.
    pub(crate) fn new(facts: &StudyFacts, trials: usize) -> FirstLook {
        let decide = facts.decide.iter().map(|decision| &decision.measure);
        let named = decide.chain(&facts.report.measures).filter(|_| trials > 0);
        let named = named.filter_map(|measure| Some((measure.clone(), measure.series.named_subject()?)));
        FirstLook { named: named.collect(), seen: BTreeSet::new(), trials_left: trials }
    }

    /// Takes what a script has measured in a trial; after the last of the trials, says which measures none of them has.
    pub(crate) fn see(&mut self, subjects: BTreeSet<Subject>) -> Vec<String> {
        self.seen.extend(subjects);
        self.trials_left = self.trials_left.saturating_sub(1);
        if self.trials_left > 0 || self.seen.is_empty() {
            return Vec::new();
        }
        let named = std::mem::take(&mut self.named);
        named.iter().filter(|(_, subject)| !self.seen.contains(subject)).map(|missing| self.told(missing)).collect()
    }

    fn told(&self, (measure, wanted): &(Measure, Subject)) -> String {
        let alike = self.seen.iter().filter(|subject| subject.is_like(wanted)).take(MOST_NAMES);
        let alike: Vec<String> = alike.map(|subject| format!("`{subject}`")).collect();
        let there = if alike.is_empty() { "nothing of that kind".to_owned() } else { alike.join(", ") };
        format!("no trial of the first block has a value for `{measure}`: there is {there}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(measures: &[&str], trials: &[&[&str]]) -> Vec<Vec<String>> {
        let named = measures.iter().map(|text| text.parse::<Measure>().expect("a measure"));
        let named = named.filter_map(|measure| Some((measure.clone(), measure.series.named_subject()?))).collect();
        let mut look = FirstLook { named, seen: BTreeSet::new(), trials_left: 2 };
        let subjects = |texts: &&[&str]| texts.iter().map(|text| text.parse().expect("a subject")).collect();
        trials.iter().map(|texts| look.see(subjects(texts))).collect()
    }

    #[test]
    fn what_no_trial_of_the_first_block_has_is_told_once() {
        let told = looked(
            &["checks:is fin.ratio", "request_duration:web/cart.p95", "iteration_duration.p95"],
            &[&["iteration", "check:is fine"], &["iteration", "request:web/cart"], &["iteration"]],
        );
        assert_eq!(told[0], Vec::<String>::new(), "another variant may have it");
        assert_eq!(
            told[1],
            ["no trial of the first block has a value for `checks:is fin.ratio`: there is `check:is fine`"]
        );
        assert_eq!(told[2], Vec::<String>::new());
    }

    #[test]
    fn where_no_script_runs_names_are_known_before() {
        assert!(looked(&["request_duration:pay.p95"], &[&[], &[]]).iter().all(Vec::is_empty));
    }
}
