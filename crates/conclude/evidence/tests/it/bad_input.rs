//! Input that no study should give, and some do: the analysis says plainly what it cannot say, no
//! document holds a number that is none, and nothing panics.

use plimsoll_analysis::verdict::{Outcome, Verdict};
use plimsoll_analysis::{Analysis, Input, analyse};
use plimsoll_evidence::study::{Shape, study};
use plimsoll_model::record::{ErrorKind, Tally};
use plimsoll_model::result::StartResult;
use plimsoll_model::start::{Start, Validity};
use plimsoll_model::units::Nanos;
use plimsoll_report::{Gate, render, terminal};
use proptest::prelude::*;

const SHAPE: Shape = Shape { variants: 2, conditions: 1, repeats: 4, seconds: 3 };

fn usual(shape: Shape) -> Input {
    study(shape, 1, |start| 1.0 + f64::from(start.number % 5) / 100.0)
}

fn each(mut input: Input, change: impl Fn(&mut StartResult)) -> Input {
    input.starts.iter_mut().for_each(change);
    input
}

/// Renders everything and looks for numbers that are none.
fn examined(input: &Input, name: &str) -> Analysis {
    let analysis = analyse(input);
    for document in render(input, &analysis, Gate::NotAsked) {
        if document.path.ends_with(".png") {
            continue;
        }
        let text = String::from_utf8(document.bytes).expect("text");
        assert_plain(&text, &format!("{name}: {}", document.path));
    }
    assert_plain(&terminal(input, &analysis), &format!("{name}: terminal"));
    for verdict in analysis.verdicts() {
        assert!(!verdict.reason.is_empty(), "{name}: a verdict without a reason");
    }
    analysis
}

/// Words that stand for what is no number, alone or with a unit behind them.
fn assert_plain(text: &str, place: &str) {
    let is_word = |start: usize, end: usize| {
        let before = text[..start].chars().next_back();
        let after = text[end..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphabetic)
    };
    for word in ["NaN", "nan", "inf", "Infinity", "∞"] {
        for (start, found) in text.match_indices(word) {
            let around: String = text[..start].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
            assert!(!is_word(start, start + found.len()), "{place}: `{around}{found}`");
        }
    }
}

fn verdicts(analysis: &Analysis) -> Vec<&Verdict> {
    analysis.verdicts().collect()
}

#[test]
fn one_repeat_is_a_range_and_no_verdict() {
    for repeats in [1, 2] {
        let analysis = examined(&usual(Shape { repeats, ..SHAPE }), "few repeats");
        for verdict in verdicts(&analysis) {
            assert_eq!(verdict.outcome, Outcome::Inconclusive);
            assert!(verdict.reason.contains("repeat"), "{}", verdict.reason);
        }
    }
}

#[test]
fn values_that_are_all_the_same_are_decided() {
    let input = study(SHAPE, 1, |_| 1.0);
    for verdict in verdicts(&examined(&input, "all equal")) {
        assert_eq!(verdict.outcome, Outcome::Equivalent, "{}", verdict.reason);
    }
    let input = study(SHAPE, 1, |start| if start.variants == [1] { 2.0 } else { 1.0 });
    for verdict in verdicts(&examined(&input, "all equal, twice as slow")) {
        assert_eq!(verdict.outcome, Outcome::Worse, "{}", verdict.reason);
    }
}

#[test]
fn zeros_have_no_ratio_and_the_report_says_so() {
    let input = each(usual(SHAPE), |result| result.loads[0].seconds.iter_mut().for_each(|row| row.count = 0));
    let analysis = examined(&input, "zero throughput");
    let rate =
        analysis.comparisons.iter().find(|one| one.measure.to_string() == "iterations.rate").expect("a comparison");
    let verdict = rate.verdict.as_ref().expect("a verdict");
    assert_eq!(verdict.outcome, Outcome::Void);
    assert!(verdict.reason.contains("gave 0") && verdict.reason.contains("no ratio"), "{}", verdict.reason);
}

#[test]
fn nothing_recorded_is_void() {
    let empty = each(usual(SHAPE), |result| {
        let load = &mut result.loads[0];
        load.tallies.clear();
        load.seconds.clear();
        load.generator.clear();
        result.processes.clear();
        result.host.clear();
    });
    let zero_window = each(usual(SHAPE), |result| result.loads[0].summary.timing.window = Nanos(0));
    let all_cut = each(usual(SHAPE), |result| result.loads[0].cut = 1000);
    let empty_histograms =
        each(usual(SHAPE), |result| result.loads[0].tallies.values_mut().for_each(|tally| *tally = Tally::default()));
    for (name, input) in [
        ("empty trials", empty),
        ("no window", zero_window),
        ("all cut", all_cut),
        ("empty histograms", empty_histograms),
    ] {
        let analysis = examined(&input, name);
        assert!(analysis.verdicts().any(|verdict| verdict.outcome == Outcome::Void), "{name}");
        assert!(analysis.verdicts().all(|verdict| verdict.outcome != Outcome::Worse), "{name}");
    }
}

