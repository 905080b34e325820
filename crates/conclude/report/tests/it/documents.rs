//! The contents of the files of a report.

use crate::sample;
use plimsoll_analysis::quantity::show;
use plimsoll_analysis::{Input, analyse};
use plimsoll_model::measure::Unit;
use plimsoll_model::record::{Account, ErrorKind, Subject};
use plimsoll_model::result::LoadSecond;
use plimsoll_model::study::FloorRule;
use plimsoll_model::units::Nanos;
use plimsoll_report::{Document, Gate, render, terminal};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

pub(crate) fn documents(input: &Input) -> Vec<Document> {
    render(input, &analyse(input), Gate::NotAsked)
}

pub(crate) fn text(documents: &[Document], path: &str) -> String {
    let document = documents.iter().find(|document| document.path == path).expect(path);
    String::from_utf8(document.bytes.clone()).expect("text")
}

/// Leaves the report where a person can look at it.
pub(crate) fn keep(documents: &[Document], name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-sample").join(name);
    for document in documents {
        let path = folder.join(&document.path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, &document.bytes).expect("a file");
    }
}

#[test]
fn the_markdown_of_a_study() {
    let documents = documents(&sample::study());
    keep(&documents, "study");
    insta::assert_snapshot!(text(&documents, "report.md"));
}

#[test]
fn the_markdown_of_three_variants() {
    let documents = documents(&sample::three_variants());
    keep(&documents, "three-variants");
    insta::assert_snapshot!(text(&documents, "report.md"));
}

#[test]
fn each_chart_has_a_file_of_its_own() {
    let documents = documents(&sample::told_apart_by_signs());
    let paths: BTreeSet<&str> = documents.iter().map(|document| document.path.as_str()).collect();
    assert_eq!(paths.len(), documents.len(), "no path is written twice");
    for path in [
        "charts/throughput-nice-5.png",
        "charts/throughput-nice-5-2.png",
        "charts/over-time-requests-nice-5-2.png",
        "charts/compared-request-duration-a-b-p95-2.png",
    ] {
        assert!(paths.contains(path), "{path}: {paths:#?}");
    }
    let markdown = text(&documents, "report.md");
    let named = markdown.split("](charts/").skip(1).filter_map(|rest| rest.split(')').next());
    for chart in named {
        assert!(paths.contains(format!("charts/{chart}").as_str()), "{chart}");
    }
}

#[test]
fn the_markdown_of_one_system() {
    let documents = documents(&sample::one_system());
    keep(&documents, "one-system");
    let markdown = text(&documents, "report.md");
    assert_well_formed(&text(&documents, "report.html"));
    for of_comparisons in ["baseline", "verdict", "variant", "noise floor", "duplicate", "gate", "margin", "decides"] {
        let before_trials = markdown.split("## The trials").next().expect("a part");
        assert!(!before_trials.to_lowercase().contains(of_comparisons), "{of_comparisons}");
    }
    assert!(documents.iter().all(|document| !document.path.contains("compar")), "nothing is compared");
    insta::assert_snapshot!(markdown);
}

#[test]
fn trials_that_a_number_of_iterations_ends_have_their_times() {
    let mut input = sample::one_system();
    for (start, milliseconds) in input.starts.iter_mut().zip([4_000, 4_500, 5_250].into_iter().cycle()) {
        let summary = &mut start.loads[0].summary;
        summary.timing.window = Nanos(milliseconds * 1_000_000);
        let account = Account { sent: 6_600, answered: 6_600, ..Account::default() };
        summary.replies.accounts.insert("request:update".to_owned(), account);
    }
    let lost = input.starts[1].loads[0].summary.replies.accounts.get_mut("request:update").expect("an account");
    (lost.answered, lost.in_flight) = (6_599, 1);
    let documents = documents(&input);
    assert_well_formed(&text(&documents, "report.html"));
    let markdown = text(&documents, "report.md");
    for told in [
        "4 s to 5.25 s each, ",
        " at most. Load: ",
        "| measured for | counts |",
        " | 4.50 s | valid | ",
        "| update | 6,600 | 6,599 … 6,600 | 0 | 0 … 1 | ",
    ] {
        assert!(markdown.contains(told), "{told}:\n{markdown}");
    }
    assert!(!text(&self::documents(&sample::one_system()), "report.md").contains("measured for"));
}

