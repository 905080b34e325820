//! Answers of Prometheus to `query_range`, as JSON: a matrix of series, each with its labels and its samples.
//!
//! *Source: the HTTP API of Prometheus, range queries and range vectors.*

use crate::recorded::{Line, Recorded};
use crate::table::{in_order, is_instant, number};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// The content of a file; the error says what was expected and found.
pub(crate) fn parse(bytes: &[u8]) -> Result<Recorded, String> {
    let answer: Answer = serde_json::from_slice(bytes)
        .map_err(|error| format!("expected the answer of Prometheus to `query_range`: {error}"))?;
    if answer.status != "success" {
        let why = answer.error.map(|error| format!(": {error}")).unwrap_or_default();
        return Err(format!("the query did not succeed, its status is `{}`{why}", answer.status));
    }
    let data = answer.data.ok_or("expected `data`, found none")?;
    if data.result_type != "matrix" {
        return Err(format!(
            "expected samples over time, which are a `matrix`, found a `{}`: ask `query_range`",
            data.result_type
        ));
    }
    let all: Vec<Series> = serde_json::from_value(data.result).map_err(|error| format!("in `data.result`: {error}"))?;
    let mut lines = BTreeMap::new();
    for Series { metric, values } in all {
        let label = metric.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<String>>().join(", ");
        let mut line = Line { labels: metric, ..Line::default() };
        for (at, value) in values {
            if !is_instant(at) {
                return Err(format!("series `{label}`: expected an instant in seconds, found {at}"));
            }
            line.take(at, number(&value).map_err(|problem| format!("series `{label}`: {problem}"))?);
        }
        if lines.insert(label.clone(), line).is_some() {
            return Err(format!("two series have the labels `{label}`"));
        }
    }
    name_series(&mut [&mut lines]);
    // An answer without series, or without numbers, is one: nothing of the kind happened.
    Ok(Recorded::OverTime(in_order(lines)))
}

/// The labels that Prometheus adds to each series. They tell where one comes from, and not what it is.
pub(crate) const OF_TARGET: [&str; 3] = ["__name__", "instance", "job"];

/// Names the series of one measure in several files, by the labels in which those of a file differ. A series that is alone in
/// all files is named by what it has in each of them, beyond the labels of its target: a label that is another one from file
/// to file, as that of a version or of a pod, makes no other series of it.
pub(crate) fn name_series(files: &mut [&mut BTreeMap<String, Line>]) {
    let mut names: BTreeSet<String> = files.iter().flat_map(|lines| telling(lines)).map(str::to_owned).collect();
    if names.is_empty() {
        let all = files.iter().flat_map(|lines| lines.values()).flat_map(|line| line.labels.keys());
        names = all.filter(|name| !OF_TARGET.contains(&name.as_str())).cloned().collect();
        names.retain(|name| !differs(name, files.iter().flat_map(|lines| lines.values())));
    }
    for lines in files {
        let named = std::mem::take(*lines).into_values();
        **lines = named.map(|line| (in_words(&line.labels, names.iter().map(String::as_str)), line)).collect();
    }
}

/// The names of the labels in which the series of a file differ.
fn telling(lines: &BTreeMap<String, Line>) -> BTreeSet<&str> {
    let names = lines.values().flat_map(|line| line.labels.keys()).map(String::as_str);
    names.filter(|name| differs(name, lines.values())).collect()
}

/// True if the label is not the same on all of these lines.
pub(crate) fn differs<'a>(name: &str, mut lines: impl Iterator<Item = &'a Line>) -> bool {
    let first = lines.next().and_then(|line| line.labels.get(name));
    lines.any(|line| line.labels.get(name) != first)
}

/// `createPost` where one label tells, `handler=createPost, code=200` where several do.
fn in_words<'a>(labels: &BTreeMap<String, String>, names: impl Iterator<Item = &'a str>) -> String {
    let value = |name: &str| labels.get(name).map(String::as_str).unwrap_or_default();
    match names.collect::<Vec<&str>>()[..] {
        [one] => value(one).to_owned(),
        ref several => several.iter().map(|name| format!("{name}={}", value(name))).collect::<Vec<String>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(result: &str) -> Result<Recorded, String> {
        parse(format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#).as_bytes())
    }

    #[test]
    fn series_are_told_apart_by_the_labels_that_differ() {
        let two = r#"[{"metric":{"__name__":"api","job":"chat","handler":"get"},"values":[[1.5,"2"],[2.5,"NaN"],[3.5,"+Inf"]]},
                      {"metric":{"__name__":"api","job":"chat","handler":"put"},"values":[[1.5,"4e-3"]]}]"#;
        let Ok(Recorded::OverTime(lines)) = matrix(two) else { panic!("over time") };
        assert_eq!((&lines["get"].points[..], &lines["get"].no_number[..]), (&[(1.5, 2.0)][..], &[2.5, 3.5][..]));
        assert_eq!(lines["put"].points, [(1.5, 0.004)]);
        let several =
            r#"[{"metric":{"a":"1","b":"x"},"values":[[0,"1"]]},{"metric":{"a":"2","b":"y"},"values":[[0,"1"]]}]"#;
        let Ok(Recorded::OverTime(lines)) = matrix(several) else { panic!("over time") };
        assert_eq!(lines.keys().collect::<Vec<_>>(), ["a=1, b=x", "a=2, b=y"]);
        for (metric, label) in
            [("{}", ""), (r#"{"__name__":"up","instance":"a:80"}"#, ""), (r#"{"handler":"get","job":"chat"}"#, "get")]
        {
            let Ok(Recorded::OverTime(lines)) = matrix(&format!(r#"[{{"metric":{metric},"values":[[0,"1"]]}}]"#))
            else {
                panic!("over time")
            };
            assert_eq!(lines.keys().collect::<Vec<_>>(), [label]);
        }
    }

    #[test]
    fn other_answers_are_refused_with_what_is_expected() {
        for (text, problem) in [
            (
                r#"{"status":"error","error":"parse error"}"#,
                "the query did not succeed, its status is `error`: parse error",
            ),
            (r#"{"status":"success"}"#, "expected `data`, found none"),
            (
                r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
                "expected samples over time, which are a `matrix`, found a `vector`: ask `query_range`",
            ),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(problem.to_owned()), "{text}");
        }
        assert!(parse(b"[1]").is_err_and(|problem| problem.starts_with("expected the answer of Prometheus")));
        let word = matrix(r#"[{"metric":{},"values":[[0,"much"]]}]"#);
        assert_eq!(word, Err("series ``: expected a number, found `much`".to_owned()));
        let twice = matrix(r#"[{"metric":{"a":"1"},"values":[[0,"1"]]},{"metric":{"a":"1"},"values":[[0,"2"]]}]"#);
        assert!(twice.is_err_and(|problem| problem.starts_with("two series have the labels")));
    }
}
