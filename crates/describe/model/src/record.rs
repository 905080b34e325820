//! What the generator records: exchanges, and the intervals into which they are gathered.
//!
//! An exchange is filed twice over: under the *second* in which it was done (so that a series
//! over time is exact), and under the *phase* in which its iteration was scheduled (so that every
//! iteration that the measure phase offered is counted with all its exchanges, also when it ends
//! while draining). Merging all intervals of phase [`RecordedPhase::Measure`] gives the trial's
//! own distribution.

use crate::units::{Instant, Nanos};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The largest duration a histogram keeps, in nanoseconds: one hour. Longer ones are counted at
/// this value and in [`Tally::saturated`].
pub const LONGEST: u64 = 3_600_000_000_000;

/// Significant decimal digits kept by every histogram.
pub const DIGITS: u8 = 3;

/// An empty histogram of nanoseconds that grows with its largest value.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new(DIGITS).expect("three digits are within the library's 0 to 5");
    histogram.auto(true);
    histogram
}

/// One request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was due: in open load its arrival, in closed load the instant it was sent.
    pub scheduled: Instant,
    /// When its first byte was handed to the kernel.
    pub sent: Instant,
    /// When the first byte of the response came, if any came.
    pub first_byte: Option<Instant>,
    /// When it ended, well or not.
    pub done: Instant,
    /// Bytes that crossed the socket outwards since the last exchange on the connection ended:
    /// framing and encryption included.
    pub bytes_out: u64,
    /// The same inwards.
    pub bytes_in: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// How an exchange, a connection attempt, or an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As expected.
    Ok,
    /// With an error of this kind.
    Failed(ErrorKind),
}

/// The kinds of errors, as the user of the system would tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection was refused, or could not be made.
    Connect,
    /// The TLS handshake failed, a certificate that does not hold included.
    Tls,
    /// It took longer than the time-out, or was still under way at the end of the drain.
    Timeout,
    /// The connection ended before the response did.
    Closed,
    /// What came back does not follow the protocol.
    Protocol,
    /// A status other than the expected one.
    Status,
    /// The response is not what the study expects.
    Check,
    /// It was due but never sent, because no user was free until the end.
    Unsent,
    /// No space, or no quota, is left for it.
    Space,
    /// Permission is missing, or a signature is refused.
    Denied,
    /// Storage failed in another way.
    Io,
    /// Transactions waited for one another in a circle, and this one was ended.
    Deadlock,
    /// Transactions at the same time cannot be put into an order.
    Serialization,
    /// A lock was not to be had in time.
    LockTimeout,
    /// What was to be written breaks a constraint.
    Constraint,
    /// A statement failed in another way.
    Sql,
    /// The response does not hold what a later step needs.
    Capture,
    /// A redirection that is not followed: too many, or to another server.
    Redirect,
    /// The script threw an exception.
    Script,
    /// The script broke a limit on memory, stack or time.
    Limit,
}

impl ErrorKind {
    /// All kinds, in a fixed order: an index into per-kind counters.
    pub const ALL: [ErrorKind; 20] = [
        ErrorKind::Connect,
        ErrorKind::Tls,
        ErrorKind::Timeout,
        ErrorKind::Closed,
        ErrorKind::Protocol,
        ErrorKind::Status,
        ErrorKind::Check,
        ErrorKind::Unsent,
        ErrorKind::Space,
        ErrorKind::Denied,
        ErrorKind::Io,
        ErrorKind::Deadlock,
        ErrorKind::Serialization,
        ErrorKind::LockTimeout,
        ErrorKind::Constraint,
        ErrorKind::Sql,
        ErrorKind::Capture,
        ErrorKind::Redirect,
        ErrorKind::Script,
        ErrorKind::Limit,
    ];

