//! The purposes of a load: what a search for the capacity, a stress test, each user once, and a soak test have of their own.
//! A control loop is in [`feedback`](super::feedback).

use super::{LoadTable, refuse};
use crate::document::{Fault, Faults, Span};
use crate::value::{Problem, Scalar, Scope, keyword, resolve_optional};
use plimsoll_model::factor::Level;
use plimsoll_model::load::LoadModel;
use plimsoll_model::search::SearchRange;
use serde_json::{Value, json};
use std::time::Duration;

/// The measure phase of the load that confirms what a search found.
const CONFIRMATION: Duration = Duration::from_secs(60);

/// How long a load near the capacity may get where the study does not say how long loads are.
const LONGEST: Duration = Duration::from_secs(30);

/// How long systems may take to recover from a load that was too much.
const RECOVERY: Duration = Duration::from_secs(60);

/// The largest load that a search tries, times the first.
const MOST: f64 = 100.0;

/// More loads than that on each start are more than anyone waits for.
const MOST_STEPS: f64 = 1000.0;

/// More users than that need more ports than a machine has for one server.
pub(super) const MOST_USERS: f64 = 1e6;

/// A shorter soak test has too few seconds to tell whether a change goes on.
const SHORTEST_SOAK: Duration = Duration::from_secs(16);

/// The purpose of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadProfileName {
    /// It is offered as the study says.
    Steady,
    /// The largest one that meets the objective is searched for.
    Capacity,
    /// It goes up by equal steps.
    Stress,
    /// Each user does one iteration.
    Once,
    /// It is offered for long, to see what changes over its time.
    Soak,
    /// A control loop changes the number of users.
    Feedback,
}

impl Scalar for LoadProfileName {
    const EXPECTED: &'static str = "\"steady\", \"capacity\", \"stress\", \"once\", \"soak\" or \"feedback\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let names = [
            ("steady", LoadProfileName::Steady),
            ("capacity", LoadProfileName::Capacity),
            ("stress", LoadProfileName::Stress),
            ("once", LoadProfileName::Once),
            ("soak", LoadProfileName::Soak),
            ("feedback", LoadProfileName::Feedback),
        ];
        keyword(level, &names)
    }

    fn schema() -> Value {
        json!({ "enum": ["steady", "capacity", "stress", "once", "soak", "feedback"] })
    }
}

impl LoadTable {
    /// Where the study asks for a search for the capacity, or for a stress test, in which loads have levels of their own; none
    /// where it does not.
    pub(crate) fn search_span(&self) -> Option<&Span> {
        let profile = self.profile.as_ref()?;
        matches!(profile.value, LoadProfileName::Capacity | LoadProfileName::Stress).then_some(&profile.span)
    }

