//! What gave out: which resource was used up by the loads that were too much, and whether that explains how far throughput
//! went.
//!
//! For each resource: how much of it was used at each load, how much there is, and its *demand*, what one more iteration a
//! second takes of it (the service demand law: Denning and Buzen, *The Operational Analysis of Queueing Network Models*,
//! 1978). Demand is read off the loads that passed, so that the most iterations that the resource allows are a prediction,
//! and the throughput that was reached can contradict it.

use super::CapacityCell;
use super::levels::{LoadOnStart, by_level};
use super::resource::{Demand, GaveOut, Grade, Intervention, Part, Resource, ResourceUse, Use, User};
use crate::compare::Comparison;
use crate::samples;
use plimsoll_model::host::{Host, LOCAL, is_local};
use plimsoll_model::sample::{BUSY_CONNECTIONS, CONNECTIONS, HostSample, ProcessSample};
use plimsoll_statistics::{Interval, median, rank_slope};
use std::collections::{BTreeMap, BTreeSet};

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

/// What loads with this share of the most iterations use up, they use up for another reason; and where the systems and Plimsoll
/// use less than this share of what is used of the processors, others are that reason.
const HALF: f64 = 0.5;

/// The counter of sessions that wait for a lock.
const LOCK_WAITS: &str = "lock_waits";

/// The results of the loads of a variant under a condition, on this machine. None where no load was too
/// much: nothing gave out.
pub(super) fn gave_out(loads: &[LoadOnStart<'_>], host: &Host) -> Option<GaveOut> {
    if !loads.iter().any(LoadOnStart::missed) {
        return None;
    }
    let levels: Vec<Vec<Observed<'_>>> = by_level(loads).into_iter().map(|loads| observed(loads, host)).collect();
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

impl Observed<'_> {
    /// True if other programs use most of what is used of the machine's processors.
    fn is_crowded(&self) -> bool {
        let here = |sample: &ProcessSample| if is_local(&sample.machine) { sample.cpu_cores } else { 0.0 };
        let own = samples::mean_during(self.load.trial, &self.load.rung.summary, here);
        let own = own.unwrap_or_default() + self.load.rung.generator_cpu.unwrap_or_default();
        self.uses.get(&Resource::Machine).is_some_and(|machine| own < HALF * machine.used)
    }
}

fn observed<'a>(loads: Vec<LoadOnStart<'a>>, host: &Host) -> Vec<Observed<'a>> {
    loads.into_iter().map(|load| Observed { uses: uses(&load, host), load }).collect()
}

/// True if others use most of the machine's processors under most of these loads.
fn are_crowded<'a>(loads: impl Iterator<Item = &'a Observed<'a>>) -> bool {
    let crowded: Vec<bool> = loads.map(Observed::is_crowded).collect();
    2 * crowded.iter().filter(|is_crowded| **is_crowded).count() > crowded.len()
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
    let richer: Vec<(Resource, f64)> = cells[rich]
        .gave_out
        .iter()
        .flat_map(|gave_out| &gave_out.resources)
        .filter_map(|one| Some((one.resource.clone(), one.amount()?)))
        .collect();
    let Some(gave_out) = &mut cells[poor].gave_out else { return };
    let used_up = gave_out.resources.iter_mut().filter(|one| one.grade > Grade::Free && one.resource.has_amount());
    for one in used_up {
        let more = richer.iter().find(|(resource, _)| *resource == one.resource).map(|(_, amount)| *amount);
        if let Some((less, more)) = one.amount().zip(more).filter(|(less, more)| *more >= MORE * less) {
            (one.grade, one.intervention) = (Grade::Shown, Some(Intervention { less, more, ratio, interval }));
        }
    }
    gave_out.sort();
}

fn median_of<'a>(loads: &[Observed<'a>], of: impl Fn(&LoadOnStart<'a>) -> Option<f64>) -> Option<f64> {
    median(&loads.iter().filter_map(|observed| of(&observed.load)).collect::<Vec<f64>>())
}

