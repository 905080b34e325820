//! Two runs of the study against each other.

use crate::sample;
use plimsoll_analysis::cross_run::{ComparedRun, CrossRunComparison, ResolvedCell, compare_runs};
use plimsoll_analysis::{Input, analyse};
use plimsoll_model::load::{LoadModel, LoadProfile, Profile, Stop, Think};
use plimsoll_model::record::histogram;
use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, StopSignal, SystemSpec};
use plimsoll_model::workload::{Connect, HttpStep, Steps, Target, Workload};
use plimsoll_report::cross_run::{json, markdown, terminal};
use std::collections::BTreeMap;
use std::time::Duration;

/// The same study a day later, with trials that take longer by about this factor, and those of
/// inputQ by another one on top.
fn rerun(factor: f64, of_inputq: f64) -> Input {
    let mut input = sample::study();
    for (index, start) in input.starts.iter_mut().enumerate() {
        start.summary.timing.started_unix_ms += 86_400_000;
        let noise = 1.0 + (index * 7 % 11) as f64 / 2000.0;
        let factor = if start.summary.start.variants == [1] { factor * of_inputq } else { factor };
        for tally in start.loads[0].tallies.values_mut() {
            let mut longer = histogram();
            for value in tally.service.iter_recorded() {
                let nanoseconds = value.value_iterated_to() as f64 * factor * noise;
                longer.record_n(nanoseconds as u64, value.count_at_value()).expect("in range");
            }
            tally.service = longer;
        }
    }
    input
}

/// The cells of a run in which inputQ was started with this argument.
fn cells(input: &Input, argument: &str) -> Vec<ResolvedCell> {
    let second = Duration::from_secs(1);
    let mut cells = Vec::new();
    for condition in &input.plan.conditions {
        for variant in &input.plan.variants {
            cells.push(ResolvedCell {
                variant: variant.clone(),
                condition: condition.clone(),
                systems: vec![SystemSpec {
                    name: "counter".to_owned(),
                    on: None,
                    dir: "server".into(),
                    build: None,
                    start: command(&variant.label(), argument),
                    containers: None,
                    inherit: None,
                    env: [].into(),
                    ready: Ready { probe: Probe::Started, within: second },
                    stop: StopPolicy { signal: StopSignal::Term, grace: second },
                    cpus: None,
                    version: None,
                    port: Some(1),
                    waits: BTreeMap::new(),
                    metrics: None,
                    files: None,
                }],
                databases: Vec::new(),
                workload: Workload {
                    target: Some(Target { host: "127.0.0.1".to_owned(), port: 1, tls: None }),
                    connect: Connect::PerUser,
                    timeout: second,
                    steps: Steps::Http(vec![HttpStep {
                        name: "call".to_owned(),
                        method: "GET".to_owned(),
                        path: "/".to_owned(),
                        headers: Vec::new(),
                        body: Vec::new(),
                        status: None,
                    }]),
                },
                load: LoadProfile {
                    model: LoadModel::Closed { users: Profile::constant(10.0), think: Think::Constant(second) },
                    warmup: second,
                    stop: Stop::After(second),
                    drain: second,
                },
            });
        }
    }
    cells
}

fn command(mode: &str, argument: &str) -> CommandLine {
    let argument = if mode == "inputQ" { argument } else { "-plain" };
    CommandLine(["./counter", "-mode", mode, argument].map(str::to_owned).into())
}

/// Two runs, with an argument that each started inputQ with.
fn compared(runs: [(&Input, &str); 2]) -> CrossRunComparison {
    let analyses = runs.map(|(input, _)| analyse(input));
    let run = |index: usize| {
        let (input, argument) = runs[index];
        ComparedRun {
            name: ["runs/monday", "runs/tuesday"][index].to_owned(),
            input,
            analysis: &analyses[index],
            cells: Ok(cells(input, argument)),
            plimsoll: "0.1.0".to_owned(),
        }
    };
    compare_runs(&run(0), &run(1)).expect("runs of one study")
}

