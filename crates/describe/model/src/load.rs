//! The load profile: how many users or arrivals over time, and when a trial stops.

use crate::feedback::FeedbackRules;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The least pause of a user in closed load after a failure, so that users of a broken system do not retry in a busy
/// loop. It follows every connection that could not be made; where calls block, it follows every failure that is no
/// [conflict](crate::record::ErrorKind::is_conflict).
pub const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// How load is offered in a trial. Warm-up offers the profile's first value; the measure phase
/// follows the stages; draining starts nothing new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadProfile {
    /// Users in a closed loop, or arrivals.
    pub model: LoadModel,
    /// Warm-up before the measure phase; may be zero.
    pub warmup: Duration,
    /// What ends the measure phase.
    pub stop: Stop,
    /// How long exchanges under way may take to finish after the measure phase. An exchange that is still under way
    /// after that counts as a time-out, with the time that it has taken so far.
    pub drain: Duration,
}

/// Closed or open load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadModel {
    /// Virtual users that wait for each reply, then think.
    Closed {
        /// Number of users over time.
        users: Profile,
        /// The pause between two iterations of a user.
        think: Think,
    },
    /// Arrivals that do not wait for one another.
    Open {
        /// Iterations per second over time.
        rate: Profile,
        /// How arrivals are spaced.
        arrivals: Arrivals,
        /// The most users at work at once.
        max_users: u32,
        /// What happens to arrivals for which no user is free.
        #[serde(default)]
        overflow: Overflow,
    },
}

/// What happens to an arrival for which no user is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// It waits, and the wait counts in its response time.
    #[default]
    Wait,
    /// It is dropped, and counted as such.
    Drop,
}

impl LoadProfile {
    /// Returns true if the load is constant and ends by time: such a trial must reach a steady state.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let (LoadModel::Closed { users: profile, .. } | LoadModel::Open { rate: profile, .. }) = &self.model;
        profile.is_constant() && matches!(self.stop, Stop::After(_))
    }

    /// The most users that work at the same time.
    #[must_use]
    pub fn most_users(&self) -> u32 {
        match &self.model {
            LoadModel::Closed { users, .. } => {
                let planned = users.peak().ceil() as u32;
                self.stop.feedback().map_or(planned, |rules| planned.max(rules.most))
            }
            LoadModel::Open { max_users, .. } => *max_users,
        }
    }
}

/// A value over time: `start`, then one stage after the other. After the last stage its target
/// holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The value during warm-up, and at the start of the first stage.
    pub start: f64,
    /// The stages of the measure phase; empty when the value is constant.
    pub stages: Vec<Stage>,
    /// The way in which users join; none if all are there at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joining: Option<Joining>,
}

/// Users who begin one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Joining {
    /// The instant at which the first one begins, in seconds from the start of the measure phase: negative where they begin in warm-up.
    pub from: f64,
    /// The number that begins in a second.
    pub per_second: f64,
}

impl Profile {
    /// A value that never changes.
    #[must_use]
    pub fn constant(value: f64) -> Profile {
        Profile { start: value, stages: Vec::new(), joining: None }
    }

    /// Whether the value never changes.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.stages.iter().all(|stage| stage.target == self.start)
    }

    /// The length of all stages together.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.stages.iter().map(|stage| stage.length).sum()
    }

    /// The largest value at any time.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.stages.iter().map(|stage| stage.target).fold(self.start, f64::max)
    }

    /// The value at `seconds` of the measure phase, and `start` before it; no more than have joined.
    #[must_use]
    pub fn at(&self, seconds: f64) -> f64 {
        self.joining.map_or(f64::INFINITY, |joining| joining.by(seconds)).min(self.of_stages(seconds))
    }

    /// True if all have joined by `seconds` of the measure phase.
    #[must_use]
    pub fn all_have_joined(&self, seconds: f64) -> bool {
        self.joining.is_none_or(|joining| joining.by(seconds) >= self.peak())
    }

    fn of_stages(&self, seconds: f64) -> f64 {
        let mut value = self.start;
        let mut begin = 0.0;
        for stage in &self.stages {
            if seconds < begin {
                break;
            }
            let length = stage.length.as_secs_f64();
            let ramping = stage.shape == Shape::Ramp && seconds < begin + length;
            let share = if ramping { (seconds - begin) / length } else { 1.0 };
            value += (stage.target - value) * share;
            begin += length;
        }
        value
    }
}

/// A generator's part of a load: the users and arrivals `index`, `index + of`, `index + 2 * of`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The number of the part, from 0.
    pub index: usize,
    /// Parts in all.
    pub of: usize,
}

/// The whole load.
pub const WHOLE: Share = Share { index: 0, of: 1 };

impl Default for Share {
    fn default() -> Self {
        WHOLE
    }
}

impl Share {
    /// The number of the first `total` members that belong to this share.
    #[must_use]
    #[inline]
    pub fn of_first(self, total: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        total.saturating_sub(index).div_ceil(of)
    }

    /// This part, of only as many parts as have any of so many users; at least one. A part with `index` at or above `of`
    /// has no user.
    #[must_use]
    pub fn among_those_with(self, users: u64) -> Share {
        let of = self.of.min(usize::try_from(users).unwrap_or(usize::MAX)).max(1);
        Share { of, ..self }
    }
}

