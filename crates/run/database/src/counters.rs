//! The counters of servers, and their rates.

use plimsoll_model::database::Engine;
use plimsoll_model::sample::{BUSY_CONNECTIONS, CONNECTIONS};
use plimsoll_sql::{Connection, SqlError};
use std::collections::BTreeMap;
use std::time::Duration;

/// All counters at one instant, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counters(BTreeMap<String, Count>);

/// The value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Count {
    /// A total, which only grows.
    Total(f64),
    /// A current value, which may fall.
    Now(f64),
}

/// The statements that read the counters of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterQuery {
    engine: Engine,
    texts: Vec<String>,
}

/// The counters of MariaDB and MySQL: our name (or its own, if no other server has it), its name, and whether it
/// is a total. Some versions lack some of them.
const MARIADB: [(&str, &str, bool); 29] = [
    ("commits", "Com_commit", true),
    ("rollbacks", "Com_rollback", true),
    ("statements", "Questions", true),
    ("rows_read", "Handler_read_first", true),
    ("rows_read", "Handler_read_key", true),
    ("rows_read", "Handler_read_last", true),
    ("rows_read", "Handler_read_next", true),
    ("rows_read", "Handler_read_prev", true),
    ("rows_read", "Handler_read_rnd", true),
    ("rows_read", "Handler_read_rnd_next", true),
    ("rows_written", "Handler_write", true),
    ("rows_written", "Handler_update", true),
    ("rows_written", "Handler_delete", true),
    ("page_hits", "Innodb_buffer_pool_read_requests", true),
    ("page_reads", "Innodb_buffer_pool_reads", true),
    ("log_bytes", "Innodb_os_log_written", true),
    ("log_syncs", "Innodb_os_log_fsyncs", true),
    ("lock_waits", "Innodb_row_lock_current_waits", false),
    ("deadlocks", "Innodb_deadlocks", true),
    (CONNECTIONS, "Threads_connected", false),
    (BUSY_CONNECTIONS, "Threads_running", false),
    ("Innodb_log_waits", "Innodb_log_waits", true),
    ("Innodb_data_fsyncs", "Innodb_data_fsyncs", true),
    ("Innodb_buffer_pool_wait_free", "Innodb_buffer_pool_wait_free", true),
    ("Innodb_row_lock_waits", "Innodb_row_lock_waits", true),
    ("Innodb_buffer_pool_pages_dirty", "Innodb_buffer_pool_pages_dirty", false),
    ("Innodb_checkpoint_age", "Innodb_checkpoint_age", false),
    ("Threads_running", "Threads_running", false),
    ("Threads_connected", "Threads_connected", false),
];

/// A counter of MySQL in another table, under the name that MariaDB has for it.
const DEADLOCKS: &str =
    "SELECT 'Innodb_deadlocks', count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'";

/// The kinds of waits of PostgreSQL's sessions, inside the server and for the client.
const WAITS: [&str; 7] = ["Lock", "LWLock", "IO", "Client", "BufferPin", "IPC", "Timeout"];

impl CounterQuery {
    /// Chooses the statements for a server of this version, about these of its databases together. MariaDB and MySQL
    /// count for the whole server.
    pub(crate) fn new(connection: &mut Connection, names: &[String]) -> Result<CounterQuery, SqlError> {
        let engine = connection.engine();
        let texts = match engine {
            Engine::Postgresql => {
                let version = connection.query("SHOW server_version_num")?;
                let number = version.rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()).unwrap_or(0);
                postgresql(number, names)
            }
            Engine::Mariadb => vec![mariadb()],
            Engine::Mysql => {
                // It exists since 5.6, for users with the privilege.
                let deadlocks = Some(DEADLOCKS.to_owned()).filter(|text| connection.query(text).is_ok());
                std::iter::once(mariadb()).chain(deadlocks).collect()
            }
        };
        Ok(CounterQuery { engine, texts })
    }

    /// Reads the counters.
    pub(crate) fn run(&self, connection: &mut Connection) -> Result<Counters, SqlError> {
        let mut rows = Vec::new();
        for text in &self.texts {
            let table = connection.query(text)?;
            rows.extend(table.rows.into_iter().filter_map(|row| {
                let mut cells = row.into_iter().flatten();
                Some((cells.next()?, cells.next()?.parse().ok()?))
            }));
        }
        Ok(Counters::of(self.engine, &rows))
    }
}

