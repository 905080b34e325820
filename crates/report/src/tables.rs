//! The numbers as CSV, for other programs: tidy, in base units, nothing rounded.

use plimsoll_analysis::estimate::Interval;
use plimsoll_analysis::measure::Reader;
use plimsoll_analysis::{Analysis, Input, words};
use plimsoll_model::factor::Assignment;
use plimsoll_model::measure::Unit;

/// A row for each trial and measure; the levels of the factors have columns of their own.
pub(crate) fn results(input: &Input, analysis: &Analysis) -> String {
    let mut table = Table::default();
    let factors = factors(input);
    table.row(
        ["trial", "block", "repeat", "position", "started_utc"]
            .into_iter()
            .map(str::to_owned)
            .chain(factors.iter().cloned())
            .chain(["validity", "measure", "unit", "value", "missing"].map(str::to_owned)),
    );
    for result in &input.trials {
        let reader = Reader::new(result);
        let trial = reader.trial();
        let assignment = input.plan.assignment(&trial);
        for measure in &analysis.measures {
            let value = reader.value(measure);
            let start = [trial.number, trial.block, trial.repeat, trial.position].map(|number| number.to_string());
            table.row(
                start
                    .into_iter()
                    .chain([crate::text::utc(result.summary.started_unix_ms)])
                    .chain(factors.iter().map(|name| level(&assignment, name)))
                    .chain([words::validity(&result.summary.validity).to_owned(), measure.to_string()])
                    .chain([unit(measure.unit())])
                    .chain([number(value.as_ref().ok().copied()), value.err().unwrap_or_default()]),
            );
        }
    }
    table.text()
}

/// A row for each condition, variant and measure.
pub(crate) fn comparisons(input: &Input, analysis: &Analysis) -> String {
    let mut table = Table::default();
    table.row(
        [
            "condition",
            "variant",
            "baseline",
            "measure",
            "n",
            "ratio",
            "low95",
            "high95",
            "least",
            "largest",
            "verdict",
            "reason",
            "dropped",
        ]
        .map(str::to_owned),
    );
    let baseline = input.plan.variants[0].label();
    for one in &analysis.comparisons {
        let ratio = one.ratio.as_ref().ok();
        let interval = ratio.and_then(|ratio| ratio.interval.clone().ok());
        let no_interval = ratio.and_then(|ratio| ratio.interval.clone().err());
        let reason = one.ratio.clone().err().or(no_interval).unwrap_or_default();
        let verdict = one.verdict.as_ref();
        table.row([
            input.plan.conditions[one.condition].to_string(),
            input.plan.variants[one.variant].label(),
            baseline.clone(),
            one.measure.to_string(),
            one.pairs.len().to_string(),
            number(ratio.map(|ratio| ratio.value)),
            number(interval.map(|interval: Interval| interval.low)),
            number(interval.map(|interval| interval.high)),
            number(ratio.map(|ratio| ratio.range.low)),
            number(ratio.map(|ratio| ratio.range.high)),
            verdict.map(|verdict| verdict.outcome.to_string()).unwrap_or_default(),
            verdict.map_or(reason, |verdict| verdict.reason.clone()),
            one.dropped.len().to_string(),
        ]);
    }
    table.text()
}

fn factors(input: &Input) -> Vec<String> {
    let first = input.plan.variants.iter().zip(&input.plan.conditions).next();
    first
        .map(|(variant, condition)| variant.and(condition).0.into_iter().map(|(name, _)| name).collect())
        .unwrap_or_default()
}

fn level(assignment: &Assignment, factor: &str) -> String {
    assignment.get(factor).map(ToString::to_string).unwrap_or_default()
}

/// As in the JSON: `seconds`, `per_second`.
fn unit(unit: Unit) -> String {
    let name = serde_json::to_value(unit).expect("a unit is a plain name");
    name.as_str().expect("a unit is a plain name").to_owned()
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// CSV that is written to memory.
struct Table(csv::Writer<Vec<u8>>);

impl Default for Table {
    fn default() -> Self {
        Table(csv::Writer::from_writer(Vec::new()))
    }
}

impl Table {
    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.write_record(cells).expect("memory takes every row, and rows are equally long");
    }

    fn text(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes every row");
        String::from_utf8(bytes).expect("cells are text")
    }
}
