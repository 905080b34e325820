//! `settings` of a database.

use crate::document::{Fault, Faults};
use crate::value::{Pairs, Problem, Scalar, Scope};
use plimsoll_model::factor::Level;
use serde_json::Value;

/// Settings go into a file of the server, a line each.
pub(crate) fn one_line(
    settings: &Pairs<SettingValue>,
    scope: &Scope<'_>,
    faults: &mut Faults,
) -> Option<Vec<(String, String)>> {
    let resolved = settings.resolve(scope, faults)?;
    for (name, value) in &resolved {
        if value.chars().any(char::is_control) {
            let place = settings.place_of(name).unwrap_or(&(0..0)).clone();
            faults.add(Fault::error(&place, format!("the value of the setting `{name}` must be one line of text")));
            return None;
        }
    }
    Some(resolved)
}

/// Settings that Plimsoll gives a server itself, so that it touches nothing but its own data.
const OWN_SETTINGS: [&str; 14] = [
    "bind_address",
    "config_file",
    "data_directory",
    "datadir",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "pid_file",
    "port",
    "socket",
    "unix_socket_directories",
    "user",
    "basedir",
];

/// Faults for names that no setting has, and for settings that are not the study's to give.
pub(crate) fn check_settings(settings: &Pairs<SettingValue>, faults: &mut Faults) -> Option<()> {
    let may = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut fine = true;
    for (name, place) in settings.names() {
        let plain = name.to_ascii_lowercase().replace('-', "_");
        let fault = if name.is_empty() || !name.chars().all(may) {
            Fault::error(place, format!("`{name}` cannot be the name of a setting"))
                .help("letters, digits, `_`, `-` and `.` make a name")
        } else if OWN_SETTINGS.contains(&plain.as_str()) {
            let help = match plain.as_str() {
                "port" => "the database has a free port, or that of its key `port`",
                "user" => "the database has a key `user` beside its `settings`",
                "data_directory" | "datadir" => "the data is in a folder of Plimsoll's own; the key `data` keeps it",
                _ => "leave it out",
            };
            Fault::error(place, format!("the setting `{name}` is given by Plimsoll")).help(help)
        } else {
            continue;
        };
        faults.add(fault);
        fine = false;
    }
    fine.then_some(())
}

/// The value of a setting, as both servers write it.
#[derive(Clone, Debug)]
pub(crate) struct SettingValue(String);

impl From<SettingValue> for String {
    fn from(value: SettingValue) -> String {
        value.0
    }
}

impl Scalar for SettingValue {
    const EXPECTED: &'static str = "a text, a number or a boolean";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        Ok(SettingValue(match level {
            Level::Bool(true) => "on".to_owned(),
            Level::Bool(false) => "off".to_owned(),
            other => other.to_string(),
        }))
    }

    fn schema() -> Value {
        Level::schema()
    }
}
