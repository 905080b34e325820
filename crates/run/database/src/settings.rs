//! The settings in force on a server, and their comparison with those of the study.

use crate::engine::plain;
use crate::error::DatabaseError;
use plimsoll_model::database::{Database, Engine};
use plimsoll_sql::{Connection, SqlError};
use plimsoll_system::Running;
use std::collections::BTreeMap;

/// Fails unless every setting that the study asks for is in force.
pub(crate) fn check(
    connection: &mut Connection,
    database: &Database,
    running: Option<&Running>,
) -> Result<(), DatabaseError> {
    let read = EffectiveSettings::read(connection);
    let in_force = read.map_err(DatabaseError::sql(&database.name, "read the settings"))?;
    let version = connection.version();
    let faults = database.settings.iter().filter_map(|(name, asked)| {
        let fault = fault(name, asked, &in_force, &version)?;
        let said = output_about(name, running).map(|line| format!(" (it said: {line})")).unwrap_or_default();
        Some(format!("{fault}{said}"))
    });
    let faults: Vec<String> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(DatabaseError::Failed(format!(
        "the database `{}` does not run as the study asks: {}",
        database.name,
        faults.join("; ")
    )))
}

/// Describes the fault of one setting.
fn fault(name: &str, asked: &str, in_force: &EffectiveSettings, version: &str) -> Option<String> {
    match in_force.get(name) {
        None => Some(format!(
            "the setting `{name}` is not known to {version}: it was accepted and does nothing; leave it out, or use a \
             version that has it"
        )),
        Some(found) if found.is(asked) || is_shown_otherwise(name, asked, &found, in_force) => None,
        Some(found) => Some(format!(
            "the setting `{name}` is to be `{asked}`, and `{}` is in force; ask for a value that the server takes, or \
             look for what overrides it",
            found.shown
        )),
    }
}

/// Values of `sql_mode` that stand for several, which the server then shows too.
const COMBINED_MODES: [&str; 9] =
    ["ansi", "db2", "maxdb", "mssql", "mysql323", "mysql40", "oracle", "postgresql", "traditional"];

/// True if a setting that MariaDB and MySQL show in another form than they take is in force as asked.
fn is_shown_otherwise(name: &str, asked: &str, found: &Value, in_force: &EffectiveSettings) -> bool {
    let asked = unquoted(asked);
    let (parts_asked, parts_found) = (parts(asked), parts(&found.plain));
    match plain(name).as_str() {
        // All flags are shown, whichever of them are asked for.
        "optimizer_switch" => {
            let is_default = |part: &str| part == "default" || part.ends_with("=default");
            parts_asked.iter().all(|part| is_default(part) || parts_found.contains(part))
        }
        "sql_mode" => {
            parts_asked.iter().any(|part| COMBINED_MODES.contains(&part.as_str()))
                && parts_asked.iter().all(|part| parts_found.contains(part))
        }
        // The name of its files is asked for, and shown elsewhere.
        "log_bin" => {
            let base = in_force.get("log_bin_basename").map(|base| base.shown).unwrap_or_default();
            truth(&found.plain) == Some(true) && truth(asked).is_none() && names_log(asked, &base)
        }
        _ => false,
    }
}

/// True if a binary log with files of this path, where the path is known, may be one that was `asked` for by name. The
/// server drops what follows a dot in the name.
fn names_log(asked: &str, base: &str) -> bool {
    let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (asked, base) = (file(asked), file(base));
    asked.is_empty()
        || base.is_empty()
        || asked.strip_prefix(&base).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The last line of a server's output that mentions a setting. MySQL may print a hundred lines after it.
fn output_about(name: &str, running: Option<&Running>) -> Option<String> {
    let said = std::fs::read(running?.last_output().file?).ok()?;
    let said = String::from_utf8_lossy(&said);
    said.lines().rfind(|line| plain(line).contains(&plain(name))).map(|line| line.trim().to_owned())
}

/// Explains why a server did not start, if a setting is the reason.
pub(crate) fn explain_failed_start(
    error: DatabaseError,
    database: &Database,
    running: Option<&Running>,
) -> DatabaseError {
    if running.is_none_or(|running| running.check().is_ok()) {
        return error;
    }
    let refused = database.settings.iter().find_map(|setting| Some((setting, output_about(&setting.0, running)?)));
    let Some(((name, value), line)) = refused else { return error };
    error.with_prefix(&format!(
        "the database `{}` does not start with the setting `{name}` = `{value}`: {line}. Its version may lack it, or \
         not take the value; correct `settings`, or ask for it in `init` if it says how the data is laid out",
        database.name
    ))
}

/// Settings that MariaDB and MySQL have renamed. As arguments, all versions take the first name.
const RENAMED: [[&str; 2]; 2] = [["transaction_isolation", "tx_isolation"], ["transaction_read_only", "tx_read_only"]];

/// All settings in force, by name.
#[derive(Debug, Default)]
pub(crate) struct EffectiveSettings(BTreeMap<String, Value>);

/// A setting in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value {
    /// The text for people: `128MB`.
    pub(crate) shown: String,
    /// The value in its unit: 16384.
    plain: String,
    /// The unit of plain numbers: `8kB`; may be empty.
    unit: String,
}

