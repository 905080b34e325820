//! A finding: one sentence that limits or explains the answer, with its evidence.

/// One sentence of the report, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much the finding affects the answer.
    pub severity: Severity,
    /// The topic, in a word or two.
    pub topic: &'static str,
    /// The sentence.
    pub sentence: String,
    /// The evidence, one line each.
    pub evidence: Vec<String>,
}

/// How much a finding affects the answer, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can overturn the answer.
    Problem,
    /// It limits what the answer means.
    Caution,
    /// Good to know.
    Note,
}

impl Severity {
    /// The severity in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Caution => "caution",
            Severity::Note => "note",
        }
    }
}
