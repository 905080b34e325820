//! Steps that no iteration reached. Readers of the results might believe that they were measured.

use plimsoll_model::record::{Interval, RecordedPhase, Subject};
use plimsoll_model::workload::Steps;
use std::collections::BTreeSet;

/// The steps of iterations that no exchange of the measure phase has reached so far.
#[derive(Debug)]
pub struct UnreachedSteps<'a>(BTreeSet<&'a str>);

impl<'a> UnreachedSteps<'a> {
    /// All steps of the workload's iterations.
    pub fn of(steps: &'a Steps) -> UnreachedSteps<'a> {
        match steps {
            Steps::Flow(flow) => UnreachedSteps(flow.names_of_iterations()),
            _ => UnreachedSteps(BTreeSet::new()),
        }
    }

    /// Removes the steps that a second of the load reached.
    pub fn observe(&mut self, interval: &Interval) {
        for (phase, subject) in interval.tallies.keys() {
            if let (RecordedPhase::Measure, Subject::Request(name)) = (phase, subject) {
                self.0.remove(name.as_str());
            }
        }
    }

    /// The warning about the steps that are left, if any.
    pub fn warning(&self) -> Option<String> {
        let names: Vec<&str> = self.0.iter().copied().collect();
        (!names.is_empty()).then(|| {
            let names = names.join("`, `");
            format!(
                "not made once in the measure phase: `{names}`; no iteration came to it, or none held its condition"
            )
        })
    }
}
