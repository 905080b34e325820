//! What the generator records: exchanges, and the intervals into which they are gathered.
//!
//! An exchange is filed under two keys. The *second* in which it ended makes series over time exact. The *phase* in
//! which its iteration was scheduled makes sure that every iteration of the measure phase is counted with all its
//! exchanges, also if it ends while draining. Merging all intervals of phase [`RecordedPhase::Measure`] gives the
//! trial's own distribution.

mod account;
mod interval;
mod sequence;

use crate::units::Instant;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use account::Account;
pub use interval::{
    DIGITS, Durations, GeneratorSecond, Interval, LONGEST, MergedSeconds, TICK, TICKS, Tally, Tick, failed_alone,
    failed_of_all, histogram,
};
pub use sequence::SequenceRecorder;

/// One request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was due: in open load its arrival, in closed load the instant it was sent.
    pub scheduled: Instant,
    /// When its first byte was handed to the kernel.
    pub sent: Instant,
    /// When the first byte of the response arrived; none if none arrived.
    pub first_byte: Option<Instant>,
    /// When it ended, well or not.
    pub done: Instant,
    /// Bytes that were written to the socket since the last exchange on the connection ended, framing and encryption
    /// included.
    pub bytes_out: u64,
    /// Bytes that were read from the socket in the same span.
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
    /// The TLS handshake failed, for instance because the certificate is not valid.
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
    /// Transactions waited for one another in a circle, and the server aborted this one.
    Deadlock,
    /// Concurrent transactions cannot be put into a serial order.
    Serialization,
    /// A lock could not be acquired in time.
    LockTimeout,
    /// A write violates a constraint.
    Constraint,
    /// A statement failed in another way.
    Sql,
    /// The response does not contain a value that a later step needs.
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

    /// True if the server aborted a transaction so that others can go on. Nothing is broken, and the transaction may be
    /// retried at once.
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

/// What a series of records is about. Its name in files is its `Display` text.
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
    /// One part of the exchanges of the step of this name, timed separately.
    Part(Part, String),
    /// The check of this name in a script: how often it ran, and how often it failed. Its durations are zero.
    Check(String),
    /// A metric of a script's own. It holds values, with the meaning of its [`Metric`], in place of durations.
    Custom(Metric, String),
}

/// The kinds of a script's own metrics.
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

/// The counter of messages that users send on their sockets.
pub const MESSAGES_SENT: &str = "messages sent";
/// The counter of messages that come to them.
pub const MESSAGES_RECEIVED: &str = "messages received";
/// The counter of sockets that the peer or the network has ended.
pub const SOCKETS_LOST: &str = "sockets lost";

/// The factor by which values of a script's own metrics are multiplied before they are kept among durations. A time in
/// milliseconds, k6's unit, becomes nanoseconds like all others.
pub const METRIC_SCALE: f64 = 1e6;

/// A part of an exchange that is timed separately.
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
    /// The arrival of what the exchange carried at one of the users who listen; one for each of them.
    Delivery,
}

impl Part {
    /// All of them, in the order of time.
    pub const ALL: [Part; 6] = [Part::Open, Part::Data, Part::Sync, Part::Close, Part::Subrequest, Part::Delivery];

    /// The name in files and measures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Open => "open",
            Part::Data => "data",
            Part::Sync => "sync",
            Part::Close => "close",
            Part::Subrequest => "subrequest",
            Part::Delivery => "delivery",
        }
    }
}

impl Subject {
    /// True if both are of the same kind, whatever their names.
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

/// The result of a [`Sequence`](crate::workload::Sequence) check over a whole trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceCheck {
    /// Replies that carried a number.
    pub replies: u64,
    /// The largest number.
    pub largest: u64,
    /// Numbers that occurred more than once, counting each repetition.
    pub repeated: u64,
    /// Numbers from 1 to `largest` that never occurred.
    pub missing: u64,
    /// Calls without a reply: as many gaps are excused.
    pub unanswered: u64,
    /// Replies in which no number was found, or one below 1.
    pub unreadable: u64,
}

impl SequenceCheck {
    /// This check and that of a later load on the same systems, as of one load.
    #[must_use]
    pub fn and(self, later: &SequenceCheck) -> SequenceCheck {
        SequenceCheck {
            replies: self.replies + later.replies,
            largest: self.largest.max(later.largest),
            repeated: self.repeated + later.repeated,
            missing: self.missing + later.missing,
            unanswered: self.unanswered + later.unanswered,
            unreadable: self.unreadable + later.unreadable,
        }
    }

    /// The check of a load that came after others on the same systems, whose largest number was `before`: it should
    /// have the numbers above that, each once. A number up to `before` has occurred twice.
    #[must_use]
    pub fn after(self, before: u64) -> SequenceCheck {
        let (distinct, new) = (self.largest - self.missing, self.largest.saturating_sub(before));
        let repeated = self.repeated + distinct.saturating_sub(new);
        SequenceCheck { missing: new.saturating_sub(distinct), repeated, ..self }
    }

    /// True if the replies are 1..N, each once, except for gaps that unanswered calls explain.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.repeated == 0 && self.unreadable == 0 && self.missing <= self.unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_load_goes_on_with_the_numbers() {
        // 11 to 15 after 1 to 10: from 1 on, ten are missing.
        let check = SequenceCheck { replies: 5, largest: 15, missing: 10, ..SequenceCheck::default() };
        assert!(check.clone().after(10).holds());
        assert_eq!(check.clone().after(8).missing, 2);
        assert_eq!(check.after(12).repeated, 2);
        let without_replies = SequenceCheck { unanswered: 2, ..SequenceCheck::default() };
        assert!(without_replies.after(10).holds(), "a system that hangs has replied nothing wrong");
        let late = SequenceCheck { replies: 1, largest: 7, missing: 6, ..SequenceCheck::default() };
        assert_eq!((late.clone().after(10).repeated, late.after(10).missing), (1, 0));
    }

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

    #[test]
    fn a_gap_needs_an_unanswered_call() {
        let check = SequenceCheck { replies: 9, largest: 10, missing: 1, ..SequenceCheck::default() };
        assert!(!check.holds());
        assert!(SequenceCheck { unanswered: 1, ..check.clone() }.holds());
        assert!(!SequenceCheck { unanswered: 1, repeated: 1, ..check }.holds());
    }
}
