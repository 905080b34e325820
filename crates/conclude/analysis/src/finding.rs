//! A finding: one sentence that a reader should know beside the answer, with its evidence.

/// One sentence of the report, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// What it is about, in a word or two.
    pub topic: &'static str,
    /// The sentence.
    pub sentence: String,
    /// What it rests on: a line each.
    pub evidence: Vec<String>,
}

/// How grave a finding is for the answer, the gravest first.
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
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Caution => "caution",
            Severity::Note => "note",
        }
    }
}
