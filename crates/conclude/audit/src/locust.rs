//! The table that Locust writes (`--csv`, the file `_stats.csv`), with its own headings.
//!
//! Its times are milliseconds. It rounds response times to two digits before it takes percentiles of them (`3432` counts
//! as `3400`), the median and the 100th included, so that a percentile may be above the maximum beside it.

use crate::column::{Column, Statistic, percentile};
use crate::row::Row;
use csv::StringRecord;

/// Headings that tell the table from others.
const TELLING: [&str; 3] = ["Request Count", "Failure Count", "Median Response Time"];

/// A column of Locust's table.
pub(crate) struct LocustColumn {
    /// The content of the column; none for a label.
    pub(crate) column: Option<Column>,
    /// True if it has milliseconds.
    pub(crate) milliseconds: bool,
    /// True if its numbers are rounded to two digits.
    pub(crate) rounded: bool,
}

/// True if the headings are those of Locust's table.
pub(crate) fn is_locust(headings: &StringRecord) -> bool {
    TELLING.iter().all(|telling| headings.iter().any(|heading| heading == *telling))
}

/// A column by its heading; none for one that is not Locust's.
pub(crate) fn column(heading: &str) -> Option<LocustColumn> {
    let other = |column| Some(LocustColumn { column, milliseconds: false, rounded: false });
    let time = |statistic, rounded| {
        Some(LocustColumn { column: Some(Column::Statistic(statistic)), milliseconds: true, rounded })
    };
    match heading {
        "Type" | "Name" => other(None),
        "Request Count" => other(Some(Column::Requests)),
        "Failure Count" => other(Some(Column::Errors)),
        "Requests/s" => other(Some(Column::Rate)),
        "Median Response Time" => time(Statistic::Percentile(50.0), true),
        "Average Response Time" => time(Statistic::Mean, false),
        "Min Response Time" => time(Statistic::Min, false),
        "Max Response Time" => time(Statistic::Max, false),
        // The median and the maximum again, and what is about neither time nor numbers of requests.
        "50%" | "100%" | "Average Content Size" | "Failures/s" => other(Some(Column::Ignored)),
        _ => heading.ends_with('%').then(|| time(Statistic::Percentile(percentile(heading)?), true)).flatten(),
    }
}

/// True for the row over all requests, the last one of the table.
pub(crate) fn is_aggregated(row: &Row) -> bool {
    row.labels.iter().any(|(heading, text)| heading == "Name" && text == "Aggregated")
}

#[cfg(test)]
mod tests {
    use crate::{Severity, audit};

    const TABLE: &str = "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,\
        Min Response Time,Max Response Time,Average Content Size,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,\
        99.9%,99.99%,100%,version\n\
        GET,/,11682,0,240.0,361.2,4.5,3341.7,23000.5,25.7,0.0,240,390,510,600,850,1100,1500,2000,3100,3300,3300,a\n\
        PUT,/api/update,66000,3,3.0,3.1,1.2,90.5,812.0,143.9,0.1,3,3,4,4,5,7,9,12,40,80,91,a\n\
        GET,/,11690,0,240.0,300.2,4.5,3341.7,23000.5,25.7,0.0,240,390,510,600,850,1100,1500,2000,3100,3300,3300,b\n";

    #[test]
    fn a_table_of_locust_is_read_as_it_was_written() {
        let audit = audit(TABLE).expect("a sound table");
        let problems = audit.findings.iter().filter(|one| one.severity == Severity::Problem).map(|one| one.topic);
        assert_eq!(problems.collect::<Vec<_>>(), Vec::<&str>::new(), "{:#?}", audit.findings);
        let texts: Vec<&str> =
            audit.findings.iter().flat_map(|finding| &finding.evidence).map(|one| one.text.as_str()).collect();
        assert!(texts.iter().any(|text| text.contains("GET, /: 361.2 ms → 300.2 ms")), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("3 of 66,000 requests failed")), "{texts:?}");
    }

    #[test]
    fn a_percentile_far_above_the_maximum_stays_impossible() {
        let wrong = TABLE.replacen("3300,3300,a", "3600,3600,a", 1);
        let audit = audit(&wrong).expect("a sound table");
        assert_eq!(audit.findings[0].topic, "impossible numbers");
    }
}
