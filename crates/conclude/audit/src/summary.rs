//! Parses several numbers in one cell, as tables are published: `70.66 s (±7.05 s, p50: 80.50 s)`,
//! or a line of k6, `avg=2.19ms min=768.88µs med=1.97ms max=781.69ms p(90)=2.89ms`.

use crate::column::{Column, Statistic, known};
use crate::fault::Unreadable;
use crate::quantity::{Quantity, quantity};

/// Parses the statistics of a cell. A number without a name is the mean, one after `±` the standard
/// deviation.
pub(crate) fn summary(text: &str) -> Result<Vec<(Statistic, Quantity)>, Unreadable> {
    let mut statistics: Vec<(Statistic, Quantity)> = Vec::new();
    for piece in pieces(text) {
        let (statistic, number) = statistic_of(&piece)?;
        if statistics.iter().any(|(known, _)| *known == statistic) {
            return Err(expected().with_hint(format!("`{piece}` says again what is there already")));
        }
        statistics.push((statistic, number));
    }
    if statistics.is_empty() { Err(expected()) } else { Ok(statistics) }
}

fn expected() -> Unreadable {
    Unreadable::expected("numbers such as `70.66 s (±7.05 s, p50: 80.50 s)` or `avg=2.19ms med=1.97ms max=781.69ms`")
}

fn statistic_of(piece: &str) -> Result<(Statistic, Quantity), Unreadable> {
    if let Some(rest) = piece.strip_prefix('±') {
        return Ok((Statistic::Sd, quantity(rest)?));
    }
    match piece.split_once(['=', ':']) {
        None => Ok((Statistic::Mean, quantity(piece)?)),
        Some((name, number)) => match known(name) {
            Some((Column::Statistic(statistic), _)) => Ok((statistic, quantity(number)?)),
            _ => {
                Err(expected().with_hint(format!("`{}` is no statistic: mean, sd, min, max, median, p95", name.trim())))
            }
        },
    }
}

/// Splits the text at commas, brackets, `±`, and before each `name=`.
fn pieces(text: &str) -> Vec<String> {
    let mut marked = without_brackets_of_percentiles(text).replace("+/-", "±").replace(" =", "=").replace("= ", "=");
    for separator in ["(", ")", ";", ", "] {
        marked = marked.replace(separator, "\n");
    }
    marked = marked.replace('±', "\n±");
    let named = |word: &str| word.contains('=') || word.ends_with(':');
    let words = marked
        .split_inclusive([' ', '\n'])
        .map(|word| if named(word.trim()) { format!("\n{word}") } else { word.to_owned() });
    let marked: String = words.collect();
    marked
        .split('\n')
        .map(|piece| piece.trim().trim_end_matches(','))
        .filter(|piece| !piece.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Rewrites `p(90)` as `p90`, so that other brackets can separate.
fn without_brackets_of_percentiles(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find("p(") {
        let (before, from) = rest.split_at(at);
        plain += before;
        plain += "p";
        let (inside, after) = from[2..].split_once(')').unwrap_or((&from[2..], ""));
        plain += inside;
        rest = after;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(Statistic, f64)> {
        let read = summary(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        read.into_iter().map(|(statistic, number)| (statistic, number.value)).collect()
    }

    #[test]
    fn cells_are_read_as_published() {
        use Statistic::{Max, Mean, Min, Percentile, Sd};
        assert_eq!(values("70.66 s (±7.05 s, p50: 80.50 s)"), [(Mean, 70.66), (Sd, 7.05), (Percentile(50.0), 80.5)]);
        assert_eq!(values("1.09 s ± 0.04 s"), [(Mean, 1.09), (Sd, 0.04)]);
        assert_eq!(values("1,300"), [(Mean, 1300.0)]);
        assert_eq!(
            values("avg=2s min=1s med=1.5s   max=30s p(90)=4s p(95)=5s"),
            [
                (Mean, 2.0),
                (Min, 1.0),
                (Percentile(50.0), 1.5),
                (Max, 30.0),
                (Percentile(90.0), 4.0),
                (Percentile(95.0), 5.0)
            ]
        );
        assert_eq!(values("avg = 2 s, max = 3 s"), [(Mean, 2.0), (Max, 3.0)]);
        assert_eq!(values("3 s (±2 s p50: 1 s)"), [(Mean, 3.0), (Sd, 2.0), (Percentile(50.0), 1.0)]);
    }

    #[test]
    fn what_is_no_summary_is_told() {
        for text in ["", "fast", "avg=2s avg=3s", "colour=2s", "1 s 2 s"] {
            assert!(summary(text).is_err(), "{text}");
        }
    }
}
