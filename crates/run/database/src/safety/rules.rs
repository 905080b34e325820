//! The risky settings, and the values with which data can be lost.
//!
//! Settings that only concern files of a replica are left out (`sync_relay_log`, `relay_log_info_repository`, …):
//! a study measures no replica. So are settings that the manuals call safe, even if they make a server faster:
//! `commit_delay`, `wal_sync_method`, `binlog_order_commits`, `innodb_use_fdatasync`.

use crate::settings::EffectiveSettings;
use plimsoll_model::database::Engine;

/// A setting, and what can be lost with some of its values.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) setting: &'static str,
    /// Values, or `> 1` for all above it, and what can be lost with them.
    pub(super) risks: &'static [(&'static str, &'static str)],
    /// The chapter of the server's manual that documents it.
    pub(super) source: &'static str,
    /// True if it is also reported without a risk, as an important setting.
    pub(super) always: bool,
    /// Returns true if the rule applies, given all other settings.
    pub(super) matters: fn(&EffectiveSettings) -> bool,
}

type Risks = &'static [(&'static str, &'static str)];

/// A setting that is always reported.
const fn always(setting: &'static str, source: &'static str, risks: Risks) -> Rule {
    Rule { setting, risks, source, always: true, matters: |_| true }
}

/// A setting that is reported if something can be lost with it.
const fn where_lost(setting: &'static str, source: &'static str, risks: Risks) -> Rule {
    Rule { setting, risks, source, always: false, matters: |_| true }
}

const fn only_if(matters: fn(&EffectiveSettings) -> bool, rule: Rule) -> Rule {
    Rule { matters, ..rule }
}

pub(super) fn of(engine: Engine) -> &'static [Rule] {
    match engine {
        Engine::Postgresql => POSTGRESQL,
        Engine::Mariadb | Engine::Mysql => MARIADB,
    }
}

const WAL: &str = "PostgreSQL: Write Ahead Log";
const REPLICATION: &str = "PostgreSQL: Replication";
const DEVELOPER: &str = "PostgreSQL: Developer Options";
const ERRORS: &str = "PostgreSQL: Error Handling";
const VACUUMING: &str = "PostgreSQL: Automatic Vacuuming";
const CLIENTS: &str = "PostgreSQL: Client Connection Defaults";

const TORN: &str = "a loss of power in the middle of a write can leave pages that are half old, half new, and that \
                    recovery does not mend";

/// Without the name of a standby, commits wait for none.
fn has_standbys(in_force: &EffectiveSettings) -> bool {
    in_force.get("synchronous_standby_names").is_some_and(|names| !names.is(""))
}

const POSTGRESQL: &[Rule] = &[
    always(
        "fsync",
        WAL,
        &[("off", "a crash of the operating system or a loss of power can destroy the whole database")],
    ),
    always(
        "synchronous_commit",
        WAL,
        &[("off", "a crash can lose the last committed transactions, of up to three times wal_writer_delay")],
    ),
    only_if(
        has_standbys,
        where_lost(
            "synchronous_commit",
            REPLICATION,
            &[
                ("local", "a loss of this server can lose commits that its synchronous standbys do not have"),
                ("remote_write", "a crash of a standby's operating system can lose commits that it was to have"),
            ],
        ),
    ),
    always("full_page_writes", WAL, &[("off", TORN)]),
    always("wal_sync_method", WAL, &[]),
    always("wal_level", WAL, &[("minimal", "no standby and no recovery to a point in time is possible")]),
    always("commit_delay", WAL, &[]),
    always("data_checksums", WAL, &[]),
    always("autovacuum", VACUUMING, &[("off", "dead rows are never removed, so that tables grow and slow down")]),
    where_lost("track_counts", VACUUMING, &[("off", "autovacuum does nothing: tables grow and slow down")]),
    where_lost(
        "data_sync_retry",
        ERRORS,
        &[(
            "on",
            "what the kernel dropped after a failed sync counts as written: a fault of the disk loses it silently",
        )],
    ),
    where_lost(
        "recovery_init_sync_method",
        ERRORS,
        &[("syncfs", "on kernels before Linux 5.8 recovery does not hear of files that could not be written")],
    ),
    where_lost("zero_damaged_pages", DEVELOPER, &[("on", "damaged pages are emptied with all of their rows")]),
    where_lost("ignore_checksum_failure", DEVELOPER, &[("on", "damaged pages are used and spread")]),
    where_lost(
        "ignore_invalid_pages",
        DEVELOPER,
        &[("on", "recovery passes over changes of pages that are not there")],
    ),
    where_lost(
        "session_replication_role",
        CLIENTS,
        &[("replica", "foreign keys are not looked at: rows may refer to rows that are not there")],
    ),
];

const INNODB: &str = "MariaDB and MySQL: InnoDB System Variables";
const BINARY_LOG: &str = "MariaDB and MySQL: Binary Log System Variables";
const SERVER: &str = "MariaDB and MySQL: Server System Variables";
const ARIA: &str = "MariaDB: Aria System Variables";

