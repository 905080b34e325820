//! The answer and a compact table, for a terminal 100 columns wide.

use crate::page::top;
use plimsoll_analysis::compare::{Comparison, notation};
use plimsoll_analysis::quantity::confidence;
use plimsoll_analysis::{Analysis, Input, decisions, words};
use plimsoll_model::measure::Measure;
use std::fmt::Write;

const WIDTH: usize = 100;

/// The answer, each measure that decides under each condition, how it was measured, what to do next, and what limits
/// the answer, in a line each. The report has the rest.
#[must_use]
pub fn terminal(input: &Input, analysis: &Analysis) -> String {
    let mut text = format!("{}\n\n", wrapped(&input.facts.question, ""));
    let tell = |text: &mut String, line: &str| {
        writeln!(text, "{}", wrapped(line, "  ")).expect("writing to a string does not fail");
    };
    for sentence in analysis.answer.headline.iter().chain(&analysis.answer.further) {
        tell(&mut text, &sentence.to_string());
    }
    if input.plan.describes() {
        text += "\n";
        text += &aligned(&crate::described::for_terminal(input, analysis));
    } else if input.plan.variants.len() > 1 {
        for decision in decisions(&input.facts) {
            text += "\n";
            text += &table(input, analysis, &decision.measure);
        }
    }
    text += "\n";
    tell(&mut text, &top::measured(input));
    if let Some(next) = top::next(analysis) {
        tell(&mut text, &format!("next: {next}"));
    }
    for brief in top::briefs(analysis) {
        tell(&mut text, &format!("{}: {}", brief.severity, brief.sentence));
    }
    for caution in top::cautions(analysis) {
        tell(&mut text, &format!("caution: {caution}"));
    }
    text
}

fn table(input: &Input, analysis: &Analysis, measure: &Measure) -> String {
    let name = |variant: usize| input.plan.label(variant);
    let several = input.plan.variants.len() > 2;
    let mut rows = vec![vec![
        words::measure(measure),
        name(0),
        if several {
            "variant".to_owned()
        } else {
            input.plan.variants.get(1).map(plimsoll_model::factor::Assignment::label).unwrap_or_default()
        },
        "change".to_owned(),
        format!("{} interval", confidence(analysis.alpha)),
        "n".to_owned(),
        "verdict".to_owned(),
    ]];
    let of_measure = || analysis.comparisons.iter().filter(|one| &one.measure == measure);
    let notation = notation(of_measure());
    for comparison in of_measure() {
        let (condition, variant) = (comparison.condition, comparison.variant);
        let [baseline, value] = top::values(comparison);
        rows.push(vec![
            words::condition_in(&input.plan, condition),
            baseline,
            if several { format!("{} {value}", name(variant)) } else { value },
            comparison.change(notation).unwrap_or_else(|_| "–".to_owned()),
            crate::text::interval(comparison, notation),
            comparison.pairs.len().to_string(),
            verdict(comparison),
        ]);
    }
    aligned(&rows)
}

fn verdict(comparison: &Comparison) -> String {
    comparison.verdict.as_ref().map(|verdict| verdict.outcome.to_string()).unwrap_or_default()
}

/// Aligns columns to their widest cell, two spaces apart, or one where the table would be too wide;
/// text to the left, numbers to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let wide = widths.iter().sum::<usize>() + 2 * (columns - 1) > WIDTH;
    let gap = if wide { " " } else { "  " };
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter()
                .zip(&widths)
                .enumerate()
                .map(|(index, (cell, &width))| {
                    if index == 0 || index == columns - 1 {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                })
                .collect();
        text += cells.join(gap).trim_end();
        text += "\n";
    }
    text
}

/// Wraps `text` at [`WIDTH`] characters; all lines but the first begin with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in crate::text::unbroken(text).split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            *line += word;
        } else if line.chars().count() + 1 + word.chars().count() <= WIDTH {
            *line += " ";
            *line += word;
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n").replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_the_width() {
        let text = wrapped(&"word ".repeat(50), "  ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  ")));
    }
}
