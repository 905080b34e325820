//! `[profile.NAME]`: the same study in another size. What a profile says takes the place of what
//! the study says, key by key.

use super::diagnostic::Fault;
use super::faults::{Faults, did_you_mean, one_of};
use super::from_toml::FromToml;
use super::node::Node;
use super::schema::Schemas;
use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

/// The key that holds the profiles.
const KEY: &str = "profile";

/// The names of the profiles in the document, in order of their names.
pub(crate) fn names(document: &DeTable<'_>) -> Vec<String> {
    let Some(DeValue::Table(profiles)) = document.get(KEY).map(toml::Spanned::get_ref) else { return Vec::new() };
    profiles.keys().map(|name| name.get_ref().to_string()).collect()
}

/// The document as the profile has it, or as it is without one.
pub(crate) fn apply<'a>(mut document: DeTable<'a>, profile: Option<&str>, faults: &mut Faults) -> Option<DeTable<'a>> {
    if let Some(found) = document.get(KEY).filter(|found| !matches!(found.get_ref(), DeValue::Table(_))) {
        let fault =
            Fault::error(&found.span(), "expected `[profile.NAME]`, with what is different in it, found no table");
        faults.add(fault.help("what a load is for belongs into `[load]`: `profile = \"soak\"`"));
        return None;
    }
    let known = names(&document);
    let profiles = document.remove(KEY).map(toml::Spanned::into_inner);
    let Some(wanted) = profile else { return Some(document) };
    let mut profiles = match profiles {
        Some(DeValue::Table(profiles)) => profiles,
        _ => DeTable::new(),
    };
    match profiles.remove(wanted).map(toml::Spanned::into_inner) {
        Some(DeValue::Table(changes)) => merge(&mut document, changes),
        _ => {
            let help = did_you_mean(wanted, known.iter().map(String::as_str)).unwrap_or_else(|| match known.len() {
                0 => "the study has no profiles; write `[profile.NAME]` with what is to be different".to_owned(),
                _ => format!("profiles are {}", one_of(known.iter().map(String::as_str))),
            });
            faults.add(Fault::error(&(0..0), format!("no profile is named `{wanted}`")).help(help));
            return None;
        }
    }
    Some(document)
}

/// Tables are merged, anything else is replaced.
fn merge<'a>(into: &mut DeTable<'a>, changes: DeTable<'a>) {
    for (key, change) in changes {
        let present = into.get_mut(key.get_ref().as_ref()).map(toml::Spanned::get_mut);
        match (present, change.get_ref()) {
            (Some(DeValue::Table(table)), DeValue::Table(_)) => {
                let DeValue::Table(change) = change.into_inner() else { unreachable!("it is a table") };
                merge(table, change);
            }
            _ => {
                into.remove(key.get_ref().as_ref());
                into.insert(key, change);
            }
        }
    }
}

/// The profiles of a study: in the schema, and nowhere else. They are merged before it is read.
#[derive(Clone, Debug)]
pub(crate) struct Profiles;

impl FromToml for Profiles {
    fn from_toml(_: &Node<'_>, _: &mut Faults) -> Option<Self> {
        Some(Profiles)
    }

    fn json_schema(_: &mut Schemas) -> Value {
        json!({ "type": "object", "additionalProperties": { "type": "object" } })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Severity, read};
    use plimsoll_model::factor::{Assignment, Level};
    use std::path::Path;

    const STUDY: &str = r#"
title    = "t"
question = "q"
factors.mode  = { levels = ["new", "old"], compare = true, baseline = "old" }
factors.users = [1, 2]
system.web    = { start = "./{mode} {port}" }
workload      = { protocol = "http", target = "{web.address}", steps = [{ get = "/" }] }
load          = { users = "{users}", duration = "20s" }

[profile.large]
repeats        = 3
factors.users  = [1, 2, 4, 8]
load.duration  = "60s"
"#;

    fn seconds(profile: Option<&str>, text: &str) -> Result<(u32, usize, u64), Vec<String>> {
        let (study, diagnostics) = read("study.toml", text, profile, Path::new("."), &[0]);
        let Some(study) = study else {
            let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
            return Err(errors.map(ToString::to_string).collect());
        };
        let length = study.phase_lengths(&Assignment(vec![("users".to_owned(), Level::Integer(1))]));
        Ok((study.repeats, study.factors[1].levels.len(), length.measure.as_secs()))
    }

    #[test]
    fn a_profile_takes_the_place_of_what_it_names_and_of_nothing_else() {
        assert_eq!(seconds(None, STUDY), Ok((5, 2, 20)));
        assert_eq!(seconds(Some("large"), STUDY), Ok((3, 4, 60)));
    }

    #[test]
    fn an_unknown_profile_is_named_with_those_there_are() {
        let errors = seconds(Some("lage"), STUDY).unwrap_err();
        assert!(errors.len() == 1 && errors[0].contains("no profile is named `lage`"), "{errors:?}");
    }

    #[test]
    fn a_fault_in_a_profile_is_a_fault_of_the_study_and_told_once() {
        let text = STUDY.replace("repeats        = 3", "repeats = 0\ncolour = 1");
        let errors = seconds(None, &text).unwrap_err();
        assert_eq!(errors.len(), 2, "{errors:?}");
        let text = STUDY.replace("duration = \"20s\"", "duration = \"20\"");
        assert_eq!(seconds(None, &text).unwrap_err().len(), 1, "the profile does not repeat it");
    }
}
