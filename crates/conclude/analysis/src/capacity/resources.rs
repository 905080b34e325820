//! What gave out: which resource was used up by the loads that were too much, and whether that explains how far throughput
//! went.
//!
//! For each resource: how much of it was used at each load, how much there is, and its *demand*, what one more iteration a
//! second takes of it (the service demand law: Denning and Buzen, *The Operational Analysis of Queueing Network Models*,
//! 1978). Demand is read off the loads that passed, so that the most iterations that the resource allows are a prediction,
//! and the throughput that was reached can contradict it.

use super::CapacityCell;
use super::levels::{LoadOnStart, by_level};
use crate::compare::Comparison;
use crate::samples;
use plimsoll_model::sample::{BUSY_CONNECTIONS, CONNECTIONS};
use plimsoll_statistics::{Interval, median, rank_slope};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A resource is used up from this share of it on.
const USED_UP: f64 = 0.9;

/// The same for connections that wait for a lock: users whose work is done one after the other wait all but one.
const WAITING_FOR_LOCKS: f64 = 0.5;

/// The same for lines that say that something waited, as a share of the requests: a system that writes of waits at all
/// usually does so of long ones.
const WAITING: f64 = 0.01;

/// A thread is the limit of a system only where its other threads use less than this share of what it uses.
const OTHER_THREADS: f64 = 0.5;

/// A prediction explains a throughput that is at most this share away from it.
const EXPLAINS: f64 = 0.1;

/// Demand is a slope where the largest throughput is at least so many times the smallest.
const RANGE_OF_SLOPE: f64 = 2.0;

/// A variant has more of a resource than another one where it has at least so many times as much.
const MORE: f64 = 1.2;

/// A load with this share of the most requests per second is light: requests hardly wait for one another.
const LIGHT: f64 = 0.25;

/// The counter of sessions that wait for a lock.
const LOCK_WAITS: &str = "lock_waits";

/// A resource that load can use up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The processors of the machine, whoever uses them.
    Machine,
    /// The processors that a system is bound to.
    Processors(String),
    /// One thread of a system, which is all that works.
    Thread(String),
    /// The connections of clients to a database: a pool that has no free one.
    Connections(String),
    /// Connections to a database that wait for a lock.
    Locks(String),
    /// The busiest disk of the machine.
    Disk,
    /// What a system writes in its output that it waits for, by the name in the study.
    Wait(String, String),
}

impl Resource {
    /// The share of it from which on it counts as used up.
    fn limit(&self) -> f64 {
        match self {
            Resource::Locks(_) => WAITING_FOR_LOCKS,
            Resource::Wait(..) => WAITING,
            _ => USED_UP,
        }
    }

    /// How much else it may be used up by. A thread, or a system's own processors, that are used up are not held back by the
    /// rest of the machine, and connections that wait for locks not by how many there are. Waits for a pool, and a pool without
    /// a free connection, may be what follows from anything that is slow.
    fn generality(&self) -> u8 {
        match self {
            Resource::Thread(_) | Resource::Processors(_) | Resource::Locks(_) => 0,
            Resource::Wait(..) => 2,
            Resource::Machine | Resource::Disk => 1,
            Resource::Connections(_) => 3,
        }
    }

    /// True for waits, which are told as a share of the requests.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        matches!(self, Resource::Wait(..))
    }

    /// True for what is a share of the time, and so has no amount.
    #[must_use]
    pub fn is_time(&self) -> bool {
        matches!(self, Resource::Disk | Resource::Thread(_))
    }

    /// True for what is counted in cores, which an iteration takes a fixed time of.
    #[must_use]
    pub fn is_of_processors(&self) -> bool {
        matches!(self, Resource::Machine | Resource::Processors(_) | Resource::Thread(_))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Machine => f.write_str("the processors of the machine"),
            Resource::Processors(system) => write!(f, "the processors of {system}"),
            Resource::Thread(system) => write!(f, "one thread of {system}"),
            Resource::Connections(database) => write!(f, "the connections to {database}"),
            Resource::Locks(database) => write!(f, "locks in {database}"),
            Resource::Disk => f.write_str("the disk"),
            Resource::Wait(system, wait) => write!(f, "{wait} of {system}"),
        }
    }
}

