//! The tables of a study file, one module each: its keys, what they become in a trial, and tests
//! of how they are read.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod capture;
pub(crate) mod condition;
pub(crate) mod containers;
pub(crate) mod database;
pub(crate) mod decide;
pub(crate) mod design;
mod expect;
pub(crate) mod factors;
pub(crate) mod feed;
pub(crate) mod flow;
pub(crate) mod generator;
pub(crate) mod grpc;
pub(crate) mod http;
mod identifier;
pub(crate) mod load;
pub(crate) mod metrics;
pub(crate) mod named_tables;
pub(crate) mod objective;
pub(crate) mod oltp;
pub(crate) mod only;
pub(crate) mod ready;
pub(crate) mod report;
pub(crate) mod root;
pub(crate) mod script;
pub(crate) mod secret;
pub(crate) mod settings;
pub(crate) mod socket;
pub(crate) mod sql;
pub(crate) mod stage;
pub(crate) mod step;
pub(crate) mod storage;
pub(crate) mod store;
pub(crate) mod system;
pub(crate) mod target;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tpcc;
pub(crate) mod transaction;
pub(crate) mod url;
pub(crate) mod value_check;
pub(crate) mod workload;

use database::{ExternalTable, ServerTable};
use decide::DecideTable;
use generator::{GeneratorTable, TargetsTable};
use grpc::{GrpcStepTable, GrpcTable};
use http::{HttpStepTable, HttpTable};
use load::LoadTable;
use oltp::OltpTable;
use report::ReportTable;
use root::StudyTable;
use script::ScriptTable;
use socket::{DeliveriesTable, SocketTable};
use sql::SqlTable;
use storage::{StorageStepTable, StorageTable};
use store::{DirectoryTable, NfsTable, S3Table};
use system::SystemTable;
use tpcc::TpccTable;
use transaction::{StatementTable, TransactionTable};

/// Where keys belong. What every workload has stands before what only some have.
const KEY_LOCATIONS: [(&str, &[&str]); 28] = [
    ("at the top level of the file", StudyTable::KEYS),
    ("in [targets]", TargetsTable::KEYS),
    ("in [generator]", GeneratorTable::KEYS),
    ("in [system.NAME]", SystemTable::KEYS),
    ("in [store.NAME]", DirectoryTable::KEYS),
    ("in [store.NAME]", NfsTable::KEYS),
    ("in [store.NAME] with `s3`", S3Table::KEYS),
    ("in [database.NAME]", ServerTable::KEYS),
    ("in [database.NAME] with `url`", ExternalTable::KEYS),
    ("in [workload]", HttpTable::KEYS),
    ("in [workload] with `script`", ScriptTable::KEYS),
    ("in [workload] with `protocol = \"grpc\"`", GrpcTable::KEYS),
    ("in [workload] with `protocol = \"storage\"`", StorageTable::KEYS),
    ("in [workload] with `protocol = \"sql\"`", SqlTable::KEYS),
    ("in a step of an HTTP workload", HttpStepTable::KEYS),
    ("in a step of an HTTP workload", &["pause", "repeat", "each", "while", "await"]),
    ("in [workload.socket]", SocketTable::KEYS),
    ("in [workload.socket.deliveries]", DeliveriesTable::KEYS),
    ("in a step of a gRPC workload", GrpcStepTable::KEYS),
    ("in a step of a storage workload", StorageStepTable::KEYS),
    ("in an action of a workload", &["weight"]),
    ("in `tpcc` of a SQL workload", TpccTable::KEYS),
    ("in `oltp` of a SQL workload", OltpTable::KEYS),
    ("in a transaction of a SQL workload", TransactionTable::KEYS),
    ("in a statement of a SQL workload", StatementTable::KEYS),
    ("in [load]", LoadTable::KEYS),
    ("in [decide]", DecideTable::KEYS),
    ("in [report]", ReportTable::KEYS),
];

/// Where a key that stands in the table of this path belongs, if any has it: `in [generator] or in [system.NAME]`.
pub(crate) fn location_of_key(key: &str, table: &str) -> Option<String> {
    // What looks like the user of a database is a slip for the users of a load.
    let has = |keys: &[&str]| keys.contains(&key) && key != "user";
    let mut places: Vec<&str> = KEY_LOCATIONS.iter().filter(|(_, keys)| has(keys)).map(|(place, _)| *place).collect();
    places.dedup_by(|later, earlier| later.starts_with(*earlier));
    // It stands in the workload, which is of another protocol.
    if let Some(place) = places.iter_mut().find(|place| table == "workload" && **place == "in [workload]") {
        *place = "in [workload] with `protocol = \"http\"`";
    }
    (!places.is_empty()).then(|| places.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::location_of_key;

    #[test]
    fn a_key_is_located_in_every_table_that_has_it() {
        for (key, home) in [
            ("cpus", "in [generator] or in [system.NAME] or in [database.NAME]"),
            ("warehouses", "in `tpcc` of a SQL workload"),
            ("statements", "in a transaction of a SQL workload"),
            ("isolation", "in [workload] with `protocol = \"sql\"`"),
            ("steps", "in [workload]"),
            ("proto", "in [workload] with `protocol = \"grpc\"`"),
            ("repeats", "at the top level of the file"),
        ] {
            assert_eq!(location_of_key(key, "load").as_deref(), Some(home), "{key}");
        }
        assert_eq!(location_of_key("colour", "load"), None);
    }
}
