//! The time measured in trials, where a number of iterations ends them before their time is up.

use plimsoll_analysis::Input;
use plimsoll_model::result::TrialResult;
use std::time::Duration;

/// A trial whose measure phase was shorter than this share of the planned one was ended by something else than time.
const WHOLE: f64 = 0.98;

/// The shortest and the longest measure phase of the trials that count; none where all took as long as planned.
pub(crate) fn range(input: &Input) -> Option<(Duration, Duration)> {
    if input.plan.design.turns().is_some() {
        return None;
    }
    let counted: Vec<TrialResult<'_>> = input.trials().filter(|trial| input.counts(*trial)).collect();
    let is_short = |trial: &TrialResult<'_>| {
        let planned = input.plan.lengths.get(trial.condition());
        planned.is_some_and(|planned| of(*trial) < planned.measure.mul_f64(WHOLE))
    };
    counted.iter().any(is_short).then_some(())?;
    Some((counted.iter().copied().map(of).min()?, counted.iter().copied().map(of).max()?))
}

/// How long the measure phase of a trial took.
pub(crate) fn of(trial: TrialResult<'_>) -> Duration {
    trial.load.summary.timing.window.into()
}
