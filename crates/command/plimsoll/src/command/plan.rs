//! `plimsoll plan`: prints every trial in order and the total time; starts nothing.

use super::databases;
use super::study::{self, Extent};
use crate::arguments::StudyFile;
use crate::exit::{Exit, Failure};
use crate::progress::time;
use crate::say;
use plimsoll_analysis::Goal;
use plimsoll_analysis::words::{counted, unit};
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Start, Turns};
use plimsoll_model::words::and_list;
use plimsoll_study::Study;
use std::fmt::Write as _;

pub(super) fn plan(file: &StudyFile, extent: Extent) -> Result<Exit, Failure> {
    let study = study::read(&file.study, file.profile.as_deref())?.study;
    study::check_extent(&study, extent)?;
    let (study, plan) = study::plan(study, extent)?;
    let databases = databases::in_words(&study, &plan)?;
    say::result(describe(&study, &plan, &databases).trim_end())?;
    Ok(Exit::Fine)
}

/// The hosts of agents on which systems of the study run, and what a run takes for them; none without such systems.
pub(super) fn hosts(study: &Study, plan: &Plan) -> Option<String> {
    let labels: Vec<String> = plimsoll_runner::hosts(study, plan).iter().map(|label| format!("`{label}`")).collect();
    (!labels.is_empty()).then(|| {
        format!(
            "{}: run it with `--nats URL`, where an agent with each label waits (`--systems FOLDER`)",
            and_list(labels)
        )
    })
}

