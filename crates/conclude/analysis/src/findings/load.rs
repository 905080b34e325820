//! Findings about the load: whether the measured times are those that the study compares.

use super::{Context, Finding, Severity, examples};
use crate::measure::TrialReader;
use crate::quantity::{grouped, percent, show, significant};
use crate::words;
use plimsoll_model::load::AFTER_FAILURE;
use plimsoll_model::measure::{Measure, Series, Unit};
use plimsoll_model::record::{ErrorKind, Subject, Tally};
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Share of the iteration below which requests are not the main part of it.
const MAIN_SHARE: f64 = 0.8;

/// Shares of variants that differ by no more than this are reported as one.
const MAX_DIFFERENCE_OF_EQUAL_SHARES: f64 = 0.05;

/// Relative tolerance for throughput times duration against the number of users.
const LITTLES_LAW_TOLERANCE: f64 = 0.02;

/// Time that the generator itself may take between two iterations of a user, in seconds.
const GENERATOR_STEP: f64 = 1e-6;

/// Share of busy users below which the others count as idle throughout.
const IDLE_SHARE: f64 = 0.8;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let users = match context.analysis.storage {
        Some(_) => [between_operations(context), None],
        None => [littles_law(context), idle_users(context)],
    };
    [what_is_timed(context), errors(context), failed_without_exchange(context), saturated(context)]
        .into_iter()
        .chain(users)
        .flatten()
        .collect()
}

/// The share of requests in iterations, where iterations decide and consist of much more.
fn what_is_timed(context: &Context<'_>) -> Option<Finding> {
    let of_iterations = |measure: &Measure| matches!(measure.series, Series::IterationDuration | Series::Iterations);
    let headline = crate::catalogue::headline(&context.input.facts).measure;
    let decide = context.input.facts.decide.iter().map(|decision| &decision.measure).chain([&headline]);
    if !decide.into_iter().any(of_iterations) {
        return None;
    }
    let protocol = &context.input.facts.protocol;
    let request = if protocol.is_http() { "request" } else { "call" };
    let mut shares: Vec<(Shares, String)> = (0..context.input.plan.conditions.len())
        .flat_map(|condition| shares_at(context, condition))
        .filter(|(shares, _)| shares.requests < MAIN_SHARE)
        .collect();
    shares.sort_by(|one, other| one.0.requests.total_cmp(&other.0.requests));
    let (least, place) = shares.first()?;
    // An iteration of a script covers everything that the script does.
    let is_script = *protocol == Protocol::Script;
    let rest = match (is_script, least.connecting > 0.5) {
        (false, true) => "mostly connecting",
        (false, false) => "connecting, waiting and closing",
        (true, _) => "the script's own work, its sleeps and connecting",
    };
    let connects = !is_script && least.connecting > 0.1;
    let remedy = if connects { ", or keep connections open between iterations" } else { "" };
    let waiting = if is_script { "the script and its sleeps" } else { "waiting and closing" };
    let duration = Series::RequestDuration(None).to_string();
    Some(Finding {
        severity: Severity::Caution,
        topic: "what is timed",
        sentence: format!(
            "Only {} of the time of an iteration is the {request} itself at {place}; the rest is {rest}. So \
             iteration_duration and throughput compare that as well: where the {request} alone is meant, let {duration} \
             decide{remedy}.",
            percent(least.requests)
        ),
        evidence: shares
            .iter()
            .map(|(shares, place)| {
                let rest = (1.0 - shares.requests - shares.connecting).max(0.0);
                format!(
                    "{place}: {request}s {}, connecting {}, {waiting} {} of the time of iterations",
                    percent(shares.requests),
                    percent(shares.connecting),
                    percent(rest)
                )
            })
            .collect(),
    })
}

/// The parts of the iterations' time, as shares.
#[derive(Clone, Copy)]
struct Shares {
    requests: f64,
    connecting: f64,
}

