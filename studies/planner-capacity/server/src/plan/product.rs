//! The parts of a plan, as requests and replies have them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use uuid::Uuid;

/// The dataset that a plan is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dataset {
    /// Its id.
    pub(crate) id: Uuid,
    /// True if nothing in it is triggered.
    #[serde(default)]
    pub(crate) paused: bool,
    /// Notes of its user.
    pub(crate) extra: Option<Value>,
}

/// A data product: something that is made for a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataProduct {
    /// Its id, which no other product of the dataset has.
    pub(crate) id: String,
    /// The cluster that makes it.
    pub(crate) compute: Compute,
    /// A name for people.
    pub(crate) name: String,
    /// The version of the code that makes it.
    pub(crate) version: String,
    /// True if it is queued as soon as its parents are successful; otherwise its user starts it.
    pub(crate) eager: bool,
    /// Its state. Posting a plan changes neither this nor the values of a run below.
    #[serde(skip_deserializing, default)]
    pub(crate) state: State,
    /// Input of the run that makes it.
    pub(crate) passthrough: Option<Value>,
    /// The id of its last run.
    #[serde(skip_deserializing)]
    pub(crate) run_id: Option<Uuid>,
    /// The address of its last run's log.
    #[serde(skip_deserializing)]
    pub(crate) link: Option<String>,
    /// Output of its last run.
    #[serde(skip_deserializing)]
    pub(crate) passback: Option<Value>,
    /// Notes of its user.
    pub(crate) extra: Option<Value>,
}

impl DataProduct {
    /// True unless it is disabled.
    pub(crate) fn is_enabled(&self) -> bool {
        self.state != State::Disabled
    }

    /// Takes over the definition that was posted.
    pub(super) fn redefine(&mut self, posted: &DataProduct) {
        let state = if self.is_enabled() { self.state } else { State::Waiting };
        let (run_id, link, passback) = (self.run_id, self.link.take(), self.passback.take());
        *self = DataProduct { state, run_id, link, passback, ..posted.clone() };
    }

    /// Takes over what is reported of its run. What the report leaves out stays.
    pub(super) fn report(&mut self, update: &StateUpdate) {
        self.state = update.state;
        self.run_id = update.run_id.or(self.run_id);
        self.link = update.link.clone().or(self.link.take());
        self.passback = update.passback.clone().or(self.passback.take());
    }

    /// Lets it wait again, without the values of its last run. A disabled product stays disabled.
    pub(super) fn reset(&mut self) {
        if self.is_enabled() {
            self.state = State::Waiting;
            (self.run_id, self.link, self.passback) = (None, None, None);
        }
    }
}

/// A dependency: one data product is made from another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dependency {
    /// Id of the product that is needed.
    pub(crate) parent_id: String,
    /// Id of the product that needs it.
    pub(crate) child_id: String,
    /// Notes of its user.
    pub(crate) extra: Option<Value>,
}

impl Dependency {
    /// The ids of the parent and the child.
    pub(crate) fn ends(&self) -> (&str, &str) {
        (&self.parent_id, &self.child_id)
    }
}

/// A user's report on a data product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StateUpdate {
    /// Id of the product.
    pub(crate) id: String,
    /// Its state from now on.
    pub(crate) state: State,
    /// The id of its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<Uuid>,
    /// The address of its run's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    /// Output of its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) passback: Option<Value>,
}

impl StateUpdate {
    /// An update of the state alone.
    pub(crate) fn new(id: &str, state: State) -> StateUpdate {
        StateUpdate { id: id.to_owned(), state, run_id: None, link: None, passback: None }
    }
}

/// The cluster that makes a data product. To this service it is only a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compute {
    /// The cluster `cams`.
    Cams,
    /// The cluster `dbxaas`.
    Dbxaas,
}

impl Compute {
    /// Its name in the database.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Compute::Cams => "cams",
            Compute::Dbxaas => "dbxaas",
        }
    }
}

/// The state of a data product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It waits for its parents, or for its user.
    #[default]
    Waiting,
    /// It can be run.
    Queued,
    /// It is being made.
    Running,
    /// It is made.
    Success,
    /// It could not be made.
    Failed,
    /// It is left out of the plan.
    Disabled,
}

impl State {
    /// Its name in the database.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Queued => "queued",
            State::Running => "running",
            State::Success => "success",
            State::Failed => "failed",
            State::Disabled => "disabled",
        }
    }

    /// True if a user may set it. The service alone sets the others.
    pub(super) fn is_reported(self) -> bool {
        matches!(self, State::Running | State::Success | State::Failed)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
