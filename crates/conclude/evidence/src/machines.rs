//! Machines on which variants are loaded in slices or in trials, second by second.
//!
//! Values are logarithms, as in [`noise_models`](crate::noise_models). All designs run on the same clock: starting
//! systems and warming them up takes time, in which a machine may change.

use crate::noise_models::Lasting;
use crate::orders;
use crate::random::RandomStream;
use plimsoll_analysis::turns::{self, Before, InfluenceOfStart, TurnOfDuplicates};
use plimsoll_model::start::Turns;
use plimsoll_statistics::{StartOfTurns, TwoLevels};
use std::time::Duration;

/// How a machine varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Slices vary, normally and independently.
    Normal,
    /// Exponentially: a few slices are very slow.
    Skewed,
    /// Normally, but one slice in ten is five times as noisy.
    Outliers,
    /// Starts share a shift that is three times as large as the noise of a slice.
    StartsDiffer,
    /// It drifts by three standard deviations of a slice over the study, and noise lasts (AR(1), 0.6 from slice to
    /// slice).
    Drifting,
    /// It wanders by 4 %, slowly: what it does lasts for 20 s.
    Wandering,
    /// It has two speeds, ×1.65 apart, and stays with each for 10 to 45 s.
    TwoSpeeds,
}

impl Machine {
    /// All of them.
    pub const ALL: [Machine; 7] = [
        Machine::Normal,
        Machine::Skewed,
        Machine::Outliers,
        Machine::StartsDiffer,
        Machine::Drifting,
        Machine::Wandering,
        Machine::TwoSpeeds,
    ];

    /// A word or two for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Machine::Normal => "normal",
            Machine::Skewed => "skewed",
            Machine::Outliers => "outliers",
            Machine::StartsDiffer => "starts differ",
            Machine::Drifting => "drift",
            Machine::Wandering => "wanders",
            Machine::TwoSpeeds => "two speeds",
        }
    }
}

/// A machine and its sizes.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// The way in which its speed varies.
    pub machine: Machine,
    /// Standard deviation of what a start draws for each of its systems: layout, hashing, placement.
    pub sd_of_starts: f64,
    /// Standard deviation of a slice.
    pub sd_of_slices: f64,
    /// By how much longer everything takes in the slice after one of the variant.
    pub carry_over: f64,
}

impl World {
    /// The variances of turns and of starts of the difference from baseline and duplicate together, on a normal machine.
    /// The mean of these two has half of the variance of one system, and the variant has all of it. Trimming makes that of
    /// turns count 1.2 times.
    #[must_use]
    pub fn levels_of_difference(&self) -> TwoLevels {
        let [of_turns, of_starts] = [self.sd_of_slices, self.sd_of_starts].map(|sd| 1.5 * sd * sd);
        TwoLevels { of_turns: 1.2 * of_turns, of_starts }
    }
}

/// The two speeds of a machine: the logarithm of their ratio.
const TWO_SPEEDS: f64 = 0.500_775; // ln 1.65

/// How long it stays with a speed, in seconds.
const DWELL: [f64; 2] = [10.0, 45.0];

/// How far a wandering machine goes: its standard deviation.
const WANDERS: f64 = 0.04;

/// How long that lasts: the correlation of its speed falls by e in so many seconds.
const LASTS: f64 = 20.0;

/// Seconds that the systems of one variant take to start and to stop.
const STARTING: f64 = 1.0;

/// Seconds of warm-up of a variant.
const WARM_UP: f64 = 2.0;

/// Seconds of settling and draining around a slice.
const AROUND_A_SLICE: f64 = 0.12;

/// Seconds of a slice.
const SLICE: f64 = 0.35;

/// A machine while a study runs on it.
struct Clock<'r> {
    world: World,
    random: &'r mut RandomStream,
    /// Seconds since the begin of the study, and how long it takes in all.
    now: f64,
    all: f64,
    slow: bool,
    /// When the speed changes.
    until: f64,
    lasting: Lasting,
    /// How far the machine has wandered.
    away: f64,
}

