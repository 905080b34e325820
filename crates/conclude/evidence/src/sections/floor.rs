//! The noise floor: its cost on a fair machine, and its benefit on an unfair one.

use crate::noise_models::{NoiseModel, Trials};
use crate::orders;
use crate::random::RandomStream;
use crate::replicates::{Effort, shares};
use crate::rules::{
    ALPHA, MARGIN, decided, is_difference, is_equivalent, is_open, log, with_floor, with_strict_floor, without_floor,
};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::decide::{Basis, Decision, Doubt, Outcome};

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    vec![fair(effort), large(effort), unfair(effort)]
}

/// The decisions without a floor, by the strict rule, `noise_floor = "strict"`, and by the rule of a study that names none.
fn rules(trials: &Trials) -> [Decision; 3] {
    [
        without_floor(&trials.differences(), MARGIN, ALPHA),
        with_strict_floor(trials, MARGIN, ALPHA),
        with_floor(trials, MARGIN, ALPHA),
    ]
    .map(|to_decide| decided(to_decide, ALPHA))
}

/// The doubt about the floor, which the strict rule always tells.
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
            let found = shares(&format!("floor {cv} {n} {ratio}"), effort, |random| {
                let rules = rules(&NoiseModel::Normal.trials(n, random).scaled(cv, ratio.ln()));
                let doubt = doubt(&rules[1]);
                let right = if ratio > 1.0 { Outcome::Above } else { Outcome::Equivalent };
                let [alone, strict, product] = rules.map(|decision| decision.outcome == right);
                [doubt == Some(Doubt::NotZero), doubt == Some(Doubt::Wide), alone, strict, product]
            });
            let truth = [format!("{:.0} %", cv * 100.0), n.to_string(), format!("{ratio:.2}")];
            rows.push(truth.into_iter().chain(found.map(percent)).collect());
        }
    }
    let head = [
        "cv",
        "n",
        "R",
        "excludes equality",
        "wider than the margin",
        "right without a floor",
        "right: `\"strict\"`",
        "right: the product",
    ];
    Section::new("The noise floor on a fair machine")
        .text(
            "The baseline and its duplicate are equal, as they should be. How often the floor is in doubt nevertheless, \
             because by chance its interval excludes equality or because it is wider than the margin, and how often the \
             right verdict (equivalent for R = 1, worse above) is reached: without a floor; by the strict rule that a study \
             may ask for, `noise_floor = \"strict\"`, where a doubt makes every verdict inconclusive; and by the product, \
             where differences stand that lie wholly beyond the floor, and, if the floor excludes equality, equivalence \
             with each copy of the baseline. In percent of the studies.",
        )
        .table(&head, rows)
}

