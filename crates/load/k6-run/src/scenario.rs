//! Scenarios: which users run which function of a script, how often, and when.

use crate::duration;
use plimsoll_model::load::Share;
use std::fmt;
use std::time::Duration;

/// The default time that a scenario waits at its end for iterations that have begun.
pub const GRACEFUL_STOP: Duration = Duration::from_secs(30);

/// The default limit on the duration of a scenario with a fixed number of iterations.
pub const MAX_DURATION: Duration = Duration::from_secs(600);

/// A scenario with everything filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// How iterations start.
    pub executor: Executor,
    /// Its start.
    pub start_time: Duration,
    /// The time that it waits at its end for iterations that have begun.
    pub graceful_stop: Duration,
    /// The function that it runs.
    pub exec: String,
    /// Additional variables of `__ENV`.
    pub env: Vec<(String, String)>,
    /// The tags of its samples.
    pub tags: Vec<(String, String)>,
}

/// How iterations start, and until when.
#[derive(Clone, Debug, PartialEq)]
pub enum Executor {
    /// A fixed number that all users share.
    SharedIterations {
        /// Users.
        vus: u64,
        /// Iterations of all of them.
        iterations: u64,
        /// The limit on its duration.
        max_duration: Duration,
    },
    /// A fixed number for each user.
    PerVuIterations {
        /// Users.
        vus: u64,
        /// Iterations of each.
        iterations: u64,
        /// The limit on its duration.
        max_duration: Duration,
    },
    /// A constant number of users for a duration.
    ConstantVus {
        /// Users.
        vus: u64,
        /// The duration.
        duration: Duration,
    },
    /// A changing number of users.
    RampingVus {
        /// Users at the start.
        start_vus: u64,
        /// The ramps.
        stages: Vec<Stage>,
        /// The time in which a user that must leave may finish its iteration.
        graceful_ramp_down: Duration,
    },
    /// Iterations that start at a constant rate.
    ConstantArrivalRate {
        /// Iterations in each time unit.
        rate: u64,
        /// The time unit.
        time_unit: Duration,
        /// The duration.
        duration: Duration,
        /// The users that run them.
        users: Reserve,
    },
    /// Iterations that start at a changing rate.
    RampingArrivalRate {
        /// Iterations in each time unit at the start.
        start_rate: u64,
        /// The time unit.
        time_unit: Duration,
        /// The ramps.
        stages: Vec<Stage>,
        /// The users that run them.
        users: Reserve,
    },
}

/// A linear ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its duration.
    pub duration: Duration,
    /// Users or rate at its end.
    pub target: u64,
}

/// Users that wait for arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The users that exist from the start.
    pub pre_allocated: u64,
    /// The most users.
    pub most: u64,
}

/// The load of a scenario, for the generator: what starts iterations, from when to when.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Its start.
    pub begin: Duration,
    /// The duration in which iterations start.
    pub window: Duration,
    /// The time after that in which iterations may finish.
    pub drain: Duration,
    /// What starts iterations.
    pub source: Source,
}

/// What starts iterations.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A closed loop: each user starts its next iteration after the last.
    Closed {
        /// The number of users.
        users: Curve,
        /// The time in which a user that must leave may finish its iteration.
        graceful_ramp_down: Duration,
        /// The number of iterations.
        quota: Quota,
    },
    /// An open loop: an iteration that is due while no user is free is dropped.
    Open {
        /// Iterations a second.
        rate: Curve,
        /// The users that run them.
        users: Reserve,
    },
}

/// The number of iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// No limit.
    Unlimited,
    /// A number for all users together.
    Together(u64),
    /// A number for each user.
    Each(u64),
}

/// A number that changes linearly from each point to the next, and is constant after the last. Two
/// points at one instant are a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve(pub Vec<(Duration, f64)>);