    /// The name in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Tls => "tls",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Closed => "closed",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Status => "status",
            ErrorKind::Check => "check",
            ErrorKind::Unsent => "unsent",
            ErrorKind::Space => "space",
            ErrorKind::Denied => "denied",
            ErrorKind::Io => "io",
            ErrorKind::Deadlock => "deadlock",
            ErrorKind::Serialization => "serialization",
            ErrorKind::LockTimeout => "lock_timeout",
            ErrorKind::Constraint => "constraint",
            ErrorKind::Sql => "sql",
            ErrorKind::Capture => "capture",
            ErrorKind::Redirect => "redirect",
            ErrorKind::Script => "script",
            ErrorKind::Limit => "limit",
        }
    }

    /// Whether a transaction was ended so that others can go on: nothing is broken, and it may be
    /// tried again at once.
    #[must_use]
    pub fn is_conflict(self) -> bool {
        matches!(self, ErrorKind::Deadlock | ErrorKind::Serialization | ErrorKind::LockTimeout)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a series of records is about. Files name it as it prints itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Subject {
    /// Whole iterations, from the first step's schedule to the last step's end; with a new
    /// connection per iteration, connecting and closing are part of it. Thinking is not, nor are
    /// the pauses of a flow; of a script's iteration, what it sleeps is part.
    Iteration,
    /// Making connections: TCP, TLS, and for HTTP/2 the exchange of settings.
    Connect,
    /// Exchanges of the step of this name.
    Request(String),
    /// What an exchange of the step of this name consists of, timed apart.
    Part(Part, String),
    /// The check of this name in a script: how often it was made, and how often it failed. It
    /// takes no time.
    Check(String),
    /// A metric of a script's own: its values as [`Metric`] says, in place of durations.
    Custom(Metric, String),
}

/// What a metric of a script's own tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The sum of its values.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// The share of its values that are true; the others are errors of kind [`ErrorKind::Check`].
    Rate,
    /// The distribution of its values.
    Trend,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 4] = [Metric::Counter, Metric::Gauge, Metric::Rate, Metric::Trend];

    /// The name in files and measures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::Counter => "counter",
            Metric::Gauge => "gauge",
            Metric::Rate => "rate",
            Metric::Trend => "trend",
        }
    }
}

/// What a value of a script's own metric is multiplied by to be kept among durations: a time in
/// milliseconds, as k6 has them, is then in nanoseconds like all others.
pub const METRIC_SCALE: f64 = 1e6;

/// A part of an exchange that is timed apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Opening or creating a file.
    Open,
    /// Moving its bytes.
    Data,
    /// Making it durable.
    Sync,
    /// Closing it, which on a network file system sends what is not yet sent.
    Close,
    /// One request of several that the exchange takes; every attempt counts.
    Subrequest,
}

impl Part {
    /// All of them, in the order of time.
    pub const ALL: [Part; 5] = [Part::Open, Part::Data, Part::Sync, Part::Close, Part::Subrequest];

    /// The name in files and measures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Open => "open",
            Part::Data => "data",
            Part::Sync => "sync",
            Part::Close => "close",
            Part::Subrequest => "subrequest",
        }
    }
}

impl Subject {
    /// Whether both are about things of the same kind.
    #[must_use]
    pub fn is_like(&self, other: &Subject) -> bool {
        match (self, other) {
            (Subject::Part(one, _), Subject::Part(another, _)) => one == another,
            (Subject::Custom(one, _), Subject::Custom(another, _)) => one == another,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Returns true for the exchanges of a step, whatever its name.
    #[must_use]
    pub fn is_request(&self) -> bool {
        matches!(self, Subject::Request(_))
    }

    /// Returns true for the exchanges of the step of this name.
    #[must_use]
    pub fn is_request_named(&self, name: &str) -> bool {
        matches!(self, Subject::Request(step) if step == name)
    }

    /// The subject of the same kind and another name.
    #[must_use]
    pub fn renamed(&self, name: &str) -> Subject {
        let name = name.to_owned();
        match self {
            Subject::Iteration => Subject::Iteration,
            Subject::Connect => Subject::Connect,
            Subject::Request(_) => Subject::Request(name),
            Subject::Part(part, _) => Subject::Part(*part, name),
            Subject::Check(_) => Subject::Check(name),
            Subject::Custom(metric, _) => Subject::Custom(*metric, name),
        }
    }
}

impl fmt::Display for Subject {
    /// `iteration`, `connect`, `request:NAME`, `sync:NAME`, `check:NAME`, `trend:NAME`: also the tag in
    /// interval logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Iteration => f.write_str("iteration"),
            Subject::Connect => f.write_str("connect"),
            Subject::Request(name) => write!(f, "request:{name}"),
            Subject::Part(part, name) => write!(f, "{}:{name}", part.name()),
            Subject::Check(name) => write!(f, "check:{name}"),
            Subject::Custom(kind, name) => write!(f, "{}:{name}", kind.name()),
        }
    }
}

impl std::str::FromStr for Subject {
    type Err = UnknownSubject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((word, name)) = text.split_once(':') else {
            return match text {
                "iteration" => Ok(Subject::Iteration),
                "connect" => Ok(Subject::Connect),
                _ => Err(UnknownSubject(text.to_owned())),
            };
        };
        let name = name.to_owned();
        match word {
            "request" => return Ok(Subject::Request(name)),
            "check" => return Ok(Subject::Check(name)),
            _ => {}
        }
        if let Some(part) = Part::ALL.into_iter().find(|part| part.name() == word) {
            return Ok(Subject::Part(part, name));
        }
        let kind = Metric::ALL.into_iter().find(|kind| kind.name() == word);
        kind.map(|kind| Subject::Custom(kind, name)).ok_or_else(|| UnknownSubject(text.to_owned()))
    }
}

