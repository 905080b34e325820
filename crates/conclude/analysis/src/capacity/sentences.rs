//! The results of a search for the capacity in words.

use super::{
    Capacity, CapacityCell, CapacityReport, Found, GaveOut, Grade, Knee, Resource, ResourceUse, load_from, load_within,
};
use crate::answer::Sentence;
use crate::estimate::CONFIDENCE;
use crate::input::Input;
use crate::quantity::{change, confidence, grouped, percent, show, significant};
use crate::words;
use plimsoll_model::measure::Unit;
use plimsoll_model::objective::Condition;
use plimsoll_model::words::and_list;
use plimsoll_statistics::Interval;

/// A condition in words: `requests, p95`.
#[must_use]
pub fn in_words(condition: &Condition) -> String {
    match condition {
        Condition::Duration(measure) => words::measure(measure),
        Condition::Errors => "errors".to_owned(),
        Condition::Achieved => "arrivals that were not finished".to_owned(),
        Condition::Backlog => "a growing backlog".to_owned(),
        Condition::Alive => "a system that ended".to_owned(),
    }
}

/// Sentences for each variant and condition: `base carries 351 users`, with the interval and what limits it, where throughput
/// stops to grow, and what gave out.
pub(crate) fn sentences(input: &Input, report: &CapacityReport) -> Vec<Sentence> {
    let of_cell = |cell: &CapacityCell| {
        let carries = sentence(input, report, cell);
        let further = [sentence_of_range(input, report, cell), sentence_of_resources(input, report, cell)];
        std::iter::once(carries).chain(further.into_iter().flatten()).collect::<Vec<Sentence>>()
    };
    report.cells.iter().flat_map(of_cell).collect()
}

fn sentence(input: &Input, report: &CapacityReport, cell: &CapacityCell) -> Sentence {
    let noun = report.noun();
    let name = if input.plan.describes() { "The system".to_owned() } else { input.plan.label(cell.variant) };
    let place = words::conditions(&input.plan, &[cell.condition]);
    let level = |level: f64| match grouped(level.round()) {
        one if one == "1" && noun == "users" => "1 user".to_owned(),
        many => format!("{many} {noun}"),
    };
    let number = |level: f64| grouped(level.round());
    let within = |capacity: f64| load_within(capacity, &report.measure);
    let limit = cell.limits.first().map(|(condition, _)| format!("limited by {}", in_words(condition)));
    let mut evidence: Vec<String> = Vec::new();
    let claim = match &cell.found {
        Ok(Found::At(at, interval)) => {
            evidence.push(match interval {
                Ok(interval) => format!(
                    "{} interval {} to {}, n = {}",
                    confidence(1.0 - CONFIDENCE),
                    number(within(interval.low)),
                    number(within(interval.high)),
                    cell.starts.iter().filter(|start| matches!(start.capacity, Capacity::At(_))).count()
                ),
                Err(reason) => reason.clone(),
            });
            evidence.extend(limit);
            evidence.extend(confirmation(cell, number));
            format!("{name} carries {}{place}", level(within(*at)))
        }
        Ok(Found::AtLeast(least)) => {
            evidence.push(match cell.starts.iter().find_map(|start| start.stopped_by.as_ref()) {
                Some(reason) => format!("larger loads were void: {reason}"),
                None => match cell.range.as_ref().and_then(|range| range.fails_from).filter(|from| from > least) {
                    Some(from) => format!("requests fail, or a system ends, from {} on", number(from)),
                    None => "no larger load was to be tried".to_owned(),
                },
            });
            format!("{name} carries at least {}{place}", level(within(*least)))
        }
        Ok(Found::Below(most)) => {
            evidence.extend(limit);
            evidence.extend(smallest_load(report, cell, level));
            format!("{name} carries fewer than {}{place}", level(load_from(*most, &report.measure)))
        }
        Err(reason) => {
            let claim = format!("Nothing can be said of the capacity of {name}{place}");
            return Sentence { outcome: None, claim, evidence: format!(": {reason}") };
        }
    };
    let evidence = if evidence.is_empty() { String::new() } else { format!("({})", evidence.join("; ")) };
    Sentence { outcome: None, claim, evidence }
}

