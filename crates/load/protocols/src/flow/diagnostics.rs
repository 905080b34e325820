//! Diagnostics of a flow before it runs, with the part that they concern.

use plimsoll_engine::diagnostic::WorkloadDiagnostic;
use plimsoll_engine::schedule::arrivals_within;
use plimsoll_feed::Table;
use plimsoll_model::flow::{Feed, FeedEnd, FeedOrder, Flow, WorkloadPart};
use plimsoll_model::load::{Arrivals, LoadModel, LoadProfile, Stop};
use plimsoll_model::workload::{Steps, Workload};

/// The diagnostics of a workload under this load: feeds with fewer rows than its users or iterations
/// will take.
#[must_use]
pub fn diagnostics(workload: &Workload, load: &LoadProfile) -> Vec<WorkloadDiagnostic> {
    let Steps::Flow(flow) = &workload.steps else { return Vec::new() };
    let Flow { feeds, .. } = &**flow;
    let numbered = feeds.iter().enumerate();
    numbered
        .filter_map(|(number, feed)| Some(WorkloadDiagnostic::of(WorkloadPart::Feed(number), too_short(feed, load)?)))
        .collect()
}

/// The fault of a feed with too few rows; `None` if it has enough, or if that is unknown.
fn too_short(feed: &Feed, load: &LoadProfile) -> Option<String> {
    let rows = Table::read(&feed.file).ok()?.rows() as u64;
    let (name, users) = (&feed.name, u64::from(load.most_users()));
    let stops = feed.at_end == FeedEnd::Stop;
    match feed.order {
        FeedOrder::PerUser if rows < users && stops => {
            Some(format!("feed `{name}` has {rows} rows for {users} users: those beyond find none, and do nothing"))
        }
        FeedOrder::PerUser if rows < users => {
            Some(format!("feed `{name}` has {rows} rows for {users} users: some share a row"))
        }
        FeedOrder::InOrder | FeedOrder::Unique if stops => {
            let (taken, takers) = rows_taken(load);
            (rows < taken)
                .then(|| format!("feed `{name}` has {rows} rows for {takers}: users stop when they are used up"))
        }
        FeedOrder::PerUser | FeedOrder::InOrder | FeedOrder::Random | FeedOrder::Unique => None,
    }
}

/// The number of rows taken if each iteration takes one, and by whom. Each arrival is an iteration, and each user
/// makes at least one.
fn rows_taken(load: &LoadProfile) -> (u64, String) {
    let users = u64::from(load.most_users());
    let iterations = |count| (count, format!("{count} iterations"));
    match (load.stop, &load.model) {
        (Stop::Iterations { count, .. }, _) => iterations(count),
        (Stop::IterationsPerUser { count, .. }, _) => iterations(count.saturating_mul(users)),
        (Stop::After(_) | Stop::Soak(_) | Stop::Feedback { .. }, LoadModel::Closed { .. }) => {
            (users, format!("{users} users, each of whom takes one for every iteration"))
        }
        (
            Stop::After(length) | Stop::Soak(length) | Stop::Feedback { limit: length, .. },
            LoadModel::Open { rate, arrivals, .. },
        ) => {
            let count = arrivals_within(rate, load.warmup, length);
            let about = if *arrivals == Arrivals::Poisson { "about " } else { "" };
            (count, format!("{about}{count} arrivals"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::load::{Overflow, Profile, Shape, Stage, Think};
    use std::time::Duration;

    #[test]
    fn a_feed_that_is_too_short_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("rows.csv");
        std::fs::write(&file, "id\n1\n2\n3\n").expect("written");
        let told = |order, at_end, users: f64, stop| {
            let feed = Feed { name: "row".to_owned(), file: file.clone(), order, at_end, columns: Vec::new() };
            let model = LoadModel::Closed { users: Profile::constant(users), think: Think::Constant(Duration::ZERO) };
            too_short(&feed, &LoadProfile { model, warmup: Duration::ZERO, stop, drain: Duration::ZERO })
        };
        let after = Stop::After(Duration::from_secs(1));
        let iterations = |count| Stop::Iterations { count, limit: Duration::from_secs(1) };
        let per_user = Stop::IterationsPerUser { count: 2, limit: Duration::from_secs(1) };
        let (over, stop) = (FeedEnd::StartOver, FeedEnd::Stop);
        for (order, end, users, until, expected) in [
            (FeedOrder::PerUser, over, 4.0, after, Some("3 rows for 4 users: some share a row")),
            (FeedOrder::PerUser, stop, 4.0, after, Some("3 rows for 4 users: those beyond find none, and do nothing")),
            (FeedOrder::PerUser, over, 3.0, after, None),
            (
                FeedOrder::Unique,
                stop,
                4.0,
                after,
                Some(
                    "3 rows for 4 users, each of whom takes one for every iteration: users stop when they are used up",
                ),
            ),
            (FeedOrder::Unique, stop, 3.0, after, None),
            (FeedOrder::Unique, stop, 2.0, iterations(3), None),
            (FeedOrder::Unique, stop, 2.0, per_user, Some("3 rows for 4 iterations: users stop when they are used up")),
            (FeedOrder::InOrder, over, 9.0, iterations(9), None),
            (FeedOrder::Random, over, 9.0, iterations(9), None),
        ] {
            let expected = expected.map(|expected| format!("feed `row` has {expected}"));
            assert_eq!(told(order, end, users, until), expected, "{order:?}, {end:?}, {users} users");
        }
        let arriving = |rate: &Profile, arrivals| LoadProfile {
            model: LoadModel::Open { rate: rate.clone(), arrivals, max_users: 9, overflow: Overflow::Wait },
            warmup: Duration::from_secs(1),
            stop: after,
            drain: Duration::ZERO,
        };
        let steady = Profile::constant(2.0);
        assert_eq!(rows_taken(&arriving(&steady, Arrivals::Constant)), (4, "4 arrivals".to_owned()));
        let ramp = Stage { length: Duration::from_secs(1), target: 6.0, shape: Shape::Ramp };
        let rising = Profile { start: 2.0, stages: vec![ramp], joining: None };
        assert_eq!(rows_taken(&arriving(&rising, Arrivals::Poisson)), (6, "about 6 arrivals".to_owned()));
    }
}
