//! A user of a script, as natives see it: its state, its run, and the recording that takes its samples.

use plimsoll_k6_run::metrics::{Measured, MetricId, TagSet, builtin};
mod recording;
mod run;
pub(crate) mod shared_arrays;
mod warning;

pub use recording::{Purpose, Recording, ScriptRecord};
pub use run::{Counts, RunState, ScenarioCounts};
pub(crate) use warning::{warn, warn_of_kind};

use crate::operations::K6;
use plimsoll_javascript::{Argument, EventLoop};
use plimsoll_k6_run::options::Options;
use plimsoll_model::units::Instant;
use plimsoll_web::Jar;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use recording::Tags;
use rquickjs::{Coerced, Ctx, Exception, FromJs, JsLifetime, Result, Value};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A user of a script.
#[derive(Debug)]
pub struct User {
    /// `__VU`: from 1; 0 for one that only loads the script.
    pub id: u64,
    /// Its cookies.
    pub jar: Rc<RefCell<Jar>>,
    recording: Rc<Recording>,
    iteration: RefCell<Iteration>,
    random: RefCell<Pcg64Mcg>,
    /// True once it was counted among the users that were made.
    is_counted: Cell<bool>,
}

/// The present iteration of a user.
#[derive(Debug, Default)]
pub(crate) struct Iteration {
    /// The index of its scenario; none for `setup` and `teardown`.
    pub(crate) scenario: Option<usize>,
    /// Its start.
    pub(crate) began: Instant,
    /// Iterations of the user before this one.
    pub(crate) in_instance: u64,
    /// Those of them in this scenario.
    pub(crate) in_scenario: u64,
    /// Iterations of all users of this process that began before in this scenario.
    pub(crate) in_process: u64,
    /// Its number among those of all users of the run: no other iteration of the scenario has it.
    pub(crate) in_test: u64,
    /// The path of the present group: `::front::inner`.
    pub(crate) group: Rc<str>,
    /// True if the script aborts the run in it.
    pub(crate) aborts: bool,
    /// The tags of all its samples but `group`: those of its scenario, and those that the script adds.
    pub(crate) tags: Rc<Tags>,
    /// Metadata of all its samples.
    pub(crate) metadata: Rc<Tags>,
}

/// The group, tags and metadata of an instant. Samples of a request that goes on in the background have those of its start.
#[derive(Clone, Debug)]
pub(crate) struct SampleLabels {
    group: Rc<str>,
    tags: Rc<Tags>,
    metadata: Rc<Tags>,
}

impl SampleLabels {
    pub(crate) fn tags(&self) -> &[(String, String)] {
        &self.tags
    }
}

/// The end of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationEnd {
    /// The function has returned or thrown.
    Complete,
    /// The iteration was interrupted.
    Interrupted,
}

/// The userdata of a runtime by which natives find their user.
#[derive(JsLifetime)]
struct CurrentUser(Rc<User>);

impl User {
    /// A new user. Its random numbers follow from `seed` and `id`.
    #[must_use]
    pub fn new(recording: &Rc<Recording>, id: u64, seed: u64) -> Rc<User> {
        Rc::new(User {
            id,
            jar: Rc::default(),
            recording: Rc::clone(recording),
            iteration: RefCell::default(),
            random: RefCell::new(seeded(seed, id)),
            is_counted: Cell::default(),
        })
    }

    /// The user of the runtime.
    ///
    /// # Errors
    /// The runtime has none.
    pub fn of(ctx: &Ctx<'_>) -> Result<Rc<User>> {
        let found = ctx.userdata::<CurrentUser>().map(|user| Rc::clone(&user.0));
        found.ok_or_else(|| Exception::throw_internal(ctx, "this native is for users of k6"))
    }

    /// As [`Self::of`], for a call that works only in functions.
    ///
    /// # Errors
    /// The script is still being loaded.
    pub fn running(ctx: &Ctx<'_>, call: &str) -> Result<Rc<User>> {
        if EventLoop::<K6>::of(ctx)?.is_loading() {
            let what = format!("{call} works only in functions, not while the script is loaded");
            return Err(Exception::throw_message(ctx, &what));
        }
        User::of(ctx)
    }

