//! Settings that trade durability for speed: after a crash or a power failure, acknowledged work is
//! lost, or the data is damaged.
//!
//! The meaning of each setting is from the manual of its system; see [`WEAKENING_SETTINGS`].
//!
//! `plimsoll-database` has rules of its own for servers that it runs (`safety/rules.rs`). The two
//! stay apart: the lists here cover settings of any system, by the text of a published table or a
//! command line, with a risk in one clause; the rules there ask a live server for the setting in
//! force, know per engine when it matters, and distinguish values. The few settings in both have
//! different risk texts and value lists, so a shared list would need both columns for every row.

/// A setting with the values that weaken durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weakness {
    /// Name of the setting, in lower case with `_` for `-` and `.`.
    pub setting: &'static str,
    /// The values that weaken it.
    values: WeakValues,
    /// The possible loss.
    pub risk: &'static str,
    /// The manual that documents it.
    pub source: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WeakValues {
    /// Off in any of its spellings.
    Off,
    /// On in any of its spellings.
    On,
    /// One of these.
    Any(&'static [&'static str]),
    /// Everything but this.
    Not(&'static str),
}

const OFF: [&str; 7] = ["0", "off", "false", "no", "disabled", "disable", "never"];
const ON: [&str; 6] = ["1", "on", "true", "yes", "enabled", ""];

const MYSQL: &str = "MySQL Reference Manual, InnoDB system variables";
const MYSQL_LOG: &str = "MySQL Reference Manual, binary logging options and variables";
const MYSQL_SERVER: &str = "MySQL Reference Manual, server system variables";
const POSTGRESQL: &str = "PostgreSQL documentation, Write Ahead Log settings";
const POSTGRESQL_ERRORS: &str = "PostgreSQL documentation, Error Handling settings";
const POSTGRESQL_DEVELOPER: &str = "PostgreSQL documentation, Developer Options";
const MONGODB: &str = "MongoDB manual, write concern and journaling";
const REDIS: &str = "Redis documentation, persistence";
const SQLITE: &str = "SQLite documentation, PRAGMA statements";
const KAFKA: &str = "Apache Kafka documentation, producer and broker configuration";
const LINUX: &str = "Linux kernel documentation, ext4";
const ROCKSDB: &str = "RocksDB documentation, WriteOptions";

