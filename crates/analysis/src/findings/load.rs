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

/// Share of the users below which so few are busy that the others did nothing at all.
const IDLE: f64 = 0.8;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let users = match context.analysis.storage {
        Some(_) => [between_operations(context), None],
        None => [littles_law(context), idle_users(context)],
    };
    [what_is_timed(context), errors(context), saturated(context)].into_iter().chain(users).flatten().collect()
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

/// How many of a trial's users were at work, by what ended and how long it took.
struct Busy {
    users: f64,
    /// The share of them that throughput × (duration + think time) accounts for.
    share: f64,
    /// How far from 1 that may be by chance.
    tolerance: f64,
}

impl Busy {
    /// Little's law: in a closed loop every user is in an iteration or thinks, so X·(R + Z) = N.
    ///
    /// A count of whole iterations may be off by one for each user, and random think times make
    /// that of n iterations scatter by 1/√n.
    fn of(reader: &Reader<'_>, think: f64) -> Option<Busy> {
        let users = users(reader)?;
        let value = |measure: &str| reader.value(&measure.parse().expect("a measure")).ok();
        let (rate, duration) = (value("iterations.rate")?, value("iteration_duration.avg")?);
        let cycle = duration + think;
        let by_chance = if think > 0.0 { 3.0 / value("iterations.count")?.sqrt() } else { 0.0 };
        let tolerance = LITTLE.max(cycle / reader.result().counted_seconds()).max(by_chance);
        Some(Busy { users, share: rate * cycle / users, tolerance })
    }

    fn is_off(&self) -> bool {
        (self.share - 1.0).abs() > self.tolerance
    }

    fn in_words(&self) -> String {
        format!(
            "throughput × (duration + think time) keeps {:.1} of {} users busy ({})",
            self.share * self.users,
            grouped(self.users),
            percent(self.share)
        )
    }
}

/// Closed loops with the same think time in all trials, and what their users did.
fn busy<'a>(context: &'a Context<'_>) -> Vec<(&'a Reader<'a>, Busy)> {
    let Some(think) = context.input.facts.mean_think.filter(|_| !context.input.facts.open_load) else {
        return Vec::new();
    };
    context.counted().filter_map(|reader| Some((reader, Busy::of(reader, think)?))).collect()
}

fn littles_law(context: &Context<'_>) -> Option<Finding> {
    let off: Vec<(f64, String)> = busy(context)
        .into_iter()
        .filter(|(_, busy)| busy.is_off() && busy.share >= IDLE)
        .map(|(reader, busy)| (busy.share, format!("{}: {}", context.trial(reader), busy.in_words())))
        .collect();
    let worst =
        off.iter().map(|(ratio, _)| *ratio).max_by(|one, other| (one - 1.0).abs().total_cmp(&(other - 1.0).abs()))?;
    Some(Finding {
        gravity: Gravity::Caution,
        topic: "Little's law",
        sentence: format!(
            "In {} of {} trials throughput times the time of an iteration with its pause is not the number of users ({} of \
             it at worst): time passes outside iterations, or load was not steady.",
            off.len(),
            context.counted().count(),
            percent(worst)
        ),
        evidence: off.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Users that the study asks for and that hardly did anything.
fn idle_users(context: &Context<'_>) -> Option<Finding> {
    let idle: Vec<(f64, String)> = busy(context)
        .into_iter()
        .filter(|(_, busy)| busy.is_off() && busy.share < IDLE)
        .map(|(reader, busy)| {
            let connections = connections(reader).filter(|made| (*made as f64) < busy.users).map(|made| {
                format!(
                    "; {} were ever made",
                    words::counted(usize::try_from(made).unwrap_or(usize::MAX), "connection")
                )
            });
            let text = format!("{}: {}{}", context.trial(reader), busy.in_words(), connections.unwrap_or_default());
            (busy.share, text)
        })
        .collect();
    let worst = idle.iter().map(|(share, _)| *share).reduce(f64::min)?;
    Some(Finding {
        gravity: Gravity::Caution,
        topic: "idle users",
        sentence: format!(
            "In {} of {} trials far fewer iterations ended than users and think time allow ({} of them at worst): some \
             users got no connection, or no reply, so fewer were at work than the study says.",
            idle.len(),
            context.counted().count(),
            percent(worst)
        ),
        evidence: idle.into_iter().map(|(_, text)| text).collect(),
    })
}

/// What users of storage do that is not timed: deleting what makes room, writing what is to be read,
/// dropping it from the page cache.
fn between_operations(context: &Context<'_>) -> Option<Finding> {
    let mut shares: Vec<(f64, String)> = busy(context)
        .into_iter()
        .filter(|(_, busy)| busy.is_off())
        .map(|(reader, busy)| (busy.share, format!("{}: {}", context.trial(reader), busy.in_words())))
        .collect();
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (least, _) = shares.first()?;
    Some(Finding {
        gravity: Gravity::Note,
        topic: "between operations",
        sentence: format!(
            "In {} of {} trials users spent time between operations that is not timed ({} of their time was timed, at worst): deleting \
             old objects, dropping them from the page cache, counting what lies there. Durations leave it out, and rates per \
             second hold it.",
            shares.len(),
            context.counted().count(),
            percent(*least)
        ),
        evidence: shares.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Connections that were made by the end of the measure phase, warm-up included; none where no
/// attempt was recorded.
fn connections(reader: &Reader<'_>) -> Option<u64> {
    let window = reader.result().summary.window.seconds();
    let rows = reader.result().seconds.iter().filter(|row| row.subject == "connect" && (row.second as f64) < window);
    rows.map(|row| row.count - row.failed.min(row.count)).reduce(|one, other| one + other)
}

/// The users of a trial whose number never changed in the measure phase.
fn users(reader: &Reader<'_>) -> Option<f64> {
    let result = reader.result();
    // At the very end of the window users leave already.
    let mut rows =
        result.generator.iter().filter(|row| result.counts_second(row.second + 1) && row.second >= result.cut);
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