    /// What loads with levels of their own are for: `a search for the capacity`.
    pub(crate) fn search_in_words(&self) -> &'static str {
        if self.is_stress() { "a stress test" } else { "a search for the capacity" }
    }

    pub(super) fn is_stress(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.value == LoadProfileName::Stress)
    }

    /// True if the study names the largest load of a search.
    pub(crate) fn names_most(&self) -> bool {
        self.most.is_some()
    }

    /// True if each user does one iteration.
    pub(crate) fn is_once(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.value == LoadProfileName::Once)
    }

    /// True if the load is to show what changes over its time.
    pub(crate) fn is_soak(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.value == LoadProfileName::Soak)
    }

    /// The loads of a search or a stress test that begins with `model`.
    pub(crate) fn search(&self, model: &LoadModel, scope: &Scope<'_>, faults: &mut Faults) -> Option<SearchRange> {
        let (first, new_users) = match model {
            LoadModel::Closed { users, .. } => (users.start, users.joining.map(|joining| joining.per_second)),
            LoadModel::Open { rate, .. } => (rate.start, None),
        };
        let most = resolve_optional(self.most.as_ref(), |most| most.resolve(scope, faults));
        let confirm = resolve_optional(self.confirm.as_ref(), |confirm| confirm.resolve(scope, faults));
        let recover = resolve_optional(self.recover.as_ref(), |recover| recover.resolve(scope, faults));
        let step = resolve_optional(self.step.as_ref(), |step| step.resolve(scope, faults));
        let default = if self.is_open() { first * MOST } else { (first * MOST).min(MOST_USERS) };
        let most = most?.map_or(default, |most| most.0);
        let span = || self.most.as_ref().map_or_else(|| self.place.clone(), |most| most.span.clone());
        if most < first {
            let what = self.search_in_words();
            let fault = Fault::error(&span(), format!("{what} from {first} to {most} ends before it begins"));
            faults.add(fault.help("let `most` be larger than the first load (`users` or `rate`)"));
            return None;
        }
        if !self.is_open() && (most.fract() != 0.0 || most > MOST_USERS) {
            let fault =
                Fault::error(&span(), format!("`most` is {most}, which is no number of users up to {MOST_USERS}"));
            faults.add(fault.help("write a whole number"));
            return None;
        }
        let step = match step?.filter(|_| self.is_stress()) {
            Some(step) => Some(self.check_step(step.0, first, most, faults)?),
            None => None,
        };
        let confirm = confirm?.map_or(CONFIRMATION, |confirm| confirm.0);
        // A stress test only goes up.
        let recover = if self.is_stress() { Duration::ZERO } else { recover?.map_or(RECOVERY, |recover| recover.0) };
        // A study that says how long loads are means all of them.
        let longest = if self.duration.is_some() || self.is_stress() { Duration::ZERO } else { LONGEST };
        Some(SearchRange { first, most, of_users: !self.is_open(), confirm, step, new_users, recover, longest })
    }

    fn check_step(&self, step: f64, first: f64, most: f64, faults: &mut Faults) -> Option<f64> {
        let span = self.step.as_ref().map_or(&self.place, |step| &step.span);
        if !self.is_open() && step.fract() != 0.0 {
            let fault = Fault::error(span, format!("`step` is {step}, which is no number of users"));
            faults.add(fault.help("write a whole number"));
            return None;
        }
        if first + step > most {
            let fault = Fault::error(span, format!("from {first} to {most} by {step} is a single load"));
            faults.add(fault.help("write a smaller `step`, or a larger `most`"));
            return None;
        }
        let steps = (most - first) / step;
        if steps > MOST_STEPS {
            let fault =
                Fault::error(span, format!("from {first} to {most} by {step} are more than {MOST_STEPS} loads"));
            faults.add(fault.help("write a larger `step`, or a smaller `most`"));
            return None;
        }
        Some(step)
    }

    /// Warns of a soak test that is too short.
    pub(super) fn check_soak(&self, length: Duration, faults: &mut Faults) {
        if length < SHORTEST_SOAK {
            let says = "a soak test of less than 16 s cannot tell whether a change goes on";
            faults.add(Fault::warning(&self.length_span(), says).help("let `duration` be hours"));
        }
    }

    /// Refuses what a search does not have, and keys of a search in a study that does not search.
    pub(crate) fn check_search(&self, faults: &mut Faults) {
        let most = self.most.as_ref().map(|most| &most.span);
        let confirm = self.confirm.as_ref().map(|confirm| &confirm.span);
        let recover = self.recover.as_ref().map(|recover| &recover.span);
        let step = self.step.as_ref().map(|step| &step.span);
        if self.search_span().is_none() || self.is_stress() {
            for (key, given) in [("confirm", confirm), ("recover", recover)] {
                refuse(given, key, "a search for the capacity (`profile = \"capacity\"`)", faults);
            }
        }
        if !self.is_stress() {
            refuse(step, "step", "a stress test (`profile = \"stress\"`)", faults);
        }
        if self.is_once() {
            let more = [
                ("rate", self.rate.as_ref().map(|rate| &rate.span)),
                ("warmup", self.warmup.as_ref().map(|warmup| &warmup.span)),
            ];
            let help = "leave it out: users begin at once or one after the other (`new_users`), and all counts";
            self.refuse_changes(&more, "where each user does one iteration", help, faults);
        }
        if self.is_once() && self.think.is_some() {
            let fault = Fault::warning(&self.place, "`load.think` has no effect: each user does one iteration");
            faults.add(fault.help("leave it out; pauses within an iteration are steps: `{ pause = \"1s\" }`"));
        }
        if self.is_soak() {
            let help = "leave it out: a soak test is the same load for all of `duration`";
            self.refuse_changes(&[], "in a soak test", help, faults);
        }
        self.check_feedback(faults);
        let Some(search) = self.search_span() else {
            let place = "a search for the capacity (`profile = \"capacity\"`), a stress test or a control loop";
            refuse(most.filter(|_| !self.is_feedback()), "most", place, faults);
            return;
        };
        for (key, given) in [("most", most), ("step", step)] {
            if self.is_stress() && given.is_none() {
                let fault = Fault::error(search, format!("`{key}` is missing in `load`"));
                faults.add(fault.help("a stress test goes from `users` (or `rate`) to `most` by `step`"));
            }
        }
        if let Some(why) = self.why_not_in_slices() {
            let fault = Fault::error(search, format!("{} chooses its loads itself, but {why}", self.search_in_words()));
            faults.add(fault.help("leave out `stages`, `iterations` and `iterations_per_user`"));
        }
    }

    /// Refuses stages and numbers of iterations, and `more`, where load of this purpose has none.
    pub(super) fn refuse_changes(&self, more: &[(&str, Option<&Span>)], place: &str, help: &str, faults: &mut Faults) {
        let stages = self.stages.as_ref().filter(|stages| !stages.is_empty()).map(|_| &self.place);
        let changes = [
            ("stages", stages),
            ("iterations", self.iterations.as_ref().map(|count| &count.span)),
            ("iterations_per_user", self.iterations_per_user.as_ref().map(|count| &count.span)),
        ];
        for (key, span) in more.iter().chain(&changes).filter_map(|(key, span)| Some((key, (*span)?))) {
            let fault = Fault::error(span, format!("`load.{key}` has no place {place}"));
            faults.add(fault.help(help.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{resolve, resolved, scope};
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::value::Bindings;
    use plimsoll_model::factor::Assignment;
    use plimsoll_model::load::{Profile, Stop, Think};

    /// Five users, who do not think.
    fn first() -> LoadModel {
        LoadModel::Closed { users: Profile::constant(5.0), think: Think::Constant(Duration::ZERO) }
    }

    #[test]
    fn once_is_an_iteration_of_each_user_without_warm_up() {
        let load = resolved("users = 50\nprofile = 'once'\nnew_users = 2");
        let limit = Duration::from_secs(3600);
        assert_eq!((load.warmup, load.stop), (Duration::ZERO, Stop::IterationsPerUser { count: 1, limit }));
        let LoadModel::Closed { users, .. } = &load.model else { panic!("users") };
        assert_eq!([0.0, 0.4, 0.5, 24.0, 24.5, 99.0].map(|at| users.at(at)), [1.0, 1.0, 2.0, 49.0, 50.0, 50.0]);
        for given in
            ["warmup = '1s'", "stages = [{ hold = '5s', at = 3 }]", "iterations = 4", "iterations_per_user = 2"]
        {
            let (table, mut faults) =
                (read_table::<LoadTable>(&format!("users = 5\nprofile = 'once'\n{given}")), no_faults());
            table.check_search(&mut faults);
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(
                faults.join("\n").contains("has no place where each user does one iteration"),
                "{given}: {faults:?}"
            );
        }
    }

    #[test]
    fn a_soak_test_is_the_same_load_all_the_time() {
        let load = resolved("users = 50\nprofile = 'soak'\nduration = '4h'");
        assert_eq!((load.stop, load.is_constant()), (Stop::Soak(Duration::from_secs(14_400)), false));
        for given in ["stages = [{ hold = '5s', at = 3 }]", "iterations = 4", "iterations_per_user = 2"] {
            let table = read_table::<LoadTable>(&format!("users = 5\nprofile = 'soak'\nduration = '1h'\n{given}"));
            let mut faults = no_faults();
            table.check_search(&mut faults);
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(faults.join("\n").contains("has no place in a soak test"), "{given}: {faults:?}");
        }
    }

    #[test]
    fn a_stress_test_has_equal_steps() {
        let steps = |text: &str| {
            let (table, mut faults) = (read_table::<LoadTable>(text), no_faults());
            table.check_search(&mut faults);
            let bindings = Bindings::default();
            let assignment = Assignment(Vec::new());
            let range = table.search(&first(), &scope(&assignment, &bindings), &mut faults);
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            (range.and_then(|range| range.step), faults.join("\n"))
        };
        let stress = "users = 5\nprofile = 'stress'\n";
        assert_eq!(steps(&format!("{stress}step = 5\nmost = 50")), (Some(5.0), String::new()));
        assert_eq!(steps("rate = 5\nprofile = 'stress'\nstep = 2.5\nmost = 50").0, Some(2.5));
        for (text, says) in [
            (format!("{stress}step = 5"), "`most` is missing"),
            (format!("{stress}most = 50"), "`step` is missing"),
            (format!("{stress}most = 50\nstep = 2.5"), "`step` is 2.5, which is no number of users"),
            (format!("{stress}most = 500000\nstep = 1"), "more than 1000 loads"),
            (format!("{stress}most = 8\nstep = 4"), "from 5 to 8 by 4 is a single load"),
            (format!("{stress}most = 2\nstep = 1"), "a stress test from 5 to 2 ends before it begins"),
            (format!("{stress}most = 50\nstep = 5\nconfirm = '9s'"), "`load.confirm` has a meaning only in a search"),
            (format!("{stress}most = 50\nstep = 5\nrecover = '9s'"), "`load.recover` has a meaning only in a search"),
            (format!("{stress}most = 50\nstep = 5\niterations = 4"), "a stress test chooses its loads itself"),
        ] {
            assert!(steps(&text).1.contains(says), "{text}: {}", steps(&text).1);
        }
    }

    #[test]
    fn a_search_has_a_range_and_short_loads() {
        let range = |text: &str| {
            let (table, mut faults) = (read_table::<LoadTable>(text), no_faults());
            table.check_search(&mut faults);
            let load = resolve(text, &mut faults);
            let bindings = Bindings::default();
            let assignment = Assignment(Vec::new());
            let scope = scope(&assignment, &bindings);
            let found = table.search(&first(), &scope, &mut faults);
            let found = found.map(|range| (range.most, range.confirm.as_secs(), range.longest.as_secs()));
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            (found, load.map(|load| load.stop.limit().as_secs()), faults.join("\n"))
        };
        let capacity = "users = 5\nprofile = 'capacity'\n";
        assert_eq!(range(capacity), (Some((500.0, 60, 30)), Some(10), String::new()));
        let given = format!("{capacity}most = 40\nrecover = '0s'\nconfirm = '20s'\nduration = '3s'");
        assert_eq!(range(&given), (Some((40.0, 20, 0)), Some(3), String::new()));
        for (text, says) in [
            (format!("{capacity}most = 4"), "ends before it begins"),
            (format!("{capacity}most = 10.5"), "is no number of users"),
            (format!("{capacity}most = 2000000"), "is no number of users"),
            (format!("{capacity}iterations = 4"), "ends after a number of iterations"),
            (format!("{capacity}stages = [{{ hold = '5s', at = 3 }}]"), "changes in stages"),
            ("users = 5\nduration = '2s'\nmost = 10".to_owned(), "`load.most` has a meaning only in a search"),
            ("users = 5\nduration = '2s'\nconfirm = '1s'".to_owned(), "`load.confirm` has a meaning only in a search"),
            (format!("{capacity}step = 5"), "`load.step` has a meaning only in a stress test"),
        ] {
            assert!(range(&text).2.contains(says), "{text}: {}", range(&text).2);
        }
        assert!(faults_of::<LoadTable>("profile = 'capacty'\nusers = 1")[0].contains("did you mean `capacity`?"));
    }
}