impl EffectiveSettings {
    /// Settings with these values.
    pub(crate) fn of(values: &[(&str, &str)]) -> EffectiveSettings {
        EffectiveSettings(values.iter().map(|&(name, text)| (name.to_owned(), Value::of(text))).collect())
    }

    /// Reads all settings, as a session of the load has them.
    pub(crate) fn read(connection: &mut Connection) -> Result<EffectiveSettings, SqlError> {
        let sql = match connection.engine() {
            Engine::Postgresql => "SELECT name, current_setting(name, true), setting, unit FROM pg_settings",
            Engine::Mariadb | Engine::Mysql => "SHOW VARIABLES",
        };
        let table = connection.query(sql)?;
        let values = table.rows.into_iter().map(|row| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || cells.next().unwrap_or_default();
            let (name, shown) = (plain(&next()), next());
            let value = next();
            let plain = if value.is_empty() { shown.clone() } else { value };
            (name, Value { shown, plain, unit: next() })
        });
        Ok(EffectiveSettings(values.collect()))
    }

    /// The setting of this name, as a study or a server writes it. `skip_x` is the opposite of `x`. Which of two names
    /// a server shows for a setting depends on its version.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let name = plain(name);
        let opposite = || {
            let value = self.0.get(name.strip_prefix("skip_")?)?;
            Some(Value::of(if truth(&value.plain)? { "OFF" } else { "ON" }))
        };
        let renamed = || {
            let [one, other] = RENAMED.into_iter().find(|names| names.contains(&name.as_str()))?;
            self.0.get(if name == one { other } else { one }).cloned()
        };
        self.0.get(&name).cloned().or_else(opposite).or_else(renamed)
    }
}

impl Value {
    pub(crate) fn of(text: &str) -> Value {
        Value { shown: text.to_owned(), plain: text.to_owned(), unit: String::new() }
    }

    /// True if the value equals `asked` in meaning.
    pub(crate) fn is(&self, asked: &str) -> bool {
        let asked = unquoted(asked);
        asked.eq_ignore_ascii_case(&self.plain)
            || asked.eq_ignore_ascii_case(&self.shown)
            || truth(asked).is_some_and(|asked| truth(&self.plain) == Some(asked))
            || self.is_amount(asked)
            || parts(asked) == parts(&self.plain)
            // PostgreSQL shows which compression `on` stands for.
            || (truth(asked) == Some(true) && self.plain == "pglz")
    }

    /// True if `asked` is the same amount, rounded to the unit of the server.
    fn is_amount(&self, asked: &str) -> bool {
        let unit = factor_of(&self.unit);
        let (Some(unit), Some(asked), Some(found)) = (unit, amount(asked, unit), amount(&self.plain, unit)) else {
            return false;
        };
        let rounding = if self.unit.is_empty() { 0.0 } else { unit / 2.0 };
        (asked - found).abs() <= rounding.max(found.abs() * 1e-9)
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    within('\'').or_else(|| within('"')).unwrap_or(text)
}

fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Parses an amount in bytes, in seconds, or without a unit. A plain number is in units of `unit`.
fn amount(text: &str, unit: Option<f64>) -> Option<f64> {
    let (number, suffix) = split(text);
    let number: f64 = number.parse().ok()?;
    Some(number * if suffix.is_empty() { unit? } else { factor(suffix)? })
}

/// The factor of a unit like `8kB` or `ms`; 1 without a unit.
fn factor_of(unit: &str) -> Option<f64> {
    match split(unit) {
        ("", "") => Some(1.0),
        ("", suffix) => factor(suffix),
        _ => amount(unit, None),
    }
}

/// Splits a number from its suffix.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !".-+".contains(c)).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn factor(suffix: &str) -> Option<f64> {
    let power = |exponent: i32| 1024_f64.powi(exponent);
    Some(match suffix.to_lowercase().as_str() {
        "b" => 1.0,
        "k" | "kb" => power(1),
        "m" | "mb" => power(2),
        "g" | "gb" => power(3),
        "t" | "tb" => power(4),
        "p" | "pb" => power(5),
        "e" | "eb" => power(6),
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    })
}

