//! A study like that of two versions of a database under settings and loads, with results that
//! arithmetic makes up.

use crate::documents::{assert_well_formed, documents, keep, text};
use crate::sample::{self, Noise};
use plimsoll_analysis::Input;
use plimsoll_model::database::{Condition, DatabaseFacts, MixLine, Setting, SqlFacts, StatementFacts};
use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::record::{ErrorKind, Subject, Tally};
use plimsoll_model::result::{GeneratorRow, LoadResult, LoadSecond, StartResult};
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample};
use plimsoll_model::start::Start;
use plimsoll_model::study::Decision;
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::Protocol;
use plimsoll_report::Document;
use serde_json::Value;
use std::sync::LazyLock;

const SECONDS: i64 = 10;
const VERSIONS: [&str; 2] = ["5.0.72", "5.1.30"];
const SETTINGS: [i64; 4] = [1000, 8, 16, 0];
const THREADS: [i64; 4] = [1, 8, 32, 128];

/// Two versions × four settings × four loads: 5.1 gains where concurrency is limited, and nothing
/// where it is not, which is best for both.
fn study() -> Input {
    let mut input = sample::study();
    let numbers = |levels: &[i64]| levels.iter().copied().map(Level::Integer).collect::<Vec<_>>();
    let decide = |text: &str, margin| Decision { measure: text.parse().expect("a measure"), margin };
    input.facts.title = "MySQL 5.1 against 5.0".to_owned();
    input.facts.question = "Is 5.1 faster than 5.0?".to_owned();
    input.facts.factors = vec![
        Factor {
            name: "version".to_owned(),
            levels: VERSIONS.map(|version| Level::Text(version.to_owned())).into(),
            role: Role::Compared { baseline: 0 },
        },
        Factor { name: "concurrency".to_owned(), levels: numbers(&SETTINGS), role: Role::Condition },
        Factor { name: "threads".to_owned(), levels: numbers(&THREADS), role: Role::Condition },
    ];
    input.facts.decide = vec![decide("new_orders.rate", 0.05), decide("request_duration:new_order.p90", 0.1)];
    input.facts.report.measures.clear();
    input.facts.report.axis = Some("threads".to_owned());
    input.facts.protocol = Protocol::Sql;
    input.facts.load = "closed loop, {threads} users, no think time".to_owned();
    input.facts.workload = "TPC-C, 2 warehouses, waits zero on db".to_owned();
    input.facts.systems = Vec::new();
    input.facts.commands = Vec::new();
    input.plan = sample::plan(&input.facts);
    let mut noise = Noise(11);
    input.starts = input.plan.starts.iter().map(|start| result(start, &mut noise)).collect();
    input
}

/// One database, four settings of it that are compared.
fn settings_alone() -> Input {
    let mut input = study();
    input.facts.factors.remove(0);
    input.facts.factors[0].role = Role::Compared { baseline: 0 };
    input.plan = sample::plan(&input.facts);
    let mut noise = Noise(5);
    let result_at = |place: &Start| {
        let setting = place.variants[0] % SETTINGS.len();
        let condition = setting * THREADS.len() + place.condition;
        let spot = Start { variants: vec![0], condition, ..place.clone() };
        sample::placed(result(&spot, &mut noise), place)
    };
    input.starts = input.plan.starts.iter().map(result_at).collect();
    input
}

/// New orders per second.
fn rate(start: &Start) -> f64 {
    let (setting, threads) = (start.condition / THREADS.len(), THREADS[start.condition % THREADS.len()]);
    let peak = 1.0 - (-(threads as f64) / 6.0).exp();
    let (carried, gain) = match SETTINGS[setting] {
        0 => (260.0, 0.99),
        8 => (200.0, if threads > 8 { 1.3 } else { 0.9 }),
        16 => (180.0, 1.25),
        _ => (150.0, 1.4),
    };
    let newer = start.variants == [1];
    peak * carried * if newer { gain } else { 1.0 }
}

