//! Numbers that cannot come from one set of values, whatever the values were.
//!
//! The rules hold for every finite set, so one that is broken means a slip in the table or numbers
//! of different sets in one row. All of them allow for rounding.
//!
//! - min ≤ p10 ≤ median ≤ p90 ≤ … ≤ max, and min ≤ mean ≤ max.
//! - |mean − median| ≤ sd (Hotelling and Solomons 1932; the median minimises the mean absolute
//!   deviation). It holds for the sd that divides by n, so for the larger one that divides by
//!   n − 1 as well.
//! - A percentile lies at most sd·√(p/(1 − p)) above and sd·√((1 − p)/p) below the mean (Cantelli's
//!   inequality). Definitions of percentiles that interpolate may exceed it a little, so a tenth is
//!   allowed on top.
//! - sd² ≤ (max − mean)·(mean − min) (Bhatia and Davis 2000), and sd ≤ (max − min)/2 (Popoviciu
//!   1935), times n/(n − 1) where the sd may divide by n − 1; n = 2 where it is not told.
//! - n values with the range r have a variance of at least r²/(2·n), so an sd of 0 beside
//!   different values needs more values than there can be. Beside the number of several runs, and none of
//!   requests, the sd may be that of runs, and min and max those of requests: two kinds of spread in
//!   one row, which is a caution. The number of runs counts only where the sd is 0.
//! - A bound, such as `< 1 ms` or `1,000+`, breaks none of these.
//! - Times, sizes, counts and standard deviations are not negative, on either side of a comparison;
//!   no more than all requests fail. A plain number under `value` or `baseline` is taken for one of
//!   these where the measure's name is known; an overhead or a difference can be below zero. So nothing of the kind falls
//!   by more than 100 %.

use super::Context;
use crate::cell::{Change, Errors};
use crate::column::Statistic;
use crate::finding::{Evidence, Finding};
use crate::quantity::Quantity;
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::{grouped, percent, show};

/// Values of one row beyond which nobody has measured, where their number is not told.
const MOST_VALUES: f64 = 1e7;

/// The tolerance for interpolated percentiles on top of Cantelli's limit, as a share of it.
const INTERPOLATION: f64 = 0.1;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    impossible(context).into_iter().chain(kinds_of_spread(context)).collect()
}

fn impossible(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    for row in context.rows {
        let broken = [
            negative(row),
            falls(row),
            order(row),
            mean_in_range(row),
            spread(row),
            range(row),
            no_spread(row),
            errors(row),
        ];
        evidence.extend(broken.into_iter().flatten().map(|text| Evidence::of(row, text)));
    }
    let rows = evidence.iter().map(|one| one.lines[0]).collect::<std::collections::BTreeSet<_>>().len();
    let sentence = match rows {
        0 => return None,
        1 => "One row has numbers that no set of values can have.".to_owned(),
        rows => format!("{rows} rows have numbers that no set of values can have."),
    };
    Some(Finding {
        severity: Severity::Problem,
        topic: "impossible numbers",
        sentence,
        evidence,
        advice: "Ask for the raw values and make the table from them again. Where the sd is that of runs and the rest \
                 describes requests, put them in rows of their own.",
    })
}

/// Rows whose sd is that of runs, and whose other numbers are those of requests, unless they are impossible.
fn kinds_of_spread(context: &Context<'_>) -> Option<Finding> {
    let rows = context.rows.iter();
    let evidence: Vec<Evidence> = rows.filter_map(|row| Some(Evidence::of(row, no_spread_of_runs(row)?))).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "two kinds of spread",
        sentence: format!(
            "{} numbers that no set of values can have, unless the sd is that of runs and the rest describes requests.",
            if evidence.len() == 1 { "One row has".to_owned() } else { format!("{} rows have", evidence.len()) }
        ),
        evidence,
        advice: "Put the sd of runs and the numbers of requests in rows of their own, and say what each describes.",
    })
}

/// Words of measures that can be below zero.
const SIGNED: [&str; 14] = [
    "balance",
    "change",
    "delta",
    "deviation",
    "diff",
    "difference",
    "drift",
    "gain",
    "lag",
    "lateness",
    "offset",
    "overhead",
    "saving",
    "savings",
];

