//! An audit as text for a terminal 100 columns wide.

use crate::finding::lines;
use crate::{Audit, Finding, Severity};
use plimsoll_analysis::words::counted;
use std::fmt::Write;

const WIDTH: usize = 100;

/// The most lines of evidence per finding; further ones are counted.
const MAX_SHOWN: usize = 8;

/// The findings, the most severe first, each with its evidence and advice; `name` is that of the
/// table.
#[must_use]
pub fn terminal(name: &str, audit: &Audit) -> String {
    let mut text = format!("{name}: {}; {}\n", counted(audit.rows, "row"), counts(audit));
    for source in &audit.sources {
        text += &wrapped(&format!("source: {source}"), "", "  ");
    }
    for finding in &audit.findings {
        text += "\n";
        text += &finding_as_text(finding);
    }
    text
}

/// `2 problems, 1 caution`, or that there is nothing.
fn counts(audit: &Audit) -> String {
    let counts: Vec<String> = [Severity::Problem, Severity::Caution, Severity::Note]
        .into_iter()
        .filter(|severity| audit.count(*severity) > 0)
        .map(|severity| counted(audit.count(severity), severity.name()))
        .collect();
    if counts.is_empty() { "nothing found".to_owned() } else { counts.join(", ") }
}

fn finding_as_text(finding: &Finding) -> String {
    let mut text = wrapped(&format!("{}: {}. {}", finding.severity.name(), finding.topic, finding.sentence), "", "  ");
    for evidence in finding.evidence.iter().take(MAX_SHOWN) {
        let place = if evidence.lines.is_empty() { String::new() } else { format!("{}: ", lines(&evidence.lines)) };
        text += &wrapped(&format!("{place}{}", evidence.text), "  - ", "    ");
    }
    if finding.evidence.len() > MAX_SHOWN {
        let more = finding.evidence.len() - MAX_SHOWN;
        writeln!(text, "  - and {more} more (--json lists all)").expect("writing to a string does not fail");
    }
    text += &wrapped(&format!("what to do: {}", finding.advice), "  ", "  ");
    text
}

/// Wraps `text` at [`WIDTH`] characters: the first line starts with `first`, the others with
/// `rest`. Numbers stay with their units.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut wrapped = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words(text) {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            wrapped += &line;
            wrapped += "\n";
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line += " ";
        }
        line += &word;
        empty = false;
    }
    wrapped + &line + "\n"
}

/// The words of a text; a unit belongs to the word of its number.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let unit = ["%", "B", "kB", "MB", "GB", "B/s", "kB/s", "MB/s", "GB/s", "ns", "µs", "ms", "s", "/s"]
            .contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
        match words.last_mut().filter(|last| unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(last) => *last += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit;

    #[test]
    fn units_stay_with_their_numbers() {
        assert_eq!(words("up to 6.45 GB/s, a lot (5 %)"), ["up", "to", "6.45 GB/s,", "a", "lot", "(5 %)"]);
    }

    #[test]
    fn text_is_wrapped_at_the_width() {
        let text = wrapped(&"word ".repeat(50), "  - ", "    ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(text.starts_with("  - word") && text.lines().skip(1).all(|line| line.starts_with("    ")));
    }

    #[test]
    fn a_table_without_flaws_says_so() {
        let table = "variant,n,mean,sd\na,5,1.00 s,0.10 s\nb,5,1.10 s,0.10 s\n";
        assert_eq!(terminal("table.csv", &audit(table).expect("a table")), "table.csv: 2 rows; nothing found\n");
    }

    #[test]
    fn much_evidence_is_counted() {
        let rows: String = (0..12).map(|users| format!("x,{users},20 ms,10 ms\n")).collect();
        let text = terminal("table.csv", &audit(&format!("variant,users,p90,p95\n{rows}")).expect("a table"));
        assert!(text.contains("  - and 4 more (--json lists all)\n"), "{text}");
    }
}
