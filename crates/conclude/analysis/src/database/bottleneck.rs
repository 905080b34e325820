//! Possible limits of the throughput of a cell, from means over its measure phases. None of this is
//! proof: a rule names a limit that is consistent with the numbers, and shows them.

use super::statistics::{CPU, GENERATOR, HIT_RATIO, HOST, IO_WAIT, READ};
use super::{Cell, Statement};
use crate::quantity::{grouped, percent, show, significant};
use plimsoll_model::measure::Unit;
use plimsoll_model::record::ErrorKind;

/// A possible limit of the throughput of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PossibleLimit {
    /// The limit, in a word or two.
    pub what: &'static str,
    /// The numbers that are consistent with it.
    pub evidence: String,
}

/// Share of the machine's processors in use from which on processors are a possible limit.
const BUSY_PROCESSORS: f64 = 0.9;

/// The name of the limit where another process uses most of the processors.
const PROCESSORS_OF_OTHERS: &str = "processors, which others use";

/// Share of the transactions' time in COMMIT from which on syncs of the log are a possible limit.
const SHARE_IN_COMMIT: f64 = 0.3;

/// Share of the time in which a sync must be in progress for that.
const SHARE_IN_SYNC: f64 = 0.5;

/// Share of the users that wait for a lock from which on locks are a possible limit.
const SHARE_WAITING_FOR_LOCKS: f64 = 0.2;

/// Share of transactions with conflicts from which on the conflicts are mentioned.
const SHARE_IN_CONFLICT: f64 = 0.01;

/// Hit ratio of the server's own cache below which reads are a possible limit.
const CACHE_HIT_RATIO: f64 = 0.99;

/// Share of the machine's processors that must wait for storage for that.
const SHARE_WAITING_FOR_STORAGE: f64 = 0.1;

/// The means of a cell that the rules use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CellMeans {
    /// Processors of the machine.
    pub(super) processors: f64,
    /// Cores in use by all processes.
    pub(super) host: Option<f64>,
    /// Cores in use by the databases.
    pub(super) server: Option<f64>,
    /// Cores in use by the systems beside them, such as the service that they serve.
    pub(super) systems: Option<f64>,
    /// Cores in use by the generator.
    pub(super) generator: Option<f64>,
    /// Cores that waited for storage.
    pub(super) io_wait: Option<f64>,
    /// Users at work.
    pub(super) users: Option<f64>,
    /// Commits per second.
    pub(super) commits: Option<f64>,
    /// Syncs of the log per second.
    pub(super) log_syncs: Option<f64>,
    /// COMMIT: its share of the transactions' time, and its mean duration in seconds.
    pub(super) commit: Option<(f64, f64)>,
    /// Sessions that wait for a lock.
    pub(super) lock_waits: Option<f64>,
    /// Errors and retries for deadlocks, serialization and lock time-outs, per transaction.
    pub(super) conflicts: Option<f64>,
    /// Share of page requests that the server's own cache answers.
    pub(super) hit_ratio: Option<f64>,
    /// Bytes per second that the databases read from storage.
    pub(super) read: Option<f64>,
}

impl CellMeans {
    /// The means of a cell, with the names of all that the study starts in `started`.
    pub(super) fn new(
        cell: &Cell,
        databases: &[String],
        started: &[String],
        processors: f64,
        users: Option<f64>,
    ) -> CellMeans {
        let of = |whose: &str, name: &str| Some(cell.statistic(whose, name)?.mean);
        let systems = started.iter().filter(|name| !databases.contains(name));
        let sum = |name: &str| databases.iter().filter_map(|database| of(database, name)).reduce(|one, two| one + two);
        CellMeans {
            processors,
            host: of(HOST, CPU),
            server: sum(CPU),
            systems: systems.filter_map(|system| of(system, CPU)).reduce(|one, two| one + two),
            generator: of(GENERATOR, CPU),
            io_wait: of(HOST, IO_WAIT),
            users,
            commits: sum("commits"),
            log_syncs: sum("log_syncs"),
            commit: commit(cell),
            lock_waits: sum("lock_waits"),
            conflicts: conflicts(cell),
            hit_ratio: databases.iter().filter_map(|database| of(database, HIT_RATIO)).reduce(f64::min),
            read: sum(READ),
        }
    }
}

