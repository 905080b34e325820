//! Variants that are loaded at the same time as the baseline, beside turns in the same time.

use super::turns::{DESIGN, Measured, named, worlds};
use crate::machines::{Machine, PairsDesign, StartOfPairs, TurnsDesign, World};
use crate::random::RandomStream;
use crate::replicates::{Effort, Share, shares, values};
use crate::rules::{ALPHA, MARGIN, is_difference, is_equivalent, log};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::compare::Reference;
use plimsoll_analysis::decide::{Basis, HiddenBy, Outcome};
use plimsoll_analysis::turns::InfluenceKind;
use plimsoll_statistics::median;

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let (starts, turns) = DESIGN;
    let in_turns = TurnsDesign::new(starts, turns);
    let design = PairsDesign::in_time(starts, in_turns.seconds());
    vec![in_the_same_time(&design, &in_turns, effort), sharing(&design, effort)]
}

/// A study as the product decides it. Without processors of their own, nothing is called equivalent.
fn measured(starts: &[StartOfPairs], own_processors: bool) -> Measured {
    Measured {
        differences: starts.iter().map(|start| start.difference).collect(),
        floor: starts.iter().map(|start| start.floor).collect(),
        reference: Reference::Baseline,
        kind: InfluenceKind::Interference,
        influence: starts.iter().filter_map(|start| Some((start.difference, start.interference?))).collect(),
        hidden_by: (!own_processors).then_some(HiddenBy::SharedProcessors),
    }
}

fn in_the_same_time(design: &PairsDesign, in_turns: &TurnsDesign, effort: Effort) -> Section {
    let effort = effort.divided_by(2);
    let mut rows = Vec::new();
    let mut checks: [Vec<(String, Share)>; 4] = [const { Vec::new() }; 4];
    for world in worlds() {
        let name = named(world);
        let studies = values(&format!("side by side {name}"), effort, |random| {
            let study = measured(&design.study(world, 0.0, 0.0, random), true);
            let (alone, product) = (study.alone(0.0, ALPHA), study.as_the_product(0.0, ALPHA));
            let interval = alone.interval.expect("enough starts");
            let events = [
                interval.contains(0.0),
                is_difference(&product),
                is_equivalent(&study.as_the_product(log(MARGIN), ALPHA)),
                is_equivalent(&product),
                study.as_the_product(1.05_f64.ln(), ALPHA).outcome == Outcome::Above,
                study.as_the_product(1.1_f64.ln(), ALPHA).outcome == Outcome::Above,
            ];
            (events, interval.half_width())
        });
        let share = |event: usize| Share {
            hits: studies.iter().filter(|(events, _)| events[event]).count() as u64,
            of: studies.len() as u64,
        };
        let width = median(&studies.iter().map(|(_, width)| *width).collect::<Vec<f64>>()).unwrap_or(f64::INFINITY);
        let mut row = vec![name.clone()];
        row.extend((0..6).map(|event| percent(share(event))));
        row.push(format!("± {:.1}", width.exp_m1() * 100.0));
        row.push(format!("×{:.2}", width / half_width_of_turns(in_turns, world, effort)));
        rows.push(row);
        for (check, event) in [0, 1, 2, 5].into_iter().enumerate() {
            if check < 3 || world.sd_of_starts < 0.05 {
                checks[check].push((name.clone(), share(event)));
            }
        }
    }
    let [covered, different, at_margin, power] = checks;
    let head = [
        "machine, starts",
        "covers",
        "R = 1: different",
        "R = 1.05: equivalent",
        "R = 1: equivalent",
        "R = 1.05: worse",
        "R = 1.10: worse",
        "half width, %",
        "of that of turns",
    ];
    Section::new("Side by side and turns in the same time")
        .text(format!(
            "The machines and studies of [turns](#turns-and-trials-in-the-same-time), side by side: in the same {:.0} s, 8 starts \
             of {} turns with two pairs of slices each, baseline and variant, and baseline and duplicate. The two slices of a \
             pair see the same speed, and have noise of their own. Processors are not shared here, so that *equivalent* may be \
             said. In percent of the studies.",
            in_turns.seconds(),
            design.turns()
        ))
        .table(&head, rows)
        .check(Check { what: "side by side: the interval holds the true ratio", demand: Demand::Within(0.94, 0.99), cells: covered })
        .check(Check { what: "side by side: equal systems called different", demand: Demand::AtMost(0.055), cells: different })
        .check(Check { what: "side by side: equivalent at the margin", demand: Demand::AtMost(0.03), cells: at_margin })
        .check(Check { what: "side by side: 10 % found, starts up to 2 %", demand: Demand::AtLeast(0.9), cells: power })
}

