//! No verdict without repeats.
//!
//! One run of each variant shows nothing of the spread between runs of the same variant, and two
//! show next to nothing (the interval of a mean of two is 12.7 times their standard error wide on
//! each side). A verdict takes three runs of each at least, better five.
//!
//! The repeats that a claimed change needs are the n of a paired t-test on the logarithm of the
//! ratio with a power of 80 % at the level of 5 %, for the table's usual spread, or for spreads of
//! 2 % and 5 % where it gives none.

use super::Context;
use crate::cell::Claim;
use crate::column::Statistic;
use crate::compare::Comparison;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::{grouped, percent};
use plimsoll_statistics::power::power_of_t;

/// Fewest runs of each variant for a verdict.
const MIN_RUNS: u64 = 3;

/// The largest number of repeats that is computed.
const MAX_REPEATS: usize = 1000;

const POWER: f64 = 0.8;
const SIGNIFICANCE: f64 = 0.05;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let few = context.comparisons.iter().filter(|one| one.runs.is_none_or(|runs| runs < MIN_RUNS));
    let (claimed, shown): (Vec<&Comparison<'_>>, Vec<&Comparison<'_>>) = few
        .filter(|one| one.change.is_some() || one.claim.is_some())
        .partition(|one| one.claim.is_some() || one.published);
    too_few(&claimed, &shown).into_iter().chain(without_spread(context)).collect()
}

/// Claims from too few runs, and numbers from as few runs that are merely listed side by side.
fn too_few(claimed: &[&Comparison<'_>], shown: &[&Comparison<'_>]) -> Option<Finding> {
    let pairs = |count: usize| match count {
        1 => "a pair of numbers that stand side by side".to_owned(),
        several => format!("{several} pairs of numbers that stand side by side"),
    };
    let all: Vec<&Comparison<'_>> = claimed.iter().chain(shown).copied().collect();
    let (severity, sentence) = match (claimed.len(), shown.len()) {
        (0, 0) => return None,
        (0, _) => (
            Severity::Caution,
            format!(
                "Nothing can be concluded from {}, from {}: differences, small or large, are those of these very runs.",
                pairs(shown.len()),
                runs(&all)
            ),
        ),
        (claims, others) => (
            Severity::Problem,
            format!(
                "{}{} rest on {}: no verdict without repeats. Chance alone, or a drift of the machine, may have \
                 made a difference.",
                if claims == 1 { "A claim".to_owned() } else { format!("{claims} claims") },
                if others == 0 { String::new() } else { format!(" and {}", pairs(others)) },
                runs(&all)
            )
            .replace("A claim rest ", "A claim rests "),
        ),
    };
    Some(Finding {
        severity,
        topic: "no repeats",
        sentence,
        evidence: all.iter().map(|one| evidence(one)).collect(),
        advice: "Run each variant at least 3, better 5 times, and as often as a small difference takes, taking turns; then give \
                 n and an interval.",
    })
}

/// Claims from enough runs whose spread is not given.
fn without_spread(context: &Context<'_>) -> Option<Finding> {
    let spread = [Statistic::Sd, Statistic::Min, Statistic::Max];
    let bare: Vec<Evidence> = context
        .comparisons
        .iter()
        .filter(|one| one.claim.is_some() && one.runs.is_some_and(|runs| runs >= MIN_RUNS) && one.lines.len() <= 2)
        .filter(|one| spread.iter().all(|statistic| one.row.get(*statistic).is_none()))
        .map(|one| Evidence::new(one.lines.clone(), one.text()))
        .collect();
    (!bare.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "no spread",
        sentence:
            "Claims from repeated runs are given without the spread of the runs, so nobody can tell how sure they are."
                .to_owned(),
        evidence: bare,
        advice: "Give the interval of the difference, or the value of each run.",
    })
}

