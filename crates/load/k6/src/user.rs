//! What natives know of the user that calls them, and where they leave its samples.

use crate::globals;
use crate::metrics::{Measured, MetricId, TagSet, builtin};
use crate::operations::K6;
use crate::options::Options;
use crate::plan::Plan;
use crate::recording::{Recording, Tags};
use plimsoll_javascript::{Data, EventLoop, Prepare};
use plimsoll_model::units::Instant;
use plimsoll_web::Jar;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rquickjs::object::{Accessor, Property};
use rquickjs::{Coerced, Ctx, Exception, FromJs, Function, JsLifetime, Object, Result, Value};
use std::cell::{Ref, RefCell, RefMut};
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
}

/// What a user does.
#[derive(Debug, Default)]
pub(crate) struct Iteration {
    /// Of which scenario it is; none for `setup` and `teardown`.
    pub(crate) scenario: Option<usize>,
    /// When it began.
    pub(crate) began: Instant,
    /// How many the user did before.
    pub(crate) in_instance: u64,
    /// How many of them in this scenario.
    pub(crate) in_scenario: u64,
    /// How many all users began in this scenario before.
    pub(crate) in_test: u64,
    /// In which group it is: `::front::inner`.
    pub(crate) group: String,
    /// Whether the script ends the run in it.
    pub(crate) aborts: bool,
    /// The tags of all its samples, apart from the group: those of its scenario, until the script adds others.
    pub(crate) tags: Rc<Tags>,
    /// What is written down with its samples besides.
    pub(crate) metadata: Vec<(String, String)>,
}

/// How an iteration was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It came to its end, if only by an exception.
    Whole,
    /// It was cut off.
    Interrupted,
}

/// Where natives find their user.
#[derive(JsLifetime)]
struct Seat(Rc<User>);

impl User {
    /// A user that has done nothing. What is random to it follows from `seed` and `id`.
    #[must_use]
    pub fn new(recording: &Rc<Recording>, id: u64, seed: u64) -> Rc<User> {
        Rc::new(User {
            id,
            jar: Rc::default(),
            recording: Rc::clone(recording),
            iteration: RefCell::default(),
            random: RefCell::new(seeded(seed, id)),
        })
    }

    /// The user whose native runs.
    ///
    /// # Errors
    /// The runtime was not prepared for one.
    pub fn of(ctx: &Ctx<'_>) -> Result<Rc<User>> {
        let found = ctx.userdata::<Seat>().map(|seat| Rc::clone(&seat.0));
        found.ok_or_else(|| Exception::throw_internal(ctx, "this native is for users of k6"))
    }

    /// As [`Self::of`], for a call that makes sense only in functions.
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

    /// What its runtime needs before its modules run.
    #[must_use]
    pub fn prepare(self: &Rc<Self>) -> Prepare {
        let (user, random, counter) = (Rc::clone(self), Rc::clone(self), Rc::clone(self));
        let plan = Arc::clone(self.plan());
        Box::new(move |ctx| {
            assert!(ctx.store_userdata(Seat(user)).is_ok(), "nobody holds userdata of a context that is being made");
            let math: Object<'_> = ctx.globals().get("Math")?;
            math.set("random", Function::new(ctx.clone(), move || random.random())?)?;
            globals::install(ctx)?;
            // Most scripts never ask for it: whoever does gets what is so then.
            let iteration = Accessor::from(move || counter.number_of_iteration());
            ctx.globals().prop("__ITER", iteration.enumerable().configurable())?;
            install_variables(ctx, plan)
        })
    }

    /// The variables that its modules find.
    #[must_use]
    pub fn globals(&self) -> Vec<(Rc<str>, Data)> {
        vec![("__VU".into(), Data::Number(self.id as f64))]
    }

    /// An iteration of a scenario begins: what to set before the call.
    pub fn begin(&self, scenario: usize, at: Instant) -> Vec<(Rc<str>, Data)> {
        let plan = self.plan();
        let mut iteration = self.iteration.borrow_mut();
        let mut globals = Vec::new();
        if iteration.scenario != Some(scenario) {
            iteration.tags = self.recording.tags_of(Some(scenario));
            iteration.metadata.clear();
            (iteration.scenario, iteration.in_scenario) = (Some(scenario), 0);
            if !plan.scenarios[scenario].env.is_empty() {
                let all = plan.env.iter().chain(&plan.scenarios[scenario].env);
                globals.push(("__ENV".into(), Data::Json(variables(all).into())));
            }
        }
        iteration.began = at;
        iteration.in_test = plan.counts.scenarios[scenario].begun.fetch_add(1, Relaxed);
        globals
    }

