//! The rules by which a trial counts, as pure functions of its records.

#[cfg(test)]
mod tests;

use crate::steady::{Steady, Ticks};
use plimsoll_model::agent::AgentRecord;
use plimsoll_model::database::{DatabaseFacts, MixLine};
use plimsoll_model::load::{LoadModel, LoadProfile};
use plimsoll_model::record::{ErrorKind, Interval, RecordedPhase, SequenceCheck, Subject};
use plimsoll_model::result::Headroom;
use plimsoll_model::start::Validity;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A stall of the event loop that is long enough for a warning: what it measures is delayed by as much.
const LONG_STALL: Nanos = Nanos(100_000_000);

/// The share of the work that voids a load where it started too late.
const LATE: f64 = 0.01;

/// The same as a number, for closed loops with so little work that the share would be fewer, which chance makes late.
const MANY_LATE: f64 = 10.0;

/// The largest share that this number is taken for: of very little work, fewer are enough.
const MUCH_LATE: f64 = 0.1;

/// The error of an agent's clock above which there is a warning: as much as work may be late by default.
const MOST_CLOCK_ERROR: Nanos = Nanos(5_000_000);

/// The least exchanges of one name that must all fail before a script's trial fails. A script may name each request
/// after its URL, so that fewer may all have failed by chance.
const LEAST_EXCHANGES: u64 = 10;

/// The text for a failure whose reason is not known.
const UNKNOWN: &str = "nothing is known of why";

/// The results of the whole trial that its validity depends on, beside its seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// Faults that kept the generator from doing its work.
    pub(crate) faults: &'a [String],
    /// What users did that exceeded a limit of their script.
    pub(crate) broken: &'a [String],
    /// The checks over all replies, by request.
    pub(crate) sequences: &'a BTreeMap<String, SequenceCheck>,
    /// An example text for each kind of error, by subject.
    pub(crate) examples: &'a BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// Why users stopped before the load was over, if they did.
    pub(crate) stopped: Option<&'a str>,
    /// Facts about the databases, with the work that users did on them.
    pub(crate) databases: &'a [DatabaseFacts],
    /// The records of its agents; none where this process generated the load.
    pub(crate) agents: &'a [AgentRecord],
}

impl Record<'_> {
    /// The text of one of the errors of a subject.
    fn example_of(&self, subject: &Subject) -> Option<&str> {
        self.examples.get(&subject.to_string())?.values().next().map(String::as_str)
    }

    /// The text of one of all errors. A request's error comes before a connection's, because it repeats that one.
    fn example(&self) -> Option<&str> {
        self.examples.values().rev().flat_map(BTreeMap::values).next().map(String::as_str)
    }
}

/// The judgement of a trial: whether it counts, and from when on it is steady.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) validity: Validity,
    /// From when on the measure phase is steady; none if it never became steady, or if that was not judged.
    pub(crate) steady_from: Option<Nanos>,
    /// True if it is void only because it never became steady.
    pub(crate) unsteady: bool,
    /// Why steadiness was not judged although the load is constant.
    pub(crate) unjudged: Option<String>,
    /// True if it is void only because the generator missed its schedule.
    pub(crate) only_late: bool,
    pub(crate) headroom: Headroom,
}

/// Observes the intervals of a trial as they pass, and keeps what its judgement needs.
#[derive(Debug)]
pub(crate) struct Watch {
    window_seconds: i64,
    /// The longest that the measure phase may take.
    limit: Nanos,
    warmup: Nanos,
    /// True if the warm-up is already longer, because an earlier attempt found no steady state.
    extended: bool,
    /// The ticks, if the load is constant.
    ticks: Option<Ticks>,
    /// CPU time of the busiest thread over the measure phase.
    busiest: Nanos,
    lateness: hdrhistogram::Histogram<u64>,
    /// True in a closed loop: a user that begins late has thought for longer, and durations count from when it sends.
    closed: bool,
    longest_stall: Nanos,
    /// True if users run a script, which names its requests itself and need not make any.
    script: bool,
    /// True if each user is a thread of its own, of which the study cannot ask for more.
    user_threads: bool,
    /// True for a load of a search, which is judged by its objective: that exchanges fail says that it is too much.
    search: bool,
    /// True for a slice, in which a rare request may occur once, and fail by chance.
    slice_of: Option<String>,
    /// The subjects that a script has recorded. Their names are not known before.
    pub(crate) subjects: BTreeSet<Subject>,
    pub(crate) iterations: u64,
    failed_iterations: u64,
    /// By request: how many exchanges it had, and how many of those failed, conflicts between transactions not counted.
    requests: BTreeMap<String, (u64, u64)>,
    pub(crate) errors: u64,
    saturated: u64,
    /// Exchanges that failed because a disk was full.
    without_room: u64,
}

