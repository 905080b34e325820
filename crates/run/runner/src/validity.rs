//! Whether a trial counts: the rules, as pure functions of what was recorded.

#[cfg(test)]
mod tests;

use crate::steady::{Steady, Ticks};
use plimsoll_model::database::{Condition, DatabaseFacts, MixLine};
use plimsoll_model::load::LoadProfile;
use plimsoll_model::record::{ErrorKind, Interval, RecordedPhase, SequenceCheck, Subject};
use plimsoll_model::result::Headroom;
use plimsoll_model::start::Validity;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A loop that did not look for new events for this long delays what it measures by as much.
const LONG_STALL: Nanos = Nanos(100_000_000);

/// A script may name each request anew, after its URL: fewer exchanges of a name than this may all have failed by chance.
const FEW: u64 = 10;

/// Stands for the reason of a failure that left no text.
const UNKNOWN: &str = "nothing is known of why";

/// What the generator found over the whole trial, as far as it matters for the verdict on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// What kept the generator from doing its work.
    pub(crate) faults: &'a [String],
    /// Users that broke a limit of their script.
    pub(crate) broken: &'a [String],
    /// The checks over all replies, by request.
    pub(crate) sequences: &'a BTreeMap<String, SequenceCheck>,
    /// A text for each kind of error, by subject.
    pub(crate) examples: &'a BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// Why users stopped before the load was over, if they did.
    pub(crate) stopped: Option<&'a str>,
    /// What is known of the databases, with what users did on them.
    pub(crate) databases: &'a [DatabaseFacts],
}

impl Record<'_> {
    /// One of the errors of a subject in words.
    fn example_of(&self, subject: &Subject) -> Option<&str> {
        self.examples.get(&subject.to_string())?.values().next().map(String::as_str)
    }

    /// One of all errors in words; a request's before a connection's, which it repeats.
    fn example(&self) -> Option<&str> {
        self.examples.values().rev().flat_map(BTreeMap::values).next().map(String::as_str)
    }
}

/// What is found of a trial: whether it counts, and from where on it is steady.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) validity: Validity,
    /// From where on the measure phase is steady; none where it never is, and where that was not judged.
    pub(crate) steady_from: Option<Nanos>,
    /// Whether it is void for want of a steady state and of nothing else.
    pub(crate) unsteady: bool,
    /// Why it was not judged whether it is steady, though load is meant to be.
    pub(crate) unjudged: Option<String>,
    pub(crate) headroom: Headroom,
}

/// What is gathered from the intervals of a trial while they pass.
#[derive(Debug)]
pub(crate) struct Watch {
    window_seconds: i64,
    /// The longest that the measure phase may take.
    limit: Nanos,
    warmup: Nanos,
    /// Whether the warm-up is longer already, because an earlier attempt found no steady state.
    extended: bool,
    /// Only where load is meant to be steady.
    ticks: Option<Ticks>,
    /// CPU time of the busiest thread over the measure phase.
    busiest: Nanos,
    lateness: hdrhistogram::Histogram<u64>,
    longest_stall: Nanos,
    /// Whether users run a script, which names its requests itself and need not make any.
    script: bool,
    /// What a script has measured, whose names nobody knows before.
    pub(crate) subjects: BTreeSet<Subject>,
    pub(crate) iterations: u64,
    failed_iterations: u64,
    /// Exchanges of each request, and those of them that failed, unless in conflict with one another.
    requests: BTreeMap<String, (u64, u64)>,
    pub(crate) errors: u64,
    saturated: u64,
    /// Exchanges for which a disk had no room.
    without_room: u64,
}

impl Watch {
    /// For a trial under this load, `extended` where its warm-up is longer than the study says.
    pub(crate) fn new(load: &LoadProfile, extended: bool) -> Watch {
        Watch {
            window_seconds: Nanos::from(load.stop.limit()).0.div_ceil(1_000_000_000) as i64,
            limit: load.stop.limit().into(),
            warmup: load.warmup.into(),
            extended,
            ticks: Ticks::of(load),
            busiest: Nanos(0),
            lateness: plimsoll_model::record::histogram(),
            longest_stall: Nanos(0),
            script: false,
            subjects: BTreeSet::new(),
            iterations: 0,
            failed_iterations: 0,
            requests: BTreeMap::new(),
            errors: 0,
            saturated: 0,
            without_room: 0,
        }
    }

