//! The thread that samples systems and host once a second.

use crate::frequency::Frequency;
use crate::host::HostCounters;
use crate::others::{SpanOfOthers, UseByOthers};
use crate::scraper::{Exposing, Scraper};
use crate::snapshot::{ProcessTree, Roots, Snapshot};
use crate::usage::{complete, usage};
use crate::waits::{WaitCounter, Waits};
use plimsoll_model::exposed::{ExposedMetrics, MetricSample};
use plimsoll_model::sample::{HostSample, ProcessSample, Samples, WaitSample, next_whole_second, signed_seconds};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A last span shorter than this gives no sample: a tick more or less would be a tenth of a core.
const SHORTEST: Duration = Duration::from_millis(100);

/// A system to be sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its name in the study.
    pub system: String,
    /// The variant that it is of.
    pub variant: usize,
    /// The parts of which the use is told, each by itself.
    pub parts: Vec<SystemPart>,
    /// What is counted in its output.
    pub waits: Option<Waits>,
    /// The metrics that it exposes.
    pub metrics: Option<ExposedMetrics>,
    /// Sentences on what of it cannot be sampled.
    pub complaints: Vec<String>,
}

/// A system as a whole, or one of its services.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemPart {
    /// Its name in samples.
    pub name: String,
    /// The roots of its processes.
    pub roots: Roots,
}

/// Samples systems and host once a second, from its start until it is stopped.
#[derive(Debug)]
pub struct Sampler {
    began: Instant,
    stop: Sender<()>,
    samples: Receiver<Samples>,
    /// It returns what others used, in spans that count from `began`.
    thread: JoinHandle<Vec<SpanOfOthers>>,
    /// For each target that exposes metrics.
    scrapers: Vec<Scraper>,
    /// On what of the targets cannot be sampled.
    complaints: Vec<String>,
}

/// The end of sampling.
#[derive(Debug)]
pub struct LastSamples {
    /// The samples that were not taken yet.
    pub samples: Samples,
    /// What others used of the processors since the start of sampling.
    pub others: UseByOthers,
    /// Sentences on what cannot be sampled, and on what is missing of the metrics that systems expose.
    pub complaints: Vec<String>,
}

impl Sampler {
    /// Waits for the first answer of each system that exposes metrics, unless it is interrupted. Reads the counters, from which
    /// the first second counts, and starts threads that go on. `machine` is the name of this machine in the run.
    ///
    /// # Errors
    /// The host's counters or a system's metrics cannot be read, no thread can be started, or it is interrupted.
    pub fn start(machine: &str, targets: Vec<Target>, is_interrupted: &dyn Fn() -> bool) -> io::Result<Sampler> {
        let began = Instant::now();
        let exposing = targets.iter().filter_map(|target| {
            let metrics = target.metrics.clone()?;
            Some(Exposing { system: target.system.clone(), variant: target.variant, metrics })
        });
        let scrapers = exposing.map(|one| Scraper::start(one, began, is_interrupted)).collect::<io::Result<_>>()?;
        let first = Observation::take(&targets).map_err(|error| {
            io::Error::other(format!(
                "the counters in /proc cannot be read: {error}; mount /proc, or allow access to it"
            ))
        })?;
        let waits = targets.iter().map(|target| target.waits.as_ref().map(WaitCounter::open).transpose());
        let waits = waits.collect::<io::Result<_>>()?;
        let complaints = targets.iter().flat_map(|target| target.complaints.clone()).collect();
        let ((stop, stopped), (sender, samples)) = (mpsc::channel(), mpsc::channel());
        let sampling = Sampling {
            machine: machine.to_owned(),
            targets,
            waits,
            began,
            last: first,
            ticks_per_second: procfs::ticks_per_second(),
            frequency: Frequency::find(),
            samples: sender,
        };
        let thread = thread::Builder::new().name("telemetry".to_owned()).spawn(move || sampling.run(&stopped))?;
        Ok(Sampler { began, stop, samples, thread, scrapers, complaints })
    }

    /// Takes the samples since the last call, in order of time. Their instants count from `zero`, the start of the
    /// measure phase, which may be before or after the start of sampling.
    #[must_use]
    pub fn take(&self, zero: Instant) -> Samples {
        let metrics = self.scrapers.iter().flat_map(Scraper::take).collect();
        take(&self.samples, metrics, signed_seconds(self.began, zero))
    }

    /// Samples once more, and returns the samples since the last call of `take`. All instants count from `zero`.
    #[must_use]
    pub fn stop(self, zero: Instant) -> LastSamples {
        let Sampler { began, stop, samples, thread, scrapers, mut complaints } = self;
        drop(stop);
        let spans = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (metrics, of_metrics): (Vec<_>, Vec<_>) = scrapers.into_iter().map(Scraper::stop).unzip();
        complaints.extend(of_metrics.into_iter().flatten());
        let shift = signed_seconds(began, zero);
        LastSamples {
            samples: take(&samples, metrics.into_iter().flatten().collect(), shift),
            others: UseByOthers::new(spans, shift),
            complaints,
        }
    }
}