impl Executor {
    /// Its name in options.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Executor::SharedIterations { .. } => "shared-iterations",
            Executor::PerVuIterations { .. } => "per-vu-iterations",
            Executor::ConstantVus { .. } => "constant-vus",
            Executor::RampingVus { .. } => "ramping-vus",
            Executor::ConstantArrivalRate { .. } => "constant-arrival-rate",
            Executor::RampingArrivalRate { .. } => "ramping-arrival-rate",
        }
    }

    /// The longest time in which it starts iterations.
    #[must_use]
    pub fn window(&self) -> Duration {
        match self {
            Executor::SharedIterations { max_duration, .. } | Executor::PerVuIterations { max_duration, .. } => {
                *max_duration
            }
            Executor::ConstantVus { duration, .. } | Executor::ConstantArrivalRate { duration, .. } => *duration,
            Executor::RampingVus { start_vus, stages, .. } => length(with_users(*start_vus, stages)),
            Executor::RampingArrivalRate { stages, .. } => length(stages),
        }
    }

    /// The most users that it has.
    #[must_use]
    pub fn most_vus(&self) -> u64 {
        match self {
            Executor::SharedIterations { vus, .. }
            | Executor::PerVuIterations { vus, .. }
            | Executor::ConstantVus { vus, .. } => *vus,
            Executor::RampingVus { start_vus, stages, .. } => highest(*start_vus, stages),
            Executor::ConstantArrivalRate { users, .. } | Executor::RampingArrivalRate { users, .. } => users.most,
        }
    }

    /// True if iterations arrive at a rate.
    #[must_use]
    pub fn has_arrivals(&self) -> bool {
        matches!(self, Executor::ConstantArrivalRate { .. } | Executor::RampingArrivalRate { .. })
    }

    /// The time after its window in which iterations may finish. Where a ramp has taken all users away, the last ones
    /// have what a ramp leaves to users, at most until the scenario ends: after its stages without users, and its
    /// graceful stop.
    fn drain(&self, graceful_stop: Duration) -> Duration {
        let Executor::RampingVus { start_vus, stages, graceful_ramp_down } = self else { return graceful_stop };
        let ramps = with_users(*start_vus, stages);
        if ramps.last().map_or(*start_vus, |last| last.target) > 0 {
            return graceful_stop;
        }
        (length(&stages[ramps.len()..]) + graceful_stop).min(*graceful_ramp_down)
    }

    fn source(&self) -> Source {
        let closed = |vus: u64, quota| Source::Closed {
            users: Curve(vec![(Duration::ZERO, vus as f64)]),
            graceful_ramp_down: Duration::ZERO,
            quota,
        };
        match self {
            Executor::SharedIterations { vus, iterations, .. } => closed(*vus, Quota::Together(*iterations)),
            Executor::PerVuIterations { vus, iterations, .. } => closed(*vus, Quota::Each(*iterations)),
            Executor::ConstantVus { vus, .. } => closed(*vus, Quota::Unlimited),
            Executor::RampingVus { start_vus, stages, graceful_ramp_down } => Source::Closed {
                users: Curve::whole_users(*start_vus, stages),
                graceful_ramp_down: *graceful_ramp_down,
                quota: Quota::Unlimited,
            },
            Executor::ConstantArrivalRate { rate, time_unit, users, .. } => {
                Source::Open { rate: Curve::new(*rate as f64, &[], time_unit.as_secs_f64()), users: *users }
            }
            Executor::RampingArrivalRate { start_rate, time_unit, stages, users } => {
                Source::Open { rate: Curve::new(*start_rate as f64, stages, time_unit.as_secs_f64()), users: *users }
            }
        }
    }
}

impl Curve {
    fn new(start: f64, stages: &[Stage], unit: f64) -> Curve {
        let mut points = vec![(Duration::ZERO, start / unit)];
        let mut at = Duration::ZERO;
        for stage in stages {
            at += stage.duration;
            points.push((at, stage.target as f64 / unit));
        }
        Curve(points)
    }

    /// A curve for users that start and stop one by one, each when the ramp reaches the next whole number. Rounding the
    /// curve's values gives this: it lies below the line of a ramp that goes up, and above that of one that goes down.
    fn whole_users(start: u64, stages: &[Stage]) -> Curve {
        let mut points = vec![(Duration::ZERO, start as f64)];
        let (mut at, mut from) = (Duration::ZERO, start as f64);
        for stage in stages {
            let to = stage.target as f64;
            let lag = if to > from { -ALMOST_HALF } else { ALMOST_HALF };
            if to != from && !stage.duration.is_zero() {
                points.extend([(at, from + lag), (at + stage.duration, to + lag)]);
            }
            at += stage.duration;
            points.push((at, to));
            from = to;
        }
        Curve(points)
    }

    /// The number at an instant; at a step, the number after it.
    #[must_use]
    pub fn at(&self, instant: Duration) -> f64 {
        let behind = self.0.partition_point(|(at, _)| *at <= instant);
        let Some((from, low)) = behind.checked_sub(1).map(|before| self.0[before]) else { return 0.0 };
        let Some((to, high)) = self.0.get(behind) else { return low };
        low + (high - low) * ((instant - from).as_secs_f64() / (*to - from).as_secs_f64())
    }
}

impl Scenario {
    /// The latest end of its last iteration.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.start_time + self.executor.window() + self.executor.drain(self.graceful_stop)
    }

    /// Its load.
    #[must_use]
    pub fn offer(&self) -> Offer {
        let (window, source) = (self.executor.window(), self.executor.source());
        Offer { begin: self.start_time, window, drain: self.executor.drain(self.graceful_stop), source }
    }
}

