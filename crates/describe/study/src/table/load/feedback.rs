//! `[load.feedback]`: the control loop that changes the number of users while a load runs.

use super::purpose::MOST_USERS;
use super::{LoadProfileName, LoadTable, refuse};
use crate::document::{Fault, Faults, table};
use crate::value::Scope;
use crate::value::{Literal, PositiveTimeSpan, Rate, Templated, Users, resolve_optional};
use plimsoll_model::feedback::FeedbackRules;
use std::time::Duration;

table! {
    /// The control loop of `profile = "feedback"`: it adds users until a limit of the `[objective]` is exceeded, then takes users away while one is and adds them while none is, until their number is flat. The answer is its mean over that time.
    struct FeedbackTable {
        /// Users that are added or taken away at once. Default: 8.
        step: Option<Templated<Users>>,
        /// The least time between two changes from the first alert on, and between the last alert and the next users. Default: "2s".
        rest: Option<Literal<PositiveTimeSpan>>,
        /// The time over which limits are looked at, up to now. Default: "60s".
        over: Option<Literal<PositiveTimeSpan>>,
        /// The time after the first alert for which the number of users must be flat, and that with `most` users and no alert after which it ends. Default: "30m".
        window: Option<Literal<PositiveTimeSpan>>,
        /// It is flat where the line through it changes by less than so many users a second. Default: 0.2.
        flat: Option<Literal<Rate>>,
    }
}

const STEP: u32 = 8;
const REST: Duration = Duration::from_secs(2);
const OVER: Duration = Duration::from_secs(60);
const WINDOW: Duration = Duration::from_secs(1800);
const FLAT: f64 = 0.2;

/// The longest that a load may take. The published loop goes on for ever where no alert fires.
pub(super) const AT_MOST: Duration = Duration::from_secs(7200);

/// The most users, times the first.
const MOST: f64 = 100.0;

impl LoadTable {
    /// True if a control loop changes the number of users.
    pub(crate) fn is_feedback(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.value == LoadProfileName::Feedback)
    }

    /// The rules of a control loop that begins with so many users, in a load of at most `limit`.
    pub(super) fn rules(
        &self,
        first: f64,
        limit: Duration,
        scope: &Scope<'_>,
        faults: &mut Faults,
    ) -> Option<FeedbackRules> {
        let most = resolve_optional(self.most.as_ref(), |most| most.resolve(scope, faults))?;
        let most = most.map_or((first * MOST).min(MOST_USERS), |most| most.0);
        let span = self.most.as_ref().map_or(&self.place, |most| &most.span);
        if most.fract() != 0.0 || most > MOST_USERS || most <= first {
            let says = format!("`most` is {most}, which is no number of users above {first} and up to {MOST_USERS}");
            faults.add(Fault::error(span, says).help("write a whole number that the control loop may go up to"));
            return None;
        }
        let table = self.feedback.as_ref();
        let time = |of: fn(&FeedbackTable) -> &Option<Literal<PositiveTimeSpan>>, default: Duration| {
            table.and_then(|table| of(table).as_ref()).map_or(default, |given| given.value.0)
        };
        let step = resolve_optional(table.and_then(|table| table.step.as_ref()), |step| step.resolve(scope, faults))?;
        let rules = FeedbackRules {
            step: step.map_or(STEP, Users::u32),
            most: most as u32,
            rest: time(|table| &table.rest, REST),
            over: time(|table| &table.over, OVER),
            window: time(|table| &table.window, WINDOW),
            flat: table.and_then(|table| table.flat.as_ref()).map_or(FLAT, |flat| flat.value.0),
        };
        if rules.over < Duration::from_secs(1) || rules.window < rules.over {
            let says = "the control loop looks at limits over whole seconds, and at users for no less time";
            let help = "let `over` be a second or more, and `window` no shorter than `over`";
            faults.add(Fault::error(table.map_or(&self.place, |table| &table.place), says).help(help));
            return None;
        }
        if limit <= rules.over + rules.window {
            let says = format!(
                "the load ends after {limit:?}, before the control loop can: its first alert comes after {:?} at the earliest, \
                 and it ends {:?} later",
                rules.over, rules.window
            );
            let help = "let `duration` be longer, or `window` of `[load.feedback]` shorter";
            faults.add(Fault::error(&self.length_span(), says).help(help));
            return None;
        }
        Some(rules)
    }

    /// Refuses what a control loop does not have, and the table of one in a study without.
    pub(super) fn check_feedback(&self, faults: &mut Faults) {
        if !self.is_feedback() {
            let table = self.feedback.as_ref().map(|table| &table.place);
            refuse(table, "feedback", "a load by a control loop (`profile = \"feedback\"`)", faults);
            return;
        }
        let more = [
            ("rate", self.rate.as_ref().map(|rate| &rate.span)),
            ("new_users", self.new_users.as_ref().map(|rate| &rate.span)),
        ];
        let help = "leave it out: the control loop says how many users there are, from `users` on";
        self.refuse_changes(&more, "where a control loop changes the number of users", help, faults);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{resolve, resolved};
    use super::*;
    use crate::table::testing::{no_faults, read_table};
    use plimsoll_model::load::Stop;

    #[test]
    fn the_published_rules_are_the_default() {
        let load = resolved("users = 8\nprofile = 'feedback'\nmost = 2000");
        let rules = FeedbackRules { step: 8, most: 2000, rest: REST, over: OVER, window: WINDOW, flat: 0.2 };
        assert_eq!((load.warmup, load.stop), (Duration::ZERO, Stop::Feedback { rules, limit: AT_MOST }));
        assert_eq!((load.most_users(), load.is_constant()), (2000, false));
        let given =
            "users = 8\nprofile = 'feedback'\nduration = '90s'\nfeedback = { step = 3, over = '5s', window = '30s' }";
        let rules = resolved(given).stop.feedback().expect("a control loop");
        assert_eq!((rules.step, rules.most, rules.window.as_secs()), (3, 800, 30));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (text, says) in [
            ("profile = 'feedback'\nmost = 8", "`most` is 8, which is no number of users above 8"),
            ("profile = 'feedback'\nmost = 20.5", "`most` is 20.5"),
            ("profile = 'feedback'\nduration = '30m'", "before the control loop can"),
            ("profile = 'feedback'\nfeedback = { over = '100ms' }", "looks at limits over whole seconds"),
            ("profile = 'feedback'\nfeedback = { over = '2m', window = '1m' }", "at users for no less time"),
            ("profile = 'feedback'\nnew_users = 5", "`load.new_users` has no place where a control loop"),
            ("profile = 'feedback'\nstages = [{ hold = '5s', at = 3 }]", "`load.stages` has no place"),
            (
                "duration = '9s'\nfeedback = { step = 3 }",
                "`load.feedback` has a meaning only in a load by a control loop",
            ),
        ] {
            let (text, mut faults) = (format!("users = 8\n{text}"), no_faults());
            read_table::<LoadTable>(&text).check_search(&mut faults);
            resolve(&text, &mut faults);
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(faults.join("\n").contains(says), "{text}: {faults:?}");
        }
    }
}
