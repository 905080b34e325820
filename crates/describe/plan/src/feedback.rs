//! The control loop of a load whose users come and go: how many there are in each second, from the alerts of the second
//! before. Its rules are those of a published load-test tool for chat servers; see [`FeedbackRules`].
//!
//! Its answer, the mean of the last users, lies where alerts come and go, and not at the largest load that meets the limits:
//! alerts look back over a minute and users change every two seconds, so that it overshoots in both directions. Reports say
//! how far.

use plimsoll_model::feedback::{AlertTime, FeedbackEnd, FeedbackRecord, FeedbackRules, UsersInWindow};
use plimsoll_model::objective::Condition;
use plimsoll_statistics::{line_slope, mean};
use std::time::Duration;

/// The decision of the loop after a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The number of users from now on.
    Users(u32),
    /// The end of the load.
    End,
}

/// A control loop under way.
#[derive(Clone, Debug)]
pub struct ControlLoop {
    rules: FeedbackRules,
    users: u32,
    /// Users in each second from the first alert on.
    since_alert: Vec<u32>,
    first_alert: Option<u32>,
    last_alert: Option<u32>,
    last_change: Option<u32>,
    alerts: Vec<AlertTime>,
    reached: u32,
    /// Seconds, up to now, with as many users as the rules allow and no alert.
    at_most: usize,
    ended: Option<FeedbackEnd>,
}

impl ControlLoop {
    /// A loop that begins with so many users.
    #[must_use]
    pub fn new(rules: FeedbackRules, users: u32) -> ControlLoop {
        let users = users.min(rules.most);
        ControlLoop {
            rules,
            users,
            since_alert: Vec::new(),
            first_alert: None,
            last_alert: None,
            last_change: None,
            alerts: Vec::new(),
            reached: 0,
            at_most: 0,
            ended: None,
        }
    }

    /// The users that are meant to be at work.
    #[must_use]
    pub fn users(&self) -> u32 {
        self.users
    }

    /// Decides after a second of the measure phase, at whose end these limits were exceeded. Seconds after its end, in which
    /// users finish what they do, change nothing.
    pub fn second(&mut self, second: u32, exceeded: Vec<Condition>) -> Control {
        if self.ended.is_some() {
            return Control::End;
        }
        self.reached = self.reached.max(self.users);
        let fires = !exceeded.is_empty();
        if fires {
            self.note(exceeded);
            self.first_alert.get_or_insert(second);
            self.last_alert = Some(second);
        }
        if self.first_alert.is_some() {
            self.since_alert.push(self.users);
        }
        self.at_most = if !fires && self.users == self.rules.most { self.at_most + 1 } else { 0 };
        self.ended = self.end(second);
        if self.ended.is_some() {
            return Control::End;
        }
        let rest = |since: Option<u32>| {
            since.is_some_and(|since| Duration::from_secs(u64::from(second - since)) < self.rules.rest)
        };
        let may_change = self.first_alert.is_none() || !rest(self.last_change);
        let users = match () {
            () if !may_change => self.users,
            () if fires => self.users.saturating_sub(self.rules.step),
            () if rest(self.last_alert) => self.users,
            () => self.users.saturating_add(self.rules.step).min(self.rules.most),
        };
        if users != self.users {
            (self.users, self.last_change) = (users, Some(second));
        }
        Control::Users(users)
    }

    fn note(&mut self, exceeded: Vec<Condition>) {
        let first = self.first_alert.is_none();
        for condition in exceeded {
            match self.alerts.iter_mut().find(|alert| alert.condition == condition) {
                Some(alert) => alert.seconds += 1,
                None => self.alerts.push(AlertTime { condition, seconds: 1, first }),
            }
        }
    }

    /// The reason to end now, if there is one: the number of users is flat over a window in which alerts came and went, or the
    /// most users were there for as long without one, and nothing would change any more.
    fn end(&self, second: u32) -> Option<FeedbackEnd> {
        let needed = self.rules.window.as_secs() as usize;
        let alerted = self.last_alert.is_some_and(|last| ((second - last) as usize) < needed);
        let is_flat = || self.window().is_some_and(|window| window.slope.abs() < self.rules.flat);
        if self.since_alert.len() > needed && alerted && is_flat() {
            return Some(FeedbackEnd::Flat);
        }
        (self.at_most > needed).then_some(FeedbackEnd::NoAlert)
    }

    /// The users in the window up to now.
    fn window(&self) -> Option<UsersInWindow> {
        let longest = self.rules.window.as_secs() as usize;
        let users = &self.since_alert[self.since_alert.len().saturating_sub(longest)..];
        let numbers: Vec<f64> = users.iter().map(|users| f64::from(*users)).collect();
        let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(numbers.iter().copied()).collect();
        let changes: Vec<bool> =
            users.windows(2).filter(|pair| pair[0] != pair[1]).map(|pair| pair[1] > pair[0]).collect();
        Some(UsersInWindow {
            seconds: users.len() as u32,
            mean: mean(&numbers)?,
            fewest: users.iter().copied().min()?,
            most: users.iter().copied().max()?,
            slope: line_slope(&points).unwrap_or_default(),
            reversals: changes.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32,
        })
    }

