//! `load.stages` and `load.think`: load that changes, and the pauses of users.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, table};
use crate::value::{Length, NonNegativeNumber, PositiveTimeSpan, Problem, Scalar, Scope, Templated};
use plimsoll_model::factor::Level;
use plimsoll_model::load::{Profile, Shape, Stage, Think};
use serde_json::{Value, json};
use toml::de::DeValue;

table! {
    /// One stage of a load that changes: a ramp or a hold.
    struct StageTable {
        /// How long the load moves, linearly, to `to`.
        ramp: Option<Templated<PositiveTimeSpan>>,
        /// The load at the end of the ramp.
        to: Option<Templated<NonNegativeNumber>>,
        /// How long the load stays at `at`.
        hold: Option<Templated<PositiveTimeSpan>>,
        /// The load while it is held. Default: what it was before.
        at: Option<Templated<NonNegativeNumber>>,
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
    Some(Profile { start, stages: resolved, joining: None })
}

/// The most stages that are told one by one.
const MOST_TOLD: usize = 6;

/// Stages after `start`, as reports say them: `, to 100 within 10s, 100 for 30s`.
pub(crate) fn stages_in_words(start: &str, stages: &[StageTable]) -> String {
    if stages.len() > MOST_TOLD {
        let values = stages.iter().filter_map(StageTable::value).chain([start]);
        let values: Option<Vec<f64>> = values.map(|value| value.parse().ok()).collect();
        let most = values.map(|values| values.into_iter().fold(0.0, f64::max));
        let most = most.map_or_else(String::new, |most| format!(", at most {most}"));
        return format!(", then {} stages{most}", stages.len());
    }
    let mut words = String::new();
    let mut before = start;
    for stage in stages {
        let value = stage.value().unwrap_or(before);
        match (&stage.ramp, &stage.hold) {
            (Some(ramp), _) => words += &format!(", to {value} within {}", ramp.as_written()),
            (None, Some(hold)) => words += &format!(", {value} for {}", hold.as_written()),
            (None, None) => {}
        }
        before = value;
    }
    words
}

impl StageTable {
    /// The load at its end, as written; none if it stays what it was.
    fn value(&self) -> Option<&str> {
        self.to.as_ref().or(self.at.as_ref()).map(Templated::as_written)
    }

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
    Constant(Templated<Length>),
    /// Drawn anew each time.
    Table(Box<ThinkTable>),
}

table! {
    /// A pause that is drawn anew each time: one of `uniform`, `exponential` and `log_normal`.
    struct ThinkTable {
        /// Uniform between a least and a most: `["1s", "3s"]`.
        uniform: Option<Vec<Templated<Length>>>,
        /// Exponential with this mean.
        exponential: Option<Templated<PositiveTimeSpan>>,
        /// Log-normal: the pauses that people make.
        log_normal: Option<LogNormalTable>,
    }
}

table! {
    /// A log-normal distribution.
    struct LogNormalTable {
        /// The pause that half of all stay below.
        median: Templated<PositiveTimeSpan>,
        /// The standard deviation of the logarithm: 0.5 spreads two thirds of all pauses from 0.6 to 1.6 times the median.
        sigma: Templated<Sigma>,
    }
}

/// The spread of a log-normal distribution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sigma(f64);

impl Scalar for Sigma {
    const EXPECTED: &'static str = "a number above 0 and at most 3";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let number = level.to_string().parse().ok().filter(|number| *number > 0.0 && *number <= 3.0);
        number.map(Sigma).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 3 })
    }
}

impl ThinkValue {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Think> {
        let table = match self {
            ThinkValue::Constant(pause) => return pause.resolve(scope, faults).map(|pause| Think::Constant(pause.0)),
            ThinkValue::Table(table) => table,
        };
        let fault = match (&table.uniform.as_deref(), &table.exponential, &table.log_normal) {
            (None, Some(mean), None) => return mean.resolve(scope, faults).map(|mean| Think::Exponential(mean.0)),
            (None, None, Some(table)) => {
                let (median, sigma) = (table.median.resolve(scope, faults), table.sigma.resolve(scope, faults));
                return Some(Think::LogNormal { median: median?.0, sigma: sigma?.0 });
            }
            (Some([from, to]), None, None) => {
                let (from, to) = (from.resolve(scope, faults)?.0, to.resolve(scope, faults)?.0);
                if from <= to {
                    return Some(Think::Uniform { from, to });
                }
                Fault::error(&table.place, "the least think time is above the most").help("swap the two")
            }
            (Some(_), None, None) => {
                Fault::error(&table.place, "`uniform` takes two durations, the least and the most")
                    .help("write `uniform = [\"1s\", \"3s\"]`")
            }
            _ => Fault::error(&table.place, "a pause is one of `uniform`, `exponential` and `log_normal`")
                .help("keep one of them"),
        };
        faults.add(fault);
        None
    }

    /// The mean pause in seconds, if it is the same in every trial.
    pub(crate) fn mean(&self) -> Option<f64> {
        let seconds = |length: &Templated<Length>| Some(length.fixed()?.0.as_secs_f64());
        let table = match self {
            ThinkValue::Constant(pause) => return seconds(pause),
            ThinkValue::Table(table) => &**table,
        };
        match table {
            ThinkTable { uniform: Some(bounds), .. } => {
                let bounds: Vec<f64> = bounds.iter().map(seconds).collect::<Option<_>>()?;
                Some(bounds.iter().sum::<f64>() / bounds.len() as f64)
            }
            ThinkTable { exponential: Some(mean), .. } => Some(mean.fixed()?.0.as_secs_f64()),
            ThinkTable { log_normal, .. } => {
                let LogNormalTable { median, sigma, .. } = log_normal.as_ref()?;
                let (median, sigma) = (median.fixed()?.0, sigma.fixed()?.0);
                Some(Think::LogNormal { median, sigma }.mean())
            }
        }
    }

    /// The pause as reports say it: `2s`, `uniform from 1s to 3s`.
    pub(crate) fn in_words(&self) -> String {
        let table = match self {
            ThinkValue::Constant(pause) => return pause.as_written().to_owned(),
            ThinkValue::Table(table) => &**table,
        };
        match table {
            ThinkTable { uniform: Some(bounds), .. } => {
                let bounds: Vec<&str> = bounds.iter().map(Templated::as_written).collect();
                format!("uniform from {}", bounds.join(" to "))
            }
            ThinkTable { log_normal: Some(LogNormalTable { median, sigma, .. }), .. } => {
                format!("log-normal with median {} and sigma {}", median.as_written(), sigma.as_written())
            }
            ThinkTable { exponential, .. } => {
                format!("exponential with mean {}", exponential.as_ref().map_or("", Templated::as_written))
            }
        }
    }
}

impl FromToml for ThinkValue {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Table(_) => ThinkTable::from_toml(node, faults).map(|table| ThinkValue::Table(Box::new(table))),
            _ => Templated::from_toml(node, faults).map(ThinkValue::Constant),
        }
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [
            <Templated<Length>>::json_schema(schemas),
            ThinkTable::json_schema(schemas),
        ] })
    }
}
