//! Interim looks at the verdicts (group sequential design): the strategy of a run that may end
//! early, under all conditions or under some.

use crate::outcomes::Outcomes;
use crate::spare;
use crate::step::Step;
use plimsoll_model::plan::Plan;

/// The next step on the way through all looks to the last repeat; none at the end of the run.
pub(crate) fn next(plan: &Plan, outcomes: &Outcomes) -> Option<Step> {
    for repeats in looks(plan) {
        if let Some(start) = spare::next(plan, outcomes, repeats) {
            return Some(Step::Start(start));
        }
        match outcomes.look(repeats) {
            // A run that went on must have looked before, even if that look was not recorded.
            None if !outcomes.went_beyond(repeats) => return Some(Step::Look { repeats }),
            Some(look) if look.decided => return None,
            _ => {}
        }
    }
    spare::next(plan, outcomes, plan.repeats).map(Step::Start)
}

/// The repeats after which a look is taken: all looks but the last, which is the end of the run.
fn looks(plan: &Plan) -> impl Iterator<Item = u32> {
    plan.looks.iter().copied().filter(|look| *look < plan.repeats)
}
