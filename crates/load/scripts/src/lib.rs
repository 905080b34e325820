//! Scripts on the event loop: each user is a script on a fibre, and its network operations use the connections of its
//! thread.
//!
//! [`run`] runs a script without a study, as k6 does; a study runs scripts as its load ([`study`]). A generator's
//! thread makes its users before the clock starts, because neither fibres nor runtimes can move to another thread.
//! [`users`] is the work of its loop: it lets users run, and passes their operations to the [`network`], which finds or
//! opens a connection, moves bytes, and returns the results.

mod allowed;
mod alone;
mod blocked;
mod client_session;
mod connection;
mod console;
mod exchange;
mod grpc;
mod hosts;
mod network;
mod origin;
mod own_load;
mod rate_limit;
mod resolver;
mod run;
pub mod study;
mod systems;
mod threads;
mod tls;
mod user;
mod user_ids;
mod users;
mod websocket;

pub use allowed::{Allowed, Refused};
pub use alone::{Inspected, call_alone, inspect};
pub use own_load::{Parts, own_load};
pub use run::{End, Go, Observer, Part, Progress, Run, RunOutcome, run};
pub use user::{CallError, ExceededLimit};

use plimsoll_engine::job::Steering;
use plimsoll_engine::recorder::Names;
use plimsoll_javascript::{Level, Program};
use plimsoll_k6::user::Purpose;
use plimsoll_k6::user::RunState;
use plimsoll_model::units::Nanos;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Receives the lines of the console, and what the run logs beside them, from any thread.
pub type Console = Arc<dyn Fn(LineSource, Level, &str) + Send + Sync>;

/// The writer of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineSource {
    /// The script, by its `console`.
    Script,
    /// The run: exceptions, warnings, what is shown of requests.
    Run,
}

/// The limits of a user. A user that exceeds one is stopped for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Limits of the JavaScript engine.
    pub vm: plimsoll_javascript::Limits,
    /// How long an iteration may take; unlimited when there is none.
    pub iteration: Option<Duration>,
    /// The names of the settings for them.
    pub knobs: Knobs,
}

/// The names of the settings for limits, as fragments of messages: "`--user-memory`".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Of memory.
    pub memory: &'static str,
    /// Of stack.
    pub stack: &'static str,
    /// Of running without waiting for anything.
    pub busy: &'static str,
    /// Of iterations.
    pub iteration: &'static str,
}

impl Default for Knobs {
    /// In a study.
    fn default() -> Knobs {
        Knobs {
            memory: "`limits.memory` of the workload",
            stack: "`limits.stack` of the workload",
            busy: "`limits.busy` of the workload",
            iteration: "`limits.iteration` of the workload",
        }
    }
}

/// The context of a run, for the users of all threads.
struct RunContext<'a> {
    program: &'a Arc<Program>,
    plan: &'a Arc<RunState>,
    purpose: Purpose,
    limits: Limits,
    /// The least duration of an iteration with the pause after it.
    least_iteration: Nanos,
    network: Arc<network::Shared>,
    /// The names of requests, checks and metrics.
    names: Arc<Names>,
    console: Console,
    seed: u64,
    /// The caller sets this to stop the run.
    interrupted: &'a AtomicBool,
    /// All loops stop when this is set: on an interruption, or for any other reason.
    halt: &'a AtomicBool,
    /// Says when the scenarios of a run are to end, where other generators have parts of it.
    steering: Steering,
    /// A message for each user that has exceeded a limit.
    broken: Mutex<Vec<String>>,
}

impl RunContext<'_> {
    /// Takes the messages about users that have exceeded a limit since the last call.
    fn take_broken(&self) -> Vec<String> {
        std::mem::take(&mut *self.broken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
