//! Answers of Prometheus to `query_range`, as JSON: a matrix of series, each with its labels and its samples.
//!
//! *Source: the HTTP API of Prometheus, range queries and range vectors.*

use crate::recorded::{Line, Recorded};
use crate::table::{is_instant, number, over_time};
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
    let names = telling(&all);
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for series in &all {
        let label = label(series, &names);
        let mut line = Line::default();
        for (at, value) in &series.values {
            if !is_instant(*at) {
                return Err(format!("series `{label}`: expected an instant in seconds, found {at}"));
            }
            line.take(*at, number(value).map_err(|problem| format!("series `{label}`: {problem}"))?);
        }
        if lines.insert(label.clone(), line).is_some() {
            return Err(format!("two series have the labels `{label}`"));
        }
    }
    over_time(lines)
}

/// The names of the labels that tell the series apart.
fn telling(all: &[Series]) -> BTreeSet<&str> {
    let names = all.iter().flat_map(|series| series.metric.keys()).map(String::as_str);
    let differs = |name: &&str| {
        let first = all.first().and_then(|series| series.metric.get(*name));
        all.iter().any(|series| series.metric.get(*name) != first)
    };
    let telling: BTreeSet<&str> = names.clone().filter(differs).collect();
    // Of a single series, its own label is its name: a handler that is alone is one.
    match (all.len(), telling.is_empty()) {
        (1, true) => names.filter(|name| *name != "__name__").collect(),
        _ => telling,
    }
}

/// `createPost` where one label tells, `handler=createPost, code=200` where several do.
fn label(series: &Series, names: &BTreeSet<&str>) -> String {
    let value = |name: &str| series.metric.get(name).map(String::as_str).unwrap_or_default();
    match names.iter().collect::<Vec<_>>()[..] {
        [one] => value(one).to_owned(),
        _ => names.iter().map(|name| format!("{name}={}", value(name))).collect::<Vec<String>>().join(", "),
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
        assert_eq!(lines["get"], Line { points: vec![(1.5, 2.0)], no_number: 2 });
        assert_eq!(lines["put"].points, [(1.5, 0.004)]);
        let several =
            r#"[{"metric":{"a":"1","b":"x"},"values":[[0,"1"]]},{"metric":{"a":"2","b":"y"},"values":[[0,"1"]]}]"#;
        let Ok(Recorded::OverTime(lines)) = matrix(several) else { panic!("over time") };
        assert_eq!(lines.keys().collect::<Vec<_>>(), ["a=1, b=x", "a=2, b=y"]);
        for (metric, label) in [("{}", ""), (r#"{"__name__":"up"}"#, ""), (r#"{"handler":"get"}"#, "get")] {
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
            (
                r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#,
                "expected samples with numbers, found none",
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