/// The shares under a condition, with the name of the place: of each variant where they differ,
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
    if most - least > MAX_DIFFERENCE_OF_EQUAL_SHARES {
        return of_variants;
    }
    let all = shares_of(context.counted().filter(|reader| reader.trial().condition() == condition));
    all.map(|shares| (shares, name)).into_iter().collect()
}

fn shares_of<'a>(trials: impl Iterator<Item = &'a TrialReader<'a>>) -> Option<Shares> {
    let (mut requests, mut connecting, mut iterations) = (0.0, 0.0, 0.0);
    for reader in trials {
        requests += total(Some(reader.requests()));
        connecting += total(reader.tally(&Subject::Connect));
        iterations += total(reader.tally(&Subject::Iteration));
    }
    (iterations > 0.0).then(|| Shares { requests: requests / iterations, connecting: connecting / iterations })
}

/// The total time in a tally, in seconds.
fn total(tally: Option<&plimsoll_model::record::Tally>) -> f64 {
    tally.map_or(0.0, |tally| tally.service.mean() * tally.count() as f64 / 1e9)
}

/// The number of busy users of a trial, by throughput and duration.
struct BusyUsers {
    users: f64,
    /// The share of users that throughput × (duration + think time) accounts for.
    share: f64,
    /// The range of the share if all users were busy.
    allowed: RangeInclusive<f64>,
}

impl BusyUsers {
    /// Little's law: in a closed loop every user is in an iteration or pauses, so X·(R + Z) = N.
    ///
    /// A count of whole iterations may be off by one for each user, random think times make that of
    /// n iterations scatter by 1/√n, the generator's own step is missing from each, and the
    /// [iterations at the edges](EdgeIterations) of the measure phase add to the law or take from
    /// it.
    fn of(reader: &TrialReader<'_>, think: f64, after_failure: f64) -> Option<BusyUsers> {
        let users = users(reader)?;
        let value = |measure: &str| reader.value(&measure.parse().expect("a measure")).ok();
        let (rate, duration) = (value("iterations.rate")?, value("iteration_duration.avg")?);
        let seconds = reader.load().counted_seconds();
        let cycle = duration + think;
        let by_chance = if think > 0.0 { 3.0 / value("iterations.count")?.sqrt() } else { 0.0 };
        let tolerance = LITTLES_LAW_TOLERANCE.max(cycle / seconds).max(by_chance);
        let edges = EdgeIterations::of(reader);
        let share_of = |time: f64| time / (users * seconds);
        let own_steps = rate * GENERATOR_STEP / users;
        let allowed = 1.0 - tolerance - own_steps - share_of(edges.before)..=1.0 + tolerance + share_of(edges.after);
        Some(BusyUsers { users, share: rate * cycle / users + share_of(after_failure), allowed })
    }

    fn is_off(&self) -> bool {
        !self.allowed.contains(&self.share)
    }

    fn in_words(&self) -> String {
        format!(
            "throughput × (duration + think time) keeps {} of {} busy ({})",
            significant(self.share * self.users),
            words::counted(self.users as usize, "user"),
            percent(self.share)
        )
    }
}

/// The time, in seconds, of the iterations that cross an edge of the measured window.
///
/// Iterations that end after the measure phase are part of its durations as a whole, and those that
/// began before it are not. Each user has one at either edge. It is longer than others: a long
/// iteration covers a given instant more often than a short one, and where the system stalls, all
/// users wait in one that may be many times the mean. In a short trial these iterations are a good
/// part of the total time.
struct EdgeIterations {
    before: f64,
    after: f64,
}

impl EdgeIterations {
    fn of(reader: &TrialReader<'_>) -> EdgeIterations {
        let load = reader.load();
        let ended = |when: &dyn Fn(i64) -> bool| -> f64 {
            let rows = load.seconds.iter().filter(|row| row.subject == Subject::Iteration && when(row.second));
            rows.map(|row| row.count as f64 * row.mean / 1e9).sum()
        };
        let within = ended(&|second| load.counts_second(second));
        let window = load.summary.timing.window.seconds();
        let after = ended(&|second| second as f64 >= window && !load.counts_second(second));
        let begun_within = total(reader.tally(&Subject::Iteration));
        EdgeIterations { before: (within + after - begun_within).max(0.0), after }
    }
}

