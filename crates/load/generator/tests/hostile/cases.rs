//! Cases, and the promises that all of them keep.

use crate::peer::{Act, Peer};
use plimsoll_testkit::growth_of_memory;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a case ends: `fine`, or the kind of its failure with a text.
pub(crate) type End = String;

/// The end of a case that is in order.
pub(crate) const FINE: &str = "fine";

/// Far above what a case needs on a busy machine, and far below a loop without an end.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The most memory that client and server may take, beside what the client is to keep, in MiB.
const LITTLE: u64 = 32;

/// How many cases run at once, and how many of those that take much memory. What one of them takes too much must show
/// beside what is granted to all.
const AT_ONCE: [usize; 2] = [4, 2];

/// How long a client waits for an answer that comes.
const PATIENT: Duration = Duration::from_secs(30);

/// How long a client waits for one that does not.
const IMPATIENT: Duration = Duration::from_millis(200);

/// Held by the suite that runs.
pub(crate) type Alone = MutexGuard<'static, ()>;

/// Waits until no other suite runs, so that what the process takes is one suite's own. To be called before the cases
/// are made: they take memory themselves.
pub(crate) fn alone() -> Alone {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server's part, and how the client must end.
pub(crate) struct Case {
    pub(crate) name: String,
    part: Arc<Vec<Act>>,
    /// What its end begins with.
    expected: &'static str,
    /// The most memory that it may take, in MiB.
    memory: u64,
}

/// A client: makes a request of the server at an address, with a time-out.
pub(crate) type Client<'a> = &'a (dyn Fn(SocketAddr, Duration) -> End + Sync);

impl Case {
    pub(crate) fn new(name: impl Into<String>, part: Vec<Act>, expected: &'static str) -> Case {
        Case { name: name.into(), part: Arc::new(part), expected, memory: LITTLE }
    }

    /// The same, with so many MiB that the client may keep of what it receives.
    pub(crate) fn keeping(self, mib: u64) -> Case {
        Case { memory: self.memory + mib, ..self }
    }

    /// True if it is to end like that.
    pub(crate) fn expects(&self, end: &str) -> bool {
        self.expected == end
    }

    /// The same, with another end.
    pub(crate) fn expecting(self, expected: &'static str) -> Case {
        Case { expected, ..self }
    }

    /// How long the client waits.
    fn time_out(&self) -> Duration {
        match self.part.last() {
            Some(Act::Hold | Act::Flood(_) | Act::Trickle(_)) => IMPATIENT,
            _ => PATIENT,
        }
    }

    /// Returns what is wrong with how it ends, if anything.
    fn fault(&self, client: Client<'_>) -> Option<String> {
        let peer = Peer::start(Arc::clone(&self.part));
        let begun = Instant::now();
        let end = client(peer.address(), self.time_out());
        let took = begun.elapsed();
        let is_right = end.starts_with(self.expected) && took < SOON;
        (!is_right).then(|| format!("{}: expected `{}`, found `{end}` after {took:?}", self.name, self.expected))
    }
}

/// Runs all cases, some at the same time, and holds each to its end, and those that run together to their memory.
pub(crate) fn hold(_: &Alone, cases: &[Case], client: impl Fn(SocketAddr, Duration) -> End + Sync) {
    let mut by_memory: BTreeMap<u64, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        by_memory.entry(case.memory).or_default().push(case);
    }
    let mut faults = Vec::new();
    for (memory, cases) in by_memory {
        let at_once = AT_ONCE[usize::from(memory > LITTLE)];
        let (found, grown) = growth_of_memory(|| run(&cases, at_once, &client));
        faults.extend(found);
        let (most, grown) = (memory * at_once as u64, grown >> 20);
        if grown > most {
            faults.push(format!(
                "{at_once} of `{}` and others: expected at most {most} MiB, found {grown}",
                cases[0].name
            ));
        }
    }
    assert!(faults.is_empty(), "{} of {} cases:\n{}", faults.len(), cases.len(), faults.join("\n"));
}

/// Runs cases, so many at once, and returns what is wrong with them.
fn run(cases: &[&Case], at_once: usize, client: Client<'_>) -> Vec<String> {
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(cases.len()) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = case.fault(client) {
                        faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
                    }
                }
            });
        }
    });
    faults.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The same part cut off after each of these bytes, at which the connection ends as `then` says.
pub(crate) fn cuts(
    name: &str,
    before: &[Act],
    whole: &[u8],
    places: impl Iterator<Item = usize>,
    then: &[Act],
    expected: &'static str,
) -> Vec<Case> {
    let cut = |place: usize| {
        let part = [before, &[Act::Send(whole[..place].to_vec())], then].concat();
        Case::new(format!("{name}, cut after {place} of {} bytes", whole.len()), part, expected)
    };
    places.map(cut).collect()
}
