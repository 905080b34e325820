//! Exit codes, and the failures that end the program with one.

use crate::say;
use plimsoll_analysis::conclusion::conclusion;
use plimsoll_analysis::verdict::Verdict;
use plimsoll_analysis::{Analysis, Conclusion};
use std::process::ExitCode;

/// How the program ends. The numbers are documented in the README and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done, and no verdict speaks against it.
    Fine = 0,
    /// A variant is worse, or a check of the machine or of a table found a problem.
    Worse = 1,
    /// The arguments or the study are at fault; no load was sent.
    Usage = 2,
    /// A system could not be built or started, or it died, or its replies were wrong.
    SystemFailed = 3,
    /// A verdict is inconclusive or void, a study that compares nothing lacks a value, or the machine was too busy for
    /// loads to count.
    Open = 4,
    /// With `--gate`: a variant is not shown to be no worse.
    GateNotPassed = 5,
    /// Stopped from outside.
    Interrupted = 130,
}

impl Exit {
    /// The exit code for these verdicts. With `gate`, they pass only if each variant is shown to be no worse than the
    /// baseline by the margin; what is not known does not pass.
    pub(crate) fn of<'a>(mut verdicts: impl Iterator<Item = &'a Verdict> + Clone, gate: bool) -> Exit {
        match conclusion(verdicts.clone()) {
            _ if gate && verdicts.all(|verdict| verdict.not_inferior) => Exit::Fine,
            Conclusion::Worse => Exit::Worse,
            _ if gate => Exit::GateNotPassed,
            Conclusion::Open => Exit::Open,
            Conclusion::Fine => Exit::Fine,
        }
    }
}

impl Exit {
    /// The exit code for a study that compares nothing: open where a value is missing.
    pub(crate) fn of_description(analysis: &Analysis) -> Exit {
        match analysis.conclusion() {
            Conclusion::Open => Exit::Open,
            Conclusion::Fine | Conclusion::Worse => Exit::Fine,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why the program ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit, error: error.into() }
    }

    /// The failure with what may help, on a line of its own.
    pub(crate) fn with_help(self, help: &str) -> Failure {
        Failure { error: anyhow::anyhow!("{:#}\n{help}", self.error), ..self }
    }

    /// Prints the reason on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        say::note(&format!("{:#}", self.error));
        self.exit.into()
    }
}

/// By default a failure is a fault of the arguments: a file that cannot be read, a folder that is in the way.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure { exit: Exit::Usage, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_analysis::verdict::Outcome;

    fn verdict(outcome: Outcome, not_inferior: bool) -> Verdict {
        let reason = String::new();
        Verdict {
            outcome,
            material: None,
            margin: 0.05,
            reason,
            objection: None,
            adjusted_p: None,
            needed: None,
            not_inferior,
            gate_objection: None,
            blocked_by_floor: false,
            exceeds_floor: false,
            holds_despite_floor: false,
            for_good: false,
            withheld_by_influence: false,
        }
    }

    #[test]
    fn the_worst_verdict_decides_and_a_gate_wants_proof() {
        use Outcome::{Better, Equivalent, Inconclusive, Void, Worse};
        for (verdicts, plain, gated) in [
            (&[][..], Exit::Fine, Exit::Fine),
            (&[(Equivalent, true), (Better, true)], Exit::Fine, Exit::Fine),
            (&[(Equivalent, true), (Inconclusive, false)], Exit::Open, Exit::GateNotPassed),
            (&[(Inconclusive, true)], Exit::Open, Exit::Fine),
            (&[(Void, false)], Exit::Open, Exit::GateNotPassed),
            (&[(Worse, false), (Inconclusive, false)], Exit::Worse, Exit::Worse),
        ] {
            let verdicts: Vec<Verdict> = verdicts.iter().map(|(outcome, shown)| verdict(*outcome, *shown)).collect();
            assert_eq!((Exit::of(verdicts.iter(), false), Exit::of(verdicts.iter(), true)), (plain, gated));
        }
    }
}