fn result(start: &Start, noise: &mut Noise) -> StartResult {
    let mut result = sample::empty_result(start);
    let load = &mut result.loads[0];
    let variant = start.variants[0];
    let threads = THREADS[start.condition % THREADS.len()];
    let rate = rate(start) * noise.around_one(0.01);
    load.summary.timing.window = Nanos(SECONDS as u64 * 1_000_000_000);
    // So that throughput times duration is the number of users.
    let mean = threads as f64 / (rate * 2.289 * 1.15) * 1e9;
    for (step, per_order, length) in [
        ("new_order", 1.0, 1.4),
        ("new_order_rollback", 0.01, 1.3),
        ("payment", 0.956, 0.6),
        ("order_status", 0.089, 0.3),
        ("delivery", 0.089, 2.2),
        ("stock_level", 0.089, 0.9),
    ] {
        record(load, step, rate * per_order, mean * length, noise);
    }
    if start.number.is_multiple_of(7) {
        for subject in [Subject::Iteration, Subject::Request("payment".to_owned())] {
            load.tallies.get_mut(&subject).expect("payments").errors.insert(ErrorKind::LockTimeout, 3);
        }
    }
    load.generator = (0..SECONDS)
        .map(|second| GeneratorRow {
            second,
            users: threads as u64,
            cpu_cores: rate / 700.0,
            ..GeneratorRow::default()
        })
        .collect();
    let capacity = 1.0 - (-(threads as f64) / 6.0).exp();
    for second in 1..=SECONDS {
        let (at, wave) = (second as f64, noise.around_one(0.03));
        let counts = [
            ("commits", 2.22 * rate),
            ("rollbacks", 0.01 * rate),
            ("rows_read", 90.0 * rate),
            ("rows_written", 30.0 * rate),
            ("page_hits", 400.0 * rate),
            ("page_reads", 0.4 * rate),
            ("log_bytes", 9000.0 * rate),
            ("log_syncs", 1.1 * rate),
            ("lock_waits", threads as f64 * 0.08),
            ("deadlocks", 0.0),
            ("Innodb_rows_updated", 12.0 * rate),
        ];
        for (counter, value) in counts {
            let (database, counter) = ("db".to_owned(), counter.to_owned());
            result.databases.push(DatabaseSample { at, database, counter, value: value * wave, variant });
        }
        let (cpu_cores, written_bytes) = (1.45 * capacity * wave, (30_000.0 * rate) as u64);
        let system = "db".to_owned();
        result.processes.push(ProcessSample {
            at,
            system,
            cpu_cores,
            written_bytes,
            variant,
            ..ProcessSample::default()
        });
        let (cpu_cores, iowait_cores) = (1.45 * capacity * wave + rate / 700.0 + 0.03, 0.05);
        result.host.push(HostSample {
            at,
            cpu_cores,
            iowait_cores,
            memory_available: 4_000_000_000,
            ..HostSample::default()
        });
    }
    result.summary.systems[0].databases = vec![facts(start, rate, mean)];
    result
}

fn record(load: &mut LoadResult, step: &str, rate: f64, mean: f64, noise: &mut Noise) {
    let subject = Subject::Request(step.to_owned());
    let count = (rate * SECONDS as f64) as u64;
    let mut tally = Tally::default();
    for index in 0..20 {
        let long = if index == 19 { 4.0 } else { 1.0 };
        let alike = count / 20 + u64::from(index < count % 20);
        tally.service.record_n((mean * long * noise.around_one(0.1).max(0.1)) as u64, alike).expect("in range");
    }
    load.tallies.entry(Subject::Iteration).or_default().merge(&tally);
    for second in 0..SECONDS {
        let count = (count as f64 / SECONDS as f64 * noise.around_one(0.02)).round() as u64;
        for subject in [subject.clone(), Subject::Iteration] {
            let p50 = mean as u64;
            load.seconds.push(LoadSecond { count, mean, p50, p95: p50 * 2, ..LoadSecond::empty(second, subject) });
        }
    }
    load.tallies.insert(subject, tally);
}