    /// The same for users that run a script, or do not.
    pub(crate) fn of_script(self, script: bool) -> Watch {
        Watch { script, ..self }
    }

    /// Takes note of a second.
    pub(crate) fn see(&mut self, interval: &Interval) {
        if (0..self.window_seconds).contains(&interval.second) {
            self.busiest.0 += interval.generator.cpu_busiest.0;
            self.lateness.add(&interval.generator.lateness).expect("a growing histogram takes what an equal one holds");
            self.longest_stall = self.longest_stall.max(interval.generator.stall);
        }
        if let Some(ticks) = &mut self.ticks {
            ticks.see(interval);
        }
        for ((phase, subject), tally) in &interval.tallies {
            if self.script && *phase == RecordedPhase::Measure && !self.subjects.contains(subject) {
                self.subjects.insert(subject.clone());
            }
            match (phase, subject) {
                (RecordedPhase::Warmup, _)
                | (_, Subject::Connect | Subject::Part(..) | Subject::Check(_) | Subject::Custom(..)) => {}
                (RecordedPhase::Measure, Subject::Iteration) => {
                    self.iterations += tally.count();
                    self.failed_iterations += tally.failed();
                }
                (RecordedPhase::Measure, Subject::Request(name)) => {
                    let (made, wrong) = self.requests.entry(name.clone()).or_default();
                    *made += tally.count();
                    // Of a step that is made a few times in a trial, all may have been in conflict.
                    *wrong += tally.errors.iter().filter(|(kind, _)| !kind.is_conflict()).map(|(_, n)| n).sum::<u64>();
                    self.errors += tally.failed();
                    self.saturated += tally.saturated;
                    self.without_room += tally.errors.get(&ErrorKind::Space).copied().unwrap_or_default();
                }
            }
        }
    }

    fn exchanges(&self) -> u64 {
        self.requests.values().map(|(made, _)| made).sum()
    }

    /// Whether no exchange ended, and no iteration of users that need not make any.
    pub(crate) fn measured_nothing(&self) -> bool {
        self.exchanges() == 0 && (!self.script || self.iterations == 0)
    }

    /// The name that all exchanges have, after a comma.
    fn of_one_name(&self) -> String {
        let mut names = self.requests.iter().filter(|(_, (made, _))| *made > 0).map(|(name, _)| name);
        match (names.next(), names.next()) {
            (Some(only), None) => format!(", each of `{only}`"),
            _ => String::new(),
        }
    }

    /// How many exchanges failed, where that is all that there were.
    fn no_exchange_right(&self) -> Option<u64> {
        let all = self.exchanges();
        (all > 0 && self.errors == all).then_some(all)
    }

    /// How many iterations failed, where that is all that there were: a script may throw, and a flow wait in vain,
    /// though every exchange goes right.
    fn no_iteration_right(&self) -> Option<u64> {
        (self.iterations > 0 && self.failed_iterations == self.iterations).then_some(self.iterations)
    }

    /// The requests of which not one went as expected, though they were made.
    fn never_right(&self) -> impl Iterator<Item = (&String, u64)> {
        let least = if self.script { FEW } else { 1 };
        let wrong = self.requests.iter().filter(move |(_, (made, failed))| made == failed && *made >= least);
        wrong.map(|(name, (made, _))| (name, *made))
    }

    /// Whether some of every request went as expected, or none was made, and some iteration did.
    pub(crate) fn worked(&self) -> bool {
        self.no_exchange_right().is_none() && self.never_right().next().is_none() && self.no_iteration_right().is_none()
    }

