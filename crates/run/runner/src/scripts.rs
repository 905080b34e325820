//! Checks the names that a study uses for what scripts record. The names of their metrics are known as soon as they are
//! loaded, those of checks and requests only after the first block.

use plimsoll_model::measure::Measure;
use plimsoll_model::record::Subject;
use plimsoll_model::study::StudyFacts;
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_study::{ScriptMetrics, Study};
use std::collections::BTreeSet;

/// The metrics that scripts define, for each script that can be loaded.
pub(crate) fn metrics(study: &Study, workloads: impl Iterator<Item = Workload>) -> Vec<ScriptMetrics> {
    let mut known: Vec<Workload> = Vec::new();
    let mut all = Vec::new();
    for workload in workloads {
        let Steps::Script(script) = &workload.steps else { continue };
        if known.contains(&workload) {
            continue;
        }
        let file = script.entry.strip_prefix(study.folder()).unwrap_or(&script.entry).display().to_string();
        all.extend(plimsoll_generator::metrics(&workload).map(|metrics| ScriptMetrics { script: file, metrics }));
        known.push(workload);
    }
    all
}

/// The most names that a message lists of what was recorded instead.
const MOST_NAMES: usize = 8;

/// Finds, after the first trials, the measures whose names no trial has recorded: a misspelt name should be reported
/// before a run has taken hours.
pub(crate) struct MissingNames {
    /// The measures that name a subject, with that subject.
    named: Vec<(Measure, Subject)>,
    recorded: BTreeSet<Subject>,
    trials_left: usize,
}

impl MissingNames {
    /// Checks the first `trials` trials; with 0, never returns a message.
    pub(crate) fn new(facts: &StudyFacts, trials: usize) -> MissingNames {
        let decide = facts.decide.iter().map(|decision| &decision.measure);
        let limits = facts.objective.iter().flat_map(|objective| &objective.limits).map(|limit| &limit.measure);
        let mut named: Vec<(Measure, Subject)> = Vec::new();
        for measure in decide.chain(&facts.report.measures).chain(limits).filter(|_| trials > 0) {
            if let Some(subject) = measure.series.named_subject()
                && !named.iter().any(|(known, _)| known == measure)
            {
                named.push((measure.clone(), subject));
            }
        }
        MissingNames { named, recorded: BTreeSet::new(), trials_left: trials }
    }

    /// Adds the subjects that a script has recorded in a trial. After the last of the trials, returns a message for
    /// each measure that none of them has recorded.
    pub(crate) fn observe(&mut self, subjects: BTreeSet<Subject>) -> Vec<String> {
        self.recorded.extend(subjects);
        self.trials_left = self.trials_left.saturating_sub(1);
        if self.trials_left > 0 || self.recorded.is_empty() {
            return Vec::new();
        }
        let named = std::mem::take(&mut self.named);
        named
            .iter()
            .filter(|(_, subject)| !self.recorded.contains(subject))
            .map(|missing| self.message(missing))
            .collect()
    }

    fn message(&self, (measure, wanted): &(Measure, Subject)) -> String {
        let alike = self.recorded.iter().filter(|subject| subject.is_like(wanted)).take(MOST_NAMES);
        let alike: Vec<String> = alike.map(|subject| format!("`{subject}`")).collect();
        let there = if alike.is_empty() { "nothing of that kind".to_owned() } else { alike.join(", ") };
        format!("no trial of the first block has a value for `{measure}`: there is {there}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(measures: &[&str], trials: &[&[&str]]) -> Vec<Vec<String>> {
        let named = measures.iter().map(|text| text.parse::<Measure>().expect("a measure"));
        let named = named.filter_map(|measure| Some((measure.clone(), measure.series.named_subject()?))).collect();
        let mut missing = MissingNames { named, recorded: BTreeSet::new(), trials_left: 2 };
        let subjects = |texts: &&[&str]| texts.iter().map(|text| text.parse().expect("a subject")).collect();
        trials.iter().map(|texts| missing.observe(subjects(texts))).collect()
    }

    #[test]
    fn what_no_trial_of_the_first_block_has_is_told_once() {
        let messages = messages(
            &["checks:is fin.ratio", "request_duration:web/cart.p95", "iteration_duration.p95"],
            &[&["iteration", "check:is fine"], &["iteration", "request:web/cart"], &["iteration"]],
        );
        assert_eq!(messages[0], Vec::<String>::new(), "another variant may have it");
        assert_eq!(
            messages[1],
            ["no trial of the first block has a value for `checks:is fin.ratio`: there is `check:is fine`"]
        );
        assert_eq!(messages[2], Vec::<String>::new());
    }

    #[test]
    fn names_in_the_limits_of_an_objective_are_looked_for_too() {
        let text = "title = 't'\nquestion = 'q?'\n[workload]\nscript = 'load.js'\n\
                    [load]\nprofile = 'capacity'\nusers = 2\n\
                    [objective]\nlimits = { 'request_duration:pya.p95' = '1s', 'iteration_duration.p95' = '2s' }\n\
                    [report]\nmeasures = ['request_duration:pya.p95']\n";
        let (study, faults) = plimsoll_study::read("study.toml", text, None, "/study".as_ref(), &[0]);
        let facts = study.unwrap_or_else(|| panic!("{faults:?}")).facts();
        let recorded = ["iteration", "request:pay"].map(|text| text.parse::<Subject>().expect("a subject"));
        let told = MissingNames::new(&facts, 1).observe(BTreeSet::from(recorded));
        let pya = "no trial of the first block has a value for `request_duration:pya.p95`: there is `request:pay`";
        assert_eq!(told, [pya], "once, wherever it is named");
    }

    #[test]
    fn where_no_script_runs_names_are_known_before() {
        assert!(messages(&["request_duration:pay.p95"], &[&[], &[]]).iter().all(Vec::is_empty));
    }
}
