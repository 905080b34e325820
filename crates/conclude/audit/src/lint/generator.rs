//! A load generator at its own limit measures that limit. From 70 % of its processors on it sends
//! and times late; from 90 % on it is the limit.

use super::Context;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::percent;

const CAUTION_CPU: f64 = 0.7;
const LIMITING_CPU: f64 = 0.9;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let busy = context.rows.iter().filter_map(|row| Some((row.generator_cpu.filter(|cpu| *cpu >= CAUTION_CPU)?, row)));
    let evidence: Vec<(f64, Evidence)> = busy
        .map(|(cpu, row)| (cpu, Evidence::of(row, format!("the generator used {} of its CPU", percent(cpu)))))
        .collect();
    let most = evidence.iter().map(|(cpu, _)| *cpu).fold(0.0, f64::max);
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: if most >= LIMITING_CPU { Severity::Problem } else { Severity::Caution },
        topic: "generator",
        sentence: "The generator of the load was itself near its limit: what it measured may be its own slowness."
            .to_owned(),
        evidence: evidence.into_iter().map(|(_, evidence)| evidence).collect(),
        advice: "Send the load from more or faster machines, and show that the generator could have sent three times as much.",
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn a_busy_generator_is_found() {
        for (cpu, expected) in [("50%", None), ("75 %", Some(Severity::Caution)), ("97%", Some(Severity::Problem))] {
            let findings = found(lint, &format!("measure,generator cpu\nrps,{cpu}\n"));
            assert_eq!(findings.first().map(|finding| finding.severity), expected, "{cpu}");
        }
    }
}