/// The numbers of runs, as evidence.
fn runs(comparisons: &[&Comparison<'_>]) -> String {
    let mut runs: Vec<Option<u64>> = comparisons.iter().map(|one| one.runs).collect();
    runs.sort_unstable();
    runs.dedup();
    match runs.as_slice() {
        [Some(1)] => "too few runs, one of each variant",
        [Some(2)] => "too few runs, two of each variant",
        [None] => "runs whose number is not stated",
        [None, ..] => "too few runs (one or two of each variant) or runs whose number is not stated",
        _ => "too few runs, one or two of each variant",
    }
    .to_owned()
}

fn evidence(comparison: &Comparison<'_>) -> Evidence {
    let claim = comparison.claim.map(|claim| format!(", {}", claim.called())).unwrap_or_default();
    let runs = comparison.runs.map_or("n not stated".to_owned(), |runs| format!("n = {runs}"));
    let needed = needed(comparison).map(|needed| format!("; {needed}")).unwrap_or_default();
    Evidence::new(comparison.lines.clone(), format!("{}{claim}, {runs}{needed}", comparison.text()))
}

/// The repeats that it takes to tell the claimed change from chance.
fn needed(comparison: &Comparison<'_>) -> Option<String> {
    let change = comparison.change.as_ref().filter(|_| comparison.claim != Some(Claim::Same))?;
    let smallest = if change.low.abs() < change.high.abs() { change.low } else { change.high };
    let delta = (1.0 + smallest).ln().abs();
    if !(delta.is_finite() && delta > 0.0) {
        return None;
    }
    let number = |spread: f64| match repeats(delta, (1.0 + spread).ln()) {
        Some(repeats) => grouped(repeats as f64),
        None => format!("more than {}", grouped(MAX_REPEATS as f64)),
    };
    Some(match comparison.row.variance.filter(|variance| *variance > 0.0) {
        Some(usual) => format!(
            "takes {} repeats if the usual ±{} are two standard deviations, {} if one",
            number(usual / 2.0),
            percent(usual),
            number(usual)
        ),
        None if number(0.05) == number(0.02) => {
            format!("takes {} repeats if runs differ by up to 5 % (sd)", number(0.05))
        }
        None => format!("takes {} repeats if runs differ by 2 % (sd), {} if by 5 %", number(0.02), number(0.05)),
    })
}

/// The smallest number of pairs, from 3, with which a paired t-test detects `delta` with a power of
/// 80 %, when differences have the standard deviation `sd`.
fn repeats(delta: f64, sd: f64) -> Option<usize> {
    // Power grows with n, so this is a binary search.
    let (mut least, mut most) = (MIN_RUNS as usize, MAX_REPEATS + 1);
    while least < most {
        let middle = usize::midpoint(least, most);
        if power_of_t(delta, sd, middle, SIGNIFICANCE)? >= POWER {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    (least <= MAX_REPEATS).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn a_claim_from_one_run_is_a_problem() {
        let table = "measure,n,baseline,value,change,claim,variance\nusers,1,10081,10652,+5.66%,improvement,±5%\n";
        let findings = found(lint, table);
        assert_eq!((findings.len(), findings[0].severity), (1, Severity::Problem));
        assert!(
            findings[0].sentence.starts_with("A claim rests on too few runs, one of each variant: no verdict"),
            "{findings:?}"
        );
        let text = &findings[0].evidence[0].text;
        assert!(text.contains("takes 4 repeats if the usual ±5 % are two standard deviations, 9 if one"), "{text}");
    }

    #[test]
    fn variants_side_by_side_without_n_are_a_caution() {
        let findings = found(lint, "variant,mean\na,1 s\nb,2 s\n");
        assert_eq!((findings.len(), findings[0].severity), (1, Severity::Caution));
        assert!(
            findings[0].sentence.contains("side by side, from runs whose number is not stated: differences,"),
            "{findings:?}"
        );
    }

    #[test]
    fn the_sentence_is_one_whatever_is_stated() {
        let begins = |rows: &str| found(lint, &format!("measure,n,change,claim\n{rows}"))[0].sentence.clone();
        for (rows, says) in [
            ("a,,+5 %,better\n", "A claim rests on runs whose number is not stated: no verdict without repeats."),
            ("a,,+5 %,better\nb,,+5 %,better\n", "2 claims rest on runs whose number is not stated: no verdict"),
            ("a,2,+5 %,better\nb,2,+5 %,better\n", "2 claims rest on too few runs, two of each variant: no verdict"),
            (
                "a,,+5 %,better\nb,1,+5 %,better\n",
                "2 claims rest on too few runs (one or two of each variant) or runs whose number is not stated: no verdict",
            ),
        ] {
            assert!(begins(rows).starts_with(says), "{}", begins(rows));
        }
    }

    #[test]
    fn repeats_are_enough() {
        assert!(found(lint, "variant,mean,n\na,1 s,3\nb,2 s,5\n").is_empty());
        assert!(found(lint, "variant,mean\na,1 s\na,1 s\na,1 s\nb,2 s\nb,2 s\nb,2 s\n").is_empty());
        assert!(found(lint, "measure,mean\na,1 s\nb,2 s\n").is_empty());
    }

    #[test]
    fn a_change_smaller_than_can_be_seen_says_so() {
        let table = "measure,n,change,claim\nusers,1,+0.01 %,improvement\n";
        assert!(found(lint, table)[0].evidence[0].text.contains("takes more than 1,000 repeats"));
        assert!(!found(lint, "measure,n,change,claim\nusers,1,0 %,same\n")[0].evidence[0].text.contains("takes"));
    }
}
