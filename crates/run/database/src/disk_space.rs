//! How much disk space the data of a run takes, and which disks lack it.

use crate::data_folder::left_over;
use crate::mark::{FolderOwner, Mark};
use crate::scratch::PLACE;
use plimsoll_model::database::{Database, Dataset, Engine, Origin, Server, Snapshot};
use plimsoll_system::free_space;
use rustix::fs::statfs;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes that a new server takes before anything is loaded.
fn empty(engine: Engine) -> u64 {
    match engine {
        Engine::Postgresql => 50_000_000,
        Engine::Mariadb | Engine::Mysql => 130_000_000,
    }
}

/// About how many bytes loaded data takes, log included, as measured with PostgreSQL 15 and MariaDB
/// 10.11. None for data of the study's own scripts.
#[must_use]
pub fn expected_size(engine: Engine, dataset: &Dataset) -> Option<u64> {
    let (warehouse, row) = match engine {
        Engine::Postgresql => (105_000_000, 260),
        Engine::Mariadb | Engine::Mysql => (110_000_000, 250),
    };
    let loaded = match dataset {
        Dataset::Tpcc { warehouses, .. } => u64::from(*warehouses).saturating_mul(warehouse),
        Dataset::Sbtest { tables, rows, .. } => u64::from(*tables).saturating_mul(*rows).saturating_mul(row),
        Dataset::Scripts(_) | Dataset::Empty => return None,
    };
    Some(loaded.saturating_add(empty(engine)))
}

/// What the databases of a run need on one disk.
#[derive(Debug, Default)]
struct DiskDemand {
    folder: PathBuf,
    /// All data that is kept during the run.
    loaded: u64,
    /// The copies of the start that needs most for them.
    copies: Copies,
    /// Bytes that killed runs have left in folders for data, and that are removed before anything is made.
    freed: u64,
    what: BTreeSet<String>,
}

/// The copies on one disk that a start needs at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Copies {
    bytes: u64,
    number: usize,
}

/// One fault for each disk that lacks the space for the databases of these starts, which come one after the other: the
/// data of each, as often as it is made, and the copies that a start works on at the same time.
#[must_use]
pub fn check_disk_space_of_starts(starts: &[Vec<Database>]) -> Vec<String> {
    let fault = |demand: DiskDemand| {
        let free = free_space(&demand.folder).ok()?;
        demand.fault(free)
    };
    demands(starts).into_iter().filter_map(fault).collect()
}

/// The room that the databases of these starts need on each disk.
fn demands(starts: &[Vec<Database>]) -> Vec<DiskDemand> {
    let mut disks: BTreeMap<u64, DiskDemand> = BTreeMap::new();
    let (mut made, mut claimed) = (BTreeSet::new(), BTreeSet::new());
    for databases in starts {
        let mut copies_of_start: BTreeMap<u64, Copies> = BTreeMap::new();
        for database in databases {
            let Origin::Started(server) = &database.origin else { continue };
            let kept = kept_size(server);
            let Some(size) = kept.or_else(|| expected_size(database.engine, &database.dataset)) else { continue };
            let folder = server.data.clone().unwrap_or_else(|| PLACE.into());
            let Some(disk) = disk_of(&folder) else { continue };
            let demand =
                disks.entry(disk).or_insert_with(|| DiskDemand { folder: folder.clone(), ..DiskDemand::default() });
            if made.insert(data_identity(database, server)) && kept.is_none() {
                demand.loaded = demand.loaded.saturating_add(size);
            }
            demand.what.insert(format!("`{}`, {}", database.name, database.dataset));
            // A copy that shares its blocks with the data takes none, and frees none.
            if server.snapshot == Snapshot::Copy && has_reflinks(&folder) {
                continue;
            }
            let copies = copies_of_start.entry(disk).or_default();
            *copies = Copies { bytes: copies.bytes.saturating_add(size), number: copies.number + 1 };
            if claimed.insert(server.data.as_deref()) {
                demand.freed = demand.freed.saturating_add(server.data.as_deref().map_or(0, left_over));
            }
        }
        for (disk, copies) in copies_of_start {
            if let Some(demand) = disks.get_mut(&disk) {
                demand.copies = demand.copies.max(copies);
            }
        }
    }
    disks.into_values().collect()
}

impl DiskDemand {
    /// The fault, if the disk has so many bytes free.
    fn fault(self, free: u64) -> Option<String> {
        let DiskDemand { folder, loaded, copies, freed, what } = self;
        let (needed, free) = (loaded.saturating_add(copies.bytes), free.saturating_add(freed));
        if needed <= free {
            return None;
        }
        let copies = match copies.number {
            0 | 1 => "the copy for a trial".to_owned(),
            several => format!("the {several} copies for a start"),
        };
        let what: Vec<String> = what.into_iter().collect();
        Some(format!(
            "no space: data and {copies} take about {} on the disk of {} ({}), and {} are free there\n\
             take fewer warehouses or rows, or let `data` in `[database.NAME]` name a folder on another disk",
            human_bytes(needed),
            folder.display(),
            what.join("; "),
            human_bytes(free)
        ))
    }
}