    /// A call outside of all scenarios begins: `setup` or `teardown`, of which samples tell the name.
    pub fn begin_alone(&self, function: &str, at: Instant) {
        let (group, tags) = (format!("::{function}"), self.recording.tags_of(None));
        *self.iteration.borrow_mut() = Iteration { began: at, group, tags, ..Iteration::default() };
    }

    /// What began is over. `sent` and `received` are the bytes that it took.
    pub fn end(&self, at: Instant, ending: Ending, sent: u64, received: u64) {
        self.iteration.borrow_mut().group.clear();
        let over = self.end_of_iteration(at);
        let (scenario, took) = over.unzip();
        // What ends the run does so on purpose, and is no less whole.
        let is_whole = scenario.is_some() && (ending == Ending::Whole || self.iteration().aborts);
        let samples = [
            (builtin::DATA_SENT, sent as f64),
            (builtin::DATA_RECEIVED, received as f64),
            (builtin::ITERATION_DURATION, took.unwrap_or_default()),
            (builtin::ITERATIONS, 1.0),
        ];
        self.add(at, if is_whole { &samples } else { &samples[..2] }, &[]);
        let Some(scenario) = scenario else { return };
        let counts = &self.plan().counts;
        counts.scenarios[scenario].ended.fetch_add(1, Relaxed);
        if is_whole { &counts.iterations } else { &counts.interrupted }.fetch_add(1, Relaxed);
        if self.options().no_cookies_reset != Some(true) {
            self.jar.take();
        }
    }

    /// `__ITER`: how many it did before; none outside of scenarios.
    fn number_of_iteration(&self) -> Option<f64> {
        let iteration = self.iteration();
        iteration.scenario.map(|_| iteration.in_instance as f64)
    }

    /// The scenario of what is over, and the milliseconds that it took.
    fn end_of_iteration(&self, at: Instant) -> Option<(usize, f64)> {
        let mut iteration = self.iteration.borrow_mut();
        let scenario = iteration.scenario?;
        iteration.in_instance += 1;
        iteration.in_scenario += 1;
        Some((scenario, milliseconds(iteration.began, at)))
    }

    /// Adds samples of one instant with the same tags. What is tagged for all samples of the user stands beneath.
    pub fn add(&self, at: Instant, samples: &[(MetricId, f64)], tags: &[(&str, &str)]) {
        self.add_measured(at, samples, None, tags);
    }

    /// The same, with tags that follow from what was measured.
    pub(crate) fn add_measured(
        &self,
        at: Instant,
        samples: &[(MetricId, f64)],
        measured: Option<&dyn Measured>,
        own: &[(&str, &str)],
    ) {
        let iteration = self.iteration.borrow();
        let group = self.recording.tags_groups().then_some(iteration.group.as_str());
        let (user, metadata) = (iteration.tags.as_slice(), iteration.metadata.as_slice());
        self.recording.add(at, samples, &TagSet { measured, own, group, user, metadata });
    }

    /// A request could not be made: no sample tells of it.
    pub(crate) fn note_unmade(&self, why: &str) {
        self.recording.unmade(why);
    }

    /// Whether samples get this tag by themselves; what does not goes without.
    #[must_use]
    pub fn has_system_tag(&self, name: &str) -> bool {
        self.recording.has_system_tag(name)
    }

    /// The options, with all defaults.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.plan().options
    }

    /// What it says that it is, over other protocols than HTTP too.
    #[must_use]
    pub fn agent(&self) -> &str {
        self.options().user_agent.as_deref().unwrap_or(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
    }

    /// The run that it belongs to.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        self.recording.plan()
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

    /// Uniform in `0 <= x < 1`.
    fn random(&self) -> f64 {
        (self.random.borrow_mut().next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

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

/// Gives a runtime `__ENV`: made when its script first looks, since all variables of a system are many for each of
/// thousands of users.
fn install_variables<'js>(ctx: &Ctx<'js>, plan: Arc<Plan>) -> Result<()> {
    fn define<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<()> {
        ctx.globals().prop("__ENV", Property::from(value).writable().enumerable().configurable())
    }
    let set = |ctx: Ctx<'js>, value: Value<'js>| -> Result<()> { define(&ctx, value) };
    let get = move |ctx: Ctx<'js>| -> Result<Value<'js>> {
        let value = ctx.json_parse(variables(&plan.env))?;
        define(&ctx, value.clone())?;
        Ok(value)
    };
    ctx.globals().prop("__ENV", Accessor::new(get, set).enumerable().configurable())
}

/// `__ENV` as JSON, where later ones count.
fn variables<'a>(variables: impl IntoIterator<Item = &'a (String, String)>) -> String {
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
