//! The strategy of a run: its next step, as a pure function of its plan and its recorded outcomes.
//! An interrupted run calls the same function with the outcomes that it recorded, and so continues
//! as it would have without the interruption.

use crate::capacity;
use crate::disturbed::is_disturbed;
use crate::looks;
use crate::outcomes::{EndedLoad, Outcome, Outcomes};
use crate::slices::loads;
use crate::step::Step;
use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Load, Start};

/// The next step; none when the run has come to its end.
#[must_use]
pub fn next(plan: &Plan, outcomes: &Outcomes) -> Option<Step> {
    match outcomes.under_way() {
        Some((start, ran)) => Some(on_start(plan, outcomes, start, ran)),
        None => match looks::next(plan, outcomes)? {
            Step::Start(_) if is_disturbed(outcomes) => Some(Step::BreakOff),
            step => Some(step),
        },
    }
}

/// The next step on a start: its next load, with the one that runs beside it.
fn on_start(plan: &Plan, outcomes: &Outcomes, start: &Start, ran: &[EndedLoad]) -> Step {
    if plan.searches() {
        return capacity::next(plan, outcomes, start, ran).map_or(Step::Stop, |load| Step::Loads(vec![load]));
    }
    let ahead = loads(plan, start).into_iter().filter(|load| ran.iter().all(|ended| ended.load != *load));
    let ahead: Vec<Load> = ahead.take(2).collect();
    match ahead[..] {
        [] => Step::Stop,
        [load, other] if load.runs_beside(&other) => Step::Loads(vec![load, other]),
        [load, ..] => Step::Loads(vec![load]),
    }
}

/// The remaining starts, if all of them count, no look ends the run or spares a condition, and it does not break off.
#[must_use]
pub fn remaining(plan: &Plan, outcomes: &Outcomes) -> Vec<Start> {
    let mut outcomes = outcomes.clone();
    if let Some(start) = outcomes.start_under_way().cloned() {
        outcomes.stopped(start, Outcome::Counts);
    }
    let mut starts = Vec::new();
    while let Some(step) = next(plan, &outcomes) {
        match step {
            // Its loads decide nothing about other starts, and to draw their order takes time.
            Step::Start(start) => {
                starts.push(start.clone());
                outcomes.stopped(start, Outcome::Counts);
            }
            Step::Look { repeats } => outcomes.looked(Look::open(repeats)),
            Step::BreakOff => outcomes.went_on(),
            Step::Loads(_) | Step::Stop => unreachable!("no start is under way"),
        }
    }
    starts
}
