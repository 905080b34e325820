//! Findings about excluded trials and damaged bundles.

use super::{Context, Finding, Severity, examples};
use crate::excluded::{ExcludedLoad, NOT_RUN};
use crate::words;
use plimsoll_model::start::Start;
use plimsoll_model::words::without_repeats;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [damaged(context), excluded(context), wrong_replies(context), warnings(context)].into_iter().flatten().collect()
}

fn damaged(context: &Context<'_>) -> Option<Finding> {
    let input = context.input;
    if input.complete && input.problems.is_empty() {
        return None;
    }
    let sentence = if input.complete {
        "The bundle is not as the run left it; what is whole is reported."
    } else {
        "The run did not come to its end; what is there is reported."
    };
    Some(Finding {
        severity: Severity::Problem,
        topic: "damaged bundle",
        sentence: sentence.to_owned(),
        evidence: input.problems.clone(),
    })
}

/// Trials that ran and do not count, and trials that did not run, separately. Blocks that were run
/// again lose nothing and have a finding of their own.
fn excluded(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let again =
        |one: &&ExcludedLoad| plan.starts.iter().any(|start| start.number == one.trial && plan.is_superseded(start));
    let lost: Vec<&ExcludedLoad> = context.analysis.excluded.iter().filter(|one| !again(one)).collect();
    let (missing, ran): (Vec<&ExcludedLoad>, Vec<&ExcludedLoad>) = lost.iter().partition(|one| one.what == NOT_RUN);
    let topic = match (missing.len(), ran.len()) {
        (0, 0) => return None,
        (_, 0) if context.input.plan.design.is_trials() => "trials that did not run",
        (_, 0) => "loads that did not run",
        _ if context.input.plan.design.is_trials() => "trials that do not count",
        _ => "loads that do not count",
    };
    let verb = if ran.len() == 1 { "does" } else { "do" };
    let counts = match (missing.len(), ran.len()) {
        (missing, 0) => format!("{missing} did not run. In"),
        (0, ran) => format!("{ran} {verb} not count. In"),
        (missing, ran) => format!("{missing} did not run, and {ran} ran and {verb} not count. In"),
    };
    let lines = lost.iter().map(|one| (one.trial, why(context, one)));
    let loads = |starts: &mut dyn Iterator<Item = &Start>| starts.map(|start| start.variants.len()).sum::<usize>();
    let stand = loads(&mut plan.starts.iter().filter(|start| !plan.is_superseded(start)));
    let unit = words::load_unit(plan);
    let again = if stand == loads(&mut plan.starts.iter()) {
        String::new()
    } else {
        format!(" The {unit}s of blocks that were run again are not among them.")
    };
    Some(Finding {
        severity: Severity::Problem,
        topic,
        sentence: format!(
            "Of {}, {counts} comparisons their partners are left out too.{again}",
            words::counted(stand, unit)
        ),
        evidence: context.merge_equal_lines(lines),
    })
}

/// The reasons for the exclusion of a trial, with an example of each error that they do not
/// include.
fn why(context: &Context<'_>, one: &ExcludedLoad) -> String {
    let reasons = one.reasons.join("; ");
    let is_missing = |example: &String| example.split_once(": ").is_none_or(|(_, text)| !reasons.contains(text));
    let reader = context.readers.iter().filter(|reader| reader.trial().number() == one.trial);
    let examples = examples(reader).into_iter().filter(is_missing).map(|example| format!("for example, {example}"));
    let reasons_with_examples: Vec<String> =
        without_repeats(&one.reasons, "alike").into_iter().chain(examples).collect();
    format!("{}: {}", one.what, reasons_with_examples.join("; "))
}

fn wrong_replies(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    for reader in context.readers {
        for (name, check) in &reader.load().summary.replies.sequences {
            if !check.holds() {
                evidence.push(format!(
                    "{}: of {} replies to `{name}`, {} repeat a number, {} numbers up to {} never came ({} calls had no \
                     reply), {} cannot be read",
                    context.trial(reader),
                    check.replies,
                    check.repeated,
                    check.missing,
                    check.largest,
                    check.unanswered,
                    check.unreadable
                ));
            }
        }
    }
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "wrong replies",
        sentence: format!(
            "In {} the replies are not 1 to N, each once: what was measured there is not correct work.",
            context.counted_loads(evidence.len())
        ),
        evidence,
    })
}

fn warnings(context: &Context<'_>) -> Option<Finding> {
    let lines: Vec<(u32, String)> = context
        .counted()
        .flat_map(|reader| {
            let number = reader.trial().number();
            reader.trial().warnings().map(|warning| (number, warning.clone())).collect::<Vec<_>>()
        })
        .collect();
    let trials: std::collections::BTreeSet<u32> = lines.iter().map(|(trial, _)| *trial).collect();
    (!lines.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "warnings",
        sentence: match trials.len() {
            1 => format!("A {} that counts carries a warning.", words::unit(&context.input.plan)),
            several => format!("{several} {}s that count carry warnings.", words::unit(&context.input.plan)),
        },
        evidence: context.merge_equal_lines(lines),
    })
}
