//! Whether what was timed is what the study means to compare.

use super::{Context, Finding, Gravity, examples};
use crate::measure::Reader;
use crate::quantity::{grouped, percent, show};
use crate::words;
use plimsoll_model::measure::{Measure, Series, Unit};
use plimsoll_model::record::{ErrorKind, Subject};
use std::collections::BTreeMap;

/// A share of the iteration below which requests are not what is mainly timed.
const MAINLY: f64 = 0.8;

/// Shares of variants that differ by no more than this are told as one.
const ALIKE: f64 = 0.05;

/// How far throughput times duration may be from the number of users.
const LITTLE: f64 = 0.02;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [what_is_timed(context), littles_law(context), errors(context), saturated(context)].into_iter().flatten().collect()
}

/// The requests' share of the iteration, where iterations decide and there is much more in them.
fn what_is_timed(context: &Context<'_>) -> Option<Finding> {
    let of_iterations = |measure: &Measure| matches!(measure.series, Series::IterationDuration | Series::Iterations);
    let headline = crate::headline(&context.input.facts).measure;
    let decide = context.input.facts.decide.iter().map(|decision| &decision.measure).chain([&headline]);
    if !decide.into_iter().any(of_iterations) {
        return None;
    }
    let protocol = &context.input.facts.protocol;
    let request = if protocol.to_ascii_lowercase().starts_with("http") { "request" } else { "call" };
    let mut shares: Vec<(Shares, String)> = (0..context.input.plan.conditions.len())
        .flat_map(|condition| shares_at(context, condition))
        .filter(|(shares, _)| shares.requests < MAINLY)
        .collect();
    shares.sort_by(|one, other| one.0.requests.total_cmp(&other.0.requests));
    let (least, place) = shares.first()?;
    let rest = if least.connecting > 0.5 { "mostly connecting" } else { "connecting, waiting and closing" };
    let duration = words::series(&Series::RequestDuration(None), protocol);
    Some(Finding {
        gravity: Gravity::Caution,
        topic: "what is timed",
        sentence: format!(
            "Only {} of the time of an iteration is the {request} itself at {place}; the rest is {rest}. So \
             iteration_duration and throughput compare that as well: where the {request} alone is meant, let {duration} \
             decide, or keep connections open between iterations.",
            percent(least.requests)
        ),
        evidence: shares
            .iter()
            .map(|(shares, place)| {
                let rest = (1.0 - shares.requests - shares.connecting).max(0.0);
                format!(
                    "{place}: {request}s {}, connecting {}, waiting and closing {} of the time of iterations",
                    percent(shares.requests),
                    percent(shares.connecting),
                    percent(rest)
                )
            })
            .collect(),
    })
}

/// What the time of iterations goes to, as shares of it.
#[derive(Clone, Copy)]
struct Shares {
    requests: f64,
    connecting: f64,
}

/// The shares under a condition with the name of the place: of each variant where they differ,
/// otherwise of all together.
fn shares_at(context: &Context<'_>, condition: usize) -> Vec<(Shares, String)> {
    let name = context.condition(condition);
    let of_variants: Vec<(Shares, String)> = (0..context.input.plan.variants.len())
        .filter_map(|variant| {
            let shares = shares_of(context.counted().filter(|reader| reader.is_of(condition, variant)))?;
            Some((shares, format!("{name}, {}", context.variant(variant))))
        })
        .collect();
    let requests = of_variants.iter().map(|(shares, _)| shares.requests);
    let (least, most) = (requests.clone().fold(1.0, f64::min), requests.fold(0.0, f64::max));
    if most - least > ALIKE {
        return of_variants;
    }
    let all = shares_of(context.counted().filter(|reader| reader.trial().condition == condition));
    all.map(|shares| (shares, name)).into_iter().collect()
}

fn shares_of<'a>(trials: impl Iterator<Item = &'a Reader<'a>>) -> Option<Shares> {
    let (mut requests, mut connecting, mut iterations) = (0.0, 0.0, 0.0);
    for reader in trials {
        requests += total(Some(reader.requests()));
        connecting += total(reader.tally(&Subject::Connect));
        iterations += total(reader.tally(&Subject::Iteration));
    }
    (iterations > 0.0).then(|| Shares { requests: requests / iterations, connecting: connecting / iterations })
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
