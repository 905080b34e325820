//! A control loop over a load under way: looks at the limits of the objective after each second, and says how many users
//! there are to be.

use crate::objective::Measured;
use plimsoll_model::feedback::{FeedbackRecord, FeedbackRules};
use plimsoll_model::objective::{Condition, Objective};
use plimsoll_model::record::Interval;
use plimsoll_plan::{Control, ControlLoop};
use std::collections::VecDeque;
use std::time::Duration;

/// A control loop with the seconds that its alerts look at.
pub(crate) struct Feedback {
    control: ControlLoop,
    objective: Objective,
    /// The last seconds, the oldest first.
    recent: VecDeque<Measured>,
    /// The most seconds that are kept.
    over: usize,
    /// The length of the measure phase, in seconds.
    limit: u32,
}

impl Feedback {
    /// A loop that begins with so many users, in a measure phase of at most `limit`.
    pub(crate) fn new(rules: FeedbackRules, limit: Duration, users: u32, objective: Objective) -> Feedback {
        let limit = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
        let over = usize::try_from(rules.over.as_secs()).unwrap_or(usize::MAX).max(1);
        Feedback { control: ControlLoop::new(rules, users), objective, recent: VecDeque::new(), over, limit }
    }

    /// The users that are meant to be at work.
    pub(crate) fn users(&self) -> u32 {
        self.control.users()
    }

    /// The decision after a second; none during warm-up and drain.
    pub(crate) fn second(&mut self, interval: &Interval) -> Option<Control> {
        let second = u32::try_from(interval.second).ok().filter(|second| *second < self.limit)?;
        let mut measured = Measured::default();
        measured.add(interval);
        if self.recent.len() == self.over {
            self.recent.pop_front();
        }
        self.recent.push_back(measured);
        let exceeded = if self.recent.len() < self.over { Vec::new() } else { self.exceeded() };
        Some(self.control.second(second, exceeded))
    }

    /// The limits that the last seconds exceed together. Where nothing was recorded, none is: the published loop does the same.
    fn exceeded(&self) -> Vec<Condition> {
        let mut all = Measured::default();
        self.recent.iter().for_each(|second| all.merge(second));
        let limits = self.objective.limits.iter().filter(|limit| {
            let value = limit.measure.statistic.of(&all.durations(&limit.measure.series));
            value.is_some_and(|value| value > limit.at_most)
        });
        let mut exceeded: Vec<Condition> = limits.map(|limit| Condition::Duration(limit.measure.clone())).collect();
        let [failed, of] = all.failed_of_all();
        if of > 0 && failed as f64 / of as f64 > self.objective.errors {
            exceeded.push(Condition::Errors);
        }
        exceeded
    }

    /// The record of the loop up to now.
    pub(crate) fn record(&self) -> FeedbackRecord {
        self.control.record()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::objective::Limit;
    use plimsoll_model::record::{ErrorKind, RecordedPhase, Subject, Tally};

    fn second(second: i64, ms: u64, failed: u64) -> Interval {
        let mut tally = Tally::default();
        tally.service.record_n(ms * 1_000_000, 10).expect("in range");
        tally.errors.extend((failed > 0).then_some((ErrorKind::Status, failed)));
        let tallies = [((RecordedPhase::Measure, Subject::Request("get".to_owned())), tally)].into();
        Interval { second, tallies, ..Interval::default() }
    }

    fn feedback() -> Feedback {
        let limit = Limit { measure: "request_duration.p95".parse().expect("a measure"), at_most: 0.1 };
        let objective = Objective { limits: vec![limit], errors: 0.1, achieved: 0.99 };
        let seconds = Duration::from_secs;
        let rules =
            FeedbackRules { step: 5, most: 100, rest: seconds(2), over: seconds(3), window: seconds(60), flat: 0.2 };
        Feedback::new(rules, seconds(100), 10, objective)
    }

    #[test]
    fn limits_hold_over_the_last_seconds_and_not_before_there_are_enough() {
        let mut feedback = feedback();
        assert_eq!(feedback.second(&second(-1, 500, 0)), None, "warm-up");
        assert_eq!(feedback.second(&second(100, 500, 0)), None, "drain");
        let users: Vec<Option<Control>> = [500, 500, 500, 50, 50, 50, 50, 50]
            .into_iter()
            .zip(0..)
            .map(|(ms, number)| feedback.second(&second(number, ms, 0)))
            .collect();
        let expected = [15, 20, 20, 15, 15, 15, 20, 20].map(|users| Some(Control::Users(users)));
        assert_eq!(users, expected, "the last slow second leaves after three");
        assert_eq!(feedback.record().alerts.iter().map(|alert| alert.seconds).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn failures_are_an_alert_too_and_silence_is_none() {
        let mut feedback = feedback();
        for number in 0..3 {
            feedback.second(&second(number, 50, 2));
        }
        assert_eq!(feedback.record().alerts[0].condition, Condition::Errors);
        for second in 3..6 {
            feedback.second(&Interval { second, ..Interval::default() });
        }
        assert_eq!(feedback.record().alerts[0].seconds, 1 + 2, "nothing is left of the failures after three seconds");
    }
}
