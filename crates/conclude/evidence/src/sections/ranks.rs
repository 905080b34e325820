//! The second opinion by ranks: the decisions that it withdraws from seven repeats on.

use crate::noise_models::NoiseModel;
use crate::replicates::{Effort, Share, shares_where};
use crate::rules::{ALPHA, MARGIN, decided, evidence, is_difference, is_equivalent, log};
use crate::section::{Section, percent};
use plimsoll_analysis::decide::{Basis, ComparisonToDecide, Outcome};

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(2);
    let mut rows = Vec::new();
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
            ),
    ]
}

/// The shares of right verdicts, and of wrong ones that only noise makes, each without and with the ranks.
fn cell(noise_model: NoiseModel, n: usize, ratio: f64, effort: Effort) -> [[Share; 2]; 2] {
    let [right_before, right_after, wrong_before, wrong_after] =
        shares_where(&format!("ranks {} {n} {ratio}", noise_model.name()), effort, |random| {
            let differences = noise_model.trials(n, random).scaled(0.02, ratio.ln()).differences();
            let after = decided(
                ComparisonToDecide {
                    evidence: evidence(&differences, ALPHA),
                    margin: log(MARGIN),
                    floor: None,
                    influence: None,
                    hidden_by: None,
                },
                ALPHA,
            );
            // The same evidence without its ranks.
            let alone = evidence(&differences, ALPHA)
                .map(|evidence| plimsoll_analysis::decide::Evidence { shift: None, ..evidence });
            let before = decided(
                ComparisonToDecide {
                    evidence: alone,
                    margin: log(MARGIN),
                    floor: None,
                    influence: None,
                    hidden_by: None,
                },
                ALPHA,
            );
            // Where ranks take *equivalent* back, a difference may be left.
            let is_weaker = is_equivalent(&before) && is_difference(&after);
            assert!(
                before.outcome == after.outcome || is_weaker || matches!(after.basis, Basis::OutlierSensitive { .. })
            );
            let is_right = |decision: &plimsoll_analysis::decide::Decision| {
                if ratio > 1.0 { decision.outcome == Outcome::Above } else { is_equivalent(decision) }
            };
            let is_wrong = |decision: &plimsoll_analysis::decide::Decision| {
                if ratio > 1.0 { is_equivalent(decision) } else { is_difference(decision) }
            };
            [is_right(&before), is_right(&after), is_wrong(&before), is_wrong(&after)].map(Some)
        });
    [[right_before, right_after], [wrong_before, wrong_after]]
}
