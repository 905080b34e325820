//! Tables as CSV: `value`, `label,value`, `time,value` or `time,label,value`, in any order of the columns.

use crate::recorded::{Line, Recorded};
use csv::StringRecord;
use std::collections::BTreeMap;

/// The names of columns.
const COLUMNS: [&str; 3] = ["time", "label", "value"];

/// The content of a file; the error says what was expected and found, with its line.
pub(crate) fn parse(bytes: &[u8]) -> Result<Recorded, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let [time, label, value] = COLUMNS.map(|name| header.iter().position(|found| found.eq_ignore_ascii_case(name)));
    let value = value.ok_or_else(|| format!("expected a column `value`, found {}", named(&header)))?;
    if let Some(strange) = header.iter().find(|found| !COLUMNS.iter().any(|name| found.eq_ignore_ascii_case(name))) {
        return Err(format!("a column is `time`, `label` or `value`, found `{strange}`"));
    }
    let columns = |name: &&str| header.iter().filter(|found| found.eq_ignore_ascii_case(name)).count();
    if let Some(twice) = COLUMNS.iter().find(|name| columns(name) > 1) {
        return Err(format!("expected one column `{twice}`, found {}", columns(twice)));
    }
    let mut clocks = [false; 2];
    let mut values = BTreeMap::new();
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |column: usize| record.get(column).unwrap_or_default();
        let label = label.map(cell).unwrap_or_default().to_owned();
        let number = number(cell(value)).map_err(|problem| format!("line {line}: {problem}"))?;
        match time {
            Some(time) => {
                let (at, is_date) = instant(cell(time)).map_err(|problem| format!("line {line}: {problem}"))?;
                clocks[usize::from(is_date)] = true;
                if clocks == [true, true] {
                    return Err(format!("line {line}: expected seconds in all rows, or dates in all, found both"));
                }
                lines.entry(label).or_default().take(at, number);
            }
            None => match number {
                Some(number) if values.insert(label.clone(), number).is_none() => {}
                Some(_) => return Err(format!("line {line}: a second value of `{label}`")),
                None => {}
            },
        }
    }
    match time {
        Some(_) if lines.values().all(|line| line.points.is_empty()) => {
            Err("expected samples with numbers, found none".to_owned())
        }
        Some(_) => Ok(Recorded::OverTime(in_order(lines))),
        None if values.is_empty() => Err("expected rows with numbers, found none".to_owned()),
        None => Ok(Recorded::Values(values)),
    }
}

/// The samples of each line in order of time.
pub(crate) fn in_order(mut lines: BTreeMap<String, Line>) -> BTreeMap<String, Line> {
    lines.values_mut().for_each(|line| line.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
    lines
}

impl Line {
    /// Takes a sample, which may be no number.
    pub(crate) fn take(&mut self, at: f64, number: Option<f64>) {
        match number {
            Some(number) => self.points.push((at, number)),
            None => self.no_number.push(at),
        }
    }
}

/// A number; none where there is none: an empty cell, NaN, an infinity.
pub(crate) fn number(text: &str) -> Result<Option<f64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let number: f64 = text.parse().map_err(|_| format!("expected a number, found `{text}`"))?;
    Ok(number.is_finite().then_some(number))
}

/// The farthest instant, in seconds: some 30,000 years.
const FARTHEST: f64 = 1e12;

/// True for a number of seconds that can be an instant.
pub(crate) fn is_instant(seconds: f64) -> bool {
    seconds.abs() <= FARTHEST
}

/// Seconds, from any instant on, or a time as in RFC 3339; and whether it is the latter.
fn instant(text: &str) -> Result<(f64, bool), String> {
    if let Some(seconds) = text.parse().ok().filter(|seconds| is_instant(*seconds)) {
        return Ok((seconds, false));
    }
    let time: jiff::Timestamp =
        text.parse().map_err(|_| format!("expected seconds or a time as `2026-11-26T20:40:00Z`, found `{text}`"))?;
    Ok((time.as_millisecond() as f64 / 1e3, true))
}

fn named(header: &StringRecord) -> String {
    let names: Vec<String> = header.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "no columns".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_values_by_label_or_over_time() {
        let values = |text: &str| parse(text.as_bytes()).map(|recorded| recorded.values());
        assert_eq!(values("value\n4.5\n"), Ok(BTreeMap::from([(String::new(), 4.5)])));
        let two = BTreeMap::from([("get".to_owned(), 1.0), ("put".to_owned(), 3.0)]);
        assert_eq!(values("# by hand\nlabel, value\nget, 1\nput,3\nvoid,\n"), Ok(two.clone()));
        let timed = "Time,label,value\n10,get,0.5\n0,get,1.5\n30,put,3\n20,get,NaN\n";
        assert_eq!(values(timed), Ok(two));
        let Ok(Recorded::OverTime(lines)) = parse(timed.as_bytes()) else { panic!("over time") };
        assert_eq!(
            lines["get"],
            Line { points: vec![(0.0, 1.5), (10.0, 0.5)], no_number: vec![20.0], ..Line::default() }
        );
        let Ok(Recorded::OverTime(dated)) = parse(b"time,value\n2026-11-26T20:40:00Z,3\n") else { panic!("over time") };
        assert_eq!(dated[""].points, [(1_795_725_600.0, 3.0)]);
    }

    #[test]
    fn what_is_not_a_table_says_why() {
        for (text, problem) in [
            ("", "expected a column `value`, found no columns"),
            ("name,p99\nget,1\n", "expected a column `value`, found `name`, `p99`"),
            ("label,value,p99\nget,1,2\n", "a column is `time`, `label` or `value`, found `p99`"),
            ("label,value\nget,1\nget,2\n", "line 3: a second value of `get`"),
            ("label,value\nget,fast\n", "line 2: expected a number, found `fast`"),
            ("time,value\n1e300,1\n", "line 2: expected seconds or a time as `2026-11-26T20:40:00Z`, found `1e300`"),
            ("time,value\nnoon,1\n", "line 2: expected seconds or a time as `2026-11-26T20:40:00Z`, found `noon`"),
            ("label,value\nget,NaN\n", "expected rows with numbers, found none"),
            ("time,value\n", "expected samples with numbers, found none"),
            ("value,label,value\n1,get,2\n", "expected one column `value`, found 2"),
            (
                "time,value\n10,1\n2026-11-26T20:40:00Z,3\n",
                "line 3: expected seconds in all rows, or dates in all, found both",
            ),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(problem.to_owned()), "{text}");
        }
        assert!(parse(b"label,value\nget,1,2\n").is_err_and(|problem| problem.contains("line: 2")));
    }
}