fn negative(row: &Row) -> Vec<String> {
    let measure = row.measure.as_deref().unwrap_or_default();
    let signed = is_signed(measure);
    // A plain number may be anything, unless the measure is known.
    let known = crate::direction::of(measure).is_some();
    let amount = |number: &Quantity| !signed && (known || number.unit != plimsoll_model::measure::Unit::Count);
    let statistics = row.statistics.iter().filter(|(statistic, number)| match statistic {
        Statistic::Sd => true,
        Statistic::Value => amount(number),
        _ => !signed,
    });
    let statistics = statistics.map(|(statistic, number)| (name(*statistic), number));
    let baseline = row.baseline.as_ref().filter(|number| amount(number)).map(|number| ("baseline".to_owned(), number));
    let others = [
        ("rate", &row.rate),
        ("duration", &row.duration),
        ("think time", &row.think),
        ("call", &row.call),
        ("size", &row.bytes),
    ];
    let others = others.into_iter().filter_map(|(name, number)| Some((name.to_owned(), number.as_ref()?)));
    let all = baseline.into_iter().chain(statistics).chain(others);
    all.filter(|(_, number)| number.value < 0.0)
        .map(|(name, number)| format!("{name} is {}, below zero", number.text))
        .collect()
}

/// True if the name of a measure says that it can be below zero.
fn is_signed(measure: &str) -> bool {
    measure.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| SIGNED.contains(&word))
}

/// A change that would leave less than nothing.
fn falls(row: &Row) -> Vec<String> {
    let below = |change: &&Change| change.high + change.half_step < -1.0;
    let Some(change) = row.change.as_ref().filter(below) else { return Vec::new() };
    let measure = row.measure.as_deref().unwrap_or_default();
    // What nobody knows may be below zero, such as a profit.
    let is_amount = !is_signed(measure) && row.direction().is_some();
    is_amount.then(|| format!("a change of {} leaves less than nothing", change.text)).into_iter().collect()
}

/// The name of a statistic in a sentence.
pub(super) fn name(statistic: Statistic) -> String {
    match statistic {
        Statistic::Value => "value".to_owned(),
        Statistic::Mean => "mean".to_owned(),
        Statistic::Sd => "sd".to_owned(),
        Statistic::Min => "min".to_owned(),
        Statistic::Max => "max".to_owned(),
        Statistic::Percentile(50.0) => "median".to_owned(),
        Statistic::Percentile(p) => format!("p{p}"),
    }
}

/// Min, percentiles and max must rise.
fn order(row: &Row) -> Vec<String> {
    let min = row.get(Statistic::Min).map(|min| (Statistic::Min, min));
    let max = row.get(Statistic::Max).map(|max| (Statistic::Max, max));
    let percentiles = row.percentiles().into_iter().map(|(p, number)| (Statistic::Percentile(p), number));
    let all = min.into_iter().chain(percentiles).chain(max);
    let rising: Vec<(Statistic, &Quantity)> = all.filter(|(_, number)| !number.bound).collect();
    let falls = rising.windows(2).filter(|pair| pair[0].1.low() > pair[1].1.high());
    falls
        .map(|pair| {
            let [(first, least), (second, most)] = [pair[0], pair[1]];
            format!("{} {} is above {} {}", name(first), least.text, name(second), most.text)
        })
        .collect()
}

fn mean_in_range(row: &Row) -> Vec<String> {
    let Some(mean) = row.exact(Statistic::Mean) else { return Vec::new() };
    let below = row.exact(Statistic::Min).filter(|min| mean.high() < min.low());
    let above = row.exact(Statistic::Max).filter(|max| mean.low() > max.high());
    let below = below.map(|min| format!("mean {} is below min {}", mean.text, min.text));
    below.into_iter().chain(above.map(|max| format!("mean {} is above max {}", mean.text, max.text))).collect()
}

