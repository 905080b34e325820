//! What single options can be. Numbers may also be written as texts, since that is what the
//! environment and the command line have.

use super::table::{Field, Table};
use super::{OptionFault, TimeUnit};
use crate::duration;
use crate::metrics::Aggregation;
use crate::scenario::Stage;
use crate::threshold::Threshold;
use serde_json::{Value, json};
use std::time::Duration;

type Faults = Vec<OptionFault>;

impl Field for u64 {
    fn read(value: &Value, _: &str, _: &mut Faults) -> Result<u64, String> {
        let expected = || "a whole number, 0 or more".to_owned();
        match value {
            Value::String(text) => text.trim().parse().map_err(|_| expected()),
            // Scripts compute numbers as floating-point ones.
            other => match other.as_f64() {
                Some(number) if number >= 0.0 && number.fract() == 0.0 && number < 9e15 => Ok(number as u64),
                _ => Err(expected()),
            },
        }
    }

    fn written(&self) -> Value {
        Value::from(*self)
    }
}

impl Field for bool {
    fn read(value: &Value, _: &str, _: &mut Faults) -> Result<bool, String> {
        match value {
            Value::Bool(value) => Ok(*value),
            Value::String(text) if text == "true" || text == "1" => Ok(true),
            Value::String(text) if text == "false" || text == "0" => Ok(false),
            _ => Err("`true` or `false`".to_owned()),
        }
    }

    fn written(&self) -> Value {
        Value::from(*self)
    }
}