    /// Makes it the user of a runtime.
    pub(crate) fn install(self: &Rc<Self>, ctx: &Ctx<'_>) {
        let user = CurrentUser(Rc::clone(self));
        assert!(ctx.store_userdata(user).is_ok(), "nobody holds userdata of a context that is being made");
    }

    /// The global variables of its modules.
    #[must_use]
    pub fn globals(&self) -> Vec<(Rc<str>, Argument)> {
        vec![("__VU".into(), Argument::Number(self.id as f64))]
    }

    /// Counts it among the users that were made, once: it may get a new runtime after it was interrupted. One that runs
    /// before or after all scenarios does not count.
    pub fn count_as_made(&self) {
        if self.id > 0 && !self.is_counted.replace(true) {
            self.run().counts.users_made.fetch_add(1, Relaxed);
        }
    }

    /// Begins an iteration of a scenario. Returns the global variables to set before the call.
    pub fn begin(&self, scenario: usize, at: Instant) -> Vec<(Rc<str>, Argument)> {
        let run = self.run();
        let mut iteration = self.iteration.borrow_mut();
        let mut globals = Vec::new();
        if iteration.scenario != Some(scenario) {
            iteration.tags = self.recording.tags_of(Some(scenario));
            iteration.metadata = Rc::default();
            let has_own = |scenario: usize| !run.scenarios[scenario].env.is_empty();
            let had_own = iteration.scenario.is_some_and(has_own);
            (iteration.scenario, iteration.in_scenario) = (Some(scenario), 0);
            if had_own || has_own(scenario) {
                let all = run.env.iter().chain(&run.scenarios[scenario].env);
                globals.push(("__ENV".into(), Argument::Json(variables(all).into())));
            }
        }
        iteration.began = at;
        iteration.in_process = run.counts.scenarios[scenario].begun.fetch_add(1, Relaxed);
        iteration.in_test = run.share.index as u64 + iteration.in_process * run.with_users(scenario);
        globals
    }

    /// Begins a call outside of all scenarios: `setup` or `teardown`, whose name is the group of its samples.
    pub fn begin_outside_scenarios(&self, function: &str, at: Instant) {
        let (group, tags) = (format!("::{function}").into(), self.recording.tags_of(None));
        *self.iteration.borrow_mut() = Iteration { began: at, group, tags, ..Iteration::default() };
    }

    /// Ends the iteration or call. `sent` and `received` are its bytes.
    pub fn end(&self, at: Instant, end: IterationEnd, sent: u64, received: u64) {
        self.iteration.borrow_mut().group = Rc::default();
        let (scenario, took) = self.finish_iteration(at).unzip();
        // An iteration that aborts the run on purpose is complete.
        let is_complete = scenario.is_some() && (end == IterationEnd::Complete || self.iteration().aborts);
        let samples = [
            (builtin::DATA_SENT, sent as f64),
            (builtin::DATA_RECEIVED, received as f64),
            (builtin::ITERATION_DURATION, took.unwrap_or_default()),
            (builtin::ITERATIONS, 1.0),
        ];
        self.add(at, if is_complete { &samples } else { &samples[..2] }, &[]);
        let Some(scenario) = scenario else { return };
        let counts = &self.run().counts;
        counts.scenarios[scenario].ended.fetch_add(1, Relaxed);
        if is_complete { &counts.iterations } else { &counts.interrupted }.fetch_add(1, Relaxed);
        if self.options().no_cookies_reset != Some(true) {
            self.jar.take();
        }
    }

    /// `__ITER`: the iterations before this one; none outside of scenarios.
    pub(crate) fn iteration_number(&self) -> Option<f64> {
        let iteration = self.iteration();
        iteration.scenario.map(|_| iteration.in_instance as f64)
    }

    /// The next iteration is the first of a new runtime, whose variables are as at the start: `__ITER` is 0 in it.
    pub fn begin_anew(&self) {
        self.iteration.borrow_mut().in_instance = 0;
    }

    /// Counts the iteration. Returns its scenario and its duration in milliseconds; none outside of scenarios.
    fn finish_iteration(&self, at: Instant) -> Option<(usize, f64)> {
        let mut iteration = self.iteration.borrow_mut();
        let scenario = iteration.scenario?;
        iteration.in_instance += 1;
        iteration.in_scenario += 1;
        Some((scenario, milliseconds(iteration.began, at)))
    }

