//! The search for the capacity: how often its interval holds the true one, on systems whose capacity theory knows.

use crate::random::RandomStream;
use crate::replicates::{Effort, Share, values};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::estimate::{interval_of_capacities, interval_of_mean};
use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::plan::Plan;
use plimsoll_model::search::SearchRange;
use plimsoll_model::start::{Design, Load, PhaseLengths, Rung, RungPart, Start, Turns};
use plimsoll_plan::{Options, Outcome, Outcomes, Shown, Step, next, plan, search};
use plimsoll_statistics::capacity::{Capacity, Part, Tried, capacity, contradiction, values_to_show, values_to_weigh};
use plimsoll_statistics::mean;
use std::time::Duration;

/// Seconds of warm-up and of the measure phase of a load.
const WARMUP: f64 = 2.0;
const MEASURE: f64 = 10.0;

/// How long a load near the capacity may get, where a study does not say how long loads are.
const LONGEST: Duration = Duration::from_secs(30);

/// The standard deviation of the capacity between starts, and of that between the loads of a start.
const BETWEEN_STARTS: f64 = 0.02;
const BETWEEN_LOADS: f64 = 0.02;

/// Where a search begins, as a share of the true capacity.
const FIRST: f64 = 0.07;

/// A system whose capacity is known.
#[derive(Clone, Copy)]
enum System {
    /// A load passes if it is below a threshold, which differs between starts and loads.
    Threshold,
    /// The same on a machine of two speeds.
    TwoSpeeds(Speeds),
    /// Requests queue for servers, and their 95th percentile must not exceed a limit.
    Queue(Queue),
    /// What exceeds a rate fails, and at most 1 % may fail.
    Refuses,
}

/// The two speeds of a machine.
#[derive(Clone, Copy)]
struct Speeds {
    /// The slower one, as a share of the faster.
    slow: f64,
    /// How long it keeps one, in the mean, in seconds.
    stays: f64,
}

const STEADY: Speeds = Speeds { slow: 1.0, stays: 60.0 };
const NEAR: System = System::TwoSpeeds(Speeds { slow: 0.85, stays: 60.0 });
const FAR: System = System::TwoSpeeds(Speeds { slow: 1.0 / 1.65, stays: 27.5 });

/// A queue in front of servers; arrivals are Poisson.
#[derive(Clone, Copy)]
struct Queue {
    servers: usize,
    /// Requests per second that one server completes.
    rate: f64,
    /// True if each request takes the same time; otherwise times are exponential.
    constant: bool,
    /// The limit of the 95th percentile of the time from arrival to end, in seconds.
    limit: f64,
}

/// The slowest queue.
const SLOWEST: (&str, System) =
    ("M/M/1, slower", System::Queue(Queue { servers: 1, rate: 100.0, constant: false, limit: 0.15 }));

const SYSTEMS: [(&str, System); 10] = [
    ("threshold, starts and loads ±2 %", System::Threshold),
    ("threshold, a machine of two speeds", NEAR),
    ("threshold, two speeds ×1.65", FAR),
    ("M/M/1", System::Queue(Queue { servers: 1, rate: 500.0, constant: false, limit: 0.04 })),
    ("M/M/4", System::Queue(Queue { servers: 4, rate: 100.0, constant: false, limit: 0.06 })),
    ("M/D/1", System::Queue(Queue { servers: 1, rate: 500.0, constant: true, limit: 0.02 })),
    ("a pool of 10", System::Queue(Queue { servers: 10, rate: 40.0, constant: false, limit: 0.12 })),
    ("M/M/4, slower", System::Queue(Queue { servers: 4, rate: 50.0, constant: false, limit: 0.1 })),
    SLOWEST,
    ("refuses what exceeds a rate", System::Refuses),
];

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(40);
    let cheap = Effort { replicates: effort.replicates * 8, ..effort };
    vec![of_one(effort), of_two(cheap)]
}