/// What a load used of a resource, and how much there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// Used: cores, connections, a share of the time, or waits per second.
    pub used: f64,
    /// How much there is; of waits, the requests per second.
    pub of: f64,
}

impl Use {
    /// The share that is used.
    #[must_use]
    pub fn share(self) -> f64 {
        self.used / self.of
    }
}

/// A resource over the loads.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceUse {
    /// The resource.
    pub resource: Resource,
    /// Its use by level of load, the median of the loads.
    pub levels: Vec<(f64, Use)>,
    /// The level of loads that were too much at which most of it was used; none where no load was too much.
    pub at_most: Option<(f64, Use)>,
    /// What an iteration takes of it; none for what is not counted in cores.
    pub demand: Option<Demand>,
    /// True if it allows about as many iterations as there were at most.
    pub explains: bool,
    /// How sure it is that it is what gave out.
    pub grade: Grade,
    /// What having more of it changed.
    pub intervention: Option<Intervention>,
}

/// Two variants, one of which has more of a resource that the other one used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervention {
    /// How much there was.
    pub less: f64,
    /// How much there is in the other variant.
    pub more: f64,
    /// The capacity of the variant with more, over that of the variant with less.
    pub ratio: f64,
    /// Its interval, which leaves out no change.
    pub interval: Interval,
}

/// What an iteration takes of a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// In seconds of a processor.
    pub of_iteration: f64,
    /// The iterations per second that the resource allows.
    pub allows: f64,
}

/// How sure it is that a resource is what gave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It was not used up.
    Free,
    /// It was used up by loads that were too much.
    UsedUp,
    /// The same, and it allows about as many iterations as there were at most.
    Explains,
    /// It was used up, and a variant with more of it has a larger capacity.
    Shown,
}

/// A part of what was used of the machine's processors.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Whose.
    pub of: User,
    /// In cores.
    pub cores: f64,
}

/// A user of processors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    /// A system of the study.
    System(String),
    /// Plimsoll, which generates the load.
    Generator,
    /// Everything else.
    Others,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::System(name) => f.write_str(name),
            User::Generator => f.write_str("the load generator"),
            User::Others => f.write_str("other programs and the kernel"),
        }
    }
}

/// What gave out, as far as it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct GaveOut {
    /// All resources that were observed: the surest first, then the most used.
    pub resources: Vec<ResourceUse>,
    /// The users of the machine's processors at the loads that were too much, the largest first.
    pub parts: Vec<Part>,
    /// The requests that are served at a time, as it looks from outside: the most requests per second times the mean duration
    /// of one at the lightest load (Little's law). None where that load is not light.
    pub at_a_time: Option<f64>,
}

impl GaveOut {
    /// The resource that gave out: the surest of those that were used up.
    #[must_use]
    pub fn first(&self) -> Option<&ResourceUse> {
        self.resources.first().filter(|one| one.grade > Grade::Free)
    }

    /// The surest first; of those that are equally sure the most specific, then the most used.
    fn sort(&mut self) {
        let place = |one: &ResourceUse| if one.grade == Grade::Free { 0 } else { one.resource.generality() };
        let share = |one: &ResourceUse| one.at_most.map_or(0.0, |(_, used)| used.share());
        self.resources.sort_by(|one, other| {
            let by_grade = other.grade.cmp(&one.grade);
            by_grade.then(place(one).cmp(&place(other))).then(share(other).total_cmp(&share(one)))
        });
    }
}