/// The settings that are known to weaken durability.
pub const WEAKENING_SETTINGS: &[Weakness] = &[
    weakness(
        "innodb_doublewrite",
        WeakValues::Any(&["0", "off", "false", "detect_only"]),
        "pages that a crash leaves half written cannot be repaired",
        MYSQL,
    ),
    weakness(
        "skip_innodb_doublewrite",
        WeakValues::On,
        "pages that a crash leaves half written cannot be repaired",
        MYSQL,
    ),
    weakness(
        "innodb_flush_log_at_trx_commit",
        WeakValues::Any(&["0", "2"]),
        "about a second of commits is lost in a power failure, with 0 in a crash of the server too",
        MYSQL,
    ),
    weakness("innodb_support_xa", WeakValues::Off, "binary log and tables can disagree after a crash", MYSQL),
    weakness("innodb_redo_log", WeakValues::Off, "a crash can leave the data unusable", MYSQL),
    weakness(
        "innodb_flush_method",
        WeakValues::Any(&["nosync", "littlesync", "o_direct_no_fsync"]),
        "writes are not synced to the device, or not always",
        MYSQL,
    ),
    weakness("innodb_log_checksums", WeakValues::Off, "recovery does not notice damage of the log", MYSQL),
    weakness(
        "innodb_checksum_algorithm",
        WeakValues::Any(&["none", "strict_none"]),
        "damaged pages are not noticed",
        MYSQL,
    ),
    weakness("debug_no_sync", WeakValues::On, "writes are not synced to the device", MYSQL),
    weakness("foreign_key_checks", WeakValues::Off, "rows may refer to rows that are not there", MYSQL_SERVER),
    weakness("unique_checks", WeakValues::Off, "rows may be there twice", MYSQL_SERVER),
    weakness(
        "sync_binlog",
        WeakValues::Not("1"),
        "commits can be missing from the binary log after a power failure",
        MYSQL_LOG,
    ),
    weakness("fsync", WeakValues::Off, "a power failure can damage the data beyond repair", POSTGRESQL),
    weakness("synchronous_commit", WeakValues::Off, "the last commits before a crash are lost", POSTGRESQL),
    weakness(
        "full_page_writes",
        WeakValues::Off,
        "pages that a power failure leaves half written cannot be repaired",
        POSTGRESQL,
    ),
    weakness(
        "data_sync_retry",
        WeakValues::On,
        "writes that the kernel has dropped count as written",
        POSTGRESQL_ERRORS,
    ),
    weakness(
        "zero_damaged_pages",
        WeakValues::On,
        "damaged pages are emptied with all of their rows",
        POSTGRESQL_DEVELOPER,
    ),
    weakness("ignore_checksum_failure", WeakValues::On, "damaged pages are used and spread", POSTGRESQL_DEVELOPER),
    weakness(
        "commit",
        WeakValues::Any(&["async", "asynchronous", "nowait"]),
        "the last commits before a crash are lost",
        "the manual of the database, asynchronous commit",
    ),
    weakness(
        "async_commit",
        WeakValues::On,
        "the last commits before a crash are lost",
        "the manual of the database, asynchronous commit",
    ),
    weakness(
        "commit_wait",
        WeakValues::Any(&["nowait"]),
        "the last commits before a crash are lost",
        "Oracle Database Reference, COMMIT_WAIT",
    ),
    weakness(
        "delayed_durability",
        WeakValues::Any(&["forced", "allowed"]),
        "the last commits before a crash are lost",
        "SQL Server documentation, delayed transaction durability",
    ),
    weakness("journal", WeakValues::Off, "acknowledged writes are lost in a crash", MONGODB),
    weakness("storage_journal_enabled", WeakValues::Off, "acknowledged writes are lost in a crash", MONGODB),
    weakness("nojournal", WeakValues::On, "acknowledged writes are lost in a crash", MONGODB),
    weakness("j", WeakValues::Off, "writes are acknowledged before they are in the journal", MONGODB),
    weakness("w", WeakValues::Any(&["0"]), "writes are not acknowledged at all", MONGODB),
    weakness("appendonly", WeakValues::Off, "writes since the last snapshot are lost in a crash", REDIS),
    weakness(
        "appendfsync",
        WeakValues::Any(&["no", "everysec"]),
        "a second of writes, with `no` all since the kernel last wrote, is lost in a power failure",
        REDIS,
    ),
    weakness(
        "synchronous",
        WeakValues::Any(&["off", "0", "normal", "1"]),
        "commits are lost in a power failure; with `off` the file can be damaged",
        SQLITE,
    ),
    weakness(
        "journal_mode",
        WeakValues::Any(&["off", "memory"]),
        "a crash in the middle of a transaction can damage the file",
        SQLITE,
    ),
    weakness("acks", WeakValues::Any(&["0", "1"]), "acknowledged messages are lost when a broker fails", KAFKA),
    weakness(
        "unclean_leader_election_enable",
        WeakValues::On,
        "acknowledged messages are lost when a broker fails",
        KAFKA,
    ),
    weakness("disablewal", WeakValues::On, "writes are lost in a crash", ROCKSDB),
    weakness("sync", WeakValues::Off, "writes are acknowledged before they are on the device", ROCKSDB),
    weakness(
        "durable_writes",
        WeakValues::Off,
        "writes bypass the commit log and are lost in a crash",
        "Apache Cassandra documentation, keyspaces",
    ),
    weakness(
        "commitlog_sync",
        WeakValues::Any(&["periodic"]),
        "writes since the last period are lost in a power failure",
        "Apache Cassandra documentation, cassandra.yaml",
    ),
    weakness(
        "index_translog_durability",
        WeakValues::Any(&["async"]),
        "operations since the last sync are lost in a crash",
        "Elasticsearch Guide, translog",
    ),
    weakness(
        "unsafe_no_fsync",
        WeakValues::On,
        "a power failure can lose or damage data",
        "etcd documentation, configuration options",
    ),
    weakness(
        "barrier",
        WeakValues::Off,
        "caches of the device are not flushed: a power failure can damage the file system",
        LINUX,
    ),
    weakness(
        "nobarrier",
        WeakValues::On,
        "caches of the device are not flushed: a power failure can damage the file system",
        LINUX,
    ),
    weakness("data", WeakValues::Any(&["writeback"]), "files can hold old content after a power failure", LINUX),
    weakness("async", WeakValues::On, "an NFS server replies before the data is on its device", "exports(5)"),
    weakness(
        "cache",
        WeakValues::Any(&["unsafe"]),
        "flushes of the guest are ignored",
        "QEMU documentation, disk images",
    ),
    weakness("eatmydata", WeakValues::On, "every sync is ignored", "libeatmydata"),
    weakness("filesystem", WeakValues::Any(&["tmpfs", "ramfs"]), "data is in memory only", "tmpfs(5)"),
    weakness("storage", WeakValues::Any(&["tmpfs", "ramfs", "memory"]), "data is in memory only", "tmpfs(5)"),
];

