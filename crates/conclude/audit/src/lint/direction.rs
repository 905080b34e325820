//! Every measure has a direction: a rise of CPU, memory or duration is no improvement, and a rise
//! of throughput no regression. Where a row has both numbers, they give the direction of the
//! change, whatever the sign of the published change.

use super::Context;
use crate::cell::Claim;
use crate::compare::Comparison;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::finding::Severity;
use plimsoll_model::measure::Direction;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wrong: Vec<Evidence> = context.comparisons.iter().filter_map(wrong_direction).collect();
    if !wrong.is_empty() {
        let sentence = match wrong.len() {
            1 => "A change for the worse is called an improvement, or the other way round.".to_owned(),
            several => format!("{several} changes are called the opposite of what they are."),
        };
        findings.push(Finding {
            severity: Severity::Problem,
            topic: "wrong direction",
            sentence,
            evidence: wrong,
            advice: "Judge each measure by its own direction; a column `better` (lower or higher) says which it is. Where \
                     more work was done as well, compare the use per request.",
        });
    }
    let missing_direction: Vec<Evidence> = context.comparisons.iter().filter_map(missing_direction).collect();
    if !missing_direction.is_empty() {
        findings.push(Finding {
            severity: Severity::Note,
            topic: "direction not known",
            sentence: "Some claims cannot be checked, because the measure does not tell which way is better."
                .to_owned(),
            evidence: missing_direction,
            advice: "Add a column `better` with `lower` or `higher`.",
        });
    }
    findings
}

fn wrong_direction(comparison: &Comparison<'_>) -> Option<Evidence> {
    let claim = comparison.claim.filter(|claim| *claim != Claim::Same)?;
    let better = comparison.is_better()?;
    let change = comparison.change.as_ref();
    let rises = comparison.rises();
    // A change that may be due to rounding has no direction.
    let clear =
        rises.is_some() || change.is_some_and(|change| change.low.abs().min(change.high.abs()) > change.half_step);
    let which = match comparison.direction()? {
        Direction::Lower => "lower",
        Direction::Higher => "higher",
    };
    (clear && better != (claim == Claim::Improvement)).then(|| {
        Evidence::new(
            comparison.lines.clone(),
            format!("{}{}, and {which} is better", comparison.text(), called(comparison, rises, claim)),
        )
    })
}

/// The claim of the table; beside a change whose sign is not that of the numbers, the actual
/// direction of the numbers.
fn called(comparison: &Comparison<'_>, rises: Option<bool>, claim: Claim) -> String {
    let against = |rises: bool| {
        let change = comparison.change.as_ref()?;
        let does = if rises { "rises" } else { "falls" };
        (if rises { change.high < 0.0 } else { change.low > 0.0 }).then_some(does)
    };
    match rises.and_then(against) {
        Some(does) => format!(": it {does}, is {}", claim.called()),
        None => format!(" is {}", claim.called()),
    }
}

fn missing_direction(comparison: &Comparison<'_>) -> Option<Evidence> {
    let claim = comparison.claim.filter(|claim| *claim != Claim::Same)?;
    let unknown = comparison.change.is_some() && comparison.direction().is_none();
    unknown.then(|| Evidence::new(comparison.lines.clone(), format!("{} is {}", comparison.text(), claim.called())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::{evidence, found};

    #[test]
    fn a_rise_of_cpu_is_no_improvement() {
        let table =
            "metric,baseline,value,improvement\nUsers,950,1300,+37%\nMemory,275MB,160MB,-42%\nCPU,13%,20%,+54%\n";
        assert_eq!(evidence(lint, table), ["CPU: 13% → 20%, +54% is called an improvement, and lower is better"]);
    }

    #[test]
    fn the_column_better_decides() {
        let table =
            "metric,better,change,claim\nCPU,higher,+54 %,improvement\nusers,higher,+5 %,worse\ncpu,lower,0 %,better\n";
        assert_eq!(evidence(lint, table), ["users: +5 % is called a regression, and higher is better"]);
    }

    #[test]
    fn the_numbers_decide_against_the_sign_of_the_change() {
        for (row, says) in [
            (
                "throughput,100,90,+10%,improvement",
                vec!["throughput: 100 → 90, +10%: it falls, is called an improvement, and higher is better"],
            ),
            (
                "latency,5 ms,6 ms,-20%,improvement",
                vec!["latency: 5 ms → 6 ms, -20%: it rises, is called an improvement, and lower is better"],
            ),
            (
                "throughput,100,90,,improvement",
                vec!["throughput: 100 → 90, −10.0 % is called an improvement, and higher is better"],
            ),
            (
                "latency,0 ms,5 ms,,improvement",
                vec!["latency: 0 ms → 5 ms is called an improvement, and lower is better"],
            ),
            ("latency,100 ms,90 ms,+10%,improvement", vec![]),
            ("latency,5 ms,5 ms,-3%,improvement", vec![]),
            ("throughput,100,90,-10%,regression", vec![]),
        ] {
            let table = format!("metric,baseline,value,change,claim\n{row}\n");
            assert_eq!(evidence(lint, &table), says, "{row}");
        }
    }

    #[test]
    fn a_size_without_a_sign_has_the_direction_of_its_claim() {
        for table in [
            "metric,improvement\nlatency,20%\n",
            "metric,baseline,value,improvement\nlatency,100 ms,80 ms,20%\n",
            "metric,baseline,value,improvement\nlatency,100 ms,80 ms,1.25x\n",
            "metric,baseline,value,improvement\nlatency,100 ms,125 ms,25% slower\n",
            "metric,change,claim\nthroughput,20%,worse\n",
        ] {
            assert_eq!(evidence(lint, table), Vec::<String>::new(), "{table}");
        }
        let table = "metric,baseline,value,improvement\nlatency,100 ms,120 ms,20%\n";
        assert_eq!(
            evidence(lint, table),
            ["latency: 100 ms → 120 ms, 20% is called an improvement, and lower is better"]
        );
    }

    #[test]
    fn a_direction_that_nothing_tells_is_asked_for() {
        let findings = found(lint, "metric,change,claim\ncolour,+54 %,improvement\n");
        assert_eq!((findings.len(), findings[0].topic), (1, "direction not known"));
    }
}
