//! The unit of replication: the trial, and not the windows, seconds or requests inside it.

use crate::random::RandomStream;
use crate::replicates::{Effort, shares};
use crate::rules::{ALPHA, MARGIN, decided, without_floor};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::decide::{ComparisonToDecide, Evidence};
use plimsoll_statistics::mean;

/// Windows in a trial.
const WINDOWS: usize = 20;

/// Standard deviation between trials, in units of that between the windows of one.
const BETWEEN: f64 = 3.0;

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(2);
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for n in super::intervals::REPEATS {
        let [by_trial, by_window] = shares(&format!("windows {n}"), effort, |random| study(n, random));
        rows.push(vec![n.to_string(), percent(by_trial), percent(by_window)]);
        cells.push((format!("n = {n}"), by_trial));
    }
    vec![
        Section::new("The unit")
            .text(format!(
                "Each trial has {WINDOWS} windows; trials differ by three times as much as the windows of one. How often \
                 the 95 % interval holds the true ratio, in percent of the studies: with one number for each trial, as the \
                 product does, and with each window taken for a repeat, as it never does."
            ))
            .table(&["n", "one number for each trial", "windows as repeats"], rows)
            .check(Check { what: "coverage with one number for each trial", demand: Demand::AtLeast(0.94), cells }),
    ]
}

fn study(n: usize, random: &mut RandomStream) -> [bool; 2] {
    let mut side = || -> Vec<Vec<f64>> { (0..n).map(|_| trial(random)).collect() };
    let (baseline, variant) = (side(), side());
    let of_trial = |windows: &Vec<f64>| mean(windows).unwrap_or_default();
    let differences: Vec<f64> =
        variant.iter().zip(&baseline).map(|(variant, baseline)| of_trial(variant) - of_trial(baseline)).collect();
    let by_trial = decided(without_floor(&differences, MARGIN, ALPHA), ALPHA);
    let windows = Evidence::unpaired(&variant.concat(), &baseline.concat(), 0.0);
    let by_window = decided(
        ComparisonToDecide { evidence: windows, margin: MARGIN, floor: None, influence: None, hidden_by: None },
        ALPHA,
    );
    [by_trial, by_window].map(|decision| decision.interval.is_some_and(|interval| interval.contains(0.0)))
}

fn trial(random: &mut RandomStream) -> Vec<f64> {
    let centre = BETWEEN * random.normal();
    (0..WINDOWS).map(|_| 0.01 * (centre + random.normal())).collect()
}
