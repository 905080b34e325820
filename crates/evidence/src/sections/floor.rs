//! The noise floor: what it costs on a fair machine, and what it saves from on another.

use crate::draws::Draws;
use crate::orders;
use crate::product::{
    ALPHA, MARGIN, decided, is_difference, is_equivalent, with_floor, with_strict_floor, without_floor,
};
use crate::replicates::{Effort, shares};
use crate::section::{Check, Demand, Section, percent};
use crate::worlds::{Trials, World};
use plimsoll_analysis::decide::{Basis, Decision, Doubt, Outcome};

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    vec![fair(effort), large(effort), unfair(effort)]
}

/// By the rule that is not the default, under which any doubt about the floor leaves everything open.
fn strictly(trials: &Trials) -> Decision {
    decided(with_strict_floor(trials, MARGIN, ALPHA), ALPHA)
}

fn doubt(strict: &Decision) -> Option<Doubt> {
    match strict.basis {
        Basis::NoiseFloor { doubt, .. } => Some(doubt),
        _ => None,
    }
}

fn fair(effort: Effort) -> Section {
    let effort = effort.divided_by(2);
    let mut rows = Vec::new();
    for (cv, n) in [(0.01, 5), (0.02, 5), (0.03, 5), (0.03, 10), (0.05, 10)] {
        for ratio in [1.0, 1.1, 1.3_f64] {
            let [alone, product, strict, not_zero, wide] =
                shares(&format!("floor {cv} {n} {ratio}"), effort, |draws| {
                    let trials = World::Normal.trials(n, draws).scaled(cv, ratio.ln());
                    let is_right = |outcome| outcome == if ratio > 1.0 { Outcome::Above } else { Outcome::Equivalent };
                    let alone = is_right(decided(without_floor(&trials.differences(), MARGIN, ALPHA), ALPHA).outcome);
                    let product = is_right(decided(with_floor(&trials, MARGIN, ALPHA), ALPHA).outcome);
                    let strict = strictly(&trials);
                    let is_doubt = |which| doubt(&strict) == Some(which);
                    [alone, product, is_right(strict.outcome), is_doubt(Doubt::NotZero), is_doubt(Doubt::Wide)]
                });
            rows.push(vec![
                format!("{:.0} %", cv * 100.0),
                n.to_string(),
                format!("{ratio:.2}"),
                percent(not_zero),
                percent(wide),
                percent(alone),
                percent(product),
                percent(strict),
            ]);
        }
    }
    let head = [
        "cv",
        "n",
        "R",
        "leaves out equality",
        "wider than the margin",
        "right without a floor",
        "right: the product",
        "right: strict rule",
    ];
    Section::new("The noise floor on a fair machine")
        .text(
            "The baseline and its duplicate are equal, as they should be. How often the floor is in doubt nevertheless, \
             because by chance its interval leaves out equality or because it is wider than the margin, and how often the \
             right verdict (equivalent for R = 1, worse above) is reached: without a floor; by the product, where a doubt \
             takes back all but differences that lie wholly beyond the floor; and by a stricter rule, under which any doubt \
             makes every verdict inconclusive. In percent of the studies.",
        )
        .table(&head, rows)
}

fn large(effort: Effort) -> Section {
    let effort = effort.divided_by(2);
    let (mut rows, mut kept) = (Vec::new(), Vec::new());
    for (cv, ratio) in [(0.02, 2.0_f64), (0.05, 2.0), (0.05, 20.0), (0.1, 2.0), (0.1, 20.0)] {
        let [product, strict] = shares(&format!("large {cv} {ratio}"), effort, |draws| {
            let trials = World::Normal.trials(5, draws).scaled(cv, ratio.ln());
            let product = decided(with_floor(&trials, MARGIN, ALPHA), ALPHA).outcome == Outcome::Above;
            [product, strictly(&trials).outcome == Outcome::Above]
        });
        rows.push(vec![format!("{:.0} %", cv * 100.0), format!("×{ratio}"), percent(product), percent(strict)]);
        kept.push((format!("cv {:.0} %, ×{ratio}", cv * 100.0), product));
    }
    Section::new("Large differences over the noise floor")
        .text(
            "A variant that is two or twenty times as slow, n = 5, a fair machine. The stricter rule leaves it undecided \
             whenever the floor is in doubt, and on a loud machine that is nearly always; the product does not. In percent \
             of the studies.",
        )
        .table(&["cv", "R", "worse: the product", "worse: strict rule"], rows)
        .check(Check { what: "found whatever the floor", demand: Demand::AtLeast(0.99), cells: kept })
}

