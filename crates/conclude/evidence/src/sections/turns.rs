//! Variants that take turns on a start, beside trials in the same time.

use crate::machines::{Machine, StartInTurns, TurnsDesign, World, study_of_trials};
use crate::noise_models::Trials;
use crate::orders;
use crate::random::RandomStream;
use crate::replicates::{Effort, Share, shares, values};
use crate::rules::{
    ALPHA, MARGIN, decided, evidence, floor, is_difference, is_equivalent, is_open, log, without_floor,
};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::compare::Reference;
use plimsoll_analysis::decide::{
    Basis, ComparisonToDecide, Decision, HiddenBy, InfluenceDoubt, Outcome, doubt_by_influence,
};
use plimsoll_analysis::turns::{Influence, InfluenceKind, InfluenceOfStart, influence};
use plimsoll_statistics::{Costs, TwoLevels, median};

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    vec![in_the_same_time(effort), looks(effort), carried_over(effort), lengths(effort), lengths_for_a_time(effort)]
}

/// Standard deviation of a slice.
pub(super) const SLICES: f64 = 0.04;

/// Standard deviations of what a start draws for each of its systems.
pub(super) const STARTS: [f64; 3] = [0.005, 0.02, 0.05];

/// The starts, the turns on each, and the blocks of trials in the same time.
pub(super) const DESIGN: (usize, u32) = (8, 20);

/// The resolution of durations.
const RESOLUTION: f64 = 0.000_41;

pub(super) fn worlds() -> impl Iterator<Item = World> {
    let world = |machine, sd_of_starts| World { machine, sd_of_starts, sd_of_slices: SLICES, carry_over: 0.0 };
    Machine::ALL.into_iter().flat_map(move |machine| STARTS.map(|sd| world(machine, sd)))
}

pub(super) fn named(world: World) -> String {
    format!("{}, starts {:.1} %", world.machine.name(), world.sd_of_starts * 100.0)
}

/// A study as the product decides it: over its floor, by the rule that is the default, and with its carry-over.
pub(super) struct Measured {
    pub(super) differences: Vec<f64>,
    pub(super) floor: Vec<f64>,
    /// What the differences are from.
    pub(super) reference: Reference,
    pub(super) kind: InfluenceKind,
    /// What slices do to others, by start, with its difference.
    pub(super) influence: Vec<(f64, InfluenceOfStart)>,
    /// As in [`ComparisonToDecide`].
    pub(super) hidden_by: Option<HiddenBy>,
}

impl Measured {
    fn in_turns(starts: &[StartInTurns]) -> Measured {
        Measured {
            differences: starts.iter().map(|start| start.difference.value).collect(),
            floor: starts.iter().map(|start| start.floor).collect(),
            reference: Reference::BothCopies,
            kind: InfluenceKind::CarryOver,
            influence: starts.iter().filter_map(|start| Some((start.difference.value, start.carry_over?))).collect(),
            hidden_by: None,
        }
    }

    fn in_trials(blocks: Vec<[f64; 3]>) -> Measured {
        let trials = Trials { blocks };
        Measured {
            differences: trials.differences(),
            floor: trials.floor(),
            reference: Reference::Baseline,
            kind: InfluenceKind::CarryOver,
            influence: Vec::new(),
            hidden_by: None,
        }
    }

    /// The comparison alone, of a variant that differs by `effect`.
    pub(super) fn alone(&self, effect: f64, alpha: f64) -> Decision {
        decided(without_floor(&self.shifted(effect), MARGIN, alpha), alpha)
    }

    pub(super) fn influence(&self, effect: f64, alpha: f64) -> Option<Influence> {
        let shifted: Vec<_> = self.influence.iter().map(|(difference, found)| (difference + effect, *found)).collect();
        influence(self.kind, &shifted, RESOLUTION, alpha)
    }

    /// The comparison over its noise floor, by the milder rule, and with what slices do to others.
    pub(super) fn as_the_product(&self, effect: f64, alpha: f64) -> Decision {
        let differences = self.shifted(effect);
        let floor = floor(&self.floor, &differences, self.reference, alpha);
        let alone = without_floor(&differences, MARGIN, alpha);
        decided(
            ComparisonToDecide { floor, influence: self.influence(effect, alpha), hidden_by: self.hidden_by, ..alone },
            alpha,
        )
    }