/// Percentiles, the median among them, against mean and sd.
fn spread(row: &Row) -> Vec<String> {
    let Some((mean, sd)) = row.exact(Statistic::Mean).zip(row.exact(Statistic::Sd)) else { return Vec::new() };
    let mut broken = Vec::new();
    for (p, percentile) in row.percentiles().into_iter().filter(|(_, percentile)| !percentile.bound) {
        let share = p / 100.0;
        let apart = percentile.value - mean.value;
        let tail = if apart > 0.0 { share / (1.0 - share) } else { (1.0 - share) / share };
        let extra = if p == 50.0 { 1.0 } else { 1.0 + INTERPOLATION };
        let limit = sd.high() * tail.sqrt() * extra;
        // Written so that a limit without end, as for p100, breaks nothing.
        if apart.abs() - percentile.half_step - mean.half_step > limit {
            let stated = if p == 50.0 { "at most one sd".to_owned() } else { format!("at most {:.1} sd", tail.sqrt()) };
            broken.push(format!(
                "mean {} and {} {} lie {} apart, with an sd of {}; they can lie {stated} apart",
                mean.text,
                name(Statistic::Percentile(p)),
                percentile.text,
                show(apart.abs(), mean.unit),
                sd.text
            ));
        }
    }
    broken
}

/// The ratio of the sd that divides by n − 1 to the one that divides by n.
fn correction(row: &Row) -> f64 {
    let values = row.requests.or(row.runs.map(|runs| runs as f64)).filter(|values| *values >= 2.0).unwrap_or(2.0);
    (values / (values - 1.0)).sqrt()
}

/// The sd against the range.
fn range(row: &Row) -> Vec<String> {
    let [sd, min, max] = [Statistic::Sd, Statistic::Min, Statistic::Max].map(|statistic| row.exact(statistic));
    let (Some(sd), Some(min), Some(max)) = (sd, min, max) else { return Vec::new() };
    let half = (max.high() - min.low()) / 2.0;
    let with_mean = row.exact(Statistic::Mean).map(|mean| {
        // The limit is largest in the middle of the range, so the mean may be moved towards it.
        let middle = f64::midpoint(max.high(), min.low());
        let mean = middle.clamp(mean.low(), mean.high());
        ((max.high() - mean) * (mean - min.low())).max(0.0).sqrt()
    });
    let limit = with_mean.unwrap_or(half).min(half) * correction(row);
    (sd.low() > limit)
        .then(|| {
            format!(
                "sd {} is more than values from {} to {} can have: {} at most",
                sd.text,
                min.text,
                max.text,
                show(limit.max(0.0), sd.unit)
            )
        })
        .into_iter()
        .collect()
}

/// An sd of next to nothing beside values that differ.
fn no_spread(row: &Row) -> Vec<String> {
    if has_sd_of_runs(row) {
        return Vec::new();
    }
    let known = row.exact_requests();
    let there = known.map_or(String::new(), |known| format!(", and there are {}", grouped(known)));
    too_few_values(row, known).map(|takes| takes + &there).into_iter().collect()
}

/// An sd of runs of next to nothing beside values that differ.
fn no_spread_of_runs(row: &Row) -> Option<String> {
    let runs = row.runs.filter(|_| has_sd_of_runs(row))? as f64;
    let is_zero = row.exact(Statistic::Sd).is_some_and(|sd| sd.value == 0.0);
    let takes = too_few_values(row, is_zero.then_some(runs))?;
    Some(format!("{takes}, and there are {} runs", grouped(runs)))
}

/// True if the sd may be that of the runs of a row, and not that of its requests.
fn has_sd_of_runs(row: &Row) -> bool {
    row.runs.is_some_and(|runs| runs >= 2) && row.requests.is_none()
}

/// The number of values that an sd takes beside numbers as far apart as those of its row, as text, if there are fewer than
/// that: as many as are known, or else as many as anybody has measured.
fn too_few_values(row: &Row, known: Option<f64>) -> Option<String> {
    let sd = row.exact(Statistic::Sd)?;
    let values: Vec<&Quantity> = row
        .statistics
        .iter()
        .filter(|(one, number)| !matches!(one, Statistic::Sd | Statistic::Value) && !number.bound)
        .map(|(_, number)| number)
        .collect();
    let least = values.iter().map(|number| number.high()).fold(f64::INFINITY, f64::min);
    let most = values.iter().map(|number| number.low()).fold(f64::NEG_INFINITY, f64::max);
    if most <= least {
        return None;
    }
    let takes = ((most - least) / sd.high()).powi(2) / 2.0;
    (takes > known.unwrap_or(MOST_VALUES)).then(|| {
        format!(
            "an sd of {} beside values {} apart takes at least {} values",
            sd.text,
            show(most - least, sd.unit),
            grouped(takes.ceil())
        )
    })
}