    /// Whether the trial counts. A wrong reply is the system's failure, whatever the generator
    /// did; a generator at its limit voids the rest, and so does load that should have been steady
    /// and was not.
    pub(crate) fn judge(&self, window: Nanos, generator: &GeneratorSpec, record: &Record<'_>) -> Judgement {
        let headroom = self.headroom(window);
        let unknown =
            Judgement { validity: Validity::Valid, steady_from: None, unsteady: false, unjudged: None, headroom };
        let failures = self.failures(record);
        if !failures.is_empty() {
            return Judgement { validity: Validity::Failed(failures), ..unknown };
        }
        let mut reasons = self.limits(headroom, generator, record.faults);
        reasons.extend(record.databases.iter().flat_map(|facts| &facts.work.mix).filter_map(wrong_input));
        let judgement = match self.ticks.as_ref().map(Ticks::judge) {
            None => unknown,
            // Seconds in which nobody had anything to do say nothing of the system.
            Some(_) if window < self.limit && record.stopped.is_some() => {
                Judgement { unjudged: record.stopped.map(str::to_owned), ..unknown }
            }
            Some(Steady::Unjudged(reason)) => Judgement { unjudged: Some(reason), ..unknown },
            Some(Steady::From(from)) => Judgement { steady_from: Some(from), ..unknown },
            Some(Steady::Never(evidence)) => {
                let unsteady = reasons.is_empty();
                reasons.push(self.never_steady(&evidence));
                Judgement { unsteady, ..unknown }
            }
        };
        let validity = if reasons.is_empty() { Validity::Valid } else { Validity::Void(reasons) };
        Judgement { validity, ..judgement }
    }

    fn never_steady(&self, evidence: &str) -> String {
        let advice = match self.extended {
            true => "it may never settle: look for what grows (a leak, a queue, a data set)",
            false => "let it warm up for longer (`load.warmup`)",
        };
        format!("no steady state after a warm-up of {} s: {evidence}; {advice}", self.warmup.seconds())
    }

    /// How near the generator came to its limits.
    fn headroom(&self, window: Nanos) -> Headroom {
        let busiest = if window.0 == 0 { 0.0 } else { self.busiest.seconds() / window.seconds() };
        Headroom { busiest, lateness: Nanos(self.lateness.value_at_quantile(0.99)) }
    }

    fn failures(&self, record: &Record<'_>) -> Vec<String> {
        let mut failures: Vec<String> = record
            .sequences
            .iter()
            .filter(|(_, check)| !check.holds())
            .map(|(name, check)| wrong_replies(name, check))
            .collect();
        if let Some(all) = self.no_exchange_right() {
            let why = record.example().unwrap_or(UNKNOWN);
            failures.push(format!("all {all} exchanges failed{}: {why}", self.of_one_name()));
        } else if self.measured_nothing()
            && let Some(why) = record.stopped
        {
            failures.push(format!("nothing was measured: {why}"));
        } else if self.never_right().next().is_some() {
            let of = |(name, made): (&String, u64)| {
                let why = record.example_of(&Subject::Request(name.clone())).unwrap_or(UNKNOWN);
                format!("all {made} exchanges of `{name}` failed: {why}")
            };
            failures.extend(self.never_right().map(of));
        } else if let Some(all) = self.no_iteration_right() {
            failures.push(format!("all {all} iterations failed{}", self.why_iterations_failed(record)));
        }
        failures.extend(broken_limits(record.broken));
        failures
    }

    /// What an iteration failed by itself, or else the request that failed most often: one that follows redirects in
    /// vain makes exchanges that go right before the one that does not.
    fn why_iterations_failed(&self, record: &Record<'_>) -> String {
        if let Some(why) = record.example_of(&Subject::Iteration) {
            // Of users that were stopped for good it is told beside.
            let is_told = record.broken.iter().any(|broken| broken == why);
            return if is_told { String::new() } else { format!(": {why}") };
        }
        let known = |(name, (_, failed)): (&'_ String, &(u64, u64))| {
            let why = record.example_of(&Subject::Request(name.clone()))?;
            Some((*failed, format!(", as in `{name}`: {why}")))
        };
        let worst = self.requests.iter().filter_map(known).max_by_key(|(failed, _)| *failed);
        worst.map_or_else(|| format!(": {UNKNOWN}"), |(_, why)| why)
    }