const END_OF_BINARY_LOG: &str = "a loss of power can lose the end of the binary log, so that replicas and recoveries to a \
                                 point in time lack transactions";
const NO_SYNC: &str = "nothing is synced: a loss of power can destroy the whole database";
const UNNOTICED: &str = "damaged pages are not noticed";
const FOR_GOOD: &str = "data can be damaged for good";

/// True also if it is unknown.
fn has_binary_log(in_force: &EffectiveSettings) -> bool {
    in_force.get("log_bin").is_none_or(|log| !log.is("off"))
}

fn log_is_late(in_force: &EffectiveSettings) -> bool {
    in_force.get("innodb_flush_log_at_trx_commit").is_some_and(|flush| flush.is("0") || flush.is("2"))
}

const MARIADB: &[Rule] = &[
    always(
        "innodb_flush_log_at_trx_commit",
        INNODB,
        &[
            ("0", "a crash of the server alone can lose the transactions committed in the last second"),
            (
                "2",
                "a crash of the operating system or a loss of power can lose the transactions committed in the last second",
            ),
        ],
    ),
    only_if(
        log_is_late,
        where_lost(
            "innodb_flush_log_at_timeout",
            INNODB,
            &[("> 1", "the transactions that can be lost are those of so many seconds instead of one")],
        ),
    ),
    always(
        "innodb_doublewrite",
        INNODB,
        &[
            ("off", TORN),
            ("detect_only", "pages that a loss of power leaves half written are found, and cannot be mended"),
        ],
    ),
    always("log_bin", BINARY_LOG, &[]),
    only_if(has_binary_log, always("sync_binlog", BINARY_LOG, &[("0", END_OF_BINARY_LOG), ("> 1", END_OF_BINARY_LOG)])),
    only_if(
        has_binary_log,
        where_lost("binlog_checksum", BINARY_LOG, &[("none", "damage of the binary log is not noticed")]),
    ),
    only_if(
        has_binary_log,
        where_lost(
            "sql_log_bin",
            BINARY_LOG,
            &[("off", "replicas and recoveries to a point in time lack these transactions")],
        ),
    ),
    only_if(
        has_binary_log,
        where_lost(
            "innodb_locks_unsafe_for_binlog",
            INNODB,
            &[("on", "the binary log can have statements in an order that gives other rows")],
        ),
    ),
    where_lost(
        "innodb_support_xa",
        INNODB,
        &[("off", "a crash can leave a binary log and InnoDB apart, and lose XA transactions that were prepared")],
    ),
    where_lost("debug_no_sync", SERVER, &[("on", NO_SYNC)]),
    always(
        "innodb_flush_method",
        INNODB,
        &[
            ("nosync", NO_SYNC),
            ("littlesync", "writes are synced later than recovery counts on: a loss of power can destroy pages"),
            (
                "O_DIRECT_NO_FSYNC",
                "where the disk has a cache of its own, or files grow, a loss of power can lose pages that count as written",
            ),
        ],
    ),
    where_lost("innodb_checksum_algorithm", INNODB, &[("none", UNNOTICED), ("strict_none", UNNOTICED)]),
    where_lost("innodb_checksums", INNODB, &[("off", UNNOTICED)]),
    where_lost(
        "innodb_log_checksums",
        INNODB,
        &[("off", "recovery does not notice damage of the log, and spreads it to pages")],
    ),
    where_lost(
        "innodb_force_recovery",
        INNODB,
        &[
            ("1", "damaged pages are passed over"),
            ("2", "nothing is purged"),
            ("3", "transactions that a crash cut off are not rolled back"),
            ("4", FOR_GOOD),
            ("5", FOR_GOOD),
            ("6", FOR_GOOD),
        ],
    ),
    where_lost("sync_frm", SERVER, &[("off", "a loss of power can lose the definitions of new tables")]),
    where_lost("foreign_key_checks", SERVER, &[("off", "rows may refer to rows that are not there")]),
    where_lost("unique_checks", SERVER, &[("off", "rows may be there twice")]),
    where_lost("delay_key_write", SERVER, &[("all", "a crash can damage the indexes of tables of MyISAM and Aria")]),
    where_lost("aria_group_commit", ARIA, &[("soft", "a crash can lose the last changes of tables of Aria")]),
    where_lost("aria_recover_options", ARIA, &[("off", "tables of Aria that a crash damaged stay so")]),
    where_lost("aria_sync_log_dir", ARIA, &[("never", "a loss of power can lose a new file of Aria's log")]),
    where_lost(
        "rocksdb_flush_log_at_trx_commit",
        "MariaDB: MyRocks System Variables",
        &[
            ("0", "a crash can lose the transactions committed in the last second"),
            ("2", "a loss of power can lose the transactions committed in the last second"),
        ],
    ),
];
