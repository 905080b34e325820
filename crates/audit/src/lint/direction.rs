//! Every measure has a direction: a rise of CPU, memory or duration is no improvement, and a rise
//! of throughput no regression.

use super::Context;
use crate::cell::Claim;
use crate::compare::Comparison;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::findings::Gravity;
use plimsoll_model::measure::Direction;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wrong: Vec<Evidence> = context.comparisons.iter().filter_map(turned_around).collect();
    if !wrong.is_empty() {
        let sentence = match wrong.len() {
            1 => "A change for the worse is called an improvement, or the other way round.".to_owned(),
            several => format!("{several} changes are called the opposite of what they are."),
        };
        findings.push(Finding {
            gravity: Gravity::Problem,
            topic: "wrong direction",
            sentence,
            evidence: wrong,
            advice: "Judge each measure by its own direction; a column `better` (lower or higher) says which it is. Where \
                     more work was done as well, compare the use per request.",
        });
    }
    let untold: Vec<Evidence> = context.comparisons.iter().filter_map(untold).collect();
    if !untold.is_empty() {
        findings.push(Finding {
            gravity: Gravity::Note,
            topic: "direction not known",
            sentence: "Some claims cannot be checked, because the measure does not tell which way is better."
                .to_owned(),
            evidence: untold,
            advice: "Add a column `better` with `lower` or `higher`.",
        });
    }
    findings
}

fn turned_around(comparison: &Comparison<'_>) -> Option<Evidence> {
    let claim = comparison.claim.filter(|claim| *claim != Claim::Same)?;
    let better = comparison.is_better()?;
    let change = comparison.change.as_ref()?;
    // What rounding can turn into no change at all has no direction.
    let clear = change.low.abs().min(change.high.abs()) > change.half_step;
    let which = match comparison.direction()? {
        Direction::Lower => "lower",
        Direction::Higher => "higher",
    };
    (clear && better != (claim == Claim::Improvement)).then(|| {
        Evidence::new(
            comparison.lines.clone(),
            format!("{} is {}, and {which} is better", comparison.text(), claim.called()),
        )
    })
}

fn untold(comparison: &Comparison<'_>) -> Option<Evidence> {
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
    fn a_direction_that_nothing_tells_is_asked_for() {
        let findings = found(lint, "metric,change,claim\ncolour,+54 %,improvement\n");
        assert_eq!((findings.len(), findings[0].topic), (1, "direction not known"));
    }
}