/// What the smallest load showed of the first limit: `requests, p95 39.7 ms at 1 user, and at most 50 µs are allowed`.
fn smallest_load(report: &CapacityReport, cell: &CapacityCell, level: impl Fn(f64) -> String) -> Option<String> {
    let (first, limit) = (cell.levels.first()?, report.objective.limits.first()?);
    let took = first.duration.filter(|took| *took > limit.at_most)?;
    Some(format!(
        "{} {} at {}, and at most {} are allowed",
        words::measure(&limit.measure),
        show(took, Unit::Seconds),
        level(first.middle()),
        show(limit.at_most, Unit::Seconds)
    ))
}

/// The result of the longer loads, in words; none where there were none.
fn confirmation(cell: &CapacityCell, number: impl Fn(f64) -> String) -> Option<String> {
    if let Some(passed) = cell.confirmed() {
        return Some(format!("a load of {:.0} s at {} passed", passed.seconds, number(passed.level)));
    }
    let last = cell.confirmations.last()?;
    Some(format!("not confirmed: a load of {:.0} s at {} failed", last.seconds, number(last.level)))
}

/// A sentence about the range beyond the capacity: `Throughput stops to grow at about 950 users`.
fn sentence_of_range(input: &Input, report: &CapacityReport, cell: &CapacityCell) -> Option<Sentence> {
    let range = cell.range.as_ref()?;
    let (number, noun) = (|level: f64| grouped(level.round()), report.noun());
    let peak = range.peak.map(|peak| format!("at most {} requests per second", significant(peak.requests)));
    let interval = |interval: Interval| {
        format!("{} interval {} to {}", confidence(1.0 - CONFIDENCE), number(interval.low), number(interval.high))
    };
    let fails = match range.fails_from {
        Some(level) => {
            let sure = range.failure_interval.map(|one| format!(", {}", interval(one))).unwrap_or_default();
            format!("requests fail from {} on{sure}", number(level))
        }
        None => format!("requests did not fail up to {}", number(range.most)),
    };
    let claim = match range.knee? {
        Knee::At(level) => {
            format!(
                "The throughput{} stops to grow at about {} {noun}",
                cell_in_words(input, cell, "of"),
                number(level)
            )
        }
        Knee::Beyond(_) => return None,
    };
    let evidence = [range.knee_interval.map(interval), peak, Some(fails)]
        .into_iter()
        .flatten()
        .collect::<Vec<String>>()
        .join("; ");
    Some(Sentence { outcome: None, claim, evidence: format!("({evidence})") })
}

/// A sentence about what gave out; none where no load was too much.
fn sentence_of_resources(input: &Input, report: &CapacityReport, cell: &CapacityCell) -> Option<Sentence> {
    let gave_out = cell.gave_out.as_ref()?;
    let place = cell_in_words(input, cell, "in");
    let (what, evidence) = what_gave_out(gave_out, report.noun());
    let claim = match gave_out.first() {
        Some(_) => format!("What gave out first{place}: {what}"),
        None => format!("What gave out{place} is not known"),
    };
    Some(Sentence { outcome: None, claim, evidence: format!("({evidence})") })
}

/// The variant and the condition: ` of base at 10 users`.
pub(super) fn cell_in_words(input: &Input, cell: &CapacityCell, preposition: &str) -> String {
    let name = match input.plan.describes() {
        true => String::new(),
        false => format!(" {preposition} {}", input.plan.label(cell.variant)),
    };
    name + &words::conditions(&input.plan, &[cell.condition])
}

