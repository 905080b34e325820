//! Settings that trade safety for speed, and what can be lost with them: settings in force on the server,
//! settings that the load itself makes, and tables that a crash can empty or damage.

mod rules;
mod statements;
mod tables;

use crate::settings::{EffectiveSettings, Value};
use plimsoll_model::database::{Engine, Setting};
use plimsoll_model::sql::{SqlWork, Transaction};

pub(crate) use tables::tables;

/// The settings that a report lists: those of the study in its order, then those that decide what a
/// crash can lose.
pub(crate) fn reported_settings(
    engine: Engine,
    asked: &[(String, String)],
    in_force: &EffectiveSettings,
) -> Vec<Setting> {
    let of_study = asked.iter().map(|(name, value)| {
        let found = in_force.get(name);
        let name = crate::engine::plain(name);
        let risk = found.as_ref().and_then(|found| risk(engine, &name, found, in_force));
        let in_force = found.map_or_else(|| "not known to the server".to_owned(), |found| found.shown);
        Setting { name, asked: Some(value.clone()), in_force, risk }
    });
    let mut reported: Vec<Setting> = of_study.collect();
    for rule in rules::of(engine) {
        let is_reported = reported.iter().any(|setting| setting.name == rule.setting);
        let Some(found) = in_force.get(rule.setting).filter(|_| !is_reported) else { continue };
        let risk = risk(engine, rule.setting, &found, in_force);
        if rule.always || risk.is_some() {
            reported.push(Setting { name: rule.setting.to_owned(), asked: None, in_force: found.shown, risk });
        }
    }
    reported
}

/// The risky settings that the transactions of a study make themselves with `SET`, beside the settings
/// `in_force`. A server that has taken such a statement does not show it afterwards.
#[must_use]
pub fn risky_settings_of_load(engine: Engine, work: &SqlWork, in_force: &[Setting]) -> Vec<Setting> {
    let SqlWork::Own(transactions) = work else { return Vec::new() };
    let in_force = in_force.iter().map(|one| (one.name.as_str(), one.in_force.as_str()));
    let in_force = EffectiveSettings::of(&in_force.collect::<Vec<_>>());
    let of = |transaction: &Transaction| {
        let set = transaction.statements.iter().flat_map(|statement| statements::assignments(&statement.sql));
        let risky = set.filter_map(|(name, value)| {
            let risk = risk(engine, &name, &Value::of(&value), &in_force)?;
            let name = format!("{name}, set by `{}`", transaction.name);
            Some(Setting { name, asked: Some(value.clone()), in_force: value, risk: Some(risk) })
        });
        risky.collect::<Vec<Setting>>()
    };
    transactions.iter().flat_map(of).collect()
}