fn of_one(effort: Effort) -> Section {
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    let by_default = SYSTEMS.map(|(name, system)| (name.to_owned(), system, LONGEST));
    let (name, slowest) = SLOWEST;
    let given = (format!("{name}, each load {MEASURE:.0} s"), slowest, Duration::ZERO);
    for (name, system, longest) in by_default.into_iter().chain([given]) {
        let truth = system.truth();
        let plan = planned(truth, 1, Design::Trials, longest);
        let studies = values(&format!("capacity {name}"), effort, |random| {
            let found = run(&plan, &|_| system, random);
            (interval(&found), mean(&logarithms(&found.capacities[0])), found.loads)
        });
        let held =
            studies.iter().map(|(interval, ..)| interval.is_some_and(|[low, high]| low <= truth && truth <= high));
        let holds = share(held);
        let centres: Vec<f64> =
            studies.iter().filter_map(|(_, centre, _)| Some(centre.as_ref()? - truth.ln())).collect();
        let halves: Vec<f64> =
            studies.iter().filter_map(|(one, ..)| one.map(|[low, high]| (high / low).ln() / 2.0)).collect();
        let loads: Vec<f64> = studies.iter().map(|(.., loads)| *loads as f64).collect();
        let average = |values: &[f64]| mean(values).unwrap_or_default();
        rows.push(vec![
            name.clone(),
            percent(holds),
            format!("{:+.2}", 100.0 * average(&centres).exp_m1()),
            format!("±{:.1}", 100.0 * average(&halves)),
            format!("{:.0}", average(&loads)),
        ]);
        // A study that says how long loads are is told where they are too short.
        if !longest.is_zero() {
            cells.push((name, holds));
        }
    }
    Section::new("Capacity")
        .text(format!(
            "Searches for the capacity, by the product's own strategy: five starts, {MEASURE:.0} s for each load, and up to \
             {:.0} s for those near the capacity where requests are slow, as by default. How often the 95 % interval holds the true capacity, by how much the centre of all studies is off (the bias), the half-width \
             of the interval, and the number of loads; in percent but for the last. Of queues the 95th percentile of response \
             times is limited, and their speed differs between starts by {:.0} %; the true capacity is that of a queue in its \
             steady state. The slower ones have 1,600 and 800 requests in {MEASURE:.0} s, fewer than the 2,000 below which a \
             report says that its loads are short; the last row, which is not checked, is of a study that says how long loads \
             are (`duration`), so that they stay as short.",
            LONGEST.as_secs_f64(),
            100.0 * BETWEEN_STARTS
        ))
        .table(&["system", "holds the truth", "bias", "half-width", "loads"], rows)
        .check(Check { what: "the interval holds the true capacity", demand: Demand::AtLeast(0.93), cells })
}

/// Two equal systems, and two that differ by 10 %, searched in trials and in turns.
fn of_two(effort: Effort) -> Section {
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    let turns = Design::Turns(Turns { count: 1, settle: Duration::ZERO, slice: Duration::ZERO });
    let truth = System::Threshold.truth();
    for (machine, system) in [("steady", System::Threshold), ("of two speeds", NEAR)] {
        for (name, design) in [("trials", Design::Trials), ("turns", turns)] {
            let plan = planned(truth, 2, design, LONGEST);
            let label = format!("{name}, a machine {machine}");
            let studies = values(&format!("capacity of two, {label}"), effort, |random| {
                let found = run(&plan, &|_| system, random);
                let [baseline, variant] = [0, 1].map(|variant| logarithms(&found.capacities[variant]));
                let ratios: Vec<f64> =
                    variant.iter().zip(&baseline).map(|(variant, baseline)| variant - baseline).collect();
                interval_of_mean(&ratios).ok().map(|interval| [interval.low, interval.high])
            });
            let holds = share(studies.iter().map(|one| one.is_some_and(|[low, high]| low <= 0.0 && 0.0 <= high)));
            let halves: Vec<f64> = studies.iter().flatten().map(|[low, high]| (high - low) / 2.0).collect();
            rows.push(vec![
                label.clone(),
                percent(holds),
                format!("±{:.1}", 100.0 * mean(&halves).unwrap_or_default()),
            ]);
            cells.push((label, holds));
        }
    }
    Section::new("Capacity of two variants")
        .text(
            "Two equal systems, each searched on every start, one after the other (trials) or with loads that alternate \
             (turns): how often the 95 % interval of the ratio of their capacities holds equality, and its half-width; in \
             percent.",
        )
        .table(&["design", "holds equality", "half-width"], rows)
        .check(Check { what: "the interval holds the true ratio", demand: Demand::AtLeast(0.93), cells })
}

