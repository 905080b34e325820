//! What a run can be asked to do next.

use plimsoll_model::start::{Load, Start};

/// One step of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Start the systems of these variants.
    Start(Start),
    /// Offer these loads to the systems that are up, at the same time. There is at least one.
    Loads(Vec<Load>),
    /// Stop the systems.
    Stop,
    /// Check which verdicts are reached.
    Look {
        /// The repeats that have run.
        repeats: u32,
    },
    /// Break off: the machine is too busy with something else for loads to count.
    BreakOff,
}