/// A new version, which is slower.
fn new_version() -> CrossRunComparison {
    let (first, mut second) = (sample::study(), rerun(1.2, 1.0));
    second.versions[0].sha256 = Some("f".repeat(64));
    second.versions[0].version = Some("counter 1.1, grpc-go 1.71".to_owned());
    compared([(&first, "-buffer 10"), (&second, "-buffer 10")])
}

/// The same version on a machine that is not quite the same, started otherwise.
fn other_machine() -> CrossRunComparison {
    let (first, mut second) = (sample::study(), rerun(1.0, 1.0));
    second.host.kernel = Some("Linux 6.12.0 x86_64".to_owned());
    second.plan.seed = 7;
    compared([(&first, "-buffer 10"), (&second, "-buffer 10 | 20")])
}

/// The same program on the same machine, which has become slower; inputQ was started otherwise.
fn other_setting() -> CrossRunComparison {
    let (first, second) = (sample::study(), rerun(1.3, 0.8));
    compared([(&first, "-buffer 10"), (&second, "-buffer 1000")])
}

#[test]
fn where_drift_falls_out_the_ratios_to_the_baseline_are_shown() {
    insta::assert_snapshot!(terminal(&other_setting()));
    let text = markdown(&other_setting());
    let decides = text.split("## Everything else").next().and_then(|text| text.split("## What decides").nth(1));
    insta::assert_snapshot!(decides.expect("the middle"));
}

/// The same program on the same machine, which has become slower.
fn nothing_changed() -> CrossRunComparison {
    let (first, second) = (sample::study(), rerun(1.3, 1.0));
    compared([(&first, "-buffer 10"), (&second, "-buffer 10")])
}

#[test]
fn where_nothing_differs_the_baseline_has_drifted_and_nothing_is_worse() {
    let text = terminal(&nothing_changed());
    assert!(!text.contains("worse") && !text.contains("better"), "{text}");
    insta::assert_snapshot!(text);
    for text in [markdown(&nothing_changed()), json(&nothing_changed())] {
        assert!(!text.contains("worse") && !text.contains("better"), "{text}");
    }
}

#[test]
fn the_terminal_shows_what_it_is_about_and_the_verdicts() {
    insta::assert_snapshot!(terminal(&new_version()));
    insta::assert_snapshot!(terminal(&other_machine()));
}

#[test]
fn the_markdown_has_every_table() {
    insta::assert_snapshot!(markdown(&new_version()));
    let other = markdown(&other_machine());
    let differs = other.split("## What decides").next().expect("a beginning");
    insta::assert_snapshot!(differs);
}

#[test]
fn markdown_tables_have_as_many_cells_in_each_row() {
    let text = markdown(&other_machine());
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = text.lines().collect();
    let rows = lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with('|')));
    let mut count = 0;
    for pair in rows {
        assert_eq!(cells(pair[0]), cells(pair[1]), "{}\n{}", pair[0], pair[1]);
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn lines_fit_a_terminal() {
    for compared in [new_version(), other_machine(), nothing_changed()] {
        let text = terminal(&compared);
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 130).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}

#[test]
fn the_json_is_versioned_and_has_what_was_found() {
    let report: serde_json::Value = serde_json::from_str(&json(&new_version())).expect("JSON");
    assert_eq!(report["format"], 1);
    assert_eq!(report["basis"], "values");
    assert_eq!(report["differences"][0]["kind"], "system");
    assert_eq!(report["first"]["bundle"], "runs/monday");
    let row = &report["comparisons"][0];
    assert_eq!((&row["measure"], &row["verdict"]["outcome"]), (&"iteration_duration.p95".into(), &"worse".into()));
    assert_eq!(row["first"].as_array().expect("values").len(), 5);
    assert!(row["change"]["interval"][0].as_f64().expect("a number") > 1.1);
    assert!(!report["exploratory"].as_array().expect("rows").is_empty());
}
