//! How much disk space the data of a run takes, and which disks lack it.

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
#[derive(Default)]
struct DiskDemand {
    folder: PathBuf,
    /// All data that is kept during the run.
    loaded: u64,
    /// The largest copy for a start: there is at least one at a time.
    copy: u64,
    what: BTreeSet<String>,
}

/// One fault for each disk that lacks the space for these databases: the data of each, as often as it
/// is made, and the copy that a start works on.
#[must_use]
pub fn check_disk_space(databases: &[Database]) -> Vec<String> {
    let mut disks: BTreeMap<u64, DiskDemand> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for database in databases {
        let Origin::Started(server) = &database.origin else { continue };
        let kept = kept_size(server);
        let Some(size) = kept.or_else(|| expected_size(database.engine, &database.dataset)) else { continue };
        let folder = server.data.clone().unwrap_or_else(|| PLACE.into());
        let Some(disk) = disk_of(&folder) else { continue };
        let needed =
            disks.entry(disk).or_insert_with(|| DiskDemand { folder: folder.clone(), ..DiskDemand::default() });
        if seen.insert(data_identity(database, server)) && kept.is_none() {
            needed.loaded = needed.loaded.saturating_add(size);
        }
        needed.what.insert(format!("`{}`, {}", database.name, database.dataset));
        needed.copy =
            needed.copy.max(if server.snapshot == Snapshot::Copy && has_reflinks(&folder) { 0 } else { size });
    }
    disks.into_values().filter_map(DiskDemand::fault).collect()
}

impl DiskDemand {
    fn fault(self) -> Option<String> {
        let DiskDemand { folder, loaded, copy, what } = self;
        let (needed, free) = (loaded.saturating_add(copy), free_space(&folder).ok()?);
        if needed <= free {
            return None;
        }
        let what: Vec<String> = what.into_iter().collect();
        Some(format!(
            "no space: data and the copy for a trial take about {} on the disk of {} ({}), and {} are free there\n\
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
    let Server { programs, user, init, data, snapshot, .. } = server;
    format!("{} {programs:?} {user:?} {init:?} {data:?} {snapshot:?} {:?}", database.name, database.dataset)
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
