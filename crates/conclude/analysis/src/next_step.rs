//! The next step of a study that is not decided: what more repeats would take, and what is cheaper.

use crate::analysis::Analysis;
use crate::compare::{Comparison, time_per_repeat};
use crate::findings::OTHERS_RAN;
use crate::input::Input;
use crate::quantity::margin;
use crate::verdict::{Outcome, roughly, time_of};
use plimsoll_model::measure::{Effect, Measure};
use plimsoll_model::workload::Protocol;
use std::fmt;
use std::time::Duration;

/// What to do where a verdict is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// The total number of repeats that would probably decide every comparison; none where repeats alone would not.
    pub repeats: Option<usize>,
    /// The time that they take from the first on, as long as those that ran; none where nothing ran.
    pub time: Option<Duration>,
    /// Why more repeats would not do; empty where they would.
    pub obstacle: String,
    /// What is cheaper, or helps at all.
    pub alternative: String,
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repeats {
            Some(repeats) => {
                write!(f, "about {} repeats in all would probably decide", roughly(repeats))?;
                if let Some(time) = self.time {
                    write!(f, ", which takes {}", crate::words::span(time))?;
                }
                write!(f, "; cheaper: {}.", self.alternative)
            }
            None => write!(f, "{}: {}.", self.obstacle, self.alternative),
        }
    }
}

/// The next step; none where every verdict is reached, or nothing is compared.
pub(crate) fn next_step(input: &Input, analysis: &Analysis) -> Option<NextStep> {
    let is_open = |one: &&Comparison| {
        one.verdict.as_ref().is_some_and(|verdict| matches!(verdict.outcome, Outcome::Inconclusive | Outcome::Void))
    };
    let open: Vec<&Comparison> = analysis.comparisons.iter().filter(is_open).collect();
    let first = open.first()?;
    let only = |obstacle: &str, alternative: String| {
        Some(NextStep { repeats: None, time: None, obstacle: obstacle.to_owned(), alternative })
    };
    if !input.declared {
        return only("the study was changed after the run", "run it again as it stands".to_owned());
    }
    if input.facts.quick {
        return only("this is a first look", format!("run the study without `--quick`{}", whole_study(input)));
    }
    if open.iter().any(|one| one.contrast.as_ref().map_or(true, |contrast| contrast.interval.is_err())) {
        return only("too few pairs are left", mend(input, analysis, first));
    }
    let needed: Option<Vec<usize>> = open.iter().map(|one| one.verdict.as_ref()?.needed).collect();
    let repeats = needed.and_then(|needed| needed.into_iter().max());
    Some(NextStep {
        repeats,
        time: repeats.and_then(|repeats| Some(total(repeats, time_per_repeat(input)?))),
        obstacle: "more repeats alone would not decide".to_owned(),
        alternative: alternative(input, analysis, &open),
    })
}

fn total(repeats: usize, one: Duration) -> Duration {
    one * u32::try_from(repeats).unwrap_or(u32::MAX)
}

/// The time of the whole study, where this was a first look: unknown, but `plimsoll plan` says it.
fn whole_study(_: &Input) -> &'static str {
    "; `plimsoll plan` says how long it takes"
}

/// What to do where too few pairs are left for an interval.
fn mend(input: &Input, analysis: &Analysis, first: &Comparison) -> String {
    let repeats = input.plan.repeats as usize;
    let time = time_per_repeat(input).map(|one| format!(", which takes {}", time_of(repeats.max(5), one)));
    let time = time.unwrap_or_default();
    if analysis.excluded.is_empty() {
        return match &first.contrast {
            Ok(_) => format!("5 repeats{time}"),
            Err(reason) => format!("{reason}; mend that and run again{time}"),
        };
    }
    if let Some(others) = others(analysis) {
        return format!("{others}: stop them, and run again{time}");
    }
    format!("mend what kept the others from counting (see the findings), and run again{time}")
}

/// The line of a finding that says how much other programs used.
fn others(analysis: &Analysis) -> Option<&str> {
    let lines = analysis.findings.iter().filter(|finding| finding.topic == "the host").flat_map(|one| &one.evidence);
    lines.map(String::as_str).find(|line| line.starts_with(OTHERS_RAN))
}

