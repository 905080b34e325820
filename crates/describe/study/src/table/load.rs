//! `[load]`: how many users, or arrivals, over time, and what ends a trial.

mod feedback;
mod purpose;

pub(crate) use purpose::LoadProfileName;

use feedback::FeedbackTable;

use crate::document::{Fault, Faults, Span, table};
use crate::table::stage::{StageTable, ThinkValue, profile, stages_in_words};
use crate::value::{
    Iterations, Length, Literal, PositiveTimeSpan, Problem, Rate, Scalar, Scope, Templated, Users, resolve_optional,
};
use plimsoll_model::factor::Level;
use plimsoll_model::load::{Arrivals, Joining, LoadModel, LoadProfile, Overflow, Profile, Stop, Think};
use serde_json::{Value, json};
use std::time::Duration;

table! {
    /// How load is offered in a trial: by users that wait for each reply (`users`), or by arrivals that do not (`rate`).
    struct LoadTable {
        /// The purpose of the load: "steady" offers what the study says, "capacity" searches for the largest load that meets the `[objective]`, beginning with `users` or `rate`, "stress" goes from there to `most` by equal steps, until requests fail, "once" lets each user do one iteration, "soak" offers the same for hours, to see what changes meanwhile, and "feedback" adds and takes away users by a control loop, until their number is flat where limits of the `[objective]` begin to be exceeded. Default: "steady".
        profile: Option<Literal<LoadProfileName>>,
        /// Closed load: the number of virtual users; with `stages`, the number at the start.
        users: Option<Templated<Users>>,
        /// Closed load: how many users begin in a second. The warm-up is longer by the time that all of them take to begin. Default: all begin at once.
        new_users: Option<Templated<Rate>>,
        /// The pause of a user between two iterations: a duration, `{ uniform = ["1s", "3s"] }`, `{ exponential = "2s" }` or `{ log_normal = { median = "2s", sigma = 0.5 } }`. Default: none.
        think: Option<ThinkValue>,
        /// Open load: iterations that start per second; with `stages`, the rate at the start.
        rate: Option<Templated<Rate>>,
        /// How arrivals are spaced: "constant" or "poisson". Default: "constant".
        arrivals: Option<Templated<Arrivals>>,
        /// The most users at work at once in open load; arrivals beyond it wait, and the wait counts. Default: 1000.
        max_users: Option<Templated<Users>>,
        /// How the load changes in the measure phase: ramps `{ ramp = "10s", to = 100 }` and holds `{ hold = "30s", at = 100 }`. Default: it does not.
        stages: Option<Vec<StageTable>>,
        /// The largest load of a search for the capacity, a stress test or a control loop: users, or arrivals per second. Default: 100 times the first, or less where a machine or the server can take no more; required for a stress test.
        most: Option<Templated<Rate>>,
        /// The distance of the loads of a stress test: users, or arrivals per second.
        step: Option<Templated<Rate>>,
        /// The measure phase of the load that confirms a capacity. Default: "60s".
        confirm: Option<Templated<PositiveTimeSpan>>,
        /// How long the systems may take to recover from a load of a search under which requests failed. Until a light load meets the objective again, no other is offered; where none does in this time, the search goes on with the next start. "0s" offers no light loads. Default: "60s".
        recover: Option<Templated<Length>>,
        /// The control loop of `profile = "feedback"`. Default: that of a published load-test tool for chat servers.
        feedback: Option<FeedbackTable>,
        /// Load before the measure phase. Default: "2s"; none where each user does one iteration, or a control loop changes their number.
        warmup: Option<Templated<Length>>,
        /// The measure phase, or its limit where a number of iterations ends it. Default: as long as all stages; required without any, but for a search for the capacity or a stress test, whose loads last 10 s each, where each user does one iteration, which may take an hour, and for a control loop, which may take two.
        duration: Option<Templated<PositiveTimeSpan>>,
        /// How long exchanges under way may take to finish after the measure phase. Default: "10s".
        drain: Option<Templated<Length>>,
        /// Ends the measure phase after this many iterations in all.
        iterations: Option<Templated<Iterations>>,
        /// Ends the measure phase when every user has done this many iterations.
        iterations_per_user: Option<Templated<Iterations>>,
    }
}

const WARMUP: Duration = Duration::from_secs(2);
const DRAIN: Duration = Duration::from_secs(10);
const MAX_USERS: u32 = 1000;

