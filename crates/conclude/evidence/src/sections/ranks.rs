//! The second opinion by ranks: the decisions that it withdraws from seven repeats on.

use crate::noise_models::NoiseModel;
use crate::replicates::{Effort, Share, shares_where};
use crate::rules::{ALPHA, MARGIN, decided, is_difference, is_equivalent, without_floor};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::decide::{Basis, ComparisonToDecide, Decision, Evidence, Outcome};

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(2);
    let (mut rows, mut at_margin) = (Vec::new(), Vec::new());
    for noise_model in [NoiseModel::Normal, NoiseModel::Skewed, NoiseModel::Contaminated] {
        for n in [7, 8, 10, 15] {
            let mut row = vec![noise_model.name().to_owned(), n.to_string()];
            for ratio in [1.0, 1.05, 1.1] {
                let [right, wrong] = cell(noise_model, n, ratio, effort);
                let shown = |[before, after]: [Share; 2]| format!("{} → {}", percent(before), percent(after));
                row.push(shown(right));
                if ratio < 1.1 {
                    row.push(shown(wrong));
                }
                if ratio == 1.05 {
                    at_margin.push((format!("{}, n = {n}", noise_model.name()), wrong[1]));
                }
            }
            rows.push(row);
        }
    }
    vec![
        Section::new("Ranks as a second opinion")
            .text(
                "From seven repeats on, an interval by ranks (Hodges and Lehmann, Wilcoxon's signed ranks) must show the \
                 difference that Student's does, and where that is inside the margin, the estimate by ranks must be so as \
                 well; or the verdict is taken back as outlier-sensitive. What that costs and saves, in percent \
                 of the studies, cv 2 %: Student's interval alone → with ranks. Equal systems should be equivalent and are \
                 sometimes called different; R = 1.05 and 1.10 should be worse, and 1.05, which is the margin, is sometimes \
                 called equivalent.",
            )
            .table(
                &[
                    "noise",
                    "n",
                    "R = 1: equivalent",
                    "R = 1: worse or better",
                    "R = 1.05: worse",
                    "R = 1.05: equivalent",
                    "R = 1.10: worse",
                ],
                rows,
            )
            .check(Check { what: "equivalent at the margin, with ranks", demand: Demand::AtMost(0.03), cells: at_margin }),
    ]
}

/// The shares of right verdicts, and of wrong ones that only noise makes, each without and with the ranks.
fn cell(noise_model: NoiseModel, n: usize, ratio: f64, effort: Effort) -> [[Share; 2]; 2] {
    let [right_before, right_after, wrong_before, wrong_after] =
        shares_where(&format!("ranks {} {n} {ratio}", noise_model.name()), effort, |random| {
            let differences = noise_model.trials(n, random).scaled(0.02, ratio.ln()).differences();
            let with_ranks = without_floor(&differences, MARGIN, ALPHA);
            let alone = with_ranks.evidence.clone().map(|evidence| Evidence { shift: None, ..evidence });
            let before = decided(ComparisonToDecide { evidence: alone, ..with_ranks.clone() }, ALPHA);
            let after = decided(with_ranks, ALPHA);
            // Where ranks take *equivalent* back, a difference may be left.
            let is_weaker = is_equivalent(&before) && is_difference(&after);
            assert!(
                before.outcome == after.outcome || is_weaker || matches!(after.basis, Basis::OutlierSensitive { .. })
            );
            let is_right = |decision: &Decision| {
                if ratio > 1.0 { decision.outcome == Outcome::Above } else { is_equivalent(decision) }
            };
            let is_wrong = |decision: &Decision| {
                if ratio > 1.0 { is_equivalent(decision) } else { is_difference(decision) }
            };
            [is_right(&before), is_right(&after), is_wrong(&before), is_wrong(&after)].map(Some)
        });
    [[right_before, right_after], [wrong_before, wrong_after]]
}
