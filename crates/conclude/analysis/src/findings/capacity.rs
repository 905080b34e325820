//! Findings about a search for the capacity: whether its loads were long enough, and whether a longer one confirmed it.

use super::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::grouped;
use plimsoll_model::measure::Statistic;
use plimsoll_model::objective::Limit;
use plimsoll_model::start::RungPart;

/// How many requests of a load may miss, so that chance does not decide whether it passes: with fewer, bursts of misses are
/// rare enough for most loads to have too few of them.
const MISSES: f64 = 100.0;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [not_confirmed(context), short_loads(context)].into_iter().flatten().collect()
}

/// Longer loads at the lower end of the interval failed.
fn not_confirmed(context: &Context<'_>) -> Option<Finding> {
    let report = context.analysis.capacity.as_ref()?;
    let refuted = report.cells.iter().filter(|cell| !cell.confirmations.is_empty() && cell.confirmed().is_none());
    let evidence: Vec<String> = refuted
        .flat_map(|cell| {
            let (variant, condition) = (context.variant(cell.variant), context.condition(cell.condition));
            let place = format!("{variant}, {condition}");
            cell.confirmations.iter().map(move |one| {
                let (level, reasons) = (grouped(one.level.round()), one.reasons.join(", "));
                format!("{place}: {:.0} s at {level}: {reasons}", one.seconds)
            })
        })
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "capacity not confirmed",
        sentence: "Longer loads below the capacity failed, so what the short loads showed does not last. Something grows over \
                   time (a data set, a queue, heat), or the machine was disturbed: look at what limits, and search with \
                   longer loads (`load.duration`)."
            .to_owned(),
        evidence,
    })
}

/// Loads with so few requests that the capacity comes out too high.
fn short_loads(context: &Context<'_>) -> Option<Finding> {
    let objective = context.input.facts.objective.as_ref().filter(|_| context.input.plan.searches())?;
    // The limit that lets the fewest miss.
    let share = |limit: &Limit| match limit.measure.statistic {
        Statistic::Percentile(p) => Some(1.0 - p / 100.0),
        _ => None,
    };
    let share = objective.limits.iter().filter_map(share).reduce(f64::min)?;
    let of_load = |reader: &TrialReader<'_>| {
        let ladder = reader.load().rungs.iter().filter(|one| one.rung.part == RungPart::Ladder);
        let loads = ladder.filter(|one| one.summary.validity.counts()).count();
        let seconds = reader.load().summary.timing.window.seconds() / loads as f64;
        (loads > 0).then(|| (reader.requests().count() as f64 / loads as f64, seconds, context.trial(reader)))
    };
    let (requests, seconds, place) =
        context.counted().filter_map(of_load).min_by(|one, other| one.0.total_cmp(&other.0))?;
    let needed = MISSES / share;
    (requests < needed).then(|| {
        let longer = (seconds * needed / requests).ceil();
        Finding {
            severity: Severity::Caution,
            topic: "short loads",
            sentence: format!(
                "The loads near the capacity had {} requests each, of which {} may miss. Misses of a queue come in bursts, and \
                 with fewer than {MISSES:.0} that may miss, the capacity comes out too high: by 1 to 2 % in simulations of \
                 queues, more with fewer. Loads of {longer:.0} s (`load.duration`) have enough.",
                grouped(requests.round()),
                grouped((requests * share).round())
            ),
            evidence: vec![format!("{place}: loads of {seconds:.1} s")],
        }
    })
}
