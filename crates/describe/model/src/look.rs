//! Looks at the verdicts of a run that may end early (a group sequential design), and which starts they leave out.

use crate::start::Start;
use serde::{Deserialize, Serialize};

/// A look at the verdicts of a run that may end early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The repeats that had run.
    pub repeats: u32,
    /// True if everything was decided, so that the run ends: each verdict was reached, or the gate passed where that was asked for.
    pub decided: bool,
    /// The conditions that run no further while others do, because everything under them was decided for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<usize>,
}

impl Look {
    /// A look at which nothing is reached, so that the run goes on.
    #[must_use]
    pub fn open(repeats: u32) -> Look {
        Look { repeats, decided: false, conditions: Vec::new() }
    }

    /// True if `start` is left out after this look.
    #[must_use]
    pub fn spares(&self, start: &Start) -> bool {
        start.repeat > self.repeats && (self.decided || self.conditions.contains(&start.condition))
    }
}