impl Clock<'_> {
    fn new(world: World, all: f64, random: &mut RandomStream) -> Clock<'_> {
        let slow = random.happens(0.5);
        let until = DWELL[1] * random.share();
        let lasting = Lasting::new(0.6, random);
        let away = WANDERS * random.normal();
        Clock { world, random, now: 0.0, all, slow, until, lasting, away }
    }

    /// How slow the machine is on average over the next so many seconds, as a logarithm.
    fn pass(&mut self, seconds: f64) -> f64 {
        let (begin, end) = (self.now, self.now + seconds);
        self.now = end;
        match self.world.machine {
            Machine::Drifting => 3.0 * self.world.sd_of_slices * begin / self.all,
            Machine::Wandering => {
                let stays = (-seconds / LASTS).exp();
                let before = self.away;
                self.away = stays * before + WANDERS * (1.0 - stays * stays).sqrt() * self.random.normal();
                f64::midpoint(before, self.away)
            }
            Machine::TwoSpeeds => {
                let mut slow_for = 0.0;
                let mut at = begin;
                while at < end {
                    let next = self.until.min(end);
                    slow_for += if self.slow { next - at } else { 0.0 };
                    at = next;
                    if at >= self.until {
                        self.slow = !self.slow;
                        self.until += DWELL[0] + (DWELL[1] - DWELL[0]) * self.random.share();
                    }
                }
                TWO_SPEEDS * slow_for / seconds
            }
            _ => 0.0,
        }
    }

    /// What a slice reads that begins now, without what its start draws.
    fn slice(&mut self) -> f64 {
        let speed = self.pass(SLICE);
        speed + self.noise()
    }

    /// The noise of a slice.
    fn noise(&mut self) -> f64 {
        let noise = match self.world.machine {
            Machine::Skewed => self.random.exponential() - 1.0,
            Machine::Outliers => self.random.normal() * if self.random.happens(0.1) { 5.0 } else { 1.0 },
            Machine::Drifting => self.lasting.next(self.random),
            _ => self.random.normal(),
        };
        self.world.sd_of_slices * noise
    }

    /// What a start draws for a system.
    fn of_start(&mut self) -> f64 {
        self.world.sd_of_starts * self.random.normal()
    }

    fn shared_by_start(&mut self) -> f64 {
        if self.world.machine == Machine::StartsDiffer {
            3.0 * self.world.sd_of_slices * self.random.normal()
        } else {
            0.0
        }
    }
}

/// Studies in turns of a baseline, a variant and a duplicate, on so many starts.
#[derive(Debug)]
pub struct TurnsDesign {
    /// Starts of a study.
    pub starts: usize,
    /// Turns on each.
    pub turns: u32,
    /// The product's orders, from which starts draw theirs.
    orders: Vec<Vec<(u32, usize)>>,
}

/// The number of orders that starts draw from.
const ORDERS: usize = 200;

/// A start of a study in turns, read by the product's functions.
#[derive(Clone, Copy, Debug)]
pub struct StartInTurns {
    /// The variant less baseline and duplicate, with its error.
    pub difference: StartOfTurns,
    /// The duplicate less the baseline.
    pub floor: f64,
    /// What a slice of the variant leaves to the next one.
    pub carry_over: Option<InfluenceOfStart>,
}

impl TurnsDesign {
    /// A design with so many starts and turns.
    #[must_use]
    pub fn new(starts: usize, turns: u32) -> TurnsDesign {
        let lengths = Turns { count: turns, settle: Duration::ZERO, slice: Duration::ZERO };
        TurnsDesign { starts, turns, orders: orders::of_slices(ORDERS, lengths, 1) }
    }

    /// Seconds of a start, without its turns.
    #[must_use]
    pub fn seconds_of_start() -> f64 {
        3.0 * (STARTING + WARM_UP)
    }

    /// Seconds of a turn.
    #[must_use]
    pub fn seconds_of_turn() -> f64 {
        3.0 * (AROUND_A_SLICE + SLICE)
    }

