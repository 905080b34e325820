//! `plimsoll release-report`, and `plimsoll compare` of results that other tools recorded.

use crate::common::{Place, TINY, edited};

/// An answer of Prometheus with one series for each label.
fn matrix(of: &[(&str, f64)]) -> String {
    let series = |(label, value): &(&str, f64)| {
        let values: Vec<String> = (0..20).map(|at| format!("[{},\"{value}\"]", 1_700_000_000 + at * 15)).collect();
        format!(r#"{{"metric":{{"handler":"{label}"}},"values":[{}]}}"#, values.join(","))
    };
    let all: Vec<String> = of.iter().map(series).collect();
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}}"#, all.join(","))
}

#[test]
fn a_bundle_becomes_the_report_of_a_release() {
    let place = Place::with_study(TINY);
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    place.plimsoll(&["release-report", "bundle"]).with(0).prints(&["report  release-report/index.html"]);
    let page = place.read("release-report/README.md");
    for expected in ["# Performance comparison: inputQ against mutex", "## Action Items", "Plimsoll 0.1.0", "Bounded"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let first = place.read("release-report/data/results.csv");
    assert_eq!(first, place.read("bundle/report/results.csv"));
    place.write("release-report/graphs/of-an-earlier-one.png", "");
    place.plimsoll(&["release-report", "bundle"]).with(0);
    assert!(!place.has("release-report/graphs/of-an-earlier-one.png"), "what an earlier report had is gone");
    place.write("release-report/mine.txt", "");
    place.plimsoll(&["release-report", "bundle"]).with(2).says(&["it has mine.txt, which no report has"]);
    place.plimsoll(&["release-report"]).with(2).says(&["<BUNDLES>"]);
    place.plimsoll(&["release-report", "bundle", "nowhere", "--out", "new"]).with(2).says(&["nowhere"]);
    assert!(!place.has("new"), "nothing half-written is left");
}

#[test]
fn a_report_takes_the_place_of_a_report_and_of_nothing_else() {
    let place = Place::empty();
    for version in ["v1", "v2"] {
        place.write(&format!("mine/data/{version}/a.csv"), "label,value\nget,1\n");
    }
    let compare = |says: &str| {
        place.plimsoll(&["compare", "mine/data/v1", "mine/data/v2", "--out", "mine"]).with(2).says(&[says]);
        assert!(place.has("mine/data/v1/a.csv"), "what was there is there");
    };
    compare("it has data and no README.md, without which no report is");
    place.write("mine/README.md", "of mine");
    place.write("mine/index.html", "of mine");
    compare("the results mine/data/v1 lie in it");
    assert_eq!(place.read("mine/README.md"), "of mine");
    for (file, text) in [("README.md", "of mine"), ("index.html", "of mine"), ("data/numbers.csv", "1,2")] {
        place.write(&format!("site/{file}"), text);
    }
    place
        .plimsoll(&["compare", "mine/data/v1", "mine/data/v2", "--out", "site"])
        .with(2)
        .says(&["its README.md does not begin with `# Performance comparison: `"]);
    assert!(place.has("site/data/numbers.csv"), "what was there is there");
}

#[test]
fn a_study_that_compares_nothing_is_no_release() {
    let describing = edited(TINY, "compare = true, baseline = \"mutex\"", "");
    let describing = edited(&describing, "levels = [\"mutex\", \"inputQ\"], ", "levels = [\"mutex\"]");
    let place = Place::with_study(&describing);
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]);
    place.plimsoll(&["release-report", "bundle"]).with(2).says(&["`tiny` compares nothing"]);
}

#[test]
fn results_of_another_tool_are_compared_and_not_judged() {
    let place = Place::empty();
    for (version, factor) in [("v1", 1.0), ("v2", 1.1)] {
        for run in ["run-1", "run-2", "run-3"] {
            let noise = if run == "run-2" { 1.01 } else { 1.0 };
            let of = factor * noise;
            place.write(&format!("{version}/pg/{run}/api_seconds.json"), matrix(&[("get", 0.01 * of), ("put", 0.02)]));
            place.write(&format!("{version}/pg/{run}/rps.csv"), format!("time,value\n0,{of}\n15,{of}\n30,{of}\n"));
        }
        place
            .write(&format!("{version}/pg/run-1/supported_users.csv"), format!("label,value\npg,{}\n", 900.0 * factor));
    }
    place.plimsoll(&["compare", "v1", "v2", "--out", "report"]).with(4).prints(&[
        "Intervals are those of independent runs",
        "whether the load generator kept up",
        "report  report/index.html",
    ]);
    let page = place.read("report/README.md");
    for expected in
        ["| get | 10.0 ms | 11.0 ms | +10.0 % |", "**stands out**", "| pg, pg | 900 | 990 |", "graphs/pg-rps.png"]
    {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(place.read("report/data/changes.csv").starts_with("case,measure,label,first,second,ratio,low,high"));
    place.plimsoll(&["compare", "v1", "v2", "--gate"]).with(2).says(&["--gate takes verdicts"]);
    place.plimsoll(&["compare", "v1", "v2", "--json"]).with(2).says(&["data/changes.csv"]);
}

#[test]
fn what_is_wrong_with_results_of_another_tool_is_told_with_its_place() {
    for (path, text, says) in [
        ("v2/a.csv", "label,value\nget,fast\n", "v2/a.csv: line 2: expected a number, found `fast`"),
        ("v2/a.csv", "name,p99\n", "v2/a.csv: expected a column `value`"),
        ("v2/a.json", "{}", "v2/a.json: expected the answer of Prometheus to `query_range`"),
        ("v2/a.json", "[[[[", "v2/a.json: expected the answer of Prometheus to `query_range`"),
        ("v2/pg/a.csv", "value\n1\n", "v1 and v2 have no case in common: found `` and `pg`"),
        ("v2/pg/deep/er/a.csv", "value\n1\n", "v1 has results of another tool, and v2 has neither a bundle nor"),
        ("v2/a.txt", "1", "v1 has results of another tool, and v2 has neither a bundle nor"),
        ("v2/manifest.jsonl", "", "v1 has results of another tool, and v2 is a bundle"),
    ] {
        let place = Place::empty();
        place.write("v1/a.csv", "label,value\nget,1\n");
        place.write(path, text);
        place.plimsoll(&["compare", "v1", "v2"]).with(2).says(&[says]);
        assert!(!place.has("release-report"), "nothing half-written is left");
    }
}
