//! Writes the sections as Markdown: docs/method-evidence.md.

use crate::replicates::{Share, sum_of_shares};
use crate::section::{Check, Demand, Part, Section, Table};

/// The command that writes the page.
pub const COMMAND: &str = "cargo run --release -p plimsoll-evidence > docs/method-evidence.md";

/// The whole page.
#[must_use]
pub fn page(sections: &[Section]) -> String {
    let mut text = format!(
        "# Evidence for the method\n\n\
         Simulations in which the truth is known, decided by the very functions that write a report. \
         [method.md](method.md) says what the numbers of a report mean; this page shows that they hold, and where they do \
         not. It is written by a program; nothing in it is typed by hand:\n\n    {COMMAND}\n\n\
         All random numbers have fixed seeds, so the page comes out the same each time. A *study* here is one simulated \
         study; a share has the standard error (s.e.) that chance gives to so many of them. *cv* is the standard deviation \
         of a trial, as a share of its value; *R* is the true ratio of variant to baseline, of a measure of which less is \
         better; *n* is the number of repeats. The margin is 5 % where nothing else is said.\n\n\
         ## What is demanded, and what was found\n\n\
         Where a demand holds for many cells, the least and the largest are given, and the s.e. of the one nearest to the \
         bound.\n\n{}",
        summary(sections)
    );
    for section in sections {
        text += &format!("\n## {}\n", section.title);
        for part in &section.parts {
            text += "\n";
            text += &match part {
                Part::Text(paragraph) => format!("{paragraph}\n"),
                Part::Table(table) => markdown(table),
            };
        }
    }
    text
}

/// The link target of a heading.
#[must_use]
pub fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn summary(sections: &[Section]) -> String {
    let mut rows = Vec::new();
    for section in sections {
        for check in &section.checks {
            rows.push(vec![
                format!("[{}](#{}): {}", section.title, anchor(section.title), check.what),
                demand(check.demand),
                found(check),
                studies(check),
                error(check),
                verdict(check),
            ]);
        }
    }
    let head = ["what", "demanded", "found", "studies for each", "s.e.", "holds"].map(str::to_owned).into();
    markdown(&Table { head, rows })
}

fn demand(demand: Demand) -> String {
    match demand {
        Demand::AtLeast(least) => format!("at least {}", share(least)),
        Demand::AtMost(most) => format!("at most {}", share(most)),
        Demand::Within(least, most) => format!("{} to {}", share(least), share(most)),
    }
}

fn share(value: f64) -> String {
    let text = format!("{:.2}", value * 100.0);
    let text = text.strip_suffix("0").unwrap_or(&text);
    format!("{text} %")
}

fn found(check: &Check) -> String {
    let values = || check.cells.iter().map(|(_, cell)| cell.value());
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    match check.cells.len() {
        0 => "–".to_owned(),
        1 => share(least),
        count => format!("{} to {} ({count} cells)", share(least), share(most)),
    }
}

fn studies(check: &Check) -> String {
    let counts = || check.cells.iter().map(|(_, cell)| cell.of);
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    if least == most { grouped(least) } else { format!("{} to {}", grouped(least), grouped(most)) }
}

/// The standard error of the cell that is closest to the bound, or furthest beyond it.
fn error(check: &Check) -> String {
    let room = |cell: &Share| match check.demand {
        Demand::AtLeast(least) => cell.value() - least,
        Demand::AtMost(most) => most - cell.value(),
        Demand::Within(least, most) => (cell.value() - least).min(most - cell.value()),
    };
    let nearest = check.cells.iter().map(|(_, cell)| cell).min_by(|one, other| room(one).total_cmp(&room(other)));
    nearest.map_or("–".to_owned(), |cell| format!("{:.2} %", cell.standard_error() * 100.0))
}

fn verdict(check: &Check) -> String {
    let failing = check.failing();
    if failing.is_empty() {
        return "yes".to_owned();
    }
    let named: Vec<String> =
        failing.iter().map(|(label, cell)| format!("{label} {}", share(cell.value())).trim().to_owned()).collect();
    format!("**falls short**: {}", named.join("; "))
}

fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> =
        (0..table.head.len()).map(|column| if column == 0 { "---" } else { "---:" }.to_owned()).collect();
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    line(&table.head) + &line(&rule) + &rows
}

/// `20,000`.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

/// The share over all studies of several cells, for prose.
#[must_use]
pub fn of_all(cells: impl IntoIterator<Item = Share>) -> String {
    share(sum_of_shares(cells).value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!((share(0.05), share(0.0512), share(0.001)), ("5.0 %".into(), "5.12 %".into(), "0.1 %".into()));
        assert_eq!((grouped(1), grouped(1000), grouped(20_000)), ("1".into(), "1,000".into(), "20,000".into()));
        assert_eq!(anchor("Two equal systems, A/A"), "two-equal-systems-aa");
    }

    #[test]
    fn what_falls_short_is_named() {
        let cell = |label: &str, hits| (label.to_owned(), Share { hits, of: 100 });
        let cells = vec![cell("n = 3", 95), cell("n = 4", 93)];
        let check = Check { what: "coverage", demand: Demand::AtLeast(0.94), cells };
        let text = page(&[Section::new("Coverage").text("It covers.").check(check)]);
        assert!(
            text.contains(
                "| [Coverage](#coverage): coverage | at least 94.0 % | 93.0 % to 95.0 % (2 cells) | 100 | 2.55 % \
             | **falls short**: n = 4 93.0 % |"
            ),
            "{text}"
        );
        assert!(text.contains("\n## Coverage\n\nIt covers.\n"), "{text}");
    }
}
