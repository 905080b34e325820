//! The whole analysis, from trials with histograms to verdicts.

use crate::random::RandomStream;
use crate::replicates::{Effort, shares};
use crate::section::{Check, Demand, Section, percent};
use crate::study::{Shape, study};
use plimsoll_analysis::analyse;
use plimsoll_analysis::verdict::Outcome;

const SHAPE: Shape = Shape { variants: 3, conditions: 2, repeats: 5, seconds: 2 };

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(40);
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for cv in [0.01, 0.03, 0.05] {
        let [wrong, worse, better, all_equivalent] =
            shares(&format!("whole {cv}"), effort, |random| verdicts_of_study(cv, random));
        rows.push(vec![format!("{:.0} %", cv * 100.0), percent(worse), percent(better), percent(all_equivalent)]);
        cells.push((format!("cv {:.0} %", cv * 100.0), wrong));
    }
    vec![
        Section::new("Whole studies")
            .text(
                "Studies of three equal variants under two conditions with two measures that decide (p95 of the iteration, \
                 and throughput, which follows from it), five repeats, a duplicate, in the order that the product plans, \
                 with 1,000 iterations in the histogram of each trial: read and decided as the report does. How often any \
                 of the eight verdicts is worse or better, and how often all are equivalent, in percent of the studies.",
            )
            .table(&["cv", "any worse", "any better", "all equivalent"], rows)
            .check(Check { what: "any false verdict of a whole study", demand: Demand::AtMost(0.055), cells }),
    ]
}

fn verdicts_of_study(cv: f64, random: &mut RandomStream) -> [bool; 4] {
    let input = study(SHAPE, random.seed(), |_| (cv * random.normal()).exp());
    let analysis = analyse(&input);
    let any = |outcome| analysis.verdicts().any(|verdict| verdict.outcome == outcome);
    let (worse, better) = (any(Outcome::Worse), any(Outcome::Better));
    let all = analysis.verdicts().all(|verdict| verdict.outcome == Outcome::Equivalent);
    [worse || better, worse, better, all]
}
