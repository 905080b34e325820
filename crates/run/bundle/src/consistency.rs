//! Checks that the files of a bundle fit together: indices lead somewhere, and lengths of time can be added up. A bundle
//! that was damaged, or made by somebody else, may say anything.

use plimsoll_model::factor::Role;
use plimsoll_model::plan::Plan;
use plimsoll_model::result::FinishedStart;
use plimsoll_model::start::Start;
use plimsoll_model::study::StudyFacts;
use std::time::Duration;

/// The longest phase of a load, far beyond what anybody waits for.
const LONGEST_PHASE: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The most turns on a start.
const MOST_TURNS: u32 = 1_000_000;

/// Returns what does not fit in a plan, if anything.
pub(crate) fn plan_fault(plan: &Plan) -> Option<String> {
    let lengths = plan.lengths.iter().flat_map(|lengths| [lengths.warmup, lengths.measure, lengths.drain]);
    let of_turns = plan.design.turns().map(|turns| [turns.settle, turns.slice]);
    if plan.variants.is_empty() || plan.conditions.is_empty() {
        return Some("expected at least one variant and one condition, found none".to_owned());
    }
    if plan.lengths.len() != plan.conditions.len() {
        let (expected, found) = (plan.conditions.len(), plan.lengths.len());
        return Some(format!("expected the lengths of {expected} conditions, found {found}"));
    }
    if let Some(longest) = lengths.chain(of_turns.into_iter().flatten()).find(|length| *length > LONGEST_PHASE) {
        return Some(format!("expected phases of less than a century, found {longest:?}"));
    }
    if plan.turns() > MOST_TURNS {
        return Some(format!("expected at most {MOST_TURNS} turns, found {}", plan.turns()));
    }
    let misfit = plan.starts.iter().find(|start| !fits(start, plan))?;
    Some(format!("expected conditions and variants that the plan has, found others in start {}", misfit.number))
}

/// True if a start has a condition and variants of the plan.
pub(crate) fn fits(start: &Start, plan: &Plan) -> bool {
    let is_known = |variant: &usize| *variant < plan.block_size();
    !start.variants.is_empty() && start.variants.iter().all(is_known) && start.condition < plan.conditions.len()
}

/// Returns what does not fit in the facts about a study, if anything.
pub(crate) fn facts_fault(facts: &StudyFacts) -> Option<String> {
    let baseline = |role: &Role| if let Role::Compared { baseline } = role { *baseline } else { 0 };
    let misfit = facts.factors.iter().find(|factor| baseline(&factor.role) >= factor.levels.len())?;
    Some(format!("expected a level of factor `{}` as its baseline, found none", misfit.name))
}

/// Returns what does not fit in a finished start, if anything.
pub(crate) fn start_fault(finished: &FinishedStart) -> Option<String> {
    let variants = &finished.summary.start.variants;
    let of_loads = finished.loads.iter().flat_map(|load| [Some(load.load.variant), load.load.beside]).flatten();
    let of_systems = finished.summary.systems.iter().map(|systems| systems.variant);
    let misfit = of_loads.chain(of_systems).find(|variant| !variants.contains(variant))?;
    Some(format!("expected the variants of the start, found variant {misfit}"))
}
