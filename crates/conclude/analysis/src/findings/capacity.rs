//! Findings about a search for the capacity: whether its loads were long enough, and whether a longer one confirmed it.

use super::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::grouped;
use crate::search;
use crate::words::counted;
use plimsoll_model::measure::Statistic;
use plimsoll_model::objective::Limit;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::start::RungPart;
use std::collections::BTreeMap;

/// How many requests of a load may miss, so that chance does not decide whether it passes: with fewer, bursts of misses are
/// rare enough for most loads to have too few of them.
const MISSES: f64 = 100.0;

/// From this share of void loads on they are told, where no search ended by them.
const MANY_VOID: f64 = 0.1;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let all = [void_loads(context), not_confirmed(context), short_loads(context), failed_requests(context)];
    all.into_iter().flatten().collect()
}

/// Loads of searches were void.
fn void_loads(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    let (mut void, mut all, mut stopped) = (0, 0, 0);
    for reader in context.readers.iter().filter(|reader| context.input.plan.searches() && reader.counts()) {
        let load = reader.load();
        let reasons: Vec<&String> =
            load.rungs.iter().filter_map(|one| one.summary.validity.reasons().first()).collect();
        (void, all) = (void + reasons.len(), all + load.rungs.len());
        let stopped_here = search::stopped_by(load).is_some();
        stopped += usize::from(stopped_here);
        if let Some(reason) = reasons.last() {
            let ended = if stopped_here { ", at which the search ended" } else { "" };
            let counts = format!("{} of {}{ended}", reasons.len(), counted(load.rungs.len(), "load"));
            evidence.push(format!("{}: {counts}; the last one: {reason}", context.trial(reader)));
        }
    }
    if void == 0 || (stopped == 0 && (void as f64) < MANY_VOID * all as f64) {
        return None;
    }
    let of_searches = match stopped {
        0 => "They were offered again.".to_owned(),
        _ => format!(
            "{} of the searches ended where the next load was void three times in a row, so that they found no more than a bound.",
            grouped(stopped as f64)
        ),
    };
    Some(Finding {
        severity: if stopped > 0 { Severity::Problem } else { Severity::Caution },
        topic: "void loads",
        sentence: format!(
            "{void} of the {all} loads of the searches were void: the generator or the machine was the limit, and not the systems. \
             {of_searches}"
        ),
        evidence,
    })
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

/// The most lines about failed requests.
const FAILURES: usize = 12;

/// A request that failed in a way: condition, variant, load, name and kind.
type Failure<'a> = (usize, usize, u64, &'a str, ErrorKind);

/// The failures of loads of the same level.
#[derive(Default)]
struct Failed<'a> {
    count: u64,
    sent: u64,
    example: Option<&'a String>,
}

/// How requests failed, by the load at which they did.
fn failed_requests(context: &Context<'_>) -> Option<Finding> {
    let mut failures: BTreeMap<Failure<'_>, Failed<'_>> = BTreeMap::new();
    for reader in context.readers.iter().filter(|reader| context.input.plan.searches() && reader.counts()) {
        let trial = reader.trial();
        for rung in reader.load().rungs.iter().filter(|rung| rung.summary.validity.counts()) {
            let (replies, level) = (&rung.summary.replies, rung.rung.level.round() as u64);
            for (name, account) in &replies.accounts {
                let request = name.strip_prefix("request:").unwrap_or(name);
                for (kind, count) in account.failed.iter().filter(|(_, count)| **count > 0) {
                    let key = (trial.condition(), trial.variant(), level, request, *kind);
                    let known = failures.entry(key).or_default();
                    (known.count, known.sent) = (known.count + count, known.sent + account.sent);
                    let example = || replies.error_examples.get(request)?.get(kind);
                    known.example = known.example.or_else(example);
                }
            }
        }
    }
    let line = |(&(condition, variant, level, request, kind), failed): (&Failure<'_>, &Failed<'_>)| {
        let place = format!("{}, {}", context.variant(variant), context.condition(condition));
        let example = failed.example.map(|text| format!(", such as: {text}")).unwrap_or_default();
        let [count, sent, level] = [failed.count, failed.sent, level].map(|number| grouped(number as f64));
        format!("{place}, at {level}: {count} of {sent} `{request}` failed, {kind}{example}")
    };
    let mut evidence: Vec<String> = failures.iter().take(FAILURES).map(line).collect();
    let more = failures.len().saturating_sub(FAILURES);
    if more > 0 {
        evidence.push(format!("{more} more in errors.csv of each start"));
    }
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "failed requests",
        sentence: "Requests failed, by the load at which they did, warm-up included.".to_owned(),
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
