//! Measured times against known ones: fixed delays, a stall, and a queue.
//!
//! The machine that runs this may be busy with something else, which only ever adds time. A measurement is therefore
//! made up to [`ATTEMPTS`] times and must hold once. Beside each measurement a thread that only sleeps, and one that only
//! answers it, show how late the machine wakes threads; and the kernel reports how much of the processors other processes
//! used. An attempt counts against the generator only if the wake-ups were in time and the other use was next to nothing.
//! These tests have a binary of their own and run one after the other.

#[path = "../support/mod.rs"]
mod support;

use hdrhistogram::Histogram;
use plimsoll_engine::schedule::ArrivalTimes;
use plimsoll_model::load::Share;
use plimsoll_model::load::{Arrivals, LoadModel, Profile, Stop, Think};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Instant;
use plimsoll_model::workload::Connect;
use plimsoll_testkit::http::{Behaviour, Reply, Server, Service, Sojourn};
use std::io::{Read, Write, stderr};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use support::{closed, get, http, open, run};

const ATTEMPTS: usize = 6;

/// One after the other: they would disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

/// How late 1 % of the wake-ups may be on a machine that can tell right from wrong times. An exchange has two of them, in
/// the server and in the generator, and a measured time may be off by about twice as much.
const QUIET: Duration = Duration::from_micros(50);

/// Processors' worth of work by others that is no disturbance: the kernel's own threads do as much.
const ALMOST_NOTHING: f64 = 0.1;

/// Repeats `measure` until it finds nothing wrong, a bounded number of times.
fn in_one_of_some_attempts(measure: impl Fn() -> Result<(), String>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut faults = Vec::new();
    let mut disturbances = Vec::new();
    for _ in 0..ATTEMPTS {
        let (before, began) = (Work::so_far(), std::time::Instant::now());
        let (found, late) = beside_a_sleeper(&measure);
        let Err(fault) = found else { return };
        let others = before.of_others_since() / began.elapsed().as_secs_f64();
        if late <= QUIET && others <= ALMOST_NOTHING {
            faults.push(fault);
        }
        disturbances.push(format!("late by {late:?}, others at work on {others:.2} processors"));
    }
    assert!(faults.is_empty(), "no attempt held, though the machine was quiet in these: {faults:#?}");
    // Past the capture of test output, which would hide it: `./test` counts such lines.
    let _ = writeln!(
        stderr(),
        "\nSKIPPED: the machine is too busy to time on; 1 % of its wake-ups were {}",
        disturbances.join("; ")
    );
}

/// Processor time in seconds: of the whole machine, time that a host took away included, and of
/// this process.
struct Work {
    all: f64,
    own: f64,
}

impl Work {
    fn so_far() -> Work {
        let ticks = |text: &str| text.parse::<f64>().unwrap_or(0.0) / rustix::param::clock_ticks_per_second() as f64;
        let read = |path| std::fs::read_to_string(path).expect("Linux tells");
        let machine: Vec<f64> =
            read("/proc/stat").lines().next().unwrap_or("").split_whitespace().skip(1).map(ticks).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)).
        let busy = [0, 1, 2, 7].iter().filter_map(|column| machine.get(*column)).sum();
        let process = read("/proc/self/stat");
        let fields: Vec<f64> = process
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(ticks)
            .collect();
        Work { all: busy, own: fields.iter().sum() }
    }

    fn of_others_since(&self) -> f64 {
        let now = Work::so_far();
        (now.all - self.all) - (now.own - self.own)
    }
}

/// The result of `measure`, and the lateness of 1 % of the wake-ups of other threads meanwhile, by their timer or by a byte
/// on a socket, whichever was later. A processor that sleeps may be slower to wake for a socket than for its own timer.
fn beside_a_sleeper<R>(measure: impl Fn() -> R) -> (R, Duration) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (mut near, mut far) = connected();
        scope.spawn(move || {
            let mut byte = [0];
            while far.read_exact(&mut byte).is_ok() {
                far.write_all(&byte).expect("the sleeper reads what it asked for");
            }
        });
        let over = &over;
        let sleeper = scope.spawn(move || {
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).expect("a thread may set its own");
            let (mut by_timer, mut by_socket) = (Vec::new(), Vec::new());
            while !over.load(Ordering::Relaxed) {
                let (nap, began) = (Duration::from_millis(1), std::time::Instant::now());
                std::thread::sleep(nap);
                by_timer.push(began.elapsed().saturating_sub(nap));
                let asked = std::time::Instant::now();
                near.write_all(&[0]).and_then(|()| near.read_exact(&mut [0])).expect("the byte comes back");
                by_socket.push(asked.elapsed() / 2); // two wake-ups
            }
            let late = |mut times: Vec<Duration>| {
                times.sort_unstable();
                times[times.len() * 99 / 100]
            };
            late(by_timer).max(late(by_socket))
        });
        let found = measure();
        over.store(true, Ordering::Relaxed);
        (found, sleeper.join().expect("a sleeper does not panic"))
    })
}