/// The tables of a bundle are text, in which anything can stand.
#[test]
fn numbers_that_are_none_stay_out_of_every_document() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e150, -1.0, 1e-300] {
        let mut input = each(usual(SHAPE), |result| {
            result.processes.iter_mut().for_each(|sample| sample.cpu_cores = value);
            result.host.iter_mut().for_each(|sample| {
                sample.cpu_cores = value;
                sample.steal_cores = value;
                sample.iowait_cores = value;
                sample.frequency_mhz = Some(value);
            });
            result.loads[0].seconds.iter_mut().for_each(|row| row.mean = value);
            result.loads[0].generator.iter_mut().for_each(|row| row.cpu_busiest = value);
        });
        input.facts.decide[0].measure = "cpu.avg".parse().expect("a measure");
        examined(&input, &format!("everything is {value}"));
    }
}

#[test]
fn margins_of_any_size_give_a_statement() {
    for margin in [0.0, 1e-12, 1.0, 1e6] {
        let mut input = usual(SHAPE);
        input.facts.decide.iter_mut().for_each(|decision| decision.margin = margin);
        examined(&input, &format!("a margin of {margin}"));
    }
}

#[test]
fn missing_trials_and_void_blocks_are_told() {
    for missing in 0..usual(SHAPE).starts.len() {
        let mut input = usual(SHAPE);
        let gone = input.starts.remove(missing).summary.start;
        let analysis = examined(&input, &format!("without trial {}", gone.number));
        assert_eq!(analysis.excluded.len(), 1);
    }
    for block in 1..=4 {
        let input = each(usual(SHAPE), |result| {
            if result.summary.start.block == block {
                result.loads[0].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
            }
        });
        let analysis = examined(&input, &format!("block {block} is void"));
        assert!(analysis.comparisons.iter().all(|one| one.pairs.len() == 3 && one.dropped.len() == 1));
    }
    let void = each(usual(SHAPE), |result| {
        result.summary.validity = Validity::Failed(vec!["the system died".to_owned()]);
    });
    let analysis = examined(&void, "all failed");
    assert!(analysis.verdicts().all(|verdict| verdict.outcome == Outcome::Void));
    let mut nothing = usual(SHAPE);
    nothing.starts.clear();
    examined(&nothing, "no trial ran");
}

#[test]
fn studies_of_odd_sizes_have_reports() {
    for shape in [
        Shape { variants: 45, conditions: 1, repeats: 3, seconds: 2 },
        Shape { variants: 2, conditions: 41, repeats: 1, seconds: 2 },
        Shape { variants: 1, conditions: 1, repeats: 1, seconds: 2 },
        Shape { variants: 1, conditions: 3, repeats: 5, seconds: 2 },
    ] {
        let analysis = examined(&usual(shape), &format!("{shape:?}"));
        assert_eq!(analysis.cells.len(), shape.variants * shape.conditions);
    }
}

#[test]
fn all_requests_failed() {
    let mut input = each(usual(SHAPE), |result| {
        result.loads[0].tallies.values_mut().for_each(|tally| {
            tally.errors.insert(ErrorKind::Timeout, tally.count());
        });
    });
    input.facts.decide[0].measure = "errors.ratio".parse().expect("a measure");
    input.facts.decide[0].margin = 0.001;
    examined(&input, "all failed");
}

/// A trial that went wrong in some way.
fn spoil(result: &mut StartResult, how: u8) {
    match how {
        0 => result.loads[0].summary.validity = Validity::Void(vec!["no steady state".to_owned()]),
        1 => result.loads[0].tallies.clear(),
        2 => result.loads[0].seconds.clear(),
        3 => result.loads[0].summary.timing.window = Nanos(0),
        4 => result.loads[0].cut = 2,
        5 => result.processes.iter_mut().for_each(|sample| sample.cpu_cores = f64::NAN),
        6 => result.summary.timing.started_unix_ms = 0,
        7 => result.loads[0].tallies.values_mut().for_each(|tally| tally.service.clear()),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_goes_wrong_is_told_in_words(
        repeats in 1_usize..5,
        variants in 1_usize..4,
        scales in prop::collection::vec(prop_oneof![4 => 0.5..2.0_f64, 1 => Just(0.0), 1 => Just(1e4)], 1..20),
        spoiled in prop::collection::vec(0_u8..14, 1..60),
        missing in prop::collection::vec(0_usize..40, 0..6),
        margin in prop_oneof![Just(0.0), 0.0..0.5_f64],
    ) {
        let shape = Shape { variants, conditions: 1, repeats, seconds: 2 };
        let scale = |start: &Start| scales[start.number as usize % scales.len()];
        let mut input = study(shape, 7, scale);
        for (result, how) in input.starts.iter_mut().zip(spoiled.iter().cycle()) {
            spoil(result, *how);
        }
        for place in missing {
            if place < input.starts.len() {
                input.starts.remove(place);
            }
        }
        input.facts.decide.iter_mut().for_each(|decision| decision.margin = margin);
        examined(&input, "spoiled");
    }
}