impl Joining {
    /// The number that has begun by `seconds` of the measure phase.
    #[must_use]
    pub fn by(self, seconds: f64) -> f64 {
        ((seconds - self.from) * self.per_second + 1.0).floor().max(0.0)
    }
}

/// One part of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// How long it lasts.
    pub length: Duration,
    /// The value at its end.
    pub target: f64,
    /// How the value gets there.
    pub shape: Shape,
}

/// How a stage reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Linearly over the stage.
    Ramp,
    /// At once, and stays.
    Hold,
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// Exponential gaps, seeded: what many independent users look like together.
    Poisson,
}

/// The pause of a closed-loop user between two iterations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Always the same; zero for none.
    Constant(Duration),
    /// Uniform between two bounds, seeded.
    Uniform {
        /// Least.
        from: Duration,
        /// Most.
        to: Duration,
    },
    /// Exponential with this mean, seeded.
    Exponential(Duration),
    /// Log-normal, seeded: its logarithm is normal, so that most pauses are short and a few long.
    LogNormal {
        /// Half of all pauses are shorter.
        median: Duration,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Think {
    /// The mean pause, in seconds.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Think::Constant(pause) | Think::Exponential(pause) => pause.as_secs_f64(),
            Think::Uniform { from, to } => (from.as_secs_f64() + to.as_secs_f64()) / 2.0,
            Think::LogNormal { median, sigma } => median.as_secs_f64() * (sigma * sigma / 2.0).exp(),
        }
    }
}

/// What ends the measure phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Time.
    After(Duration),
    /// Time too, of a load that shows what changes over it: it need not become steady.
    Soak(Duration),
    /// Every user has done this many iterations, or the limit passed.
    IterationsPerUser {
        /// Iterations of each user.
        count: u64,
        /// The longest that the phase may take.
        limit: Duration,
    },
    /// All users together have done this many iterations, or the limit passed.
    Iterations {
        /// Iterations in all.
        count: u64,
        /// The longest that the phase may take.
        limit: Duration,
    },
    /// A control loop that changes the number of users says so, or the limit passed.
    Feedback {
        /// The rules of the control loop.
        rules: FeedbackRules,
        /// The longest that the phase may take.
        limit: Duration,
    },
}

impl Stop {
    /// The longest that the measure phase can take.
    #[must_use]
    pub fn limit(self) -> Duration {
        match self {
            Stop::After(limit)
            | Stop::Soak(limit)
            | Stop::IterationsPerUser { limit, .. }
            | Stop::Iterations { limit, .. }
            | Stop::Feedback { limit, .. } => limit,
        }
    }

    /// The rules of the control loop that changes the number of users; none where the load itself says how many there are.
    #[must_use]
    pub fn feedback(self) -> Option<FeedbackRules> {
        if let Stop::Feedback { rules, .. } = self { Some(rules) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: u64, target: f64, shape: Shape) -> Stage {
        Stage { length: Duration::from_secs(seconds), target, shape }
    }

    #[test]
    fn a_part_is_among_those_with_users_or_behind_them() {
        let parts = |index, users| Share { index, of: 4 }.among_those_with(users);
        assert_eq!((parts(1, 3), parts(1, 9)), (Share { index: 1, of: 3 }, Share { index: 1, of: 4 }));
        assert_eq!((parts(0, 0).of, parts(3, u64::MAX).of), (1, 4), "at least one, at most all");
        let behind = parts(3, 2);
        assert!(behind.index >= behind.of, "{behind:?}");
    }

    #[test]
    fn load_written_before_arrivals_could_be_dropped_lets_them_wait() {
        let written = r#"{"open":{"rate":{"start":5.0,"stages":[]},"arrivals":"constant","max_users":3}}"#;
        let LoadModel::Open { overflow, .. } = serde_json::from_str(written).expect("load") else {
            panic!("it is open")
        };
        assert_eq!(overflow, Overflow::Wait);
    }

    #[test]
    fn a_profile_ramps_holds_and_stays() {
        let stages = vec![stage(10, 100.0, Shape::Ramp), stage(5, 40.0, Shape::Hold), stage(10, 0.0, Shape::Ramp)];
        let profile = Profile { start: 0.0, stages, joining: None };
        let expected = [(-3.0, 0.0), (0.0, 0.0), (5.0, 50.0), (10.0, 40.0), (14.9, 40.0), (20.0, 20.0), (99.0, 0.0)];
        for (at, value) in expected {
            assert!((profile.at(at) - value).abs() < 1e-9, "at {at} s: {} instead of {value}", profile.at(at));
        }
        assert_eq!(profile.length(), Duration::from_secs(25));
        let joining = Profile { joining: Some(Joining { from: -4.0, per_second: 2.0 }), ..Profile::constant(5.0) };
        let joined = [-5.0, -4.0, -3.6, -3.5, -2.0, -1.0, 0.0, 9.0].map(|at| joining.at(at));
        assert_eq!(joined, [0.0, 1.0, 1.0, 2.0, 5.0, 5.0, 5.0, 5.0]);
        assert_eq!(profile.peak(), 100.0);
    }
}