impl Watch {
    /// Begins to observe a trial under this load. `extended` is true if its warm-up is longer than the study says.
    pub(crate) fn new(load: &LoadProfile, extended: bool) -> Watch {
        Watch {
            window_seconds: Nanos::from(load.stop.limit()).0.div_ceil(1_000_000_000) as i64,
            limit: load.stop.limit().into(),
            warmup: load.warmup.into(),
            extended,
            ticks: Ticks::of(load),
            busiest: Nanos(0),
            lateness: plimsoll_model::record::histogram(),
            closed: matches!(load.model, LoadModel::Closed { .. }),
            longest_stall: Nanos(0),
            script: false,
            user_threads: false,
            search: false,
            slice_of: None,
            subjects: BTreeSet::new(),
            iterations: 0,
            failed_iterations: 0,
            requests: BTreeMap::new(),
            errors: 0,
            saturated: 0,
            without_room: 0,
        }
    }

    /// The same, with `script` true if users run a script.
    pub(crate) fn of_script(self, script: bool) -> Watch {
        Watch { script, ..self }
    }

    /// The same, with `user_threads` true if each user is a thread of its own.
    pub(crate) fn of_user_threads(self, user_threads: bool) -> Watch {
        Watch { user_threads, ..self }
    }

    /// The same for a load of a search for the capacity: it need not be steady.
    pub(crate) fn of_search(self) -> Watch {
        Watch { search: true, ticks: None, ..self }
    }

    /// The same for a slice of the variant with this label, where there is one: it is too short to be judged steady or
    /// not.
    pub(crate) fn slice_of(self, variant: Option<String>) -> Watch {
        let ticks = if variant.is_some() { None } else { self.ticks };
        Watch { slice_of: variant, ticks, ..self }
    }

