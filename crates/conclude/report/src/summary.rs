//! The answer in ten lines of Markdown, for a comment on a pull request.

use crate::method::{Gate, floor_reach, gate};
use crate::page::top::{self, DecidingRow};
use crate::text::{escaped, with_code};
use plimsoll_analysis::answer::{Answer, Sentence};
use plimsoll_analysis::quantity::confidence;
use plimsoll_analysis::verdict::Outcome;
use plimsoll_analysis::{Analysis, Input, headline};
use plimsoll_model::factor::Assignment;

/// The most rows of the table.
const ROWS: usize = 3;

/// Question, answer, the gate where it was asked for, n, time and a table, in ten lines of Markdown at most: `summary.md`
/// of a report.
#[must_use]
pub fn summary(input: &Input, analysis: &Analysis, asked: Gate) -> String {
    let answer: Vec<String> =
        sentences(&analysis.answer).into_iter().map(|sentence| format!("{}.", sentence.claim)).collect();
    let next = top::next(analysis).map(|next| format!(" {next}")).unwrap_or_default();
    let gate = if asked == Gate::Asked { format!(" Gate {}.", gate(input, analysis)) } else { String::new() };
    let floor = floor_reach(analysis, &headline(&input.facts).measure);
    let floor = floor.map(|reach| format!("; equal systems differed by {reach}")).unwrap_or_default();
    let mut lines = vec![
        format!("### {}", escaped(&input.facts.question)),
        String::new(),
        format!("**{}**{}{}", escaped(&answer.join(" ")), with_code(&gate), with_code(&next)),
        format!(
            "<br>{}; every number is in `report.html`, written by Plimsoll.{}",
            escaped(&format!("{}: {}{floor}", input.facts.title, top::in_short(input))),
            top::topics(analysis).map(|topics| format!(" Its findings: {topics}.")).unwrap_or_default()
        ),
    ];
    let rows = top::deciding(input, analysis);
    if !rows.is_empty() && input.plan.variants.len() > 1 {
        lines.extend(table(input, analysis, &rows));
    }
    lines.join("\n") + "\n"
}

/// The headline, and what is worse by another measure: before a headline that finds nothing worse, else after it.
fn sentences(answer: &Answer) -> Vec<&Sentence> {
    let is_worse = |sentence: &&Sentence| sentence.outcome == Some(Outcome::Worse);
    let worse = answer.further.iter().filter(is_worse);
    if answer.headline.iter().any(|sentence| is_worse(&sentence)) {
        answer.headline.iter().chain(worse).collect()
    } else {
        worse.chain(&answer.headline).collect()
    }
}

fn table(input: &Input, analysis: &Analysis, rows: &[DecidingRow]) -> Vec<String> {
    let names: Vec<String> = input.plan.variants.iter().map(Assignment::label).map(|name| escaped(&name)).collect();
    let variant = if names.len() == 2 { names[1].clone() } else { "variant".to_owned() };
    let mut lines = vec![
        String::new(),
        format!("| | {} | {variant} | change | {} interval | verdict |", names[0], confidence(analysis.alpha)),
        "| --- | ---: | ---: | ---: | :---: | --- |".to_owned(),
    ];
    let mut measure = String::new();
    let mut named: Vec<(String, &DecidingRow)> = Vec::new();
    for row in rows {
        if !row.measure.is_empty() {
            measure.clone_from(&row.measure);
        }
        named.push((measure.clone(), row));
    }
    // Where not all have room, those that a reader must see come first.
    if named.len() > ROWS {
        named.sort_by_key(|(_, row)| urgency(&row.verdict));
    }
    let shown = if named.len() > ROWS { ROWS - 1 } else { named.len() };
    for (measure, row) in &named[..shown] {
        let value =
            if names.len() == 2 { row.value.clone() } else { format!("{} {}", escaped(&row.variant), row.value) };
        let place =
            if input.plan.conditions.len() > 1 { format!("{measure}, {}", row.condition) } else { measure.clone() };
        let uncertain = if row.uncertain { ", size uncertain" } else { "" };
        lines.push(format!(
            "| {} | {} | {value} | {} | {} | {}{uncertain} |",
            escaped(&place),
            row.baseline,
            row.change,
            row.interval,
            row.verdict
        ));
    }
    if shown < named.len() {
        lines.push(format!("| {} more | | | | | {} |", named.len() - shown, outcomes(&named[shown..])));
    }
    lines
}

/// The order in which verdicts are shown where not all have room.
fn urgency(verdict: &str) -> usize {
    const ORDER: [&str; 5] = ["worse", "void", "inconclusive", "better", "equivalent"];
    ORDER.iter().position(|known| *known == verdict).unwrap_or(ORDER.len())
}

/// `8 equivalent, 2 better`.
fn outcomes(rows: &[(String, &DecidingRow)]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for (_, row) in rows {
        match counts.iter_mut().find(|(verdict, _)| *verdict == row.verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((&row.verdict, 1)),
        }
    }
    counts.into_iter().map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<String>>().join(", ")
}
