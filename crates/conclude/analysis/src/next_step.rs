//! The next step of a study that is not decided: what more repeats would take, and what is cheaper.

use crate::analysis::Analysis;
use crate::capacity::Found;
use crate::compare::{Comparison, time_per_repeat};
use crate::excluded::BLOCK_RUN_AGAIN;
use crate::feedback;
use crate::findings::OTHERS_RAN;
use crate::input::Input;
use crate::quantity::{margin, percent};
use crate::verdict::{Outcome, roughly, time_of};
use plimsoll_model::measure::{Effect, Measure};
use std::fmt;
use std::time::Duration;

/// What to do where a verdict is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// The total number of repeats that would probably decide; none where repeats alone would not.
    pub repeats: Option<usize>,
    /// How many of the open comparisons they would decide, and how many are open.
    pub decides: (usize, usize),
    /// The time that they take from the first on, as long as those that ran; none where nothing ran.
    pub time: Option<Duration>,
    /// The command that gives them their time; none where they would not decide, or where the run has them yet to come.
    pub command: Option<String>,
    /// True if the run was interrupted, and the repeats that it still has to run would probably decide.
    pub resumes: bool,
    /// Why more repeats would not do; empty where they would.
    pub obstacle: String,
    /// What is cheaper, or helps at all.
    pub alternative: String,
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repeats {
            Some(repeats) => {
                let resume = if self.resumes { "resume the run: " } else { "" };
                write!(f, "{resume}about {} repeats in all would probably decide", roughly(repeats))?;
                let (decided, open) = self.decides;
                if decided < open {
                    write!(f, " {decided} of the {open} open comparisons")?;
                }
                if let Some(time) = self.time {
                    write!(f, ", which takes {}", crate::words::span(time))?;
                }
                if let Some(command) = &self.command {
                    write!(f, ": `{command}`")?;
                }
                write!(f, "; may be cheaper: {}.", self.alternative)
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
        Some(NextStep {
            repeats: None,
            decides: (0, open.len()),
            time: None,
            command: None,
            resumes: false,
            obstacle: obstacle.to_owned(),
            alternative,
        })
    };
    if !input.declared {
        return only("the study was changed after the run", "run it again as it stands".to_owned());
    }
    if input.facts.quick {
        return only(
            "this is a first look",
            "run the study without `--quick`; `plimsoll plan` says how long it takes".to_owned(),
        );
    }
    let has_interval = |one: &&&Comparison| one.contrast.as_ref().is_ok_and(|contrast| contrast.interval.is_ok());
    let open: Vec<&Comparison> = match open.iter().filter(has_interval).copied().collect::<Vec<_>>() {
        none if none.is_empty() => return Some(mend(input, analysis, first)),
        some => some,
    };
    let needed: Vec<usize> = open.iter().filter_map(|one| one.verdict.as_ref()?.needed).collect();
    let repeats = needed.iter().copied().max();
    let resumes = !input.complete && repeats.is_some_and(|repeats| repeats <= input.plan.repeats as usize);
    Some(NextStep {
        repeats,
        decides: (needed.len(), open.len()),
        time: repeats.and_then(|repeats| Some(total(repeats, time_per_repeat(input)?))),
        command: repeats.filter(|_| !resumes).map(|repeats| input.command_to_run(Some(under_load(input, repeats)))),
        resumes,
        obstacle: "more repeats alone would not decide; what may".to_owned(),
        alternative: alternative(input, analysis, &open),
    })
}

/// The time that so many repeats are under load as planned, rounded up: to the minute, or to ten seconds below two.
fn under_load(input: &Input, repeats: usize) -> Duration {
    let seconds = input.plan.time_of_repeats(u32::try_from(repeats).unwrap_or(u32::MAX)).as_secs_f64();
    let unit = if seconds < 120.0 { 10.0 } else { 60.0 };
    Duration::from_secs_f64((seconds / unit).ceil() * unit)
}

fn total(repeats: usize, one: Duration) -> Duration {
    one * u32::try_from(repeats).unwrap_or(u32::MAX)
}

/// What to do where too few pairs are left for an interval.
fn mend(input: &Input, analysis: &Analysis, first: &Comparison) -> NextStep {
    let step = |obstacle: &str, alternative: String| NextStep {
        repeats: None,
        decides: (0, 0),
        time: None,
        command: None,
        resumes: false,
        obstacle: obstacle.to_owned(),
        alternative,
    };
    let repeats = (input.plan.repeats as usize).max(FEWEST);
    let time = time_per_repeat(input).map(|one| format!(", which takes {}", time_of(repeats, one)));
    let again = format!("run again{}", time.unwrap_or_default());
    match (most_common_reason(analysis), &first.contrast) {
        (Some(reason), _) => {
            let others = others(analysis).map(|others| format!(", and {others}")).unwrap_or_default();
            step("too few pairs are left", format!("{reason}{others}; mend that, and {again}"))
        }
        (None, _) if !input.complete || !analysis.excluded.is_empty() => {
            step("too few pairs are left", format!("resume the run, or {again}"))
        }
        (None, Ok(_)) => {
            step("too few repeats", format!("let it have {repeats}{}", again.trim_start_matches("run again")))
        }
        (None, Err(reason)) if input.plan.searches() => {
            step("nothing could be compared", format!("{reason}; {}", of_a_search(analysis, &again)))
        }
        (None, Err(reason)) => {
            let loops = analysis.feedback.iter().filter(|report| report.measure == first.measure);
            let help = match feedback::remedy(loops.flat_map(|report| &report.rows)) {
                Some(remedy) => format!("{remedy}, and {again}"),
                None => "let another measure decide".to_owned(),
            };
            step("nothing could be compared", format!("{reason}; {help}"))
        }
    }
}

