//! `[objective]`: what must hold under a load, so that it passes.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, all_of, table};
use crate::value::{Literal, PositiveTimeSpan, Scalar, Share};
use plimsoll_model::factor::Level;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::objective::{Limit, Objective};
use serde_json::{Value, json};
use std::time::Duration;
use toml::de::DeValue;

table! {
    /// The limits of durations, and of errors, that must hold under a load for the systems to carry it.
    struct ObjectiveTable {
        /// The largest values of durations, by their measures in quotes: `"request_duration.p95" = "200ms"`.
        limits: Limits,
        /// The largest share of exchanges and iterations that may fail. Default: "1%".
        errors: Option<Literal<Share>>,
        /// The least share of the arrivals of open load that must be finished in the same time. Default: "99%".
        achieved: Option<Literal<Share>>,
    }
}

const ERRORS: f64 = 0.01;
const ACHIEVED: f64 = 0.99;

/// Limits by measure, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Limits(Vec<(Literal<Measure>, Literal<PositiveTimeSpan>)>);

impl FromToml for Limits {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        if table.entries().is_empty() {
            let fault = Fault::error(&node.place(), "`objective.limits` is empty");
            faults.add(fault.help("name at least one duration, as in `{ \"request_duration.p95\" = \"200ms\" }`"));
            return None;
        }
        let limits: Vec<Option<_>> = table.entries().iter().map(|(name, node)| limit(name, node, faults)).collect();
        limits.into_iter().collect::<Option<_>>().map(Limits)
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "object", "minProperties": 1, "additionalProperties": <Literal<PositiveTimeSpan>>::json_schema(schemas) })
    }
}

fn limit(name: &str, node: &Node<'_>, faults: &mut Faults) -> Option<(Literal<Measure>, Literal<PositiveTimeSpan>)> {
    let place = node.place();
    if matches!(node.value, DeValue::Table(_)) {
        let fault = Fault::error(&place, format!("`{name}` is not a measure"));
        faults.add(fault.help(format!("write measures in quotes, as in `\"{name}.p95\" = \"200ms\"`")));
        return None;
    }
    let measure = match Measure::from_level(&Level::Text(name.to_owned())) {
        Ok(measure) => measure,
        Err(problem) => {
            faults.add(problem.fault(&place, name));
            return None;
        }
    };
    if !can_limit(&measure) {
        let kinds =
            ["request_duration", "response_time", "time_to_first_byte", "iteration_duration", "connect_duration"];
        let fault = Fault::error(&place, format!("`{measure}` cannot have a limit in an objective"));
        faults.add(fault.help(format!("durations can: {}; for errors write `errors`", all_of(kinds))));
        return None;
    }
    let at_most = Literal::from_toml(node, faults)?;
    Some((Literal { value: measure, span: place, path: at_most.path.clone() }, at_most))
}

/// Whether a measure can be judged from what the generator records of a single load.
fn can_limit(measure: &Measure) -> bool {
    let is_duration = matches!(
        measure.series,
        Series::IterationDuration
            | Series::RequestDuration(_)
            | Series::ResponseTime(_)
            | Series::FirstByte(_)
            | Series::ConnectDuration
    );
    is_duration && !matches!(measure.statistic, Statistic::Count | Statistic::Rate | Statistic::Ratio)
}

impl ObjectiveTable {
    pub(crate) fn objective(&self) -> Objective {
        let share = |share: Option<&Literal<Share>>, default| share.map_or(default, |share| share.value.0);
        let limit = |(measure, at_most): &(Literal<Measure>, Literal<PositiveTimeSpan>)| Limit {
            measure: measure.value.clone(),
            at_most: at_most.value.0.as_secs_f64(),
        };
        Objective {
            limits: self.limits.0.iter().map(limit).collect(),
            errors: share(self.errors.as_ref(), ERRORS),
            achieved: share(self.achieved.as_ref(), ACHIEVED),
        }
    }

    /// The measures that have a limit, with their places.
    pub(crate) fn measures(&self) -> impl Iterator<Item = &Literal<Measure>> {
        self.limits.0.iter().map(|(measure, _)| measure)
    }

    /// Refuses errors without a bound: `1` is all of it, where 1 % may be meant.
    pub(crate) fn check(&self, faults: &mut Faults) {
        if let Some(errors) = self.errors.as_ref().filter(|errors| errors.value.0 >= 1.0) {
            let fault = Fault::error(&errors.span, "an objective cannot allow that all exchanges fail");
            faults.add(fault.help("write the share that may, such as \"1%\""));
        }
    }

    /// The limits.
    pub(crate) fn limits(&self) -> impl Iterator<Item = Duration> {
        self.limits.0.iter().map(|(_, at_most)| at_most.value.0)
    }

    pub(crate) fn span(&self) -> &Span {
        &self.place
    }

    pub(crate) fn achieved_span(&self) -> Option<&Span> {
        self.achieved.as_ref().map(|achieved| &achieved.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, read_table};

    #[test]
    fn limits_are_read_with_defaults_for_errors_and_arrivals() {
        let table: ObjectiveTable = read_table(
            "limits = { 'request_duration.p95' = '200ms', 'http_req_duration:login.p99' = '1s' }\nerrors = '0.1%'",
        );
        let objective = table.objective();
        let limits: Vec<(String, f64)> =
            objective.limits.iter().map(|limit| (limit.measure.to_string(), limit.at_most)).collect();
        assert_eq!(limits, [("request_duration.p95".to_owned(), 0.2), ("request_duration:login.p99".to_owned(), 1.0)]);
        assert_eq!((objective.errors, objective.achieved), (0.001, 0.99));
    }

    #[test]
    fn what_cannot_be_a_limit_is_named() {
        for (text, says) in [
            ("errors = '1%'", "`limits` is missing"),
            ("limits = {}", "`objective.limits` is empty"),
            ("limits = { request_duration.p95 = '1s' }", "write measures in quotes"),
            ("limits = { 'request_duration.p95' = 0.2 }", "must be a duration"),
            ("limits = { 'request_duration.p95' = '0s' }", "must be above zero"),
            ("limits = { 'errors.ratio' = '1s' }", "for errors write `errors`"),
            ("limits = { 'iterations.rate' = '1s' }", "cannot have a limit"),
            ("limits = { 'request_duration.p0' = '1s' }", "must be a measure"),
            ("limits = { 'request_duration.p95' = '1s' }\nerrors = 0", "above 0"),
        ] {
            let faults = faults_of::<ObjectiveTable>(text).join("\n");
            assert!(faults.contains(says), "{text}: {faults}");
        }
    }
}
