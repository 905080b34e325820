//! `plimsoll doctor`: is this machine fit to measure on? With `--noise`: how long does it take here to
//! see a small difference? With `--aa`: how much does a system differ from itself?

mod against_itself;
mod checks;
mod noise;

use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::say;
use checks::{Check, Grade, checks};
use plimsoll_model::host::LOCAL;
use plimsoll_telemetry::{host_facts, machine_state};
use std::fmt::Write as _;
use std::time::Duration;

/// Columns of a terminal.
const WIDTH: usize = 100;

/// How long the machine is observed.
const OBSERVATION_TIME: Duration = Duration::from_secs(2);

pub(super) fn doctor(arguments: &arguments::Doctor) -> Result<Exit, Failure> {
    match &arguments.aa {
        Some(study) => against_itself::measure(study.as_deref(), arguments),
        None if arguments.noise => noise::measure(),
        None => examine(),
    }
}

fn examine() -> Result<Exit, Failure> {
    say::note(&format!("looking at this machine for {} s …", OBSERVATION_TIME.as_secs()));
    let checks = checks(&host_facts(LOCAL), &machine_state(OBSERVATION_TIME));
    say::result(shown(&checks).trim_end())?;
    let fit = checks.iter().all(|check| check.grade != Grade::Problem);
    Ok(if fit { Exit::Fine } else { Exit::Worse })
}

/// The checks as a table with advice below each line, and a summary.
fn shown(checks: &[Check]) -> String {
    let width = |text: fn(&Check) -> usize| checks.iter().map(text).max().unwrap_or(0);
    let (grades, names) = (width(|check| check.grade.name().len()), width(|check| check.what.len()));
    let mut text = String::new();
    for check in checks {
        let line = format!("{:grades$}  {:names$}  {}", check.grade.name(), check.what, check.found);
        let _ = writeln!(text, "{line}"); // writing to a string cannot fail
        if !check.advice.is_empty() {
            let _ = writeln!(text, "{}", wrapped(&check.advice, grades + names + 4));
        }
    }
    let count = |grade: Grade| checks.iter().filter(|check| check.grade == grade).count();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (problems, cautions) = (count(Grade::Problem), count(Grade::Caution));
    let conclusion = match (problems, cautions) {
        (0, 0) => "This machine is fit to measure on.".to_owned(),
        (0, cautions) => format!(
            "This machine can be measured on, with {cautions} caution{}: small differences may drown.",
            plural(cautions)
        ),
        (problems, _) => {
            format!("This machine is not fit to measure on as it is: {problems} problem{}.", plural(problems))
        }
    };
    let _ = write!(
        text,
        "\n{conclusion}\nHow long it takes here to see a small difference: plimsoll doctor --noise\n\
         How much a system differs from itself here: plimsoll doctor --aa [STUDY]"
    );
    text
}

/// `text` in lines of at most [`WIDTH`] characters, all of them indented.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{}{word}", " ".repeat(indent))),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_read_as_a_table_with_advice_below() {
        let check = |grade, what, found: &str, advice: &str| Check {
            grade,
            what,
            found: found.to_owned(),
            advice: advice.to_owned(),
        };
        let text = shown(&[
            check(Grade::Ok, "swap", "not in use", ""),
            check(Grade::Caution, "huge pages", "transparent ones: always", "set them to madvise"),
        ]);
        let expected = "ok       swap        not in use\n\
                        caution  huge pages  transparent ones: always\n                     set them to madvise\n\n\
                        This machine can be measured on, with 1 caution: small differences may drown.\n\
                        How long it takes here to see a small difference: plimsoll doctor --noise\n\
                        How much a system differs from itself here: plimsoll doctor --aa [STUDY]";
        assert_eq!(text, expected);
        let problem = shown(&[check(Grade::Problem, "processors", "1 for Plimsoll", "use two")]);
        assert!(problem.contains("is not fit to measure on as it is: 1 problem."), "{problem}");
    }
}