    fn shifted(&self, effect: f64) -> Vec<f64> {
        self.differences.iter().map(|difference| difference + effect).collect()
    }
}

/// The results of a design in a world.
struct Found {
    covered: Share,
    excludes: Share,
    different: Share,
    at_margin: Share,
    /// Equal systems called equivalent.
    equal: Share,
    /// Worse, of a variant that is slower by 2, 5 and 10 %.
    power: [Share; 3],
    half_width: f64,
}

fn found(name: &str, effort: Effort, study: impl Fn(&mut RandomStream) -> Measured + Sync) -> Found {
    let of_study = |random: &mut RandomStream| {
        let study = study(random);
        let (alone, product) = (study.alone(0.0, ALPHA), study.as_the_product(0.0, ALPHA));
        let worse = |ratio: f64| study.as_the_product(ratio.ln(), ALPHA).outcome == Outcome::Above;
        let events = [
            alone.interval.is_some_and(|interval| interval.contains(0.0)),
            alone.interval.is_some_and(|interval| !interval.contains(0.0)),
            is_difference(&product),
            is_equivalent(&study.as_the_product(log(MARGIN), ALPHA)),
            is_equivalent(&product),
            worse(1.02),
            worse(1.05),
            worse(1.1),
        ];
        (events, alone.interval.map_or(f64::INFINITY, |interval| interval.half_width()))
    };
    let studies = values(name, effort, of_study);
    let share = |event: usize| Share {
        hits: studies.iter().filter(|(events, _)| events[event]).count() as u64,
        of: studies.len() as u64,
    };
    let widths: Vec<f64> = studies.iter().map(|(_, width)| *width).collect();
    Found {
        covered: share(0),
        excludes: share(1),
        different: share(2),
        at_margin: share(3),
        equal: share(4),
        power: [share(5), share(6), share(7)],
        half_width: median(&widths).unwrap_or(f64::INFINITY),
    }
}