/// The cheapest thing that may decide instead of more repeats.
fn alternative(input: &Input, analysis: &Analysis, open: &[&Comparison]) -> String {
    let takes_turns = input.facts.protocol != Protocol::Storage && !input.facts.systems.is_empty();
    if input.plan.design.is_trials() && takes_turns {
        return "`design = \"turns\"`, where variants are loaded within a second of one another".to_owned();
    }
    if let Some(others) = others(analysis) {
        return format!("a quieter machine, because {others}");
    }
    if let Some((size, measure)) = wider_margin(open) {
        return format!(
            "a margin of {}, declared anew, if a smaller difference does not matter",
            margin(size, measure)
        );
    }
    if input.plan.design.is_trials() {
        "longer loads, or processors of their own for system and generator".to_owned()
    } else {
        "more turns on each start, or processors of their own for system and generator".to_owned()
    }
}

/// Round margins, as shares.
const MARGINS: [f64; 6] = [0.02, 0.03, 0.05, 0.1, 0.15, 0.2];

/// The smallest round margin within which all intervals lie, if it is no more than three times the declared one; only
/// where all are of one measure and compared by ratios.
fn wider_margin<'a>(open: &[&'a Comparison]) -> Option<(f64, &'a Measure)> {
    let measure = &open.first()?.measure;
    if measure.effect() != Effect::Ratio || open.iter().any(|one| &one.measure != measure) {
        return None;
    }
    let reach = |one: &&Comparison| {
        let interval = one.contrast.as_ref().ok()?.interval.as_ref().ok()?;
        Some(interval.low.ln().abs().max(interval.high.ln().abs()))
    };
    let reaches: Option<Vec<f64>> = open.iter().map(reach).collect();
    let far = reaches?.into_iter().fold(0.0, f64::max).exp() - 1.0;
    let declared = open.iter().filter_map(|one| Some(one.verdict.as_ref()?.margin)).fold(f64::INFINITY, f64::min);
    let size = MARGINS.into_iter().find(|size| far <= *size)?;
    (size > declared && size <= 3.0 * declared).then_some((size, measure))
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::testing::{input, start};
    use plimsoll_model::start::Validity;
    use plimsoll_model::workload::Protocol;

    /// Values that differ by up to this share from repeat to repeat, without a pattern.
    fn noisy(repeats: u32, share: f64) -> crate::Input {
        input(repeats, move |number| start(1.0 + share * f64::from(number * 7 % 5) / 4.0))
    }

    #[test]
    fn a_decided_study_has_no_next_step() {
        let study = input(5, |number| start(if number % 2 == 1 { 1.0 } else { 3.0 }));
        let mut study = study;
        study.facts.decide.truncate(1);
        assert_eq!(analyse(&study).next, None);
    }

    #[test]
    fn an_open_study_names_its_repeats_with_their_time_and_what_is_cheaper() {
        let mut study = noisy(5, 0.4);
        study.facts.decide.truncate(1);
        let next = analyse(&study).next.expect("a next step");
        let repeats = next.repeats.expect("a forecast");
        // Two starts of 3 s each make a repeat.
        assert_eq!(next.time.expect("a time").as_secs(), 6 * repeats as u64);
        let text = next.to_string();
        assert!(text.contains(" repeats in all would probably decide, which takes "), "{text}");
        assert!(text.contains("; cheaper: `design = \"turns\"`"), "{text}");
        study.facts.protocol = Protocol::Storage;
        let text = analyse(&study).next.expect("a next step").to_string();
        assert!(!text.contains("turns"), "back ends cannot take turns: {text}");
    }

    #[test]
    fn where_trials_are_void_the_next_step_is_not_more_repeats() {
        let mut study = noisy(5, 0.4);
        for number in 2..9 {
            study.starts[number].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        }
        let analysis = analyse(&study);
        let verdict = analysis.verdicts().next().expect("a verdict");
        assert_eq!(verdict.reason, "7 of 10 trials void, one pair left; an interval takes 3");
        let text = analysis.next.expect("a next step").to_string();
        assert!(text.starts_with("too few pairs are left: mend what kept"), "{text}");
        assert!(analysis.findings.iter().all(|finding| finding.topic != "one variant after the other"));
    }
}