fn facts(start: &Start, rate: f64, mean: f64) -> DatabaseFacts {
    let version = start.variants[0] % 2;
    let setting = |name: &str, asked: Option<&str>, in_force: &str, risk: Option<&str>| Setting {
        name: name.to_owned(),
        asked: asked.map(str::to_owned),
        in_force: in_force.to_owned(),
        risk: risk.map(str::to_owned),
    };
    let concurrency = SETTINGS[start.condition / THREADS.len()].to_string();
    let orders = (rate * SECONDS as f64) as u64;
    let statement = |statement: &str, times: u64, share: f64| StatementFacts {
        transaction: "new_order".to_owned(),
        statement: statement.to_owned(),
        runs: orders * times * 12 / 10,
        measured: orders * times,
        total: (orders as f64 * mean * 1.4 * share) as u64,
        longest: (mean * 4.0) as u64,
        p50: Some((mean * share * 1.2 / times as f64) as u64),
        p95: Some((mean * share * 2.0 / times as f64) as u64),
        p99: Some((mean * share * 3.0 / times as f64) as u64),
        failed: 0,
        durations: None,
    };
    let mix = |name: &str, found: f64, low: f64, high: f64| MixLine {
        name: name.to_owned(),
        n: orders,
        found,
        low,
        high,
        holds: found >= low && found <= high,
    };
    let condition = |name: &str, holds: Option<bool>, detail: &str| Condition {
        name: name.to_owned(),
        holds,
        detail: detail.to_owned(),
    };
    let in_time = (!start.number.is_multiple_of(5)).then_some(true);
    DatabaseFacts {
        name: "db".to_owned(),
        version: format!("MySQL {}", VERSIONS[version]),
        transport: "UNIX socket".to_owned(),
        isolation: "REPEATABLE READ".to_owned(),
        data: "initialised and loaded by the run".to_owned(),
        restored: "copied".to_owned(),
        restore_seconds: 0.41 + f64::from(start.number % 3) / 100.0,
        size: Some(412_000_000),
        settings: vec![
            setting("innodb_buffer_pool_size", Some("512M"), "536870912", None),
            setting("innodb_thread_concurrency", Some(&concurrency), &concurrency, None),
            setting(
                "innodb_doublewrite",
                Some("0"),
                "OFF",
                Some("pages that a crash leaves half written cannot be repaired"),
            ),
            setting("innodb_io_capacity", None, ["100", "200"][version], None),
        ],
        work: SqlFacts {
            workload: "TPC-C, 2 warehouses, waits zero".to_owned(),
            isolation: "REPEATABLE READ".to_owned(),
            connections: 8,
            statements: vec![
                statement("select item", 10, 0.21),
                statement("select stock for update", 10, 0.26),
                statement("insert order_line", 10, 0.17),
                statement("COMMIT", 1, 0.19),
            ],
            retries: [(ErrorKind::Deadlock, u64::from(start.number % 4))].into(),
            cancels: u64::from(start.number.is_multiple_of(7)),
            cancels_failed: 0,
            mix: vec![
                mix("remote order lines", 0.0101, 0.0095, 0.0105),
                mix("mean lines of an order", 10.02, 9.5, 10.5),
            ],
        },
        loaded: vec![
            condition("11: count(orders) - count(new_order) = 2100", Some(true), ""),
            condition("1: w_ytd = sum(d_ytd)", Some(true), ""),
            condition("10: c_balance = sum(ol_amount) - sum(h_amount)", None, "the time for conditions was up"),
        ],
        conditions: vec![
            condition("1: w_ytd = sum(d_ytd)", Some(true), ""),
            condition(
                "10: c_balance = sum(ol_amount) - sum(h_amount)",
                in_time,
                if in_time.is_none() { "the time was up" } else { "" },
            ),
        ],
    }
}

/// The section of a report in Markdown.
fn section(markdown: &str, title: &str) -> String {
    let body = markdown.split(&format!("\n## {title}\n")).nth(1).expect("the section");
    body.split("\n## ").next().expect("a text").to_owned()
}

/// Rendered once for all tests.
static REPORT: LazyLock<Vec<Document>> = LazyLock::new(|| documents(&study()));

#[test]
fn the_markdown_of_a_study_of_versions() {
    keep(&REPORT, "database");
    let markdown = text(&REPORT, "report.md");
    assert_eq!(markdown.matches("tpmC").count(), markdown.matches("no tpmC").count(), "nothing is called that");
    assert!(markdown.contains("| **Generator** | a thread for each user on processor 1;"), "calls of SQL block");
    insta::assert_snapshot!(format!("{}\n---\n{}", section(&markdown, "Database"), section(&markdown, "Findings")));
}

#[test]
fn where_settings_are_compared_they_are_the_lines_of_one_chart() {
    let documents = documents(&settings_alone());
    keep(&documents, "database-settings");
    let database = section(&text(&documents, "report.md"), "Database");
    assert!(!database.contains("### Best of the grid"), "there is no second setting to pick from");
    assert!(database.contains("concurrency = 0 carries most"), "{database}");
    let svg = text(&documents, "charts/database-throughput.svg");
    assert_well_formed(&svg);
    for setting in SETTINGS {
        assert!(svg.contains(&format!("concurrency = {setting}")), "{setting}");
    }
}

#[test]
fn the_page_is_well_formed_and_has_a_panel_for_each_setting() {
    let html = text(&REPORT, "report.html");
    assert_well_formed(&html);
    let section = html.split("<section class=\"database\">").nth(1).expect("a section");
    let section = section.split("</section>").next().expect("a section");
    assert!(!section.contains("NaN") && !section.contains(">inf"), "a number is missing");
    let all = section.split("Transactions under all conditions").nth(1).expect("a table of all");
    let rows = all.split("</table>").next().expect("a table").matches("<tr>").count();
    assert_eq!(rows, 1 + SETTINGS.len() * THREADS.len() * VERSIONS.len() * 5, "five transactions of each cell");
    let figure = section.split("<figure>").nth(1).expect("a chart");
    assert_eq!(figure.split("</figure>").next().expect("a chart").matches("<svg").count(), SETTINGS.len());
    let markdown = text(&REPORT, "report.md");
    for chart in ["database-throughput", "database-over-time"] {
        assert_well_formed(&text(&REPORT, &format!("charts/{chart}.svg")));
        assert!(markdown.contains(&format!("charts/{chart}.png")), "{chart}");
    }
}

