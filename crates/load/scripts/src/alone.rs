//! Calls outside of iterations: `setup`, `teardown`, `handleSummary`, and loading a script for its options.

use super::run::Run;
use super::threads::{Ids, Load, LoadResult, ScenarioUsers, run_modules};
use super::user::{CallError, ThreadHost};
use super::{Console, Limits, network};
use plimsoll_engine::offer::Offering;
use plimsoll_javascript::{End, Host, Parked, Program, ResultFormat, Setup, Vm};
use plimsoll_k6::operations::K6;
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6::user::RunState;
use plimsoll_k6::user::User;
use plimsoll_k6::user::{Purpose, Recording};
use plimsoll_k6_run::metrics::Registry;
use plimsoll_model::job::JobError;
use plimsoll_model::load::{LoadModel, Profile, Stop, Think, WHOLE};
use plimsoll_model::units::Instant;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The options and metrics that a script declares when it is loaded.
#[derive(Debug)]
pub struct Inspected {
    /// Its `options`, as JSON.
    pub options: Option<String>,
    /// The exports that are functions.
    pub functions: Vec<String>,
    /// All metrics, those of the script included.
    pub registry: Registry,
    /// The state that it was loaded with.
    pub plan: Arc<RunState>,
}

/// Loads a script once, for its options and metrics. It may read `secrets`.
///
/// # Errors
/// It throws, or exceeds a limit.
pub fn inspect(
    program: &Arc<Program>,
    env: Vec<(String, String)>,
    secrets: Arc<Secrets>,
    limits: Limits,
    console: &Console,
) -> Result<Inspected, CallError> {
    let plan = Arc::new(RunState { secrets, ..RunState::for_loading(env) });
    let recording = Recording::new(&plan, Purpose::Loading);
    let host = Rc::new(ThreadHost::new(console));
    let user = User::new(&recording, 0, 0);
    let setup = Setup {
        limits: limits.vm,
        host: Rc::clone(&host) as Rc<dyn Host>,
        globals: user.globals(),
        prepare: Some(plimsoll_k6::prepare(&user)),
    };
    let mut vm = Vm::<K6>::new(program, setup).map_err(|error| CallError::NotStarted(error.to_string()))?;
    let loaded = result_of(run_modules(&mut vm, &host), limits);
    if let Some(message) = plan.abort.get() {
        return Err(CallError::Aborted(message.clone()));
    }
    loaded?;
    let options = result_of(vm.read("options"), limits)?;
    let functions = result_of(vm.functions(), limits)?.and_then(|names| serde_json::from_str(&names).ok());
    drop(vm);
    let functions = functions.unwrap_or_default();
    Ok(Inspected { options, functions, registry: Arc::unwrap_or_clone(recording.registry()), plan })
}

fn result_of(parked: Parked, limits: Limits) -> Result<Option<String>, CallError> {
    match parked {
        Parked::Over(result) => result.map_err(CallError::Threw),
        Parked::Ended(End::NotLoaded(exception)) => Err(CallError::Threw(exception)),
        Parked::Ended(End::Limit(limit, place)) => Err(CallError::LimitExceeded(limits.exceeded(limit, place))),
        Parked::Ended(End::Stopped) | Parked::Waiting => Err(CallError::Stopped),
    }
}

/// Calls a function that the script exports, with arguments in JSON, as a user of its own. Its samples are discarded.
/// Returns its result in the form of [`ResultFormat::JsonWithBytes`].
///
/// # Errors
/// The call fails, or the machine does not allow what the loop needs.
pub fn call_alone(
    run: &Run<'_>,
    function: &str,
    arguments: Vec<String>,
    timeout: Duration,
) -> Result<Option<String>, CallError> {
    let unmade = |error: JobError| CallError::NotStarted(error.to_string());
    let network = Arc::new(run.network().map_err(unmade)?);
    let format = ResultFormat::JsonWithBytes;
    let interrupted = run.until_interrupted();
    let result = call_as(run, &network, (function, format), arguments, timeout, interrupted).map_err(unmade)?;
    result.called
}

/// Calls a function that the script exports, and keeps its samples.
pub(super) fn call(
    run: &Run<'_>,
    network: &Arc<network::Shared>,
    function: &str,
    arguments: Vec<String>,
    timeout: Duration,
    interrupted: &AtomicBool,
) -> Result<LoadResult, JobError> {
    call_as(run, network, (function, ResultFormat::Json), arguments, timeout, interrupted)
}

/// Calls a function by itself, whose result is given in this form.
fn call_as(
    run: &Run<'_>,
    network: &Arc<network::Shared>,
    (function, result): (&str, ResultFormat),
    arguments: Vec<String>,
    timeout: Duration,
    interrupted: &AtomicBool,
) -> Result<LoadResult, JobError> {
    let halt = AtomicBool::new(false);
    let common = run.common(network, interrupted, &halt);
    let model = LoadModel::Closed { users: Profile::constant(1.0), think: Think::Constant(Duration::ZERO) };
    let offering = Offering {
        model,
        stop: Stop::IterationsPerUser { count: 1, limit: timeout },
        start: Instant(0),
        warmup: Duration::ZERO,
        drain: Duration::ZERO,
        graceful_ramp_down: None,
        k6_arrivals: None,
        steering: None,
        seed: run.seed,
    };
    let scenarios = [ScenarioUsers {
        offering,
        function: function.to_owned(),
        arguments,
        result,
        scenario: None,
        ids: Ids::From(0),
        made_before: 1,
    }];
    let load = Load { common: &common, scenarios: &scenarios, share: WHOLE, threads: 1, cpus: None, copies: None };
    let mut result = load.run(Default::default(), &mut |_| ())?;
    // A script that ended the run is parked for good, so its call was only stopped.
    if let (Err(CallError::Stopped), Some(message)) = (&result.called, run.plan.abort.get()) {
        result.called = Err(CallError::Aborted(message.clone()));
    }
    Ok(result)
}