    fn limits(&self, headroom: Headroom, generator: &GeneratorSpec, faults: &[String]) -> Vec<String> {
        let mut limits: Vec<String> =
            faults.iter().map(|fault| format!("the generator could not do its work: {fault}")).collect();
        if headroom.busiest > generator.max_cpu {
            limits.push(format!(
                "the generator was the limit: its busiest thread used {:.0} % of a processor, above {:.0} %; give it more \
                 threads, processors of its own, or less load (`generator`)",
                headroom.busiest * 100.0,
                generator.max_cpu * 100.0
            ));
        }
        if headroom.lateness > generator.max_lateness.into() {
            limits.push(format!(
                "the generator missed its schedule: 1 % of the work that was due started more than {:.1} ms late, above \
                 {:.1} ms",
                headroom.lateness.seconds() * 1e3,
                generator.max_lateness.as_secs_f64() * 1e3
            ));
        }
        if self.without_room > 0 {
            limits.push(format!(
                "a disk was full, or a quota used up, so that {} of {} exchanges failed: make room, or let the data lie \
                 elsewhere",
                self.without_room,
                self.exchanges()
            ));
        }
        if self.measured_nothing() {
            limits.push("nothing was measured: no exchange ended in the measure phase or its drain".to_owned());
        }
        limits
    }

    /// What a reader should know though the trial counts.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.longest_stall > LONG_STALL {
            let stall = self.longest_stall.seconds() * 1e3;
            warnings
                .push(format!("the generator's loop stalled for {stall:.0} ms; the longest durations may be its own"));
        }
        if self.errors > 0 && self.worked() {
            warnings.push(format!("{} of {} exchanges failed", self.errors, self.exchanges()));
        }
        if self.saturated > 0 {
            warnings.push(format!("{} durations over an hour are counted as an hour", self.saturated));
        }
        warnings
    }
}

fn wrong_replies(name: &str, check: &SequenceCheck) -> String {
    format!(
        "wrong replies to `{name}`: expected the numbers 1 to {} once each, found {} repeated, {} missing ({} calls had no \
         reply), {} replies without a number",
        check.largest, check.repeated, check.missing, check.unanswered, check.unreadable
    )
}

/// Says of users that were stopped for good what the first did: with fewer of them it is no longer the load that the
/// study asks for, and the script will do it again.
fn broken_limits(broken: &[String]) -> Option<String> {
    let first = broken.first()?;
    Some(if broken.len() == 1 { first.clone() } else { format!("{first} (the first of {} users)", broken.len()) })
}

/// The conditions on the data of a database that do not hold: it, or what users did to it, is wrong.
pub(crate) fn wrong_data(facts: &DatabaseFacts) -> impl Iterator<Item = String> {
    let broken = facts.conditions.iter().filter(|condition| condition.holds == Some(false));
    broken.map(|condition| {
        let Condition { name, detail, .. } = condition;
        format!("wrong data in `{}`: consistency condition {name} does not hold: {detail}", facts.name)
    })
}

/// Says of what users were given to do that it is not what the specification asks for. That is the
/// generator's fault and not the system's: the trial is void.
fn wrong_input(line: &MixLine) -> Option<String> {
    let MixLine { name, n, found, low, high, holds } = line;
    (!holds).then(|| {
        format!("the generator gave users the wrong work: {name} expected from {low} to {high}, found {found} of {n}")
    })
}

/// Says of which databases not every condition was looked at.
pub(crate) fn not_looked_at(databases: &[DatabaseFacts]) -> Vec<String> {
    let warning = |facts: &DatabaseFacts| {
        let mut left = facts.conditions.iter().filter(|condition| condition.holds.is_none()).peekable();
        let why = left.peek()?.detail.clone();
        let (count, all) = (left.count(), facts.conditions.len());
        Some(format!("{count} of {all} conditions on the data of `{}` were not looked at: {why}", facts.name))
    };
    databases.iter().filter_map(warning).collect()
}
