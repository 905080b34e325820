//! Runs the scenarios of a script on agents: each has its share of users, arrivals and iterations.

use super::exit::{Exit, Failure};
use super::settle::Settled;
use super::terminal::Terminal;
use crate::arguments::{self, Flags};
use crate::say;
use plimsoll_fleet::{AgentFacts, Fleet, FleetError, Wanted};
use plimsoll_generator::script::{End, Go, Observer, Parts, Refused, Run, RunOutcome, own_load};
use plimsoll_javascript::Level;
use plimsoll_k6_run::scenario;
use plimsoll_model::event::{Event, Second};
use plimsoll_model::job::{Begin, Job, JobRecord, Report, SetUp};
use plimsoll_model::load::{LoadModel, LoadProfile, Profile, Stop, Think, WHOLE};
use plimsoll_model::record::Interval;
use plimsoll_model::script::{OwnLoad, Script, ScriptLimits};
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::{Instant, UnixTime};
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_runner::generator::{Generator, JobMessage, JobUnderWay, NotReady};
use plimsoll_study::LostAgent;
use plimsoll_system::Interrupt;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

/// The time after which a run looks again whether it is interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The time by which the begin of the scenarios is told ahead.
const LEAD: Duration = Duration::from_secs(1);

/// Refuses what agents cannot do for a script, if the arguments ask for any.
pub(super) fn check(wanted: &arguments::Fleet, flags: &Flags, settled: &Settled) -> Result<(), Failure> {
    if wanted.broker().is_none() {
        return Ok(());
    }
    let refused = |why: &str| Err(Failure::new(Exit::Options, why));
    if wanted.agents() == 0 {
        return refused("say how many agents are to run the script (`--agents N`), or leave `--nats` out");
    }
    if flags.script.as_os_str() == "-" {
        return refused("a script from standard input cannot go to agents: name a file");
    }
    if flags.project.root.is_some() {
        return refused(
            "agents look for the folder of the project by themselves: leave `--root` out, and mark it by a `package.json`",
        );
    }
    if flags.vendor.is_some() {
        return refused(
            "copies of remote modules go to agents only from the project's folder `vendor`: leave `--vendor` out",
        );
    }
    if !settled.outputs.is_empty() {
        return refused(
            "samples of single requests stay on the agents, which send their totals: leave `--out` out, and `K6_OUT`, \
             or take `--summary-export` or `handleSummary`",
        );
    }
    Ok(())
}

/// Waits for the agents that the arguments ask for, if they ask for any. They have passed [`check`].
pub(super) fn gather(
    wanted: &arguments::Fleet,
    flags: &Flags,
    interrupt: &Interrupt,
) -> Result<Option<Fleet>, Failure> {
    let Some(broker) = wanted.broker() else { return Ok(None) };
    let wanted = Wanted {
        agents: wanted.agents(),
        labels: wanted.labels(),
        hosts: Default::default(),
        wait: wanted.wait(),
        // There is one load, and so nothing to repeat: it has no result.
        when_lost: LostAgent::Repeat,
        run: flags.script.display().to_string(),
    };
    let fleet = Fleet::gather(&broker, &wanted, interrupt, &mut say::note).map_err(|error| {
        let exit = if matches!(error, FleetError::Interrupted) { Exit::Interrupted } else { Exit::Failed };
        Failure::new(exit, error.to_string())
    })?;
    let agent = |(name, facts): (&str, &AgentFacts)| format!("{name} ({} processors)", facts.processors);
    say::note(&format!("agents     {}", fleet.agents().map(agent).collect::<Vec<String>>().join(", ")));
    Ok(Some(fleet))
}

/// Runs the scenarios on these agents. Also returns the hosts that the script was not allowed to load there.
pub(super) fn run(
    fleet: &Fleet,
    flags: &Flags,
    run: &Run<'_>,
    observer: &mut dyn Observer,
    terminal: &Terminal,
) -> Result<(RunOutcome, Refused), Failure> {
    let workload = workload(fleet, flags, run)?;
    let failed = |why: String| Failure::new(Exit::Failed, why);
    let mut prepared = fleet.prepare(&workload, None).map_err(|why| match why {
        NotReady::Interrupted => Failure::new(Exit::Interrupted, "the run was interrupted"),
        why => failed(why.to_string()),
    })?;
    let under_way = prepared.begin(job(run));
    let parts = Parts::new(run.plan, fleet.agents().count(), Arc::clone(&run.console));
    let (asked, has_begun, is_ending) = (End::Finished, false, false);
    let mut watched = Watched { under_way, parts, observer, asked, has_begun, is_ending };
    let record = watched.until_ended(run)?;
    record.warnings.iter().for_each(|warning| terminal.log(Level::Warn, warning));
    for agent in &record.agents {
        let (name, cpu) = (&agent.name, agent.cpu);
        let vus = scenario::most_vus(&run.plan.scenarios, agent.share);
        let lateness = agent.headroom.lateness.seconds() * 1e3;
        let line = format!("agent `{name}`: {vus} VUs, {cpu:.2} processors, p99 of lateness {lateness:.1} ms");
        terminal.log(Level::Info, &line);
    }
    let Watched { parts, asked, .. } = watched;
    if !record.faults.is_empty() {
        // A run of some of its parts is another one.
        return Err(failed(format!("the run has no result: {}", record.faults.join("; "))));
    }
    parts.outcome(record, asked).map_err(failed)
}

