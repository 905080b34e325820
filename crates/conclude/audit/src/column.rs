//! The known columns of a table, and their common headings.

use crate::fault::nearest;
use crate::unit::unit;

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Column {
    Measure,
    Variant,
    Runs,
    Requests,
    Statistic(Statistic),
    Summary,
    Unit,
    Baseline,
    Change,
    Improvement,
    Claim,
    Better,
    Variance,
    Order,
    Started,
    Bytes,
    Operation,
    Mode,
    Users,
    Rate,
    Duration,
    Think,
    Call,
    Settings,
    Errors,
    Data,
    Method,
    Target,
    GeneratorCpu,
    Best,
    /// A column that is not read: another one has the same, or nothing asks for it.
    Ignored,
}

/// A statistic of many values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Statistic {
    /// The only number of a row without named statistics.
    Value,
    /// Arithmetic mean.
    Mean,
    /// Standard deviation.
    Sd,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Percentile, from 0 to 100; the median is the 50th.
    Percentile(f64),
}

const MEDIAN: Column = Column::Statistic(Statistic::Percentile(50.0));

/// The names of columns; the documentation uses the first one of each.
const NAMES: [(&str, Column); 101] = [
    ("measure", Column::Measure),
    ("metric", Column::Measure),
    ("benchmark", Column::Measure),
    ("parameter", Column::Measure),
    ("parameters", Column::Measure),
    ("variant", Column::Variant),
    ("arm", Column::Variant),
    ("n", Column::Runs),
    ("runs", Column::Runs),
    ("repeats", Column::Runs),
    ("repetitions", Column::Runs),
    ("trials", Column::Runs),
    ("requests", Column::Requests),
    ("samples", Column::Requests),
    ("count", Column::Requests),
    ("iterations", Column::Requests),
    ("value", Column::Statistic(Statistic::Value)),
    ("result", Column::Statistic(Statistic::Value)),
    ("after", Column::Statistic(Statistic::Value)),
    ("new", Column::Statistic(Statistic::Value)),
    ("candidate", Column::Statistic(Statistic::Value)),
    ("mean", Column::Statistic(Statistic::Mean)),
    ("avg", Column::Statistic(Statistic::Mean)),
    ("average", Column::Statistic(Statistic::Mean)),
    ("median", MEDIAN),
    ("med", MEDIAN),
    ("sd", Column::Statistic(Statistic::Sd)),
    ("std", Column::Statistic(Statistic::Sd)),
    ("stddev", Column::Statistic(Statistic::Sd)),
    ("std dev", Column::Statistic(Statistic::Sd)),
    ("standard deviation", Column::Statistic(Statistic::Sd)),
    ("±", Column::Statistic(Statistic::Sd)),
    ("min", Column::Statistic(Statistic::Min)),
    ("minimum", Column::Statistic(Statistic::Min)),
    ("max", Column::Statistic(Statistic::Max)),
    ("maximum", Column::Statistic(Statistic::Max)),
    ("summary", Column::Summary),
    ("as published", Column::Summary),
    ("unit", Column::Unit),
    ("units", Column::Unit),
    ("baseline", Column::Baseline),
    ("before", Column::Baseline),
    ("old", Column::Baseline),
    ("change", Column::Change),
    ("delta", Column::Change),
    ("difference", Column::Change),
    ("diff", Column::Change),
    ("improvement", Column::Improvement),
    ("claim", Column::Claim),
    ("verdict", Column::Claim),
    ("conclusion", Column::Claim),
    ("better", Column::Better),
    ("direction", Column::Better),
    ("variance", Column::Variance),
    ("usual variance", Column::Variance),
    ("noise", Column::Variance),
    ("noise floor", Column::Variance),
    ("order", Column::Order),
    ("sequence", Column::Order),
    ("started", Column::Started),
    ("start", Column::Started),
    ("start time", Column::Started),
    ("bytes", Column::Bytes),
    ("size", Column::Bytes),
    ("file size", Column::Bytes),
    ("operation", Column::Operation),
    ("op", Column::Operation),
    ("mode", Column::Mode),
    ("users", Column::Users),
    ("vus", Column::Users),
    ("virtual users", Column::Users),
    ("rate", Column::Rate),
    ("throughput", Column::Rate),
    ("rps", Column::Rate),
    ("requests/s", Column::Rate),
    ("iterations/s", Column::Rate),
    ("duration", Column::Duration),
    ("iteration", Column::Duration),
    ("iteration duration", Column::Duration),
    ("response time", Column::Duration),
    ("latency", Column::Duration),
    ("think", Column::Think),
    ("think time", Column::Think),
    ("call", Column::Call),
    ("call duration", Column::Call),
    ("settings", Column::Settings),
    ("options", Column::Settings),
    ("configuration", Column::Settings),
    ("config", Column::Settings),
    ("errors", Column::Errors),
    ("failures", Column::Errors),
    ("failed", Column::Errors),
    ("error rate", Column::Errors),
    ("data", Column::Data),
    ("data set", Column::Data),
    ("method", Column::Method),
    ("target", Column::Target),
    ("generator cpu", Column::GeneratorCpu),
    ("generator", Column::GeneratorCpu),
    ("best", Column::Best),
    ("best setting", Column::Best),
];

