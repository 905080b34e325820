//! Exit codes of `plimsoll script run`: those of k6, at which the scripts of teams look.

use crate::say;
use plimsoll_k6::secrets::Secrets;
use std::process::ExitCode;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Everything ran, and every threshold holds.
    Fine = 0,
    /// Anything that has no code of its own: a file that cannot be written.
    Failed = 1,
    /// A threshold does not hold.
    Thresholds = 99,
    /// `setup` took too long.
    SetupTimeout = 100,
    /// `teardown` took too long.
    TeardownTimeout = 101,
    /// The options are at fault.
    Options = 104,
    /// Stopped from outside.
    Interrupted = 105,
    /// The script is at fault.
    Script = 107,
    /// The script ended the run.
    Aborted = 108,
    /// The script called the run a failure.
    Marked = 110,
    /// The script exports no function.
    NoFunction = 255,
}

/// Why it ends so.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    why: String,
}

impl Failure {
    pub(super) fn new(exit: Exit, why: impl Into<String>) -> Failure {
        Failure { exit, why: why.into() }
    }

    /// The same without secrets that a script has read.
    pub(super) fn masked(self, secrets: &Secrets) -> Failure {
        Failure { why: secrets.masked(&self.why).into_owned(), ..self }
    }

    /// Says why on standard error.
    pub(super) fn report(&self) -> ExitCode {
        say::note(self.why.trim_end());
        self.exit.into()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::new(Exit::Failed, format!("{error:#}"))
    }
}
