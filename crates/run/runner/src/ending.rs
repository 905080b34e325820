//! How a run ends, and why before the end of its plan.

use crate::host::HostError;
use crate::start::Abort;
use plimsoll_bundle::BundleError;
use plimsoll_system::SystemError;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every start that was needed has run. Whether it counts is in its summary.
    Complete,
    /// It was stopped from outside. The starts that had ended are in the bundle.
    Interrupted,
    /// It was broken off, because others used so much of the processors that loads did not count.
    BrokenOff,
    /// It has run as many starts as it was asked to, and there are more.
    Paused,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A system could not be built or described.
    #[error("{0}")]
    System(String),
    /// The first trial of a variant could not begin, or all its exchanges failed, for the reason that
    /// its summary gives.
    #[error(
        "{start} failed, and so would another of `{variant}`, so the run was broken off; correct that, and run the study into \
         a new folder"
    )]
    NeverWorked {
        /// The start, as in reports: `trial 1`.
        start: String,
        /// The variant, as in reports.
        variant: String,
    },
    /// Every trial of a whole block failed, although systems answered, and no earlier trial succeeded.
    #[error(
        "all {trials} trials failed, and so would others, so the run was broken off; correct that, and run the study into a \
         new folder"
    )]
    NeverRight {
        /// The number of trials.
        trials: usize,
    },
    /// Agents that were to generate load, or to run systems, are lost.
    #[error("{0}")]
    Agents(String),
    /// The results cannot be written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// Why the run stopped before the end of its plan.
pub(crate) enum Stop {
    Interrupted,
    BrokenOff,
    Paused,
    Abort(RunError),
}

impl From<BundleError> for Stop {
    fn from(error: BundleError) -> Self {
        Stop::Abort(error.into())
    }
}

impl From<SystemError> for Stop {
    fn from(error: SystemError) -> Self {
        match error {
            SystemError::Interrupted { .. } => Stop::Interrupted,
            error => Stop::Abort(RunError::System(error.to_string())),
        }
    }
}

impl From<HostError> for Stop {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Interrupted => Stop::Interrupted,
            HostError::Failed(reason) => Stop::Abort(RunError::System(reason)),
            HostError::Lost(reason) => Stop::Abort(RunError::Agents(reason)),
        }
    }
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        match abort {
            Abort::Interrupted => Stop::Interrupted,
            Abort::Bundle(error) => error.into(),
            Abort::Agents(reason) => Stop::Abort(RunError::Agents(reason)),
        }
    }
}
