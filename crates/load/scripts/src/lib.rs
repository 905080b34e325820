//! Scripts on the loop: each user is a script on a fibre, and what it asks for goes over the connections of its
//! thread.
//!
//! [`run`] is a run of its own, as k6 makes one; a study runs scripts as its load ([`study`]). A generator's thread
//! makes its users before the clock starts, since neither fibres nor runtimes change threads. [`users`] is the work of
//! its loop: it lets users run, and takes what they ask for to the [`network`], which finds or makes a connection,
//! moves bytes, and answers.

mod allowed;
mod alone;
mod client_session;
mod connection;
mod console;
mod exchange;
mod grpc;
mod hosts;
mod network;
mod origin;
mod rate_limit;
mod resolver;
mod run;
pub mod study;
mod systems;
mod threads;
mod tls;
mod user;
mod users;
mod websocket;

pub use allowed::{Allowed, Refused};
pub use alone::{Inspected, call_alone, inspect};
pub use run::{End, Go, Observer, Progress, Run, RunOutcome, run};
pub use user::{CallError, ExceededLimit};

use plimsoll_engine::recorder::Names;
use plimsoll_javascript::{Level, Program};
use plimsoll_k6::user::Purpose;
use plimsoll_k6::user::RunState;
use plimsoll_model::units::Nanos;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Where lines of the console go, from whatever thread.
pub type Console = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// What a user may take before it is stopped for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// What its script may take.
    pub vm: plimsoll_javascript::Limits,
    /// How long an iteration may take; as long as it takes, where there is none.
    pub iteration: Option<Duration>,
    /// How a person sets them.
    pub knobs: Knobs,
}

/// What the limits are called where a person sets them, as a fragment: "`--user-memory`".
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

/// What a run hands to the users of all threads.
struct RunContext<'a> {
    program: &'a Arc<Program>,
    plan: &'a Arc<RunState>,
    purpose: Purpose,
    limits: Limits,
    /// How long an iteration takes at least, with the pause behind it.
    least_iteration: Nanos,
    network: Arc<network::Shared>,
    /// What requests, checks and metrics are called.
    names: Arc<Names>,
    console: Console,
    seed: u64,
    /// Set from outside to break it off.
    interrupted: &'a AtomicBool,
    /// What all loops look at: set when it breaks off, for whatever reason.
    halt: &'a AtomicBool,
}
