//! The verdicts as JUnit's XML, which servers of continuous integration show beside their tests.
//!
//! A test case is a comparison that decides. *Worse* is a failure. *Inconclusive* is skipped: nothing was shown, so
//! nothing has passed and nothing has failed. *Void* is an error: what was to be measured was not. Where the gate was
//! asked for, which wants a proof, whatever lacks it is a failure; a void comparison remains an error, so neither passes.

use crate::method::Gate;
use crate::page::top;
use crate::text::interval;
use plimsoll_analysis::compare::{Comparison, notation};
use plimsoll_analysis::quantity::{confidence, margin};
use plimsoll_analysis::verdict::{Outcome, Verdict};
use plimsoll_analysis::{Analysis, Input, decisions, words};
use plimsoll_model::factor::Assignment;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

/// A test case.
struct Case {
    name: String,
    result: CaseResult,
    /// The numbers, for its output.
    numbers: String,
}

/// How a test case ended, with the element that says so.
enum CaseResult {
    Passed,
    /// The name of the element, its type, its message, and its text.
    Not {
        element: &'static str,
        kind: &'static str,
        message: String,
        text: String,
    },
}

/// The verdicts as JUnit's XML: `junit.xml` of a report.
///
/// # Panics
/// Never: memory takes what is written.
#[must_use]
pub fn junit(input: &Input, analysis: &Analysis, gate: Gate) -> String {
    let cases = cases(input, analysis, gate);
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut writer, input, &cases).expect("memory takes what is written");
    String::from_utf8(writer.into_inner()).expect("what was written is text") + "\n"
}

fn write(writer: &mut Writer<Vec<u8>>, input: &Input, cases: &[Case]) -> io::Result<()> {
    let seconds: f64 = input.starts.iter().map(|start| start.summary.timing.took.0 as f64 / 1e9).sum();
    let [tests, time] = [cases.len().to_string(), format!("{seconds:.3}")];
    let count = |wanted: &str| {
        let is = |case: &&Case| matches!(case.result, CaseResult::Not { element, .. } if element == wanted);
        cases.iter().filter(is).count().to_string()
    };
    let [failures, errors, skipped] = ["failure", "error", "skipped"].map(count);
    let title = plain(&input.facts.title);
    let counts =
        [("tests", &tests), ("failures", &failures), ("errors", &errors), ("skipped", &skipped), ("time", &time)];
    let counts = counts.map(|(name, value)| (name, value.as_str()));
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = writer.create_element("testsuites").with_attribute(("name", "plimsoll")).with_attributes(counts);
    suites.write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", title.as_str())).with_attributes(counts);
        suite.write_inner_content(|writer| cases.iter().try_for_each(|case| write_case(writer, &title, case)))?;
        Ok(())
    })?;
    Ok(())
}

fn write_case(writer: &mut Writer<Vec<u8>>, class: &str, case: &Case) -> io::Result<()> {
    let name = plain(&case.name);
    let element = writer.create_element("testcase").with_attributes([("classname", class), ("name", name.as_str())]);
    element.write_inner_content(|writer| {
        if let CaseResult::Not { element, kind, message, text } = &case.result {
            let message = plain(message);
            let result = writer.create_element(*element).with_attribute(("message", message.as_str()));
            // A skipped test case has no type.
            let result = if *element == "skipped" { result } else { result.with_attribute(("type", *kind)) };
            result.write_text_content(BytesText::new(&plain(text)))?;
        }
        writer.create_element("system-out").write_text_content(BytesText::new(&plain(&case.numbers)))?;
        Ok(())
    })?;
    Ok(())
}

/// Text without the characters that XML 1.0 has no place for, not even escaped.
fn plain(text: &str) -> String {
    let is_allowed = |letter: char| {
        matches!(letter, '\t' | '\n' | '\r') || (letter >= ' ' && !('\u{fffe}'..='\u{ffff}').contains(&letter))
    };
    text.chars().map(|letter| if is_allowed(letter) { letter } else { '\u{fffd}' }).collect()
}

fn cases(input: &Input, analysis: &Analysis, gate: Gate) -> Vec<Case> {
    let of = |one: &Comparison| Some(case(input, analysis, one, one.verdict.as_ref()?, gate));
    let by_measure = decisions(&input.facts)
        .into_iter()
        .flat_map(|decision| analysis.comparisons.iter().filter(move |one| one.measure == decision.measure));
    let mut cases: Vec<Case> = by_measure.filter_map(of).collect();
    if !input.complete {
        let message = "the run did not come to its end".to_owned();
        let text = input.problems.join("\n");
        let result = CaseResult::Not { element: "error", kind: "incomplete", message, text };
        cases.push(Case { name: "the run".to_owned(), result, numbers: String::new() });
    }
    cases
}

fn case(input: &Input, analysis: &Analysis, one: &Comparison, verdict: &Verdict, gate: Gate) -> Case {
    let condition = &input.plan.conditions[one.condition];
    let place = if condition.0.is_empty() { String::new() } else { format!(", {}", words::condition(condition)) };
    let baseline = input.plan.variants.first().map(Assignment::label).unwrap_or_default();
    let variant = input.plan.label(one.variant);
    let notation = notation([one]);
    let change = one.change(notation).unwrap_or_else(|_| "no change is known".to_owned());
    let margin = margin(verdict.margin, &one.measure);
    let claim = match verdict.outcome {
        Outcome::Worse => format!("{variant} is worse than {baseline}"),
        Outcome::Better => format!("{variant} is better than {baseline}"),
        Outcome::Equivalent => format!("{variant} and {baseline} are equal within ±{margin}"),
        Outcome::Inconclusive => format!("it is undecided whether {variant} and {baseline} differ"),
        Outcome::Void => format!("nothing can be said of {variant}"),
    };
    let sentence = match one.contrast {
        Ok(_) => format!(
            "{claim}: {change} ({} interval {}, margin {margin})",
            confidence(analysis.alpha),
            interval(one, notation)
        ),
        Err(_) => format!("{claim}: {}", verdict.reason),
    };
    let [of_baseline, of_variant] = top::values(one);
    let numbers = format!(
        "{sentence}\n{baseline} {of_baseline}, {variant} {of_variant}, n = {}\n{}",
        one.pairs.len(),
        verdict.reason
    );
    let not =
        |element, kind| CaseResult::Not { element, kind, message: sentence.clone(), text: verdict.reason.clone() };
    let result = match (verdict.outcome, gate) {
        (Outcome::Void, _) => not("error", "void"),
        (_, Gate::Asked) if verdict.not_inferior => CaseResult::Passed,
        (Outcome::Worse, _) => not("failure", "worse"),
        (_, Gate::Asked) => not("failure", "not shown to be no worse"),
        (Outcome::Inconclusive, Gate::NotAsked) => not("skipped", "inconclusive"),
        (Outcome::Better | Outcome::Equivalent, Gate::NotAsked) => CaseResult::Passed,
    };
    Case { name: format!("{}: {variant}{place}", words::measure(&one.measure)), result, numbers }
}