/// The results of the loads of a variant under a condition, on a machine with so many processors. None where no load was too
/// much: nothing gave out.
pub(super) fn gave_out(loads: &[LoadOnStart<'_>], processors: f64) -> Option<GaveOut> {
    if !loads.iter().any(LoadOnStart::missed) {
        return None;
    }
    let levels: Vec<Vec<Observed<'_>>> = by_level(loads).into_iter().map(|loads| observed(loads, processors)).collect();
    let most = levels.iter().filter_map(|loads| median_of(loads, LoadOnStart::throughput)).reduce(f64::max)?;
    let all: BTreeSet<&Resource> = levels.iter().flatten().flat_map(|observed| observed.uses.keys()).collect();
    let mut gave_out = GaveOut {
        resources: all.into_iter().filter_map(|resource| resource_use(resource, &levels, most)).collect(),
        parts: parts(loads),
        at_a_time: at_a_time(&levels),
    };
    gave_out.sort();
    Some(gave_out)
}

/// A load with what it used of each resource.
struct Observed<'a> {
    load: LoadOnStart<'a>,
    uses: BTreeMap<Resource, Use>,
}

fn observed(loads: Vec<LoadOnStart<'_>>, processors: f64) -> Vec<Observed<'_>> {
    loads.into_iter().map(|load| Observed { uses: uses(&load, processors), load }).collect()
}

/// Looks for resources of which one of the two variants of a comparison of capacities has more: where the other one used it
/// up and has the smaller capacity, that it gave out is shown.
pub(super) fn intervene(cells: &mut [CapacityCell], comparison: &Comparison) {
    let Ok(contrast) = &comparison.contrast else { return };
    let Ok(interval) = contrast.interval else { return };
    let place = |variant: usize| {
        cells.iter().position(|cell| cell.condition == comparison.condition && cell.variant == variant)
    };
    let Some((baseline, variant)) = place(0).zip(place(comparison.variant)) else { return };
    let (poor, rich, ratio, interval) = if interval.low > 1.0 {
        (baseline, variant, contrast.value, interval)
    } else if interval.high < 1.0 {
        let inverse = Interval { low: 1.0 / interval.high, high: 1.0 / interval.low };
        (variant, baseline, 1.0 / contrast.value, inverse)
    } else {
        return;
    };
    let there_is = |cell: &CapacityCell, resource: &Resource| {
        let all = cell.gave_out.as_ref()?.resources.iter().find(|one| one.resource == *resource)?;
        all.levels.last().map(|(_, used)| used.of)
    };
    let richer = cells[rich].clone();
    let poorer = cells[poor].clone();
    let Some(gave_out) = &mut cells[poor].gave_out else { return };
    for one in gave_out.resources.iter_mut().filter(|one| one.grade > Grade::Free) {
        let amounts = there_is(&poorer, &one.resource).zip(there_is(&richer, &one.resource));
        let has_amount = !one.resource.is_wait() && !one.resource.is_time();
        if let Some((less, more)) = amounts.filter(|(less, more)| has_amount && *more >= MORE * less) {
            (one.grade, one.intervention) = (Grade::Shown, Some(Intervention { less, more, ratio, interval }));
        }
    }
    gave_out.sort();
}

fn median_of<'a>(loads: &[Observed<'a>], of: impl Fn(&LoadOnStart<'a>) -> Option<f64>) -> Option<f64> {
    median(&loads.iter().filter_map(|observed| of(&observed.load)).collect::<Vec<f64>>())
}