#[test]
fn what_ran_already_is_not_called_freshly_started() {
    for mut input in [sample::study(), sample::one_system()] {
        assert!(text(&documents(&input), "report.md").contains("each on systems freshly started"));
        input.facts.systems = Vec::new();
        let markdown = text(&documents(&input), "report.md");
        assert!(!markdown.contains("freshly started") && !markdown.contains("| Started for"), "{markdown}");
        for told in ["No system was started for them, so each may find what the one before left.", "| What ran for "] {
            assert!(markdown.contains(told), "{told}:\n{markdown}");
        }
    }
}

#[test]
fn failures_that_happened_are_not_printed_as_none() {
    let mut input = sample::one_system();
    let call = Subject::Request("increment".to_owned());
    let tally = input.starts[0].loads[0].tallies.get_mut(&call).expect("calls");
    tally.errors.insert(ErrorKind::Timeout, 1);
    let markdown = text(&documents(&input), "report.md");
    // One of a million calls, in one of five trials.
    assert!(markdown.contains("| errors | 0.200, 0.0000"), "{markdown}");
}

#[test]
fn a_soak_test_has_a_table_of_what_changes_over_its_time() {
    let mut input = sample::one_system();
    input.facts.soak = true;
    for start in &mut input.starts {
        for sample in &mut start.processes {
            sample.resident = (30e6 * (1.0 + sample.at.max(0.0) / 10.0)) as u64;
        }
    }
    let documents = documents(&input);
    assert_well_formed(&text(&documents, "report.html"));
    let (markdown, json) = (text(&documents, "report.md"), text(&documents, "report.json"));
    for told in [
        "## Over the time of a load",
        "Mean memory of counter: over 10 s of load the system changes by",
        "| changes; whether it goes on cannot be told |",
        "| stays |",
    ] {
        assert!(markdown.contains(told), "{told}:\n{markdown}");
    }
    for told in ["\"measure\": \"memory:counter.avg\"", "\"judgement\": \"changes; whether it goes on cannot be told\""]
    {
        assert!(json.contains(told), "{told}:\n{json}");
    }
    assert!(!text(&self::documents(&sample::one_system()), "report.md").contains("Over the time of a load"));
}

#[test]
fn the_terminal_summary_of_one_system() {
    let input = sample::one_system();
    let summary = terminal(&input, &analyse(&input));
    assert!(summary.lines().all(|line| line.chars().count() <= 100), "{summary}");
    insta::assert_snapshot!(summary);
}

#[test]
fn the_terminal_summary() {
    let input = sample::study();
    let summary = terminal(&input, &analyse(&input));
    assert!(summary.lines().all(|line| line.chars().count() <= 100), "{summary}");
    insta::assert_snapshot!(summary);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(documents(&sample::study()), documents(&sample::study()));
}

#[test]
fn the_smallest_study_and_an_empty_bundle_have_reports() {
    let smallest = sample::smallest();
    let documents_of_smallest = documents(&smallest);
    keep(&documents_of_smallest, "smallest");
    assert!(
        text(&documents_of_smallest, "report.md")
            .contains("(no interval: one repeat has no spread, n = 1)".replace("n = ", "n\u{a0}=\u{a0}").as_str())
    );

    let mut empty = sample::study();
    empty.starts.clear();
    empty.complete = false;
    empty.problems = vec!["the run did not come to its end".to_owned()];
    let documents_of_empty = documents(&empty);
    keep(&documents_of_empty, "empty");
    let html = text(&documents_of_empty, "report.html");
    assert!(html.contains("The run did not come to its end") && html.contains("void"));
    assert_well_formed(&html);
}

#[test]
fn the_json_is_versioned_and_complete() {
    let input = sample::study();
    let json: Value = serde_json::from_str(&text(&documents(&input), "report.json")).expect("JSON");
    assert_eq!(json["format"], 2);
    assert_eq!(json["trials"].as_array().expect("trials").len(), 90);
    assert_eq!(json["conditions"][1]["connect"], "every iteration");
    let uncounted: Vec<u64> = json["uncounted"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["trial"].as_u64().expect("a number"))
        .collect();
    assert_eq!(uncounted, [8, 20]);
    let first = |list: &str, measure: &str| {
        let rows = json[list].as_array().expect("a list");
        let row = rows.iter().find(|row| row["measure"] == measure).expect("a row");
        serde_json::to_string_pretty(&to_nine_digits(row)).expect("JSON")
    };
    insta::assert_snapshot!(format!(
        "{}\n{}",
        first("estimates", "iteration_duration.p95"),
        first("comparisons", "iteration_duration.p95"),
    ));
}

