//! The published numbers of five honest studies, typed in as tables: each raises its flaws, and no
//! others.

use plimsoll_audit::{Audit, Finding, Severity, audit, terminal};
use std::path::Path;

fn seed(name: &str) -> Audit {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/seeds").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    audit(&text).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"))
}

fn topics(audit: &Audit, severity: Severity) -> Vec<&'static str> {
    audit.findings.iter().filter(|finding| finding.severity == severity).map(|finding| finding.topic).collect()
}

fn finding<'a>(audit: &'a Audit, topic: &str) -> &'a Finding {
    audit.findings.iter().find(|finding| finding.topic == topic).unwrap_or_else(|| panic!("no finding about {topic}"))
}

/// The lines of the evidence that has the text.
fn lines<'a>(finding: &'a Finding, text: &str) -> &'a [u64] {
    let evidence = finding.evidence.iter().find(|one| one.text.contains(text));
    &evidence.unwrap_or_else(|| panic!("no `{text}` in {finding:#?}")).lines
}

/// One run for each version, and a difference just past the usual variance.
#[test]
fn a_release_comparison_has_no_repeats() {
    let audit = seed("release-comparison.csv");
    assert_eq!(topics(&audit, Severity::Problem), ["no repeats"]);
    assert_eq!(topics(&audit, Severity::Caution), ["usual variance"]);
    let repeats = finding(&audit, "no repeats");
    assert!(repeats.sentence.starts_with("3 claims rest on too few runs, one of each variant"), "{repeats:#?}");
    let needed = "takes 4 repeats if the usual ±5 % are two standard deviations, 9 if one";
    assert_eq!(lines(repeats, needed), [6]);
    assert_eq!(lines(repeats, "13185 → 13967, +5.93%"), [7]);
    assert_eq!(lines(repeats, "all bounded tests, both, called the same, n = 1"), [8]);
    let past = finding(&audit, "usual variance");
    assert_eq!(past.evidence.len(), 2);
    assert_eq!(lines(past, "MySQL: 10081 → 10652, +5.66%, with a usual variance of ±5 %"), [6]);
}

/// A cell that cannot be, memory taken for a disk and a network, and modes that nobody told.
#[test]
fn a_storage_benchmark_reads_memory() {
    let audit = seed("backing-storage.csv");
    assert_eq!(topics(&audit, Severity::Problem), ["impossible numbers", "page cache"]);
    assert_eq!(topics(&audit, Severity::Caution), ["no repeats", "storage mode", "mixture", "repeated number"]);
    let impossible = finding(&audit, "impossible numbers");
    assert_eq!(impossible.evidence.len(), 1);
    assert_eq!(lines(impossible, "mean 70.66 s and median 80.50 s lie 9.84 s apart, with an sd of 7.05 s"), [18]);
    let cache = finding(&audit, "page cache");
    assert!(cache.sentence.contains("at the same speed from different backends"), "{cache:#?}");
    assert_eq!(lines(cache, "10GB, read: the same speed from Local, 6.41 GB/s, and from EFS, 6.45 GB/s"), [36, 37]);
    assert!(cache.evidence.iter().all(|one| !one.text.contains("S3")), "S3 reads are no memory: {cache:#?}");
    assert_eq!(lines(finding(&audit, "mixture"), "mean 7.83 ms, median 1.68 ms, sd 18.12 ms"), [28]);
    assert_eq!(lines(finding(&audit, "repeated number"), "sd 166.32 ms"), [11, 13]);
    assert_eq!(
        lines(finding(&audit, "storage mode"), "neither called warm nor cold nor direct"),
        (21..=38).collect::<Vec<_>>()
    );
}

/// A connection for each iteration is what is timed, and users are not all at work.
#[test]
fn a_comparison_of_patterns_times_connections() {
    let audit = seed("design-patterns.csv");
    assert_eq!(topics(&audit, Severity::Problem), ["what is timed"]);
    assert_eq!(topics(&audit, Severity::Caution), ["no repeats", "Little's law"]);
    let timed = finding(&audit, "what is timed");
    assert_eq!(lines(timed, "InputQ, iteration_duration, 10 users: the call takes 719.94µs of 2.19ms, 33 %"), [5]);
    assert_eq!(lines(timed, "InputQ, iteration_duration, 1,000 users: the call takes 2.31ms of 91.98ms, 2.5 %"), [15]);
    let little = finding(&audit, "Little's law");
    assert_eq!(lines(little, "91.98ms keeps 821 of 1,000 users busy (82 %)"), [15]);
    assert!(little.evidence.iter().all(|one| one.lines[0] > 8), "10 and 100 users are all at work: {little:#?}");
    let repeats = finding(&audit, "no repeats");
    assert_eq!(lines(repeats, "9.35ms → 10.33ms, +10.5 %, n = 1"), [7, 8]);
}

/// The same setting for both and the best of each, and settings that buy speed with safety.
#[test]
fn a_grid_of_settings_has_two_answers() {
    let audit = seed("regression-over-a-setting.csv");
    assert_eq!(topics(&audit, Severity::Problem), ["best of each"]);
    assert_eq!(topics(&audit, Severity::Caution), ["durability"]);
    let best = finding(&audit, "best of each");
    for setting in ["8", "16", "1000"] {
        lines(
            best,
            &format!("the same for both, innodb_thread_concurrency = {setting}: 21-41%, called an improvement"),
        );
    }
    assert_eq!(lines(best, "the best of each, innodb_thread_concurrency = 0: called a regression"), [12]);
    let durability = finding(&audit, "durability");
    assert_eq!(durability.evidence.len(), 2);
    assert_eq!(lines(durability, "innodb_doublewrite = 0: pages that a crash leaves half written"), [9, 10, 11, 12]);
    lines(durability, "innodb_support_xa = 0: binary log and tables can disagree");
}

/// A rise called an improvement, and a capacity read off one ramp while the data grows.
#[test]
fn a_capacity_is_read_off_one_ramp() {
    let audit = seed("capacity-of-a-service.csv");
    assert_eq!(topics(&audit, Severity::Problem), ["wrong direction", "no repeats", "capacity from one ramp"]);
    assert_eq!(topics(&audit, Severity::Caution), ["loopback"]);
    let direction = finding(&audit, "wrong direction");
    assert_eq!(direction.evidence.len(), 1);
    assert_eq!(lines(direction, "Fletcher CPU: 13% → 20%, +54% is called an improvement, and lower is better"), [11]);
    let capacity = finding(&audit, "capacity from one ramp");
    assert!(capacity.sentence.contains("while the data set grows"), "{capacity:#?}");
    assert_eq!(lines(capacity, "Optimal Users: 950 → 1,300, ramp, n = 1"), [8]);
    assert_eq!(lines(capacity, "this is the largest load that was tried"), [12]);
    lines(capacity, "0 -> 2500 plans");
}

/// What the documentation shows is what the program prints.
#[test]
fn the_documentation_shows_what_is_printed() {
    let printed = terminal("capacity.csv", &seed("capacity-of-a-service.csv"));
    let documentation = include_str!("../../../../../docs/audit.md");
    let shown = printed.lines().map(|line| format!("    {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n");
    assert!(documentation.contains(&shown), "write it anew:\n{shown}");
    let table = include_str!("seeds/capacity-of-a-service.csv");
    let typed = table.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
    assert!(documentation.contains(&typed), "write it anew:\n{typed}");
}
