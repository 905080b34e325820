//! A published change must follow from the two numbers beside it, as far as rounding allows to
//! check.
//!
//! Rounding preserves the order of numbers: it can make two of them equal, but never the smaller
//! one the larger. So no rounding explains a change whose sign is not that of the difference. Over
//! a baseline of zero there is no change in per cent, unless the zero was rounded.

use super::Context;
use crate::cell::Change;
use crate::compare::Comparison;
use crate::finding::{Evidence, Finding};
use crate::quantity::Quantity;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::change as show_change;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let wrong: Vec<(Severity, Evidence)> = context.comparisons.iter().filter_map(contradiction).collect();
    let Some(severity) = wrong.iter().map(|(severity, _)| *severity).min() else { return Vec::new() };
    let sentence = match wrong.len() {
        1 => "A published change does not follow from the numbers beside it.".to_owned(),
        several => format!("{several} published changes do not follow from the numbers beside them."),
    };
    vec![Finding {
        severity,
        topic: "change that does not follow",
        sentence,
        evidence: wrong.into_iter().map(|(_, evidence)| evidence).collect(),
        advice: "Give the change over the baseline, (new − old)/old, and keep enough digits of both numbers to check it.",
    }]
}

/// A contradiction between the change and the numbers; only a caution where trailing zeros that may
/// be rounded explain it.
fn contradiction(comparison: &Comparison<'_>) -> Option<(Severity, Evidence)> {
    let change = comparison.change.as_ref().filter(|_| comparison.published)?;
    let (from, to) = (comparison.from.as_ref()?, comparison.to.as_ref()?);
    if from.unit != to.unit || from.value < 0.0 || from.bound || to.bound {
        return None;
    }
    if from.value == 0.0 {
        return from_zero(change, from, to).map(|(severity, text)| (severity, Evidence::of(comparison.row, text)));
    }
    if fits(change, from, to, |number| number.half_step) {
        return None;
    }
    let explained = !reversed(change, from, to) && fits(change, from, to, |number| number.coarse_half_step);
    let ratio = to.value / from.value;
    let mut text = format!("{} is {}, not {}", numbers(from, to), show_change(ratio), change.text);
    if let Some(slip) = slip(change, from, to) {
        text = format!("{text}, which is {slip}");
    } else if explained {
        text += "; the numbers may be rounded";
    }
    let severity = if explained { Severity::Caution } else { Severity::Problem };
    Some((severity, Evidence::of(comparison.row, text)))
}

/// A change over a baseline of zero; from nothing to nothing is no change.
fn from_zero(change: &Change, from: &Quantity, to: &Quantity) -> Option<(Severity, String)> {
    if to.value == 0.0 && change.low <= 0.0 && change.high >= 0.0 {
        return None;
    }
    let text = format!("{} is no change in per cent, and not {}: its baseline is zero", numbers(from, to), change.text);
    Some(if !reversed(change, from, to) && fits(change, from, to, |number| number.half_step) {
        (Severity::Caution, format!("{text}, which may be rounded"))
    } else {
        (Severity::Problem, text)
    })
}

/// True if the change and the numbers have opposite signs.
fn reversed(change: &Change, from: &Quantity, to: &Quantity) -> bool {
    change.low > 0.0 && to.value < from.value || change.high < 0.0 && to.value > from.value
}

fn numbers(from: &Quantity, to: &Quantity) -> String {
    format!("{} → {}", from.text, to.text)
}

/// True if the change can be that of the unrounded numbers.
fn fits(change: &Change, from: &Quantity, to: &Quantity, half_step: fn(&Quantity) -> f64) -> bool {
    let least = (to.value - half_step(to)) / (from.value + half_step(from)) - 1.0;
    let most = (to.value + half_step(to)) / (from.value - half_step(from)).max(f64::MIN_POSITIVE) - 1.0;
    // Half a step of the last digit, and a hair for the arithmetic.
    let slack = change.half_step * (1.0 + 1e-9) + 1e-12;
    change.high + slack >= least && change.low - slack <= most
}

