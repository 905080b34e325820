//! The checks of the data after a trial and of the input mix, over all trials, including those that
//! do not count.

use super::work;
use crate::distinct::distinct;
use crate::measure::TrialReader;
use crate::quantity::significant;
use crate::reason::OrReason;
use plimsoll_model::database::{Condition, MixLine};

/// A condition that the data must meet after a trial, or after it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The condition in words.
    pub name: String,
    /// The result after each load of the data: met, or the reason why it was not checked. None
    /// where Plimsoll did not load the data.
    pub loaded: Option<OrReason<()>>,
    /// The number of trials after which it was met.
    pub passed: usize,
    /// The trials after which it was violated, with the details.
    pub violated: Vec<(u32, String)>,
    /// The trials after which it was not checked, with the reason.
    pub not_checked: Vec<(u32, String)>,
}

impl Check {
    /// True if only data that was just loaded can meet it.
    #[must_use]
    pub fn is_of_load_alone(&self) -> bool {
        self.passed == 0 && self.violated.is_empty() && self.not_checked.is_empty()
    }
}

/// A share or mean of the input that users got.
#[derive(Clone, Debug, PartialEq)]
pub struct MixCheck {
    /// Its name.
    pub name: String,
    /// Number of trials that have it.
    pub trials: usize,
    /// The smallest and the largest observed value.
    pub observed: (f64, f64),
    /// The smallest and the largest allowed value in any trial: the trial with the fewest inputs
    /// has the widest range, because chance moves it furthest.
    pub allowed: (f64, f64),
    /// The trials in which the value is outside of its range.
    pub outside: Vec<u32>,
}

impl MixCheck {
    /// Formats a value of it: shares as percentages.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        let is_share = self.observed.1 <= 1.0;
        if is_share { format!("{:.2} %", value.min(1.0) * 100.0) } else { significant(value) }
    }
}

pub(super) fn checks(readers: &[TrialReader<'_>]) -> Vec<Check> {
    let facts = || {
        readers.iter().flat_map(|reader| {
            let trial = reader.trial().number();
            reader.trial().databases().iter().map(move |facts| (trial, facts))
        })
    };
    let after_trials = || facts().flat_map(|(trial, facts)| facts.conditions.iter().map(move |one| (trial, one)));
    let after_load = || facts().flat_map(|(_, facts)| &facts.loaded);
    let mut names = distinct(after_trials().map(|(_, one)| &one.name).chain(after_load().map(|one| &one.name)));
    names.sort_by_key(|name| number(name));
    let check = |name: &String| {
        let these: Vec<(u32, &Condition)> = after_trials().filter(|(_, one)| &one.name == name).collect();
        let trials_with = |holds: Option<bool>| {
            let those = these.iter().filter(move |(_, condition)| condition.holds == holds);
            those.map(|(trial, condition)| (*trial, condition.detail.clone())).collect::<Vec<_>>()
        };
        let loaded = loaded(after_load().filter(|one| &one.name == name));
        Check {
            name: name.clone(),
            loaded,
            passed: trials_with(Some(true)).len(),
            violated: trials_with(Some(false)),
            not_checked: trials_with(None),
        }
    };
    names.into_iter().map(check).collect()
}

/// TPC-C numbers its conditions: `11: …`.
fn number(name: &str) -> Option<u32> {
    name.split(':').next()?.parse().ok()
}

/// The result after the load. Data that violates a condition after its load never reaches a trial.
fn loaded<'a>(mut after_load: impl Iterator<Item = &'a Condition>) -> Option<OrReason<()>> {
    let first = after_load.next()?;
    let not_checked = [first].into_iter().chain(after_load).find(|one| one.holds.is_none());
    Some(not_checked.map_or(Ok(()), |one| Err(one.detail.clone())))
}

pub(super) fn mix(readers: &[TrialReader<'_>]) -> Vec<MixCheck> {
    let lines = || {
        let facts = readers.iter().filter_map(|reader| Some((reader.trial().number(), work(reader)?)));
        facts.flat_map(|(trial, facts)| facts.work.mix.iter().map(move |line| (trial, line)))
    };
    let names = distinct(lines().map(|(_, line)| &line.name));
    let check = |name: &String| {
        let these: Vec<(u32, &MixLine)> = lines().filter(|(_, line)| &line.name == name).collect();
        let least = |of: fn(&MixLine) -> f64| these.iter().map(|(_, line)| of(line)).fold(f64::INFINITY, f64::min);
        let most = |of: fn(&MixLine) -> f64| these.iter().map(|(_, line)| of(line)).fold(f64::NEG_INFINITY, f64::max);
        MixCheck {
            name: name.clone(),
            trials: these.len(),
            observed: (least(|line| line.found), most(|line| line.found)),
            allowed: (least(|line| line.low), most(|line| line.high)),
            outside: these.iter().filter(|(_, line)| !line.holds).map(|(trial, _)| *trial).collect(),
        }
    };
    names.into_iter().map(check).collect()
}