#[test]
fn everything_that_decides_has_a_chart_over_the_load() {
    let svg = text(&REPORT, "charts/request-duration-new-order-concurrency-8.svg");
    assert!(svg.contains("90th percentile, decides"), "{svg}");
    let svg = text(&REPORT, "charts/throughput-concurrency-8.svg");
    assert!(svg.contains("new orders per minute (NOTPM), decides"), "{svg}");
}

#[test]
fn the_answer_comes_first_then_what_decides_then_details() {
    let order = [
        "class=\"deciding\"",
        "class=\"wide\"",
        ">Database<",
        ">Charts",
        ">Each comparison",
        ">How sure this is",
        ">Findings",
        ">What was run<",
    ];
    let html = text(&REPORT, "report.html");
    let places: Vec<usize> = order.iter().map(|title| html.find(title).expect(title)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.find("class=\"lead\"").is_some_and(|answer| answer < places[0]));
}

#[test]
fn the_statements_of_each_transaction_are_folded_where_there_are_many() {
    let mut input = study();
    for facts in input.starts.iter_mut().flat_map(|start| &mut start.summary.systems[0].databases) {
        let first = facts.work.statements[0].clone();
        let named = |number: u32| StatementFacts {
            transaction: "payment".to_owned(),
            statement: format!("statement {number}"),
            ..first.clone()
        };
        facts.work.statements.extend((1..=3).map(named));
    }
    let markdown = section(&text(&documents(&input), "report.md"), "Database");
    let folded: Vec<&str> = markdown.split("<details><summary>").skip(1).collect();
    let of = |transaction: &str| {
        let start = format!("Statements of {transaction}, ");
        let sheet = folded.iter().find(|sheet| sheet.starts_with(&start)).expect("a table of its statements");
        let sheet = sheet.split("</details>").next().expect("a text");
        sheet.lines().filter(|line| line.starts_with("| ")).map(|line| line.split(" | ").take(2).collect()).collect()
    };
    let rows: Vec<Vec<&str>> = of("payment");
    assert_eq!(rows[0], ["| statement", "variant"]);
    assert_eq!(rows[2..5], [["| statement 1", "5.0.72"], ["| statement 1", "5.1.30"], ["| statement 2", "5.0.72"]]);
    assert_eq!((rows.len(), of("new_order").len()), (2 + 3 * 2, 2 + 4 * 2));
    assert!(!text(&REPORT, "report.md").contains("Statements of new_order"), "all of them stand in the first table");
}

#[test]
fn columns_that_say_nothing_are_left_out_and_lengths_have_their_unit() {
    let markdown = text(&REPORT, "report.md");
    let database = section(&markdown, "Database");
    assert!(!database.contains("| did not hold |"), "every condition that was looked at held");
    assert!(database.contains("| was not looked at | why |"), "{database}");
    assert!(database.contains("- Duration: 10 s measured in each of "), "{database}");
}

#[test]
fn programs_get_every_number() {
    let json: Value = serde_json::from_str(&text(&REPORT, "report.json")).expect("JSON");
    let database = &json["database"];
    assert_eq!(database["cells"].as_array().expect("cells").len(), 2 * SETTINGS.len() * THREADS.len());
    assert_eq!(database["best"].as_array().expect("a row for each load").len(), THREADS.len());
    assert_eq!(database["throughput"], "new_orders.rate");
    let csv = text(&REPORT, "database.csv");
    let columns = csv.lines().next().expect("a head").split(',').count();
    assert_eq!(columns, 10);
    for row in [
        "transaction,,new_order,p90,seconds,",
        "statistic,db,commits,mean,per_second,",
        "setting,db,innodb_doublewrite,in_force,,OFF",
    ] {
        assert!(csv.contains(row), "{row}");
    }
}

#[test]
fn a_study_of_something_else_has_no_database() {
    let documents = documents(&sample::study());
    assert!(!documents.iter().any(|document| document.path.contains("database")));
    assert!(!text(&documents, "report.html").contains("<h2>Database</h2>"));
    let json: Value = serde_json::from_str(&text(&documents, "report.json")).expect("JSON");
    assert!(json.get("database").is_none());
}