impl Counters {
    fn of(engine: Engine, rows: &[(String, f64)]) -> Counters {
        let mut counters = BTreeMap::new();
        match engine {
            Engine::Postgresql => {
                counters.extend(WAITS.map(|kind| (format!("waits:{kind}"), Count::Now(0.0))));
                counters.insert("lock_waits".to_owned(), Count::Now(0.0));
                for (name, value) in rows {
                    let now = name.starts_with("waits:") || [CONNECTIONS, BUSY_CONNECTIONS].contains(&name.as_str());
                    if name == "waits:Lock" {
                        counters.insert("lock_waits".to_owned(), Count::Now(*value));
                    }
                    counters.insert(name.clone(), if now { Count::Now(*value) } else { Count::Total(*value) });
                }
            }
            Engine::Mariadb | Engine::Mysql => {
                for (ours, theirs, grows) in MARIADB {
                    let Some((_, value)) = rows.iter().find(|(name, _)| name.eq_ignore_ascii_case(theirs)) else {
                        continue;
                    };
                    let before = match counters.get(ours) {
                        Some(Count::Total(before)) => *before,
                        _ => 0.0,
                    };
                    let count = if grows { Count::Total(before + value) } else { Count::Now(*value) };
                    counters.insert(ours.to_owned(), count);
                }
                // Requests include those that had to read from disk.
                if let (Some(Count::Total(reads)), Some(Count::Total(hits))) =
                    (counters.get("page_reads").copied(), counters.get_mut("page_hits"))
                {
                    *hits -= reads;
                }
                // The connection that asks is one of them.
                for name in [CONNECTIONS, BUSY_CONNECTIONS] {
                    if let Some(Count::Now(now)) = counters.get_mut(name) {
                        *now = (*now - 1.0).max(0.0);
                    }
                }
            }
        }
        Counters(counters)
    }

    /// The rates of totals since `before`, per second, and the current values. A total that was reset in between
    /// is left out.
    pub(crate) fn since(&self, before: &Counters, span: Duration) -> Vec<(String, f64)> {
        let seconds = span.as_secs_f64();
        let of = |(name, count): (&String, &Count)| {
            let value = match (count, before.0.get(name)) {
                (Count::Now(now), _) => *now,
                (Count::Total(after), Some(Count::Total(before))) if after >= before && seconds > 0.0 => {
                    (after - before) / seconds
                }
                _ => return None,
            };
            Some((name.clone(), value))
        };
        self.0.iter().filter_map(of).collect()
    }

    /// The rates of totals alone.
    pub(crate) fn rates_since(&self, before: &Counters, span: Duration) -> Vec<(String, f64)> {
        let is_total = |name: &str| matches!(self.0.get(name), Some(Count::Total(_)));
        self.since(before, span).into_iter().filter(|(name, _)| is_total(name)).collect()
    }
}

/// The counters of a database in `pg_stat_database` that are sampled.
const OF_DATABASE: [&str; 10] = [
    "xact_commit",
    "xact_rollback",
    "tup_returned",
    "tup_inserted",
    "tup_updated",
    "tup_deleted",
    "blks_hit",
    "blks_read",
    "deadlocks",
    "temp_bytes",
];

/// One statement for all counters, one for the current waits of sessions, and one for connections, each for all these
/// databases together. The names of columns are those of the views of each version.
fn postgresql(version: u32, databases: &[String]) -> Vec<String> {
    let mut counted = vec![
        ("commits", "d.xact_commit"),
        ("rollbacks", "d.xact_rollback"),
        ("rows_read", "d.tup_returned"),
        ("rows_written", "d.tup_inserted + d.tup_updated + d.tup_deleted"),
        ("page_hits", "d.blks_hit"),
        ("page_reads", "d.blks_read"),
        ("log_bytes", "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"),
        ("deadlocks", "d.deadlocks"),
        ("temp_bytes", "d.temp_bytes"),
    ];
    if (140_000..180_000).contains(&version) {
        counted.push(("log_syncs", "(SELECT wal_sync FROM pg_stat_wal)"));
        counted.push(("wal_buffers_full", "(SELECT wal_buffers_full FROM pg_stat_wal)"));
    }
    if version >= 180_000 {
        counted.push(("log_syncs", "(SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal')"));
    }
    if version >= 170_000 {
        counted.push(("checkpoints", "(SELECT num_timed + num_requested FROM pg_stat_checkpointer)"));
        counted.push(("buffers_checkpoint", "(SELECT buffers_written FROM pg_stat_checkpointer)"));
    } else {
        counted.push(("checkpoints", "(SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter)"));
        counted.push(("buffers_checkpoint", "(SELECT buffers_checkpoint FROM pg_stat_bgwriter)"));
        counted.push(("buffers_backend", "(SELECT buffers_backend FROM pg_stat_bgwriter)"));
    }
    let pairs: Vec<String> = counted.iter().map(|(name, of)| format!("('{name}', ({of})::numeric)")).collect();
    let sums: Vec<String> = OF_DATABASE.iter().map(|name| format!("sum({name}) AS {name}")).collect();
    let names: Vec<String> = databases.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
    let names = names.join(", ");
    vec![
        format!(
            "SELECT v.* FROM (SELECT {} FROM pg_stat_database WHERE datname IN ({names})) d \
             CROSS JOIN LATERAL (VALUES {}) v",
            sums.join(", "),
            pairs.join(", ")
        ),
        format!(
            "SELECT 'waits:' || wait_event_type, count(*) FROM pg_stat_activity \
             WHERE datname IN ({names}) AND wait_event_type IS NOT NULL AND pid <> pg_backend_pid() GROUP BY 1"
        ),
        format!(
            "SELECT v.* FROM (SELECT count(*) AS known, count(*) FILTER (WHERE state <> 'idle') AS busy \
             FROM pg_stat_activity \
             WHERE datname IN ({names}) AND backend_type = 'client backend' AND pid <> pg_backend_pid()) c \
             CROSS JOIN LATERAL (VALUES ('{CONNECTIONS}', c.known), ('{BUSY_CONNECTIONS}', c.busy)) v"
        ),
    ]
}