fn errors(row: &Row) -> Vec<String> {
    let exact = row.errors_bound.is_none();
    match (row.errors, row.exact_requests()) {
        (Some(Errors::Count(failed)), _) if failed < 0.0 => vec![format!("errors are {failed}, below zero")],
        (Some(Errors::Share(share)), _) if share < 0.0 => vec![format!("errors are {}, below zero", percent(share))],
        (Some(Errors::Share(share)), _) if exact && share > 1.0 => {
            vec![format!("{} of requests failed, more than all", percent(share))]
        }
        (Some(Errors::Count(failed)), Some(requests)) if exact && failed > requests => {
            vec![format!("{} of {} requests failed", grouped(failed), grouped(requests))]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::{evidence, found};
    use proptest::prelude::*;

    #[test]
    fn each_rule_is_held() {
        for (table, says) in [
            (
                "mean,sd,median\n70.66 s,7.05 s,80.50 s",
                "lie 9.84 s apart, with an sd of 7.05 s; they can lie at most one sd apart",
            ),
            (
                "mean,sd,p95\n10 ms,1 ms,20 ms",
                "mean 10 ms and p95 20 ms lie 10.0 ms apart, with an sd of 1 ms; they can lie at most 4.4 sd apart",
            ),
            ("median,p95,p90\n10 ms,11 ms,13 ms", "p90 13 ms is above p95 11 ms"),
            ("min,mean\n10 ms,8 ms", "mean 8 ms is below min 10 ms"),
            ("mean,max\n10 ms,8 ms", "mean 10 ms is above max 8 ms"),
            ("min,max,median\n1 ms,9 ms,11 ms", "median 11 ms is above max 9 ms"),
            ("min,max,sd,n\n1 ms,9 ms,6 ms,5", "sd 6 ms is more than values from 1 ms to 9 ms can have"),
            ("min,max,mean,sd,n\n1.0 ms,9.0 ms,2.0 ms,4.0 ms,5", "sd 4.0 ms is more than"),
            ("mean,sd,max,n\n10.00 s,0.00 s,11.00 s,5", "and there are 5"),
            ("mean,sd\n10 ms,-1 ms", "sd is -1 ms, below zero"),
            ("measure,baseline,value,change\nlatency p95,-3 ms,5 ms,10%", "baseline is -3 ms, below zero"),
            ("measure,baseline,value,change\nlatency p95,3 ms,-5 ms,10%", "value is -5 ms, below zero"),
            ("measure,baseline,value\nthroughput,-100,90", "baseline is -100, below zero"),
            ("users,rate,duration\n10,-5/s,1 s", "rate is -5/s, below zero"),
            ("users,rate,duration\n10,5/s,-1 s", "duration is -1 s, below zero"),
            ("mean,errors\n10 ms,-3", "errors are -3, below zero"),
            ("measure,change\nresponse time,-124.76 %", "a change of -124.76 % leaves less than nothing"),
            ("mean,sd,max,n\n10.00 ms,0,100.00 ms,500", "an sd of 0 beside values"),
            ("mean,errors\n10 ms,120 %", "120 % of requests failed, more than all"),
            ("mean,errors,requests\n10 ms,12,10", "12 of 10 requests failed"),
        ] {
            let found = evidence(lint, table);
            assert!(found.iter().any(|text| text.contains(says)), "{table}: {found:?}");
        }
    }

    #[test]
    fn what_rounding_explains_is_possible() {
        for table in [
            "mean,sd,median\n1.05 s,0.00 s,1.05 s",
            "mean,sd,median\n1.05 s,0.00 s,1.06 s",
            "mean,sd,median\n585.14 ms,274.38 ms,795.78 ms",
            "min,median,p90\n2 ms,2 ms,2 ms",
            "mean,sd,min,max,n\n2 ms,1.41 ms,1 ms,3 ms,2",
            "value\n-3",
            "measure,change\nresponse time,-100 %",
            "measure,change\nprofit,-124 %",
            "measure,change\nlatency overhead,-124 %",
            "measure,baseline,value\nprofit,-3,5",
            "measure,baseline,value\nlatency overhead,-3 %,5 %",
            "measure,baseline,value\nlatency difference,-3 ms,5 ms",
            "mean,sd,max\n10.25 ms,0,10.26 ms",
            "variant,n,mean,sd,max\na,1,10.0 ms,2.0 ms,40.0 ms",
            "variant,n,mean,sd,max\na,5,10.0 ms,2.0 ms,40.0 ms",
            "variant,n,mean,sd,max\na,1,10.0 ms,0.0 ms,12.0 ms",
        ] {
            assert_eq!(evidence(lint, table), Vec::<String>::new(), "{table}");
        }
    }

    #[test]
    fn an_sd_of_runs_is_not_that_of_requests() {
        let mixed = (Severity::Caution, "two kinds of spread");
        let wrong = (Severity::Problem, "impossible numbers");
        for (table, expected) in [
            ("n,mean,sd,max\n5,10.0 ms,0.0 ms,12.0 ms", mixed),
            ("n,mean,sd,max\n5,10.00 s,0.01 s,100.00 s", mixed),
            ("n,requests,mean,sd,max\n5,500,10.00 ms,0.00 ms,100.00 ms", wrong),
            ("n,mean,sd,max\n1,10.00 ms,0.00 ms,100.00 ms", wrong),
            ("mean,sd,max\n10.00 ms,0.00 ms,100.00 ms", wrong),
        ] {
            let findings = found(lint, table);
            assert_eq!(findings.iter().map(|one| (one.severity, one.topic)).collect::<Vec<_>>(), [expected], "{table}");
        }
        let told = evidence(lint, "n,mean,sd,max\n5,10.0 ms,0.0 ms,12.0 ms").join("\n");
        assert!(told.contains("an sd of 0.0 ms beside values") && told.ends_with(", and there are 5 runs"), "{told}");
    }

    #[test]
    fn a_bound_is_no_number_to_calculate_with() {
        for table in [
            "min,mean\n<1 ms,0.3 ms",
            "max,p99\n> 10 s,12 s",
            "mean,max\n12 s,> 10 s",
            "mean,sd,p95\n10 ms,1 ms,<20 ms",
            "min,max,sd,n\n1 ms,>9 ms,6 ms,5",
            "mean,sd,max,n\n10.00 s,0.00 s,< 11.00 s,5",
            "mean,errors,requests\n10 ms,12,10+",
            "mean,errors,requests\n10 ms,<12,10",
            "mean,errors\n10 ms,< 120 %",
        ] {
            assert_eq!(evidence(lint, table), Vec::<String>::new(), "{table}");
        }
        assert_eq!(evidence(lint, "mean,max\n10 ms,< -1 ms").len(), 1, "below zero by any bound");
    }

    proptest! {
        /// Whatever was measured, its own statistics break no rule, however they are rounded and
        /// by whichever sd.
        #[test]
        fn real_values_are_possible(
            mut values in prop::collection::vec(0.0..1e4_f64, 2..40),
            decimals in 0..6_usize,
            sample in any::<bool>(),
            tell in any::<bool>(),
        ) {
            values.sort_by(f64::total_cmp);
            let n = values.len();
            let mean = values.iter().sum::<f64>() / n as f64;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let sd = (squares / if sample { n as f64 - 1.0 } else { n as f64 }).sqrt();
            let at = |p: f64| values[((p * n as f64).ceil() as usize).clamp(1, n) - 1];
            let median = if n % 2 == 1 { values[n / 2] } else { f64::midpoint(values[n / 2 - 1], values[n / 2]) };
            let requests = if tell { n.to_string() } else { String::new() };
            let cells = [mean, sd, values[0], median, at(0.9), at(0.95), values[n - 1]];
            let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:.decimals$} ms")).collect();
            let table = format!("mean,sd,min,median,p90,p95,max,requests\n{},{requests}", cells.join(","));
            prop_assert_eq!(evidence(lint, &table), Vec::<String>::new());
        }
    }
}