/// Closed loops with the same think time in all trials, and the busy users of each.
fn busy<'a>(context: &'a Context<'_>) -> Vec<(&'a TrialReader<'a>, BusyUsers)> {
    let Some(think) = context.input.facts.mean_think.filter(|_| !context.input.facts.open_load) else {
        return Vec::new();
    };
    let blocks = context.analysis.storage.is_some() || context.input.facts.protocol == Protocol::Sql;
    let busy = |reader: &TrialReader<'_>| BusyUsers::of(reader, think, paused_after_failures(reader, think, blocks));
    context.counted().filter_map(|reader| Some((reader, busy(reader)?))).collect()
}

/// The time, in seconds, in which users paused only because an iteration had failed. Users whose
/// calls block do so after every failure except a conflict, others where there is no connection. What a request has
/// failed by may also have ended a connection that was made, so only the failures of connecting tell of the other kinds.
fn paused_after_failures(reader: &TrialReader<'_>, think: f64, blocks: bool) -> f64 {
    let failed = |subject: &Subject, pauses: &dyn Fn(ErrorKind) -> bool| -> u64 {
        let errors = reader.tally(subject).map(|tally| &tally.errors).into_iter().flatten();
        errors.filter(|(kind, _)| pauses(**kind)).map(|(_, count)| count).sum()
    };
    let without_connection = |kind: ErrorKind| matches!(kind, ErrorKind::Connect | ErrorKind::Tls);
    let failed = match blocks {
        true => failed(&Subject::Iteration, &|kind| !kind.is_conflict()),
        false => {
            let others = failed(&Subject::Connect, &|kind| !without_connection(kind));
            failed(&Subject::Iteration, &without_connection) + others
        }
    };
    failed as f64 * (AFTER_FAILURE.as_secs_f64() - think).max(0.0)
}