fn in_the_same_time(effort: Effort) -> Section {
    let (starts, turns) = DESIGN;
    let design = TurnsDesign::new(starts, turns);
    let mut rows = Vec::new();
    let mut checks: [Vec<(String, Share)>; 5] = [const { Vec::new() }; 5];
    let mut narrower: Vec<Vec<String>> = Vec::new();
    for world in worlds() {
        let name = named(world);
        let of_turns =
            found(&format!("turns {name}"), effort, |random| Measured::in_turns(&design.study(world, random)));
        // Nothing is demanded of trials here.
        let of_trials = found(&format!("trials {name}"), effort.divided_by(8), |random| {
            Measured::in_trials(study_of_trials(starts, design.seconds(), world, random))
        });
        for (words, found) in [("turns", &of_turns), ("trials", &of_trials)] {
            let mut row = vec![format!("{name}: {words}")];
            row.extend([found.covered, found.excludes, found.different, found.at_margin].map(percent));
            row.push(percent(found.equal));
            row.extend(found.power.map(percent));
            row.push(format!("± {:.1}", found.half_width.exp_m1() * 100.0));
            rows.push(row);
        }
        let shares = [of_turns.covered, of_turns.excludes, of_turns.different, of_turns.at_margin, of_turns.power[2]];
        // Where starts differ by 5 %, eight of them cannot find 10 %.
        let may_find = |check: usize| check < 4 || world.sd_of_starts < STARTS[2];
        for (check, share) in shares.into_iter().enumerate().filter(|(check, _)| may_find(*check)) {
            checks[check].push((name.clone(), share));
        }
        if matches!(world.machine, Machine::Wandering | Machine::TwoSpeeds) {
            narrower.push(vec![name, format!("×{:.2}", of_turns.half_width / of_trials.half_width)]);
        }
    }
    let [covered, excludes, different, at_margin, power] = checks;
    let head = [
        "machine, starts, design",
        "covers",
        "R = 1: excludes 1",
        "R = 1: different",
        "R = 1.05: equivalent",
        "R = 1: equivalent",
        "R = 1.02: worse",
        "R = 1.05: worse",
        "R = 1.10: worse",
        "half width, %",
    ];
    Section::new("Turns and trials in the same time")
        .text(format!(
            "Studies of {:.0} s of a baseline, a variant and a duplicate. *Turns*: {starts} starts of {turns} turns with slices \
             of 0.35 s, in the product's order; *trials*: {starts} blocks in the same time, each trial as long as that allows. \
             Starting takes 1 s and warming up 2 s for each variant, in either. A slice has a standard deviation of {:.0} % \
             (as *normal*, *skewed* or with *outliers*, as [above](#coverage)); a start draws for each of its systems what \
             layout and placement make, with a standard deviation of 0.5, 2 or 5 %. *Starts differ*: they also share a shift of \
             three times the noise of a slice. *Drift*: three times that noise over the study, and noise that lasts (AR(1), \
             0.6 from slice to slice). *Wanders*: by 4 %, and slowly: its correlation falls by e in 20 s. *Two speeds*: the \
             machine is ×1.65 slower for 10 to 45 s, then as fast as before for 10 to 45 s, and so on, whatever runs.",
            design.seconds(),
            SLICES * 100.0
        ))
        .text(
            "How often the interval holds the true ratio; how often that of two equal systems excludes equality, which would \
             be a false difference if the margin were tiny; how often the product calls them different, with the margin of 5 %, \
             over the noise floor and with the check for carry-over; how often it calls a variant that is \
             slower by exactly the margin equivalent; then what it finds, and the median half width of the interval. In percent \
             of the studies.",
        )
        .table(&head, rows)
        .text(
            "What lasts longer than a turn and not as long as a study makes trials differ, and the slices of a turn hardly; a \
             change of speed spoils one turn, which trimming drops, and it spoils whole trials. The width of the intervals of \
             turns, as a multiple of that of trials:",
        )
        .table(&["machine, starts", "width"], narrower)
        .text(
            "Slices share what their start drew, and do not tell how much that is. How often the interval of two equal \
             systems excludes equality, with starts as repeats and with turns as repeats, as the product never takes them; in \
             percent of the studies.",
        )
        .with(as_repeats(effort))
        .check(Check { what: "turns: the interval holds the true ratio", demand: Demand::Within(0.94, 0.99), cells: covered })
        .check(Check {
            what: "turns: the interval of equal systems excludes equality",
            demand: Demand::AtMost(0.055),
            cells: excludes,
        })
        .check(Check {
            what: "turns: equal systems called different, over the floor",
            demand: Demand::AtMost(0.055),
            cells: different,
        })
        .check(Check { what: "turns: equivalent at the margin", demand: Demand::AtMost(0.03), cells: at_margin })
        .check(Check { what: "turns: 10 % found, starts up to 2 %", demand: Demand::AtLeast(0.9), cells: power })
}

/// What comes of taking slices, or starts, for repeats.
fn as_repeats(effort: Effort) -> crate::section::Table {
    let (starts, turns) = DESIGN;
    let design = TurnsDesign::new(starts, turns);
    let effort = effort.divided_by(4);
    let row = |world: World| {
        let [of_starts, of_slices] = shares(&format!("slices as n {}", named(world)), effort, |random| {
            let study = design.study_with_slices(world, random);
            let of_starts: Vec<f64> = study.iter().map(|(start, _)| start.difference.value).collect();
            let of_slices: Vec<f64> = study.into_iter().flat_map(|(_, slices)| slices).collect();
            [of_starts, of_slices].map(|differences| {
                evidence(&differences, ALPHA).is_some_and(|evidence| !evidence.test.interval(1.0 - ALPHA).contains(0.0))
            })
        });
        vec![named(world), percent(of_starts), percent(of_slices)]
    };
    let head = ["machine, starts", "starts as repeats: the product", "turns as repeats"];
    let normal = worlds().filter(|world| matches!(world.machine, Machine::Normal | Machine::TwoSpeeds));
    crate::section::Table { head: head.map(str::to_owned).into(), rows: normal.map(row).collect() }
}

/// The declared looks over starts.
const LOOKS: [u32; 3] = [5, 8, 12];

