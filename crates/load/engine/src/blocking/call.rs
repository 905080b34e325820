//! One call under way: its parts, its bytes, and its deadline.

use crate::clock::Clock;
use crate::protocol::Failure;
use plimsoll_model::record::{ErrorKind, Outcome, Part, RecordedPhase};
use plimsoll_model::units::Instant;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A call under way. The code that makes it reports parts, bytes and the first byte of the response to it, and checks
/// between two blocks whether to go on.
#[derive(Clone, Debug)]
pub struct Call {
    clock: Clock,
    deadline: Instant,
    timeout: Duration,
    over: Arc<AtomicBool>,
    phase: RecordedPhase,
    pub(super) first_byte: Option<Instant>,
    pub(super) bytes_out: u64,
    pub(super) bytes_in: u64,
    pub(super) parts: Vec<PartOfCall>,
}

/// A part that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartOfCall {
    pub(super) part: Part,
    pub(super) sent: Instant,
    pub(super) first_byte: Option<Instant>,
    pub(super) done: Instant,
    pub(super) outcome: Outcome,
}

impl Call {
    /// A call that begins now and belongs to no results.
    pub(super) fn new(clock: Clock, timeout: Duration, over: Arc<AtomicBool>) -> Call {
        let (deadline, phase) = (clock.now().after(timeout.into()), RecordedPhase::Warmup);
        Call { clock, deadline, timeout, over, phase, first_byte: None, bytes_out: 0, bytes_in: 0, parts: Vec::new() }
    }

    /// Resets it to a new call that begins at `sent`.
    #[inline]
    pub(super) fn begin(&mut self, sent: Instant, phase: RecordedPhase) {
        (self.deadline, self.phase) = (sent.after(self.timeout.into()), phase);
        (self.first_byte, self.bytes_out, self.bytes_in) = (None, 0, 0);
        self.parts.clear();
    }

    /// A call that is not part of a trial, for preparing and cleaning up. It may take as long as `timeout`.
    pub fn untimed(timeout: Duration) -> Call {
        Call::until(Arc::new(AtomicBool::new(false)), timeout)
    }

    /// The same, which also gives up when `over` is set.
    pub fn until(over: Arc<AtomicBool>, timeout: Duration) -> Call {
        Call::new(Clock::start(Duration::ZERO), timeout, over)
    }

    /// True if it belongs to the results.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.phase == RecordedPhase::Measure
    }

    /// Its deadline, on the system's monotonic clock.
    pub fn deadline(&self) -> std::time::Instant {
        self.clock.at(self.deadline)
    }

    /// Checks, between two blocks, that the call may go on.
    ///
    /// # Errors
    /// Its time is up, or the trial is over.
    #[inline]
    pub fn go_on(&self) -> Result<(), Failure> {
        if self.over.load(Ordering::Relaxed) {
            return Err(Failure::new(ErrorKind::Timeout, "still under way at the end of the drain"));
        }
        if self.clock.now() >= self.deadline {
            let limit = self.timeout.as_secs_f64();
            return Err(Failure::new(ErrorKind::Timeout, format!("not done within {limit} s")));
        }
        Ok(())
    }

    /// The time until its deadline; never zero, so that it can be the time-out of a socket.
    #[inline]
    pub fn remaining(&self) -> Duration {
        let left = self.deadline.since(self.clock.now()).0;
        Duration::from_nanos(left.max(1_000_000))
    }

    /// Times a part of the call, however it ends.
    pub fn part<T>(&mut self, part: Part, work: impl FnOnce(&mut Call) -> Result<T, Failure>) -> Result<T, Failure> {
        let outer = self.first_byte.take();
        let sent = self.clock.now();
        let result = work(self);
        let done = self.clock.now();
        let outcome = result.as_ref().map_or_else(|failure| Outcome::Failed(failure.kind), |_| Outcome::Ok);
        self.parts.push(PartOfCall { part, sent, first_byte: self.first_byte, done, outcome });
        self.first_byte = outer.or(self.first_byte);
        result
    }

    /// Notes that the first byte of the response has arrived. Only the first such note counts, for the part and for the
    /// call.
    #[inline]
    pub fn saw_first_byte(&mut self) {
        if self.first_byte.is_none() {
            self.first_byte = Some(self.clock.now());
        }
    }

    /// Adds bytes that were sent.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }

    /// Adds bytes that were received.
    #[inline]
    pub fn received(&mut self, bytes: usize) {
        self.bytes_in += bytes as u64;
    }

    /// A part of this call for another thread. [`Call::absorb`] merges it back.
    pub fn branch(&self) -> Call {
        Call { first_byte: None, bytes_out: 0, bytes_in: 0, parts: Vec::new(), ..self.clone() }
    }

    /// Merges what another thread recorded in its [`Call::branch`].
    pub fn absorb(&mut self, branch: Call) {
        self.bytes_out += branch.bytes_out;
        self.bytes_in += branch.bytes_in;
        self.parts.extend(branch.parts);
        self.first_byte = match (self.first_byte, branch.first_byte) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

impl Failure {
    /// Converts an error of the operating system. `doing` says what failed: `write /data/x`.
    pub fn io(doing: &str, error: &io::Error) -> Failure {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => ErrorKind::Space,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ErrorKind::Timeout,
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::AddrNotAvailable => ErrorKind::Connect,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => ErrorKind::Closed,
            _ => ErrorKind::Io,
        };
        Failure::new(kind, format!("failed to {doing}: {error}"))
    }
}