impl TryFrom<String> for Subject {
    type Error = UnknownSubject;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Subject> for String {
    fn from(subject: Subject) -> String {
        subject.to_string()
    }
}

/// A text that names no [`Subject`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `iteration`, `connect`, `request:NAME`, `check:NAME`, `PART:NAME` or `METRIC:NAME`, found `{0}`")]
pub struct UnknownSubject(pub String);

/// The phase in which the iteration of recorded work was scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedPhase {
    /// Not part of the results.
    Warmup,
    /// The results.
    Measure,
}

/// The records of one subject over some span: mergeable, and bounded in memory.
#[derive(Clone, Debug)]
pub struct Tally {
    /// From the actual send to the end, in nanoseconds. Failed work counts, time-outs at their limit.
    /// Of a metric its values, times [`METRIC_SCALE`]; of a check zeros.
    pub service: Histogram<u64>,
    /// From the scheduled instant to the end, in nanoseconds; empty in closed load.
    pub response: Histogram<u64>,
    /// From the actual send to the first byte of the response, in nanoseconds.
    pub first_byte: Histogram<u64>,
    /// Errors by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Durations above [`LONGEST`].
    pub saturated: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            service: histogram(),
            response: histogram(),
            first_byte: histogram(),
            errors: BTreeMap::new(),
            bytes_out: 0,
            bytes_in: 0,
            saturated: 0,
        }
    }
}

impl Tally {
    /// How many ended, well or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.service.len()
    }

    /// How many ended with an error.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds the records of `other`. The order in which tallies are merged does not matter.
    pub fn merge(&mut self, other: &Tally) {
        for (into, from) in [
            (&mut self.service, &other.service),
            (&mut self.response, &other.response),
            (&mut self.first_byte, &other.first_byte),
        ] {
            into.add(from).expect("a growing histogram takes what an equal one holds");
        }
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
        self.saturated += other.saturated;
    }
}

/// What the generator recorded in one second (or the shorter rest of a phase).
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// The second, from the start of the measure phase; warm-up has negative ones. The measure
    /// phase has the seconds from 0 to below its length in seconds, the last one cut short where
    /// that is no whole number; draining goes on counting from there.
    pub second: i64,
    /// How long it was: one second, but for the last one of the measure phase and of the drain.
    pub length: Nanos,
    /// What ended in this second, by the phase that scheduled it and by subject.
    pub tallies: BTreeMap<(RecordedPhase, Subject), Tally>,
    /// The iterations that ended in each tenth of this second, whatever phase scheduled them.
    pub ticks: [Tick; TICKS],
    /// How the generator itself did.
    pub generator: GeneratorSecond,
}

impl Interval {
    /// What ended for each subject, whatever phase scheduled it.
    #[must_use]
    pub fn by_subject(&self) -> BTreeMap<&Subject, Tally> {
        let mut tallies: BTreeMap<&Subject, Tally> = BTreeMap::new();
        for ((_, subject), tally) in &self.tallies {
            tallies.entry(subject).or_default().merge(tally);
        }
        tallies
    }

    /// Adds what another generator thread recorded in the same second.
    pub fn merge(&mut self, other: &Interval) {
        for (key, tally) in &other.tallies {
            self.tallies.entry(key.clone()).or_default().merge(tally);
        }
        self.length = self.length.max(other.length);
        self.ticks.iter_mut().zip(&other.ticks).for_each(|(into, from)| into.merge(*from));
        self.generator.merge(&other.generator);
    }
}

/// The iterations that ended in a tenth of a second: what tells from where on a trial is steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// How many ended, well or not.
    pub iterations: u64,
    /// Their durations together, in nanoseconds.
    pub total: u64,
}

/// The length of a [`Tick`].
pub const TICK: Nanos = Nanos(100_000_000);

/// Ticks of a second.
pub const TICKS: usize = 10;

impl Tick {
    /// Adds what `other` holds.
    pub fn merge(&mut self, other: Tick) {
        self.iterations += other.iterations;
        self.total = self.total.saturating_add(other.total);
    }
}

/// How the generator did in one second.
#[derive(Clone, Debug)]
pub struct GeneratorSecond {
    /// CPU time of all its threads.
    pub cpu: Nanos,
    /// CPU time of its busiest thread.
    pub cpu_busiest: Nanos,
    /// Users at work at the end of the second: in an iteration, or thinking.
    pub users: u64,
    /// Exchanges under way at the end of the second.
    pub in_flight: u64,
    /// Arrivals that were due and not yet started at the end of the second; 0 in closed load.
    pub backlog: u64,
    /// How much later than due work was started though a user was free, in nanoseconds: the
    /// generator's own fault. Arrivals, and ends of think time.
    pub lateness: Histogram<u64>,
    /// The longest time in which the loop did not look for new events.
    pub stall: Nanos,
}