fn large(effort: Effort) -> Section {
    let effort = effort.divided_by(2);
    let (mut rows, mut claimed, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (cv, ratio) in [(0.02, 2.0_f64), (0.05, 2.0), (0.05, 20.0), (0.1, 2.0), (0.1, 20.0)] {
        let [over_doubt, strict, told, product] = shares(&format!("large {cv} {ratio}"), effort, |random| {
            let [_, strict, product] = rules(&NoiseModel::Normal.trials(5, random).scaled(cv, ratio.ln()));
            let worse = strict.outcome == Outcome::Above;
            let told = matches!(strict.basis, Basis::NoiseFloor { beyond: true, .. });
            let over_doubt = doubt(&strict).is_some() && !is_open(&strict);
            [over_doubt, worse, worse || told, product.outcome == Outcome::Above]
        });
        let truth = [format!("{:.0} %", cv * 100.0), format!("×{ratio}")];
        rows.push(truth.into_iter().chain([strict, told, product].map(percent)).collect());
        let cell = format!("cv {:.0} %, ×{ratio}", cv * 100.0);
        claimed.push((cell.clone(), over_doubt));
        kept.push((cell, product));
    }
    let head = ["cv", "R", "worse: `\"strict\"`", "worse, or told to lie beyond the floor", "worse: the product"];
    Section::new("Large differences over the noise floor")
        .text(
            "A variant that is two or twenty times as slow, n = 5, a fair machine. The strict rule leaves it undecided \
             whenever the floor is in doubt, and on a loud machine that is nearly always; the reason then says that the \
             difference lies beyond the floor. By the rule of a study that names none the verdict stands. In percent of \
             the studies.",
        )
        .table(&head, rows)
        .check(Check { what: "by the strict rule: a verdict over a floor in doubt", demand: Demand::AtMost(0.0), cells: claimed })
        .check(Check { what: "found by the product, whatever the floor", demand: Demand::AtLeast(0.99), cells: kept })
}

/// A fault of a machine or a study.
#[derive(Clone, Copy)]
enum Fault {
    /// The first trial of each block is slower, and the order is always the same: baseline,
    /// variant, duplicate.
    FirstIsSlowFixed,
    /// The first trial of each block is slower, in the order that the product plans.
    FirstIsSlowRandom,
    /// The duplicate is slower than the baseline: a confounder besides the system.
    Duplicate,
    /// The baseline's own trials are slower, the duplicate's and the variant's are not.
    Baseline,
}

/// How much slower trials are.
const SLOWER: [f64; 2] = [0.02, 0.05];

fn unfair(effort: Effort) -> Section {
    let (mut rows, mut hidden) = (Vec::new(), Vec::new());
    for (fault, words) in [
        (Fault::FirstIsSlowFixed, "first trial of a block, order fixed"),
        (Fault::FirstIsSlowRandom, "first trial of a block, the product's order"),
        (Fault::Baseline, "only the baseline itself"),
        (Fault::Duplicate, "only the duplicate"),
    ] {
        for (slower, cv) in SLOWER.into_iter().flat_map(|slower| [0.01, 0.02].map(|cv| (slower, cv))) {
            let name = format!("unfair {words} {slower} {cv}");
            let [doubt, hides_despite_doubt, found @ ..] =
                shares(&name, effort, |random| study(fault, slower, cv, random));
            hidden.push((format!("{words}, {:.0} %, cv {:.0} %", slower * 100.0, cv * 100.0), hides_despite_doubt));
            let [different, different_strict, different_product, equal @ ..] = found.map(percent);
            let [equivalent, equivalent_strict, equivalent_product, hides, hides_strict, hides_product] = equal;
            rows.push(vec![
                words.to_owned(),
                format!("{:.0} %", slower * 100.0),
                format!("{:.0} %", cv * 100.0),
                percent(doubt),
                format!("{different} → {different_product} ({different_strict})"),
                format!("{equivalent} → {equivalent_product} ({equivalent_strict})"),
                format!("{hides} → {hides_product} ({hides_strict})"),
            ]);
        }
    }
    let head = [
        "what is slower",
        "by",
        "cv",
        "floor in doubt",
        "false difference",
        "equivalent",
        "5 % slower, called equivalent",
    ];
    Section::new("The noise floor on an unfair machine")
        .text(
            "n = 5, and something makes trials of equal systems differ. Baseline and variant are equal: how often the floor \
             is in doubt; how often a false difference is claimed, without the floor → with it (in parentheses: by the \
             strict rule); and how often the right verdict, equivalent, is reached. Then for a variant that is slower by \
             exactly the margin: how often it is called equivalent. In percent of the studies. Where the baseline's place \
             in the block is the fault, the duplicate shows it, and the false verdicts go; the less surely, the smaller the \
             fault is beside the noise: a floor that happens to include zero raises no doubt. A duplicate that is itself the odd one costs right verdicts where it differs by the \
             margin: the machine is in doubt, and the report says so.",
        )
        .table(&head, rows)
        .check(Check { what: "slower by the margin, called equivalent over a floor in doubt", demand: Demand::AtMost(0.03), cells: hidden })
}

/// The events of a study on an unfair machine. Its floor is in doubt; it is, and the product calls a variant that is slower
/// by the margin equivalent all the same. Then, each without a floor, by the strict rule, and by the product: two equal
/// systems are called different; they are called equivalent; a variant that is slower by the margin is.
fn study(fault: Fault, slower: f64, cv: f64, random: &mut RandomStream) -> [bool; 11] {
    let trials = NoiseModel::Normal.trials(5, random);
    let slow: Vec<usize> = match fault {
        Fault::FirstIsSlowFixed | Fault::Baseline => vec![0; 5],
        Fault::Duplicate => vec![2; 5],
        Fault::FirstIsSlowRandom => {
            let plan = orders::plan(2, 1, 5, random.seed());
            plan.starts.iter().filter(|start| start.position == 1).map(|start| start.variants[0]).collect()
        }
    };
    let found = |effect: f64| {
        let mut trials = trials.scaled(cv, effect);
        for (block, variant) in trials.blocks.iter_mut().zip(&slow) {
            block[*variant] += log(slower);
        }
        rules(&trials)
    };
    let (equal, at_margin) = (found(0.0), found(log(MARGIN)));
    let [different, different_strict, different_product] = equal.each_ref().map(is_difference);
    let [equivalent, equivalent_strict, equivalent_product] = equal.each_ref().map(is_equivalent);
    let [hides, hides_strict, hides_product] = at_margin.each_ref().map(is_equivalent);
    let doubt = doubt(&equal[1]).is_some();
    [
        doubt,
        doubt && hides_product,
        different,
        different_strict,
        different_product,
        equivalent,
        equivalent_strict,
        equivalent_product,
        hides,
        hides_strict,
        hides_product,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_baseline_is_seen_in_the_floor() {
        let [caught] = shares("caught", Effort::fast(), |random| [study(Fault::Baseline, 0.05, 0.005, random)[0]]);
        assert!(caught.value() > 0.99, "{caught:?}");
    }
}