    /// The record of the loop up to now.
    #[must_use]
    pub fn record(&self) -> FeedbackRecord {
        FeedbackRecord {
            rules: self.rules,
            end: self.ended.unwrap_or(FeedbackEnd::Time),
            reached: Some(self.reached),
            first_alert: self.first_alert,
            window: self.window(),
            alerts: self.alerts.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> FeedbackRules {
        FeedbackRules {
            step: 8,
            most: 2000,
            rest: Duration::from_secs(2),
            over: Duration::from_secs(60),
            window: Duration::from_secs(1800),
            flat: 0.2,
        }
    }

    /// Runs it against a system that is too slow from `limit` users on, seen after `delay` seconds.
    fn run(rules: FeedbackRules, limit: u32, delay: usize, longest: u32) -> (ControlLoop, Vec<u32>) {
        let (mut control, mut users) = (ControlLoop::new(rules, 8), Vec::new());
        for second in 0..longest {
            users.push(control.users());
            let seen = users.len().checked_sub(delay + 1).map_or(0, |place| users[place]);
            let exceeded = if seen >= limit { vec![Condition::Errors] } else { Vec::new() };
            if control.second(second, exceeded) == Control::End {
                break;
            }
        }
        (control, users)
    }

    #[test]
    fn it_adds_users_every_second_until_an_alert_and_then_waits_between_changes() {
        let (control, users) = run(rules(), 40, 0, 12);
        assert_eq!(users, [8, 16, 24, 32, 40, 40, 32, 32, 40, 40, 32, 32]);
        let record = control.record();
        assert_eq!((record.first_alert, record.end), (Some(4), FeedbackEnd::Time));
        assert_eq!(record.alerts, [AlertTime { condition: Condition::Errors, seconds: 4, first: true }]);
    }

    #[test]
    fn it_ends_when_the_users_have_been_flat_for_the_window() {
        let (control, users) = run(rules(), 40, 0, 10_000);
        let record = control.record();
        assert_eq!((record.end, users.len()), (FeedbackEnd::Flat, 4 + 1801));
        let window = record.window.expect("there was an alert");
        assert_eq!((window.seconds, window.fewest, window.most, record.reached), (1800, 32, 40, Some(40)));
        assert!((window.mean - 36.0).abs() < 1e-9 && window.slope.abs() < 1e-3, "{window:?}");
        assert_eq!(window.reversals, 899, "one every two seconds");
        let mut over = control;
        assert_eq!(over.second(9_000, vec![Condition::Errors]), Control::End);
        assert_eq!(over.record(), record, "users that finish what they do are no part of it");
    }

    #[test]
    fn what_looks_back_over_a_minute_makes_it_swing() {
        let window = |delay| run(rules(), 400, delay, 10_000).0.record().window.expect("there was an alert");
        let (at_once, late) = (window(0), window(60));
        assert_eq!((at_once.fewest, at_once.most), (392, 400));
        assert!(late.most - late.fewest > 400, "{late:?}");
    }

    #[test]
    fn without_an_alert_there_is_no_answer() {
        let few = FeedbackRules { most: 50, ..rules() };
        let (control, users) = run(few, 400, 0, 100);
        assert_eq!((users[5], users[6], users[99]), (48, 50, 50));
        let record = control.record();
        assert_eq!((record.window, record.first_alert, record.end), (None, None, FeedbackEnd::Time));
        assert_eq!(run(few, 400, 0, 3).0.record().reached, Some(24), "of the 50 that may be");
        // Once the most users were there for the window, nothing more can come of it.
        let (control, users) = run(few, 400, 0, 10_000);
        let record = control.record();
        assert_eq!((users.len(), record.end, record.reached), (6 + 1801, FeedbackEnd::NoAlert, Some(50)));
    }

    #[test]
    fn an_alert_long_ago_makes_the_most_users_no_answer() {
        let (mut control, mut second) = (ControlLoop::new(FeedbackRules { most: 50, ..rules() }, 8), 0);
        while control.second(second, if second == 3 { vec![Condition::Errors] } else { Vec::new() }) != Control::End {
            second += 1;
        }
        let record = control.record();
        assert_eq!((record.first_alert, record.end, record.reached), (Some(3), FeedbackEnd::NoAlert, Some(50)));
        assert!((1800..1830).contains(&second), "{second}");
    }

    #[test]
    fn a_number_that_still_changes_does_not_end_it() {
        let short = FeedbackRules { window: Duration::from_secs(30), flat: 0.01, ..rules() };
        let (mut control, mut second) = (ControlLoop::new(short, 800), 0);
        // Alerts that never end take all users away, which is not flat before none is left.
        while control.second(second, vec![Condition::Errors]) != Control::End {
            second += 1;
        }
        assert_eq!(control.users(), 0);
        assert!((198 + 25..=198 + 31).contains(&second), "800 users take 200 s: {second}");
    }
}