/// What helps where a search found no capacity to compare.
fn of_a_search(analysis: &Analysis, again: &str) -> String {
    let cells = || analysis.capacity.iter().flat_map(|report| &report.cells);
    if analysis.findings.iter().any(|finding| finding.topic == "void loads") {
        return format!("mend what made loads void, and {again}");
    }
    if cells().any(|cell| matches!(cell.found, Ok(Found::Below(_)))) {
        return "begin with a smaller load, or allow more in the objective".to_owned();
    }
    if cells().any(|cell| matches!(cell.found, Ok(Found::AtLeast(_)))) {
        return format!("let `most` under `[load]` be larger, and {again}");
    }
    format!("look at its loads for what changed from one to the next, let them last longer, and {again}")
}

/// The repeats that a study has by default.
const FEWEST: usize = 5;

/// The reason for which most loads do not count. Reasons that differ in nothing but their numbers are one.
fn most_common_reason(analysis: &Analysis) -> Option<&str> {
    let kind = |reason: &str| reason.replace(|letter: char| letter.is_ascii_digit(), "");
    let mut kinds: Vec<(String, &str, usize)> = Vec::new();
    let void = analysis.excluded.iter().filter(|one| one.what != crate::NOT_RUN);
    for reason in void.flat_map(|one| &one.reasons).filter(|reason| *reason != BLOCK_RUN_AGAIN) {
        match kinds.iter_mut().find(|(known, ..)| *known == kind(reason)) {
            Some((.., times)) => *times += 1,
            None => kinds.push((kind(reason), reason, 1)),
        }
    }
    let most = kinds.iter().map(|(.., times)| *times).max()?;
    kinds.iter().find(|(.., times)| *times == most).map(|(_, reason, _)| *reason)
}

/// The line of a finding that says how much other programs used.
fn others(analysis: &Analysis) -> Option<&str> {
    let lines = analysis.findings.iter().filter(|finding| finding.topic == "the host").flat_map(|one| &one.evidence);
    lines.map(String::as_str).find(|line| line.starts_with(OTHERS_RAN))
}

/// The cheapest thing that may decide instead of more repeats.
fn alternative(input: &Input, analysis: &Analysis, open: &[&Comparison]) -> String {
    if input.plan.design.is_trials() && input.facts.can_take_turns {
        return "`design = \"turns\"`, where variants are loaded within a second of one another".to_owned();
    }
    let influenced = open.iter().filter(|one| one.has_influence_verdict()).count();
    // One in twenty comparisons shows an influence by chance.
    if influenced * 2 >= open.len() {
        if input.plan.design.is_side_by_side() {
            return "`design = \"turns\"`, where variants do not slow each other down".to_owned();
        }
        return "a longer `settle`, or `design = \"trials\"`, because slices leave something to the next ones"
            .to_owned();
    }
    if let Some(others) = others(analysis) {
        return format!("a quieter machine, because {others}");
    }
    if let Some(lengths) = analysis.lengths.as_ref().filter(|lengths| lengths.worth_a_change()) {
        return format!("{} turns on each start, which decide in {} of the time", lengths.best, percent(lengths.time));
    }
    if let Some((size, measure)) = wider_margin(open) {
        return format!(
            "a margin of {}, declared anew, if a smaller difference does not matter",
            margin(size, measure)
        );
    }
    if input.plan.design.is_trials() || input.plan.searches() {
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
        assert!(text.contains("; may be cheaper: `design = \"turns\"`"), "{text}");
        study.complete = false;
        study.plan.repeats = 1000;
        let text = analyse(&study).next.expect("a next step").to_string();
        assert!(text.starts_with("resume the run: about ") && !text.contains("plimsoll run"), "{text}");
        study.complete = true;
        study.facts.can_take_turns = false;
        let text = analyse(&study).next.expect("a next step").to_string();
        assert!(!text.contains("turns"), "variants that cannot take turns: {text}");
    }

    #[test]
    fn blocks_that_ran_again_do_not_lengthen_the_time_of_the_command() {
        let command = |study: &crate::Input| analyse(study).next.and_then(|next| next.command).expect("a command");
        let mut study = noisy(5, 0.4);
        study.facts.decide.truncate(1);
        let planned = command(&study);
        // Both trials of the last block ran again, with a longer warm-up.
        for index in [8, 9] {
            let mut again = study.starts[index].clone();
            again.summary.start = again.summary.start.again(index as u32 + 3, 6, true);
            study.plan.starts.push(again.summary.start.clone());
            study.starts.push(again);
        }
        assert_eq!(command(&study), planned);
    }

    #[test]
    fn where_pairs_are_lost_the_next_step_takes_as_many_more_repeats() {
        let mut study = noisy(8, 0.4);
        study.facts.decide.truncate(1);
        let whole = analyse(&study).next.and_then(|next| next.repeats).expect("a forecast");
        // Every second pair is lost; those that are left have the same spread.
        let mut study = noisy(16, 0.4);
        study.facts.decide.truncate(1);
        for start in study.starts.iter_mut().filter(|one| one.summary.start.repeat > 8) {
            start.summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        }
        let verdict = analyse(&study).verdicts().next().cloned().expect("a verdict");
        assert_eq!(verdict.needed, Some(2 * whole));
        assert!(verdict.reason.contains(&format!("about {} repeats in all", 2 * whole)), "{}", verdict.reason);
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
        assert!(
            text.starts_with(
                "too few pairs are left: the generator was the limit; mend that, and run again, which takes 30 s"
            ),
            "{text}"
        );
        assert!(analysis.findings.iter().all(|finding| finding.topic != "one variant after the other"));
    }
}
