//! Tests of what is said to have given out, on services whose limit is known.

use super::*;
use crate::compare::Contrast;
use crate::testing::{only_trial, start};
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::host::Host;
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
        summary.objective = Some(Judged {
            passed,
            readings: Vec::new(),
            reasons: Vec::new(),
            share_of_needed: 1.0,
            strain: None,
            share_to_weigh: None,
        });
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
    gave_out(&loads, &four_processors()).expect("loads that were too much")
}

fn four_processors() -> Host {
    Host { processors: 4, ..Host::default() }
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
fn a_quota_is_a_limit_and_one_that_is_hit_in_bursts_as_well() {
    let limited = |throttled: f64, of_an_iteration: f64| {
        found(&service(&|result, at, [throughput, users]| {
            cores(result, at, [of_an_iteration * throughput, 0.003 * throughput, 2.5]);
            let sample = result.processes.last_mut().expect("a sample");
            (sample.cpu_quota, sample.throttled) = (Some(1.5), Some(if users > 100.0 { throttled } else { 0.0 }));
        }))
    };
    let quota = Resource::Quota("web".to_owned());
    assert_eq!(named(&limited(0.9, 0.0146)), Some((quota.clone(), Grade::Explains)));
    let in_bursts = limited(0.6, 0.009);
    assert_eq!(named(&in_bursts), Some((quota, Grade::UsedUp)), "three fifths of it on average");
    assert_eq!(in_bursts.resources[0].at_most.and_then(|(_, used)| used.saturation), Some(0.6));
    assert_eq!(named(&limited(0.2, 0.009)), None);
}

#[test]
fn a_container_may_use_less_than_the_machine_has() {
    let result = service(&|result, at, [throughput, _]| {
        cores(result, at, [0.0137 * throughput, 0.003 * throughput, 2.5]);
    });
    let trial = only_trial(&result);
    let loads: Vec<LoadOnStart<'_>> = trial.load.rungs.iter().map(|rung| LoadOnStart { trial, rung }).collect();
    let of = |cpu_limit: f64| {
        let host = Host { cpu_limit: Some(cpu_limit), ..four_processors() };
        named(&gave_out(&loads, &host).expect("loads that were too much"))
    };
    assert_eq!(of(1.5), Some((Resource::Container, Grade::Explains)), "with 0.1 of the generator");
    assert_eq!((of(2.0), of(8.0)), (None, None));
}

#[test]
fn tasks_that_wait_for_memory_and_connections_that_none_accepts_are_told() {
    let with = |add: fn(&mut HostSample)| {
        named(&found(&service(&|result, at, [_, users]| {
            cores(result, at, [0.2, 0.1, 0.5]);
            if users > 100.0 {
                add(result.host.last_mut().expect("a sample"));
            }
        })))
    };
    let few = with(|sample| (sample.memory_pressure, sample.listen_overflows) = (Some(0.05), Some(1.0)));
    assert_eq!(few, None);
    assert_eq!(with(|sample| sample.memory_pressure = Some(0.3)), Some((Resource::Memory, Grade::UsedUp)));
    // 200 requests a second.
    assert_eq!(with(|sample| sample.listen_overflows = Some(8.0)), Some((Resource::Accepting, Grade::UsedUp)));
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
fn what_light_loads_use_up_as_well_did_not_give_out() {
    // Others use what the service leaves of the machine.
    let all = found(&service(&|result, at, [throughput, _]| {
        cores(result, at, [0.002 * throughput, 0.001 * throughput, 3.95]);
    }));
    assert_eq!((named(&all), all.resources[0].grade), (None, Grade::Always));
    let (what, evidence) = crate::capacity::what_gave_out(&all, "users");
    assert_eq!(what, "unknown");
    let says =
        "light loads used up the processors of the machine, mostly used by other programs and the kernel as well";
    assert!(evidence.starts_with(says), "{evidence}");
    let pooled = found(&service(&|result, at, [throughput, _]| {
        cores(result, at, [0.2, 0.1, 3.95]);
        let busy = 10.0 * throughput / 100.0;
        for (counter, value) in [(CONNECTIONS, 10.0), (BUSY_CONNECTIONS, busy)] {
            let (database, counter) = ("db".to_owned(), counter.to_owned());
            result.databases.push(DatabaseSample { at, database, variant: 0, counter, value });
        }
    }));
    assert_eq!(named(&pooled), Some((Resource::Connections("db".to_owned()), Grade::UsedUp)));
}

#[test]
fn what_others_use_of_a_busy_machine_did_not_give_out() {
    // Users who do not think: one of them has all of the throughput already.
    let without_pauses = |of_web: f64, machine: f64| {
        let mut result = service(&|result, at, _| cores(result, at, [of_web, 0.3 * of_web, machine]));
        result.loads[0].rungs.iter_mut().for_each(|rung| rung.iterations = 500);
        found(&result)
    };
    let crowded = without_pauses(0.2, 3.9);
    assert_eq!((named(&crowded), crowded.resources[0].grade), (None, Grade::Always));
    assert_eq!(crowded.resources[0].demand, None, "how much of it others use tells nothing of an iteration");
    let own = without_pauses(3.6, 3.9);
    assert_eq!(named(&own), Some((Resource::Machine, Grade::Explains)));
}

#[test]
fn what_only_waits_is_unknown() {
    let all = found(&service(&|result, at, [throughput, _]| {
        cores(result, at, [0.002 * throughput, 0.001 * throughput, 0.005 * throughput]);
    }));
    assert_eq!(named(&all), None);
    assert_eq!(all.resources[0].resource, Resource::Machine, "the most used");
    assert_eq!(gave_out(&[], &four_processors()), None, "no load");
}

/// A service with a pool of so many connections to a database, all of which are busy at 100 iterations a second.
fn pooled(connections: f64, waiting: f64) -> StartResult {
    service(&|result, at, [throughput, _]| {
        cores(result, at, [0.2, 0.1, 0.5]);
        let busy = connections * throughput / 100.0;
        for (counter, value) in [(CONNECTIONS, connections), (BUSY_CONNECTIONS, busy), (LOCK_WAITS, waiting * busy)] {
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
fn connections_of_users_that_work_on_the_database_itself_are_no_pool() {
    let mut by_sql = pooled(10.0, 0.1);
    let mut facts = DatabaseFacts { name: "db".to_owned(), ..DatabaseFacts::default() };
    by_sql.summary.systems[0].databases = vec![facts.clone()];
    assert_eq!(named(&found(&by_sql)), Some((Resource::Connections("db".to_owned()), Grade::UsedUp)));
    facts.work.workload = "tpcc".to_owned();
    by_sql.summary.systems[0].databases = vec![facts];
    assert_eq!(named(&found(&by_sql)), None);
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
        of_first_start: Vec::new(),
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
    let mut locked = [cell(0, 10.0), cell(1, 30.0)];
    for (cell, connections) in locked.iter_mut().zip([10.0, 30.0]) {
        cell.gave_out = Some(found(&pooled(connections, 0.9)));
    }
    intervene(&mut locked, &larger);
    let gave_out = locked[0].gave_out.as_ref().expect("loads that were too much");
    let locks = gave_out.resources.iter().find(|one| one.resource == Resource::Locks("db".to_owned()));
    assert_eq!(locks.map(|one| one.grade), Some(Grade::UsedUp), "there is no amount of locks");
}
