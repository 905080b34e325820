//! Results of other tools, as tables and as answers of Prometheus, up to the report of a release.

use super::chosen;
use plimsoll_outside::{Recorded, Run, Version, compare};
use plimsoll_report::release::release_of_outside;
use std::collections::BTreeMap;

/// Runs of the version, so that changes have intervals.
const RUNS: usize = 3;

/// What was recorded, compared with itself, has not changed.
pub(crate) fn outside(input: &[u8]) {
    let (choice, input) = chosen(input);
    let recorded = if choice % 2 == 0 { Recorded::of_csv(input) } else { Recorded::of_query_range(input) };
    let Ok(recorded) = recorded else { return };
    let run = Run { measures: BTreeMap::from([("api_seconds".to_owned(), recorded)]) };
    let version = |name: &str| Version {
        name: name.to_owned(),
        cases: BTreeMap::from([(String::new(), vec![run.clone(); RUNS])]),
    };
    let compared = compare(version("old"), version("new")).expect("the same case");
    assert!(compared.only.is_empty(), "{compared:?}");
    for change in &compared.changes {
        assert!(change.ratio.is_none_or(|ratio| ratio == 1.0) && !change.stands_out(), "{change:?}");
    }
    let documents = release_of_outside(&compared);
    assert!(documents.iter().any(|document| document.path == "README.md"));
}