const fn weakness(setting: &'static str, values: WeakValues, risk: &'static str, source: &'static str) -> Weakness {
    Weakness { setting, values, risk, source }
}

/// The weakness of a setting at a value, if there is one. Case, and `-` or `.` for `_`, do not
/// matter.
#[must_use]
pub fn weakness_of(setting: &str, value: &str) -> Option<&'static Weakness> {
    let setting = setting.trim().to_lowercase().replace(['-', '.', ' '], "_");
    let value = value.trim().to_lowercase();
    WEAKENING_SETTINGS.iter().find(|one| {
        one.setting == setting
            && match one.values {
                WeakValues::Off => OFF.contains(&value.as_str()),
                WeakValues::On => ON.contains(&value.as_str()),
                WeakValues::Any(values) => values.contains(&value.as_str()),
                WeakValues::Not(safe) => value != safe,
            }
    })
}

/// Settings whose names are so short or so common that they mean something else in most commands.
const AMBIGUOUS: [&str; 8] = ["w", "j", "sync", "async", "commit", "data", "cache", "storage"];

/// The settings in a command, or in a `NAME=value` of an environment, that weaken durability, each
/// as written: `fsync=off` in `postgres -c fsync=off`, and flags such as `--nojournal`.
#[must_use]
pub fn weaknesses_in(command: &str) -> Vec<(String, &'static Weakness)> {
    let words = command.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
    words
        .filter_map(|word| {
            let (setting, value) = match word.split_once('=') {
                Some((setting, value)) => (setting, value),
                None if word.starts_with("--") => (word, ""),
                None => return None,
            };
            let found = weakness_of(setting.trim_start_matches('-'), value)?;
            (!AMBIGUOUS.contains(&found.setting)).then(|| (word.to_owned(), found))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_settings_are_known_and_safe_ones_pass() {
        for (setting, value, expected) in [
            ("innodb_doublewrite", "0", true),
            ("innodb-doublewrite", "OFF", true),
            ("innodb_doublewrite", "1", false),
            ("innodb_support_xa", "0", true),
            ("innodb_flush_log_at_trx_commit", "2", true),
            ("innodb_flush_log_at_trx_commit", "1", false),
            ("innodb_flush_method", "O_DIRECT", false),
            ("innodb_flush_method", "O_DIRECT_NO_FSYNC", true),
            ("innodb_checksum_algorithm", "crc32", false),
            ("zero_damaged_pages", "on", true),
            ("data_sync_retry", "off", false),
            ("sync_binlog", "1000", true),
            ("sync_binlog", "1", false),
            ("fsync", "off", true),
            ("synchronous_commit", "off", true),
            ("synchronous_commit", "on", false),
            ("full_page_writes", "off", true),
            ("appendfsync", "no", true),
            ("appendfsync", "always", false),
            ("j", "false", true),
            ("nobarrier", "on", true),
            ("noatime", "on", false),
            ("storage.journal.enabled", "false", true),
            ("disableWAL", "true", true),
        ] {
            assert_eq!(weakness_of(setting, value).is_some(), expected, "{setting}={value}");
        }
    }

    #[test]
    fn commands_are_searched_for_them() {
        for (command, expected) in [
            ("db: postgres -D data -c fsync=off -c shared_buffers=1GB", &["fsync=off"][..]),
            ("db: mariadbd --innodb-doublewrite=0 '--sync_binlog=0'", &["--innodb-doublewrite=0", "--sync_binlog=0"]),
            ("db: mongod --nojournal", &["--nojournal"]),
            ("db: with synchronous_commit=off", &["synchronous_commit=off"]),
            ("web: ./server --sync=off --data=writeback -w=0", &[]),
            ("db: postgres -c fsync=on", &[]),
        ] {
            let found: Vec<String> = weaknesses_in(command).into_iter().map(|(written, _)| written).collect();
            assert_eq!(found, expected, "{command}");
        }
    }
}
