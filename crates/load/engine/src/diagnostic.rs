//! What is to be said of a workload before it runs, and of which part of it.

use plimsoll_model::flow::WorkloadPart;

/// What is wrong with a workload, or what its author should know, and which part of it that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadDiagnostic {
    /// The part, where it is one of a flow.
    pub part: Option<WorkloadPart>,
    /// What was expected, and what was found.
    pub what: String,
    /// What there is instead, where a name was not found.
    pub known: Vec<String>,
}

impl WorkloadDiagnostic {
    /// One that belongs to no part in particular.
    #[must_use]
    pub fn new(what: impl Into<String>) -> WorkloadDiagnostic {
        WorkloadDiagnostic { part: None, what: what.into(), known: Vec::new() }
    }

    /// One of a part.
    #[must_use]
    pub fn of(part: WorkloadPart, what: impl Into<String>) -> WorkloadDiagnostic {
        WorkloadDiagnostic { part: Some(part), ..WorkloadDiagnostic::new(what) }
    }
}
