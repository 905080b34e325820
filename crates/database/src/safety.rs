//! Settings that trade safety for speed, and what can be lost with them.
//!
//! From the servers' manuals: PostgreSQL, "Write Ahead Log" and "Developer Options" of the chapter on
//! server configuration, and "Asynchronous Commit"; MariaDB, "InnoDB System Variables" and
//! "Replication and Binary Log System Variables".

use crate::settings::InForce;
use plimsoll_model::database::{Engine, Setting};

/// A setting that is always told, and the values with which something can be lost.
struct Rule {
    setting: &'static str,
    /// Values, or `> 1` for all above it, and what can be lost with them.
    risks: &'static [(&'static str, &'static str)],
}

const POSTGRESQL: &[Rule] = &[
    Rule {
        setting: "fsync",
        risks: &[("off", "a crash of the operating system or a loss of power can destroy the whole database")],
    },
    Rule {
        setting: "synchronous_commit",
        risks: &[
            ("off", "a crash can lose the last committed transactions, of up to three times wal_writer_delay"),
            ("local", "a crash of this server can lose commits that its synchronous standbys do not have"),
            ("remote_write", "a crash of a standby's operating system can lose commits that it was to have"),
        ],
    },
    Rule {
        setting: "full_page_writes",
        risks: &[(
            "off",
            "a loss of power in the middle of a write can leave pages that are half old, half new, and that recovery does not mend",
        )],
    },
    Rule { setting: "wal_sync_method", risks: &[] },
    Rule { setting: "wal_level", risks: &[("minimal", "no standby and no recovery to a point in time is possible")] },
    Rule { setting: "commit_delay", risks: &[] },
    Rule { setting: "data_checksums", risks: &[] },
    Rule { setting: "autovacuum", risks: &[("off", "dead rows are never removed, so that tables grow and slow down")] },
    Rule { setting: "zero_damaged_pages", risks: &[("on", "damaged pages are emptied with all of their rows")] },
    Rule { setting: "ignore_checksum_failure", risks: &[("on", "damaged pages are used and spread")] },
];

const END_OF_BINARY_LOG: &str = "a loss of power can lose the end of the binary log, so that replicas and recoveries to a point in time lack transactions";

const MARIADB: &[Rule] = &[
    Rule {
        setting: "innodb_flush_log_at_trx_commit",
        risks: &[
            ("0", "a crash of the server alone can lose the transactions committed in the last second"),
            (
                "2",
                "a crash of the operating system or a loss of power can lose the transactions committed in the last second",
            ),
            ("3", "a crash between the steps of a group commit can leave the binary log and InnoDB apart"),
        ],
    },
    Rule {
        setting: "innodb_doublewrite",
        risks: &[(
            "off",
            "a loss of power in the middle of a write can leave pages that are half old, half new, and that recovery does not mend",
        )],
    },
    Rule { setting: "log_bin", risks: &[] },
    Rule { setting: "sync_binlog", risks: &[("0", END_OF_BINARY_LOG), ("> 1", END_OF_BINARY_LOG)] },
    Rule {
        setting: "debug_no_sync",
        risks: &[("on", "nothing is synced: a loss of power can destroy the whole database")],
    },
    Rule {
        setting: "innodb_flush_method",
        risks: &[
            ("nosync", "nothing is synced: a loss of power can destroy the whole database"),
            ("littlesync", "writes are synced later than recovery counts on: a loss of power can destroy pages"),
            (
                "O_DIRECT_NO_FSYNC",
                "where the disk has a cache of its own, or files grow, a loss of power can lose pages that count as written",
            ),
        ],
    },
    Rule { setting: "innodb_support_xa", risks: &[("off", "a crash can leave the binary log and InnoDB apart")] },
    Rule {
        setting: "innodb_checksum_algorithm",
        risks: &[("none", "damaged pages are not noticed"), ("strict_none", "damaged pages are not noticed")],
    },
    Rule {
        setting: "innodb_force_recovery",
        risks: &[
            ("1", "damaged pages are passed over"),
            ("2", "nothing is purged"),
            ("3", "transactions that a crash cut off are not rolled back"),
            ("4", "data can be damaged for good"),
            ("5", "data can be damaged for good"),
            ("6", "data can be damaged for good"),
        ],
    },
    Rule { setting: "foreign_key_checks", risks: &[("off", "rows may refer to rows that are not there")] },
    Rule { setting: "unique_checks", risks: &[("off", "rows may be there twice")] },
];