/// The column of a heading, and the unit in it: `mean (ms)`.
pub(crate) fn known(heading: &str) -> Option<(Column, Option<String>)> {
    let name = simple(heading);
    if let Some(column) = by_name(&name) {
        return Some((column, None));
    }
    let (name, rest) = name.split_once(['(', '['])?;
    let named = rest.trim_end_matches([')', ']']).trim();
    unit(named).filter(|_| !named.is_empty())?;
    // The unit as it stands in the heading: `MB`, not `mb`.
    let start = heading.find(['(', '['])? + 1;
    let written = heading[start..].trim_end_matches([')', ']', ' ']).trim().to_owned();
    Some((by_name(name.trim())?, Some(written)))
}

fn by_name(name: &str) -> Option<Column> {
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
    known.or_else(|| Some(Column::Statistic(Statistic::Percentile(percentile(name)?))))
}

/// Headings that usually name variants in tables without a column `variant`.
const VARIANTS: [&str; 14] = [
    "backend",
    "branch",
    "build",
    "command",
    "commit",
    "engine",
    "framework",
    "implementation",
    "library",
    "release",
    "server",
    "system",
    "tool",
    "version",
];

/// True if a heading usually names variants.
pub(crate) fn names_variants(heading: &str) -> bool {
    VARIANTS.contains(&simple(heading).as_str())
}

/// In lower case, with one blank between words.
fn simple(heading: &str) -> String {
    heading.to_lowercase().replace(['_', '-', '*', '`'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `p95`, `p(99.9)`, `95%`, `95th percentile`.
pub(crate) fn percentile(name: &str) -> Option<f64> {
    let name = name.trim().trim_end_matches("percentile").trim();
    let digits = match name.strip_prefix('p') {
        Some(rest) => rest.trim_start_matches('(').trim_end_matches(')'),
        None => name.strip_suffix('%').or_else(|| name.strip_suffix("th")).or_else(|| name.strip_suffix("st"))?,
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|p| (0.0..=100.0).contains(p))
}

/// The known heading that an unknown one may be a typo of.
pub(crate) fn nearest_heading(heading: &str) -> Option<&'static str> {
    // Short words are near to too many others.
    let name = Some(simple(heading)).filter(|name| name.chars().count() >= 5)?;
    nearest(&name, NAMES.iter().map(|(name, _)| *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_forgiven_case_blanks_and_units() {
        let p = |p| Column::Statistic(Statistic::Percentile(p));
        for (heading, expected) in [
            ("Measure", Some((Column::Measure, None))),
            (" usual_variance ", Some((Column::Variance, None))),
            ("Std-Dev", Some((Column::Statistic(Statistic::Sd), None))),
            ("mean (ms)", Some((Column::Statistic(Statistic::Mean), Some("ms".to_owned())))),
            ("Size [MB]", Some((Column::Bytes, Some("MB".to_owned())))),
            ("p95", Some((p(95.0), None))),
            ("p(99.9)", Some((p(99.9), None))),
            ("p50", Some((p(50.0), None))),
            ("90%", Some((p(90.0), None))),
            ("95th percentile", Some((p(95.0), None))),
            ("Median", Some((p(50.0), None))),
            ("database", None),
            ("mean (of all)", None),
            ("p", None),
            ("p101", None),
        ] {
            assert_eq!(known(heading), expected, "{heading}");
        }
    }

    #[test]
    fn a_slip_in_a_heading_is_told() {
        for (heading, expected) in
            [("medain", Some("median")), ("Basline", Some("baseline")), ("database", None), ("test", None)]
        {
            assert_eq!(nearest_heading(heading), expected, "{heading}");
        }
    }
}