/// What a load used of each resource.
fn uses(load: &LoadOnStart<'_>, processors: f64) -> BTreeMap<Resource, Use> {
    let (trial, summary) = (load.trial, &load.rung.summary);
    let mut uses = BTreeMap::new();
    let mut add = |resource: Resource, used: f64, of: f64| {
        if used.is_finite() && of > 0.0 {
            uses.insert(resource, Use { used, of });
        }
    };
    if let Some(cores) = samples::host_during(trial, summary, |sample| Some(sample.cpu_cores + sample.steal_cores)) {
        add(Resource::Machine, cores, processors);
    }
    if let Some(busy) = samples::host_during(trial, summary, |sample| sample.disk_busy) {
        add(Resource::Disk, busy, 1.0);
    }
    let cores = samples::systems_during(trial, summary, |sample| Some(sample.cpu_cores));
    let systems = trial.start.summary.systems.iter().find(|systems| systems.variant == trial.variant());
    for (system, bound) in systems.iter().flat_map(|systems| &systems.bound_to) {
        if let Some(cores) = cores.get(system.as_str()).filter(|_| (bound.0.len() as f64) < processors) {
            add(Resource::Processors(system.clone()), *cores, bound.0.len() as f64);
        }
    }
    for (system, thread) in samples::systems_during(trial, summary, |sample| sample.busiest_thread) {
        let others = cores.get(system).map_or(0.0, |cores| cores - thread);
        if others < OTHER_THREADS * thread {
            add(Resource::Thread(system.to_owned()), thread, 1.0);
        }
    }
    let connections = samples::databases_during(trial, summary, CONNECTIONS);
    let busy = samples::databases_during(trial, summary, BUSY_CONNECTIONS);
    let waiting = samples::databases_during(trial, summary, LOCK_WAITS);
    for (database, busy) in busy {
        if let Some(connections) = connections.get(database) {
            add(Resource::Connections(database.to_owned()), busy, *connections);
        }
        if let Some(waiting) = waiting.get(database) {
            add(Resource::Locks(database.to_owned()), *waiting, busy);
        }
    }
    let requests = load.per_second(load.rung.requests).unwrap_or_default();
    for ((system, wait), lines) in samples::waits_during(trial, summary) {
        add(Resource::Wait(system.to_owned(), wait.to_owned()), lines, requests);
    }
    uses
}

fn resource_use(resource: &Resource, levels: &[Vec<Observed<'_>>], most: f64) -> Option<ResourceUse> {
    let all: Vec<(f64, Use)> = levels.iter().filter_map(|loads| at_level(resource, loads.iter())).collect();
    let missed = |loads: &'_ [Observed<'_>]| at_level(resource, loads.iter().filter(|observed| observed.load.missed()));
    let too_much = levels.iter().filter_map(|loads| missed(loads));
    let at_most = too_much.max_by(|one, other| one.1.share().total_cmp(&other.1.share()));
    let of = all.last()?.1.of;
    let demand = if resource.is_of_processors() { demand(resource, levels, of) } else { None };
    let is_used_up = at_most.is_some_and(|(_, used)| used.share() >= resource.limit());
    let explains = demand.is_some_and(|demand| (demand.allows / most).ln().abs() <= EXPLAINS);
    Some(ResourceUse {
        resource: resource.clone(),
        levels: all,
        at_most,
        demand,
        explains,
        grade: match (is_used_up, explains) {
            (false, _) => Grade::Free,
            (true, false) => Grade::UsedUp,
            (true, true) => Grade::Explains,
        },
        intervention: None,
    })
}

/// The level of these loads, and the median of what they used of a resource.
fn at_level<'a>(resource: &Resource, loads: impl Iterator<Item = &'a Observed<'a>>) -> Option<(f64, Use)> {
    let used: Vec<(f64, Use)> =
        loads.filter_map(|observed| Some((observed.load.rung.rung.level, *observed.uses.get(resource)?))).collect();
    let median_of = |of: fn(&(f64, Use)) -> f64| median(&used.iter().map(of).collect::<Vec<f64>>());
    let level = median_of(|(level, _)| *level)?;
    Some((level, Use { used: median_of(|(_, one)| one.used)?, of: median_of(|(_, one)| one.of)? }))
}