/// A run on agents, and what observes it.
struct Watched<'a> {
    under_way: Box<dyn JobUnderWay>,
    parts: Parts<'a>,
    observer: &'a mut dyn Observer,
    /// How this process ended the run; [`End::Finished`] if it did not.
    asked: End,
    /// True once the scenarios have been told when they begin.
    has_begun: bool,
    is_ending: bool,
}

impl Watched<'_> {
    fn until_ended(&mut self, run: &Run<'_>) -> Result<JobRecord, Failure> {
        let failed = |why: String| Failure::new(Exit::Failed, why);
        loop {
            if run.interrupted.load(Relaxed) && self.asked == End::Finished {
                self.end(End::Interrupted);
            }
            match self.under_way.next(LOOK_EVERY) {
                None => {}
                Some(JobMessage::Ready) => {
                    self.has_begun = true;
                    self.under_way.begin_at(UnixTime::of(SystemTime::now() + LEAD));
                }
                Some(JobMessage::Report(Report::Second { interval, .. })) => self.second(*interval),
                Some(JobMessage::Report(Report::OwnLoad(report))) => {
                    self.parts.take(&report).map_err(failed)?;
                    if self.parts.must_end() && !self.is_ending {
                        self.end(End::Finished);
                    }
                }
                Some(JobMessage::Report(Report::ObjectsPlaced(_) | Report::SetUp(_) | Report::Console(_))) => {}
                Some(JobMessage::Ended(Ok(record))) => return Ok(*record),
                Some(JobMessage::Ended(Err(error))) => {
                    return Err(failed(format!("failed to run the script: {error}")));
                }
            }
        }
    }

    /// A second that is over on all agents.
    fn second(&mut self, interval: Interval) {
        let passed = Duration::from_secs(u64::try_from(interval.second).unwrap_or(0));
        let elapsed = passed + Duration::from(interval.length);
        self.observer.on_event(&Event::SecondPassed(Box::new(Second::of(1, 1, Instant(0), interval))));
        let progress = self.parts.progress(elapsed);
        if self.observer.check(&progress) == Go::Abort && self.asked == End::Finished {
            self.end(End::Stopped);
        }
    }

    /// Ends the scenarios, after which `teardown` runs. Before they have begun, `setup` is broken off.
    fn end(&mut self, asked: End) {
        (self.asked, self.is_ending) = (asked, true);
        if self.has_begun { self.under_way.end() } else { self.under_way.stop() }
    }
}

/// The script as a workload that has its own load.
fn workload(fleet: &Fleet, flags: &Flags, run: &Run<'_>) -> Result<Workload, Failure> {
    let threads = fleet.agents().map(|(_, facts)| facts.threads).min().unwrap_or(1);
    let threads = flags.threads.map_or(threads, usize::from);
    let own_load = own_load(run.plan, fleet.agents().count()).map_err(|why| Failure::new(Exit::Options, why))?;
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (entry, folder) = (absolute(&flags.script), absolute(Path::new(".")));
    let limits = run.limits.vm;
    let script = Script {
        entry: flags.script.clone(),
        exec: run.plan.scenarios.first().map_or_else(|| "default".to_owned(), |scenario| scenario.exec.clone()),
        env: run.plan.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        files: flags.project.files.clone(),
        limits: ScriptLimits {
            memory: limits.memory as u64,
            stack: limits.stack as u64,
            busy: limits.busy.into(),
            iteration: run.limits.iteration,
        },
        tags: BTreeMap::new(),
        allowed: flags.allow.clone(),
        systems: BTreeMap::new(),
        sources: Vec::new(),
        own_load: Some(OwnLoad { threads, verbose: flags.verbose, entry, folder, ..own_load }),
    };
    let steps = Steps::Script(Box::new(script));
    Ok(Workload { target: None, connect: Connect::PerUser, timeout: Duration::from_secs(60), steps })
}

/// The run as a job of generators: the script says which users there are, and when.
fn job(run: &Run<'_>) -> Job {
    let scenarios = &run.plan.scenarios;
    let users: u64 = scenarios.iter().map(|scenario| scenario.executor.most_vus()).sum();
    let think = Think::Constant(Duration::ZERO);
    let load = LoadProfile {
        model: LoadModel::Closed { users: Profile::constant(users as f64), think },
        warmup: Duration::ZERO,
        stop: Stop::After(scenario::longest(scenarios)),
        drain: Duration::ZERO,
    };
    // Each agent has threads of its own, and nothing judges here how busy they are.
    let generator =
        GeneratorSpec { threads: run.threads, cpus: None, max_cpu: 1.0, max_lateness: Duration::from_secs(1) };
    let (begin, set_up) = (Begin::WhenTold, SetUp::Here);
    Job { load, generator, seed: run.seed, share: WHOLE, begin, set_up, stays: false }
}
