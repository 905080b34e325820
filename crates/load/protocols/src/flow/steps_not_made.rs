//! Steps that no iteration came to: whoever reads the results may believe that they were measured.

use plimsoll_model::record::{Interval, RecordedPhase, Subject};
use plimsoll_model::workload::Steps;
use std::collections::BTreeSet;

/// The steps of iterations that were not made so far in the measure phase.
#[derive(Debug)]
pub struct StepsNotMade<'a>(BTreeSet<&'a str>);

impl<'a> StepsNotMade<'a> {
    /// Nothing is made yet.
    pub fn of(steps: &'a Steps) -> StepsNotMade<'a> {
        match steps {
            Steps::Flow(flow) => StepsNotMade(flow.names_of_iterations()),
            _ => StepsNotMade(BTreeSet::new()),
        }
    }

    /// Takes note of a second.
    pub fn see(&mut self, interval: &Interval) {
        for (phase, subject) in interval.tallies.keys() {
            if let (RecordedPhase::Measure, Subject::Request(name)) = (phase, subject) {
                self.0.remove(name.as_str());
            }
        }
    }

    /// What a reader should know, if there is something.
    pub fn warning(self) -> Option<String> {
        let names: Vec<&str> = self.0.into_iter().collect();
        (!names.is_empty()).then(|| {
            let names = names.join("`, `");
            format!(
                "not made once in the measure phase: `{names}`; no iteration came to it, or none held its condition"
            )
        })
    }
}
