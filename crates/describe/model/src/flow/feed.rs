//! Files whose rows users take.

use super::ValueId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file whose rows users take: of CSV, or an array of objects in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    /// Its name in the study.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// Which user takes which row.
    pub order: FeedOrder,
    /// What happens when all rows were taken; [`FeedOrder::Unique`] always stops,
    /// [`FeedOrder::Random`] has no end.
    pub at_end: FeedEnd,
    /// The columns that the flow uses, and where they are found.
    pub columns: Vec<(ValueId, String)>,
}

/// By which rule users take rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedOrder {
    /// User k has row k.
    PerUser,
    /// All users together take one row after the other, a row for each iteration.
    InOrder,
    /// Any row for each iteration, seeded.
    Random,
    /// As in order, and no row twice in a trial.
    Unique,
}

/// What happens when all rows were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedEnd {
    /// The first row comes again.
    StartOver,
    /// A user that needs a row stops.
    Stop,
}
