//! Findings about counters that a server reports late.

use crate::database::{Cell, DatabaseReport};
use crate::findings::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::{percent, show};
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::measure::Unit;

/// The interval at which a session of PostgreSQL reports its counters, in seconds.
const POSTGRESQL_REPORT_INTERVAL: f64 = 1.0;

/// Share by which a server's rate may be off before it is reported.
const MAX_RATE_ERROR: f64 = 0.1;

/// PostgreSQL's sessions keep their own counts and report them later: in a short measure phase a
/// good part is reported after it, or part of the warm-up within it.
pub(super) fn counters_reported_late(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let reports_late = |facts: &DatabaseFacts| report.is_sql && facts.version.starts_with("PostgreSQL");
    let late: Vec<&TrialReader<'_>> =
        context.counted().filter(|reader| reader.trial().databases().iter().any(reports_late)).collect();
    // A slice is read at its begin and end, like a trial.
    let turns = context.input.plan.design.turns();
    let measured = |reader: &&TrialReader<'_>| {
        turns.map_or_else(|| reader.load().counted_seconds(), |turns| turns.slice.as_secs_f64())
    };
    let shortest = late.iter().map(measured).reduce(f64::min)?;
    let (at_a_time, longer) = if turns.is_some() { (" at a time", "slices") } else { ("", "trials") };
    let off = (POSTGRESQL_REPORT_INTERVAL / shortest).min(1.0);
    let cells =
        report.cells.iter().filter(|cell| late.iter().any(|reader| cell.trials.contains(&reader.trial().number())));
    let line = |cell: &Cell| {
        let [commits, done] = [statistic(cell, "commits")?, statistic(cell, "iterations")?];
        let place = format!("{}, {}", context.variant(cell.variant), context.condition(cell.condition));
        let [commits, done] = [commits, done].map(|rate| show(rate, Unit::PerSecond));
        Some(format!("{place}: {commits} of commits by the server's account, {done} of iterations by the generator's"))
    };
    (off > MAX_RATE_ERROR).then(|| Finding {
        severity: Severity::Caution,
        topic: "counters that come late",
        sentence: format!(
            "PostgreSQL's sessions tell what they have counted once a second at most, so its rates of commits, rows and \
             pages may be off by a second's worth: by {} or more here, where {shortest} s were measured{at_a_time}. The \
             generator's numbers and log bytes do not suffer from that, shares such as the hit ratio hardly; longer {longer} \
             help.",
            percent(off)
        ),
        evidence: cells.filter_map(line).collect(),
    })
}

/// The mean of the counter with this name, from any source.
fn statistic(cell: &Cell, name: &str) -> Option<f64> {
    cell.statistics.iter().find(|one| one.name == name).map(|one| one.mean)
}