/// The measure phase of each load of a search.
const IN_SEARCH: Duration = Duration::from_secs(10);

/// How long it may take until each user has done its one iteration.
const ONCE_AT_MOST: Duration = Duration::from_secs(3600);

/// With fewer new users in a second a load of a few would take hours to begin.
const LEAST_NEW_USERS: f64 = 0.01;

impl LoadTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<LoadProfile> {
        let model = self.model(scope, faults);
        let warmup = resolve_optional(self.warmup.as_ref(), |warmup| warmup.resolve(scope, faults));
        let drain = resolve_optional(self.drain.as_ref(), |drain| drain.resolve(scope, faults));
        let per_second = self.new_users_per_second(scope, faults);
        let limit = self.limit(scope, faults);
        let count = self.count(scope, faults);
        let stop = match count?.stop(limit?) {
            Stop::After(limit) if self.is_soak() => {
                self.check_soak(limit, faults);
                Stop::Soak(limit)
            }
            stop => stop,
        };
        let mut model = model?;
        let stop = match (stop, &model) {
            (Stop::After(limit), LoadModel::Closed { users, .. }) if self.is_feedback() => {
                Stop::Feedback { rules: self.rules(users.start, limit, scope, faults)?, limit }
            }
            (stop, _) => stop,
        };
        self.check_stages_fit(&model, stop, faults)?;
        let default = if self.is_once() || self.is_feedback() { Duration::ZERO } else { WARMUP };
        let mut warmup = warmup?.map_or(default, |warmup| warmup.0);
        if let LoadModel::Closed { users, .. } = &mut model
            && let Some(per_second) = per_second?
        {
            // Where each user does one iteration, all of it is measured.
            if !self.is_once() {
                warmup += Duration::from_secs_f64(users.start / per_second);
            }
            let joining = Joining { from: 0.0 - warmup.as_secs_f64(), per_second };
            self.check_joining(users, joining, faults);
            users.joining = Some(joining);
        }
        Some(LoadProfile { model, warmup, stop, drain: drain?.map_or(DRAIN, |drain| drain.0) })
    }

    /// Whether load is open.
    pub(crate) fn is_open(&self) -> bool {
        self.rate.is_some()
    }

    /// Why variants cannot take turns under this load, if they cannot.
    pub(crate) fn why_not_in_slices(&self) -> Option<&'static str> {
        if self.stages.as_ref().is_some_and(|stages| !stages.is_empty()) {
            Some("the load changes in stages")
        } else if self.ends_after_iterations() {
            Some("the load ends after a number of iterations")
        } else if self.is_soak() {
            Some("each load is to show what changes over its time")
        } else if self.is_feedback() {
            Some("a control loop changes the number of users")
        } else {
            None
        }
    }

    /// True if a number of iterations ends a trial.
    pub(crate) fn ends_after_iterations(&self) -> bool {
        self.is_once() || self.iterations.is_some() || self.iterations_per_user.is_some()
    }

    /// Where the study says what the load is for.
    pub(crate) fn profile_span(&self) -> Option<&Span> {
        self.profile.as_ref().map(|profile| &profile.span)
    }

    /// Where the study says how many users there are.
    pub(crate) fn users_span(&self) -> &Span {
        self.users.as_ref().or(self.max_users.as_ref()).map_or(&self.place, |users| &users.span)
    }

    /// Where the study says how many users there are at most.
    pub(crate) fn most_users_span(&self) -> &Span {
        self.most.as_ref().map_or_else(|| self.users_span(), |most| &most.span)
    }

    /// Where the study says how many iterations start in a second.
    pub(crate) fn rate_span(&self) -> &Span {
        self.rate.as_ref().map_or(&self.place, |rate| &rate.span)
    }

    /// Where the length of the measure phase is said.
    pub(crate) fn length_span(&self) -> Span {
        self.duration.as_ref().map_or_else(|| self.place.clone(), |duration| duration.span.clone())
    }

    /// The mean think time in seconds, in closed load, if it is the same in every trial.
    pub(crate) fn mean_think(&self) -> Option<f64> {
        if self.is_open() { None } else { self.think.as_ref().map_or(Some(0.0), ThinkValue::mean) }
    }

    /// The load, as reports say it. With `waits`, the workload says how long users pause.
    pub(crate) fn in_words(&self, waits: bool) -> String {
        let users = self.users.as_ref().map(Templated::as_written);
        let start = users.or(self.rate.as_ref().map(Templated::as_written)).unwrap_or_default();
        let stages = stages_in_words(start, self.stages.as_deref().unwrap_or_default());
        let step = self.step.as_ref().map(Templated::as_written).unwrap_or_default();
        let most = self.most.as_ref().map(Templated::as_written).unwrap_or_default();
        let from = match self.search_span() {
            Some(_) if self.is_stress() => format!(" at first, then {step} more in each load, up to {most}"),
            Some(_) => " at first".to_owned(),
            None if self.is_feedback() => " at first".to_owned(),
            None => String::new(),
        };
        let mut words = match &self.rate {
            Some(rate) => {
                let arrivals = self.arrivals.as_ref().map_or("constant", Templated::as_written);
                let most =
                    self.max_users.as_ref().map_or_else(|| MAX_USERS.to_string(), |most| most.as_written().to_owned());
                let rate = rate.as_written();
                format!(
                    "open load, {rate} arrivals per second{from} ({arrivals}){stages}, at most {most} users at once"
                )
            }
            None => {
                let users = if start == "1" { "1 user".to_owned() } else { format!("{start} users") };
                let none = if waits { "pauses as the workload has them" } else { "no think time" };
                let think = self.think.as_ref().map(ThinkValue::in_words);
                let think = think.map_or_else(|| none.to_owned(), |think| format!("think time {think}"));
                let joining = self.new_users.as_ref().map(|rate| format!(" ({} new ones a second)", rate.as_written()));
                format!("closed loop, {users}{}{from}{stages}, {think}", joining.unwrap_or_default())
            }
        };
        if self.search_span().is_some() && !self.is_stress() {
            words += "; then what the search for the capacity asks for";
        }
        if self.is_soak() {
            words += ", to see what changes over its time";
        }
        if self.is_feedback() {
            words += "; then what the control loop asks for";
        }
        if self.is_once() {
            words += ", until each user has done its one iteration";
        }
        if let Some(iterations) = &self.iterations {
            words += &format!(", until {} iterations are done", iterations.as_written());
        }
        if let Some(iterations) = &self.iterations_per_user {
            words += &format!(", until each user has done {} iterations", iterations.as_written());
        }
        words
    }

    fn model(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<LoadModel> {
        match (&self.users, &self.rate) {
            (Some(users), None) => self.closed(users, scope, faults),
            (None, Some(rate)) => self.open(rate, scope, faults),
            (Some(_), Some(rate)) => {
                let fault = Fault::error(&rate.span, "`load` has both `users` and `rate`").label("and a rate");
                let help = "keep `users` for users that wait for each reply, or `rate` for arrivals that do not";
                faults.add(fault.help(help));
                None
            }
            (None, None) => {
                let fault = Fault::error(&self.place, "`load` has neither `users` nor `rate`");
                let help = "add `users` for users that wait for each reply, or `rate` for arrivals that do not";
                faults.add(fault.help(help));
                None
            }
        }
    }

    fn closed(&self, users: &Templated<Users>, scope: &Scope<'_>, faults: &mut Faults) -> Option<LoadModel> {
        refuse(self.arrivals.as_ref().map(|templated| &templated.span), "arrivals", "open load (`rate`)", faults);
        refuse(self.max_users.as_ref().map(|templated| &templated.span), "max_users", "open load (`rate`)", faults);
        let start = users.resolve(scope, faults).map(|users| users.0 as f64);
        let think = resolve_optional(self.think.as_ref(), |think| think.resolve(scope, faults));
        let users = self.profile(start?, scope, faults);
        Some(LoadModel::Closed { users: users?, think: think?.unwrap_or(Think::Constant(Duration::ZERO)) })
    }

    fn open(&self, rate: &Templated<Rate>, scope: &Scope<'_>, faults: &mut Faults) -> Option<LoadModel> {
        refuse(self.think.as_ref().map(|_| &self.place), "think", "closed load (`users`)", faults);
        let per_user = self.iterations_per_user.as_ref().map(|templated| &templated.span);
        refuse(per_user, "iterations_per_user", "closed load (`users`)", faults);
        refuse(self.new_users.as_ref().map(|rate| &rate.span), "new_users", "closed load (`users`)", faults);
        let start = rate.resolve(scope, faults).map(|rate| rate.0);
        let arrivals = resolve_optional(self.arrivals.as_ref(), |arrivals| arrivals.resolve(scope, faults));
        let max_users = resolve_optional(self.max_users.as_ref(), |most| most.resolve(scope, faults));
        let rate = self.profile(start?, scope, faults);
        Some(LoadModel::Open {
            rate: rate?,
            arrivals: arrivals?.unwrap_or(Arrivals::Constant),
            max_users: max_users?.map_or(MAX_USERS, Users::u32),
            overflow: Overflow::Wait,
        })
    }

    /// How many users begin in a second; none inside where all begin at once.
    fn new_users_per_second(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Option<f64>> {
        let rate = resolve_optional(self.new_users.as_ref(), |rate| rate.resolve(scope, faults))?;
        let Some((rate, given)) = rate.zip(self.new_users.as_ref()) else { return Some(None) };
        if rate.0 < LEAST_NEW_USERS {
            let fault =
                Fault::error(&given.span, format!("`new_users` is {}, below {LEAST_NEW_USERS} a second", rate.0));
            faults.add(fault.help("write how many users begin in a second, as in `new_users = 20`"));
            return None;
        }
        Some(Some(rate.0))
    }

    /// Refuses `new_users` by which fewer users have begun than the stages ask for.
    fn check_joining(&self, users: &Profile, joining: Joining, faults: &mut Faults) {
        let Some(given) = &self.new_users else { return };
        let mut end = 0.0;
        for stage in &users.stages {
            end += stage.length.as_secs_f64();
            let there = joining.by(end);
            if there < stage.target {
                let message = format!(
                    "with {} new users a second, {there:.0} have begun by the end of a stage that asks for {}",
                    joining.per_second, stage.target
                );
                let fault = Fault::error(&given.span, message);
                faults.add(
                    fault.help("let more begin in a second, or leave `new_users` out: stages say how many there are"),
                );
                return;
            }
        }
    }

    fn profile(&self, start: f64, scope: &Scope<'_>, faults: &mut Faults) -> Option<Profile> {
        profile(start, self.stages.as_deref().unwrap_or_default(), scope, faults)
    }

    /// How long the measure phase may take.
    fn limit(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Duration> {
        match (&self.duration, self.stages.as_deref()) {
            (Some(duration), _) => duration.resolve(scope, faults).map(|duration| duration.0),
            (None, Some(stages @ [_, ..])) => profile(0.0, stages, scope, faults).map(|profile| profile.length()),
            (None, _) if self.search_span().is_some() => Some(IN_SEARCH),
            (None, _) if self.is_once() => Some(ONCE_AT_MOST),
            (None, _) if self.is_feedback() => Some(feedback::AT_MOST),
            (None, _) => {
                let fault = Fault::error(&self.place, "`duration` is missing in `load`");
                faults.add(fault.help("say how long to measure, as in `duration = \"20s\"`"));
                None
            }
        }
    }

    fn count(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Count> {
        match (&self.iterations, &self.iterations_per_user) {
            (None, None) if self.is_once() => Some(Count::PerUser(1)),
            (None, None) => Some(Count::None),
            (Some(all), None) => all.resolve(scope, faults).map(|count| Count::InAll(count.u64())),
            (None, Some(each)) => each.resolve(scope, faults).map(|count| Count::PerUser(count.u64())),
            (Some(_), Some(each)) => {
                let fault = Fault::error(&each.span, "`load` has both `iterations` and `iterations_per_user`");
                faults.add(fault.help("keep the one that is to end the measure phase"));
                None
            }
        }
    }

    fn check_stages_fit(&self, model: &LoadModel, stop: Stop, faults: &mut Faults) -> Option<()> {
        let (LoadModel::Closed { users: profile, .. } | LoadModel::Open { rate: profile, .. }) = model;
        let fits = profile.length() <= stop.limit();
        if !fits {
            let lengths = format!("the stages take {:?}, the measure phase {:?}", profile.length(), stop.limit());
            let fault = Fault::error(&self.length_span(), "the stages take longer than `load.duration`");
            faults.add(fault.label(lengths).help("leave `duration` out to measure as long as the stages take"));
        }
        fits.then_some(())
    }
}

/// What ends the measure phase besides time.
enum Count {
    None,
    InAll(u64),
    PerUser(u64),
}

impl Count {
    fn stop(self, limit: Duration) -> Stop {
        match self {
            Count::None => Stop::After(limit),
            Count::InAll(count) => Stop::Iterations { count, limit },
            Count::PerUser(count) => Stop::IterationsPerUser { count, limit },
        }
    }
}

fn refuse(given: Option<&Span>, key: &str, place: &str, faults: &mut Faults) {
    if let Some(span) = given {
        let fault = Fault::error(span, format!("`load.{key}` has a meaning only in {place}"));
        faults.add(fault.help("leave it out"));
    }
}

impl Scalar for Arrivals {
    const EXPECTED: &'static str = "\"constant\" or \"poisson\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text == "constant" => Ok(Arrivals::Constant),
            Level::Text(text) if text == "poisson" => Ok(Arrivals::Poisson),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["constant", "poisson"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::value::{Bindings, NO_LOGINS};
    use plimsoll_model::factor::Assignment;
    use std::path::Path;

    pub(super) fn resolve(text: &str, faults: &mut Faults) -> Option<LoadProfile> {
        let bindings = Bindings::default();
        let assignment = Assignment(vec![("users".to_owned(), Level::Integer(50))]);
        read_table::<LoadTable>(text).resolve(&scope(&assignment, &bindings), faults)
    }

    pub(super) fn scope<'a>(assignment: &'a Assignment, bindings: &'a Bindings) -> Scope<'a> {
        Scope {
            assignment,
            bindings,
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            is_trusted: false,
            system: None,
            dir: Path::new("/"),
            processors: &[0],
            of_generator: None,
        }
    }

    pub(super) fn resolved(text: &str) -> LoadProfile {
        resolve(text, &mut no_faults()).expect(text)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn closed_load_has_users_that_think() {
        let load = resolved("users = '{users}'\nduration = '20s'");
        let constant = |think| LoadModel::Closed { users: Profile::constant(50.0), think };
        assert_eq!(load.model, constant(Think::Constant(Duration::ZERO)));
        assert_eq!((load.warmup, load.stop, load.drain), (seconds(2), Stop::After(seconds(20)), seconds(10)));
        for (think, expected) in [
            ("'1s'", Think::Constant(seconds(1))),
            ("{ uniform = ['1s', '3s'] }", Think::Uniform { from: seconds(1), to: seconds(3) }),
            ("{ exponential = '2s' }", Think::Exponential(seconds(2))),
            ("{ log_normal = { median = '2s', sigma = 0.5 } }", Think::LogNormal { median: seconds(2), sigma: 0.5 }),
        ] {
            let load = resolved(&format!("users = 50\nduration = '20s'\nthink = {think}"));
            assert_eq!(load.model, constant(expected));
        }
    }

    #[test]
    fn open_load_has_arrivals() {
        let load = resolved("rate = 500\narrivals = 'poisson'\nmax_users = 20\nduration = '1m'\niterations = 9");
        let (rate, arrivals, overflow) = (Profile::constant(500.0), Arrivals::Poisson, Overflow::Wait);
        let model = LoadModel::Open { rate, arrivals, max_users: 20, overflow };
        assert_eq!((load.model, load.stop), (model, Stop::Iterations { count: 9, limit: seconds(60) }));
    }

    #[test]
    fn users_who_join_make_the_warm_up_longer() {
        let load = resolved("users = 50\nnew_users = 20\nwarmup = '3s'\nduration = '9s'");
        let LoadModel::Closed { users, .. } = &load.model else { panic!("users") };
        assert_eq!(load.warmup, Duration::from_millis(5500));
        assert_eq!(users.joining, Some(Joining { from: -5.5, per_second: 20.0 }));
        for (text, says) in [
            ("rate = 50\nnew_users = 20\nduration = '9s'", "`load.new_users` has a meaning only in closed load"),
            ("users = 50\nnew_users = 0.001\nduration = '9s'", "`new_users` is 0.001, below 0.01 a second"),
        ] {
            let mut faults = no_faults();
            assert_eq!(resolve(text, &mut faults).is_none(), text.contains("0.001"));
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(faults.join("\n").contains(says), "{text}: {faults:?}");
        }
    }

    #[test]
    fn stages_ramp_and_hold() {
        let load =
            resolved("users = 1\nstages = [{ ramp = '10s', to = 100 }, { hold = '30s' }, { hold = '5s', at = 0 }]");
        let LoadModel::Closed { users, .. } = load.model else { panic!("closed load") };
        assert_eq!([users.at(5.0), users.at(20.0), users.at(41.0)], [50.5, 100.0, 0.0]);
        assert_eq!(load.stop, Stop::After(seconds(45)), "the stages say how long to measure");
    }

    #[test]
    fn load_is_said_in_words() {
        for (text, words) in [
            ("users = '{users}'", "closed loop, {users} users, no think time"),
            (
                "users = 3\nthink = '1s'\niterations_per_user = 5",
                "closed loop, 3 users, think time 1s, until each user has done 5 iterations",
            ),
            ("rate = 10", "open load, 10 arrivals per second (constant), at most 1000 users at once"),
            (
                "users = 1\nstages = [{ ramp = '10s', to = 100 }, { hold = '30s' }, { hold = '5s', at = '{few}' }]",
                "closed loop, 1 user, to 100 within 10s, 100 for 30s, {few} for 5s, no think time",
            ),
            (
                "rate = 5\nstages = [{ ramp = '1s', to = 20 }]",
                "open load, 5 arrivals per second (constant), to 20 within 1s, at most 1000 users at once",
            ),
        ] {
            assert_eq!(read_table::<LoadTable>(&format!("{text}\nduration = '1s'")).in_words(false), words);
        }
    }

    #[test]
    fn many_stages_are_told_by_their_number_and_their_most() {
        let stages = |to: &str| {
            let stages: Vec<String> = (1..=9).map(|_| format!("{{ ramp = '1s', to = {to} }}")).collect();
            let text = format!("users = 2\nduration = '1s'\nstages = [{}]", stages.join(", "));
            read_table::<LoadTable>(&text).in_words(false)
        };
        assert_eq!(stages("40"), "closed loop, 2 users, then 9 stages, at most 40, no think time");
        assert_eq!(stages("'{users}'"), "closed loop, 2 users, then 9 stages, no think time");
    }

    #[test]
    fn the_mean_think_time_is_known_where_it_is_the_same_in_all_trials() {
        for (text, mean) in [
            ("users = 5", Some(0.0)),
            ("users = 5\nthink = '250ms'", Some(0.25)),
            ("users = 5\nthink = { uniform = ['1s', '3s'] }", Some(2.0)),
            ("users = 5\nthink = { exponential = '2s' }", Some(2.0)),
            ("users = 5\nthink = { log_normal = { median = '2s', sigma = 1 } }", Some(2.0 * 0.5_f64.exp())),
            ("users = 5\nthink = '{users}ms'", None),
            ("users = 5\nthink = { uniform = ['1s', '{users}s'] }", None),
            ("rate = 5", None),
        ] {
            assert_eq!(read_table::<LoadTable>(&format!("{text}\nduration = '1s'")).mean_think(), mean, "{text}");
        }
    }

    #[test]
    fn values_that_cannot_be_are_named_when_read() {
        for (text, what) in [
            ("users = 0", "at least 1"),
            ("users = 'many'", "a whole number"),
            ("rate = 0", "above 0"),
            ("duration = '0s'", "above zero"),
            ("duration = '-5s'", "negative"),
            ("duration = 20", "write \"20ms\" for milliseconds, \"20s\" for seconds"),
            ("warm_up = '1s'", "did you mean `warmup`"),
            ("stages = [{ ramp = '0s', to = 1 }]", "above zero"),
            ("arrivals = 'sometimes'", "poisson"),
        ] {
            let faults = faults_of::<LoadTable>(text);
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }

    #[test]
    fn keys_that_contradict_each_other_are_named() {
        for (text, what) in [
            ("duration = '1s'", "neither `users` nor `rate`"),
            ("users = 1\nrate = 1\nduration = '1s'", "both `users` and `rate`"),
            ("users = 1", "`duration` is missing"),
            ("users = 1\nduration = '1s'\nmax_users = 4", "only in open load"),
            ("rate = 1\nduration = '1s'\nthink = '1s'", "only in closed load"),
            ("rate = 1\nduration = '1s'\niterations_per_user = 1", "only in closed load"),
            ("users = 1\nduration = '1s'\niterations = 1\niterations_per_user = 1", "both `iterations`"),
            ("users = 1\nduration = '1s'\nstages = [{ hold = '2s' }]", "longer than"),
            ("users = 1\nstages = [{ hold = '2s', to = 4 }]", "a ramp or a hold"),
            ("users = 1\nduration = '1s'\nthink = { uniform = ['1s'] }", "two durations"),
            ("users = 1\nduration = '1s'\nthink = { uniform = ['2s', '1s'] }", "above the most"),
            ("users = 1\nduration = '1s'\nthink = { }", "one of `uniform`, `exponential` and `log_normal`"),
        ] {
            let mut faults = no_faults();
            resolve(text, &mut faults);
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }
}
