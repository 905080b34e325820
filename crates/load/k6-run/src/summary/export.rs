//! Summaries as JSON: that of `--summary-export`, and what `handleSummary` gets.

use super::{Output, Row, Summary, TimeUnit, number};
use crate::checks::{Check, SEPARATOR, last_name};
use crate::metrics::{Aggregation, Sink};
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};

/// How those two differ.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Objects by name; of a threshold, whether it has failed.
    Export,
    /// Lists; of a threshold, whether it holds.
    Data,
}

pub(super) fn export(summary: &Summary<'_>, setup_data: Option<Value>) -> Value {
    all_results(summary, setup_data, Form::Export)
}

pub(super) fn data(summary: &Summary<'_>, setup_data: Option<Value>, output: Output) -> Value {
    let mut results = all_results(summary, setup_data, Form::Data);
    let unit = summary.time_unit.map_or("", TimeUnit::name);
    let stats: Vec<String> = summary.trend_stats.iter().map(ToString::to_string).collect();
    results["options"] = json!({ "summaryTrendStats": stats, "summaryTimeUnit": unit, "noColor": output.no_color });
    results["state"] = json!({
        "isStdOutTTY": output.is_terminal,
        "isStdErrTTY": output.is_terminal,
        "testRunDurationMs": number::json(summary.elapsed.as_secs_f64() * 1e3),
    });
    results
}

fn all_results(summary: &Summary<'_>, setup_data: Option<Value>, form: Form) -> Value {
    let metrics = summary.rows().iter().map(|row| (row.name().to_owned(), metric(summary, row, form))).collect();
    let mut results = Map::new();
    results.insert("metrics".to_owned(), Value::Object(metrics));
    results.insert("root_group".to_owned(), group(summary, "", form));
    results.extend(setup_data.map(|data| ("setup_data".to_owned(), data)));
    Value::Object(results)
}

fn metric(summary: &Summary<'_>, row: &Row<'_>, form: Form) -> Value {
    let values = values(summary, row, form);
    let mut metric = match form {
        Form::Export => values,
        Form::Data => {
            json!({ "type": row.kind().to_string(), "contains": row.contains().to_string(), "values": values })
        }
    };
    let judged = row.judged(summary);
    if !judged.is_empty() {
        let judgement = |holds: bool| if form == Form::Export { Value::from(!holds) } else { json!({ "ok": holds }) };
        let judgement = judged.iter().map(|(threshold, judged)| (threshold.source.clone(), judgement(judged.holds)));
        metric["thresholds"] = judgement.collect();
    }
    metric
}

fn values(summary: &Summary<'_>, row: &Row<'_>, form: Form) -> Value {
    let get = |what| number::json(row.sink.get(what, summary.elapsed).unwrap_or_default());
    match row.sink {
        Sink::Counter { .. } => json!({ "count": get(Aggregation::Count), "rate": get(Aggregation::Rate) }),
        Sink::Gauge { .. } => {
            json!({ "value": get(Aggregation::Value), "min": get(Aggregation::Min), "max": get(Aggregation::Max) })
        }
        Sink::Rate { trues, total } => {
            let name = if form == Form::Export { "value" } else { "rate" };
            json!({ name: get(Aggregation::Rate), "passes": trues, "fails": total - trues })
        }
        Sink::Trend(_) => summary.trend_stats.iter().map(|what| (what.to_string(), get(*what))).collect(),
    }
}

/// A group with what lies in it. The id of something is the MD5 of its path, which scripts compare.
fn group(summary: &Summary<'_>, path: &str, form: Form) -> Value {
    let groups =
        summary.checks.groups_in(path).into_iter().map(|inner| (last_name(inner), group(summary, inner, form)));
    let checks = summary.checks.of(path);
    let checks = checks.iter().map(|check| (check.name.as_str(), self::check(check)));
    json!({
        "name": last_name(path),
        "path": path,
        "id": id(path),
        "groups": collected(groups, form),
        "checks": collected(checks, form),
    })
}

fn collected<'a>(named: impl Iterator<Item = (&'a str, Value)>, form: Form) -> Value {
    match form {
        Form::Export => named.map(|(name, value)| (name.to_owned(), value)).collect(),
        Form::Data => named.map(|(_, value)| value).collect(),
    }
}

fn check(Check { group, name, passes, fails, .. }: &Check) -> Value {
    let path = format!("{group}{SEPARATOR}{name}");
    json!({ "name": name, "path": path, "id": id(&path), "passes": passes, "fails": fails })
}

fn id(path: &str) -> String {
    Md5::digest(path.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