    /// Seconds of a study.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.starts as f64 * (TurnsDesign::seconds_of_start() + f64::from(self.turns) * TurnsDesign::seconds_of_turn())
    }

    /// A study in which variant and baseline are equal.
    ///
    /// # Panics
    /// Never: each start has turns.
    pub fn study(&self, world: World, random: &mut RandomStream) -> Vec<StartInTurns> {
        self.study_with_slices(world, random).into_iter().map(|(start, _)| start).collect()
    }

    /// The same, each start with the differences of its turns.
    ///
    /// # Panics
    /// Never: each start has turns.
    pub fn study_with_slices(&self, world: World, random: &mut RandomStream) -> Vec<(StartInTurns, Vec<f64>)> {
        let mut clock = Clock::new(world, self.seconds(), random);
        (0..self.starts).map(|_| self.start(&mut clock)).collect()
    }

    fn start(&self, clock: &mut Clock<'_>) -> (StartInTurns, Vec<f64>) {
        let order = &self.orders[(clock.random.seed() % ORDERS as u64) as usize];
        clock.pass(TurnsDesign::seconds_of_start());
        let shared = clock.shared_by_start();
        let of_start = [(); 3].map(|()| shared + clock.of_start());
        let mut values = vec![[0.0; 3]; self.turns as usize];
        let mut befores = vec![[None; 3]; self.turns as usize];
        let mut before = None;
        for (turn, variant) in order {
            clock.pass(AROUND_A_SLICE);
            let left = if before == Some(1) && *variant != 1 { clock.world.carry_over } else { 0.0 };
            let turn = *turn as usize - 1;
            values[turn][*variant] = of_start[*variant] + left + clock.slice();
            befores[turn][*variant] = before;
            before = Some(*variant);
        }
        // The baseline, its duplicate and the variant.
        let of_three: Vec<[f64; 3]> = values.iter().map(|turn| [turn[0], turn[2], turn[1]].map(f64::exp)).collect();
        let difference = turns::ratio_to_both(&of_three).and_then(|ratio| ratio.of_turns);
        let floor: Vec<(f64, f64)> = of_three.iter().map(|turn| (turn[0], turn[1])).collect();
        let floor = turns::ratio(&floor).and_then(|ratio| ratio.of_turns);
        let kind = |own: usize, before: Option<usize>| match before {
            Some(1) => Before::Variant,
            Some(before) if before == own => Before::Itself,
            _ => Before::Other,
        };
        let later: Vec<TurnOfDuplicates> = values
            .iter()
            .zip(&befores)
            .skip(1)
            .map(|(values, before)| TurnOfDuplicates {
                before_baseline: kind(0, before[0]),
                before_duplicate: kind(2, before[2]),
                difference: values[0] - values[2],
            })
            .collect();
        let start = StartInTurns {
            difference: difference.expect("turns of values above zero"),
            floor: floor.expect("turns of values above zero").value,
            carry_over: turns::carry_over_of_start(&later),
        };
        (start, values.iter().map(|turn| turn[1] - f64::midpoint(turn[0], turn[2])).collect())
    }
}

/// Studies of a baseline, a variant and a duplicate side by side, on so many starts.
#[derive(Debug)]
pub struct PairsDesign {
    starts: usize,
    turns: u32,
    /// The product's orders, from which starts draw theirs.
    orders: Vec<Vec<(u32, usize)>>,
}

/// A start of a study side by side, read by the product's functions.
#[derive(Clone, Copy, Debug)]
pub struct StartOfPairs {
    /// The variant less the baseline.
    pub difference: f64,
    /// The duplicate less the baseline.
    pub floor: f64,
    /// What the variant does to the baseline beside it.
    pub interference: Option<InfluenceOfStart>,
}

impl PairsDesign {
    /// A design with as many turns on each start as fit into `seconds`.
    #[must_use]
    pub fn in_time(starts: usize, seconds: f64) -> PairsDesign {
        let of_turns = seconds / starts as f64 - TurnsDesign::seconds_of_start();
        let turns = (of_turns / (2.0 * (AROUND_A_SLICE + SLICE))).floor().max(f64::from(Turns::LEAST)) as u32;
        let lengths = Turns { count: turns, settle: Duration::ZERO, slice: Duration::ZERO };
        PairsDesign { starts, turns, orders: orders::of_pairs(ORDERS, lengths, 1) }
    }

    /// Turns on each start.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// A study of a variant that takes longer by `effect` where it has processors of its own. Where the two share them,
    /// they draw each other together: `shared` of the effect passes from the variant to the baseline beside it, half of it
    /// from the one and half to the other.
    ///
    /// # Panics
    /// Never: each start has turns.
    pub fn study(&self, world: World, effect: f64, shared: f64, random: &mut RandomStream) -> Vec<StartOfPairs> {
        let turn = 2.0 * (AROUND_A_SLICE + SLICE);
        let all = self.starts as f64 * (TurnsDesign::seconds_of_start() + f64::from(self.turns) * turn);
        let mut clock = Clock::new(world, all, random);
        (0..self.starts).map(|_| self.start(&mut clock, effect, shared)).collect()
    }