    /// Adds samples of one instant with the same tags, which take precedence over the tags of the user.
    pub fn add(&self, at: Instant, samples: &[(MetricId, f64)], tags: &[(&str, &str)]) {
        self.add_measured(at, samples, None, (tags, None));
    }

    /// The present labels.
    pub(crate) fn labels(&self) -> SampleLabels {
        let Iteration { group, tags, metadata, .. } = &*self.iteration.borrow();
        SampleLabels { group: Rc::clone(group), tags: Rc::clone(tags), metadata: Rc::clone(metadata) }
    }

    /// As [`Self::add`], with tags that are derived from a measurement when they are looked at, and with these labels instead
    /// of those of now.
    pub(crate) fn add_measured(
        &self,
        at: Instant,
        samples: &[(MetricId, f64)],
        measured: Option<&dyn Measured>,
        (own, labels): (&[(&str, &str)], Option<&SampleLabels>),
    ) {
        let iteration = self.iteration.borrow();
        let (group, tags, metadata) = match labels {
            Some(labels) => (&labels.group, &labels.tags, &labels.metadata),
            None => (&iteration.group, &iteration.tags, &iteration.metadata),
        };
        let group = self.recording.tags_groups().then_some(&**group);
        self.recording.add(at, samples, &TagSet { measured, own, group, user: tags, metadata });
    }

    /// Records that a request was not sent. No sample counts it.
    pub(crate) fn record_unsent_request(&self, why: &str) {
        self.recording.unsent_request(why);
    }

    /// True if samples get this system tag.
    #[must_use]
    pub fn has_system_tag(&self, name: &str) -> bool {
        self.recording.has_system_tag(name)
    }

    /// The options, with all defaults.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.run().options
    }

    /// Its `User-Agent`, for all protocols.
    #[must_use]
    pub fn user_agent(&self) -> &str {
        self.options().user_agent.as_deref().unwrap_or(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
    }

    /// Its run.
    #[must_use]
    pub fn run(&self) -> &Arc<RunState> {
        self.recording.run()
    }

    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    pub(crate) fn iteration(&self) -> Ref<'_, Iteration> {
        self.iteration.borrow()
    }

    pub(crate) fn iteration_mut(&self) -> RefMut<'_, Iteration> {
        self.iteration.borrow_mut()
    }

    /// A random number, uniform in `0 <= x < 1`.
    pub(crate) fn random(&self) -> f64 {
        (self.random.borrow_mut().next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Seeds its random numbers anew.
    pub(crate) fn seed(&self, seed: u64) {
        self.random.replace(seeded(seed, 0));
    }
}

fn seeded(seed: u64, id: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The milliseconds between two instants.
pub(crate) fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.since(from).0 as f64 / 1e6
}

/// `__ENV` as JSON. Of variables with one name, the last counts.
pub(crate) fn variables<'a>(variables: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let object: serde_json::Map<_, _> =
        variables.into_iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    serde_json::Value::Object(object).to_string()
}

/// The tags that a script gives to samples: an object of texts, numbers and truth values.
///
/// # Errors
/// One of them is something else.
pub fn read_tags<'js>(ctx: &Ctx<'js>, tags: Option<Value<'js>>) -> Result<Vec<(String, String)>> {
    let Some(tags) = tags.and_then(Value::into_object) else { return Ok(Vec::new()) };
    tags.props::<String, Value<'js>>().map(|tag| tag.and_then(|(name, value)| read_tag(ctx, name, value))).collect()
}

/// The text of a single tag.
pub(crate) fn read_tag<'js>(ctx: &Ctx<'js>, name: String, value: Value<'js>) -> Result<(String, String)> {
    if !(value.is_string() || value.is_number() || value.is_bool()) {
        let found = value.type_name();
        let what = format!("expected a text, a number or a truth value for the tag `{name}`, found {found}");
        return Err(Exception::throw_type(ctx, &what));
    }
    Ok((name, Coerced::<String>::from_js(ctx, value)?.0))
}
