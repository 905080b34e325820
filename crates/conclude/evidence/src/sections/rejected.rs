//! Rules of other tools that Plimsoll rejects, tested against the same truth.

use crate::random::RandomStream;
use crate::replicates::{Effort, shares};
use crate::rules::{ALPHA, evidence};
use crate::section::{Section, percent};
use plimsoll_statistics::{Interval, TTest, mean};

/// Resamples of a bootstrap.
const RESAMPLES: usize = 500;

/// Variants of a study with pooled variance.
const VARIANTS: usize = 4;

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    vec![bootstrap(effort.divided_by(5)), pooled(effort.divided_by(2))]
}

fn bootstrap(effort: Effort) -> Section {
    let rows = [3, 5, 8, 10, 20, 30].map(|n| {
        let [student, resampled] = shares(&format!("bootstrap {n}"), effort, |random| {
            let differences: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            [student(&differences), percentiles_of_means(&differences, random)].map(|interval| interval.contains(0.0))
        });
        vec![n.to_string(), percent(student), percent(resampled)]
    });
    Section::new("The bootstrap")
        .text(format!(
            "How often a 95 % interval of the mean of n normal differences holds the true one, in percent of the studies: \
             Student's, and that from the percentiles of the means of {RESAMPLES} resamples."
        ))
        .table(&["n", "Student", "percentile bootstrap"], rows.into())
}

fn student(differences: &[f64]) -> Interval {
    evidence(differences, ALPHA).expect("three or more").test.interval(1.0 - ALPHA)
}

fn percentiles_of_means(values: &[f64], random: &mut RandomStream) -> Interval {
    let n = values.len();
    let mut resampled = || (0..n).map(|_| values[(random.share() * n as f64) as usize]).sum::<f64>() / n as f64;
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resampled()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
    Interval { low: at(ALPHA / 2.0), high: at(1.0 - ALPHA / 2.0) }
}

fn pooled(effort: Effort) -> Section {
    let mut rows = Vec::new();
    for n in [3, 5, 10] {
        for loud in [1.0, 2.0] {
            let [pairs, pooled] = shares(&format!("pooled {n} {loud}"), effort, |random| {
                let blocks: Vec<[f64; VARIANTS]> = (0..n)
                    .map(|_| {
                        let mut block = [(); VARIANTS].map(|()| random.normal());
                        block[1] *= loud;
                        block
                    })
                    .collect();
                let differences: Vec<f64> = blocks.iter().map(|block| block[1] - block[0]).collect();
                [student(&differences), by_residuals(&blocks)].map(|interval| interval.contains(0.0))
            });
            rows.push(vec![n.to_string(), format!("×{loud}"), percent(pairs), percent(pooled)]);
        }
    }
    Section::new("Pooled variance")
        .text(format!(
            "Studies of {VARIANTS} variants of which one is as noisy as the others, or twice as noisy: how often the 95 % \
             interval of that one against the baseline holds the true difference, in percent of the studies, by its own \
             pairs, and with the residual variance of all variants together (analysis of variance in blocks)."
        ))
        .table(&["n", "noise of the variant", "its own pairs", "pooled"], rows)
}

/// Student's interval of the second variant less the first, with the residuals of all of them.
fn by_residuals(blocks: &[[f64; VARIANTS]]) -> Interval {
    let n = blocks.len() as f64;
    let of_variant: Vec<f64> =
        (0..VARIANTS).map(|variant| blocks.iter().map(|block| block[variant]).sum::<f64>() / n).collect();
    let all = mean(&of_variant).expect("variants");
    let residual = |block: &[f64; VARIANTS]| {
        let centre = block.iter().sum::<f64>() / VARIANTS as f64;
        block.iter().zip(&of_variant).map(|(value, variant)| (value - centre - variant + all).powi(2)).sum::<f64>()
    };
    let df = (VARIANTS - 1) as f64 * (n - 1.0);
    let variance = blocks.iter().map(residual).sum::<f64>() / df;
    TTest { estimate: of_variant[1] - of_variant[0], standard_error: (2.0 * variance / n).sqrt(), df }
        .interval(1.0 - ALPHA)
}
