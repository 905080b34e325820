//! The formats' own test cases: those of OpenMetrics and of Prometheus' client, which `./test` takes from their modules for Go.
//! Nothing of them stands in this repository.

use plimsoll_telemetry::exposition::{Line, lines};
use plimsoll_testkit::skipped;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Kinds of cases that OpenMetrics refuses and that are read, with the reason.
const READ_ALL_THE_SAME: [(&str, &[&str]); 3] = [
    (
        "Prometheus' own format has blanks, empty lines, a last comma, and no mark of the end",
        &[
            "bad_value",
            "bad_blank_line",
            "bad_missing_or_extra_commas",
            "bad_invalid_labels",
            "bad_type",
            "bad_no_eof",
            "bad_exemplars",
        ],
    ),
    (
        "timestamps, exemplars, help and units are not used, nor is the order of what is told of a family",
        &[
            "bad_timestamp",
            "bad_exemplar_timestamp",
            "bad_exemplar_complex_chars",
            "bad_exemplars_on_unallowed_metric_types",
            "bad_exemplars_on_unallowed_samples",
            "bad_help",
            "bad_unit",
            "bad_metadata",
            "bad_repeated_metadata",
            "bad_metadata_in_wrong_place",
            "bad_grouping_or_ordering",
        ],
    ),
    (
        "what values mean is not the reader's concern: counts that fall and buckets that do are seen where they are used",
        &[
            "bad_counter_values",
            "bad_histograms",
            "bad_info_and_stateset_values",
            "bad_stateset_info_values",
            "bad_clashing_names",
            "bad_missing_or_invalid_labels_for_a_type",
        ],
    ),
];

/// The same of Prometheus' client: labels `quantile` and `le` that are no numbers, a timestamp with a fraction, a type or a help
/// that is told twice, and a type that is told after a sample.
const READ_OF_PROMETHEUS: [&str; 6] = ["7", "9", "12", "13", "14", "19"];

/// The folder of a module's test cases; none, with the reason, where it is not there.
fn folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        skipped(format!("{variable} names no folder with test cases of the format; `./test` fetches them"));
    }
    folder
}

/// The number of samples in a text, or what is wrong with it.
fn samples(text: &[u8]) -> Result<usize, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let mut samples = 0;
    for line in lines(text) {
        samples += usize::from(matches!(line.map_err(|fault| fault.to_string())?, Line::Sample(_)));
    }
    Ok(samples)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn all_that_openmetrics_takes_is_read_and_the_rest_has_a_reason() {
    let Some(folder) = folder("PLIMSOLL_OPENMETRICS_CASES") else { return };
    let with_reason: Vec<&str> = READ_ALL_THE_SAME.iter().flat_map(|(_, kinds)| *kinds).copied().collect();
    let (mut good, mut refused) = (0, 0);
    for case in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let name = name_of(&case);
        let about: Value = serde_json::from_slice(&fs::read(case.join("test.json")).unwrap()).unwrap();
        let text = fs::read(case.join(about["file"].as_str().unwrap())).unwrap();
        match (about["shouldParse"].as_bool().unwrap(), samples(&text)) {
            (true, Ok(_)) => good += 1,
            (true, Err(fault)) => panic!("{name}: {fault}\n{}", String::from_utf8_lossy(&text)),
            (false, Err(_)) => refused += 1,
            (false, Ok(_)) => {
                let kind = name.trim_end_matches(|end: char| end.is_ascii_digit()).trim_end_matches('_');
                assert!(with_reason.contains(&kind), "{name} is read:\n{}", String::from_utf8_lossy(&text));
            }
        }
    }
    assert!(good >= 40 && refused >= 50, "{good} read, {refused} refused");
}

#[test]
fn all_that_the_client_of_prometheus_takes_is_read_and_the_rest_has_a_reason() {
    let Some(folder) = folder("PLIMSOLL_PROMETHEUS_CASES") else { return };
    let mut good = 0;
    for path in fs::read_dir(folder.join("fuzz/corpus")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = name_of(&path);
        match (name.strip_prefix("from_test_parse_error_"), samples(&fs::read(&path).unwrap())) {
            (None, Ok(_)) => good += 1,
            (None, Err(fault)) => panic!("{name}: {fault}"),
            (Some(_), Err(_)) => {}
            (Some(number), Ok(_)) => assert!(READ_OF_PROMETHEUS.contains(&number), "{name} is read"),
        }
    }
    assert!(good >= 6, "{good} read");
    let real = samples(&fs::read(folder.join("testdata/text")).unwrap()).unwrap();
    assert!(real > 100, "{real} samples of a real server");
}