impl Default for GeneratorSecond {
    fn default() -> Self {
        GeneratorSecond {
            cpu: Nanos(0),
            cpu_busiest: Nanos(0),
            users: 0,
            in_flight: 0,
            backlog: 0,
            lateness: histogram(),
            stall: Nanos(0),
        }
    }
}

impl GeneratorSecond {
    fn merge(&mut self, other: &GeneratorSecond) {
        self.cpu.0 += other.cpu.0;
        self.cpu_busiest = self.cpu_busiest.max(other.cpu_busiest);
        self.users += other.users;
        self.in_flight += other.in_flight;
        self.backlog += other.backlog;
        self.lateness.add(&other.lateness).expect("a growing histogram takes what an equal one holds");
        self.stall = self.stall.max(other.stall);
    }
}

/// The result of a [`Sequence`](crate::workload::Sequence) check over a whole trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceCheck {
    /// Replies that carried a number.
    pub replies: u64,
    /// The largest number.
    pub largest: u64,
    /// Numbers that came more than once, counting each repetition.
    pub repeated: u64,
    /// Numbers from 1 to `largest` that never came.
    pub missing: u64,
    /// Calls whose reply never came: as many gaps are excused.
    pub unanswered: u64,
    /// Replies in which no number was found, or one below 1.
    pub unreadable: u64,
}

impl SequenceCheck {
    /// Whether the replies are 1..N, each once, but for gaps that unanswered calls explain.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.repeated == 0 && self.unreadable == 0 && self.missing <= self.unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_subject_reads_back_from_its_tag() {
        for subject in [
            Subject::Iteration,
            Subject::Connect,
            Subject::Request("a:b".to_owned()),
            Subject::Part(Part::Sync, "a:b".to_owned()),
            Subject::Check("is 200: yes".to_owned()),
            Subject::Custom(Metric::Trend, "waiting".to_owned()),
        ] {
            assert_eq!(subject.to_string().parse(), Ok(subject));
        }
        assert!("nonsense".parse::<Subject>().is_err());
    }

    /// A tally of these service times, in nanoseconds, with an error for every tenth.
    fn tally(times: &[u64]) -> Tally {
        let mut tally = Tally::default();
        for (index, time) in times.iter().enumerate() {
            tally.service.record(*time).expect("in range");
            tally.bytes_in += time % 7;
            if index % 10 == 0 {
                *tally.errors.entry(ErrorKind::ALL[index / 10 % ErrorKind::ALL.len()]).or_default() += 1;
            }
        }
        tally
    }

    proptest! {
        #[test]
        fn merging_is_independent_of_order_and_loses_nothing(
            parts in prop::collection::vec(prop::collection::vec(1_u64..LONGEST, 0..40), 1..6),
        ) {
            let tallies: Vec<Tally> = parts.iter().map(|times| tally(times)).collect();
            let (mut forwards, mut backwards) = (Tally::default(), Tally::default());
            tallies.iter().for_each(|part| forwards.merge(part));
            tallies.iter().rev().for_each(|part| backwards.merge(part));
            prop_assert_eq!(&forwards.service, &backwards.service);
            prop_assert_eq!(&forwards.errors, &backwards.errors);
            prop_assert_eq!(forwards.bytes_in, backwards.bytes_in);
            prop_assert_eq!(forwards.count(), parts.iter().map(|times| times.len() as u64).sum::<u64>());
            prop_assert_eq!(forwards.failed(), tallies.iter().map(Tally::failed).sum::<u64>());
        }

        #[test]
        fn a_merged_percentile_is_that_of_all_values_together(
            left in prop::collection::vec(1_u64..LONGEST, 1..100),
            right in prop::collection::vec(1_u64..LONGEST, 1..100),
            q in 0.01_f64..0.99,
        ) {
            let mut merged = tally(&left);
            merged.merge(&tally(&right));
            let together = tally(&[left, right].concat());
            prop_assert_eq!(merged.service.value_at_quantile(q), together.service.value_at_quantile(q));
        }
    }

    #[test]
    fn a_gap_needs_an_unanswered_call() {
        let check = SequenceCheck { replies: 9, largest: 10, missing: 1, ..SequenceCheck::default() };
        assert!(!check.holds());
        assert!(SequenceCheck { unanswered: 1, ..check.clone() }.holds());
        assert!(!SequenceCheck { unanswered: 1, repeated: 1, ..check }.holds());
    }
}