/// The entries of a list in any order, and paths with or without a slash at the end.
fn parts(text: &str) -> Vec<String> {
    let part = |part: &str| {
        let part = unquoted(part).to_lowercase();
        if part.len() > 1 { part.trim_end_matches('/').to_owned() } else { part }
    };
    let mut parts: Vec<String> = text.split(',').map(part).collect();
    parts.sort_unstable();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(plain: &str, unit: &str) -> Value {
        Value { shown: format!("{plain} {unit}"), plain: plain.to_owned(), unit: unit.to_owned() }
    }

    #[test]
    fn the_same_setting_may_be_written_in_many_ways() {
        for (asked, in_force, unit) in [
            ("128MB", "16384", "8kB"),
            ("134217728B", "16384", "8kB"),
            ("0.125GB", "16384", "8kB"),
            ("16384", "16384", "8kB"),
            ("1001kB", "125", "8kB"), // rounded by the server
            ("256M", "268435456", ""),
            ("256m", "268435456", ""),
            ("5min", "300", "s"),
            ("300s", "300", "s"),
            ("0.2s", "200", "ms"),
            ("200", "200", "ms"),
            ("1h", "60", "min"),
            ("1", "ON", ""),
            ("true", "on", ""),
            ("OFF", "off", ""),
            ("no", "0", ""),
            ("90", "90.000000", ""),
            ("'a, b'", "b,a", ""),
            ("/tmp/x/", "/tmp/x", ""),
            ("O_DIRECT", "O_DIRECT", ""),
            ("-1", "-1", "ms"),
            ("on", "pglz", ""),
        ] {
            assert!(value(in_force, unit).is(asked), "{asked} is {in_force} {unit}");
        }
    }

    #[test]
    fn other_settings_are_told_apart() {
        for (asked, in_force, unit) in [
            ("128MB", "16385", "8kB"),
            ("256M", "268435457", ""),
            ("200", "201", "ms"),
            ("on", "off", ""),
            ("1", "2", ""),
            ("0", "2", ""),
            ("90.2", "90.4", ""),
            ("on", "local", ""),
            ("a,b", "a", ""),
            ("", "x", ""),
        ] {
            assert!(!value(in_force, unit).is(asked), "{asked} is not {in_force} {unit}");
        }
    }

    #[test]
    fn a_setting_that_is_skipped_is_the_opposite() {
        let in_force =
            EffectiveSettings::of(&[("log_bin", "OFF"), ("name_resolve", "ON"), ("innodb_doublewrite", "ON")]);
        assert!(in_force.get("skip-log-bin").unwrap().is("ON"));
        assert!(in_force.get("skip-name-resolve").unwrap().is("off"));
        assert!(in_force.get("innodb-doublewrite").unwrap().is("1"));
        assert_eq!(in_force.get("innodb_thread_concurrency"), None);
    }

    #[test]
    fn a_setting_that_was_renamed_is_found_under_its_other_name() {
        let in_force = EffectiveSettings::of(&[("tx_isolation", "READ-COMMITTED"), ("transaction_read_only", "OFF")]);
        assert_eq!(fault("transaction-isolation", "READ-COMMITTED", &in_force, "MariaDB 10.11"), None);
        assert!(fault("transaction_isolation", "SERIALIZABLE", &in_force, "MariaDB 10.11").is_some());
        assert_eq!(fault("tx_read_only", "0", &in_force, "MariaDB 11.4"), None);
        assert!(fault("tx_other", "0", &in_force, "MariaDB 11.4").is_some_and(|fault| fault.contains("is not known")));
    }

    #[test]
    fn a_setting_that_is_shown_in_another_form_is_in_force() {
        let in_force = EffectiveSettings::of(&[
            ("optimizer_switch", "index_merge=off,index_merge_union=on,mrr=off"),
            ("sql_mode", "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI"),
            ("log_bin", "ON"),
            ("log_bin_basename", "/data/mysql-bin"),
        ]);
        let is = |name: &str, asked: &str| fault(name, asked, &in_force, "MySQL 8.4").is_none();
        for (name, asked) in [
            ("optimizer_switch", "index_merge=off"),
            ("optimizer-switch", "'mrr=off,index_merge=off'"),
            ("optimizer_switch", "default,mrr=default,index_merge=off"),
            ("sql_mode", "ANSI"),
            ("sql_mode", "ansi,PIPES_AS_CONCAT"),
            ("log_bin", "mysql-bin"),
            ("log-bin", "mysql-bin.log"),
            ("log_bin", "ON"),
            ("log_bin", ""),
        ] {
            assert!(is(name, asked), "{name} = {asked}");
        }
        for (name, asked) in [
            ("optimizer_switch", "index_merge=on"),
            ("optimizer_switch", "index_merge=off,no_such=on"),
            ("sql_mode", "TRADITIONAL"),
            ("sql_mode", "ANSI_QUOTES"),
            ("sql_mode", ""),
            ("log_bin", "OFF"),
            ("log_bin", "other-bin"),
            ("log_bin", "mysql"),
        ] {
            assert!(!is(name, asked), "{name} = {asked}");
        }
        let old = EffectiveSettings::of(&[("log_bin", "ON")]);
        assert_eq!(fault("log_bin", "mysql-bin", &old, "MySQL 5.5"), None, "it does not show the name");
    }
}
