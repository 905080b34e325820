//! The capacity that the loads of one search show: of a variant on one start.

use crate::feedback;
use crate::quantity::show;
use crate::reason::OrReason;
use plimsoll_model::measure::Unit;
use plimsoll_model::objective::{Judged, Passed};
use plimsoll_model::result::{LoadResult, RungResult};
use plimsoll_model::start::RungPart;
use plimsoll_statistics::capacity::{self, Capacity, Part, Tried};

/// The capacity of one start and variant, from the loads of its search; none of a load that is no search.
pub(crate) fn of_load(load: &LoadResult) -> Option<OrReason<Capacity>> {
    if load.rungs.is_empty() {
        return None;
    }
    let no_end = || {
        let why = stopped_by(load).map(|reason| format!(", because its loads were void ({reason})"));
        format!("the search for the capacity did not come to its end{}", why.unwrap_or_default())
    };
    Some(match capacity::capacity(&tried(&load.rungs)) {
        None => Err(no_end()),
        Some(Capacity::AtLeast(_)) if !has_passed(load) => {
            Err("no load had enough requests to show that it passes".to_owned())
        }
        Some(capacity) => Ok(capacity),
    })
}

/// True if a load of the search passed. One with too few requests leads to a larger one as well, and shows nothing.
fn has_passed(load: &LoadResult) -> bool {
    let mut counting = load.rungs.iter().filter(|one| one.summary.validity.counts());
    counting.any(|one| one.summary.objective.as_ref().is_some_and(|judged| judged.passed == Passed::Yes))
}

/// True if a search came to its end and found no more than a bound: every load passed, or every load failed.
pub(crate) fn is_bound(load: &LoadResult) -> bool {
    let is_bound = matches!(of_load(load), Some(Ok(Capacity::AtLeast(_) | Capacity::Below(_))));
    is_bound && stopped_by(load).is_none()
}

/// How far the loads of a search contradict one another: see [`plimsoll_statistics::capacity::contradiction`].
pub(crate) fn contradiction(load: &LoadResult) -> f64 {
    capacity::contradiction(&tried(&load.rungs))
}

/// Why the search went no further, where the load that was next was void each time that it was offered; none where it came to
/// its end.
pub(crate) fn stopped_by(load: &LoadResult) -> Option<&str> {
    let last = load.rungs.iter().rfind(|one| one.rung.part != RungPart::Confirmation)?;
    let validity = &last.summary.validity;
    validity.reasons().first().filter(|_| validity.is_void()).map(String::as_str)
}

/// The loads that a search went by: those that count, and of those with too few requests the ones that were not repeated.
fn tried(rungs: &[RungResult]) -> Vec<Tried> {
    let counting: Vec<(&RungResult, &Judged)> = rungs
        .iter()
        .filter(|one| one.summary.validity.counts() && one.rung.part != RungPart::Confirmation)
        .filter_map(|one| Some((one, one.summary.objective.as_ref()?)))
        .collect();
    let is_repeated = |index: usize| {
        let next = counting.get(index + 1);
        next.is_some_and(|(next, _)| next.rung.level == counting[index].0.rung.level)
    };
    let mut tried = Vec::new();
    for (index, (one, judged)) in counting.iter().enumerate() {
        let part = match one.rung.part {
            RungPart::Ladder => Part::Ladder,
            RungPart::Step => Part::Step,
            RungPart::Bracket | RungPart::Confirmation | RungPart::Recovery => Part::Bracket,
        };
        let (passed, strain) = match judged.passed {
            Passed::TooFew if is_repeated(index) => continue,
            Passed::TooFew => (part != Part::Ladder, None),
            passed => (passed == Passed::Yes, judged.strain),
        };
        tried.push(Tried { level: one.rung.level, part, passed, strain });
    }
    tried
}

/// The capacity as the value of a measure.
pub(crate) fn value(load: &LoadResult) -> OrReason<f64> {
    if let Some(record) = &load.summary.feedback {
        return feedback::answer(record);
    }
    match of_load(load) {
        None => Err("the capacity was not searched for".to_owned()),
        Some(Err(reason)) => Err(reason),
        Some(Ok(Capacity::At(level))) => Ok(level),
        Some(Ok(Capacity::AtLeast(level))) => Err(match stopped_by(load) {
            Some(reason) => {
                format!("it is {} or more, and larger loads were void ({reason})", show(level, Unit::Number))
            }
            None => format!("it is {} or more, the largest load that was to be tried", show(level, Unit::Number)),
        }),
        Some(Ok(Capacity::Below(level))) => {
            Err(format!("it is below {}, the smallest load that was tried", show(level, Unit::Number)))
        }
        Some(Ok(Capacity::Unsettled)) => Err("it moved while it was searched for".to_owned()),
    }
}