/// What gave out, and the evidence: `the processors of the machine, mostly used by db`, and `1.96 of 2 cores used at 412
/// users`, with the noun for loads.
#[must_use]
pub fn what_gave_out(gave_out: &GaveOut, noun: &str) -> (String, String) {
    let Some(first) = gave_out.first() else { return ("unknown".to_owned(), nothing_used_up(gave_out)) };
    let mut evidence = vec![used(first, noun)];
    if first.resource.is_shared() {
        let parts = gave_out.parts.iter().filter(|part| part.cores >= 0.005);
        evidence.push(and_list(parts.map(|part| format!("{} {:.2}", part.of, part.cores))));
    }
    evidence.extend(demand(first));
    if let Some(shown) = first.intervention {
        evidence.push(format!(
            "with {} in place of {} of them the capacity is larger by {} ({} to {})",
            show(shown.more, Unit::Number),
            show(shown.less, Unit::Number),
            change(shown.ratio),
            change(shown.interval.low),
            change(shown.interval.high)
        ));
    }
    let others: Vec<String> = gave_out.resources[1..]
        .iter()
        .filter(|one| one.grade >= Grade::UsedUp)
        .map(|one| format!("{}, {}", one.resource, used(one, noun)))
        .collect();
    if !others.is_empty() {
        evidence.push(format!("also used up: {}", others.join(", ")));
    }
    (named(gave_out, first), evidence.join("; "))
}

/// The resource, with who uses most of it.
fn named(gave_out: &GaveOut, first: &ResourceUse) -> String {
    let all: f64 = gave_out.parts.iter().map(|part| part.cores).sum();
    let largest = gave_out.parts.first().filter(|_| first.resource.is_shared());
    match largest.filter(|part| part.cores > all / 2.0) {
        Some(part) => format!("{}, mostly used by {}", first.resource, part.of),
        None => first.resource.to_string(),
    }
}

/// The use of a resource in words: `1.96 of 2 cores used at 412 users`.
fn used(one: &ResourceUse, noun: &str) -> String {
    let Some((level, used)) = one.at_most else { return String::new() };
    let (of, at) = (show(used.of, Unit::Number), format!("{} {noun}", grouped(level.round())));
    match &one.resource {
        Resource::Disk => format!("busy {} of the time at {at}", percent(used.share())),
        Resource::Memory => format!("tasks waited for it in {} of the time at {at}", percent(used.share())),
        Resource::Accepting => {
            format!("full for {} as many packets as there were requests at {at}", percent(used.share()))
        }
        Resource::Locks(_) => format!("{} of {of} busy connections wait for one at {at}", significant(used.used)),
        Resource::Wait(..) if used.share() > 1.0 => {
            format!("{} waits for each request at {at}", significant(used.share()))
        }
        Resource::Wait(..) => format!("{} of the requests waited at {at}", percent(used.share())),
        Resource::Connections(_) => format!("{} of {of} busy at {at}", significant(used.used)),
        resource => {
            let cores = if used.of == 1.0 { "core" } else { "cores" };
            let throttled = used.saturation.filter(|_| matches!(resource, Resource::Quota(_)));
            let throttled = throttled.map(|share| format!(", throttled in {} of its periods", percent(share)));
            format!("{:.2} of {of} {cores} used at {at}{}", used.used, throttled.unwrap_or_default())
        }
    }
}

/// The demand in words, with the iterations that it allows.
fn demand(one: &ResourceUse) -> Option<String> {
    let demand = one.demand?;
    let each = show(demand.of_iteration, Unit::Seconds);
    let allows = show(demand.allows, Unit::PerSecond);
    let reached = if one.explains { "about as many as there were" } else { "which is not as many as there were" };
    Some(format!("an iteration takes {each} of processor, so that {allows} are possible, {reached}"))
}

fn nothing_used_up(gave_out: &GaveOut) -> String {
    let (always, rest): (Vec<&ResourceUse>, Vec<&ResourceUse>) =
        gave_out.resources.iter().partition(|one| one.grade == Grade::Always);
    let always = always
        .first()
        .map(|one| format!("light loads used up {} as well, so that this tells nothing; ", named(gave_out, one)));
    let most = match rest.first().and_then(|one| Some((one, one.at_most?.1))) {
        Some((one, used)) => {
            format!("of what is observed nothing was used up, most {}, {}", one.resource, percent(used.share()))
        }
        None => "nothing was observed".to_owned(),
    };
    let that_or = if always.is_some() { "that, or for " } else { "" };
    let most = always.unwrap_or_default() + &most;
    let at_a_time = gave_out
        .at_a_time
        .map(|requests| format!("; requests were answered as if {} were served at a time", significant(requests)));
    format!(
        "{most}: requests wait for {that_or}something else, such as a lock, a pool or another service{}",
        at_a_time.unwrap_or_default()
    )
}