    fn start(&self, clock: &mut Clock<'_>, effect: f64, shared: f64) -> StartOfPairs {
        let order = &self.orders[(clock.random.seed() % ORDERS as u64) as usize];
        clock.pass(TurnsDesign::seconds_of_start());
        let of_all = clock.shared_by_start();
        let of_start = [(); 3].map(|()| of_all + clock.of_start());
        let passes = effect * shared / 2.0;
        // Of each turn, the baseline and the other one, by the other one.
        let mut values = vec![[(0.0_f64, 0.0_f64); 3]; self.turns as usize];
        for (turn, other) in order {
            clock.pass(AROUND_A_SLICE);
            let speed = clock.pass(SLICE);
            let mut read = |own: f64| (own + speed + clock.noise()).exp();
            let (takes, given) = if *other == 1 { (effect - passes, passes) } else { (0.0, 0.0) };
            values[*turn as usize - 1][*other] = (read(of_start[0] + given), read(of_start[*other] + takes));
        }
        let ratio = |other: usize| {
            let turns: Vec<(f64, f64)> = values.iter().map(|turn| turn[other]).collect();
            let found = turns::ratio(&turns).expect("turns of values above zero");
            (found.variant / found.baseline).ln()
        };
        let of_baseline: Vec<(f64, f64)> = values.iter().map(|turn| (turn[1].0, turn[2].0)).collect();
        StartOfPairs { difference: ratio(1), floor: ratio(2), interference: turns::interference_of_start(&of_baseline) }
    }
}

/// A study of trials in the time that a study in turns takes: in each block the baseline, the variant and the duplicate
/// in random order, each for as many slices on end as fit. By block, the three as in a plan.
pub fn study_of_trials(blocks: usize, seconds: f64, world: World, random: &mut RandomStream) -> Vec<[f64; 3]> {
    let of_trial = seconds / (3 * blocks) as f64;
    let slices = ((of_trial - STARTING - WARM_UP) / SLICE).floor().max(1.0) as usize;
    let mut clock = Clock::new(world, seconds, random);
    (0..blocks)
        .map(|_| {
            let shared = clock.shared_by_start();
            let mut order = [0, 1, 2];
            for place in (1..3).rev() {
                order.swap(place, (clock.random.seed() % (place as u64 + 1)) as usize);
            }
            let mut values = [0.0; 3];
            for variant in order {
                clock.pass(STARTING + WARM_UP);
                let sum: f64 = (0..slices).map(|_| clock.slice()).sum();
                values[variant] = shared + clock.of_start() + sum / slices as f64;
            }
            values
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_statistics::{mean, standard_deviation};

    const QUIET: World = World { machine: Machine::Normal, sd_of_starts: 0.01, sd_of_slices: 0.05, carry_over: 0.0 };

    #[test]
    fn no_machine_makes_a_difference_by_itself() {
        let design = TurnsDesign::new(4, 12);
        for machine in Machine::ALL {
            let world = World { machine, ..QUIET };
            let mut random = RandomStream::named("machines", 0);
            let (mut in_turns, mut in_trials) = (Vec::new(), Vec::new());
            for _ in 0..250 {
                in_turns.extend(design.study(world, &mut random).iter().map(|start| start.difference.value));
                let trials = study_of_trials(4, design.seconds(), world, &mut random);
                in_trials.extend(trials.iter().map(|[baseline, variant, _]| variant - baseline));
            }
            for differences in [in_turns, in_trials] {
                let error = standard_deviation(&differences).expect("values") / (differences.len() as f64).sqrt();
                assert!(mean(&differences).expect("values").abs() < 4.0 * error, "{machine:?}");
            }
        }
    }

    #[test]
    fn the_levels_of_a_difference_are_those_that_its_starts_show() {
        let world = World { sd_of_starts: 0.05, ..QUIET };
        let design = TurnsDesign::new(5, 60);
        let mut random = RandomStream::named("levels", 0);
        let levels = (0..400).filter_map(|_| {
            let starts = design.study(world, &mut random);
            TwoLevels::of(&starts.iter().map(|start| start.difference).collect::<Vec<StartOfTurns>>())
        });
        let found = TwoLevels::mean_of(&levels.collect::<Vec<TwoLevels>>()).expect("studies");
        let truth = world.levels_of_difference();
        for (found, truth) in [(found.of_turns, truth.of_turns), (found.of_starts, truth.of_starts)] {
            assert!((found / truth - 1.0).abs() < 0.15, "{found} {truth}");
        }
    }

    #[test]
    fn carry_over_is_found_again_and_shifts_the_difference_by_less_than_half() {
        let design = TurnsDesign::new(8, 20);
        let world = World { carry_over: 0.10, ..QUIET };
        let mut random = RandomStream::named("carry-over", 0);
        let (mut found, mut shift) = (Vec::new(), Vec::new());
        for start in (0..100).flat_map(|_| design.study(world, &mut random)) {
            found.extend(start.carry_over.map(|found| found.value));
            shift.push(start.difference.value);
        }
        let (found, shift) = (mean(&found).expect("values"), mean(&shift).expect("values"));
        assert!((found - 0.10).abs() < 0.005, "{found}");
        assert!(shift < -0.035 && shift > -0.05, "{shift}");
    }
}