fn looks(effort: Effort) -> Section {
    let effort = effort.divided_by(4);
    let alpha = plimsoll_analysis::level(&orders::with_looks(&LOOKS));
    let last = LOOKS[2] as usize;
    let design = TurnsDesign::new(last, DESIGN.1);
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for world in worlds() {
        let studies = values(&format!("looks in turns {}", named(world)), effort, |random| {
            let starts = design.study(world, random);
            [0.0, 1.05_f64.ln()].map(|effect| ended(&starts, effect, alpha))
        });
        let ended_by = |truth: usize, outcome: fn(&Decision) -> bool| Share {
            hits: studies.iter().filter(|study| outcome(&study[truth].0)).count() as u64,
            of: studies.len() as u64,
        };
        let mean_starts =
            |truth: usize| studies.iter().map(|study| f64::from(study[truth].1)).sum::<f64>() / studies.len() as f64;
        let wrong = ended_by(0, is_difference);
        rows.push(vec![
            named(world),
            percent(wrong),
            percent(ended_by(0, is_equivalent)),
            format!("{:.1}", mean_starts(0)),
            percent(ended_by(1, is_difference)),
            format!("{:.1}", mean_starts(1)),
        ]);
        cells.push((named(world), wrong));
    }
    let head = [
        "machine, starts",
        "R = 1: different",
        "R = 1: equivalent",
        "starts used",
        "R = 1.05: different",
        "starts used",
    ];
    Section::new("Looks over starts")
        .text(format!(
            "Studies in turns that end at the first look after 5, 8 and 12 starts at which the verdict is reached, at Pocock's \
             level of {:.2} %, decided as the product does, with floor and carry-over. How they end, in percent of the \
             studies, and after how many starts on average.",
            alpha * 100.0
        ))
        .table(&head, rows)
        .check(Check { what: "any false verdict over looks", demand: Demand::AtMost(0.055), cells })
}

/// The decision with which a study ends, and the starts that it took.
fn ended(starts: &[StartInTurns], effect: f64, alpha: f64) -> (Decision, u32) {
    let at = |look: u32| Measured::in_turns(&starts[..look as usize]).as_the_product(effect, alpha);
    let decided = LOOKS.into_iter().map(|look| (at(look), look)).find(|(decision, _)| !is_open(decision));
    decided.unwrap_or_else(|| (at(LOOKS[2]), LOOKS[2]))
}

/// Designs in which carry-over is looked for: starts, turns, and the standard deviation of a slice.
const CARRYING: [(usize, u32, f64); 4] = [(5, 8, 0.03), (5, 20, 0.03), (8, 20, 0.03), (8, 20, 0.1)];