/// The share and mean duration of COMMIT over all transactions; none where slices were lost, so that the two do not match.
fn commit(cell: &Cell) -> Option<(f64, f64)> {
    let commits: Vec<&Statement> =
        cell.statements.iter().filter(|one| one.statement.eq_ignore_ascii_case("commit")).collect();
    let runs: u64 = commits.iter().map(|one| one.runs).sum();
    let time: f64 = commits.iter().map(|one| one.mean * one.runs as f64).sum();
    let all: f64 = cell.transactions.iter().map(|one| one.mean * one.total as f64).sum();
    let is_whole = commits.iter().all(|one| one.share.is_some());
    (runs > 0 && all > 0.0 && is_whole).then(|| (time / all, time / runs as f64))
}

fn conflicts(cell: &Cell) -> Option<f64> {
    const KINDS: [ErrorKind; 3] = [ErrorKind::Deadlock, ErrorKind::Serialization, ErrorKind::LockTimeout];
    let total: u64 = cell.transactions.iter().map(|one| one.total).sum();
    let of = |counts: &std::collections::BTreeMap<ErrorKind, u64>| -> u64 {
        KINDS.iter().filter_map(|kind| counts.get(kind)).sum()
    };
    (total > 0).then(|| (of(&cell.errors) + of(&cell.retries)) as f64 / total as f64)
}

/// The limits that the means of a cell are consistent with; `before` are the means at the next
/// smaller load.
pub(super) fn possible_limits(means: &CellMeans, before: Option<&CellMeans>) -> Vec<PossibleLimit> {
    [processors(means), log_syncs(means), locks(means, before), reads(means)].into_iter().flatten().collect()
}

/// The evidence that is missing because a server does not count it: a rule without its numbers is
/// silent, and that silence means nothing.
pub(super) fn not_counted(cells: &[Cell], databases: &[String]) -> Vec<String> {
    let counts = |database: &str, name: &str| cells.iter().any(|cell| cell.statistic(database, name).is_some());
    // A server that commits by itself has no commits, and counts all the same.
    let counts_some = |database: &str| counts(database, "commits") || counts(database, "rows_read");
    let blind = databases.iter().filter(|database| counts_some(database) && !counts(database, "log_syncs"));
    let most = cells.iter().filter_map(commit).map(|(share, _)| share).reduce(f64::max);
    let commit = most.map(|share| format!(" (COMMIT takes up to {} of the time of transactions)", percent(share)));
    let commit = commit.unwrap_or_default();
    let line = |database: &String| {
        format!("{database} does not count the syncs of its log, so whether they are the limit cannot be said{commit}.")
    };
    blind.map(line).collect()
}

fn possible_limit(what: &'static str, evidence: String) -> PossibleLimit {
    PossibleLimit { what, evidence }
}

fn processors(means: &CellMeans) -> Option<PossibleLimit> {
    let CellMeans { processors, server, systems, generator, .. } = *means;
    let of_study = server.zip(generator).map(|(server, generator)| server + systems.unwrap_or(0.0) + generator);
    let used = means.host.or(of_study)?;
    if used < BUSY_PROCESSORS * processors || processors <= 0.0 {
        return None;
    }
    let share = |name: &str, cores: Option<f64>| {
        cores.map(|cores| format!(", {name} {} ({})", show(cores, Unit::Cores), percent(cores / used)))
    };
    let others = means.host.zip(of_study).map(|(host, of_study)| (host - of_study).max(0.0));
    let parts = [
        share("database", server),
        share("other systems of the study", systems),
        share("generator", generator),
        share("other programs and the kernel", others),
    ];
    let parts: String = parts.into_iter().flatten().collect();
    // Where other processes use most of them, the database is not the one that lacks them.
    let what = if others.is_some_and(|others| others > used / 2.0) { PROCESSORS_OF_OTHERS } else { "processors" };
    Some(possible_limit(what, format!("{} of {processors} used{parts}", show(used, Unit::Cores))))
}

/// The time of COMMIT is an upper bound for the time of a sync: COMMIT may wait for other things as
/// well.
fn log_syncs(means: &CellMeans) -> Option<PossibleLimit> {
    let ((share, mean), syncs) = means.commit.zip(means.log_syncs)?;
    let under_way = syncs * mean;
    (share >= SHARE_IN_COMMIT && under_way >= SHARE_IN_SYNC).then(|| {
        let commits = means.commits.map(|commits| format!(" for {} commits", significant(commits)));
        possible_limit(
            "syncs of the log",
            format!(
                "COMMIT is {} of the time of transactions, {} on average; {} syncs a second{}",
                percent(share),
                show(mean, Unit::Seconds),
                significant(syncs),
                commits.unwrap_or_default()
            ),
        )
    })
}

