//! Exit codes, and the failures that end the program with one.

use crate::say;
use std::process::ExitCode;

/// How the program ends. The numbers are documented in the README and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done.
    Fine = 0,
    /// The arguments or the study are at fault; no load was sent.
    Usage = 2,
    /// A system could not be built or started, or it died, or its replies were wrong.
    SystemFailed = 3,
    /// Nothing can be concluded: no trial counts.
    Void = 4,
    /// Stopped from outside.
    Interrupted = 130,
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

    /// Says why on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        say::note(&format!("{:#}", self.error));
        self.exit.into()
    }
}

/// Anything that is not said otherwise is the fault of the arguments: a file that cannot be read,
/// a folder that is in the way.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure { exit: Exit::Usage, error }
    }
}
