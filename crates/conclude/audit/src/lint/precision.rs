//! Excess precision: digits that the spread does not support. A mean is known to about its standard
//! error, sd/√n; digits below a hundredth of it are meaningless. Beside a single run the sd is that of an unknown
//! number of requests, so the standard error is unknown. A single run supports only a few digits.

use super::Context;
use crate::column::Statistic;
use crate::finding::{Evidence, Finding};
use crate::row::Row;
use plimsoll_analysis::finding::Severity;

/// The most digits that a single run supports.
const DIGITS: usize = 5;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let evidence: Vec<Evidence> = context.rows.iter().filter_map(check).collect();
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Note,
        topic: "precision",
        sentence: "Some numbers have more digits than their spread, or a single run, supports.".to_owned(),
        evidence,
        advice: "Round to two digits of the standard error, or to three digits where it is not known.",
    }]
}

fn check(row: &Row) -> Option<Evidence> {
    let values = match row.requests {
        Some(_) => row.exact_requests(),
        None => row.runs.map(|runs| runs as f64),
    };
    let values = values.filter(|values| *values >= 2.0);
    if let (Some(mean), Some(sd), Some(values)) = (row.get(Statistic::Mean), row.get(Statistic::Sd), values) {
        let error = sd.value / values.sqrt();
        let idle = error > 0.0 && mean.half_step * 2.0 < error / 100.0;
        return idle.then(|| {
            let error = plimsoll_analysis::quantity::show(error, mean.unit);
            Evidence::of(row, format!("{} with a standard error of {error}", mean.text))
        });
    }
    let alone = row.runs.is_none_or(|runs| runs < 3) && row.get(Statistic::Sd).is_none();
    let numbers = row.statistics.iter().map(|(_, number)| number).chain(&row.rate);
    let long = numbers.filter(|_| alone).find(|number| number.digits > DIGITS);
    long.map(|number| {
        Evidence::of(
            row,
            format!(
                "{} from {}",
                number.text,
                row.runs.map_or("a number of runs that is not stated".to_owned(), |runs| format!("n = {runs}"))
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::evidence;

    #[test]
    fn digits_beyond_the_spread_are_found() {
        let table = "measure,n,mean,sd,rate\na,4,10.00001 ms,1 ms,\nb,4,10.0 ms,1 ms,\nc,1,,,4532.286646/s\nd,5,,,4532.286646/s\ne,1,,,4532/s\n";
        assert_eq!(
            evidence(lint, table),
            ["a: 10.00001 ms with a standard error of 500 µs", "c: 4532.286646/s from n = 1"]
        );
        assert_eq!(evidence(lint, "measure,n,mean,sd\na,1,719.94 µs,250.00 µs\n"), Vec::<String>::new());
    }
}
