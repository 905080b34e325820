//! Describes the databases that a study uses, and their data.

use super::study::this_program;
use crate::exit::Failure;
use plimsoll_analysis::quantity;
use plimsoll_model::database::{Database, Dataset, Origin, Snapshot};
use plimsoll_model::measure::Unit;
use plimsoll_model::plan::Plan;
use plimsoll_study::Study;

/// A line for each database and each kind of data in it: `db: MariaDB with TPC-C of 2 warehouses; loaded once, copied
/// before every trial`. Starts nothing.
pub(super) fn in_words(study: &Study, plan: &Plan) -> Result<Vec<String>, Failure> {
    let mut lines: Vec<String> = Vec::new();
    for database in plimsoll_runner::databases(study, plan, &this_program()?) {
        let line = format!("{}: {}", database.name, words(&database));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(lines)
}

fn words(database: &Database) -> String {
    let Database { engine, origin, dataset, .. } = database;
    let data = format!("{dataset}{}", size(database));
    match origin {
        Origin::Started(server) => {
            let kept = server.data.as_ref().map(|data| format!(", kept in {}", data.display())).unwrap_or_default();
            let restored = match server.snapshot {
                Snapshot::Copy => "copied before every trial",
                Snapshot::Template => "made from a template before every trial",
            };
            let migrated = if server.migrate.is_some() { ", migrated on each start" } else { "" };
            let asked = match database.expected.len() {
                0 => String::new(),
                1 => "; asked for what is expected after the loads".to_owned(),
                count => format!("; asked for {count} things that are expected after the loads"),
            };
            format!("{engine} with {data}; loaded once{kept}, {restored}{migrated}{asked}")
        }
        Origin::External(external) => {
            let restored = match &external.restore {
                Some(command) => format!("restored by `{command}` before every trial"),
                None => "used as it is, and never restored".to_owned(),
            };
            let data = if *dataset == Dataset::Empty { String::new() } else { format!(" with {data}") };
            format!("{engine} at {}{data}; {restored}", external.endpoint.address)
        }
    }
}

/// The approximate size of the data, if the run makes it and its size is known beforehand.
fn size(database: &Database) -> String {
    let started = matches!(database.origin, Origin::Started(_));
    let size = plimsoll_runner::expected_size(database.engine, &database.dataset).filter(|_| started);
    size.map(|size| format!(" (about {})", quantity::show(size as f64, Unit::Bytes))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::{Engine, Server};
    use std::time::Duration;

    #[test]
    fn a_database_reads_well() {
        let server = Server {
            on: None,
            listen: std::net::Ipv4Addr::LOCALHOST.into(),
            programs: None,
            user: None,
            init: Vec::new(),
            data: Some("data/db".into()),
            snapshot: Snapshot::Copy,
            databases: vec!["plimsoll".to_owned()],
            roles: vec!["service".to_owned()],
            password: None,
            migrate: None,
            port: 1,
            cpus: None,
            ready_within: Duration::ZERO,
            stop_grace: Duration::ZERO,
        };
        let database = Database {
            name: "db".to_owned(),
            engine: Engine::Mariadb,
            origin: Origin::Started(Box::new(server)),
            settings: Vec::new(),
            dataset: Dataset::Sbtest { tables: 1, rows: 1000, seed: 1 },
            warm: false,
            expected: Vec::new(),
        };
        let expected =
            "MariaDB with 1 table of 1000 rows (about 130 MB); loaded once, kept in data/db, copied before every trial";
        assert_eq!(words(&database), expected);
    }
}
