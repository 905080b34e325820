//! Finds settings that a server would reject, before there is any data. It starts the server program, which
//! reads the settings and ends. No running server is touched.

use crate::engine::{Installation, Setting, plain};
use crate::run_program::run_program;
use plimsoll_model::database::Database;

/// The reasons for which the server would reject settings of the study, in two lines each.
pub(crate) fn rejected_settings(database: &Database, installation: &Installation) -> Vec<String> {
    let why = |settings: &[Setting]| if settings.is_empty() { None } else { rejection(installation, settings) };
    let Some(together) = why(&database.settings) else { return Vec::new() };
    let alone = database.settings.iter().filter_map(|setting| {
        let (name, value) = setting;
        let said = why(std::slice::from_ref(setting))?;
        Some(format!(
            "{} does not take `{name} = {value}`: {said}\n\
             correct `settings.{name}` in `[database.{}]`, or name a version that takes it (`programs`)",
            installation.version, database.name
        ))
    });
    let alone: Vec<String> = alone.collect();
    if !alone.is_empty() {
        return alone;
    }
    vec![format!(
        "{} does not take the settings together: {together}\ncorrect `settings` in `[database.{}]`",
        installation.version, database.name
    )]
}

/// The complaint of the server; `None` if it accepts all settings.
fn rejection(installation: &Installation, settings: &[Setting]) -> Option<String> {
    let output = run_program(&installation.try_settings(settings)).ok()?; // a failed start is reported elsewhere
    let ends_well = output.status.success();
    let concerns = |line: &str| settings.iter().any(|(name, _)| plain(line).contains(&plain(name)));
    let lines: Vec<&str> = output.errors.lines().collect();
    let complaints = || lines.iter().enumerate().filter_map(|(at, line)| Some((at, complaint(line)?)));
    // Some servers first complain about missing tables, as there is no data.
    let found = complaints().find(|(_, said)| concerns(said)).or_else(|| complaints().find(|_| !ends_well));
    let (at, said) = found?;
    let hint = lines.get(at + 1).and_then(|line| line.split_once("HINT: "));
    Some(hint.map_or_else(|| said.to_owned(), |(_, hint)| format!("{said} ({})", hint.trim())))
}

/// The complaint in a line. MariaDB and MySQL may continue with another value or without the setting, and warn.
fn complaint(line: &str) -> Option<&str> {
    let after = |sign: &str| line.split_once(sign).map(|(_, said)| said.trim());
    let changed = || after("[Warning] ").filter(|said| said.contains(" adjusted to ") || said.contains("does nothing"));
    let said = after("FATAL: ").or_else(|| after("[ERROR] ")).or_else(changed)?;
    let said = said.trim_start_matches("Buffered error: ").trim_start_matches("Buffered warning: ");
    let said = said.split_once("] [Server] ").map_or(said, |(_, said)| said);
    // The line may begin with the path of the server and a colon.
    Some(said.strip_prefix('/').and_then(|rest| rest.split_once(": ")).map_or(said, |(_, said)| said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_complain_in_many_ways() {
        for (line, says) in [
            (
                "2026-11-22 03:49:17 GMT [1] FATAL:  unrecognized configuration parameter \"a\"",
                "unrecognized configuration parameter \"a\"",
            ),
            ("3:49:17 0 [ERROR] /usr/sbin/mariadbd: unknown variable 'a=5'", "unknown variable 'a=5'"),
            ("3:49:17 0 [ERROR] Buffered error: Unknown suffix 'a'", "Unknown suffix 'a'"),
            (
                "3:49:17 0 [Warning] option 'a': unsigned value 100 adjusted to 400",
                "option 'a': unsigned value 100 adjusted to 400",
            ),
            (
                "2026-11-22T13:26:42.235734Z 0 [ERROR] [MY-000067] [Server] unknown variable 'no-such=1'.",
                "unknown variable 'no-such=1'.",
            ),
            (
                "2026-11-22 13:19:54 4450 [Warning] Buffered warning: option 'a': unsigned value 100 adjusted to 400",
                "option 'a': unsigned value 100 adjusted to 400",
            ),
            ("3:49:17 0 [Warning] 'a' was removed. It does nothing now.", "'a' was removed. It does nothing now."),
        ] {
            assert_eq!(complaint(line), Some(says));
        }
        for line in
            ["3:49:17 0 [Warning] Could not open mysql.plugin table", "LOG:  skipping missing configuration file"]
        {
            assert_eq!(complaint(line), None);
        }
    }
}
