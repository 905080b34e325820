//! Verdicts for known differences, and the repeats that they take.

use crate::noise_models::NoiseModel;
use crate::random::RandomStream;
use crate::replicates::{Effort, Share, shares};
use crate::rules::{ALPHA, MARGIN, decided, is_equivalent, is_open, log, with_floor, without_floor};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::decide::{ComparisonToDecide, Evidence, Outcome, decide};
use plimsoll_statistics::power::{power_of_tost, power_of_tost_of_two_samples};

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    vec![verdicts(effort), planning(effort), unpaired(effort)]
}

/// A true difference, and the precision of the machine.
#[derive(Clone, Copy)]
struct Truth {
    cv: f64,
    n: usize,
    ratio: f64,
}

/// The verdicts on the studies of a truth.
struct Verdicts {
    worse: Share,
    better: Share,
    equivalent: Share,
    open: Share,
    worse_over_floor: Share,
    equivalent_over_floor: Share,
}

impl Truth {
    fn verdicts(self, effort: Effort) -> Verdicts {
        let name = format!("margins {} {} {}", self.cv, self.n, self.ratio);
        let [worse, better, equivalent, open, worse_over_floor, equivalent_over_floor] =
            shares(&name, effort, |random| {
                let trials = NoiseModel::Normal.trials(self.n, random).scaled(self.cv, self.ratio.ln());
                let alone = decided(without_floor(&trials.differences(), MARGIN, ALPHA), ALPHA);
                let blocked_by_floor = decided(with_floor(&trials, MARGIN, ALPHA), ALPHA);
                [
                    alone.outcome == Outcome::Above,
                    alone.outcome == Outcome::Below,
                    is_equivalent(&alone),
                    is_open(&alone),
                    blocked_by_floor.outcome == Outcome::Above,
                    is_equivalent(&blocked_by_floor),
                ]
            });
        Verdicts { worse, better, equivalent, open, worse_over_floor, equivalent_over_floor }
    }
}

fn verdicts(effort: Effort) -> Section {
    let effort = effort.divided_by(2);
    let (mut rows, mut wrong, mut wrong_but_loud) = (Vec::new(), Vec::new(), Vec::new());
    for (cv, n) in [
        (0.01, 3),
        (0.01, 5),
        (0.01, 10),
        (0.02, 3),
        (0.02, 5),
        (0.02, 10),
        (0.03, 3),
        (0.03, 5),
        (0.03, 10),
        (0.05, 3),
        (0.05, 5),
        (0.05, 10),
        (0.1, 3),
        (0.1, 5),
        (0.1, 10),
    ] {
        for ratio in [1.0, 1.05, 1.1] {
            let truth = Truth { cv, n, ratio };
            let found = truth.verdicts(effort);
            rows.push(vec![
                format!("{:.0} %", cv * 100.0),
                n.to_string(),
                format!("{ratio:.2}"),
                percent(found.worse),
                percent(found.better),
                percent(found.equivalent),
                percent(found.open),
                format!("{} / {}", percent(found.worse_over_floor), percent(found.equivalent_over_floor)),
            ]);
            if ratio == 1.05 {
                let label = format!("cv {:.0} %, n = {n}", cv * 100.0);
                if cv <= 0.03 {
                    wrong.push((label, found.better));
                } else {
                    wrong_but_loud.push((label, found.better));
                }
            }
        }
    }
    Section::new("What a study finds")
        .text(
            "A variant that is truly slower by R: which verdict its one comparison gets, in percent of the studies, without \
             a noise floor; in the last column worse and equivalent with it. A variant that is slower by 5 % and called \
             better is wrong about the direction.",
        )
        .table(&["cv", "n", "R", "worse", "better", "equivalent", "inconclusive", "worse / equivalent over the floor"], rows)
        .check(Check { what: "better though slower by 5 %, cv up to 3 %", demand: Demand::AtMost(0.001), cells: wrong })
        .check(Check { what: "better though slower by 5 %, any cv", demand: Demand::AtMost(0.025), cells: wrong_but_loud })
}

/// Larger numbers of repeats are only computed, not simulated.
const MOST_SIMULATED: usize = 30;

