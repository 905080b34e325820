//! The control loop of a load whose users come and go: its rules, and the record of it.

use crate::objective::Condition;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The rules by which a control loop changes the number of users while a load runs. It adds users until an alert fires: a
/// limit of the objective is exceeded. From then on it takes users away while one fires, and adds them while none does. It
/// ends once the number of users has been flat for a time, and answers with its mean over that time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedbackRules {
    /// Users that are added or taken away at once.
    pub step: u32,
    /// The most users at once.
    pub most: u32,
    /// The least time between two changes, from the first alert on, and between the last alert and the next users.
    pub rest: Duration,
    /// The time over which the limits are looked at, up to now. No alert fires before so much time has passed.
    pub over: Duration,
    /// The time for which the number of users must be flat, from the first alert on at the earliest.
    pub window: Duration,
    /// It is flat where the line through it changes by less than so many users a second.
    pub flat: f64,
}

/// The record of a control loop in a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedbackRecord {
    /// Its rules.
    pub rules: FeedbackRules,
    /// The reason of its end.
    pub end: FeedbackEnd,
    /// The most users that were meant to be at work; none in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<u32>,
    /// The second of the measure phase in which the first alert fired; none where none did.
    pub first_alert: Option<u32>,
    /// The number of users over the window; none where no alert fired.
    pub window: Option<UsersInWindow>,
    /// The limits that were exceeded, in the order of the objective.
    pub alerts: Vec<AlertTime>,
}

/// The reason of the end of a control loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackEnd {
    /// The number of users was flat.
    Flat,
    /// As many users as the rules allow were there for the time of the window, and no limit was exceeded in it.
    NoAlert,
    /// The time that the study gives was over.
    Time,
}

/// The number of users in the last seconds of a control loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsersInWindow {
    /// The number of these seconds: those of the window, or since the first alert if that is shorter.
    pub seconds: u32,
    /// The mean: the answer.
    pub mean: f64,
    /// The fewest.
    pub fewest: u32,
    /// The most.
    pub most: u32,
    /// The slope of the line through them, by least squares, in users per second.
    pub slope: f64,
    /// The number of times that adding users turned into taking them away, or the other way round.
    pub reversals: u32,
}

/// A limit that was exceeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertTime {
    /// The condition of the objective.
    pub condition: Condition,
    /// For how many seconds.
    pub seconds: u32,
    /// True if it was among those that fired first.
    pub first: bool,
}