/// Logarithms differ in their last digits from one machine's mathematics library to another's, and
/// the order of fields with the features that `serde_json` is built with.
fn to_nine_digits(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let digits = format!("{:.8e}", number.as_f64().expect("a float"));
            digits.parse::<f64>().expect("what was written as a number").into()
        }
        Value::Array(values) => values.iter().map(to_nine_digits).collect(),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            sorted.into_iter().map(|(name, value)| (name.clone(), to_nine_digits(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn a_maximum_in_the_tables_is_the_largest_of_all_trials() {
    let input = sample::study();
    let documents = documents(&input);
    let json: Value = serde_json::from_str(&text(&documents, "report.json")).expect("JSON");
    let rows = json["estimates"].as_array().expect("a list").iter();
    let row = rows.clone().find(|row| row["measure"] == "iteration_duration.max").expect("a row");
    let values = row["values"].as_array().expect("values").iter().filter_map(|one| one["value"].as_f64());
    let largest = show(values.fold(0.0, f64::max), Unit::Seconds);
    assert!(text(&documents, "report.md").contains(&format!("<br>max {largest} <br>")), "{largest}");
}

#[test]
fn results_have_a_row_for_each_trial_and_measure() {
    let input = sample::study();
    let analysis = analyse(&input);
    let documents = render(&input, &analysis, Gate::NotAsked);
    let results = text(&documents, "results.csv");
    assert_eq!(results.lines().count(), 1 + input.starts.len() * analysis.measures.len());
    assert!(results.starts_with(
        "trial,block,repeat,attempt,position,variant,started_utc,mode,users,connect,validity,measure,unit,"
    ));
    assert!(results.contains(",iterations.rate,per_second,"));
    let comparisons = text(&documents, "comparisons.csv");
    assert_eq!(comparisons.lines().count(), 1 + analysis.comparisons.len() + analysis.floors.len());
}

#[test]
fn the_page_is_well_formed_and_stands_alone() {
    for input in [sample::study(), sample::three_variants(), sample::smallest()] {
        let html = text(&documents(&input), "report.html");
        assert_well_formed(&html);
        assert!(!html.contains("http://") && !html.contains("https://"), "the page must not need a network");
        assert!(!html.contains("NaN") && !html.contains("inf"), "a number is missing");
    }
}

#[test]
fn the_reason_of_a_verdict_is_text_that_is_seen() {
    let input = sample::study();
    let analysis = analyse(&input);
    let html = text(&render(&input, &analysis, Gate::NotAsked), "report.html");
    for verdict in analysis.comparisons.iter().filter_map(|one| one.verdict.as_ref()) {
        let reason = verdict.reason.replace('\'', "&#39;");
        let reason = reason.replace("`plimsoll doctor --aa`", "<code>plimsoll doctor --aa</code>");
        assert!(html.contains(&format!(">{reason}</td>")), "{reason}");
    }
}

#[test]
fn the_milder_rule_of_the_noise_floor_is_named_wherever_the_floor_is_explained() {
    let mut milder = sample::study();
    milder.facts.floor_rule = FloorRule::Beyond;
    let (report, plain) = (text(&documents(&milder), "report.md"), text(&documents(&sample::study()), "report.md"));
    for says in [
        "; differences that lie wholly beyond it stand",
        "than the margin, only differences that lie wholly beyond it stand",
        "there, only differences that lie wholly beyond that stand.",
    ] {
        assert!(report.contains(says), "{says}");
        assert!(!plain.contains(says), "{says}");
    }
}

#[test]
fn a_noise_floor_is_explained_only_where_there_is_one() {
    let with_floor = sample::study();
    let mut without = sample::study();
    // The duplicate is one past the two variants.
    without.plan.with_duplicate = false;
    without.plan.starts.retain(|start| start.variants != [2]);
    without.starts.retain(|result| result.summary.start.variants != [2]);
    let explained = ["each block holds the baseline twice", "neither, or ranks or the noise floor speak against it."];
    for (input, is_explained) in [(with_floor, true), (without, false)] {
        let markdown = text(&documents(&input), "report.md");
        for says in explained {
            assert_eq!(markdown.contains(says), is_explained, "{says}: {markdown}");
        }
        assert_eq!(markdown.contains("neither, or ranks speak against it."), !is_explained, "{markdown}");
    }
}

#[test]
fn a_run_that_was_interrupted_tells_the_fewest_and_the_most_repeats() {
    let mut input = sample::study();
    let whole = text(&documents(&input), "report.md");
    assert!(whole.contains("in trials: 5 repeats of each variant under each condition"), "{whole}");
    // The last repeat ran under the first condition alone.
    input.starts.retain(|result| result.summary.start.repeat < 5 || result.summary.start.condition == 0);
    input.complete = false;
    let documents = documents(&input);
    let markdown = text(&documents, "report.md");
    assert!(markdown.contains("in trials: 4 to 5 repeats of each variant under each condition"), "{markdown}");
    let summary = text(&documents, "summary.md");
    assert!(summary.contains(": 4 to 5 repeats in trials, "), "{summary}");
}

#[test]
fn a_study_in_turns_tells_what_slices_leave_behind_and_how_much_starts_and_turns_differ() {
    let documents = documents(&sample::in_turns());
    keep(&documents, "turns");
    let (report, json) = (text(&documents, "report.md"), text(&documents, "report.json"));
    assert!(report.contains("in iterations, p95 the ratios of turns differ by "), "{report}");
    assert!(
        report.contains("right after a slice of the variant the baseline differs from its other slices by: "),
        "{report}"
    );
    assert!(report.contains("after inputQ "), "{report}");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let comparison = &json["comparisons"][0]["in_turns"];
    for (key, low, high) in [("sd_of_turns", 0.0, 0.1), ("sd_of_starts", 0.0, 0.05)] {
        let value = comparison[key].as_f64().expect(key);
        assert!((low..high).contains(&value), "{key}: {value}");
    }
    let carry_over = &comparison["carry_over"];
    assert_eq!(carry_over["starts"], 5, "{carry_over}");
    let [low, high] = [0, 1].map(|end| carry_over["interval"][end].as_f64().expect("a number"));
    assert!(low < 1.0 && high > 1.0 && high - low < 0.1, "{carry_over}");
    assert!(json["noise_floors"][0]["in_turns"].get("carry_over").is_none(), "{json}");
    // Three slices 0.7 s apart are a turn of 2.1 s; twelve of those leave 11.8 s of 37.
    let lengths = &json["lengths"];
    let seconds = |key: &str| lengths[key].as_f64().expect("a number");
    assert!(
        (seconds("seconds_of_turn") - 2.1).abs() < 0.1 && (seconds("seconds_of_start") - 11.8).abs() < 1.0,
        "{lengths}"
    );
    assert_eq!(lengths["turns"], 12);
    let trials = text(&self::documents(&sample::study()), "report.json");
    assert!(!trials.contains("in_turns") && !trials.contains("seconds_of_turn"));
}

#[test]
fn the_first_chart_is_that_of_what_decides() {
    let first_chart = |measure: &str| {
        let mut input = sample::study();
        input.facts.decide[0].measure = measure.parse().expect("a measure");
        let markdown = text(&documents(&input), "report.md");
        let charts = markdown.split("\n## Charts\n").nth(1).expect("charts");
        charts.lines().find_map(|line| line.strip_prefix("### ")).expect("a chart").to_owned()
    };
    assert_eq!(first_chart("iteration_duration.p95"), "Iterations, connect = per user");
    assert_eq!(first_chart("request_duration.p95"), "Requests, connect = per user");
    assert_eq!(first_chart("iterations.rate"), "Throughput and what it costs, connect = per user");
}

#[test]
fn text_of_the_author_cannot_break_the_page() {
    let html = text(&documents(&sample::study()), "report.html");
    assert!(html.contains("&#60;with k6&#62;") || html.contains("&lt;with k6&gt;"));
}

#[test]
fn a_block_that_was_run_again_is_listed_and_counts_for_nothing() {
    let mut input = sample::study();
    // The last block is a second attempt at the first repeat of its condition.
    let last = input.plan.starts.last().expect("starts").block;
    let again = |start: &mut plimsoll_model::start::Start| {
        if start.block == last {
            (start.repeat, start.attempt) = (1, 2);
        }
    };
    input.plan.starts.iter_mut().for_each(again);
    input.starts.iter_mut().for_each(|result| again(&mut result.summary.start));
    let markdown = text(&documents(&input), "report.md");
    assert_eq!(markdown.matches("| run again |").count(), 3, "a trial of each variant, and the duplicate");
    assert!(markdown.contains("**blocks run again** (note)"), "{markdown}");
}

#[test]
fn a_run_that_did_not_come_to_its_end_passes_no_gate() {
    let mut input = sample::study();
    input.facts.decide.iter_mut().for_each(|decision| decision.margin = 50.0);
    input.facts.floor_rule = FloorRule::Beyond;
    for (complete, said) in [(true, "passed: every variant"), (false, "not passed: the run did not come to its end")] {
        input.complete = complete;
        let documents = render(&input, &analyse(&input), Gate::Asked);
        assert!(text(&documents, "summary.md").contains(said), "{}", text(&documents, "summary.md"));
        let json: Value = serde_json::from_str(&text(&documents, "report.json")).expect("JSON");
        assert_eq!(json["passes_gate"], complete);
    }
}

#[test]
fn what_is_cut_off_is_shaded_over_time() {
    let mut input = sample::study();
    let of_condition = input.starts.iter_mut().filter(|result| result.summary.start.condition == 0);
    of_condition.for_each(|result| result.loads[0].cut = 3);
    let markdown = text(&documents(&input), "report.md");
    assert!(markdown.contains("Shaded: left out, not steady yet."));
    assert!(!text(&documents(&sample::study()), "report.md").contains("Shaded: left out"));
}

#[test]
fn what_decides_is_drawn_over_time() {
    let drawn = |input: &Input| {
        let markdown = text(&documents(input), "report.md");
        let charts = markdown.lines().filter(|line| line.starts_with("![") && line.contains(" over time"));
        charts.map(|line| line[2..].split(", ").next().unwrap_or_default().to_owned()).collect::<BTreeSet<String>>()
    };
    let mut input = sample::study();
    let usual = ["CPU of the system over time", "Memory of the system over time", "Requests per second over time"];
    let with = |more: &[&str]| usual.iter().chain(more).map(|title| (*title).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(drawn(&input), with(&["Iterations over time"]), "iterations decide, and the number of users stays");
    input.facts.decide[0].measure = "request_duration:increment.p95".parse().expect("a measure");
    assert_eq!(drawn(&input), with(&["increment over time"]));
    for load in input.starts.iter_mut().flat_map(|start| &mut start.loads) {
        load.generator.iter_mut().for_each(|row| row.users = row.second.max(0).unsigned_abs());
    }
    assert_eq!(drawn(&input), with(&["increment over time", "Users over time"]), "a ramp");
    assert!(text(&documents(&input), "report.md").contains("Solid: p95 of each second"));
    input.facts.decide[0].measure = "request_duration.p95".parse().expect("a measure");
    let second_name = |row: &LoadSecond| {
        let subject = if row.subject.is_request() { row.subject.renamed("decrement") } else { row.subject.clone() };
        LoadSecond { subject, ..row.clone() }
    };
    for load in input.starts.iter_mut().flat_map(|start| &mut start.loads) {
        let more: Vec<LoadSecond> = load.seconds.iter().map(second_name).collect();
        load.seconds.extend(more);
    }
    let markdown = text(&documents(&input), "report.md");
    assert!(markdown.contains("The mean of each second, over requests of all names."), "{markdown}");
}

#[test]
fn a_report_tells_where_results_come_from_that_plimsoll_did_not_measure() {
    let mut input = sample::study();
    let measured = text(&documents(&input), "report.md");
    assert!(!measured.contains("Origin") && measured.contains("Generator"));
    let (tool, version) = ("k6".to_owned(), Some("v1.8.1".to_owned()));
    input.origin = plimsoll_model::study::Origin::Imported { tool, version };
    let imported = text(&documents(&input), "report.md");
    assert!(imported.contains("results of k6 v1.8.1; of its generator nothing is known"), "{imported}");
    assert!(!imported.contains("a trial is void when the busiest thread"), "{imported}");
}

#[test]
fn every_chart_is_there_as_svg_and_png() {
    let documents = documents(&sample::study());
    let markdown = text(&documents, "report.md");
    let charts: Vec<&Document> = documents.iter().filter(|document| document.path.ends_with(".png")).collect();
    assert!(charts.len() >= 12, "{}", charts.len());
    for chart in charts {
        assert!(chart.bytes.starts_with(b"\x89PNG"), "{}", chart.path);
        assert!(markdown.contains(&format!("({})", chart.path)), "{} is not shown", chart.path);
        let svg = text(&documents, &chart.path.replace(".png", ".svg"));
        assert!(!svg.contains("NaN"), "{}", chart.path);
        assert_well_formed(&svg);
    }
}

/// Every opened tag is closed, in order.
pub(crate) fn assert_well_formed(html: &str) {
    const VOID: [&str; 4] = ["meta", "br", "link", "!DOCTYPE"];
    let body = html.split("<style>").next().expect("a start").to_owned() + html.split("</style>").nth(1).unwrap_or("");
    let mut open: Vec<&str> = Vec::new();
    for tag in body.split('<').skip(1) {
        let (inside, _) = tag.split_once('>').expect("a tag has an end");
        let name = inside.trim_end_matches('/').split_whitespace().next().expect("a tag has a name");
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "in `<{inside}>`");
        } else if !inside.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}