/// The use of each resource by a load.
fn uses(load: &LoadOnStart<'_>, host: &Host) -> BTreeMap<Resource, Use> {
    let (trial, summary) = (load.trial, &load.rung.summary);
    let mut uses = BTreeMap::new();
    let mut add = |resource: Resource, used: f64, of: f64, saturation: Option<f64>| {
        if used.is_finite() && of > 0.0 {
            uses.insert(resource, Use { used, of, saturation });
        }
    };
    let requests = load.per_second(load.rung.requests).unwrap_or_default();
    // Disk, memory and queues are told of the machine that the systems run on.
    let machine = samples::machine_of_systems(trial);
    let of_host = |of: fn(&HostSample) -> Option<f64>| samples::host_during(trial, summary, machine, of);
    let of_systems = |of: fn(&ProcessSample) -> Option<f64>| samples::systems_during(trial, summary, of);
    let (processors, cores) = (host.processors as f64, of_systems(|sample| Some(sample.cpu_cores)));
    let mut add_processors = |resource: Resource, machine: &str, processors: f64| {
        let of_host = |of: fn(&HostSample) -> Option<f64>| samples::host_during(trial, summary, machine, of);
        if let Some(used) = of_host(|sample| Some(sample.cpu_cores + sample.steal_cores)) {
            add(resource, used, processors, of_host(|sample| sample.cpu_pressure));
        }
    };
    add_processors(Resource::Machine, LOCAL, processors);
    for other in &trial.start.summary.hosts {
        let processors = other.cpu_limit.unwrap_or(f64::INFINITY).min(other.processors as f64);
        add_processors(Resource::Host(other.machine.clone()), &other.machine, processors);
    }
    if let Some(limit) = host.cpu_limit.filter(|limit| *limit < processors) {
        let here = of_systems(|sample| is_local(&sample.machine).then_some(sample.cpu_cores));
        let used = here.values().sum::<f64>() + load.rung.generator_cpu.unwrap_or_default();
        add(Resource::Container, used, limit, None);
    }
    if let Some(busy) = of_host(|sample| sample.disk_busy) {
        add(Resource::Disk, busy, 1.0, of_host(|sample| sample.io_pressure));
    }
    if let Some(waiting) = of_host(|sample| sample.memory_pressure) {
        add(Resource::Memory, waiting, 1.0, None);
    }
    if let Some(dropped) = of_host(|sample| sample.listen_overflows) {
        add(Resource::Accepting, dropped, requests, None);
    }
    for (system, bound) in trial.systems().iter().flat_map(|systems| &systems.bound_to) {
        let machine = samples::processes(trial).find(|(_, sample)| sample.system == *system);
        let machine = machine.map(|(_, sample)| sample.machine.as_str());
        let elsewhere = trial.start.summary.hosts.iter().find(|host| machine == Some(host.machine.as_str()));
        let processors = elsewhere.map_or(processors, |host| host.processors as f64);
        if let Some(cores) = cores.get(system.as_str()).filter(|_| (bound.0.len() as f64) < processors) {
            add(Resource::Processors(system.clone()), *cores, bound.0.len() as f64, None);
        }
    }
    let throttled = of_systems(|sample| sample.throttled);
    for (system, quota) in of_systems(|sample| sample.cpu_quota) {
        let used = cores.get(system).copied().unwrap_or_default();
        add(Resource::Quota(system.to_owned()), used, quota, throttled.get(system).copied());
    }
    for (system, thread) in of_systems(|sample| sample.busiest_thread) {
        let others = cores.get(system).map_or(0.0, |cores| cores - thread);
        if others < OTHER_THREADS * thread {
            add(Resource::Thread(system.to_owned()), thread, 1.0, None);
        }
    }
    let connections = samples::databases_during(trial, summary, CONNECTIONS);
    let busy = samples::databases_during(trial, summary, BUSY_CONNECTIONS);
    let waiting = samples::databases_during(trial, summary, LOCK_WAITS);
    // Where users work on the database itself, its connections are the users.
    let is_load = |name: &str| {
        let facts = trial.databases().iter().find(|facts| facts.name == name);
        facts.is_some_and(|facts| !facts.work.workload.is_empty())
    };
    for (database, busy) in busy {
        if let Some(connections) = connections.get(database).filter(|_| !is_load(database)) {
            add(Resource::Connections(database.to_owned()), busy, *connections, None);
        }
        if let Some(waiting) = waiting.get(database) {
            add(Resource::Locks(database.to_owned()), *waiting, busy, None);
        }
    }
    for ((system, wait), lines) in samples::waits_during(trial, summary) {
        add(Resource::Wait(system.to_owned(), wait.to_owned()), lines, requests, None);
    }
    uses
}