impl Field for String {
    fn read(value: &Value, _: &str, _: &mut Faults) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err("a text".to_owned()),
        }
    }

    fn written(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl Field for Duration {
    fn read(value: &Value, _: &str, _: &mut Faults) -> Result<Duration, String> {
        let read = match value {
            Value::String(text) => duration::parse(text),
            other => other.as_f64().and_then(duration::from_milliseconds),
        };
        read.ok_or_else(|| "a duration such as `1m30s`, or a number of milliseconds".to_owned())
    }

    fn written(&self) -> Value {
        Value::from(duration::format(*self))
    }
}

impl Field for TimeUnit {
    fn read(value: &Value, _: &str, _: &mut Faults) -> Result<TimeUnit, String> {
        match value.as_str() {
            Some("s") => Ok(TimeUnit::Seconds),
            Some("ms") => Ok(TimeUnit::Milliseconds),
            Some("us") => Ok(TimeUnit::Microseconds),
            _ => Err("`s`, `ms` or `us`".to_owned()),
        }
    }

    fn written(&self) -> Value {
        Value::from(self.name())
    }
}

/// A list, or a text with commas.
fn items<T>(value: &Value, expected: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, String> {
    let items: Option<Vec<T>> = match value {
        Value::Array(items) => items.iter().map(read).collect(),
        Value::String(text) if text.is_empty() => Some(Vec::new()),
        Value::String(text) => text.split(',').map(|item| read(&Value::from(item.trim()))).collect(),
        _ => None,
    };
    items.ok_or_else(|| expected.to_owned())
}

impl Field for Vec<String> {
    fn read(value: &Value, _: &str, _: &mut Faults) -> Result<Vec<String>, String> {
        items(value, "a list of texts", |item| item.as_str().map(str::to_owned))
    }

    fn written(&self) -> Value {
        Value::from(self.as_slice())
    }
}

impl Field for Vec<Aggregation> {
    fn read(value: &Value, _: &str, _: &mut Faults) -> Result<Vec<Aggregation>, String> {
        let expected = "a list of `avg`, `min`, `med`, `max`, `count`, `p(N)`";
        items(value, expected, |item| {
            let read = item.as_str().and_then(|text| Aggregation::parse(text).ok());
            read.filter(|read| !matches!(read, Aggregation::Rate | Aggregation::Value))
        })
    }

    fn written(&self) -> Value {
        self.iter().map(ToString::to_string).collect()
    }
}

impl Field for Vec<Stage> {
    fn read(value: &Value, at: &str, faults: &mut Faults) -> Result<Vec<Stage>, String> {
        match value {
            Value::String(text) => text
                .split(',')
                .map(stage)
                .collect::<Option<_>>()
                .ok_or_else(|| "stages such as `10s:5,1m:20`: how long, and how many users at the end".to_owned()),
            Value::Array(stages) => {
                let stages = stages.iter().enumerate();
                Ok(stages.filter_map(|(index, stage)| stage_table(stage, &format!("{at}[{index}]"), faults)).collect())
            }
            _ => Err("a list of stages".to_owned()),
        }
    }

    fn written(&self) -> Value {
        let stage = |stage: &Stage| json!({ "duration": stage.duration.written(), "target": stage.target });
        self.iter().map(stage).collect()
    }
}

fn stage(text: &str) -> Option<Stage> {
    let (duration, target) = text.trim().split_once(':')?;
    Some(Stage { duration: duration::parse(duration)?, target: target.parse().ok()? })
}

fn stage_table(value: &Value, at: &str, faults: &mut Faults) -> Option<Stage> {
    let Value::Object(fields) = value else {
        let what = "expected an object with `duration` and `target`".to_owned();
        faults.push(OptionFault { option: at.to_owned(), what });
        return None;
    };
    let before = faults.len();
    let mut table = Table::new(fields, format!("{at}."), faults);
    let (duration, target) = (table.take("duration"), table.take("target"));
    for (name, hint) in table.unread() {
        table.fault(&name, &format!("a stage has no such option{hint}"));
    }
    if let (Some(duration), Some(target)) = (duration, target) {
        return Some(Stage { duration, target });
    }
    // What was there and could not be read has its fault already.
    if faults.len() == before {
        let what = format!("expected a `{}`, found none", if duration.is_none() { "duration" } else { "target" });
        faults.push(OptionFault { option: at.to_owned(), what });
    }
    None
}

impl Field for Vec<(String, String)> {
    /// An object of texts, or lines such as `a=1`.
    fn read(value: &Value, _: &str, faults: &mut Faults) -> Result<Vec<(String, String)>, String> {
        let expected = || "an object of texts".to_owned();
        match value {
            Value::Object(fields) => {
                let text = |(name, value): (&String, &Value)| Ok((name.clone(), String::read(value, "", faults)?));
                fields.iter().map(text).collect::<Result<_, String>>().map_err(|_| expected())
            }
            Value::String(text) => {
                let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
                text.lines().map(pair).collect::<Option<_>>().ok_or_else(expected)
            }
            _ => Err(expected()),
        }
    }

    fn written(&self) -> Value {
        self.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
    }
}

impl Field for Vec<(String, Vec<Threshold>)> {
    fn read(value: &Value, at: &str, faults: &mut Faults) -> Result<Self, String> {
        let fields = value.as_object().ok_or("an object of metrics and thresholds")?;
        let mut read = Vec::new();
        for (metric, list) in fields {
            let at = format!("{at}.{metric}");
            let Value::Array(list) = list else {
                let what = "expected a list of thresholds, such as `[\"p(95)<500\"]`".to_owned();
                faults.push(OptionFault { option: at, what });
                continue;
            };
            let thresholds = list.iter().filter_map(|threshold| self::threshold(threshold, &at, faults));
            read.push((metric.clone(), thresholds.collect()));
        }
        Ok(read)
    }

    fn written(&self) -> Value {
        let all = |thresholds: &[Threshold]| -> Value { thresholds.iter().map(threshold_written).collect() };
        self.iter().map(|(metric, thresholds)| (metric.clone(), all(thresholds))).collect()
    }
}

/// A text, or an object with `threshold`, `abortOnFail` and `delayAbortEval`.
fn threshold(value: &Value, at: &str, faults: &mut Faults) -> Option<Threshold> {
    let empty = serde_json::Map::new();
    let mut table = Table::new(value.as_object().unwrap_or(&empty), format!("{at}."), faults);
    let text = value.as_str().map(str::to_owned).or_else(|| table.take("threshold"));
    let (abort, delay): (Option<bool>, _) = (table.take("abortOnFail"), table.take("delayAbortEval"));
    let fault = match text.as_deref().map(Threshold::parse) {
        Some(Ok(threshold)) => {
            let (abort_on_fail, delay) = (abort.unwrap_or_default(), delay.unwrap_or_default());
            return Some(Threshold { abort_on_fail, delay, ..threshold });
        }
        Some(Err(fault)) => fault.to_string(),
        None => "expected a text, or an object with `threshold`".to_owned(),
    };
    faults.push(OptionFault { option: at.to_owned(), what: fault });
    None
}

fn threshold_written(threshold: &Threshold) -> Value {
    match threshold.abort_on_fail {
        false => Value::from(threshold.source.as_str()),
        true => json!({
            "threshold": threshold.source,
            "abortOnFail": true,
            "delayAbortEval": threshold.delay.written(),
        }),
    }
}
