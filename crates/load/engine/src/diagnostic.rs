//! Faults and notes about a workload, found before it runs.

use plimsoll_model::flow::WorkloadPart;

/// A fault of a workload, or a note for its author, and the part of the workload that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadDiagnostic {
    /// The part, if the diagnostic concerns one.
    pub part: Option<WorkloadPart>,
    /// What was expected, and what was found.
    pub what: String,
    /// The names that exist, where a name was not found.
    pub known: Vec<String>,
}

impl WorkloadDiagnostic {
    /// A diagnostic of the workload as a whole.
    #[must_use]
    pub fn new(what: impl Into<String>) -> WorkloadDiagnostic {
        WorkloadDiagnostic { part: None, what: what.into(), known: Vec::new() }
    }

    /// A diagnostic of a part.
    #[must_use]
    pub fn of(part: WorkloadPart, what: impl Into<String>) -> WorkloadDiagnostic {
        WorkloadDiagnostic { part: Some(part), ..WorkloadDiagnostic::new(what) }
    }
}