fn carried_over(effort: Effort) -> Section {
    let effort = effort.divided_by(4);
    let (mut rows, mut alarms) = (Vec::new(), Vec::new());
    let (mut past, mut hiding) = (Vec::new(), Vec::new());
    for (starts, turns, sd_of_slices) in CARRYING {
        let design = TurnsDesign::new(starts, turns);
        for size in [0.0, 0.01, 0.025, 0.05, 0.1, 0.2] {
            let world = World { machine: Machine::Normal, sd_of_starts: 0.005, sd_of_slices, carry_over: size };
            let name = format!("{starts} starts of {turns}, slices {:.0} %", sd_of_slices * 100.0);
            let [shown, withdrawn, alone, product, twice, equal, equal_alone, hidden, hidden_alone] =
                shares(&format!("carry-over {name} {size}"), effort, |random| {
                    let study = Measured::in_turns(&design.study(world, random));
                    let [alone, product] = [study.alone(0.0, ALPHA), study.as_the_product(0.0, ALPHA)];
                    let twice = study.as_the_product(2.0_f64.ln(), ALPHA);
                    let doubt = study.influence(0.0, ALPHA).and_then(|found| doubt_by_influence(&found, log(MARGIN)));
                    [
                        doubt == Some(InfluenceDoubt::Shown),
                        matches!(product.basis, Basis::Influence { .. }) && !is_open(&alone),
                        is_difference(&alone),
                        is_difference(&product),
                        twice.outcome == Outcome::Above,
                        is_equivalent(&product),
                        is_equivalent(&alone),
                        is_equivalent(&study.as_the_product(log(MARGIN), ALPHA)),
                        is_equivalent(&study.alone(log(MARGIN), ALPHA)),
                    ]
                });
            rows.push(vec![
                name.clone(),
                format!("{:.1} %", size * 100.0),
                percent(shown),
                percent(withdrawn),
                format!("{} → {}", percent(alone), percent(product)),
                format!("{} → {}", percent(equal_alone), percent(equal)),
                format!("{} → {}", percent(hidden_alone), percent(hidden)),
                percent(twice),
            ]);
            if size == 0.0 {
                alarms.push((name.clone(), shown));
            } else {
                past.push((format!("{name}, {:.1} %", size * 100.0), product));
            }
            hiding.push((format!("{name}, {:.1} %", size * 100.0), hidden));
        }
    }
    let head = [
        "design",
        "carry-over",
        "shown, half the margin",
        "decision withdrawn",
        "R = 1: different",
        "R = 1: equivalent",
        "R = 1.05: equivalent",
        "R = 2: worse",
    ];
    Section::new("Carry-over")
        .text(
            "Studies in turns in which whatever runs right after a slice of the variant takes longer by the carry-over, on a \
             normal machine with starts of 0.5 %; almost half of the slices of baseline and duplicate come right after the variant, \
             so that a carry-over of 5 % makes the variant look faster by almost 2.5 %. How often carry-over is shown (its interval excludes zero and \
             reaches half the margin of 5 %); how often it withdraws a decision on two equal systems, also because equality is \
             not shown with it taken out; then, without the rule → with it and the noise floor: how often equal systems are \
             called different, how often equivalent, and how often a variant that is slower by exactly the margin is called \
             equivalent; and how often a variant that takes twice as long is found. In percent of the studies.",
        )
        .table(&head, rows)
        .check(Check { what: "carry-over shown where there is none", demand: Demand::AtMost(0.055), cells: alarms })
        .check(Check { what: "a false difference that carry-over makes", demand: Demand::AtMost(0.055), cells: past })
        .check(Check { what: "a difference of the margin that carry-over hides", demand: Demand::AtMost(0.03), cells: hiding })
}

fn lengths(effort: Effort) -> Section {
    let effort = effort.divided_by(8);
    let costs = Costs { start: TurnsDesign::seconds_of_start(), turn: TurnsDesign::seconds_of_turn() };
    let mut rows = Vec::new();
    for (sd_of_starts, sd_of_slices) in [(0.005, 0.04), (0.02, 0.04), (0.005, 0.1), (0.02, 0.1), (0.05, 0.04)] {
        let world = World { machine: Machine::Normal, sd_of_starts, sd_of_slices, carry_over: 0.0 };
        let truth = world.levels_of_difference();
        let best = truth.turns_per_start(costs);
        for turns in [8, 20, 60] {
            let design = TurnsDesign::new(5, turns);
            let name = format!("lengths {sd_of_starts} {sd_of_slices} {turns}");
            let found: Vec<(f64, f64, f64, f64)> = values(&name, effort, |random| {
                let starts: Vec<_> = design.study(world, random).iter().map(|start| start.difference).collect();
                let levels = TwoLevels::of(&starts).expect("five starts");
                let advised = levels.turns_per_start(costs);
                let advice = levels.time(advised, costs) <= 0.5 * levels.time(turns, costs);
                let better = truth.time(advised, costs) / truth.time(turns, costs);
                (
                    levels.sd_of_turns(),
                    levels.sd_of_starts(),
                    f64::from(u8::from(advice)),
                    if advice { better } else { f64::NAN },
                )
            });
            let middle = |of: fn(&(f64, f64, f64, f64)) -> f64| {
                let kept: Vec<f64> = found.iter().map(of).filter(|value| value.is_finite()).collect();
                median(&kept)
            };
            let advised = Share { hits: found.iter().filter(|one| one.2 > 0.0).count() as u64, of: found.len() as u64 };
            let in_percent =
                |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:.1}", value * 100.0));
            rows.push(vec![
                format!("turns {:.1} %, starts {:.1} %", truth.sd_of_turns() * 100.0, truth.sd_of_starts() * 100.0),
                turns.to_string(),
                format!("{} / {}", in_percent(middle(|one| one.0)), in_percent(middle(|one| one.1))),
                best.to_string(),
                format!("{:.2}", truth.time(best, costs) / truth.time(turns, costs)),
                percent(advised),
                middle(|one| one.3).map_or("–".to_owned(), |share| format!("{share:.2}")),
            ]);
        }
    }
    let head = [
        "truth",
        "turns",
        "found, turns / starts, %",
        "best",
        "time with the best",
        "advised to change",
        "time with the advice",
    ];
    Section::new("Lengths from both variances")
        .text(format!(
            "Studies of five starts with so many turns; a start takes {:.0} s and a turn {:.1} s. The standard deviations of \
             turns and starts of a difference, true and as the median study finds them; the number of turns that takes the \
             least time for the same width, and the share of the time that it takes; how often a study advises another number \
             of turns, because by its own variances that takes half the time or less, in percent; and the share of the time \
             that its advice takes in truth (median). Five starts tell the variance of starts badly, so the advice is kept to \
             what is clear.",
            costs.start, costs.turn
        ))
        .table(&head, rows)
}

