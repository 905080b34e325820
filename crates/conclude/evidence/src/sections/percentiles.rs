//! Percentiles: why those from too few requests are withheld.

use crate::random::RandomStream;
use crate::replicates::{Effort, Share, values};
use crate::rules::{ALPHA, MARGIN, decided, without_floor};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_statistics::order::quantile_interval;
use plimsoll_statistics::{mean, standard_deviation};

/// Repeats of a study.
const N: usize = 5;

/// The standard deviation of the logarithm of a request's duration. Durations are lognormal, with
/// the long tail that is typical of them.
const SIGMA: f64 = 0.8;

/// The p99 of a trial, and the result of a study of such trials.
struct P99OfTrial {
    /// ln(estimated / true) of a trial.
    error: f64,
    /// True if the interval by order statistics contains the true p99; none without an interval.
    covered: Option<bool>,
    /// True if the study's interval of the ratio of two equal systems contains 1.
    study_covered: bool,
    /// Half the width of that interval.
    half_width: f64,
}

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(4);
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for requests in [100, 300, 1000, 10_000] {
        let effort = if requests > 1000 { effort.divided_by(2) } else { effort };
        let found = values(&format!("percentiles {requests}"), effort, |random| study(requests, random));
        let errors: Vec<f64> = found.iter().map(|one| one.error).collect();
        let widths: Vec<f64> = found.iter().map(|one| one.half_width).collect();
        let covered = share(found.iter().filter_map(|one| one.covered));
        let study_covered = share(found.iter().map(|one| one.study_covered));
        rows.push(vec![
            crate::page::grouped(requests as u64),
            if requests < 1000 { "refused" } else { "shown" }.to_owned(),
            format!("{:+.1}", mean(&errors).unwrap_or(0.0).exp_m1() * 100.0),
            format!("± {:.1}", standard_deviation(&errors).unwrap_or(0.0) * 100.0),
            percent(covered),
            format!("± {:.1}", mean(&widths).unwrap_or(0.0).exp_m1() * 100.0),
            percent(study_covered),
        ]);
        if requests == 1000 {
            cells.push((String::new(), covered));
        }
    }
    let head = [
        "requests in a trial",
        "p99",
        "off by, %",
        "spread, %",
        "order statistics hold it, %",
        "interval of a ratio, %",
        "holds the ratio, %",
    ];
    vec![
        Section::new("Percentiles and few requests")
            .text(format!(
                "The p99 of trials of so many independent requests, whose durations are log-normal (σ = {SIGMA}). How far a \
                 trial's p99 is off the true one in the mean, and its spread; how often the 95 % interval of p99 by order \
                 statistics, within one trial, holds the true value (–: too few requests for an interval at all); and, for \
                 studies of two equal systems with {N} repeats, how wide the interval of the ratio of p99 is and how often \
                 it holds 1. Coverage over trials holds with few requests too, but the number is another one than its name \
                 says: a p99 of 100 requests is their second largest."
            ))
            .table(&head, rows)
            .check(Check { what: "order statistics hold the p99 of 1,000 requests", demand: Demand::AtLeast(0.94), cells }),
    ]
}

fn study(requests: usize, random: &mut RandomStream) -> P99OfTrial {
    let truth = SIGMA * 2.326_347_874_040_841;
    let sorted = trial(requests, random);
    let interval = quantile_interval(&sorted, 0.99, 0.95);
    let mut pair = || p99(&trial(requests, random)) - p99(&trial(requests, random));
    let differences: Vec<f64> = (0..N).map(|_| pair()).collect();
    let ratio = decided(without_floor(&differences, MARGIN, ALPHA), ALPHA).interval;
    P99OfTrial {
        error: p99(&sorted) - truth,
        covered: interval.map(|found| found.interval.contains(truth)),
        study_covered: ratio.is_some_and(|interval| interval.contains(0.0)),
        half_width: ratio.map_or(0.0, |interval| interval.half_width()),
    }
}

/// Logarithms of durations in ascending order.
fn trial(requests: usize, random: &mut RandomStream) -> Vec<f64> {
    let mut logs: Vec<f64> = (0..requests).map(|_| SIGMA * random.normal()).collect();
    logs.sort_unstable_by(f64::total_cmp);
    logs
}

/// The p99 as in histograms: the smallest value that at least 99 % do not exceed.
fn p99(sorted: &[f64]) -> f64 {
    sorted[((sorted.len() as f64 * 0.99).ceil() as usize).max(1) - 1]
}

fn share(answers: impl Iterator<Item = bool>) -> Share {
    answers.fold(Share::default(), |Share { hits, of }, yes| Share { hits: hits + u64::from(yes), of: of + 1 })
}
