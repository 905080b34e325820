//! Fills an empty database with the tables of the tests.

use super::content::{Content, Row};
use super::tables;
use crate::loader_pool::LoaderPool;
use plimsoll_model::database::{Endpoint, Engine};
use plimsoll_sql::{Connection, SqlError, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows that one connection loads in one transaction.
const PART: u64 = 10_000;

/// Loads `count` tables of `rows` rows each, and makes their indexes. Calls `progress` with the step
/// under way and the share that is done.
///
/// # Errors
/// The server refuses, is gone, or its disk is full; or `interrupted` was set.
pub(crate) fn load(
    (count, rows, seed): (u32, u64, u64),
    endpoint: &Endpoint,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<(), SqlError> {
    let loaders = LoaderPool { endpoint, interrupted };
    let tables: Vec<(u32, String)> = (1..).zip(tables(count)).collect();
    loaders.run_all(
        &tables,
        &|connection, (_, table)| connection.batch(&create(endpoint.engine, table)),
        &mut || (),
    )?;
    let content = Content::new(rows, seed);
    let parts: Vec<(u32, u64)> =
        (1..=count).flat_map(|table| (0..rows).step_by(PART as usize).map(move |first| (table, first + 1))).collect();
    let (loaded, whole) = (AtomicU64::new(0), (u64::from(count) * rows).max(1));
    let fill = |connection: &mut Connection, part: &(u32, u64)| {
        fill(connection, &content, *part, rows).map(|rows| {
            loaded.fetch_add(rows, Ordering::Relaxed);
        })
    };
    loaders.run_all(&parts, &fill, &mut || {
        let share = loaded.load(Ordering::Relaxed) as f64 / whole as f64;
        progress("loading rows", share * 0.9);
    })?;
    loaders.run_all(&tables, &|connection, (number, table)| finish(connection, *number, table, rows), &mut || {
        progress("making indexes", 0.95);
    })?;
    progress("loaded", 1.0);
    Ok(())
}

fn create(engine: Engine, table: &str) -> String {
    let (id, rest) = match engine {
        Engine::Postgresql => ("SERIAL", ""),
        Engine::Mariadb | Engine::Mysql => ("INTEGER NOT NULL AUTO_INCREMENT", " ENGINE = InnoDB"),
    };
    format!(
        "CREATE TABLE {table} (id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
         pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)){rest}"
    )
}

/// Loads a part of a table, and returns its number of rows.
fn fill(
    connection: &mut Connection,
    content: &Content,
    (table, first): (u32, u64),
    rows: u64,
) -> Result<u64, SqlError> {
    // One transaction is one wait for the disk.
    connection.batch("BEGIN")?;
    let mut bulk = connection.bulk(&format!("sbtest{table}"), &["id", "k", "c", "pad"])?;
    let (mut next, mut row) = (content.rows(table, first), Row::default());
    for id in first..=rows.min(first + PART - 1) {
        next(&mut row);
        bulk.row(&[Value::Int(id as i64), Value::Int(row.k), Value::Text(&row.c), Value::Text(&row.pad)])?;
    }
    let loaded = bulk.finish()?;
    connection.batch("COMMIT").map(|()| loaded)
}

/// Makes the second index and updates the server's statistics, which it would otherwise do during a
/// trial.
fn finish(connection: &mut Connection, number: u32, table: &str, rows: u64) -> Result<(), SqlError> {
    connection.batch(&format!("CREATE INDEX k_{number} ON {table}(k)"))?;
    match connection.engine() {
        Engine::Postgresql => {
            connection.query(&format!("SELECT setval('{table}_id_seq', {rows})"))?;
            connection.batch(&format!("VACUUM (ANALYZE) {table}"))
        }
        Engine::Mariadb | Engine::Mysql => connection.query(&format!("ANALYZE TABLE {table}")).map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Fingerprint;

    #[test]
    fn a_load_makes_what_it_made_before() {
        let mut fingerprint = Fingerprint::new();
        for engine in [Engine::Postgresql, Engine::Mariadb] {
            fingerprint.add(&create(engine, "sbtest1"));
        }
        let content = Content::new(1_000, 1);
        let (mut next, mut row) = (content.rows(1, 1), Row::default());
        for _ in 0..1_000 {
            next(&mut row);
            fingerprint.add(&format!("{row:?}"));
        }
        fingerprint.assert_is(0x348b_9298_d351_a152);
    }
}