/// Turns on a start for a given time: chosen before the run, or by what its first starts show.
fn lengths_for_a_time(effort: Effort) -> Section {
    const FIRST: usize = 3;
    const OF_FIRST: u32 = 10;
    let effort = effort.divided_by(8);
    let costs = Costs { start: TurnsDesign::seconds_of_start(), turn: TurnsDesign::seconds_of_turn() };
    let first = TurnsDesign::new(FIRST, OF_FIRST);
    let mut rows = Vec::new();
    for (ratio, minutes) in
        [0.0, 0.1, 0.2, 0.4].into_iter().flat_map(|ratio| [2.0, 5.0, 10.0].map(|time| (ratio, time)))
    {
        // The variance of turns counts 1.2 times.
        let sd_of_starts = ratio * 1.2_f64.sqrt() * SLICES;
        let world = World { machine: Machine::Normal, sd_of_starts, sd_of_slices: SLICES, carry_over: 0.0 };
        let truth = world.levels_of_difference();
        let time = minutes * 60.0;
        let chosen_by = |levels: TwoLevels| levels.turns_within(time, costs, ALPHA).expect("room for two starts");
        let width = |turns| truth.half_width_within(turns, time, costs, ALPHA).expect("room for two starts");
        let (best, before) = (chosen_by(truth), chosen_by(TwoLevels::ASSUMED));
        let name = format!("lengths for a time {ratio} {minutes}");
        let by_first: Vec<f64> = values(&name, effort, |random| {
            let starts: Vec<_> = first.study(world, random).iter().map(|start| start.difference).collect();
            width(chosen_by(TwoLevels::of(&starts).expect("several starts"))) / width(best)
        });
        let mean_of_first = plimsoll_statistics::mean(&by_first).expect("studies");
        rows.push(vec![
            format!("starts {:.0} % of turns", ratio * 100.0),
            format!("{minutes:.0}"),
            best.to_string(),
            before.to_string(),
            format!("{:.2}", width(before) / width(best)),
            format!("{mean_of_first:.2}"),
        ]);
    }
    let head = [
        "truth",
        "minutes",
        "best turns",
        "turns before the run",
        "width with them",
        "width by the first three starts",
    ];
    Section::new("Lengths for a given time")
        .text(format!(
            "How many turns a start should have when the time is given. The standard deviation that starts add, as a share of \
             that of a turn; the number of turns on a start whose interval is the narrowest, if both are known; the number that \
             `--for` chooses before the run, from the time and from what a start ({:.0} s) and a turn ({:.1} s) take; how wide \
             its interval is then, in proportion to the narrowest; and how wide it is on average if the number is chosen by \
             the variances that three starts of ten turns show, and holds for the whole time. Three starts tell the variance \
             of starts so badly that a choice by them is no better.",
            costs.start, costs.turn
        ))
        .table(&head, rows)
}
