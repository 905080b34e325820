//! The load that a script's own options describe, divided among generators on several machines: what each of them reports
//! of its part.

mod part;
mod parts;

pub(super) use part::OwnLoadPart;
pub use parts::Parts;

use super::LineSource;
use super::run::{self, End};
use super::user::CallError;
use part::Words;
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::checks::Checks;
use plimsoll_k6_run::metrics::Sinks;
use plimsoll_k6_run::scenario::Executor;
use plimsoll_model::load::Share;
use plimsoll_model::script::{OwnLoad, Packed, Script};
use plimsoll_model::storage::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The progress of a part, each second and at the end of its scenarios.
#[derive(Serialize, Deserialize)]
struct PartProgress {
    /// The index of the part.
    part: usize,
    counts: Counts,
    /// All samples so far, every two seconds, if a threshold may end the run.
    sinks: Option<Sinks>,
    /// The lines of the script and of its users since the last report.
    lines: Vec<Line>,
    /// The end of its scenarios; none while they run.
    end: Option<PartEnd>,
}

/// A line of the console, or of the run.
#[derive(Serialize, Deserialize)]
struct Line {
    source: LineSource,
    /// The name of its level.
    level: String,
    text: String,
}

/// Users and iterations of a part so far.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Counts {
    users: u64,
    users_made: u64,
    iterations: u64,
    interrupted: u64,
    /// Nanoseconds of what came before the scenarios: `setup`.
    finished_parts: u64,
    /// Iterations of each scenario that have ended.
    ended: Vec<u64>,
}

/// The result of a part.
#[derive(Serialize, Deserialize)]
struct PartResult {
    sinks: Sinks,
    checks: Checks,
    elapsed: Duration,
    in_scenarios: Duration,
    /// What `setup` returned, as JSON; none where another part has called it.
    setup_data: Option<String>,
    end: PartEnd,
    /// The message of the script that called the run a failure.
    failure: Option<String>,
    /// Hosts that it was not allowed to load.
    refused: Vec<String>,
    /// True if it has tried others.
    any_allowed: bool,
}

/// The end of a part, in words where the cause is on its machine.
#[derive(Serialize, Deserialize)]
enum PartEnd {
    Finished,
    Aborted(String),
    /// The caller ended it.
    Stopped,
    NotLoaded(String),
    Setup(FailedCall),
    Teardown(FailedCall),
}

#[derive(Serialize, Deserialize)]
enum FailedCall {
    TimedOut,
    Failed { why: String, took_too_long: bool },
}

/// The load of a script's own options, as they are settled. The caller adds paths, threads and whether it wants all lines.
///
/// # Errors
/// An option that generators on several machines cannot share, with what to change.
pub fn own_load(plan: &RunState, generators: usize) -> Result<OwnLoad, String> {
    let with_users = run::with_users(&plan.scenarios, Share { index: 0, of: generators }).of as u64;
    if let Some(most) = plan.options.rps.filter(|most| (1..with_users).contains(most)) {
        return Err(format!(
            "`rps` allows {most} requests a second, and each of {with_users} agents needs one: use fewer agents, or allow more"
        ));
    }
    let generators = generators as u64;
    for scenario in &plan.scenarios {
        let is_open =
            matches!(scenario.executor, Executor::ConstantArrivalRate { .. } | Executor::RampingArrivalRate { .. });
        let users = scenario.executor.most_vus();
        if is_open && users < generators {
            return Err(format!(
                "the scenario `{}` has at most {users} VUs, and each of {generators} agents needs one for its arrivals: use \
                 fewer agents, or raise `maxVUs`",
                scenario.name
            ));
        }
    }
    let submetrics = plan.registry.iter().flat_map(|(_, metric)| &metric.submetrics);
    let secret = |(name, value): (&String, &String)| (name.clone(), Secret(value.clone()));
    let source =
        |(name, source): (&str, &BTreeMap<String, String>)| (name.to_owned(), source.iter().map(secret).collect());
    Ok(OwnLoad {
        options: plan.options.to_json().to_string(),
        submetrics: submetrics.map(|submetric| submetric.name.clone()).collect(),
        by_group: plan.by_group,
        secrets: plan.secrets.sources().map(source).collect(),
        ..OwnLoad::default()
    })
}

/// The secrets that a script with its own load may read.
pub(super) fn secrets(script: &Script) -> Arc<Secrets> {
    let Some(own_load) = &script.own_load else { return Arc::default() };
    let secret = |(name, Secret(value)): (&String, &Secret)| (name.clone(), value.clone());
    let source =
        |(name, source): (&String, &BTreeMap<String, Secret>)| (name.clone(), source.iter().map(secret).collect());
    Arc::new(Secrets::of(own_load.secrets.iter().map(source)))
}

impl PartEnd {
    fn of(end: &End, words: &Words) -> PartEnd {
        let failed = |error: &CallError| match error {
            CallError::TimedOut => FailedCall::TimedOut,
            error => FailedCall::Failed { why: words.there(&error.render()), took_too_long: error.took_too_long() },
        };
        match end {
            End::Finished => PartEnd::Finished,
            End::Aborted(message) => PartEnd::Aborted(words.there(message)),
            End::Stopped | End::Interrupted => PartEnd::Stopped,
            End::NotLoaded(why) => PartEnd::NotLoaded(words.there(why)),
            End::Setup(error) => PartEnd::Setup(failed(error)),
            End::Teardown(error) => PartEnd::Teardown(failed(error)),
        }
    }

    /// The end of the run, as far as this part knows it.
    fn whole(self) -> End {
        let failed = |call| match call {
            FailedCall::TimedOut => CallError::TimedOut,
            FailedCall::Failed { why, took_too_long } => CallError::Elsewhere { why, took_too_long },
        };
        match self {
            PartEnd::Finished | PartEnd::Stopped => End::Finished,
            PartEnd::Aborted(message) => End::Aborted(message),
            PartEnd::NotLoaded(why) => End::NotLoaded(why),
            PartEnd::Setup(call) => End::Setup(failed(call)),
            PartEnd::Teardown(call) => End::Teardown(failed(call)),
        }
    }
}

fn packed<T: Serialize>(value: &T) -> Packed {
    Packed(rmp_serde::to_vec_named(value).expect("plain data in memory"))
}

fn unpacked<T: DeserializeOwned>(Packed(bytes): &Packed) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|error| format!("the report of a part cannot be read: {error}"))
}