/// What is wrong with a machine or a study.
#[derive(Clone, Copy)]
enum Fault {
    /// The first trial of each block is slower by 5 %, and the order is always the same: baseline,
    /// variant, duplicate.
    FirstIsSlowFixed,
    /// The same, in the order that the product plans.
    FirstIsSlowRandom,
    /// The duplicate differs from the baseline by 5 %: something besides the system is different.
    Duplicate,
    /// The baseline's own trials are slower by 5 %, the duplicate's and the variant's are not.
    Baseline,
}

const SLOWER: f64 = 0.05;

fn unfair(effort: Effort) -> Section {
    let mut rows = Vec::new();
    for (fault, words) in [
        (Fault::FirstIsSlowFixed, "first trial of a block 5 % slower, order fixed"),
        (Fault::FirstIsSlowRandom, "first trial of a block 5 % slower, the product's order"),
        (Fault::Baseline, "only the baseline itself 5 % slower"),
        (Fault::Duplicate, "only the duplicate 5 % slower"),
    ] {
        for cv in [0.01, 0.02] {
            let of = |draws: &mut Draws| study(fault, cv, draws);
            let [alone, product, doubt, equivalent_alone, equivalent] =
                shares(&format!("unfair {words} {cv}"), effort, of);
            rows.push(vec![
                words.to_owned(),
                format!("{:.0} %", cv * 100.0),
                percent(doubt),
                format!("{} → {}", percent(alone), percent(product)),
                format!("{} → {}", percent(equivalent_alone), percent(equivalent)),
            ]);
        }
    }
    Section::new("The noise floor on an unfair machine")
        .text(
            "Baseline and variant are equal, n = 5, but something makes trials differ. How often the floor is in doubt; how \
             often a false difference is claimed, without the floor and with it; and how often the right verdict, \
             equivalent, is reached. In percent of the studies. Where the baseline's place in the block is the fault, the \
             duplicate shows it, and the false verdicts go; the less surely, the smaller the fault is beside the noise. A \
             duplicate that is itself the odd one costs right verdicts: the machine is in doubt, and the report says so.",
        )
        .table(&["what is wrong", "cv", "floor in doubt", "false difference", "equivalent"], rows)
}

fn study(fault: Fault, cv: f64, draws: &mut Draws) -> [bool; 5] {
    let mut trials = World::Normal.trials(5, draws).scaled(cv, 0.0);
    let slow: Vec<usize> = match fault {
        Fault::FirstIsSlowFixed | Fault::Baseline => vec![0; 5],
        Fault::Duplicate => vec![2; 5],
        Fault::FirstIsSlowRandom => {
            let plan = orders::plan(2, 1, 5, draws.seed());
            plan.trials.iter().filter(|trial| trial.position == 1).map(|trial| trial.variant).collect()
        }
    };
    for (block, variant) in trials.blocks.iter_mut().zip(slow) {
        block[variant] += crate::product::log(SLOWER);
    }
    let alone = decided(without_floor(&trials.differences(), MARGIN, ALPHA), ALPHA);
    let product = decided(with_floor(&trials, MARGIN, ALPHA), ALPHA);
    [
        is_difference(&alone),
        is_difference(&product),
        doubt(&strictly(&trials)).is_some(),
        is_equivalent(&alone),
        is_equivalent(&product),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_baseline_is_seen_in_the_floor() {
        let [caught] = shares("caught", Effort::fast(), |draws| [study(Fault::Baseline, 0.005, draws)[2]]);
        assert!(caught.value() > 0.99, "{caught:?}");
    }
}