fn half_width_of_turns(design: &TurnsDesign, world: World, effort: Effort) -> f64 {
    let width = |random: &mut RandomStream| {
        let differences: Vec<f64> = design.study(world, random).iter().map(|start| start.difference.value).collect();
        let evidence = crate::rules::evidence(&differences, ALPHA).expect("enough starts");
        evidence.test.interval(1.0 - ALPHA).half_width()
    };
    let widths = values(&format!("turns beside side by side {}", named(world)), effort.divided_by(8), width);
    median(&widths).unwrap_or(f64::INFINITY)
}

/// What sharing processors does: a part of the difference passes to the baseline.
fn sharing(design: &PairsDesign, effort: Effort) -> Section {
    let effort = effort.divided_by(4);
    let (mut rows, mut false_ones, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for effect in [0.0, 0.05, 0.1, 0.3] {
        for shared in [0.0, 0.3, 0.7] {
            if effect == 0.0 && shared > 0.0 {
                continue; // There is nothing to pass.
            }
            let world = World { machine: Machine::Normal, sd_of_starts: 0.005, sd_of_slices: 0.04, carry_over: 0.0 };
            let name = format!("sharing {effect} {shared}");
            let [worse, better, equivalent, would_be, withdrawn] = shares(&name, effort, |random| {
                let starts = design.study(world, (1.0_f64 + effect).ln(), shared, random);
                let product = measured(&starts, false).as_the_product(0.0, ALPHA);
                [
                    product.outcome == Outcome::Above,
                    product.outcome == Outcome::Below,
                    is_equivalent(&product),
                    is_equivalent(&measured(&starts, true).alone(0.0, ALPHA)),
                    matches!(product.basis, Basis::Influence { .. } | Basis::MayHide(_)),
                ]
            });
            rows.push(vec![
                format!("{:.0} %", effect * 100.0),
                format!("{:.0} %", shared * 100.0),
                percent(worse),
                percent(better),
                format!("{} → {}", percent(would_be), percent(equivalent)),
                percent(withdrawn),
            ]);
            let name = format!("{:.0} %, {:.0} % passes", effect * 100.0, shared * 100.0);
            if effect == 0.0 {
                false_ones.push((format!("{name}, worse"), worse));
            }
            false_ones.push((format!("{name}, better"), better));
            hidden.push((name, equivalent));
        }
    }
    let head = [
        "the variant takes longer by",
        "of which passes",
        "worse",
        "better",
        "equivalent, by the interval alone → by the product",
        "withdrawn: interference, or shared processors",
    ];
    Section::new("Side by side on shared processors")
        .text(
            "The same studies on a normal machine, starts 0.5 %, whose processors the two share: a part of what the variant \
             takes longer passes to the baseline beside it, so that the difference that can be seen is smaller. What the \
             product says, with the margin of 5 %, which gives no *equivalent* here. In percent of the studies.",
        )
        .table(&head, rows)
        .check(Check { what: "shared processors: a false difference", demand: Demand::AtMost(0.055), cells: false_ones })
        .check(Check { what: "shared processors: called equivalent", demand: Demand::AtMost(0.0), cells: hidden })
}