/// Accessors for the tests of back ends.
impl Call {
    /// The outcomes of all parts of this kind so far, in order.
    #[must_use]
    pub fn outcomes(&self, part: Part) -> Vec<Outcome> {
        self.parts.iter().filter(|taken| taken.part == part).map(|taken| taken.outcome).collect()
    }

    /// Bytes sent and bytes received so far.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_out, self.bytes_in)
    }

    /// True once the first byte of an answer has come.
    #[must_use]
    pub fn has_first_byte(&self) -> bool {
        self.first_byte.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_timed_inside_the_call_whatever_becomes_of_them() {
        let mut call = Call::untimed(Duration::from_secs(5));
        let done: Result<u8, Failure> = call.part(Part::Data, |call| {
            call.saw_first_byte();
            call.received(10);
            Ok(7)
        });
        let failed = call.part(Part::Sync, |_| Err::<(), _>(Failure::new(ErrorKind::Space, "full")));
        assert_eq!((done, failed.unwrap_err().kind), (Ok(7), ErrorKind::Space));
        let [data, sync] = call.parts[..] else { panic!("{:?}", call.parts) };
        assert_eq!((data.part, data.outcome, data.first_byte), (Part::Data, Outcome::Ok, call.first_byte));
        assert_eq!((sync.part, sync.outcome, sync.first_byte), (Part::Sync, Outcome::Failed(ErrorKind::Space), None));
        assert!(data.sent <= data.done && data.done <= sync.sent);
        assert_eq!(call.bytes_in, 10);
    }

    #[test]
    fn a_call_gives_up_when_its_time_is_up_or_the_trial_is_over() {
        let call = Call::untimed(Duration::from_secs(5));
        assert_eq!(call.go_on(), Ok(()));
        call.over.store(true, Ordering::Relaxed);
        assert!(call.go_on().is_err());
        let late = Call::untimed(Duration::ZERO);
        assert_eq!(late.go_on().unwrap_err().kind, ErrorKind::Timeout);
        assert!(!late.remaining().is_zero());
    }

    #[test]
    fn what_another_thread_did_is_added() {
        let mut call = Call::untimed(Duration::from_secs(5));
        let mut branch = call.branch();
        let sent = branch.part(Part::Subrequest, |branch| {
            branch.sent(100);
            Ok(())
        });
        assert_eq!(sent, Ok(()));
        branch.saw_first_byte();
        call.absorb(branch);
        assert_eq!((call.bytes_out, call.parts.len(), call.first_byte.is_some()), (100, 1, true));
    }

    #[test]
    fn errors_of_the_system_are_told_apart() {
        for (code, kind) in [
            (28, ErrorKind::Space),
            (122, ErrorKind::Space),
            (13, ErrorKind::Denied),
            (30, ErrorKind::Denied),
            (5, ErrorKind::Io),
        ] {
            let failure = Failure::io("write /data/x", &io::Error::from_raw_os_error(code));
            assert_eq!(failure.kind, kind, "{code}");
            assert!(failure.detail.starts_with("failed to write /data/x: "), "{}", failure.detail);
        }
    }
}
