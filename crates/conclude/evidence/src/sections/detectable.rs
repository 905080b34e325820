//! The smallest change that a study could have detected.

use crate::noise_models::NoiseModel;
use crate::replicates::{Effort, shares, values};
use crate::rules::{ALPHA, decided, evidence};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_analysis::compare::POWER;
use plimsoll_analysis::decide::{ComparisonToDecide, Outcome};
use plimsoll_statistics::smallest_detectable;

/// The repeats that are looked at.
const REPEATS: [usize; 8] = [3, 4, 5, 6, 7, 8, 10, 15];

/// Standard deviation of the difference of a pair.
const SD: f64 = 0.03;

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let (mut rows, mut by_interval, mut by_rule) = (Vec::new(), Vec::new(), Vec::new());
    for n in REPEATS {
        let change = smallest_detectable(SD, n, ALPHA, POWER).expect("three repeats or more");
        let [interval, rule] = shares(&format!("detectable {n}"), effort, |random| {
            let differences = NoiseModel::Normal.trials(n, random).scaled(SD / 2.0_f64.sqrt(), change).differences();
            // The margin is so small that the claim is about the difference alone.
            let to_decide = ComparisonToDecide {
                evidence: evidence(&differences, ALPHA),
                margin: change / 100.0,
                floor: None,
                influence: None,
                hidden_by: None,
            };
            let decision = decided(to_decide, ALPHA);
            [decision.interval.is_some_and(|interval| interval.low > 0.0), decision.outcome == Outcome::Above]
        });
        let mut printed = values(&format!("printed {n}"), effort.divided_by(10), |random| {
            let differences = NoiseModel::Normal.trials(n, random).scaled(SD / 2.0_f64.sqrt(), 0.0).differences();
            let sd = evidence(&differences, ALPHA).map_or(0.0, |evidence| evidence.sd());
            smallest_detectable(sd, n, ALPHA, POWER).unwrap_or(0.0) / change
        });
        printed.sort_by(f64::total_cmp);
        let at = |share: f64| printed[((printed.len() - 1) as f64 * share) as usize];
        rows.push(vec![
            n.to_string(),
            format!("{:.2}", change / SD),
            percent(interval),
            percent(rule),
            format!("{:.2}", at(0.5)),
            format!("{:.2} to {:.2}", at(0.1), at(0.9)),
        ]);
        by_interval.push((format!("n = {n}"), interval));
        by_rule.push((format!("n = {n}"), rule));
    }
    vec![
        Section::new("Smallest detectable change")
            .text(
                "The change that a study could have seen with a chance of 80 %, in units of the standard deviation of a \
                 pair's difference, if that were known; and how often a true change of that size is found, by the interval \
                 and by the whole rule, in which ranks have a say from n = 7. A report has to take the standard deviation \
                 from the same few repeats, so what it prints is spread around the true figure: the last columns have its \
                 median and where eight in ten of the studies lie, as multiples of the true one.",
            )
            .table(
                &["n", "change in sd", "found by the interval, %", "found by the rule, %", "printed, median", "printed, 10 % to 90 %"],
                rows,
            )
            .check(Check { what: "found by the interval", demand: Demand::Within(0.78, 0.82), cells: by_interval })
            .check(Check { what: "found by the whole rule", demand: Demand::Within(0.78, 0.82), cells: by_rule }),
    ]
}