    /// Adds a second.
    pub(crate) fn observe(&mut self, interval: &Interval) {
        if (0..self.window_seconds).contains(&interval.second) {
            self.busiest.0 += interval.generator.cpu_busiest.0;
            self.lateness.add(&interval.generator.lateness).expect("a growing histogram takes what an equal one holds");
            self.longest_stall = self.longest_stall.max(interval.generator.stall);
        }
        if let Some(ticks) = &mut self.ticks {
            ticks.observe(interval);
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
                    // All exchanges of a rare step may have been in conflict, so conflicts do not count here.
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

    /// True if no exchange ended; for scripts, which need not make any, only if no iteration ended either.
    pub(crate) fn measured_nothing(&self) -> bool {
        self.exchanges() == 0 && (!self.script || self.iterations == 0)
    }

    /// The name of the only request, as words to follow a number of exchanges; empty if there are several requests.
    fn only_request_name(&self) -> String {
        let mut names = self.requests.iter().filter(|(_, (made, _))| *made > 0).map(|(name, _)| name);
        match (names.next(), names.next()) {
            (Some(only), None) => format!(", each of `{only}`"),
            _ => String::new(),
        }
    }

    /// The number of exchanges, if there were any and all failed.
    fn all_exchanges_failed(&self) -> Option<u64> {
        let all = self.exchanges();
        (all > 0 && self.errors == all).then_some(all)
    }

    /// The number of iterations, if there were any and all failed. A script may throw, and a flow may wait in vain,
    /// although every exchange succeeds.
    fn all_iterations_failed(&self) -> Option<u64> {
        (self.iterations > 0 && self.failed_iterations == self.iterations).then_some(self.iterations)
    }

    /// The requests of which every exchange failed, with the number of exchanges.
    fn requests_that_only_failed(&self) -> impl Iterator<Item = (&String, u64)> {
        let least = if self.script || self.slice_of.is_some() { LEAST_EXCHANGES } else { 1 };
        let wrong = self.requests.iter().filter(move |(_, (made, failed))| made == failed && *made >= least);
        wrong.map(|(name, (made, _))| (name, *made))
    }

    /// True if no request failed every time, and not all iterations failed.
    pub(crate) fn worked(&self) -> bool {
        self.all_exchanges_failed().is_none()
            && self.requests_that_only_failed().next().is_none()
            && self.all_iterations_failed().is_none()
    }

    /// Judges whether the trial counts. A wrong reply is the system's failure, whatever the generator did. Otherwise a
    /// generator at its limit voids the trial, and so does constant load that did not become steady.
    pub(crate) fn judge(&self, window: Nanos, generator: &GeneratorSpec, record: &Record<'_>) -> Judgement {
        let headroom = self.headroom(window);
        let unknown = Judgement {
            validity: Validity::Valid,
            steady_from: None,
            unsteady: false,
            unjudged: None,
            only_late: false,
            headroom,
        };
        let failures = self.failures(record);
        if !failures.is_empty() {
            return Judgement { validity: Validity::Failed(failures), ..unknown };
        }
        let mut reasons = self.limits(headroom, generator, record);
        reasons.extend(record.databases.iter().flat_map(|facts| &facts.work.mix).filter_map(wrong_input));
        let judgement = match self.ticks.as_ref().map(Ticks::judge) {
            None => unknown,
            // Seconds in which users had nothing to do say nothing about the system.
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
        let only_late = reasons.len() == 1 && headroom.lateness > generator.max_lateness.into();
        let validity = if reasons.is_empty() { Validity::Valid } else { Validity::Void(reasons) };
        Judgement { validity, only_late, ..judgement }
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
        Headroom { busiest, lateness: Nanos(self.lateness.value_at_quantile(1.0 - self.late_share())) }
    }

    /// The share of the work that voids this load where it started too late.
    fn late_share(&self) -> f64 {
        if self.closed { (MANY_LATE / self.lateness.len() as f64).clamp(LATE, MUCH_LATE) } else { LATE }
    }

    fn failures(&self, record: &Record<'_>) -> Vec<String> {
        let mut failures: Vec<String> = record
            .sequences
            .iter()
            .filter(|(_, check)| !check.holds())
            .map(|(name, check)| wrong_replies(name, check))
            .collect();
        if self.search {
            // What failed is in the objective.
        } else if let Some(all) = self.all_exchanges_failed() {
            let why = record.example().unwrap_or(UNKNOWN);
            failures.push(format!("all {all} exchanges failed{}: {why}", self.only_request_name()));
        } else if self.measured_nothing()
            && let Some(why) = record.stopped
        {
            failures.push(format!("nothing was measured: {why}"));
        } else if self.requests_that_only_failed().next().is_some() {
            let of = |(name, made): (&String, u64)| {
                let why = record.example_of(&Subject::Request(name.clone())).unwrap_or(UNKNOWN);
                format!("all {made} exchanges of `{name}` failed: {why}")
            };
            failures.extend(self.requests_that_only_failed().map(of));
        } else if let Some(all) = self.all_iterations_failed() {
            failures.push(format!("all {all} iterations failed{}", self.why_iterations_failed(record)));
        }
        failures.extend(exceeded_limits(record.broken));
        failures
    }

    /// The error of an iteration itself, or else that of the request that failed most often. A request that follows too
    /// many redirects makes exchanges that succeed before the one that fails.
    fn why_iterations_failed(&self, record: &Record<'_>) -> String {
        if let Some(why) = record.example_of(&Subject::Iteration) {
            // The failure for exceeded limits says the same already.
            let is_reported = record.broken.iter().any(|broken| broken == why);
            return if is_reported { String::new() } else { format!(": {why}") };
        }
        let known = |(name, (_, failed)): (&'_ String, &(u64, u64))| {
            let why = record.example_of(&Subject::Request(name.clone()))?;
            Some((*failed, format!(", as in `{name}`: {why}")))
        };
        let worst = self.requests.iter().filter_map(known).max_by_key(|(failed, _)| *failed);
        worst.map_or_else(|| format!(": {UNKNOWN}"), |(_, why)| why)
    }

    fn limits(&self, headroom: Headroom, generator: &GeneratorSpec, record: &Record<'_>) -> Vec<String> {
        let faults = record.faults.iter();
        let mut limits: Vec<String> =
            faults.map(|fault| format!("the generator could not do its work: {fault}")).collect();
        let helps = match (record.agents.is_empty(), self.user_threads) {
            (false, _) => "share its load among more agents, or send less",
            (true, true) => "give it processors of its own, or each user less to do (`generator`, `load`)",
            (true, false) => "give it more threads, processors of its own, or less load (`generator`)",
        };
        // A busy agent among many idle ones is the limit all the same.
        let agents = record.agents.iter().map(|agent| (format!("agent `{}`", agent.name), agent.headroom, LATE));
        let this_process = record.agents.is_empty().then(|| ("the generator".to_owned(), headroom, self.late_share()));
        for (who, headroom, late_share) in agents.chain(this_process) {
            limits.extend(limits_of(&who, headroom, late_share, generator, helps));
        }
        if self.without_room > 0 {
            limits.push(format!(
                "a disk was full, or a quota used up, so that {} of {} exchanges failed: make room, or let the data lie \
                 elsewhere",
                self.without_room,
                self.exchanges()
            ));
        }
        if self.measured_nothing() && !self.search {
            let what = match (&self.slice_of, self.script) {
                (Some(variant), _) => format!(
                    "no exchange of {variant} ended in a slice or its drain; its system hangs, or an exchange takes longer than \
                     that: a longer `slice` under `[turns]`, or `design = \"trials\"`"
                ),
                (None, true) => {
                    "the script made no request in the measure phase, and no iteration that began in it has \
                                 ended"
                        .to_owned()
                }
                (None, false) => "no exchange ended in the measure phase or its drain".to_owned(),
            };
            limits.push(format!("nothing was measured: {what}"));
        }
        limits
    }

    /// Warnings for the reader, although the trial counts.
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

/// A failure that says what the first user did that was stopped for exceeding a limit of its script. With fewer users
/// the load is no longer what the study asks for, and the script will exceed the limit again.
fn exceeded_limits(broken: &[String]) -> Option<String> {
    let first = broken.first()?;
    Some(if broken.len() == 1 { first.clone() } else { format!("{first} (the first of {} users)", broken.len()) })
}

/// A failure for each condition on the data of a database that does not hold.
pub(crate) fn wrong_data(facts: &DatabaseFacts) -> impl Iterator<Item = String> {
    let violated = facts.conditions.iter().filter(|condition| condition.holds == Some(false));
    violated.map(|condition| {
        format!("wrong data in `{}`: {} does not hold: {}", facts.name, condition.in_words(), condition.detail)
    })
}

/// The limits that a generator, or one of several, came up against. `late_share` of its work was at least as late as
/// `headroom` says; `helps` is the advice where its busiest thread had too much to do.
fn limits_of(who: &str, headroom: Headroom, late_share: f64, generator: &GeneratorSpec, helps: &str) -> Vec<String> {
    let mut limits = Vec::new();
    if headroom.busiest > generator.max_cpu {
        limits.push(format!(
            "{who} was the limit: its busiest thread used {:.0} % of a processor, above {:.0} %; {helps}",
            headroom.busiest * 100.0,
            generator.max_cpu * 100.0
        ));
    }
    if headroom.lateness > generator.max_lateness.into() {
        limits.push(format!(
            "{who} missed its schedule: {:.0} % of the work that was due started more than {:.1} ms late, above {:.1} ms; \
             give it processors of its own, or less load, or allow more where durations are much longer than that \
             (`generator.max_lateness`)",
            late_share * 100.0,
            headroom.lateness.seconds() * 1e3,
            generator.max_lateness.as_secs_f64() * 1e3
        ));
    }
    limits
}

/// A warning for each agent whose clock is so uncertain that its load may have begun at another instant than that of the
/// others.
pub(crate) fn unknown_clocks(agents: &[AgentRecord]) -> Vec<String> {
    let uncertain = agents.iter().filter(|agent| agent.clock_error > MOST_CLOCK_ERROR);
    let warning = |agent: &AgentRecord| {
        format!(
            "the clock of agent `{}` is known only to ±{:.1} ms, by which its load may have begun earlier or later than that \
             of others: the way to it through the broker is long, or uneven",
            agent.name,
            agent.clock_error.seconds() * 1e3
        )
    };
    uncertain.map(warning).collect()
}

/// The reason why the trial is void, if the inputs of users were not mixed as the specification asks: that is the
/// generator's fault and not the system's.
fn wrong_input(line: &MixLine) -> Option<String> {
    let MixLine { name, n, found, low, high, holds } = line;
    (!holds).then(|| {
        format!("the generator gave users the wrong work: {name} expected from {low} to {high}, found {found} of {n}")
    })
}

/// A warning for each database of which not every condition was checked.
pub(crate) fn not_looked_at(databases: &[DatabaseFacts]) -> Vec<String> {
    let warning = |facts: &DatabaseFacts| {
        let mut left = facts.conditions.iter().filter(|condition| condition.holds.is_none()).peekable();
        let why = left.peek()?.detail.clone();
        let (count, all) = (left.count(), facts.conditions.len());
        Some(format!("{count} of {all} conditions on the data of `{}` were not looked at: {why}", facts.name))
    };
    databases.iter().filter_map(warning).collect()
}