fn locks(means: &CellMeans, before: Option<&CellMeans>) -> Option<PossibleLimit> {
    let waiting = |means: &CellMeans| means.lock_waits.zip(means.users).filter(|(_, users)| *users > 0.0);
    let waiting_now =
        waiting(means).filter(|(waits, users)| waits / users >= SHARE_WAITING_FOR_LOCKS).map(|(waits, users)| {
            let earlier = before.and_then(waiting).map(|(waits, users)| {
                format!(" ({} of {} at the next smaller load)", significant(waits), grouped(users))
            });
            let earlier = earlier.unwrap_or_default();
            format!("{} of {} users wait for a lock on average{earlier}", significant(waits), grouped(users))
        });
    let conflicting = means.conflicts.filter(|share| *share >= SHARE_IN_CONFLICT).map(|share| {
        let earlier = before.and_then(|before| before.conflicts);
        let earlier = earlier.map(|share| format!(" ({} at the next smaller load)", percent(share)));
        format!("{} conflicts for each transaction{}", percent(share), earlier.unwrap_or_default())
    });
    let evidence: Vec<String> = [waiting_now, conflicting].into_iter().flatten().collect();
    (!evidence.is_empty()).then(|| possible_limit("locks", evidence.join("; ")))
}

fn reads(means: &CellMeans) -> Option<PossibleLimit> {
    let (hit_ratio, waited) = means.hit_ratio.zip(means.io_wait)?;
    let read = means.read.filter(|read| *read > 0.0)?;
    (hit_ratio < CACHE_HIT_RATIO && waited >= SHARE_WAITING_FOR_STORAGE * means.processors).then(|| {
        possible_limit(
            "reads from storage",
            format!(
                "the server's cache answers {} of page requests; {} read, processors wait for storage for {}",
                percent(hit_ratio),
                show(read, Unit::BytesPerSecond),
                show(waited, Unit::Cores)
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(means: &CellMeans) -> Vec<&'static str> {
        possible_limits(means, None).into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn each_rule_needs_its_numbers() {
        let idle = CellMeans { processors: 2.0, host: Some(0.9), users: Some(16.0), ..CellMeans::default() };
        let cases = [
            (idle.clone(), &[][..]),
            (CellMeans { host: Some(1.85), ..idle.clone() }, &["processors"]),
            (CellMeans { host: None, server: Some(1.3), generator: Some(0.6), ..idle.clone() }, &["processors"]),
            (
                CellMeans { host: Some(1.9), server: Some(0.3), generator: Some(0.1), ..idle.clone() },
                &[PROCESSORS_OF_OTHERS],
            ),
            (
                CellMeans {
                    host: Some(1.9),
                    server: Some(0.3),
                    systems: Some(1.4),
                    generator: Some(0.1),
                    ..idle.clone()
                },
                &["processors"],
            ),
            (CellMeans { commit: Some((0.6, 0.002)), log_syncs: Some(400.0), ..idle.clone() }, &["syncs of the log"]),
            (CellMeans { commit: Some((0.6, 0.002)), log_syncs: Some(3.0), ..idle.clone() }, &[]),
            (CellMeans { commit: Some((0.1, 0.002)), log_syncs: Some(400.0), ..idle.clone() }, &[]),
            (CellMeans { lock_waits: Some(6.0), ..idle.clone() }, &["locks"]),
            (CellMeans { lock_waits: Some(1.0), conflicts: Some(0.001), ..idle.clone() }, &[]),
            (CellMeans { conflicts: Some(0.02), ..idle.clone() }, &["locks"]),
            (
                CellMeans { hit_ratio: Some(0.8), io_wait: Some(0.5), read: Some(2e7), ..idle.clone() },
                &["reads from storage"],
            ),
            (CellMeans { hit_ratio: Some(0.999), io_wait: Some(0.5), read: Some(2e7), ..idle }, &[]),
        ];
        for (means, expected) in cases {
            assert_eq!(what(&means), expected, "{means:?}");
        }
    }

    #[test]
    fn the_evidence_has_the_numbers_and_those_before() {
        let waits = |lock_waits, users| CellMeans {
            processors: 2.0,
            lock_waits: Some(lock_waits),
            users: Some(users),
            ..CellMeans::default()
        };
        let found = possible_limits(&waits(6.0, 16.0), Some(&waits(1.0, 8.0)));
        assert_eq!(
            found[0].evidence,
            "6.00 of 16 users wait for a lock on average (1.00 of 8 at the next smaller load)"
        );
    }
}