fn littles_law(context: &Context<'_>) -> Option<Finding> {
    let off: Vec<(f64, String)> = busy(context)
        .into_iter()
        .filter(|(_, busy)| busy.is_off() && busy.share >= IDLE_SHARE)
        .map(|(reader, busy)| (busy.share, format!("{}: {}", context.trial(reader), busy.in_words())))
        .collect();
    let worst =
        off.iter().map(|(ratio, _)| *ratio).max_by(|one, other| (one - 1.0).abs().total_cmp(&(other - 1.0).abs()))?;
    Some(Finding {
        severity: Severity::Caution,
        topic: "Little's law",
        sentence: format!(
            "In {} of {} throughput times the time of an iteration with its pause is not the number of users ({} of \
             it at worst): time passes outside iterations, or load was not steady.",
            off.len(),
            context.counted_loads(context.counted().count()),
            percent(worst)
        ),
        evidence: off.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Users that the study asks for and that were hardly ever busy.
fn idle_users(context: &Context<'_>) -> Option<Finding> {
    let idle: Vec<(f64, String)> = busy(context)
        .into_iter()
        .filter(|(_, busy)| busy.is_off() && busy.share < IDLE_SHARE)
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
        severity: Severity::Caution,
        topic: "idle users",
        sentence: format!(
            "In {} of {} far fewer iterations ended than users and think time allow ({} of them at worst): some \
             users got no connection, or no reply, so fewer were at work than the study says.",
            idle.len(),
            context.counted_loads(context.counted().count()),
            percent(worst)
        ),
        evidence: idle.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Work of storage users that is not timed: deleting objects to make room, writing the objects to
/// read, dropping them from the page cache.
fn between_operations(context: &Context<'_>) -> Option<Finding> {
    let mut shares: Vec<(f64, String)> = busy(context)
        .into_iter()
        .filter(|(_, busy)| busy.is_off())
        .map(|(reader, busy)| (busy.share, format!("{}: {}", context.trial(reader), busy.in_words())))
        .collect();
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (least, _) = shares.first()?;
    Some(Finding {
        severity: Severity::Note,
        topic: "between operations",
        sentence: format!(
            "In {} of {} users spent time between operations that is not timed ({} of their time was timed, at worst): deleting \
             old objects, dropping them from the page cache, counting what lies there. Durations leave it out, and rates per \
             second hold it.",
            shares.len(),
            context.counted_loads(context.counted().count()),
            percent(*least)
        ),
        evidence: shares.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Connections that were made by the end of the measure phase, including the warm-up; none where no
/// attempt was recorded.
fn connections(reader: &TrialReader<'_>) -> Option<u64> {
    let window = reader.load().summary.timing.window.seconds();
    let rows =
        reader.load().seconds.iter().filter(|row| row.subject == Subject::Connect && (row.second as f64) < window);
    rows.map(|row| row.count - row.failed.min(row.count)).reduce(|one, other| one + other)
}

/// The number of users of a trial, if it was constant in the measure phase.
fn users(reader: &TrialReader<'_>) -> Option<f64> {
    let load = reader.load();
    // At the very end of the window some users have already left.
    let mut rows = load.generator.iter().filter(|row| load.counts_second(row.second + 1) && row.second >= load.cut);
    let first = rows.next()?.users;
    (first > 0 && rows.all(|row| row.users == first)).then_some(first as f64)
}

/// The failures in a cell.
#[derive(Default)]
pub(super) struct Failures {
    pub(super) failed: u64,
    /// The number of attempts.
    of: u64,
    kinds: BTreeMap<ErrorKind, u64>,
}

impl Failures {
    /// Adds what a tally counted.
    pub(super) fn add(&mut self, tally: &Tally) {
        self.failed += tally.failed();
        self.of += tally.count();
        for (kind, count) in &tally.errors {
            *self.kinds.entry(*kind).or_default() += count;
        }
    }

    fn in_words(&self, noun: &str) -> String {
        let kinds: Vec<String> =
            self.kinds.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count as f64))).collect();
        format!(
            "{} of {} {noun} ({}): {}",
            grouped(self.failed as f64),
            grouped(self.of as f64),
            percent(self.failed as f64 / self.of as f64),
            kinds.join(", ")
        )
    }
}

/// The failures of each cell, in words.
pub(super) fn in_cells<'a>(
    context: &'a Context<'_>,
    of_cells: &'a BTreeMap<(usize, usize), Failures>,
    noun: &'a str,
) -> impl Iterator<Item = String> + 'a {
    of_cells.iter().map(move |((condition, variant), cell)| {
        format!("{}, {}: {}", context.variant(*variant), context.condition(*condition), cell.in_words(noun))
    })
}

fn errors(context: &Context<'_>) -> Option<Finding> {
    let mut of_cells: BTreeMap<(usize, usize), Failures> = BTreeMap::new();
    for reader in context.counted() {
        let trial = reader.trial();
        of_cells.entry((trial.condition(), trial.variant())).or_default().add(reader.requests());
    }
    of_cells.retain(|_, cell| cell.failed > 0);
    let failed: u64 = of_cells.values().map(|cell| cell.failed).sum();
    let evidence: Vec<String> = in_cells(context, &of_cells, "exchanges")
        .chain(examples(context.counted()).into_iter().map(|example| format!("for example, {example}")))
        .collect();
    (failed > 0).then(|| Finding {
        severity: Severity::Caution,
        topic: "errors",
        sentence: format!(
            "{} exchanges failed. They are part of the durations, time-outs at their limit.",
            grouped(failed as f64)
        ),
        evidence,
    })
}

/// Iterations that failed without a failed exchange: exceptions of scripts, stopped users, loops that
/// did not end.
fn failed_without_exchange(context: &Context<'_>) -> Option<Finding> {
    let mut of_cells: BTreeMap<(usize, usize), Failures> = BTreeMap::new();
    for reader in context.counted() {
        let trial = reader.trial();
        let cell = of_cells.entry((trial.condition(), trial.variant())).or_default();
        cell.of += reader.tally(&Subject::Iteration).map_or(0, Tally::count);
        for (kind, count) in reader.failed_without_exchange() {
            cell.failed += count;
            *cell.kinds.entry(kind).or_default() += count;
        }
    }
    of_cells.retain(|_, cell| cell.failed > 0);
    let failed: u64 = of_cells.values().map(|cell| cell.failed).sum();
    let examples_of_trials =
        context.counted().filter_map(|reader| reader.load().summary.replies.error_examples.get("iteration"));
    let example = examples_of_trials.flat_map(BTreeMap::values).next().map(|text| format!("for example, {text}"));
    (failed > 0).then(|| Finding {
        severity: Severity::Caution,
        topic: "iterations",
        sentence: format!(
            "{} iterations failed by themselves and not in an exchange: an exception, a limit, or a loop that did not come \
             to its end. They are part of the errors.",
            grouped(failed as f64)
        ),
        evidence: in_cells(context, &of_cells, "iterations").chain(example).collect(),
    })
}

fn saturated(context: &Context<'_>) -> Option<Finding> {
    let count: u64 =
        context.counted().flat_map(|reader| reader.load().tallies.values()).map(|tally| tally.saturated).sum();
    let longest = show(plimsoll_model::record::LONGEST as f64 / 1e9, Unit::Seconds);
    (count > 0).then(|| Finding {
        severity: Severity::Caution,
        topic: "saturated",
        sentence: format!("{} durations above {longest} are counted as {longest}.", grouped(count as f64)),
        evidence: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{input, only_trial, start};
    use crate::{Input, analyse};
    use plimsoll_model::record::Tally;
    use plimsoll_model::result::{GeneratorRow, LoadSecond, StartResult};
    use plimsoll_model::units::Nanos;

    /// Begin and end of an iteration, in milliseconds from the start of the measure phase.
    type Span = (i64, i64);

    /// The records of users with these iterations each, in a measure phase of this many seconds.
    fn closed_loop(users: &[Vec<Span>], seconds: i64) -> StartResult {
        let window = seconds * 1000;
        let mut result = start(1.0);
        result.loads[0].summary.timing.window = Nanos(window as u64 * 1_000_000);
        result.loads[0].generator = (0..seconds)
            .map(|second| GeneratorRow { second, users: users.len() as u64, ..GeneratorRow::default() })
            .collect();
        let mut tally = Tally::default();
        let mut ended: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (begin, end) in users.iter().flatten() {
            let took = (end - begin) as u64 * 1_000_000;
            ended.entry(end.div_euclid(1000)).or_default().push(took as f64);
            if (0..window).contains(begin) {
                tally.service.record(took).expect("in range");
            }
        }
        let row = |(second, took): (i64, Vec<f64>)| LoadSecond {
            count: took.len() as u64,
            mean: took.iter().sum::<f64>() / took.len() as f64,
            ..LoadSecond::empty(second, Subject::Iteration)
        };
        result.loads[0].seconds = ended.into_iter().map(row).collect();
        result.loads[0].tallies = [(Subject::Iteration, tally)].into();
        result
    }

    /// Iterations of 10 ms without a pause, from `from` up to `until`.
    fn short(from: i64, until: i64) -> Vec<Span> {
        (from..until).step_by(10).map(|begin| (begin, begin + 10)).collect()
    }

    fn busy(result: &StartResult) -> BusyUsers {
        BusyUsers::of(&TrialReader::new(only_trial(result)), 0.0, 0.0).expect("a closed loop")
    }

    fn topics(result: &StartResult) -> Vec<&'static str> {
        analyse(&alike(result)).findings.iter().map(|finding| finding.topic).collect()
    }

    fn alike(result: &StartResult) -> Input {
        input(3, |_| result.clone())
    }

    #[test]
    fn users_that_are_busy_all_the_time_keep_littles_law() {
        let found = busy(&closed_loop(&vec![short(-1000, 3000); 4], 3));
        assert!((found.share - 1.0).abs() < 1e-3 && !found.is_off(), "{}", found.in_words());
    }

    #[test]
    fn a_stall_over_the_end_of_a_short_trial_is_no_breach_of_littles_law() {
        // All users wait from 2.8 s to 3.4 s: 0.4 s of each lie after the end, 4/30 of the phase.
        let stalled = || [short(-1000, 2800), vec![(2800, 3400)]].concat();
        let result = closed_loop(&vec![stalled(); 4], 3);
        let found = busy(&result);
        assert!((found.share - 34.0 / 30.0).abs() < 1e-3, "{}", found.in_words());
        assert!((found.allowed.end() - (1.02 + 0.6 / 3.0)).abs() < 1e-3, "{:?}", found.allowed);
        assert!(!topics(&result).contains(&"Little's law"));
    }

    #[test]
    fn a_stall_over_the_start_of_a_short_trial_is_none_either() {
        let stalled = || [short(-1000, -200), vec![(-200, 400)], short(400, 3000)].concat();
        let found = busy(&closed_loop(&vec![stalled(); 4], 3));
        assert!((found.share - 26.0 / 30.0).abs() < 0.01 && !found.is_off(), "{}", found.in_words());
        assert!((found.allowed.start() - (0.98 - 0.6 / 3.0)).abs() < 1e-3, "{:?}", found.allowed);
    }

    #[test]
    fn time_that_passes_outside_iterations_is_found_in_a_long_trial() {
        // After each 10 ms the generator takes 0.4 ms for itself: 4 %; with a stall at the end.
        let slow = |user: i64| (0..2900).map(move |n| (n * 10 + n * 2 / 5 + user, n * 10 + n * 2 / 5 + user + 10));
        let users: Vec<Vec<Span>> = (0..4).map(|user| slow(user).chain([(30_200, 30_400)]).collect()).collect();
        let result = closed_loop(&users, 30);
        assert!(busy(&result).is_off(), "{}", busy(&result).in_words());
        assert!(topics(&result).contains(&"Little's law"));
    }

    #[test]
    fn the_pause_after_a_failure_is_time_of_the_users() {
        // Every second iteration fails, and 10 ms follow it: iterations are 2/3 of the time.
        let user: Vec<Span> = (0..100).flat_map(|n| [(n * 30, n * 30 + 10), (n * 30 + 10, n * 30 + 20)]).collect();
        let mut result = closed_loop(&[user.clone(), user], 3);
        let failed = |result: &mut StartResult, kind| {
            let tally = result.loads[0].tallies.get_mut(&Subject::Iteration).expect("iterations");
            tally.errors = [(kind, 200)].into();
        };
        for (kind, protocol, off) in [
            (ErrorKind::Connect, Protocol::Grpc, false),
            (ErrorKind::Status, Protocol::Grpc, true),
            (ErrorKind::Constraint, Protocol::Sql, false),
            (ErrorKind::Deadlock, Protocol::Sql, true),
        ] {
            failed(&mut result, kind);
            let mut input = alike(&result);
            input.facts.protocol = protocol.clone();
            let found = analyse(&input).findings.iter().any(|finding| finding.topic == "idle users");
            assert_eq!(found, off, "{kind} over {protocol}");
        }

        failed(&mut result, ErrorKind::Protocol);
        let tallies = &mut result.loads[0].tallies;
        let refused = tallies.get(&Subject::Iteration).expect("iterations").clone();
        tallies.insert(Subject::Connect, refused);
        assert!(!topics(&result).contains(&"idle users"), "servers that end connections in their handshake");
    }
}
