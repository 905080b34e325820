//! Parses the settings that a statement of a study makes.

/// Words between SET and the name of a setting.
const SCOPES: [&str; 6] = ["session", "local", "global", "persist", "persist_only", "configuration"];

/// Names and values that a text of SQL sets, in lower case: `SET LOCAL synchronous_commit = off`, `SET
/// SESSION unique_checks = 0, foreign_key_checks = 0`, `ALTER ROLE me SET fsync TO off`.
pub(super) fn assignments(sql: &str) -> Vec<(String, String)> {
    sql.split(';').filter_map(|statement| set_part(&statement.to_lowercase())).flat_map(|set| pairs(&set)).collect()
}

/// The text after SET in a statement that makes settings.
fn set_part(statement: &str) -> Option<String> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let kind = (words.first().copied()?, words.get(1).copied().unwrap_or_default());
    match kind {
        ("set", _) => Some(words[1..].join(" ")),
        ("alter", "system" | "role" | "user" | "database") => {
            let set = words.iter().position(|word| *word == "set")?;
            Some(words[set + 1..].join(" "))
        }
        _ => None,
    }
}

fn pairs(set: &str) -> Vec<(String, String)> {
    let pair = |one: &str| {
        let (name, value) = one.split_once('=').or_else(|| one.split_once(" to "))?;
        let name = name.trim_end_matches(':').split_whitespace().rfind(|word| !SCOPES.contains(word))?;
        let name = name.trim_start_matches('@').rsplit('.').next()?;
        Some((name.to_owned(), value.trim().trim_matches(['\'', '"']).to_owned()))
    };
    set.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_found_in_all_its_forms() {
        for (sql, expected) in [
            ("SET synchronous_commit = off", &[("synchronous_commit", "off")][..]),
            ("set local Synchronous_Commit TO 'OFF'", &[("synchronous_commit", "off")]),
            (
                "SET SESSION unique_checks=0, foreign_key_checks = 0",
                &[("unique_checks", "0"), ("foreign_key_checks", "0")],
            ),
            ("SET @@session.sql_log_bin := OFF", &[("sql_log_bin", "off")]),
            ("SET @@GLOBAL.innodb_flush_log_at_trx_commit = 2", &[("innodb_flush_log_at_trx_commit", "2")]),
            ("ALTER ROLE me IN DATABASE d SET fsync = off", &[("fsync", "off")]),
            ("ALTER SYSTEM SET full_page_writes TO off; SELECT 1", &[("full_page_writes", "off")]),
            ("SELECT 1; SET x = 5", &[("x", "5")]),
            ("UPDATE t SET fsync = 'off'", &[]),
            ("INSERT INTO t SET x = 1", &[]),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", &[]),
            ("", &[]),
        ] {
            let found = assignments(sql);
            let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expected, "{sql}");
        }
    }
}
