//! What does not count, and what is damaged.

use super::{Context, Finding, Gravity, told_once};
use crate::words;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [damaged(context), uncounted(context), wrong_replies(context), warnings(context)].into_iter().flatten().collect()
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
        gravity: Gravity::Problem,
        topic: "damaged bundle",
        sentence: sentence.to_owned(),
        evidence: input.problems.clone(),
    })
}

fn uncounted(context: &Context<'_>) -> Option<Finding> {
    let uncounted = &context.analysis.uncounted;
    if uncounted.is_empty() {
        return None;
    }
    let lines = uncounted.iter().map(|one| (one.trial, format!("{}: {}", one.what, one.reasons.join("; "))));
    Some(Finding {
        gravity: Gravity::Problem,
        topic: "trials that do not count",
        sentence: format!(
            "Of {}, {} {} not count, and in comparisons neither do their partners.",
            words::counted(context.input.plan.trials.len(), "trial"),
            uncounted.len(),
            if uncounted.len() == 1 { "does" } else { "do" }
        ),
        evidence: told_once(lines),
    })
}

fn wrong_replies(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    for reader in context.readers {
        for (name, check) in &reader.result().summary.sequences {
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
        gravity: Gravity::Problem,
        topic: "wrong replies",
        sentence: format!(
            "In {} the replies are not 1 to N, each once: what was measured there is not correct work.",
            words::counted(evidence.len(), "trial")
        ),
        evidence,
    })
}

fn warnings(context: &Context<'_>) -> Option<Finding> {
    let lines: Vec<(u32, String)> = context
        .counted()
        .flat_map(|reader| {
            let number = reader.trial().number;
            reader.result().summary.warnings.iter().map(move |warning| (number, warning.clone()))
        })
        .collect();
    let trials: std::collections::BTreeSet<u32> = lines.iter().map(|(trial, _)| *trial).collect();
    (!lines.is_empty()).then(|| Finding {
        gravity: Gravity::Caution,
        topic: "warnings",
        sentence: match trials.len() {
            1 => "A trial that counts carries a warning.".to_owned(),
            several => format!("{several} trials that count carry warnings."),
        },
        evidence: told_once(lines),
    })
}
