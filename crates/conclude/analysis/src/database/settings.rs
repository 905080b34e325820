//! The settings in force: those that the study requests, those that trade safety for speed, and
//! those that differ between trials.

use super::ReportContext;
use crate::distinct::distinct;
use crate::words::of_factor;
use plimsoll_model::database::Setting;
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::words::and_list;

/// A setting of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// The database.
    pub database: String,
    /// The setting's name.
    pub name: String,
    /// Its values: one where it was the same in all trials.
    pub values: Vec<SettingValue>,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingValue {
    /// Where it was in force: `all trials`, `concurrency = 8`.
    pub place: String,
    /// The variants in which it was in force.
    pub variants: Vec<usize>,
    /// The value that the study requests, if it does.
    pub requested: Option<String>,
    /// The value in force, as the server reports it.
    pub in_force: String,
    /// The possible loss, where the value trades safety for speed.
    pub risk: Option<String>,
}

impl SettingRow {
    /// Values that differ although the study requests the same, or none.
    #[must_use]
    pub fn unequal(&self) -> Vec<&SettingValue> {
        let differs = |one: &&SettingValue| {
            self.values.iter().any(|other| {
                other.requested == one.requested && other.in_force != one.in_force && other.variants != one.variants
            })
        };
        self.values.iter().filter(differs).collect()
    }
}

/// A setting in a trial, with the trial's levels.
struct SettingOfTrial<'a> {
    database: &'a str,
    setting: &'a Setting,
    variant: usize,
    levels: Assignment,
}

pub(super) fn settings(context: &ReportContext<'_>) -> Vec<SettingRow> {
    let mut settings_of_trials = Vec::new();
    for reader in context.readers {
        let trial = reader.trial();
        for facts in reader.trial().databases() {
            let levels = context.input.plan.assignment(trial.variant(), trial.condition());
            let variant = if trial.variant() < context.input.plan.variants.len() { trial.variant() } else { 0 };
            let of = |setting| SettingOfTrial { database: &facts.name, setting, variant, levels: levels.clone() };
            settings_of_trials.extend(facts.settings.iter().map(of));
        }
    }
    let names = distinct(settings_of_trials.iter().map(|one| (one.database, one.setting.name.as_str())));
    names.into_iter().map(|(database, name)| row(&settings_of_trials, database, name)).collect()
}

fn row(settings_of_trials: &[SettingOfTrial<'_>], database: &str, name: &str) -> SettingRow {
    let these: Vec<&SettingOfTrial<'_>> =
        settings_of_trials.iter().filter(|one| (one.database, one.setting.name.as_str()) == (database, name)).collect();
    let groups: Vec<Vec<&SettingOfTrial<'_>>> = distinct(these.iter().map(|one| one.setting))
        .into_iter()
        .map(|setting| these.iter().filter(|one| one.setting == setting).copied().collect())
        .collect();
    let values = groups.iter().map(|group| {
        let Setting { asked: requested, in_force, risk, .. } = group[0].setting.clone();
        let mut variants = distinct(group.iter().map(|one| one.variant));
        variants.sort_unstable();
        SettingValue { place: place(&groups, group), variants, requested, in_force, risk }
    });
    SettingRow { database: database.to_owned(), name: name.to_owned(), values: values.collect() }
}

/// The trials of a group, by the levels of the one factor that separates the groups.
fn place(groups: &[Vec<&SettingOfTrial<'_>>], group: &[&SettingOfTrial<'_>]) -> String {
    if groups.len() == 1 {
        return "all trials".to_owned();
    }
    let levels = |group: &[&SettingOfTrial<'_>], factor: &str| -> Vec<Level> {
        distinct(group.iter().filter_map(|one| one.levels.get(factor).cloned()))
    };
    let tells_apart = |factor: &&String| {
        let sets: Vec<Vec<Level>> = groups.iter().map(|group| levels(group, factor)).collect();
        let all: usize = sets.iter().map(Vec::len).sum();
        all == distinct(sets.into_iter().flatten()).len()
    };
    let factors: Vec<String> = group[0].levels.0.iter().map(|(factor, _)| factor.clone()).collect();
    match factors.iter().find(tells_apart) {
        Some(factor) => {
            let levels = levels(group, factor);
            and_list(levels.iter().map(|level| of_factor(factor, level)).collect::<Vec<_>>())
        }
        None => crate::words::counted(group.len(), "trial"),
    }
}