/// Both ends of a connection over the loopback interface.
fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("the listener is there");
    let (far, _) = listener.accept().expect("the connection waits");
    for end in [&near, &far] {
        end.set_nodelay(true).expect("TCP has the option");
    }
    (near, far)
}

/// Whether the quantile `q` of what was measured is that of `truth`, in nanoseconds and sorted, within 2 % and what two
/// wake-ups take: the server's on the request, before which its account does not begin, and the generator's on the
/// reply. Half of them are quicker than 100 µs together, and 1 % as late as a quiet machine may be.
fn agrees(q: f64, measured: &Histogram<u64>, truth: &[f64]) -> Result<(), String> {
    let expected = truth[(truth.len() as f64 * q) as usize];
    let found = measured.value_at_quantile(q) as f64;
    let wake_ups = if q > 0.9 { 2.0 * QUIET.as_nanos() as f64 } else { 100_000.0 };
    if (found - expected).abs() <= expected * 0.02 + wake_ups {
        return Ok(());
    }
    Err(format!("p{}: expected {:.3} ms, found {:.3} ms", q * 100.0, expected / 1e6, found / 1e6))
}

/// How long each request took by the server's own account, sorted, in nanoseconds.
fn servers_account(server: &Server) -> Vec<f64> {
    let took = |sojourn: &Sojourn| (sojourn.answered - sojourn.arrived).as_nanos() as f64;
    let mut times: Vec<f64> = server.sojourns().iter().map(took).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The delays come back as the server gave them: on a busy machine its own timers are late too,
/// and its account tells by how much. One user, because replies to several that come at once wait for each other: in the
/// server before its account begins, and in the generator.
#[test]
fn fixed_delays_come_back() {
    for delay in [1, 10, 100].map(Duration::from_millis) {
        in_one_of_some_attempts(|| {
            let server = Server::start(Behaviour::after(delay, Reply::of_size(10))).expect("a port");
            let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
            let load = closed(1, Stop::After(Duration::from_secs(2)));
            let service = run(&workload, server.address(), &load, 1).requests("page").service;
            assert!(service.min() >= delay.as_nanos() as u64, "nothing can be faster than the server");
            let truth = servers_account(&server);
            agrees(0.5, &service, &truth)?;
            agrees(0.99, &service, &truth)
        });
    }
}

/// A stall of 1 s in a window of 5 s: what arrives `x` before its end waits `x`. With even
/// arrivals a fifth of all wait a uniform time, so that for q above 0.8 the q-quantile of the
/// response time is `1 s · (1 - (1 - q) / 0.2)`.
#[test]
fn a_stall_shows_in_open_load_at_every_percentile_that_it_touches() {
    in_one_of_some_attempts(|| {
        let stall = Behaviour::stalling(Duration::from_secs(2), Duration::from_secs(1), Reply::of_size(1));
        let server = Server::start(stall).expect("a port");
        let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
        let load = open(500.0, Arrivals::Constant, 1000, 5.0);
        let response = run(&workload, server.address(), &load, 1).requests("page").response;
        for q in [0.85, 0.9, 0.95, 0.99] {
            let expected = 1e9 * (1.0 - (1.0 - q) / 0.2);
            let allowed = expected * 0.02 + 4e6; // two arrivals' distance
            let found = response.value_at_quantile(q) as f64;
            if (found - expected).abs() > allowed {
                return Err(format!("p{}: expected {:.1} ms, found {:.1} ms", q * 100.0, expected / 1e6, found / 1e6));
            }
        }
        let before = response.value_at_quantile(0.75);
        if before < 20_000_000 { Ok(()) } else { Err(format!("p75 is not touched by the stall, found {before} ns")) }
    });
}

/// With two users all other arrivals stand in line while the server stalls: two requests have a long
/// service time, but every arrival waits, and its response time says so.
#[test]
fn arrivals_that_wait_for_a_free_user_count_from_their_schedule() {
    in_one_of_some_attempts(|| {
        let stall = Behaviour::stalling(Duration::from_secs(1), Duration::from_secs(1), Reply::of_size(1));
        let server = Server::start(stall).expect("a port");
        let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
        let outcome = run(&workload, server.address(), &open(500.0, Arrivals::Constant, 2, 4.0), 1);
        assert_eq!(outcome.iterations().count(), 2000);
        let requests = outcome.requests("page");
        let (response, service) = (requests.response.value_at_quantile(0.9), requests.service.value_at_quantile(0.9));
        if service > 100_000_000 {
            return Err(format!(
                "two requests of 2,000 were under way in the stall, but p90 of their service is {service}"
            ));
        }
        let expected = 1e9 * (1.0 - (1.0 - 0.9) / 0.25);
        if (response as f64 - expected).abs() > 0.05 * expected {
            return Err(format!("p90 of the response time: expected {expected} ns, found {response} ns"));
        }
        let backlog = outcome.generator().map(|second| second.backlog).max().unwrap_or(0);
        if backlog > 300 {
            Ok(())
        } else {
            Err(format!("a backlog of about 500 at the end of the stall, found {backlog}"))
        }
    });
}

#[test]
fn a_closed_loop_hardly_sees_a_stall() {
    in_one_of_some_attempts(|| {
        let stall = Behaviour::stalling(Duration::from_secs(1), Duration::from_secs(1), Reply::of_size(1));
        let server = Server::start(stall).expect("a port");
        let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
        let mut load = closed(5, Stop::After(Duration::from_secs(3)));
        let think = Think::Constant(Duration::from_millis(2));
        load.model = LoadModel::Closed { users: Profile::constant(5.0), think };
        let service = run(&workload, server.address(), &load, 1).requests("page").service;
        let (p99, max) = (service.value_at_quantile(0.99), service.max());
        if p99 > 100_000_000 || max < 900_000_000 {
            return Err(format!("five requests of thousands were in the stall; found p99 {p99} and max {max}"));
        }
        Ok(())
    });
}

/// Arrivals that never find a free user are counted as unsent, at the time they have waited.
#[test]
fn arrivals_that_are_never_sent_are_counted() {
    let server = Server::start(Behaviour::never()).expect("a port");
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let mut load = open(100.0, Arrivals::Constant, 5, 1.0);
    load.drain = Duration::from_millis(500);
    let outcome = run(&workload, server.address(), &load, 2);
    assert_eq!(outcome.errors("page"), [(ErrorKind::Timeout, 5), (ErrorKind::Unsent, 95)]);
    assert_eq!((outcome.iterations().count(), outcome.requests("page").response.len()), (100, 100));
}

/// Times in the queue when requests arrive at `arrivals` and take `services`, in seconds:
/// Lindley's recursion.
fn times_in_queue(arrivals: &[f64], services: &[f64]) -> Vec<f64> {
    let mut free = 0.0_f64;
    arrivals
        .iter()
        .zip(services)
        .map(|(arrival, service)| {
            free = free.max(*arrival) + service;
            free - arrival
        })
        .collect()
}

/// M/M/1: the time in the system is exponential with mean 1/(μ-λ). A run of seconds is a small
/// sample of it, so the theory is met within a wide bound; but the very same arrivals and services
/// put through Lindley's recursion must come back closely.
#[test]
fn a_queue_answers_as_theory_says() {
    let rate_of_service = 1000.0;
    for (utilisation, bound) in [(0.5, 0.10), (0.8, 0.20), (0.9, 0.45)] {
        in_one_of_some_attempts(|| {
            let mean = Duration::from_secs_f64(1.0 / rate_of_service);
            let queue = Behaviour::queue(Service::Exponential { mean, seed: 11 }, Reply::of_size(1));
            let server = Server::start(queue).expect("a port");
            let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
            let rate = rate_of_service * utilisation;
            let load = open(rate, Arrivals::Poisson, 500, 6.0);
            let found = run(&workload, server.address(), &load, 1).requests("page").response;
            let sojourns = server.sojourns();
            let services: Vec<f64> = sojourns.iter().map(|sojourn| sojourn.service.as_secs_f64()).collect();
            let all = Share { index: 0, of: 1 };
            let schedule = ArrivalTimes::new(&Profile::constant(rate), Arrivals::Poisson, Instant(0), 7, all);
            let arrivals: Vec<f64> = schedule.take(services.len()).map(|at| at.0 as f64 / 1e9).collect();
            // The server's own timers are late too, and its account tells by how much.
            let late: Vec<f64> =
                sojourns.iter().map(|sojourn| (sojourn.answered - sojourn.due).as_secs_f64()).collect();
            let mut times: Vec<f64> =
                times_in_queue(&arrivals, &services).iter().zip(&late).map(|(time, late)| time + late).collect();
            times.sort_by(f64::total_cmp);
            for q in [0.5, 0.9, 0.99] {
                let expected = times[(times.len() as f64 * q) as usize] * 1e9;
                let measured = found.value_at_quantile(q) as f64;
                // 2 % and 200 µs: two hundred late timers in a row add up in a busy queue.
                if (measured - expected).abs() > 0.02 * expected + 200_000.0 {
                    return Err(format!(
                        "at {utilisation}, p{}: expected {expected:.0} ns, found {measured:.0} ns",
                        q * 100.0
                    ));
                }
            }
            let theory = 1e9 * (1.0 / (rate_of_service - rate) + late.iter().sum::<f64>() / late.len() as f64);
            let mean = found.mean();
            if (mean / theory - 1.0).abs() > bound {
                return Err(format!("at {utilisation}: expected a mean near {theory:.0} ns, found {mean:.0} ns"));
            }
            Ok(())
        });
    }
}
