//! Several comparisons that decide at once.

use crate::random::RandomStream;
use crate::replicates::{Effort, shares};
use crate::rules::{ALPHA, MARGIN, evidence, is_difference, log};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::decide::{ComparisonToDecide, decide};
use plimsoll_statistics::Interval;

/// Comparisons in a study.
const FAMILY: usize = 10;

const CV: f64 = 0.05;

/// The dependence between the comparisons.
#[derive(Clone, Copy)]
enum Dependence {
    /// Each has trials of its own: ten conditions.
    Independent,
    /// Ten variants are compared with the same trials of one baseline.
    SameBaseline,
}

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(2);
    let mut rows = Vec::new();
    let mut cells = Vec::new();
    for (dependence, words) in [
        (Dependence::Independent, "two variants, ten conditions"),
        (Dependence::SameBaseline, "eleven variants, one condition"),
    ] {
        for n in [3, 5, 10] {
            let [holm, each] = shares(&format!("several {words} {n}"), effort, |random| study(dependence, n, random));
            rows.push(vec![words.to_owned(), n.to_string(), percent(each), percent(holm)]);
            cells.push((format!("{words}, n = {n}"), holm));
        }
    }
    vec![
        Section::new("Several comparisons")
            .text(format!(
                "Studies with {FAMILY} comparisons that decide, between systems that are all equal; cv 5 %. How often at \
                 least one of them is called different, in percent of the studies: if each were decided by its own 95 % \
                 interval, and by the product's rule, which asks for Holm's adjustment."
            ))
            .table(&["study", "n", "each by itself", "as the product does"], rows)
            .check(Check { what: "any false verdict among ten", demand: Demand::AtMost(0.055), cells }),
    ]
}

fn study(dependence: Dependence, n: usize, random: &mut RandomStream) -> [bool; 2] {
    let mut trials = || -> Vec<f64> { (0..n).map(|_| random.normal() * CV).collect() };
    let shared = trials();
    let to_decide: Vec<ComparisonToDecide> = (0..FAMILY)
        .map(|_| {
            let baseline = if matches!(dependence, Dependence::Independent) { trials() } else { shared.clone() };
            let differences: Vec<f64> =
                trials().iter().zip(baseline).map(|(variant, baseline)| variant - baseline).collect();
            ComparisonToDecide {
                evidence: evidence(&differences, ALPHA),
                margin: log(MARGIN),
                floor: None,
                influence: None,
                hidden_by: None,
            }
        })
        .collect();
    let together = decide(&to_decide, ALPHA).iter().any(is_difference);
    [together, to_decide.iter().any(differs_by_itself)]
}

/// True if the 95 % interval excludes equality and does not lie inside the margin.
fn differs_by_itself(to_decide: &ComparisonToDecide) -> bool {
    let interval = to_decide.evidence.as_ref().map(|evidence| evidence.test.interval(1.0 - ALPHA));
    let inside = |interval: Interval| interval.low.min(-interval.high) >= -to_decide.margin;
    interval.is_some_and(|interval| !interval.contains(0.0) && !inside(interval))
}
