//! A percentile needs ten values beyond it, so that one value more or less does not move it far:
//! 100 values for p90, 200 for p95, 1,000 for p99, as in Plimsoll's own reports.

use super::Context;
use crate::column::Statistic;
use crate::finding::{Evidence, Finding};
use crate::lint::impossible::name;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::grouped;

/// Values that must lie beyond a percentile.
const MIN_VALUES_BEYOND: f64 = 10.0;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut evidence = Vec::new();
    for row in context.rows {
        let Some(requests) = row.exact_requests() else { continue };
        for (p, _) in row.percentiles() {
            let needed = (MIN_VALUES_BEYOND / (1.0 - p.max(100.0 - p) / 100.0)).round();
            if requests < needed && needed.is_finite() {
                let name = name(Statistic::Percentile(p));
                let text = format!("{name} takes {} values and has {}", grouped(needed), grouped(requests));
                evidence.push(Evidence::of(row, text));
            }
        }
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Caution,
        topic: "too few requests",
        sentence: format!(
            "Some percentiles rest on too few values: fewer than {MIN_VALUES_BEYOND:.0} lie beyond them."
        ),
        evidence,
        advice: "Measure longer, or show a lower percentile.",
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::evidence;

    #[test]
    fn percentiles_need_values_beyond_them() {
        let table = "requests,median,p95,p99\n500,1 ms,2 ms,3 ms\n1000,1 ms,2 ms,3 ms\n,1 ms,2 ms,3 ms\n12,1 ms,,\n";
        assert_eq!(
            evidence(lint, table),
            ["this row: p99 takes 1,000 values and has 500", "this row: median takes 20 values and has 12"]
        );
        for table in ["requests (k),p99\n500,3 ms\n", "requests,p99\n500+,3 ms\n", "requests (/s),p99\n500,3 ms\n"] {
            assert_eq!(evidence(lint, table), Vec::<String>::new(), "{table}");
        }
    }
}