/// The plan as a table of starts, and the time that it takes.
pub(super) fn describe(study: &Study, plan: &Plan, databases: &[String]) -> String {
    let mut text = format!("{}\n\n", study.title);
    let variants: Vec<String> = plan.variants.iter().map(ToString::to_string).collect();
    let _ = match plan.describes() {
        true => writeln!(text, "variants    {OF_ONE_SYSTEM}"),
        false => writeln!(text, "variants    {} (the first is the baseline)", variants.join(" | ")),
    };
    if let Some(duplicate) = plan.duplicate() {
        let _ = writeln!(text, "noise floor {} in every block, beside the baseline", plan.label(duplicate));
    }
    if !plan.describes() {
        let _ = writeln!(text, "design      {}", design(study, plan));
    }
    let _ = writeln!(text, "conditions  {}", plan.conditions.len());
    let _ = match plan.given_time {
        Some(given) => writeln!(text, "repeats     {}: as many as fit into {} under load", plan.repeats, time(given)),
        None => writeln!(text, "repeats     {}", plan.repeats),
    };
    if !plan.looks.is_empty() {
        let _ = writeln!(text, "looks       {}", looks(plan, Goal::Verdicts));
    }
    for database in databases {
        let _ = writeln!(text, "database    {database}");
    }
    if let Some(hosts) = hosts(study, plan) {
        let _ = writeln!(text, "hosts       {hosts}");
    }
    let _ = writeln!(text, "seed        {}\n", plan.seed);
    let width = |texts: &[String], least: usize| texts.iter().map(|text| text.chars().count()).fold(least, usize::max);
    let labels: Vec<String> = plan.starts.iter().map(|start| plan.start_label(start)).collect();
    let conditions: Vec<String> = plan.conditions.iter().map(ToString::to_string).collect();
    let (variant_width, condition_width) = (width(&labels, 8), width(&conditions, 9));
    let _ = writeln!(
        text,
        "{:>5}  {:>5}  {:>6}  {:variant_width$}  {:condition_width$}  load",
        unit(plan),
        "block",
        "repeat",
        if plan.design.is_trials() { "variant" } else { "variants" },
        "condition"
    );
    for start in &plan.starts {
        let line = format!(
            "{:>5}  {:>5}  {:>6}  {:variant_width$}  {:condition_width$}  {}",
            start.number,
            start.block,
            start.repeat,
            plan.start_label(start),
            conditions[start.condition],
            load(plan, start)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ =
        writeln!(text, "\n{} (warm-up + measure; starting and stopping systems comes on top)", in_short(study, plan));
    for more in [contradictions(plan), recovery(plan), spare(plan)].into_iter().flatten() {
        let _ = writeln!(text, "{more}");
    }
    text
}

/// How the variants share time, and why: `turns: all variants alive on each start, 25 slices of 400 ms for each; the
/// default: …`.
pub(super) fn design(study: &Study, plan: &Plan) -> String {
    let reason = study.reason_of_design();
    match plan.design.turns() {
        Some(_) if plan.searches() => {
            format!("turns: all variants alive on each start, whose loads alternate; {reason}")
        }
        None => format!("trials: one variant at a time; {reason}"),
        Some(Turns { count, slice, .. }) => {
            let slice = time(slice);
            let (name, how) = match plan.design.is_side_by_side() {
                true => ("side by side", ", each at the same time as one of the baseline"),
                false => ("turns", ""),
            };
            format!("{name}: all variants alive on each start, {count} slices of {slice} for each{how}; {reason}")
        }
    }
}

/// What is said of a plan that compares nothing.
const OF_ONE_SYSTEM: &str = "one system; nothing is compared, so values are described and no verdict is reached";

/// Warm-up and measure phase of a start's load, or its turns: `1 s + 20 × (100 ms + 400 ms) each`.
fn load(plan: &Plan, start: &Start) -> String {
    let first = plan.lengths(start, 1);
    if let Some(search) = plan.searches.get(start.condition) {
        let loads = search.loads[usize::from(start.repeat > 1)];
        let confirms = start.repeat == plan.repeats && search.range.step.is_none();
        let confirmed = if confirms { format!(" + {}", time(search.range.confirm)) } else { String::new() };
        let each = if start.variants.len() > 1 { " each" } else { "" };
        let longer = Some(search.range.longest).filter(|longest| *longest > first.measure);
        let measure = longer.map_or_else(String::new, |longest| format!(" to {}", time(longest)));
        let measure = format!("{}{measure}", time(first.measure));
        return format!("up to {loads} × ({} + {measure}){confirmed}{each}", time(first.warmup));
    }
    match plan.design.turns() {
        None => format!("{} + {}", time(first.warmup), time(first.measure)),
        Some(Turns { count, settle, slice }) => {
            let warmup = time(first.warmup.saturating_sub(settle));
            format!("{warmup} + {count} × ({} + {}) each", time(settle), time(slice))
        }
    }
}

/// The number of trials and their time: `30 trials, 10 of them of mutex (duplicate), 2 min under load`.
pub(super) fn in_short(study: &Study, plan: &Plan) -> String {
    if plan.searches() {
        let starts = counted(plan.starts.len(), "start");
        let of = if plan.describes() { "one system".to_owned() } else { counted(plan.block_size(), "variant") };
        let time = time(plan.time_under_load(&plan.starts));
        let what = if plan.is_stress() { "a stress test" } else { "a search for the capacity" };
        let most = self::time(plan.most_time_of_searches());
        let usual = if plan.is_stress() { String::new() } else { format!("about {time} and ") };
        return format!("{starts}, each {what} of {of}, {usual}at most {most} under load");
    }
    if !plan.design.is_trials() {
        let (starts, time) = (plan.starts.len(), time(plan.time_under_load(&plan.starts)));
        return format!("{starts} starts of {} variants, {time} under load", plan.block_size());
    }
    let of_duplicate = plan
        .starts
        .iter()
        .filter(|start| start.only_variant().is_some_and(|variant| Some(variant) == plan.duplicate()))
        .count();
    let duplicates = match plan.duplicate() {
        Some(duplicate) => format!(", {of_duplicate} of them of {}", plan.label(duplicate)),
        None => String::new(),
    };
    let alone = if plan.describes() { " of one system, nothing compared" } else { "" };
    let at_most = if study.ends_after_iterations() || study.is_feedback() { "at most " } else { "" };
    let time = time(plan.time_under_load(&plan.starts));
    format!("{}{duplicates}{alone}, {at_most}{time} under load", counted(plan.starts.len(), "trial"))
}

/// `after 5, 7 and 10 repeats; the run ends at the first at which every verdict is reached`, or at which each comparison is
/// decided or passes the gate, if that is the goal.
pub(super) fn looks(plan: &Plan, goal: Goal) -> String {
    if plan.looks.is_empty() {
        return "none".to_owned();
    }
    let looks = and_list(&plan.looks);
    let (all, theirs) = match goal {
        Goal::Verdicts => ("every verdict is reached", "theirs are for good"),
        Goal::Gate => ("each comparison is decided or passes the gate", "all of theirs do so for good"),
    };
    let one_by_one = match plan.conditions.len() {
        1 => String::new(),
        _ => format!(", and conditions run no further once {theirs}"),
    };
    format!("after {looks} repeats; the run ends at the first at which {all}{one_by_one}")
}

/// The loads that a search takes more where they contradict one another; none where it takes no more.
fn contradictions(plan: &Plan) -> Option<String> {
    let more = plan.searches.iter().map(|search| search.more).max().filter(|more| *more > 0)?;
    Some(format!("{more} more loads of a variant on a start where those near the capacity contradict one another"))
}

/// The light loads that a search may add, so that systems recover; none where nothing is searched for.
fn recovery(plan: &Plan) -> Option<String> {
    let longest = plan.searches.iter().map(|search| search.range.recover).max().filter(|time| !time.is_zero())?;
    Some(format!("light loads after each load under which requests fail, until one passes, at most {}", time(longest)))
}

/// The trials or starts that may be added because others do not count; none without spare blocks.
fn spare(plan: &Plan) -> Option<String> {
    let starts = counted(plan.spare_blocks as usize * plan.starts_in_block(), &format!("more {}", unit(plan)));
    let blocks = if plan.spare_blocks == 1 { "1 block" } else { &format!("{} blocks", plan.spare_blocks) };
    (plan.spare_blocks > 0).then(|| format!("up to {starts} if some do not count: {blocks} can be run again"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn looks_end_a_run_also_where_the_gate_is_passed_if_that_is_the_goal() {
        let source = study::read_text("study.toml", include_str!("init.toml").to_owned(), None, Path::new("/"));
        let (_, plan) = study::plan(source.expect("a study").study, Extent::UntilDecided).expect("a plan");
        let beginning = "after 5, 7 and 10 repeats; the run ends at the first at which";
        for (goal, end) in [
            (Goal::Verdicts, "every verdict is reached, and conditions run no further once theirs are for good"),
            (
                Goal::Gate,
                "each comparison is decided or passes the gate, and conditions run no further once all of theirs do so \
                 for good",
            ),
        ] {
            assert_eq!(looks(&plan, goal), format!("{beginning} {end}"));
        }
    }
}