fn mariadb() -> String {
    let names: Vec<String> = MARIADB.iter().map(|(_, theirs, _)| format!("'{theirs}'")).collect();
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(engine: Engine, rows: &[(&str, f64)]) -> Counters {
        let rows: Vec<(String, f64)> = rows.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        Counters::of(engine, &rows)
    }

    fn value(samples: &[(String, f64)], name: &str) -> Option<f64> {
        samples.iter().find(|(counter, _)| counter == name).map(|(_, value)| *value)
    }

    #[test]
    fn totals_become_rates_and_what_comes_and_goes_stays_as_it_is() {
        let before = counters(
            Engine::Mariadb,
            &[
                ("Com_commit", 100.0),
                ("Handler_write", 10.0),
                ("Handler_update", 20.0),
                ("Innodb_buffer_pool_read_requests", 1000.0),
                ("Innodb_buffer_pool_reads", 100.0),
                ("Threads_running", 9.0),
                ("Questions", 50.0),
            ],
        );
        let after = counters(
            Engine::Mariadb,
            &[
                ("COM_COMMIT", 150.0),
                ("Handler_write", 12.0),
                ("Handler_update", 25.0),
                ("Innodb_buffer_pool_read_requests", 1500.0),
                ("Innodb_buffer_pool_reads", 200.0),
                ("Threads_running", 4.0),
                ("Threads_connected", 12.0),
                ("Innodb_row_lock_current_waits", 3.0),
                ("Questions", 10.0),
            ],
        );
        let samples = after.since(&before, Duration::from_millis(500));
        assert_eq!(value(&samples, "commits"), Some(100.0));
        assert_eq!(value(&samples, "rows_written"), Some(14.0));
        assert_eq!(value(&samples, "page_reads"), Some(200.0));
        assert_eq!(value(&samples, "page_hits"), Some(800.0), "without those that had to read");
        assert_eq!(value(&samples, "Threads_running"), Some(4.0));
        let connections = [CONNECTIONS, BUSY_CONNECTIONS].map(|name| value(&samples, name));
        assert_eq!(connections, [Some(11.0), Some(3.0)], "without the one that asks");
        assert_eq!(value(&samples, "lock_waits"), Some(3.0));
        assert_eq!(value(&samples, "statements"), None, "it was set back");
        assert_eq!(value(&samples, "log_syncs"), None, "this version does not count them");
    }

    #[test]
    fn nobody_waiting_is_zero_and_not_unknown() {
        let quiet = counters(Engine::Postgresql, &[("commits", 1.0)]);
        let busy = counters(Engine::Postgresql, &[("commits", 3.0), ("waits:Lock", 5.0), ("waits:Extension", 1.0)]);
        let second = Duration::from_secs(1);
        assert_eq!(value(&quiet.since(&busy, second), "lock_waits"), Some(0.0));
        assert_eq!(value(&busy.since(&quiet, second), "lock_waits"), Some(5.0));
        assert_eq!(value(&busy.since(&quiet, second), "waits:Lock"), Some(5.0));
        assert_eq!(value(&busy.since(&quiet, second), "waits:Extension"), Some(1.0));
        assert_eq!(value(&busy.since(&quiet, second), "commits"), Some(2.0));
    }

    #[test]
    fn all_databases_of_a_server_are_counted_together() {
        let statements = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            postgresql(150_000, &names)
        };
        for statement in statements(&["shop", "it's"]) {
            assert!(statement.contains("WHERE datname IN ('shop', 'it''s')"), "{statement}");
        }
        let counted = statements(&["shop"]).swap_remove(0);
        assert!(counted.contains("sum(xact_commit) AS xact_commit") && counted.contains("IN ('shop')"), "{counted}");
        for rest in counted.split("d.").skip(1) {
            let column = rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default();
            assert!(OF_DATABASE.contains(&column), "{column} is not summed");
        }
    }
}
