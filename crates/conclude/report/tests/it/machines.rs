//! The files that other programs read: `junit.xml` for servers of continuous integration, `summary.md` for comments.

use crate::documents::text;
use crate::sample;
use plimsoll_analysis::verdict::Outcome;
use plimsoll_analysis::{Analysis, Input, analyse};
use plimsoll_report::{Gate, junit, render, summary};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

/// An element as it was read back.
#[derive(Debug, Default)]
struct Case {
    class: String,
    name: String,
    /// The element inside it that says how it ended, with its attributes and its text; none where it passed.
    ended: Option<(String, BTreeMap<String, String>, String)>,
    output: String,
}

struct Suite {
    counts: BTreeMap<String, String>,
    cases: Vec<Case>,
}

fn attributes(element: &BytesStart<'_>) -> BTreeMap<String, String> {
    let pair = |one: quick_xml::events::attributes::Attribute<'_>| {
        let value = one.normalized_value(quick_xml::XmlVersion::Implicit1_0).expect("a value").into_owned();
        (String::from_utf8(one.key.as_ref().to_vec()).expect("a name"), value)
    };
    element.attributes().map(|one| pair(one.expect("an attribute"))).collect()
}

/// Reads `junit.xml` back, which fails where it is not well-formed.
fn read_back(xml: &str) -> Suite {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut suite = Suite { counts: BTreeMap::new(), cases: Vec::new() };
    let mut place: Vec<String> = Vec::new();
    loop {
        let event = reader.read_event().expect("well-formed XML");
        let text = match &event {
            Event::Eof => break,
            Event::Start(element) | Event::Empty(element) => {
                let name = String::from_utf8(element.name().as_ref().to_vec()).expect("a name");
                let mut found = attributes(element);
                match name.as_str() {
                    "testsuite" => suite.counts = found,
                    "testcase" => {
                        let mut take = |name: &str| found.remove(name).expect(name);
                        suite.cases.push(Case { class: take("classname"), name: take("name"), ..Case::default() });
                    }
                    "failure" | "error" | "skipped" => {
                        suite.cases.last_mut().expect("inside a case").ended =
                            Some((name.clone(), found, String::new()));
                    }
                    "testsuites" | "system-out" => {}
                    other => panic!("{other} is not of JUnit"),
                }
                if matches!(event, Event::Start(_)) {
                    place.push(name);
                }
                continue;
            }
            Event::End(_) => {
                place.pop();
                continue;
            }
            Event::Text(text) => text.decode().expect("text").into_owned(),
            Event::GeneralRef(name) => match name.decode().expect("a name").as_ref() {
                "lt" => "<".to_owned(),
                "gt" => ">".to_owned(),
                "amp" => "&".to_owned(),
                "quot" => "\"".to_owned(),
                "apos" => "'".to_owned(),
                other => panic!("&{other}; is not declared"),
            },
            _ => continue,
        };
        match (place.last().map(String::as_str), suite.cases.last_mut()) {
            (Some("system-out"), Some(case)) => case.output += &text,
            (Some("failure" | "error" | "skipped"), Some(case)) => case.ended.as_mut().expect("it began").2 += &text,
            _ => assert!(text.trim().is_empty(), "{text:?} lies outside"),
        }
    }
    suite
}

fn suite(input: &Input, analysis: &Analysis, gate: Gate) -> Suite {
    read_back(&junit(input, analysis, gate))
}

#[test]
fn each_comparison_that_decides_is_a_test_case() {
    for input in [sample::study(), sample::three_variants()] {
        let analysis = analyse(&input);
        let suite = suite(&input, &analysis, Gate::NotAsked);
        let by_measure = |measure: &plimsoll_model::measure::Measure| {
            let verdicts = analysis.comparisons.iter().filter(|one| &one.measure == measure);
            verdicts.filter_map(|one| one.verdict.as_ref()).collect::<Vec<_>>()
        };
        let verdicts: Vec<_> = input.facts.decide.iter().flat_map(|one| by_measure(&one.measure)).collect();
        assert_eq!(suite.cases.len(), verdicts.len());
        let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
        for (case, verdict) in suite.cases.iter().zip(verdicts) {
            let expected = match verdict.outcome {
                Outcome::Worse => Some("failure"),
                Outcome::Inconclusive => Some("skipped"),
                Outcome::Void => Some("error"),
                Outcome::Better | Outcome::Equivalent => None,
            };
            assert_eq!(case.ended.as_ref().map(|ended| ended.0.as_str()), expected, "{case:?}");
            assert_eq!(case.class, input.facts.title);
            if let (Some(element), Some((_, attributes, text))) = (expected, &case.ended) {
                *counted.entry(element).or_default() += 1;
                assert!(!attributes["message"].is_empty());
                assert_eq!(text, &verdict.reason);
            }
            assert!(case.output.contains(&verdict.reason), "{case:?}");
        }
        for (name, element) in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped")] {
            assert_eq!(suite.counts[name], counted.get(element).copied().unwrap_or(0).to_string());
        }
        assert_eq!(suite.counts["tests"], suite.cases.len().to_string());
    }
    let input = sample::study();
    let first = &suite(&input, &analyse(&input), Gate::NotAsked).cases[0];
    assert_eq!(first.name, "iterations, p95: inputQ, 10 users, connect = per user");
}