/// The usual mistakes: relative to the new number, per cent as points, reversed sign.
fn slip(change: &Change, from: &Quantity, to: &Quantity) -> Option<&'static str> {
    let is = |share: f64| (change.middle() - share).abs() <= change.half_step.max(0.0005);
    let difference = to.value - from.value;
    if is(difference / to.value) {
        Some("the difference over the new number")
    } else if from.unit == plimsoll_model::measure::Unit::Share && is(difference) {
        Some("the difference in percentage points")
    } else if is(-difference / from.value) {
        Some("the change with its sign turned around")
    } else if is(to.value / from.value) {
        Some("the ratio itself")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::{evidence, found};

    #[test]
    fn changes_that_follow_pass() {
        for (from, to, change) in [
            ("10081", "10652", "+5.66%"),
            ("13185", "13967", "+5.93%"),
            ("950", "\"1,300\"", "+37%"),
            ("140", "180", "+29%"),
            ("275MB", "160MB", "-42%"),
            ("13%", "20%", "+54%"),
            ("10", "11", "5-15 %"),
            ("0", "0", "0 %"),
            ("0 ms", "0 ms", "±0.0 %"),
            ("\"2,500+\"", "\"2,500+\"", "+3 %"),
            ("5 ms", "0", "-100 %"),
        ] {
            let table = format!("baseline,value,change\n{from},{to},{change}");
            assert_eq!(evidence(lint, &table), Vec::<String>::new(), "{table}");
        }
    }

    #[test]
    fn a_size_without_a_sign_has_the_direction_of_its_claim() {
        for (heading, measure, from, to, size) in [
            ("improvement", "latency", "100 ms", "80 ms", "20%"),
            ("improvement", "colour", "100", "80", "20%"),
            ("change", "latency", "100 ms", "80 ms", "20% faster"),
            ("change", "latency", "100 ms", "80 ms", "25% faster"),
            ("change", "latency", "100 ms", "80 ms", "1.25x faster"),
            ("change", "latency", "100 ms", "50 ms", "2x lower"),
            ("change", "throughput", "100", "80", "20% slower"),
            ("improvement", "latency", "100 ms", "120 ms", "20%"),
        ] {
            let table = format!("metric,baseline,value,{heading}\n{measure},{from},{to},{size}");
            assert_eq!(evidence(lint, &table), Vec::<String>::new(), "{table}");
        }
        for (measure, from, to) in [("throughput", "100", "80"), ("latency", "100 ms", "70 ms")] {
            let table = format!("metric,baseline,value,improvement\n{measure},{from},{to},20%");
            assert_eq!(evidence(lint, &table).len(), 1, "{table}");
        }
    }

    #[test]
    fn changes_that_do_not_follow_are_told_with_the_slip() {
        for (from, to, change, says) in [
            ("950", "1301", "+27%", "which is the difference over the new number"),
            ("13%", "20%", "+7%", "which is the difference in percentage points"),
            ("10.0", "8.0", "+20%", "10.0 → 8.0 is −20.0 %, not +20%, which is the change with its sign turned around"),
            ("10.0", "12.0", "+120%", "which is the ratio itself"),
            ("10.0", "12.0", "+40%", "10.0 → 12.0 is +20.0 %, not +40%"),
            ("100", "90", "+10%", "100 → 90 is −10.0 %, not +10%, which is the change with its sign turned around"),
            ("0 ms", "5 ms", "+100%", "0 ms → 5 ms is no change in per cent, and not +100%: its baseline is zero"),
            ("0", "5 ms", "+100%", "its baseline is zero"),
            ("0", "3", "+300 %", "its baseline is zero"),
            ("0", "3", "-900 %", "its baseline is zero"),
        ] {
            let table = format!("baseline,value,change\n{from},{to},{change}");
            let findings = found(lint, &table);
            assert_eq!(
                findings.iter().map(|finding| finding.severity).collect::<Vec<_>>(),
                [Severity::Problem],
                "{table}"
            );
            assert!(findings[0].evidence[0].text.contains(says), "{findings:?}");
        }
    }

    #[test]
    fn what_rounded_zeros_explain_is_a_caution() {
        let findings = found(lint, "baseline,value,change\n1000,1300,+33 %");
        assert_eq!(findings[0].severity, Severity::Caution);
        assert!(findings[0].evidence[0].text.ends_with("the numbers may be rounded"), "{findings:?}");
        let findings = found(lint, "baseline,value,change\n0 ms,5 ms,+1100 %");
        assert_eq!(findings[0].severity, Severity::Caution);
        assert!(findings[0].evidence[0].text.ends_with("its baseline is zero, which may be rounded"), "{findings:?}");
    }
}
