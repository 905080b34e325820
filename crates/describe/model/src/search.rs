//! A search for the capacity, or a stress test, as a plan has it: the loads that it may try, and how long they take.

use crate::load::{LoadModel, LoadProfile};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The loads that a search for the capacity may try, or those of a stress test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRange {
    /// The first load that is tried: users, or arrivals per second.
    pub first: f64,
    /// The largest load that is tried.
    pub most: f64,
    /// True for users.
    pub of_users: bool,
    /// The measure phase of the load that confirms the capacity.
    pub confirm: Duration,
    /// The distance of loads that go up by equal steps, as of a stress test; none where the capacity is searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// The number of users that begin in a second of the warm-up, which is longer by the time that they take; none where all begin at
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_users: Option<f64>,
    /// How long a system may take to recover from a load under which requests failed; zero where nothing waits for that.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub recover: Duration,
    /// How long the measure phase of a load near the capacity may get, so that what it misses can be weighed; zero where the study
    /// says how long loads are.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub longest: Duration,
}

impl SearchRange {
    /// The largest load that is tried, where the first one is `load`.
    #[must_use]
    pub fn largest(&self, load: &LoadProfile) -> LoadProfile {
        let mut load = load.clone();
        let (LoadModel::Closed { users: profile, .. } | LoadModel::Open { rate: profile, .. }) = &mut load.model;
        profile.start = self.most;
        load
    }

    /// The warm-up of a load of this size, where that of the first load takes `of_first`.
    #[must_use]
    pub fn warmup(&self, of_first: Duration, level: f64) -> Duration {
        let longer = self.new_users.map_or(0.0, |per_second| (level - self.first) / per_second);
        Duration::try_from_secs_f64(of_first.as_secs_f64() + longer).unwrap_or_default()
    }
}

/// A search for the capacity under a condition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacitySearch {
    /// The loads that it may try.
    #[serde(flatten)]
    pub range: SearchRange,
    /// How many loads a variant takes at most on its first start, and on each later one, unless one of them has to be
    /// repeated, or they contradict one another.
    pub loads: [u32; 2],
    /// How many more it takes on a start where they do.
    #[serde(default)]
    pub more: u32,
}
