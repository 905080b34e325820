//! Whether what was timed is what the study means to compare.

use super::{Context, Finding, Gravity, examples};
use crate::measure::Reader;
use crate::quantity::{grouped, percent, show};
use plimsoll_model::measure::Unit;
use plimsoll_model::record::{ErrorKind, Subject};
use std::collections::BTreeMap;

/// A share of the iteration below which the call is not what is mainly timed.
const MAINLY: f64 = 0.8;

/// How far throughput times duration may be from the number of users.
const LITTLE: f64 = 0.02;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [what_is_timed(context), littles_law(context), errors(context), saturated(context)].into_iter().flatten().collect()
}

/// The call's share of the iteration, where there is more in the iteration than calls.
fn what_is_timed(context: &Context<'_>) -> Option<Finding> {
    let mut shares = Vec::new();
    for condition in 0..context.input.plan.conditions.len() {
        let trials: Vec<&Reader<'_>> =
            context.counted().filter(|reader| reader.trial().condition == condition).collect();
        let calls: f64 = trials.iter().map(|reader| total(Some(reader.requests()))).sum();
        let connects: f64 = trials.iter().map(|reader| total(reader.tally(&Subject::Connect))).sum();
        let iterations: f64 = trials.iter().map(|reader| total(reader.tally(&Subject::Iteration))).sum();
        if iterations > 0.0 && calls / iterations < MAINLY {
            shares.push((calls / iterations, connects / iterations, condition));
        }
    }
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (least, connecting, condition) = *shares.first()?;
    let mostly = if connecting > 0.5 { ": what is timed there is mostly connecting" } else { "" };
    Some(Finding {
        gravity: Gravity::Caution,
        topic: "what is timed",
        sentence: format!(
            "The call is {} of the iteration at {}{mostly}.",
            percent(least),
            context.condition(condition)
        ),
        evidence: shares
            .iter()
            .map(|(calls, connects, condition)| {
                let rest = (1.0 - calls - connects).max(0.0);
                format!(
                    "{}: calls {}, connecting {}, waiting and closing {} of the time of iterations",
                    context.condition(*condition),
                    percent(*calls),
                    percent(*connects),
                    percent(rest)
                )
            })
            .collect(),
    })
}

/// The time of everything in a tally together, in seconds.
fn total(tally: Option<&plimsoll_model::record::Tally>) -> f64 {
    tally.map_or(0.0, |tally| tally.service.mean() * tally.count() as f64 / 1e9)
}

/// In a closed loop without think time every user is always in an iteration: X·R = N.
fn littles_law(context: &Context<'_>) -> Option<Finding> {
    if context.input.facts.open_load || !never_thinks(&context.input.facts.load) {
        return None;
    }
    let off: Vec<(f64, String)> = context
        .counted()
        .filter_map(|reader| {
            let (busy, users) = (busy_users(reader)?, users(reader)?);
            let text = format!(
                "{}: throughput × duration keeps {busy:.1} of {users:.0} users busy ({})",
                context.trial(reader),
                percent(busy / users)
            );
            ((busy / users - 1.0).abs() > LITTLE).then_some((busy / users, text))
        })
        .collect();
    let worst =
        off.iter().map(|(ratio, _)| *ratio).max_by(|one, other| (one - 1.0).abs().total_cmp(&(other - 1.0).abs()))?;
    Some(Finding {
        gravity: Gravity::Caution,
        topic: "Little's law",
        sentence: format!(
            "In {} of {} trials throughput times iteration_duration is more than 2 % off the number of users ({} of it at \
             worst): time passes outside iterations, or load was not steady.",
            off.len(),
            context.counted().count(),
            percent(worst)
        ),
        evidence: off.into_iter().map(|(_, text)| text).collect(),
    })
}

/// The facts tell the load in words only.
fn never_thinks(load: &str) -> bool {
    load.contains("no think time")
}

fn busy_users(reader: &Reader<'_>) -> Option<f64> {
    let rate = reader.value(&"iterations.rate".parse().expect("a measure")).ok()?;
    let duration = reader.value(&"iteration_duration.avg".parse().expect("a measure")).ok()?;
    Some(rate * duration)
}

/// The users of a trial whose number never changed in the measure phase.
fn users(reader: &Reader<'_>) -> Option<f64> {
    let window = reader.result().summary.window.seconds().ceil() as i64;
    // At the very end of the window users leave already.
    let mut rows = reader.result().generator.iter().filter(|row| (0..window - 1).contains(&row.second));
    let first = rows.next()?.users;
    (first > 0 && rows.all(|row| row.users == first)).then_some(first as f64)
}

/// What failed in a cell.
#[derive(Default)]
struct Failures {
    failed: u64,
    exchanges: u64,
    kinds: BTreeMap<ErrorKind, u64>,
}

impl Failures {
    fn in_words(&self) -> String {
        let kinds: Vec<String> =
            self.kinds.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count as f64))).collect();
        format!(
            "{} of {} exchanges ({}): {}",
            grouped(self.failed as f64),
            grouped(self.exchanges as f64),
            percent(self.failed as f64 / self.exchanges as f64),
            kinds.join(", ")
        )
    }
}

fn errors(context: &Context<'_>) -> Option<Finding> {
    let mut of_cells: BTreeMap<(usize, usize), Failures> = BTreeMap::new();
    for reader in context.counted() {
        let trial = reader.trial();
        let cell = of_cells.entry((trial.condition, trial.variant)).or_default();
        cell.failed += reader.requests().failed();
        cell.exchanges += reader.requests().count();
        for (kind, count) in &reader.requests().errors {
            *cell.kinds.entry(*kind).or_default() += count;
        }
    }
    of_cells.retain(|_, cell| cell.failed > 0);
    let failed: u64 = of_cells.values().map(|cell| cell.failed).sum();
    let evidence: Vec<String> = of_cells
        .iter()
        .map(|((condition, variant), cell)| {
            format!("{}, {}: {}", context.variant(*variant), context.condition(*condition), cell.in_words())
        })
        .chain(examples(context.counted()).into_iter().map(|example| format!("for example, {example}")))
        .collect();
    (failed > 0).then(|| Finding {
        gravity: Gravity::Caution,
        topic: "errors",
        sentence: format!(
            "{} exchanges failed. They are part of the durations, time-outs at their limit.",
            grouped(failed as f64)
        ),
        evidence,
    })
}

fn saturated(context: &Context<'_>) -> Option<Finding> {
    let count: u64 =
        context.counted().flat_map(|reader| reader.result().tallies.values()).map(|tally| tally.saturated).sum();
    let longest = show(plimsoll_model::record::LONGEST as f64 / 1e9, Unit::Seconds);
    (count > 0).then(|| Finding {
        gravity: Gravity::Caution,
        topic: "saturated",
        sentence: format!("{} durations above {longest} are counted as {longest}.", grouped(count as f64)),
        evidence: Vec::new(),
    })
}
