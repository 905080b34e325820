//! The threads of the generator: bound to processors, each with its share of the load, their seconds merged.

use crate::recorder::{Findings, ThreadReport};
use crate::schedule::ThreadShare;
use plimsoll_model::job::JobError;
use plimsoll_model::load::Share;
use plimsoll_model::record::{Interval, MergedSeconds};
use plimsoll_model::units::Processors;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Descriptors that the generator needs beside its connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// Runs a part of a machine's share of the load on each of `threads` threads, and collects their reports.
///
/// # Errors
/// A thread cannot be bound to its processor, or a thread itself fails.
pub fn on_threads(
    machine: Share,
    threads: usize,
    cpus: Option<&Processors>,
    on_interval: &mut dyn FnMut(Interval),
    generate: impl Fn(ThreadShare, Sender<ThreadReport>) -> Result<(), JobError> + Sync,
) -> Result<Vec<Findings>, JobError> {
    let mut findings = None;
    let generate = |part, loads: Receiver<ThreadLoad<()>>| match loads.recv() {
        Ok(ThreadLoad { reports, .. }) => generate(part, reports),
        Err(_) => Ok(()),
    };
    on_threads_in_series(machine, threads, cpus, generate, |series| findings = series.offer(&(), on_interval))?;
    Ok(findings.unwrap_or_default())
}

/// One load of a series, for one thread.
pub struct ThreadLoad<L> {
    /// The description of the load, the same for all threads.
    pub load: L,
    /// Receives the reports of the thread, which drops it at the end of the load.
    pub reports: Sender<ThreadReport>,
}

/// Threads that run one load after the other.
pub struct ThreadSeries<L> {
    threads: Vec<Sender<ThreadLoad<L>>>,
}

impl<L: Clone> ThreadSeries<L> {
    /// Has all threads run a load, and collects their reports. None if a thread has ended early: the reason comes as the
    /// error of [`on_threads_in_series`].
    pub fn offer(&self, load: &L, on_interval: &mut dyn FnMut(Interval)) -> Option<Vec<Findings>> {
        let (sender, receiver) = channel();
        for thread in &self.threads {
            // A thread that has ended takes no load, and its findings are missing below.
            let _ = thread.send(ThreadLoad { load: load.clone(), reports: sender.clone() });
        }
        drop(sender);
        let mut merger = IntervalMerger::new(self.threads.len());
        receiver.into_iter().for_each(|report| merger.take(report, on_interval));
        let findings = merger.finish(on_interval);
        (findings.len() == self.threads.len()).then_some(findings)
    }
}

/// Starts `threads` threads, each for a part of a machine's share of the load. They run the loads that `lead` offers, and
/// end after it.
///
/// # Errors
/// A thread cannot be bound to its processor, or a thread itself fails.
pub fn on_threads_in_series<L: Clone + Send>(
    machine: Share,
    threads: usize,
    cpus: Option<&Processors>,
    generate: impl Fn(ThreadShare, Receiver<ThreadLoad<L>>) -> Result<(), JobError> + Sync,
    lead: impl FnOnce(&ThreadSeries<L>),
) -> Result<(), JobError> {
    std::thread::scope(|scope| {
        let (senders, handles): (Vec<_>, Vec<_>) = (0..threads)
            .map(|thread| {
                let (sender, loads) = channel();
                let generate = &generate;
                let handle = scope.spawn(move || {
                    configure_thread(cpus, thread)?;
                    generate(ThreadShare { machine, thread, threads }, loads)
                });
                (sender, handle)
            })
            .unzip();
        let series = ThreadSeries { threads: senders };
        lead(&series);
        drop(series);
        let results = handles.into_iter().map(|thread| thread.join().expect("a generator thread does not panic"));
        results.collect::<Result<Vec<()>, JobError>>().map(drop)
    })
}

/// Raises the soft limit of open files as far as the load needs and the hard limit allows.
pub fn allow_descriptors(connections: u64) -> Result<(), JobError> {
    let needed = connections + SPARE_DESCRIPTORS;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(maximum) = limit.maximum
        && maximum < needed
    {
        return Err(JobError::TooFewDescriptors { needed, limit: maximum });
    }
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit).map_err(|error| JobError::Loop(error.to_string()))
}

/// Binds the thread to its processor and asks the kernel for its most exact wake-ups.
pub fn configure_thread(cpus: Option<&Processors>, index: usize) -> Result<(), JobError> {
    // The default slack lets the kernel wake the thread 50 µs late to save a wake-up.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(|error| JobError::Loop(error.to_string()))?;
    let Some(Processors(cpus)) = cpus.filter(|cpus| !cpus.0.is_empty()) else { return Ok(()) };
    let processor = cpus[index % cpus.len()];
    let mut set = rustix::thread::CpuSet::new();
    let bound = if processor < rustix::thread::CpuSet::MAX_CPU {
        set.set(processor);
        rustix::thread::sched_setaffinity(None, &set)
    } else {
        Err(rustix::io::Errno::INVAL)
    };
    bound.map_err(|error| JobError::Pinning { processor, error: error.to_string() })
}

/// Merges the seconds of all threads, and passes each on when the last thread has passed it.
pub struct IntervalMerger {
    seconds: MergedSeconds,
    findings: Vec<Findings>,
}

impl IntervalMerger {
    /// A merger for so many threads.
    #[must_use]
    pub fn new(threads: usize) -> IntervalMerger {
        IntervalMerger { seconds: MergedSeconds::of(threads), findings: Vec::new() }
    }

    /// Takes a report of a thread.
    pub fn take(&mut self, report: ThreadReport, on_interval: &mut dyn FnMut(Interval)) {
        match report {
            ThreadReport::Interval(thread, interval) => self.seconds.second(thread, interval.second).merge(&interval),
            ThreadReport::Finished(thread, found) => {
                self.seconds.ended(thread);
                self.findings.push(*found);
            }
        }
        while let Some(interval) = self.seconds.take() {
            on_interval(interval);
        }
    }

    /// Passes on the remaining seconds. There are some if a thread ended early.
    pub fn finish(self, on_interval: &mut dyn FnMut(Interval)) -> Vec<Findings> {
        self.seconds.left().for_each(on_interval);
        self.findings
    }
}