/// Describes what can be lost with this value of a setting, with the source.
fn risk(engine: Engine, name: &str, value: &Value, in_force: &EffectiveSettings) -> Option<String> {
    let is = |risk: &str| match risk.strip_prefix("> ") {
        Some(bound) => value.shown.parse().is_ok_and(|found: u64| bound.parse().is_ok_and(|bound| found > bound)),
        None => value.is(risk),
    };
    let of_name = rules::of(engine).iter().filter(|rule| rule.setting == name && (rule.matters)(in_force));
    of_name
        .flat_map(|rule| rule.risks.iter().map(|risk| (risk, rule.source)))
        .find(|((value, _), _)| is(value))
        .map(|((_, lost), source)| format!("{lost} ({source})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::sql::OwnStatement;

    #[test]
    fn settings_that_trade_safety_are_reported_with_what_can_be_lost_asked_for_or_not() {
        let in_force = EffectiveSettings::of(&[
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("sync_binlog", "0"),
            ("innodb_buffer_pool_size", "268435456"),
            ("innodb_flush_method", "O_DIRECT"),
            ("port", "3306"),
        ]);
        let asked = [("innodb-buffer-pool-size", "256M"), ("innodb_doublewrite", "0"), ("no_such", "1")];
        let asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let reported = reported_settings(Engine::Mariadb, &asked, &in_force);
        let names: Vec<&str> = reported.iter().map(|setting| setting.name.as_str()).collect();
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
        let of = |name: &str| reported.iter().find(|setting| setting.name == name).unwrap().clone();
        assert_eq!(of("innodb_buffer_pool_size").risk, None);
        assert_eq!(of("innodb_buffer_pool_size").asked.as_deref(), Some("256M"));
        assert_eq!(of("no_such").in_force, "not known to the server");
        assert_eq!(of("innodb_flush_method").risk, None);
        assert!(of("innodb_doublewrite").risk.unwrap().contains("half old, half new"));
        assert!(of("innodb_flush_log_at_trx_commit").risk.unwrap().contains("loss of power can lose"));
        assert_eq!(of("innodb_flush_log_at_trx_commit").asked, None);
    }

    #[test]
    fn what_depends_on_another_setting_is_reported_only_with_it() {
        let lost = |engine, values: &[(&str, &str)], name: &str| {
            let reported = reported_settings(engine, &[], &EffectiveSettings::of(values));
            reported.into_iter().find(|setting| setting.name == name).and_then(|setting| setting.risk)
        };
        let timeout = |flush, seconds| {
            let values = [("innodb_flush_log_at_trx_commit", flush), ("innodb_flush_log_at_timeout", seconds)];
            lost(Engine::Mysql, &values, "innodb_flush_log_at_timeout")
        };
        assert_eq!((timeout("1", "30"), timeout("2", "1")), (None, None));
        assert!(timeout("2", "30").is_some() && timeout("0", "2").is_some());
        let local = |standbys| {
            let values = [("synchronous_commit", "local"), ("synchronous_standby_names", standbys)];
            lost(Engine::Postgresql, &values, "synchronous_commit")
        };
        assert_eq!(local(""), None, "without standbys it is as good as `on`");
        assert!(local("ANY 1 (a, b)").is_some());
    }

    #[test]
    fn kin_are_reported_where_something_can_be_lost_and_not_otherwise() {
        let reported_of =
            |engine, name, value| reported_settings(engine, &[], &EffectiveSettings::of(&[(name, value)])).pop();
        for (engine, name, lost, safe) in [
            (Engine::Postgresql, "data_sync_retry", "on", "off"),
            (Engine::Postgresql, "zero_damaged_pages", "on", "off"),
            (Engine::Postgresql, "session_replication_role", "replica", "origin"),
            (Engine::Mysql, "innodb_log_checksums", "OFF", "ON"),
            (Engine::Mysql, "innodb_checksums", "OFF", "ON"),
            (Engine::Mysql, "sync_frm", "OFF", "ON"),
            (Engine::Mariadb, "delay_key_write", "ALL", "ON"),
            (Engine::Mariadb, "aria_group_commit", "soft", "none"),
            (Engine::Mariadb, "innodb_force_recovery", "1", "0"),
        ] {
            let reported = reported_of(engine, name, lost).unwrap_or_else(|| panic!("{name} = {lost} is not reported"));
            assert!(reported.risk.unwrap().contains(": "), "{name}: where it stands is not reported");
            assert_eq!(reported_of(engine, name, safe), None, "{name} = {safe}");
        }
        let detected = reported_of(Engine::Mysql, "innodb_doublewrite", "DETECT_ONLY").unwrap();
        assert!(detected.risk.unwrap().starts_with("pages that a loss of power leaves half written are found"));
        let mended = reported_of(Engine::Mysql, "innodb_doublewrite", "DETECT_AND_RECOVER").unwrap();
        assert_eq!(mended.risk, None);
    }

    #[test]
    fn what_the_load_sets_itself_is_reported_with_its_transaction() {
        let statement = |sql: &str| OwnStatement { sql: sql.to_owned(), parameters: Vec::new(), rows: None };
        let transaction = |name: &str, statements: &[&str]| Transaction {
            name: name.to_owned(),
            weight: 1,
            atomic: true,
            statements: statements.iter().map(|sql| statement(sql)).collect(),
        };
        let work = SqlWork::Own(vec![
            transaction("safe", &["SET LOCAL synchronous_commit TO on", "UPDATE t SET x = 1"]),
            transaction("fast", &["set local synchronous_commit = 'off'", "UPDATE t SET fsync = 'off'"]),
        ]);
        let set = risky_settings_of_load(Engine::Postgresql, &work, &[]);
        let names: Vec<(&str, &str)> = set.iter().map(|one| (one.name.as_str(), one.in_force.as_str())).collect();
        assert_eq!(names, [("synchronous_commit, set by `fast`", "off")]);
        assert_eq!(risky_settings_of_load(Engine::Mariadb, &work, &[]), []);
        let work = SqlWork::Own(vec![transaction("hidden", &["SET sql_log_bin = 0"])]);
        let log =
            |value: &str| Setting { name: "log_bin".to_owned(), in_force: value.to_owned(), ..Setting::default() };
        assert_eq!(risky_settings_of_load(Engine::Mysql, &work, &[log("OFF")]), [], "there is no log to be missing in");
        assert_eq!(risky_settings_of_load(Engine::Mysql, &work, &[log("ON")]).len(), 1);
    }

    #[test]
    fn a_binary_log_that_is_not_synced_is_a_risk_where_there_is_one() {
        let lost = |log: &[(&str, &str)], synced| {
            let in_force = EffectiveSettings::of(&[log, &[("sync_binlog", synced)]].concat());
            reported_settings(Engine::Mariadb, &[], &in_force).into_iter().find_map(|setting| setting.risk)
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
            let reported = reported_settings(engine, &[], &EffectiveSettings::of(&values));
            assert_eq!(reported.len(), 3);
            assert!(reported.iter().all(|setting| setting.risk.is_none()), "{reported:?}");
        }
    }
}