/// A text that is equal for two databases if they share their data.
fn data_identity(database: &Database, server: &Server) -> String {
    let Database { name, engine, dataset, .. } = database;
    let Server { programs, user, init, data, snapshot, databases, roles, .. } = server;
    format!("{name} {engine} {programs:?} {user:?} {init:?} {data:?} {snapshot:?} {databases:?} {roles:?} {dataset:?}")
}

/// Bytes of the data that an earlier run kept.
fn kept_size(server: &Server) -> Option<u64> {
    match Mark::find(server.data.as_deref()?) {
        FolderOwner::Marked(mark) if mark.finished => Some(mark.size),
        _ => None,
    }
}

/// The disk on which a folder lies, or will lie.
fn disk_of(folder: &Path) -> Option<u64> {
    nearest(folder).map(|folder| folder.1.dev())
}

/// True if copies of files there are references to the same blocks (reflinks).
fn has_reflinks(folder: &Path) -> bool {
    const BTRFS: u64 = 0x9123_683e;
    const XFS: u64 = 0x5846_5342;
    let system = nearest(folder).and_then(|(folder, _)| statfs(&folder).ok());
    system.is_some_and(|system| [BTRFS, XFS].contains(&(system.f_type as u64)))
}

fn nearest(folder: &Path) -> Option<(PathBuf, fs::Metadata)> {
    let absolute = std::path::absolute(folder).ok()?;
    absolute.ancestors().find_map(|folder| Some((folder.to_owned(), fs::metadata(folder).ok()?)))
}

/// Bytes as people read them: `1.5 GB`.
fn human_bytes(bytes: u64) -> String {
    match bytes as f64 {
        few if few < 1e9 => format!("{:.0} MB", few / 1e6),
        more if more < 1e12 => format!("{:.1} GB", more / 1e9),
        many => format!("{:.1} TB", many / 1e12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::{LOADED, SERVICE};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    /// A database whose server copies it, which takes space on every disk.
    fn database(data: Option<&Path>) -> Database {
        let server = Server {
            on: None,
            programs: None,
            user: None,
            init: Vec::new(),
            data: data.map(Path::to_owned),
            snapshot: Snapshot::Template,
            databases: vec![LOADED.to_owned()],
            roles: vec![SERVICE.to_owned()],
            password: None,
            migrate: None,
            listen: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            cpus: None,
            ready_within: Duration::ZERO,
            stop_grace: Duration::ZERO,
        };
        Database {
            name: "db".to_owned(),
            engine: Engine::Postgresql,
            origin: Origin::Started(Box::new(server)),
            settings: Vec::new(),
            dataset: Dataset::Sbtest { tables: 1, rows: 1_000_000, seed: 1 },
            warm: false,
            expected: Vec::new(),
        }
    }

    #[test]
    fn each_database_that_is_alive_on_a_start_has_a_copy() {
        let one = database(None);
        let free = 3 * expected_size(one.engine, &one.dataset).unwrap();
        let fault = |starts: &[Vec<Database>]| demands(starts).pop().unwrap().fault(free);
        assert_eq!(fault(&[vec![one.clone()], vec![one.clone()]]), None, "the first copy goes before the second comes");
        let said = fault(&[vec![one.clone()], vec![one.clone(), one.clone(), one]]).unwrap();
        assert!(said.contains("no space: data and the 3 copies for a start take about 1.2 GB"), "{said}");
    }

    #[test]
    fn data_of_another_engine_is_made_beside_that_of_the_first() {
        let one = database(None);
        let size = |database: &Database| expected_size(database.engine, &database.dataset).unwrap();
        let other = Database { engine: Engine::Mariadb, ..one.clone() };
        let both = size(&one) + size(&other);
        let demand = demands(&[vec![one.clone()], vec![other], vec![one]]).pop().unwrap();
        assert_eq!(demand.loaded, both);
    }

    #[test]
    fn copies_that_a_killed_run_has_left_take_no_space() {
        const SIZE: u64 = 4096;
        let folder = tempfile::tempdir().unwrap();
        Mark::begun(BTreeMap::new()).finished(SIZE).write(folder.path()).unwrap();
        let left = folder.path().join("trial-3");
        fs::create_dir_all(left.join("base")).unwrap();
        fs::write(left.join("base/1"), vec![7; 1 << 20]).unwrap();
        let demand = || demands(&[vec![database(Some(folder.path()))]]).pop().unwrap();
        assert_eq!((demand().loaded, demand().copies), (0, Copies { bytes: SIZE, number: 1 }));
        assert_eq!(demand().fault(0), None, "it is removed before another is made");
        fs::remove_dir_all(left).unwrap();
        let said = demand().fault(0).unwrap();
        assert!(said.contains("data and the copy for a trial take about 0 MB"), "{said}");
    }
}