/// Takes the received samples, and `metrics`, and lets their instants begin `shift` seconds later.
fn take(samples: &Receiver<Samples>, metrics: Vec<MetricSample>, shift: f64) -> Samples {
    let mut all = Samples { metrics, ..Samples::default() };
    samples.try_iter().for_each(|samples| all.extend(samples));
    all.shift(shift);
    all
}

/// Counters of all systems and of the host at one instant.
struct Observation {
    at: Instant,
    /// For each part of each system.
    parts: Vec<Snapshot>,
    host: HostCounters,
    /// CPU of this process, the generator's.
    own: Duration,
}

impl Observation {
    fn take(targets: &[Target]) -> procfs::ProcResult<Observation> {
        let at = Instant::now();
        let host = HostCounters::read()?;
        // Reading all processes of a machine takes milliseconds, so this is skipped if no system was started.
        let parts = if targets.iter().any(|target| !target.parts.is_empty()) {
            let tree = ProcessTree::read()?;
            let all = targets.iter().flat_map(|target| &target.parts);
            all.map(|part| tree.of(&part.roots)).collect::<procfs::ProcResult<Vec<Snapshot>>>()?
        } else {
            Vec::new()
        };
        Ok(Observation { at, parts, host, own: own_cpu() })
    }
}

/// The work of the thread. Instants of samples count from `began`.
struct Sampling {
    machine: String,
    targets: Vec<Target>,
    /// For each target what is counted in its output.
    waits: Vec<Option<WaitCounter>>,
    began: Instant,
    last: Observation,
    ticks_per_second: u64,
    frequency: Frequency,
    samples: Sender<Samples>,
}

impl Sampling {
    /// Samples at each whole second from the start until told to stop, and then once more. Returns what others used.
    fn run(mut self, stopped: &Receiver<()>) -> Vec<SpanOfOthers> {
        let mut others = Vec::new();
        loop {
            let due = next_whole_second(self.began.elapsed());
            let left = (self.began + due).saturating_duration_since(Instant::now());
            match stopped.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => others.extend(self.sample()),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if self.last.at.elapsed() >= SHORTEST {
            others.extend(self.sample());
        }
        others
    }

    /// Sends a sample of each system and of the host, and returns what others used. If counters cannot be read this
    /// time, the next sample covers the longer span.
    fn sample(&mut self) -> Option<SpanOfOthers> {
        let mut now = Observation::take(&self.targets).ok()?;
        self.last.parts.iter().zip(&mut now.parts).for_each(|(before, after)| complete(before, after));
        let span = now.at.duration_since(self.last.at);
        let at = now.at.duration_since(self.began).as_secs_f64();
        let parts = self.targets.iter().flat_map(|target| target.parts.iter().map(|part| (part, target.variant)));
        let pairs = parts.zip(self.last.parts.iter().zip(&now.parts));
        let processes = pairs.map(|((part, variant), (before, after))| ProcessSample {
            at,
            machine: self.machine.clone(),
            system: part.name.clone(),
            variant,
            ..usage(before, after, span, self.ticks_per_second)
        });
        let host = now.host.since(&self.last.host, span, self.ticks_per_second);
        let host = HostSample { at, machine: self.machine.clone(), frequency_mhz: self.frequency.read(), ..host };
        let processes = processes.collect();
        let waits = self.waits(at);
        let samples = Samples { processes, host: vec![host], waits, ..Samples::default() };
        let own = now.own.saturating_sub(self.last.own).as_secs_f64() / span.as_secs_f64();
        let systems: f64 = samples.processes.iter().map(|sample| sample.cpu_cores).sum();
        let host = &samples.host[0];
        let cores = (host.cpu_cores - own - systems).max(0.0) + host.steal_cores;
        // The receiver is gone once the start is over.
        let _ = self.samples.send(samples);
        self.last = now;
        Some(SpanOfOthers { from: at - span.as_secs_f64(), to: at, cores })
    }

    /// The waits that systems wrote of since the last sample.
    fn waits(&mut self, at: f64) -> Vec<WaitSample> {
        let counters = self.targets.iter().zip(&mut self.waits);
        let counted = counters.filter_map(|(target, counter)| Some((target, counter.as_mut()?.take())));
        counted
            .flat_map(|(target, counts)| {
                counts.into_iter().map(|(wait, lines)| WaitSample {
                    at,
                    system: target.system.clone(),
                    variant: target.variant,
                    wait,
                    lines,
                })
            })
            .collect()
    }
}

/// CPU time of this process, all of its threads together.
fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