fn share(hits: impl Iterator<Item = bool>) -> Share {
    hits.fold(Share::default(), |share, hit| Share { hits: share.hits + u64::from(hit), of: share.of + 1 })
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

/// The interval of the capacity of the first variant.
fn interval(found: &Findings) -> Option<[f64; 2]> {
    let interval = interval_of_capacities(&found.capacities[0], found.widest).ok()?;
    Some([interval.low, interval.high])
}

/// A plan that searches on five starts.
fn planned(truth: f64, variants: usize, design: Design, longest: Duration) -> Plan {
    let levels = (0..variants).map(|number| Level::Text(number.to_string())).collect();
    let factors = [Factor { name: "version".to_owned(), levels, role: Role::Compared { baseline: 0 } }];
    let options = Options { repeats: 5, seed: 1, duplicate: false, spare_blocks: None, looks: Vec::new(), design };
    let lengths = PhaseLengths {
        warmup: Duration::from_secs_f64(WARMUP),
        measure: Duration::from_secs_f64(MEASURE),
        drain: Duration::ZERO,
    };
    let searches = vec![search(SearchRange {
        first: truth * FIRST,
        most: truth * 100.0,
        of_users: false,
        confirm: Duration::from_secs(60),
        step: None,
        new_users: None,
        recover: Duration::ZERO,
        longest,
    })];
    Plan { searches, ..plan(if variants > 1 { &factors } else { &[] }, &options, |_| lengths) }
}

/// What a simulated run found.
struct Findings {
    /// The capacities of each variant, by start.
    capacities: Vec<Vec<f64>>,
    /// The widest contradiction of the loads of the first variant on one start.
    widest: f64,
    loads: usize,
}

/// Runs a plan by the product's strategy.
fn run(plan: &Plan, system: &dyn Fn(usize) -> System, random: &mut RandomStream) -> Findings {
    let (mut outcomes, mut loads, mut machine) = (Outcomes::default(), 0, Machine::of(system(0)));
    let (mut capacities, mut widest) = (vec![Vec::new(); plan.variants.len()], 0.0_f64);
    let mut on_start: Vec<(Load, Shown)> = Vec::new();
    let mut speeds: Vec<f64> = Vec::new();
    while let Some(step) = next(plan, &outcomes) {
        match step {
            Step::Start(start) => {
                speeds = plan.variants.iter().map(|_| (BETWEEN_STARTS * random.normal()).exp()).collect();
                outcomes.started(start);
            }
            Step::Loads(now) => {
                for load in now {
                    let level = load.rung.map_or(0.0, |rung| rung.level);
                    let seconds = load.lengths.measure.as_secs_f64();
                    machine.pass(WARMUP + seconds, random);
                    let shown = system(load.variant).offer(level, seconds, speeds[load.variant], &machine, random);
                    loads += 1;
                    on_start.push((load, shown));
                    outcomes.loaded(load, Some(shown));
                }
            }
            Step::Stop => {
                let start: Start = outcomes.start_under_way().expect("only what runs is stopped").clone();
                widest = contradiction(&tried(&on_start, 0)).max(widest);
                for variant in &start.variants {
                    if let Some(Capacity::At(found)) = capacity(&tried(&on_start, *variant)) {
                        capacities[*variant].push(found);
                    }
                }
                on_start.clear();
                outcomes.stopped(start, Outcome::Counts);
            }
            Step::Look { .. } | Step::BreakOff => {}
        }
    }
    Findings { capacities, widest, loads }
}

fn tried(on_start: &[(Load, Shown)], variant: usize) -> Vec<Tried> {
    let of = |(load, shown): &(Load, Shown)| {
        let (Rung { level, part }, Shown::Judged { passed, strain, .. }) = (load.rung?, *shown) else { return None };
        let part = match part {
            RungPart::Confirmation | RungPart::Recovery => return None,
            RungPart::Bracket => Part::Bracket,
            RungPart::Ladder => Part::Ladder,
            RungPart::Step => Part::Step,
        };
        (load.variant == variant).then_some(Tried { level, part, passed, strain })
    };
    on_start.iter().filter_map(of).collect()
}

/// A machine that may have two speeds, and stays with each for some time.
struct Machine {
    speeds: Speeds,
    is_slow: bool,
    /// Seconds until it changes.
    left: f64,
}

impl Machine {
    fn of(system: System) -> Machine {
        let speeds = if let System::TwoSpeeds(speeds) = system { speeds } else { STEADY };
        Machine { speeds, is_slow: false, left: 0.0 }
    }

    fn pass(&mut self, seconds: f64, random: &mut RandomStream) {
        self.left -= seconds;
        while self.left <= 0.0 {
            self.is_slow = !self.is_slow;
            self.left += self.speeds.stays * random.exponential();
        }
    }

    fn speed(&self) -> f64 {
        if self.is_slow { self.speeds.slow } else { 1.0 }
    }
}

impl System {
    /// The true capacity, in arrivals per second.
    fn truth(self) -> f64 {
        match self {
            System::Threshold => 400.0,
            System::TwoSpeeds(Speeds { slow, .. }) => 400.0 * slow.sqrt(),
            System::Queue(queue) => queue.capacity(),
            System::Refuses => 400.0 / 0.99,
        }
    }

    fn offer(self, level: f64, seconds: f64, speed: f64, machine: &Machine, random: &mut RandomStream) -> Shown {
        let verdict = |passed| Shown::Judged { passed, strain: None, failed: false, share_to_weigh: None };
        let weighed = |strain: f64, share_to_weigh: Option<f64>| Shown::Judged {
            passed: strain <= 1.0,
            strain: Some(strain),
            failed: false,
            share_to_weigh,
        };
        let threshold = |random: &mut RandomStream| 400.0 * speed * (BETWEEN_LOADS * random.normal()).exp();
        match self {
            System::Threshold => verdict(level < threshold(random)),
            System::TwoSpeeds(_) => verdict(level < threshold(random) * machine.speed()),
            System::Refuses => weighed((1.0 - 400.0 * speed / level).max(0.0) / 0.01, None),
            System::Queue(queue) => {
                let faster = Queue { rate: queue.rate * speed, ..queue };
                let times = faster.times(level, seconds, random);
                let needed = values_to_show(0.05) as f64;
                if (times.len() as f64) < needed {
                    return Shown::TooFew { share: times.len() as f64 / needed };
                }
                let misses = times.iter().filter(|time| **time > queue.limit).count();
                weighed(misses as f64 / times.len() as f64 / 0.05, Some(times.len() as f64 / values_to_weigh(0.05)))
            }
        }
    }
}

impl Queue {
    /// The times from arrival to end of the requests that arrive in so many seconds, after a warm-up from empty.
    fn times(self, arrivals: f64, seconds: f64, random: &mut RandomStream) -> Vec<f64> {
        let mut free = vec![0.0_f64; self.servers];
        let (mut now, mut times) = (0.0, Vec::with_capacity((arrivals * seconds * 1.1) as usize));
        loop {
            now += random.exponential() / arrivals;
            if now > WARMUP + seconds {
                return times;
            }
            let server = free.iter_mut().min_by(|one, other| one.total_cmp(other)).expect("a queue has a server");
            let service = if self.constant { 1.0 } else { random.exponential() } / self.rate;
            *server = server.max(now) + service;
            if now > WARMUP {
                times.push(*server - now);
            }
        }
    }

    /// The arrivals per second at which the 95th percentile is at its limit in the steady state.
    fn capacity(self) -> f64 {
        let all = self.servers as f64 * self.rate;
        let (mut low, mut high) = (0.3 * all, all);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if self.share_above_limit(middle) <= 0.05 { low = middle } else { high = middle }
        }
        low
    }

    /// The share of requests that take longer than the limit in the steady state.
    fn share_above_limit(self, arrivals: f64) -> f64 {
        if self.constant {
            return self.share_above_limit_of_constant(arrivals);
        }
        // M/M/c: the probability to wait by Erlang's C formula; the time is a wait, exponential where there is one, and a
        // service.
        let (c, load) = (self.servers as f64, arrivals / self.rate);
        let mut term = 1.0;
        let mut sum = 0.0;
        for served in 0..self.servers {
            sum += term;
            term *= load / (served + 1) as f64;
        }
        let waiting = term / (1.0 - load / c);
        let waits = waiting / (sum + waiting);
        let (of_service, of_wait) = (self.rate, c * self.rate - arrivals);
        let (service, wait) = ((-of_service * self.limit).exp(), (-of_wait * self.limit).exp());
        if (of_service - of_wait).abs() < 1e-9 * of_service {
            return service * (1.0 + waits * of_service * self.limit);
        }
        service + waits * (wait - service) * of_service / (of_service - of_wait)
    }

    /// M/D/1 by its embedded chain: the wait is that of an M/D/1 queue, by Crommelin's formula in the form of Franx (2001),
    /// in which every term is positive.
    fn share_above_limit_of_constant(self, arrivals: f64) -> f64 {
        let service = 1.0 / self.rate;
        let wait = self.limit - service;
        if wait < 0.0 {
            return 1.0;
        }
        // The number in the system that a departure leaves, by its recursion with Poisson arrivals during a service.
        let load = arrivals * service;
        let whole = (wait / service).floor();
        let poisson = |mean: f64, most: usize| -> Vec<f64> {
            let mut probabilities = vec![(-mean).exp()];
            for count in 1..=most {
                probabilities.push(probabilities[count - 1] * mean / count as f64);
            }
            probabilities
        };
        let most = whole as usize + 2;
        let during = poisson(load, most + 1);
        let mut left = vec![1.0 - load];
        for count in 0..most {
            let from_empty = left[0] * during[count];
            let from_others: f64 = (1..=count).map(|one| left[one] * during[count + 1 - one]).sum();
            left.push((left[count] - from_empty - from_others) / during[0]);
        }
        let up_to: Vec<f64> = left
            .iter()
            .scan(0.0, |sum, one| {
                *sum += one;
                Some(*sum)
            })
            .collect();
        // The wait is at most k services and a rest if at most k − j were in the queue and j arrived in what is left.
        let rest = (whole + 1.0) * service - wait;
        let arrived = poisson(arrivals * rest, most);
        let holds: f64 = (0..=whole as usize).map(|k| arrived[k] * in_queue_up_to(&up_to, whole as usize - k)).sum();
        1.0 - holds
    }
}

/// The probability that at most so many wait, of whom one in service is not.
fn in_queue_up_to(up_to: &[f64], waiting: usize) -> f64 {
    up_to[(waiting + 1).min(up_to.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_capacities_are_those_of_long_simulations() {
        for (name, system) in SYSTEMS {
            let System::Queue(queue) = system else { continue };
            let truth = system.truth();
            let mut random = RandomStream::named(name, 0);
            let times = queue.times(truth, 400_000.0 / truth, &mut random);
            let above = times.iter().filter(|time| **time > queue.limit).count() as f64 / times.len() as f64;
            assert!((above - 0.05).abs() < 0.01, "{name}: {above} above the limit at {truth}");
        }
    }

    #[test]
    fn the_capacity_of_one_server_is_known() {
        // The time in an M/M/1 queue is exponential with the rate μ − λ: λ = μ − ln 20 / limit.
        let queue = Queue { servers: 1, rate: 500.0, constant: false, limit: 0.04 };
        assert!((queue.capacity() - (500.0 - 20_f64.ln() / 0.04)).abs() < 0.01, "{}", queue.capacity());
    }
}
