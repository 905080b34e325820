//! Which databases a study uses and what lies in them, in words.

use super::study::this_program;
use crate::exit::Failure;
use plimsoll_model::database::{Database, Dataset, Origin, Snapshot};
use plimsoll_model::trial::Plan;
use plimsoll_study::Study;

/// A line for each database and each kind of data in it: `db: MariaDB with TPC-C of 2 warehouses;
/// loaded once, copied before every trial`. Nothing is started to find out.
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
    let data = data(dataset);
    match origin {
        Origin::Started(server) => {
            let kept = server.data.as_ref().map(|data| format!(", kept in {}", data.display())).unwrap_or_default();
            let restored = match server.snapshot {
                Snapshot::Copy => "copied before every trial",
                Snapshot::Template => "made from a template before every trial",
            };
            format!("{engine} with {data}; loaded once{kept}, {restored}")
        }
        Origin::External(external) => {
            let restored = match &external.restore {
                Some(command) => format!("restored by `{command}` before every trial"),
                None => "used as it is, and never restored".to_owned(),
            };
            format!("{engine} at {} with {data}; {restored}", external.endpoint.address)
        }
    }
}

fn data(dataset: &Dataset) -> String {
    let counted = |count: u64, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
    match dataset {
        Dataset::Tpcc { warehouses, .. } => format!("TPC-C of {}", counted(u64::from(*warehouses), "warehouse")),
        Dataset::Sbtest { tables, rows, .. } => {
            format!("{} of {}", counted(u64::from(*tables), "table"), counted(*rows, "row"))
        }
        Dataset::Scripts(files) => {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            format!("what {} makes", names.join(", "))
        }
        Dataset::Empty => "nothing in it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::{Engine, Server};
    use std::time::Duration;

    #[test]
    fn a_database_reads_well() {
        let server = Server {
            programs: None,
            user: None,
            init: Vec::new(),
            data: Some("data/db".into()),
            snapshot: Snapshot::Copy,
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
        };
        let expected = "MariaDB with 1 table of 1000 rows; loaded once, kept in data/db, copied before every trial";
        assert_eq!(words(&database), expected);
    }
}