fn planning(effort: Effort) -> Section {
    let effort = effort.divided_by(4);
    let margins = [0.02, 0.03, 0.05, 0.1];
    let mut rows = Vec::new();
    for cv in [0.01, 0.02, 0.03, 0.05, 0.1] {
        let mut row = vec![format!("{:.0} %", cv * 100.0)];
        for margin in margins {
            let bound = log(margin);
            // An interval of 95 % inside the margin is two one-sided tests at 2.5 %.
            let paired = least(|n| power_of_tost(0.0, cv * 2.0_f64.sqrt(), bound, n, ALPHA / 2.0));
            let unpaired = least(|n| power_of_tost_of_two_samples(0.0, cv, bound, n, ALPHA / 2.0));
            row.push(format!("{} ({})", repeats(paired), repeats(unpaired)));
            if let Some(n) = paired.filter(|n| *n <= MOST_SIMULATED) {
                let name = format!("planning {cv} {margin}");
                let [equivalent] = shares(&name, effort, |random| {
                    let trials = NoiseModel::Normal.trials(n, random).scaled(cv, 0.0);
                    [is_equivalent(&decided(without_floor(&trials.differences(), margin, ALPHA), ALPHA))]
                });
                row.push(percent(equivalent));
            } else {
                row.push("–".to_owned());
            }
        }
        rows.push(row);
    }
    let head = ["cv", "2 %", "found, %", "3 %", "found, %", "5 %", "found, %", "10 %", "found, %"];
    Section::new("Repeats to plan for")
        .text(
            "Repeats after which two equal systems are called equivalent with a chance of 80 %, by the margin: computed for \
             pairs, as the product compares (and, in parentheses, for two sets of trials that are not paired, with equal \
             noise). Beside it the share of simulated studies of that size in which the product does say equivalent; up to \
             30 repeats, without a noise floor. From n = 7 on that is a little less than was computed, because \
             [ranks have a say](#ranks-as-a-second-opinion).",
        )
        .table(&head, rows)
}

/// The least number of repeats with a power of 80 %, up to 200.
fn least(power: impl Fn(usize) -> Option<f64>) -> Option<usize> {
    (2..=200).find(|n| power(*n).is_some_and(|power| power >= 0.8))
}

fn repeats(n: Option<usize>) -> String {
    n.map_or("> 200".to_owned(), |n| n.to_string())
}

/// The power for a variant that is slower by 5 %, paired and unpaired.
fn unpaired(effort: Effort) -> Section {
    let mut rows = Vec::new();
    for (cv, n) in [(0.01, 3), (0.02, 3), (0.02, 5), (0.03, 5), (0.03, 10), (0.05, 10)] {
        let [paired, paired_blocks, unpaired, unpaired_blocks] =
            shares(&format!("unpaired {cv} {n}"), effort, |random| finds_five_percent(cv, n, random));
        rows.push(vec![
            format!("{:.0} %", cv * 100.0),
            n.to_string(),
            percent(paired),
            percent(unpaired),
            percent(paired_blocks),
            percent(unpaired_blocks),
        ]);
    }
    Section::new("Pairs, and what they cost and give")
        .text(
            "A variant that is slower by 5 %: how often the 95 % interval excludes equality, in percent of the studies. \
             Where trials of a block have nothing in common, pairs cost some power at few repeats, because they leave \
             fewer degrees of freedom. Where blocks differ by three times as much as the trials in one, as they do on a \
             machine that changes over hours, only pairs find anything.",
        )
        .table(&["cv", "n", "paired", "Welch", "blocks differ: paired", "blocks differ: Welch"], rows)
}

fn finds_five_percent(cv: f64, n: usize, random: &mut RandomStream) -> [bool; 4] {
    let finds = |evidence: Option<Evidence>| {
        let to_decide = ComparisonToDecide { evidence, margin: 1e-6, floor: None, influence: None, hidden_by: None };
        decide(&[to_decide], ALPHA)[0].interval.is_some_and(|interval| !interval.contains(0.0))
    };
    let [alone, blocks] =
        [NoiseModel::Normal, NoiseModel::Blocks].map(|noise_model| noise_model.trials(n, random).scaled(cv, log(0.05)));
    let side = |trials: &crate::noise_models::Trials, index: usize| -> Vec<f64> {
        trials.blocks.iter().map(|block| block[index]).collect()
    };
    let welch = |trials: &crate::noise_models::Trials| Evidence::unpaired(&side(trials, 1), &side(trials, 0), 0.0);
    [
        finds(crate::rules::evidence(&alone.differences(), ALPHA)),
        finds(crate::rules::evidence(&blocks.differences(), ALPHA)),
        finds(welch(&alone)),
        finds(welch(&blocks)),
    ]
}
