//! `load.stages` and `load.think`: load that changes, and the pauses of users.

use crate::diagnostic::Fault;
use crate::faults::Faults;
use crate::node::{FromToml, Node, table};
use crate::scalar::{Amount, Length, PositiveLength};
use crate::scope::Scope;
use crate::value::Slot;
use plimsoll_model::load::{Profile, Shape, Stage, Think};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use toml::de::DeValue;

table! {
    /// One stage of a load that changes: a ramp or a hold.
    struct StageTable {
        /// How long the load moves, linearly, to `to`.
        ramp: Option<Slot<PositiveLength>>,
        /// The load at the end of the ramp.
        to: Option<Slot<Amount>>,
        /// How long the load stays at `at`.
        hold: Option<Slot<PositiveLength>>,
        /// The load while it is held. Default: what it was before.
        at: Option<Slot<Amount>>,
    }
}

/// The profile that starts at `start` and goes through `stages`.
pub(crate) fn profile(start: f64, stages: &[StageTable], scope: &Scope<'_>, faults: &mut Faults) -> Option<Profile> {
    let mut before = start;
    let mut resolved = Vec::new();
    for stage in stages {
        let stage = stage.resolve(before, scope, faults)?;
        before = stage.target;
        resolved.push(stage);
    }
    Some(Profile { start, stages: resolved })
}

impl StageTable {
    fn resolve(&self, before: f64, scope: &Scope<'_>, faults: &mut Faults) -> Option<Stage> {
        match (&self.ramp, &self.to, &self.hold, &self.at) {
            (Some(ramp), Some(to), None, None) => {
                let length = ramp.resolve(scope, faults)?.0;
                Some(Stage { length, target: to.resolve(scope, faults)?.0, shape: Shape::Ramp })
            }
            (None, None, Some(hold), at) => {
                let length = hold.resolve(scope, faults)?.0;
                let target = match at {
                    Some(at) => at.resolve(scope, faults)?.0,
                    None => before,
                };
                Some(Stage { length, target, shape: Shape::Hold })
            }
            _ => {
                let fault = Fault::error(&self.place, "a stage is either a ramp or a hold");
                faults.add(fault.help("write `{ ramp = \"10s\", to = 100 }` or `{ hold = \"30s\", at = 100 }`"));
                None
            }
        }
    }
}

/// The pause of a user between iterations.
#[derive(Clone, Debug)]
pub(crate) enum ThinkValue {
    /// Always the same.
    Constant(Slot<Length>),
    /// Drawn anew each time.
    Table(ThinkTable),
}

table! {
    /// A pause that is drawn anew each time: one of `uniform` and `exponential`.
    struct ThinkTable {
        /// Uniform between a least and a most: `["1s", "3s"]`.
        uniform: Option<Vec<Slot<Length>>>,
        /// Exponential with this mean.
        exponential: Option<Slot<PositiveLength>>,
    }
}

impl ThinkValue {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Think> {
        let table = match self {
            ThinkValue::Constant(pause) => return pause.resolve(scope, faults).map(|pause| Think::Constant(pause.0)),
            ThinkValue::Table(table) => table,
        };
        let fault = match (&table.uniform.as_deref(), &table.exponential) {
            (None, Some(mean)) => return mean.resolve(scope, faults).map(|mean| Think::Exponential(mean.0)),
            (Some([from, to]), None) => {
                let (from, to) = (from.resolve(scope, faults)?.0, to.resolve(scope, faults)?.0);
                if from <= to {
                    return Some(Think::Uniform { from, to });
                }
                Fault::error(&table.place, "the least think time is above the most").help("swap the two")
            }
            (Some(_), None) => Fault::error(&table.place, "`uniform` takes two durations, the least and the most")
                .help("write `uniform = [\"1s\", \"3s\"]`"),
            _ => {
                Fault::error(&table.place, "`load.think` is either `uniform` or `exponential`").help("keep one of them")
            }
        };
        faults.add(fault);
        None
    }

    /// The mean pause in seconds, if it is the same in every trial.
    pub(crate) fn mean(&self) -> Option<f64> {
        let seconds = |length: &Slot<Length>| Some(length.fixed()?.0.as_secs_f64());
        match self {
            ThinkValue::Constant(pause) => seconds(pause),
            ThinkValue::Table(ThinkTable { uniform: Some(bounds), .. }) => {
                let bounds: Vec<f64> = bounds.iter().map(seconds).collect::<Option<_>>()?;
                Some(bounds.iter().sum::<f64>() / bounds.len() as f64)
            }
            ThinkValue::Table(ThinkTable { exponential, .. }) => Some(exponential.as_ref()?.fixed()?.0.as_secs_f64()),
        }
    }

    pub(crate) fn in_words(&self) -> String {
        match self {
            ThinkValue::Constant(pause) => format!("think time {}", pause.as_written()),
            ThinkValue::Table(ThinkTable { uniform: Some(bounds), .. }) => {
                let bounds: Vec<&str> = bounds.iter().map(Slot::as_written).collect();
                format!("think time uniform from {}", bounds.join(" to "))
            }
            ThinkValue::Table(ThinkTable { exponential, .. }) => {
                let mean = exponential.as_ref().map_or("", Slot::as_written);
                format!("think time exponential with mean {mean}")
            }
        }
    }
}

impl FromToml for ThinkValue {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Table(_) => ThinkTable::from_toml(node, faults).map(ThinkValue::Table),
            _ => Slot::from_toml(node, faults).map(ThinkValue::Constant),
        }
    }
}

impl JsonSchema for ThinkValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Think".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            generator.subschema_for::<Slot<Length>>(),
            generator.subschema_for::<ThinkTable>(),
        ] })
    }
}