/// A resource over all levels; `most` is the highest throughput.
fn resource_use(resource: &Resource, levels: &[Vec<Observed<'_>>], most: f64) -> Option<ResourceUse> {
    let all: Vec<(f64, Use)> = levels.iter().filter_map(|loads| at_level(resource, loads.iter())).collect();
    let missed = |loads: &'_ [Observed<'_>]| at_level(resource, loads.iter().filter(|observed| observed.load.missed()));
    let too_much = levels.iter().filter_map(|loads| missed(loads));
    let at_most = too_much.max_by(|one, other| one.1.share().total_cmp(&other.1.share()));
    let of = all.last()?.1.of;
    let demand = if resource.is_of_processors() { demand(resource, levels, of) } else { None };
    let is_used_up = at_most.is_some_and(|(_, used)| resource.is_used_up_by(used));
    let explains = demand.is_some_and(|demand| (demand.allows / most).ln().abs() <= EXPLAINS);
    let is_always_used_up = || {
        // What others use as well; a lock may be waited for under light load.
        let lightest = &levels[0];
        let is_light = median_of(lightest, LoadOnStart::throughput).is_some_and(|throughput| throughput <= HALF * most);
        let is_of_others = || *resource == Resource::Machine && are_crowded(lightest.iter());
        let passed = at_level(resource, lightest.iter().filter(|observed| observed.load.passed()));
        let is_used_up = passed.is_some_and(|(_, used)| resource.is_used_up_by(used));
        resource.is_of_the_machine() && is_used_up && (is_light || is_of_others())
    };
    Some(ResourceUse {
        resource: resource.clone(),
        levels: all,
        at_most,
        demand,
        explains,
        grade: match (is_used_up, explains) {
            (false, _) => Grade::Free,
            (true, _) if is_always_used_up() => Grade::Always,
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
    let saturation = median(&used.iter().filter_map(|(_, one)| one.saturation).collect::<Vec<f64>>());
    Some((level, Use { used: median_of(|(_, one)| one.used)?, of: median_of(|(_, one)| one.of)?, saturation }))
}

/// The demand for a resource of which there is `of`, from the loads that passed: the slope of its use over the throughput, or
/// their ratio where loads are too near to one another and others use little of it.
fn demand(resource: &Resource, levels: &[Vec<Observed<'_>>], of: f64) -> Option<Demand> {
    let point = |observed: &Observed<'_>| Some((observed.load.throughput()?, observed.uses.get(resource)?.used));
    let passed = || levels.iter().flatten().filter(|observed| observed.load.passed());
    let points: Vec<(f64, f64)> = passed().filter_map(point).filter(|(x, _)| *x > 0.0).collect();
    let throughputs = || points.iter().map(|(x, _)| *x);
    let (least, most) = (throughputs().reduce(f64::min)?, throughputs().reduce(f64::max)?);
    let is_of_others = || *resource == Resource::Machine && are_crowded(passed());
    let ratio =
        || if is_of_others() { None } else { median(&points.iter().map(|(x, used)| used / x).collect::<Vec<f64>>()) };
    let slope = if most >= RANGE_OF_SLOPE * least { rank_slope(&points) } else { ratio() };
    let of_iteration = slope.filter(|slope| *slope > 0.0)?;
    let at_rest = median(&points.iter().map(|(x, used)| used - of_iteration * x).collect::<Vec<f64>>())?;
    Some(Demand { of_iteration, allows: (of - at_rest.max(0.0)) / of_iteration })
}

/// The users of the processors at the loads that were too much: of those of the machine that the systems run on.
fn parts(loads: &[LoadOnStart<'_>]) -> Vec<Part> {
    let mut cores: BTreeMap<User, Vec<f64>> = BTreeMap::new();
    for load in loads.iter().filter(|load| load.missed()) {
        let (trial, summary) = (load.trial, &load.rung.summary);
        let machine = samples::machine_of_systems(trial);
        let used = |sample: &HostSample| Some(sample.cpu_cores + sample.steal_cores);
        let Some(all) = samples::host_during(trial, summary, machine, used) else { continue };
        let there =
            |sample: &ProcessSample| samples::is_same_machine(&sample.machine, machine).then_some(sample.cpu_cores);
        let systems = samples::systems_during(trial, summary, there);
        let generator = if is_local(machine) { load.rung.generator_cpu.unwrap_or_default() } else { 0.0 };
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

/// The requests that look as if they were served at a time: see [`GaveOut::at_a_time`].
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
mod tests;