/// What to tell of settings: those that were asked for, in their order, then those on which it
/// depends what a crash can lose.
pub(crate) fn told(engine: Engine, asked: &[(String, String)], in_force: &InForce) -> Vec<Setting> {
    let rules = match engine {
        Engine::Postgresql => POSTGRESQL,
        Engine::Mariadb => MARIADB,
    };
    let of_study = asked.iter().map(|(name, value)| {
        let found = in_force.get(name).map_or_else(|| "not known to the server".to_owned(), |found| found.shown);
        let name = crate::engine::plain(name);
        Setting { risk: risk(rules, &name, in_force), name, asked: Some(value.clone()), in_force: found }
    });
    let mut told: Vec<Setting> = of_study.collect();
    for rule in rules {
        let is_told = told.iter().any(|setting| setting.name == rule.setting);
        if let (false, Some(found)) = (is_told, in_force.get(rule.setting)) {
            let risk = risk(rules, rule.setting, in_force);
            told.push(Setting { name: rule.setting.to_owned(), asked: None, in_force: found.shown, risk });
        }
    }
    told
}

/// What can be lost with the value that a setting has.
fn risk(rules: &[Rule], name: &str, in_force: &InForce) -> Option<String> {
    if name == "sync_binlog" && in_force.get("log_bin").is_some_and(|log| log.is("off")) {
        return None; // there is no binary log
    }
    let rule = rules.iter().find(|rule| rule.setting == name)?;
    let found = in_force.get(name)?;
    let is = |value: &str| match value.strip_prefix("> ") {
        Some(bound) => found.shown.parse().is_ok_and(|found: u64| bound.parse().is_ok_and(|bound| found > bound)),
        None => found.is(value),
    };
    rule.risks.iter().find(|(value, _)| is(value)).map(|(_, lost)| (*lost).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_trade_safety_are_told_with_what_can_be_lost_asked_for_or_not() {
        let in_force = InForce::of(&[
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("sync_binlog", "0"),
            ("innodb_buffer_pool_size", "268435456"),
            ("innodb_flush_method", "O_DIRECT"),
            ("port", "3306"),
        ]);
        let asked = [("innodb-buffer-pool-size", "256M"), ("innodb_doublewrite", "0"), ("no_such", "1")];
        let asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let told = told(Engine::Mariadb, &asked, &in_force);
        let names: Vec<&str> = told.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "innodb_buffer_pool_size",
                "innodb_doublewrite",
                "no_such",
                "innodb_flush_log_at_trx_commit",
                "sync_binlog",
                "innodb_flush_method"
            ]
        );
        let of = |name: &str| told.iter().find(|setting| setting.name == name).unwrap().clone();
        assert_eq!(of("innodb_buffer_pool_size").risk, None);
        assert_eq!(of("innodb_buffer_pool_size").asked.as_deref(), Some("256M"));
        assert_eq!(of("no_such").in_force, "not known to the server");
        assert_eq!(of("innodb_flush_method").risk, None);
        assert!(of("innodb_doublewrite").risk.unwrap().contains("half old, half new"));
        assert!(of("innodb_flush_log_at_trx_commit").risk.unwrap().contains("loss of power can lose"));
        assert_eq!(of("innodb_flush_log_at_trx_commit").asked, None);
    }

    #[test]
    fn a_binary_log_that_is_not_synced_is_a_risk_where_there_is_one() {
        let lost = |log: &[(&str, &str)], synced| {
            let in_force = InForce::of(&[log, &[("sync_binlog", synced)]].concat());
            told(Engine::Mariadb, &[], &in_force).into_iter().find_map(|setting| setting.risk)
        };
        assert_eq!(lost(&[("log_bin", "OFF")], "0"), None);
        assert_eq!(lost(&[("log_bin", "ON")], "1"), None);
        assert!(lost(&[("log_bin", "ON")], "0").unwrap().contains("the end of the binary log"));
        assert!(lost(&[("log_bin", "ON")], "100").unwrap().contains("the end of the binary log"));
        assert!(lost(&[], "0").is_some());
    }

    #[test]
    fn a_server_that_is_safe_has_no_risk() {
        let safe = [
            (Engine::Postgresql, [("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")]),
            (
                Engine::Mariadb,
                [("innodb_flush_log_at_trx_commit", "1"), ("innodb_doublewrite", "ON"), ("sync_binlog", "1")],
            ),
        ];
        for (engine, values) in safe {
            let told = told(engine, &[], &InForce::of(&values));
            assert_eq!(told.len(), 3);
            assert!(told.iter().all(|setting| setting.risk.is_none()), "{told:?}");
        }
    }
}
