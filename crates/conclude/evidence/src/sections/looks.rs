//! Runs that may end early, as with `--until-decided`.

use crate::noise_models::{NoiseModel, Trials};
use crate::orders;
use crate::random::RandomStream;
use crate::replicates::{Effort, shares};
use crate::rules::{ALPHA, MARGIN, evidence, floor, is_difference, is_open, log};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::compare::Reference;
use plimsoll_analysis::decide::{ComparisonToDecide, decide};

/// The declared looks; the last one is the full number of repeats.
const LOOKS: [&[u32]; 5] = [&[5, 10], &[5, 7, 10], &[3, 5, 7, 10], &[3, 10], &[4, 6, 8, 10, 12]];

/// Standard deviations of a trial.
const CVS: [f64; 3] = [0.02, 0.03, 0.05];

/// Comparisons of a study with several.
const FAMILY: usize = 4;

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(2);
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for looks in LOOKS {
        let alpha = plimsoll_analysis::level(&orders::with_looks(looks));
        let words = looks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut row = vec![words.clone(), format!("{:.2} %", alpha * 100.0)];
        for cv in CVS {
            let rule = Rule { looks, alpha, comparisons: 1, floor: false };
            let [declared] = shares(&format!("looks {words} {cv}"), effort, |random| [rule.false_verdict(cv, random)]);
            row.push(percent(declared));
            cells.push((format!("looks {words}, cv {:.0} %", cv * 100.0), declared));
        }
        for (comparisons, floor) in [(FAMILY, false), (1, true)] {
            let rule = Rule { looks, alpha, comparisons, floor };
            let name = format!("looks {words} {comparisons} {floor}");
            let [declared] = shares(&name, effort, |random| [rule.false_verdict(0.05, random)]);
            row.push(percent(declared));
            let which = if floor { "with the noise floor" } else { "four comparisons" };
            cells.push((format!("looks {words}, {which}"), declared));
        }
        let plain = Rule { looks, alpha: ALPHA, comparisons: 1, floor: false };
        let [peeking] = shares(&format!("looks {words} peeking"), effort, |random| [plain.false_verdict(0.05, random)]);
        row.push(percent(peeking));
        rows.push(row);
    }
    let head = [
        "looks after so many repeats",
        "level of each",
        "cv 2 %",
        "cv 3 %",
        "cv 5 %",
        "cv 5 %, four comparisons",
        "cv 5 %, with the noise floor",
        "cv 5 %, at 5 % each time",
    ];
    vec![
        Section::new("Stopping early")
            .text(
                "Studies of equal systems that end at the first of their declared looks at which every verdict is reached, \
                 as `plimsoll run --until-decided` does; of four comparisons, each under a condition of its own, those that \
                 are decided for good run no further. How often they end with a false worse or better, in percent of the \
                 studies: at Pocock's level, which the product uses, and, in the last column, if each look were taken with \
                 a plain 95 % interval.",
            )
            .table(&head, rows)
            .check(Check { what: "any false verdict of a declared plan", demand: Demand::AtMost(0.055), cells }),
    ]
}

/// How a study is run and decided.
struct Rule {
    looks: &'static [u32],
    alpha: f64,
    comparisons: usize,
    floor: bool,
}

impl Rule {
    /// True if a study of equal systems ends with a difference.
    fn false_verdict(&self, cv: f64, random: &mut RandomStream) -> bool {
        let last = *self.looks.last().expect("a look") as usize;
        let all: Vec<Trials> =
            (0..self.comparisons).map(|_| NoiseModel::Normal.trials(last, random).scaled(cv, 0.0)).collect();
        // Each comparison is one condition, which runs no further once its verdict is reached for good.
        let mut repeats: Vec<Option<usize>> = vec![None; self.comparisons];
        for look in self.looks {
            let look = *look as usize;
            let to_decide: Vec<ComparisonToDecide> =
                all.iter().zip(&repeats).map(|(trials, ended)| self.to_decide(trials, ended.unwrap_or(look))).collect();
            let decisions = decide(&to_decide, self.alpha);
            if look == last || !decisions.iter().any(is_open) {
                return decisions.iter().any(is_difference);
            }
            for (ended, _) in repeats.iter_mut().zip(&decisions).filter(|(_, decision)| decision.for_good) {
                ended.get_or_insert(look);
            }
        }
        false
    }

    fn to_decide(&self, trials: &Trials, repeats: usize) -> ComparisonToDecide {
        let (differences, of_floor) = (trials.differences(), trials.floor());
        let (differences, of_floor) = (&differences[..repeats], &of_floor[..repeats]);
        ComparisonToDecide {
            evidence: evidence(differences, self.alpha),
            margin: log(MARGIN),
            floor: floor(of_floor, differences, Reference::Baseline, self.alpha).filter(|_| self.floor),
            influence: None,
            hidden_by: None,
        }
    }
}
