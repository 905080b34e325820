//! The objective of a study: what holds under a load that the systems carry, and what a load showed of it.

use crate::measure::Measure;
use serde::{Deserialize, Serialize};

/// The objective: limits that must hold under a load, so that it *passes*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// The limits of durations; there is at least one.
    pub limits: Vec<Limit>,
    /// The largest share of exchanges and iterations that may fail.
    pub errors: f64,
    /// The least share of the arrivals of open load that must be finished in the same time.
    pub achieved: f64,
}

/// A limit of a duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The measure: a statistic of durations.
    pub measure: Measure,
    /// The largest value, in seconds.
    pub at_most: f64,
}

/// The judgement of a load by the objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The result.
    pub passed: Passed,
    /// Each condition with what was found, in the order of the study: limits, errors, then those of open load.
    pub readings: Vec<Reading>,
    /// The reasons why it did not pass, in words; empty where it did.
    pub reasons: Vec<String>,
    /// The values that it had, as a share of those from which each condition can be shown to hold: the least of all
    /// conditions.
    pub share_of_needed: f64,
    /// The share of requests that missed a condition, over the share that may, of the condition for which that is largest:
    /// 1 at the capacity. None where a condition was broken that has no such share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strain: Option<f64>,
    /// The values that it had, as a share of those with which what misses can be weighed: the least of all percentiles. None
    /// where no percentile is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_to_weigh: Option<f64>,
}

/// The result of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Passed {
    /// Every condition held.
    Yes,
    /// A condition was broken.
    No,
    /// No condition was broken, but there were too few requests to show that they hold.
    TooFew,
}

/// A condition of the objective, with the value that a load had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The condition.
    pub condition: Condition,
    /// The value, in seconds or as a share; none where nothing was recorded.
    pub value: Option<f64>,
    /// The bound that the value must not exceed; of [`Condition::Achieved`], that it must reach.
    pub bound: f64,
    /// True if it held.
    pub held: bool,
}

/// A condition of the objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// A limit of a duration.
    Duration(Measure),
    /// The share of errors.
    Errors,
    /// The share of arrivals that were finished.
    Achieved,
    /// Unfinished work did not grow. The value is its growth, as a share of the arrivals.
    Backlog,
    /// The systems stayed alive and answered.
    Alive,
}

impl Reading {
    /// How far it is from its bound: above 1 where it is broken, infinite where nothing was recorded.
    #[must_use]
    pub fn strain(&self) -> f64 {
        match (self.value, &self.condition) {
            (None, _) => f64::INFINITY,
            (Some(value), Condition::Achieved) if value > 0.0 => self.bound / value,
            (Some(_), Condition::Achieved) => f64::INFINITY,
            (Some(value), _) if self.bound > 0.0 => value / self.bound,
            (Some(value), _) if value > 0.0 => f64::INFINITY,
            (Some(_), _) => 0.0,
        }
    }
}

impl Judged {
    /// True if this condition was broken.
    #[must_use]
    pub fn broke(&self, condition: &Condition) -> bool {
        self.readings.iter().any(|one| !one.held && one.condition == *condition)
    }

    /// The condition that limits: of those that were broken, the one that is farthest from its bound; none where all held.
    #[must_use]
    pub fn limiting(&self) -> Option<&Reading> {
        let broken = self.readings.iter().filter(|reading| !reading.held);
        broken.max_by(|one, other| one.strain().total_cmp(&other.strain()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(condition: Condition, value: Option<f64>, bound: f64, held: bool) -> Reading {
        Reading { condition, value, bound, held }
    }

    #[test]
    fn the_condition_that_is_farthest_from_its_bound_limits() {
        let p95 = Condition::Duration("request_duration.p95".parse().expect("a measure"));
        let readings = vec![
            reading(p95.clone(), Some(0.3), 0.2, false),
            reading(Condition::Errors, Some(0.012), 0.01, false),
            reading(Condition::Achieved, Some(0.5), 0.99, true),
        ];
        let mut judged = Judged {
            passed: Passed::No,
            readings,
            reasons: Vec::new(),
            share_of_needed: 1.0,
            strain: None,
            share_to_weigh: None,
        };
        assert_eq!(judged.limiting().map(|one| &one.condition), Some(&p95));
        judged.readings.push(reading(Condition::Alive, None, 1.0, false));
        assert_eq!(judged.limiting().map(|one| &one.condition), Some(&Condition::Alive));
        judged.readings.iter_mut().for_each(|one| one.held = true);
        assert_eq!(judged.limiting(), None);
    }

    #[test]
    fn a_bound_of_zero_is_broken_by_anything() {
        assert_eq!(reading(Condition::Errors, Some(0.0), 0.0, true).strain(), 0.0);
        assert_eq!(reading(Condition::Errors, Some(0.1), 0.0, false).strain(), f64::INFINITY);
        assert_eq!(reading(Condition::Achieved, Some(0.0), 0.99, false).strain(), f64::INFINITY);
    }
}
