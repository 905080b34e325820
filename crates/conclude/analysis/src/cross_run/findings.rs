//! The findings beside the numbers of two bundles.

use super::{Basis, CrossRunComparison, Floor};
use crate::effect::ends;
use crate::estimate::Interval;
use crate::finding::{Finding, Severity};
use crate::words;
use plimsoll_model::measure::Measure;

/// The topic of the finding about the noise floors of both.
pub const NOISE_FLOORS: &str = "noise floors";

pub(super) fn findings(compared: &CrossRunComparison) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        problems(compared),
        several(compared),
        at_once(compared),
        Some(times(compared)),
        unknown(compared),
        drift(compared),
    ]
    .into_iter()
    .chain([(!compared.is_of_one_system()).then(|| floors(compared)), left_out(compared), minor(compared)])
    .flatten()
    .collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

fn finding(severity: Severity, topic: &'static str, sentence: impl Into<String>, evidence: Vec<String>) -> Finding {
    Finding { severity, topic, sentence: sentence.into(), evidence }
}

fn problems(compared: &CrossRunComparison) -> Option<Finding> {
    let sentence =
        "A bundle is damaged, was changed after the run, or is not complete: this rests on what is whole of it.";
    (!compared.problems.is_empty())
        .then(|| finding(Severity::Problem, "bundle not whole", sentence, compared.problems.clone()))
}

fn several(compared: &CrossRunComparison) -> Option<Finding> {
    let sentence = "More than one thing differs between the bundles, so a difference in the numbers has no one cause: to \
                    learn it, change one thing at a time, or compare both as variants of one study.";
    let evidence = compared.causes.iter().map(ToString::to_string).collect();
    (compared.causes.len() > 1).then(|| finding(Severity::Caution, "several things differ", sentence, evidence))
}

fn at_once(compared: &CrossRunComparison) -> Option<Finding> {
    let [(first_begin, first_end), (second_begin, second_end)] = [compared.ran[0]?, compared.ran[1]?];
    let overlap = first_begin < second_end && second_begin < first_end;
    let same_machine = !compared.causes.iter().any(|cause| cause.kind == super::Kind::Machine);
    let sentence = "The two ran at the same time, on machines of the same description: if it was one machine, each was \
                    load for the other.";
    (overlap && same_machine).then(|| finding(Severity::Problem, "at the same time", sentence, Vec::new()))
}

/// The times of both runs. Always a finding: unlike the trials of one study, the two runs were
/// apart in time.
fn times(compared: &CrossRunComparison) -> Finding {
    let apart = match compared.ran {
        [Some((_, end)), Some((begin, _))] if begin >= end => {
            format!("The second began {} after the first had ended", span(begin - end))
        }
        [Some((begin, _)), Some((_, end))] if begin >= end => {
            format!("The second is the older one: it had ended {} before the first began", span(begin - end))
        }
        [Some(_), Some(_)] => "The two ran at overlapping times, and did not take turns".to_owned(),
        _ => "It is not known when each of the two ran".to_owned(),
    };
    let rest = match compared.basis {
        Basis::Values => {
            "what drifts on a machine in between (temperature, updates, neighbours, data on disk) is in the differences, \
             and not in their intervals. Variants of one study, in the same blocks, do not have this fault"
        }
        Basis::RatiosToBaseline => {
            "what drifted on the machine in between falls out of the ratios to the baseline, on which the verdicts are, \
             as far as it met all variants alike"
        }
    };
    finding(Severity::Caution, "different times", format!("{apart}; {rest}."), Vec::new())
}

fn unknown(compared: &CrossRunComparison) -> Option<Finding> {
    let sentence = "Some things could not be held against each other.";
    (!compared.unknown.is_empty()).then(|| finding(Severity::Caution, "not known", sentence, compared.unknown.clone()))
}

/// The baseline's own change, where only other variants differ.
fn drift(compared: &CrossRunComparison) -> Option<Finding> {
    let of_baseline = compared.rows.iter().filter(|row| row.is_baseline);
    let evidence: Vec<String> = of_baseline
        .filter_map(|row| {
            let change = row.change.as_ref().ok()?;
            let reach = match change.ends(&row.measure) {
                Ok([low, high]) => format!(" ({low} … {high})"),
                Err(_) => String::new(),
            };
            let measure = words::measure(&row.measure);
            Some(format!("{measure}, {}: {}{reach}", row.place(), change.shown(&row.measure)))
        })
        .collect();
    let sentence = "The baseline is the same in both, so its own change is what the time between them did. Verdicts on the \
                    other variants are on their ratios to it.";
    (compared.basis == Basis::RatiosToBaseline && !evidence.is_empty())
        .then(|| finding(Severity::Note, "drift", sentence, evidence))
}

fn floors(compared: &CrossRunComparison) -> Finding {
    let mut evidence = Vec::new();
    for (name, floors) in compared.names.iter().zip(&compared.floors) {
        let mut measures: Vec<&Measure> = Vec::new();
        for floor in floors {
            if !measures.contains(&&floor.measure) {
                measures.push(&floor.measure);
            }
        }
        if measures.is_empty() {
            evidence.push(format!("{name}: not measured"));
        }
        for measure in measures {
            let shown = match reach(floors, measure) {
                Some(interval) => ends(interval, measure).join(" … "),
                None => "no interval".to_owned(),
            };
            evidence.push(format!("{name}, {}: {shown}", words::measure(measure)));
        }
    }
    let sentence = "The noise floor of each bundle, the baseline against itself in the same blocks, is the least that two \
                    runs differ by; runs at different times differ by more.";
    finding(Severity::Note, NOISE_FLOORS, sentence, evidence)
}

/// The range of the floors of a measure over all conditions.
fn reach(floors: &[Floor], measure: &Measure) -> Option<Interval> {
    let intervals = floors.iter().filter(|floor| &floor.measure == measure).filter_map(|floor| floor.interval);
    intervals.reduce(|one, other| Interval { low: one.low.min(other.low), high: one.high.max(other.high) })
}

fn left_out(compared: &CrossRunComparison) -> Option<Finding> {
    let sentence = "Only what both bundles have is compared.";
    (!compared.left_out.is_empty()).then(|| finding(Severity::Note, "left out", sentence, compared.left_out.clone()))
}

fn minor(compared: &CrossRunComparison) -> Option<Finding> {
    let sentence = "These differ as well; the comparison is not about them.";
    let evidence = compared.minor.iter().map(ToString::to_string).collect();
    (!compared.minor.is_empty()).then(|| finding(Severity::Note, "also different", sentence, evidence))
}

/// A span of milliseconds for people: `40 s`, `12 min`, `3 h`, `5 days`.
fn span(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_take_the_unit_that_suits_them() {
        for (milliseconds, expected) in
            [(900, "0 s"), (119_000, "119 s"), (600_000, "10 min"), (7_200_000, "2 h"), (400_000_000, "4 days")]
        {
            assert_eq!(span(milliseconds), expected);
        }
    }
}
