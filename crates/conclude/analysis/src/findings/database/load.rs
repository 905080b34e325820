//! Findings about the load: failed transactions, a wrong mix, a generator on the same
//! processors, users without think time, too many or too few users.

use super::{sql_trials, warehouses};
use crate::database::{DatabaseReport, MixCheck, Statistic};
use crate::findings::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::{grouped, percent, show};
use crate::words::counted;
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::measure::{Series, Unit};
use plimsoll_model::record::ErrorKind;

/// Terminals of a warehouse of TPC-C.
const TERMINALS_OF_WAREHOUSE: f64 = 10.0;

/// Share of the used processor time that the generator may take before it is reported.
const MAX_GENERATOR_SHARE: f64 = 0.1;

/// Share of a trial's transactions from which on their failures are a problem.
const MAX_FAILED_SHARE: f64 = 0.1;

/// Trials with so many failed transactions that their numbers describe failures.
pub(super) fn failing_transactions(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let mut trials: Vec<(f64, String)> = context
        .counted()
        .filter_map(|reader| {
            let (failed, all) = (reader.requests().failed(), reader.requests().count());
            let share = failed as f64 / all.max(1) as f64;
            let kinds: Vec<String> =
                reader.requests().errors.iter().map(|(kind, count)| of_kind(*kind, *count)).collect();
            let (failed, all) = (grouped(failed as f64), grouped(all as f64));
            let text = format!(
                "{}: {failed} of {all} failed ({}): {}",
                context.trial(reader),
                percent(share),
                kinds.join(", ")
            );
            (report.is_sql && share >= MAX_FAILED_SHARE).then_some((share, text))
        })
        .collect();
    trials.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (most, _) = trials.first()?;
    let counted_alone = match report.throughput.series {
        Series::NewOrders => "NOTPM counts only those that succeeded, while durations count all",
        _ => "durations and iterations per second count them like the others, commits do not",
    };
    Some(Finding {
        severity: Severity::Problem,
        topic: "transactions that fail",
        sentence: format!(
            "In {} {} or more of the transactions failed, up to {}: {counted_alone}. Such a trial measures failing as much as \
             working; retries (`retry`), fewer users or another isolation level change that.",
            context.counted_loads(trials.len()),
            percent(MAX_FAILED_SHARE),
            percent(*most)
        ),
        evidence: trials.into_iter().map(|(_, text)| text).collect(),
    })
}

fn of_kind(kind: ErrorKind, count: u64) -> String {
    format!("{kind} {}", grouped(count as f64))
}

pub(super) fn wrong_mix(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let line = |mix: &MixCheck| {
        let ((least, most), (low, high)) = (mix.observed, mix.allowed);
        let [least, most, low, high] = [least, most, low, high].map(|value| mix.show(value));
        format!(
            "{}: {least} to {most}, where {low} to {high} is right, in {}",
            mix.name,
            context.list_of_trials(&mix.outside)
        )
    };
    let evidence: Vec<String> = report.mix.iter().filter(|mix| !mix.outside.is_empty()).map(line).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "another mix",
        sentence: "In some trials users were not given to do what the workload prescribes: their numbers are those of \
                   another mix."
            .to_owned(),
        evidence,
    })
}

/// A generator that takes processor time from the server.
pub(super) fn shared_processors(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    if !context.input.facts.loopback || !report.is_sql {
        return None;
    }
    let cores = |one: &Statistic| show(one.mean, Unit::Cores);
    let mut shares: Vec<(f64, String)> = report
        .cells
        .iter()
        .filter_map(|cell| {
            let (generator, host) = (cell.statistic("generator", "CPU")?, cell.statistic("host", "CPU")?);
            let share = generator.mean / host.mean;
            let place = format!("{}, {}", context.variant(cell.variant), context.condition(cell.condition));
            let text = format!("{place}: {} of {} in use ({})", cores(generator), cores(host), percent(share));
            (share > MAX_GENERATOR_SHARE).then_some((share, text))
        })
        .collect();
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (most, _) = shares.first()?;
    Some(Finding {
        severity: Severity::Note,
        topic: "one machine",
        sentence: format!(
            "Generator and server share {}; the generator takes up to {} of the processor time in use. Where processors \
             are the limit, a server on a machine of its own carries more.",
            counted(context.input.host.processors, "processor"),
            percent(*most)
        ),
        evidence: shares.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Users without think time request as much as the system can do.
pub(super) fn closed_load(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let closed_load = report.is_sql && !context.input.facts.open_load && context.input.facts.mean_think == Some(0.0);
    closed_load.then(|| Finding {
        severity: Severity::Note,
        topic: "capacity, not response",
        sentence:
            "Users neither type nor think: throughput is the capacity for so many users in a closed loop, and the \
                   time of a transaction is mostly waiting for others. Users who arrive on their own wait otherwise; \
                   Plimsoll's open load (`rate`) measures that."
                .to_owned(),
        evidence: Vec::new(),
    })
}

/// More or fewer users than terminals: TPC-C has ten for each warehouse.
pub(super) fn terminals(context: &Context<'_>) -> Option<Finding> {
    let of = |reader: &TrialReader<'_>, facts: &DatabaseFacts| {
        let terminals = TERMINALS_OF_WAREHOUSE * warehouses(&facts.work.workload)?;
        let users = reader.load().generator.iter().map(|row| row.users).max()?;
        Some((users as f64 / terminals, format!("{} for {terminals:.0} terminals", counted(users as usize, "user"))))
    };
    let mut seen: Vec<(f64, String)> = sql_trials(context).filter_map(|(reader, facts)| of(reader, facts)).collect();
    seen.sort_by(|one, other| one.0.total_cmp(&other.0));
    seen.dedup();
    let other: Vec<String> = seen.into_iter().filter(|(ratio, _)| *ratio != 1.0).map(|(_, text)| text).collect();
    (!other.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "not TPC-C's terminals",
        sentence:
            "TPC-C has ten terminals for each warehouse, each with its own district; here the number of users is \
                   another. More users meet at the same rows, fewer leave districts idle. The numbers are no tpmC, and \
                   must not be set beside published ones."
                .to_owned(),
        evidence: other,
    })
}
