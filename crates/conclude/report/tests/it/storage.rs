//! A storage study like that of three back ends by size, with results that arithmetic makes up.

use crate::documents::{assert_well_formed, documents, keep, text};
use crate::sample::{self, Noise};
use plimsoll_analysis::{Input, analyse};
use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::record::{ErrorKind, Part, Subject, Tally};
use plimsoll_model::result::{LoadResult, StartResult, Work};
use plimsoll_model::start::{Start, Validity};
use plimsoll_model::storage::{FileSystem, Operation, Residency, StorageFacts, StorageStep};
use plimsoll_model::workload::Protocol;
use serde_json::Value;

const BACK_ENDS: [&str; 3] = ["local", "nfs", "s3"];

/// Label, bytes, operations of a trial, and the mean of writes and reads in milliseconds on each
/// back end.
type Size = (&'static str, u64, usize, [f64; 3], [f64; 3]);

const SIZES: [Size; 6] = [
    ("100KB", 100_000, 400, [0.57, 34.5, 181.0], [0.05, 0.66, 28.5]),
    ("1MB", 1_000_000, 240, [2.1, 57.4, 277.0], [0.18, 0.82, 27.0]),
    ("10MB", 10_000_000, 60, [18.2, 180.0, 469.0], [1.27, 1.9, 108.0]),
    ("100MB", 100_000_000, 12, [585.0, 390.0, 1090.0], [16.5, 17.0, 1050.0]),
    ("1GB", 1_000_000_000, 3, [7420.0, 3050.0, 10_650.0], [167.9, 168.0, 10_490.0]),
    ("10GB", 10_000_000_000, 1, [70_660.0, 26_540.0, 109_050.0], [1570.0, 1560.0, 150_660.0]),
];

fn study() -> Input {
    let mut input = sample::study();
    let texts = |texts: &[&str]| texts.iter().map(|text| Level::Text((*text).to_owned())).collect::<Vec<_>>();
    let labels = SIZES.map(|size| size.0);
    input.facts.title = "Backing storage".to_owned();
    input.facts.question = "Which back end is fastest for which size?".to_owned();
    input.facts.factors = vec![
        Factor { name: "backend".to_owned(), levels: texts(&BACK_ENDS), role: Role::Compared { baseline: 0 } },
        Factor { name: "size".to_owned(), levels: texts(&labels), role: Role::Condition },
    ];
    input.facts.report = plimsoll_model::study::ReportSpec::default();
    input.facts.decide.truncate(1);
    input.facts.decide[0].measure = "iteration_duration.avg".parse().expect("a measure");
    input.facts.protocol = Protocol::Storage;
    input.facts.load = "closed loop, 1 user, no think time".to_owned();
    input.facts.workload = "storage: write, then read objects of {size} in {backend}".to_owned();
    input.facts.systems = Vec::new();
    input.facts.commands = Vec::new();
    input.facts.mean_think = None;
    input.plan = sample::plan(&input.facts);
    let mut noise = Noise(11);
    input.starts = input.plan.starts.iter().map(|start| result(start, &mut noise)).collect();
    input
}

fn result(start: &Start, noise: &mut Noise) -> StartResult {
    let mut result = sample::empty_result(start);
    let load = &mut result.loads[0];
    let back_end = start.variants[0] % BACK_ENDS.len();
    let (_, bytes, count, writes, reads) = SIZES[start.condition];
    for (operation, mean) in [(Operation::Write, writes[back_end]), (Operation::Read, reads[back_end])] {
        let of_trial = mean * noise.around_one(0.03);
        let mut times: Vec<f64> = (0..count).map(|_| of_trial * noise.around_one(0.1)).collect();
        if (back_end, operation, start.repeat) == (1, Operation::Read, 2) {
            times[0] *= 60.0; // the first one came from the server's disk
        }
        record(load, back_end, operation, &times);
    }
    load.summary.work = Work::Storage(Box::new(facts(back_end, bytes)));
    result
}

fn record(load: &mut LoadResult, back_end: usize, operation: Operation, milliseconds: &[f64]) {
    let name = operation.name().to_owned();
    let part = |part, name: &str| Subject::Part(part, name.to_owned());
    for time in milliseconds {
        let mut add = |subject: Subject, share: f64| {
            let tally: &mut Tally = load.tallies.entry(subject).or_default();
            tally.service.record((time * share * 1e6) as u64).expect("in range");
        };
        add(Subject::Iteration, 1.0);
        add(Subject::Request(name.clone()), 1.0);
        if back_end == 2 {
            (0..3).for_each(|_| add(part(Part::Subrequest, &name), 0.33));
        } else {
            [(Part::Open, 0.02), (Part::Data, 0.95), (Part::Close, 0.03)]
                .into_iter()
                .for_each(|(one, share)| add(part(one, &name), share));
        }
    }
    if back_end == 2 {
        let tally = load.tallies.get_mut(&Subject::Request(name.clone())).expect("operations");
        milliseconds.iter().for_each(|time| tally.first_byte.record((time * 2e5) as u64).expect("in range"));
        tally.errors.insert(ErrorKind::Status, u64::from(milliseconds.len() > 300));
        let requests = load.tallies.get_mut(&part(Part::Subrequest, &name)).expect("requests");
        requests.errors.insert(ErrorKind::Status, milliseconds.len() as u64 / 100);
    }
}

fn facts(back_end: usize, size: u64) -> StorageFacts {
    let step = |operation: Operation| StorageStep { name: operation.name().to_owned(), operation };
    let disk = FileSystem {
        kind: "ext4".to_owned(),
        source: "/dev/nvme0n1p1".to_owned(),
        options: "rw,relatime".to_owned(),
        mount_point: "/data".to_owned(),
        ..FileSystem::default()
    };
    let place = ["/data/objects", "nfs://127.0.0.1:11111/", "http://127.0.0.1:7070/plimsoll"][back_end];
    StorageFacts {
        name: BACK_ENDS[back_end].to_owned(),
        kind: ["directory", "NFSv3 client", "S3"][back_end].to_owned(),
        place: place.to_owned(),
        file_system: (back_end == 0).then_some(disk),
        on_this_machine: true,
        page_cache: back_end == 0,
        mode: "app".to_owned(),
        payload: "zeros".to_owned(),
        size,
        block: 1 << 20,
        details: if back_end == 2 { vec!["multipart, one part of 100MiB at a time".to_owned()] } else { Vec::new() },
        steps: vec![step(Operation::Write), step(Operation::Read)],
        residency: (back_end == 0).then_some(Residency { pages: 1000, cached: 1000 }),
        left_behind: Vec::new(),
    }
}

/// The section of a report in Markdown.
fn section(markdown: &str, title: &str) -> String {
    let body = markdown.split(&format!("\n## {title}\n")).nth(1).expect("the section");
    body.split("\n## ").next().expect("a text").to_owned()
}

#[test]
fn the_markdown_of_a_storage_study() {
    let documents = documents(&study());
    keep(&documents, "storage");
    let markdown = text(&documents, "report.md");
    let results = section(&markdown, "Results under each condition");
    assert!(results.contains("| subrequests | ") && !results.contains("min – "), "{results}");
    insta::assert_snapshot!(format!("{}\n---\n{}", section(&markdown, "Storage"), section(&markdown, "Findings")));
}

#[test]
fn the_page_has_a_table_and_a_chart_for_each_operation() {
    let documents = documents(&study());
    let html = text(&documents, "report.html");
    assert_well_formed(&html);
    assert!(!html.contains("NaN") && !html.contains("inf "), "a number is missing");
    let storage = html.split("<section class=\"storage\">").nth(1).expect("a section");
    let storage = storage.split("</section>").next().expect("a section");
    assert_eq!((storage.matches("<table").count(), storage.matches("<figure>").count()), (2, 2));
    for operation in ["write", "read"] {
        let path = format!("charts/storage-{operation}.svg");
        assert_well_formed(&text(&documents, &path));
        assert!(text(&documents, "report.md").contains(&path.replace(".svg", ".png")));
    }
}

#[test]
fn a_study_of_something_else_has_no_storage() {
    let documents = documents(&sample::study());
    assert!(!documents.iter().any(|document| document.path.contains("storage")));
    assert!(!text(&documents, "report.html").contains("<h2>Storage</h2>"));
    let json: Value = serde_json::from_str(&text(&documents, "report.json")).expect("JSON");
    assert!(json.get("storage").is_none());
}

#[test]
fn programs_get_every_cell() {
    let input = study();
    let documents = documents(&input);
    let json: Value = serde_json::from_str(&text(&documents, "report.json")).expect("JSON");
    let cell = &json["storage"]["tables"][0]["sizes"][0]["cells"][2];
    assert_eq!(cell["variant"], "s3");
    assert_eq!(cell["result"]["operations"], 2000);
    assert_eq!(cell["result"]["subrequests"]["per_operation"], 3.0);
    let csv = text(&documents, "storage.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * SIZES.len() * BACK_ENDS.len());
    assert!(csv.lines().nth(1).expect("a row").starts_with("write,write,,100KB,100000,local,2000,5,0,"));
}

#[test]
fn missing_trials_and_a_single_back_end_have_reports() {
    let mut input = study();
    for result in input.starts.iter_mut().filter(|result| result.summary.start.variants == [1]) {
        result.summary.validity = Validity::Failed(vec!["the mount hung".to_owned()]);
    }
    input.starts.retain(|result| result.summary.start.repeat < 3);
    let broken = documents(&input);
    keep(&broken, "storage-broken");
    let markdown = section(&text(&broken, "report.md"), "Storage");
    assert!(markdown.contains("| – <br>no trial counts |"), "{markdown}");
    assert!(markdown.contains("no interval: 2 repeats give a range"), "{markdown}");
    assert_well_formed(&text(&broken, "report.html"));

    let mut single = study();
    single.facts.factors[0].levels.truncate(1);
    single.plan = sample::plan(&single.facts);
    single.plan.starts.retain(|start| start.condition == 0);
    let mut noise = Noise(3);
    single.starts = single.plan.starts.iter().map(|start| result(start, &mut noise)).collect();
    assert_eq!(analyse(&single).storage.expect("storage").tables[0].rows.len(), 1);
    assert_well_formed(&text(&documents(&single), "report.html"));
}