#[test]
fn where_the_gate_is_asked_for_all_that_is_not_shown_fails() {
    let input = sample::study();
    let mut analysis = analyse(&input);
    let cases = suite(&input, &analysis, Gate::Asked).cases;
    let verdicts: Vec<bool> = analysis.verdicts().map(|verdict| verdict.not_inferior).collect();
    let passed = cases.iter().filter(|case| case.ended.is_none()).count();
    assert_eq!(passed, verdicts.iter().filter(|shown| **shown).count());
    assert!(cases.iter().filter_map(|case| case.ended.as_ref()).all(|(element, ..)| element != "skipped"));
    // A void comparison remains an error, whatever was asked for.
    let first = analysis.comparisons.iter_mut().find_map(|one| one.verdict.as_mut()).expect("a verdict");
    (first.outcome, first.not_inferior) = (Outcome::Void, false);
    let voided = suite(&input, &analysis, Gate::Asked).cases;
    assert_eq!(voided[0].ended.as_ref().map(|ended| ended.0.as_str()), Some("error"));
}

#[test]
fn names_that_are_no_xml_come_back_as_they_were_or_replaced() {
    let mut input = sample::study();
    input.facts.title = "a < b & \"c\" > 'd' ]]> é".to_owned();
    let suite_of = |input: &Input| suite(input, &analyse(input), Gate::NotAsked);
    assert_eq!(suite_of(&input).cases[0].class, input.facts.title);
    input.facts.title = "bell \u{7}, escape \u{1b}[31m, \u{ffff}".to_owned();
    assert_eq!(suite_of(&input).cases[0].class, "bell \u{fffd}, escape \u{fffd}[31m, \u{fffd}");
}

#[test]
fn a_run_that_did_not_end_is_an_error_of_its_own() {
    let mut input = sample::study();
    input.complete = false;
    let cases = suite(&input, &analyse(&input), Gate::NotAsked).cases;
    let last = cases.last().expect("cases");
    assert_eq!((last.name.as_str(), last.ended.as_ref().map(|ended| ended.0.as_str())), ("the run", Some("error")));
    let smallest = sample::smallest();
    assert!(suite(&smallest, &analyse(&smallest), Gate::Asked).cases.is_empty(), "nothing is compared");
}

#[test]
fn the_summary_has_ten_lines_at_most_and_no_markup_of_others() {
    let mut named = sample::study();
    named.facts.question = "Is <img src=x> | [this](javascript:x)\nall?".to_owned();
    for input in [sample::study(), sample::three_variants(), sample::smallest(), named] {
        let summary = summary(&input, &analyse(&input), Gate::NotAsked);
        assert!(summary.lines().count() <= 10, "{summary}");
        assert!(!summary.contains("<img") && !summary.contains("[this]("), "{summary}");
        assert!(summary.contains("report.html"), "{summary}");
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let table: Vec<usize> = summary.lines().filter(|line| line.starts_with('|')).map(columns).collect();
        assert!(table.windows(2).all(|pair| pair[0] == pair[1]), "{summary}");
    }
    let input = sample::study();
    insta::assert_snapshot!(summary(&input, &analyse(&input), Gate::NotAsked));
}

#[test]
fn the_gate_is_spoken_of_where_it_was_asked_for() {
    let input = sample::study();
    let analysis = analyse(&input);
    let says_gate = |gate: Gate| {
        let documents = render(&input, &analysis, gate);
        ["report.md", "report.html"].map(|path| {
            text(&documents, path).to_lowercase().contains("gate</b>") || text(&documents, path).contains("**Gate**")
        })
    };
    assert_eq!((says_gate(Gate::Asked), says_gate(Gate::NotAsked)), ([true, true], [false, false]));
}