/// The latest end of several scenarios.
#[must_use]
pub fn longest(scenarios: &[Scenario]) -> Duration {
    scenarios.iter().map(Scenario::end).max().unwrap_or_default()
}

/// The most users of a share that several scenarios need at once.
#[must_use]
pub fn most_vus(scenarios: &[Scenario], share: Share) -> u64 {
    // Needs only grow where a scenario begins.
    let at = |instant: Duration| {
        let there = scenarios.iter().filter(|scenario| scenario.start_time <= instant && instant < scenario.end());
        there.map(|scenario| share.of_first(scenario.executor.most_vus())).sum()
    };
    scenarios.iter().map(|scenario| at(scenario.start_time)).max().unwrap_or_default()
}

/// Slightly less than half, so that rounding keeps a whole number at the end of a ramp.
const ALMOST_HALF: f64 = 0.499_999;

/// The stages up to the last one with users: a scenario ends when no more users follow.
fn with_users(start: u64, stages: &[Stage]) -> &[Stage] {
    let before = |index: usize| index.checked_sub(1).map_or(start, |before| stages[before].target);
    let is_empty = |index: usize| (before(index), stages[index].target) == (0, 0);
    let empty = (0..stages.len()).rev().take_while(|index| is_empty(*index)).count();
    &stages[..stages.len() - empty]
}

fn length(stages: &[Stage]) -> Duration {
    stages.iter().map(|stage| stage.duration).sum()
}

fn highest(start: u64, stages: &[Stage]) -> u64 {
    stages.iter().map(|stage| stage.target).fold(start, u64::max)
}

impl fmt::Display for Scenario {
    /// The line of k6 at the start of a run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = |rate: u64, unit: Duration| format!("{:.2} iterations/s", rate as f64 / unit.as_secs_f64());
        let over = |stages: &[Stage]| format!("{} over {} stages", duration::format(length(stages)), stages.len());
        let named = |name: &str, value: Duration| format!("{name}: {}", duration::format(value));
        let reserve = |users: &Reserve| match users {
            Reserve { pre_allocated, most } if pre_allocated == most => format!("maxVUs: {most}"),
            Reserve { pre_allocated, most } => format!("maxVUs: {pre_allocated}-{most}"),
        };
        let (what, mut details) = match &self.executor {
            Executor::SharedIterations { vus, iterations, max_duration } => {
                (format!("{iterations} iterations shared among {vus} VUs"), vec![named("maxDuration", *max_duration)])
            }
            Executor::PerVuIterations { vus, iterations, max_duration } => {
                (format!("{iterations} iterations for each of {vus} VUs"), vec![named("maxDuration", *max_duration)])
            }
            Executor::ConstantVus { vus, duration } => {
                (format!("{vus} looping VUs for {}", duration::format(*duration)), Vec::new())
            }
            Executor::RampingVus { stages, graceful_ramp_down, .. } => (
                format!("Up to {} looping VUs for {}", self.executor.most_vus(), over(stages)),
                vec![named("gracefulRampDown", *graceful_ramp_down)],
            ),
            Executor::ConstantArrivalRate { rate, time_unit, duration, users } => {
                (format!("{} for {}", per_second(*rate, *time_unit), duration::format(*duration)), vec![reserve(users)])
            }
            Executor::RampingArrivalRate { start_rate, time_unit, stages, users } => (
                format!("Up to {} for {}", per_second(highest(*start_rate, stages), *time_unit), over(stages)),
                vec![reserve(users)],
            ),
        };
        if self.exec != "default" {
            details.push(format!("exec: {}", self.exec));
        }
        for (name, value) in [("startTime", self.start_time), ("gracefulStop", self.graceful_stop)] {
            if value > Duration::ZERO {
                details.push(named(name, value));
            }
        }
        write!(f, "{}: {what}", self.name)?;
        if details.is_empty() { Ok(()) } else { write!(f, " ({})", details.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::load::WHOLE;

    #[test]
    fn scenarios_that_follow_one_another_share_their_users() {
        let scenario = |start: u64, vus: u64| Scenario {
            name: "a".to_owned(),
            executor: Executor::ConstantVus { vus, duration: Duration::from_secs(10) },
            start_time: Duration::from_secs(start),
            graceful_stop: Duration::from_secs(5),
            exec: "default".to_owned(),
            env: Vec::new(),
            tags: Vec::new(),
        };
        let three = [scenario(0, 3), scenario(14, 4), scenario(29, 6)];
        assert_eq!((most_vus(&three, WHOLE), longest(&three)), (7, Duration::from_secs(44)));
        assert_eq!([0, 1].map(|index| most_vus(&three, Share { index, of: 2 })), [4, 3]);
        assert_eq!((most_vus(&[], WHOLE), longest(&[])), (0, Duration::ZERO));
    }
}