/// The demand for a resource of which there is `of`, from the loads that passed: the slope of its use over the throughput, or
/// their ratio where loads are too near to one another.
fn demand(resource: &Resource, levels: &[Vec<Observed<'_>>], of: f64) -> Option<Demand> {
    let point = |observed: &Observed<'_>| Some((observed.load.throughput()?, observed.uses.get(resource)?.used));
    let passed = levels.iter().flatten().filter(|observed| observed.load.passed());
    let points: Vec<(f64, f64)> = passed.filter_map(point).filter(|(x, _)| *x > 0.0).collect();
    let throughputs = || points.iter().map(|(x, _)| *x);
    let (least, most) = (throughputs().reduce(f64::min)?, throughputs().reduce(f64::max)?);
    let ratio = || median(&points.iter().map(|(x, used)| used / x).collect::<Vec<f64>>());
    let slope = if most >= RANGE_OF_SLOPE * least { rank_slope(&points) } else { ratio() };
    let of_iteration = slope.filter(|slope| *slope > 0.0)?;
    let at_rest = median(&points.iter().map(|(x, used)| used - of_iteration * x).collect::<Vec<f64>>())?;
    Some(Demand { of_iteration, allows: (of - at_rest.max(0.0)) / of_iteration })
}

/// Who used the machine's processors at the loads that were too much.
fn parts(loads: &[LoadOnStart<'_>]) -> Vec<Part> {
    let mut cores: BTreeMap<User, Vec<f64>> = BTreeMap::new();
    for load in loads.iter().filter(|load| load.missed()) {
        let (trial, summary) = (load.trial, &load.rung.summary);
        let Some(all) = samples::host_during(trial, summary, |sample| Some(sample.cpu_cores + sample.steal_cores))
        else {
            continue;
        };
        let systems = samples::systems_during(trial, summary, |sample| Some(sample.cpu_cores));
        let generator = load.rung.generator_cpu.unwrap_or_default();
        let others = (all - generator - systems.values().sum::<f64>()).max(0.0);
        let systems = systems.into_iter().map(|(name, cores)| (User::System(name.to_owned()), cores));
        for (user, used) in systems.chain([(User::Generator, generator), (User::Others, others)]) {
            cores.entry(user).or_default().push(used);
        }
    }
    let parts = cores.into_iter().filter_map(|(of, cores)| Some(Part { of, cores: median(&cores)? }));
    let mut parts: Vec<Part> = parts.collect();
    parts.sort_by(|one, other| other.cores.total_cmp(&one.cores));
    parts
}

fn at_a_time(levels: &[Vec<Observed<'_>>]) -> Option<f64> {
    let requests = |load: &LoadOnStart<'_>| load.per_second(load.rung.requests);
    let most = levels.iter().filter_map(|loads| median_of(loads, requests)).reduce(f64::max)?;
    let lightest = levels.first()?.iter().map(|observed| observed.load.rung);
    let (count, seconds) =
        lightest.fold((0, 0.0), |(count, seconds), rung| (count + rung.requests, seconds + rung.in_requests));
    let is_light = median_of(levels.first()?, requests)? <= LIGHT * most;
    (count > 0 && is_light).then(|| most * seconds / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Contrast;
    use crate::testing::{only_trial, start};
    use plimsoll_model::objective::{Judged, Passed};
    use plimsoll_model::result::{RungResult, StartResult};
    use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample, WaitSample};
    use plimsoll_model::start::{Rung, RungPart};
    use plimsoll_model::units::{Instant, Nanos, Processors};

    const SECONDS: u64 = 5;

    /// A service that does at most 100 iterations a second, for users who think for a second: a load of each of these sizes,
    /// one after the other. `sample` adds what is sampled in a second, from the iterations in it and the users.
    fn service(sample: &dyn Fn(&mut StartResult, f64, [f64; 2])) -> StartResult {
        let mut result = start(1.0);
        let summary = result.loads[0].summary.clone();
        for (place, users) in (0..).zip([10.0, 20.0, 40.0, 80.0, 95.0, 130.0, 200.0]) {
            let (zero, throughput) = (place * 10, f64::min(users, 100.0));
            let passed = if users < 100.0 { Passed::Yes } else { Passed::No };
            let mut summary = summary.clone();
            summary.timing.zero = Instant(zero * 1_000_000_000);
            summary.timing.window = Nanos(SECONDS * 1_000_000_000);
            summary.objective =
                Some(Judged { passed, readings: Vec::new(), reasons: Vec::new(), share_of_needed: 1.0, strain: None });
            let count = (throughput * SECONDS as f64) as u64;
            result.loads[0].rungs.push(RungResult {
                rung: Rung { level: users, part: RungPart::Bracket },
                summary,
                iterations: count,
                requests: 2 * count,
                in_requests: 0.02 * count as f64,
                generator_cpu: Some(0.1),
            });
            for second in 1..=SECONDS as i64 {
                sample(&mut result, (zero + second) as f64, [throughput, users]);
            }
        }
        result
    }

    /// A second in which the system `web` used so many cores, one of its threads so many, and the machine so many.
    fn cores(result: &mut StartResult, at: f64, [web, thread, machine]: [f64; 3]) {
        result.processes.push(ProcessSample {
            at,
            system: "web".to_owned(),
            cpu_cores: web,
            busiest_thread: Some(thread),
            ..ProcessSample::default()
        });
        result.host.push(HostSample { at, cpu_cores: machine, disk_busy: Some(0.1), ..HostSample::default() });
    }

    fn found(result: &StartResult) -> GaveOut {
        let trial = only_trial(result);
        let loads: Vec<LoadOnStart<'_>> = trial.load.rungs.iter().map(|rung| LoadOnStart { trial, rung }).collect();
        gave_out(&loads, 4.0).expect("loads that were too much")
    }

    fn named(gave_out: &GaveOut) -> Option<(Resource, Grade)> {
        gave_out.first().map(|first| (first.resource.clone(), first.grade))
    }

    #[test]
    fn processors_that_are_used_up_explain_the_throughput() {
        let all = found(&service(&|result, at, [throughput, _]| {
            cores(result, at, [0.038 * throughput, 0.01 * throughput, 0.1 + 0.039 * throughput]);
        }));
        assert_eq!(named(&all), Some((Resource::Machine, Grade::Explains)));
        let demand = all.first().and_then(|first| first.demand).expect("a demand");
        assert!((demand.of_iteration - 0.039).abs() < 1e-6 && (demand.allows - 100.0).abs() < 0.1, "{demand:?}");
        assert_eq!(all.parts[0].of, User::System("web".to_owned()));
        assert!((all.at_a_time.expect("requests") - 200.0 * 0.01).abs() < 1e-9, "{:?}", all.at_a_time);
    }

    #[test]
    fn a_thread_that_is_used_up_comes_before_the_machine() {
        // Others use what is left of the machine.
        let all = found(&service(&|result, at, [throughput, _]| {
            cores(result, at, [0.0099 * throughput, 0.0098 * throughput, 4.0]);
        }));
        assert_eq!(named(&all), Some((Resource::Thread("web".to_owned()), Grade::Explains)));
        let two_threads = found(&service(&|result, at, [throughput, _]| {
            cores(result, at, [0.0196 * throughput, 0.0098 * throughput, 2.0]);
        }));
        assert_eq!(named(&two_threads), None, "a system with two busy threads has more than one");
    }

    #[test]
    fn processors_that_a_system_is_bound_to_are_its_limit() {
        let mut bound = service(&|result, at, [throughput, _]| {
            cores(result, at, [0.0195 * throughput, 0.01 * throughput, 2.5]);
        });
        bound.summary.systems[0].bound_to = [("web".to_owned(), Processors(vec![2, 3]))].into();
        assert_eq!(named(&found(&bound)), Some((Resource::Processors("web".to_owned()), Grade::Explains)));
    }

    #[test]
    fn what_is_used_up_and_does_not_explain_is_told_as_such() {
        // It spins when it has nothing to do: an iteration takes little.
        let all = found(&service(&|result, at, [throughput, users]| {
            let machine = if users > 100.0 { 3.9 } else { 0.5 + 0.002 * throughput };
            cores(result, at, [machine, 1.0, machine]);
        }));
        assert_eq!(named(&all), Some((Resource::Machine, Grade::UsedUp)));
    }

    #[test]
    fn what_only_waits_is_unknown() {
        let all = found(&service(&|result, at, [throughput, _]| {
            cores(result, at, [0.002 * throughput, 0.001 * throughput, 0.005 * throughput]);
        }));
        assert_eq!(named(&all), None);
        assert_eq!(all.resources[0].resource, Resource::Machine, "the most used");
        assert_eq!(gave_out(&[], 4.0), None, "no load");
    }

    /// A service with a pool of so many connections to a database, all of which are busy at 100 iterations a second.
    fn pooled(connections: f64, waiting: f64) -> StartResult {
        service(&|result, at, [throughput, _]| {
            cores(result, at, [0.2, 0.1, 0.5]);
            let busy = connections * throughput / 100.0;
            for (counter, value) in [(CONNECTIONS, connections), (BUSY_CONNECTIONS, busy), (LOCK_WAITS, waiting * busy)]
            {
                let (database, counter) = ("db".to_owned(), counter.to_owned());
                result.databases.push(DatabaseSample { at, database, variant: 0, counter, value });
            }
        })
    }

    #[test]
    fn a_pool_without_a_free_connection_is_used_up() {
        assert_eq!(named(&found(&pooled(10.0, 0.1))), Some((Resource::Connections("db".to_owned()), Grade::UsedUp)));
        let locked = found(&pooled(10.0, 0.9));
        assert_eq!(named(&locked), Some((Resource::Locks("db".to_owned()), Grade::UsedUp)));
        assert_eq!(locked.resources[1].grade, Grade::UsedUp, "connections that wait for locks are busy");
    }

    #[test]
    fn waits_that_a_system_writes_of_are_told() {
        let waiting = |share: f64| {
            service(&|result, at, [throughput, users]| {
                cores(result, at, [0.2, 0.1, 0.5]);
                let lines = if users > 100.0 { (2.0 * throughput * share) as u64 } else { 0 };
                let (system, wait) = ("web".to_owned(), "pool".to_owned());
                result.waits.push(WaitSample { at, system, variant: 0, wait, lines });
            })
        };
        let pool = Resource::Wait("web".to_owned(), "pool".to_owned());
        assert_eq!(named(&found(&waiting(0.03))), Some((pool, Grade::UsedUp)));
        assert_eq!(named(&found(&waiting(0.005))), None);
    }

    #[test]
    fn a_variant_with_more_of_it_shows_that_it_gave_out() {
        let cell = |variant: usize, connections: f64| CapacityCell {
            condition: 0,
            variant,
            starts: Vec::new(),
            found: Err(String::new()),
            limits: Vec::new(),
            confirmations: Vec::new(),
            levels: Vec::new(),
            range: None,
            gave_out: Some(found(&pooled(connections, 0.0))),
        };
        let comparison = |value: f64, low: f64, high: f64| Comparison {
            condition: 0,
            variant: 1,
            measure: "capacity.count".parse().expect("a measure"),
            pairs: Vec::new(),
            dropped: Vec::new(),
            contrast: Ok(Contrast {
                value,
                n: 5,
                range: Interval { low, high },
                interval: Ok(Interval { low, high }),
                ranked: None,
                p: None,
                detectable: None,
            }),
            verdict: None,
            exploratory: None,
            in_turns: None,
        };
        let grades = |cells: [f64; 2], comparison: &Comparison| {
            let mut cells = [cell(0, cells[0]), cell(1, cells[1])];
            intervene(&mut cells, comparison);
            cells.map(|cell| cell.gave_out.and_then(|gave_out| named(&gave_out)).map(|(_, grade)| grade))
        };
        let larger = comparison(1.37, 1.2, 1.5);
        assert_eq!(grades([10.0, 30.0], &larger), [Some(Grade::Shown), Some(Grade::UsedUp)]);
        assert_eq!(grades([30.0, 10.0], &comparison(0.7, 0.6, 0.8)), [Some(Grade::UsedUp), Some(Grade::Shown)]);
        let not_shown = [Some(Grade::UsedUp); 2];
        assert_eq!(grades([10.0, 11.0], &larger), not_shown, "about as many");
        assert_eq!(grades([30.0, 10.0], &larger), not_shown, "fewer of them, and larger");
        assert_eq!(grades([10.0, 30.0], &comparison(1.1, 0.9, 1.3)), not_shown, "perhaps no change");
    }
}
