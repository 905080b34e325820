//! Comparisons that do not decide and stand out.

use crate::random::RandomStream;
use crate::replicates::{Effort, Share, values};
use crate::rules::{ALPHA, evidence, log};
use crate::section::{Section, percent};
use plimsoll_analysis::compare::FALSE_DISCOVERIES;
use plimsoll_statistics::{benjamini_hochberg, mean};

/// Comparisons beside those that decide.
const FAMILY: usize = 40;

const N: usize = 5;

const CV: f64 = 0.02;

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let mut rows = Vec::new();
    for different in [0, 5, 20] {
        let found = values(&format!("exploratory {different}"), effort, |random| study(different, random));
        let false_share: Vec<f64> =
            found.iter().map(|(right, wrong)| *wrong as f64 / (right + wrong).max(1) as f64).collect();
        let any_wrong =
            Share { hits: found.iter().filter(|(_, wrong)| *wrong > 0).count() as u64, of: found.len() as u64 };
        let right: u64 = found.iter().map(|(right, _)| *right as u64).sum();
        rows.push(vec![
            format!("{different} of {FAMILY}"),
            format!("{:.1}", mean(&false_share).unwrap_or(0.0) * 100.0),
            percent(any_wrong),
            percent(Share { hits: right, of: (different * found.len()) as u64 }),
        ]);
    }
    vec![
        Section::new("What stands out")
            .text(format!(
                "Studies with {FAMILY} comparisons that do not decide, some of which are truly different by 10 %; n = {N}, \
                 cv {:.0} %. Of those that stand out (Benjamini and Hochberg, {:.0} %), how many are equal in truth, in the \
                 mean over studies; in how many studies at least one is; and how many of the different ones are found.",
                CV * 100.0,
                FALSE_DISCOVERIES * 100.0
            ))
            .table(&["truly different", "wrong among those that stand out, %", "studies with a wrong one, %", "found, %"], rows),
    ]
}

/// The number of true and of false discoveries.
fn study(different: usize, random: &mut RandomStream) -> (usize, usize) {
    let p: Vec<f64> = (0..FAMILY)
        .map(|index| {
            let effect = if index < different { log(0.1) } else { 0.0 };
            let differences: Vec<f64> = (0..N).map(|_| effect + CV * (random.normal() - random.normal())).collect();
            evidence(&differences, ALPHA).map_or(1.0, |evidence| evidence.test.p_two_sided(0.0))
        })
        .collect();
    let adjusted = benjamini_hochberg(&p);
    let stand_out = |range: std::ops::Range<usize>| adjusted[range].iter().filter(|p| **p <= FALSE_DISCOVERIES).count();
    (stand_out(0..different), stand_out(different..FAMILY))
}
