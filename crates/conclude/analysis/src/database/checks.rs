//! What must hold of the data after a trial, and how the input was mixed, over all trials: those
//! that do not count as well.

use super::{distinct, work};
use crate::measure::TrialReader;
use crate::quantity::significant;
use crate::reason::OrReason;
use plimsoll_model::database::{Condition, MixLine};

/// Something that must hold of the data after a trial, or after it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it says.
    pub name: String,
    /// Whether it held after each load of the data, or why that was not looked at; none where Plimsoll
    /// did not load the data.
    pub loaded: Option<OrReason<()>>,
    /// After how many trials it held.
    pub passed: usize,
    /// The trials after which it did not, with what was found.
    pub violated: Vec<(u32, String)>,
    /// The trials after which it was not looked at, with why.
    pub not_checked: Vec<(u32, String)>,
}

impl Check {
    /// True if it can hold only of data that was just loaded.
    #[must_use]
    pub fn is_of_load_alone(&self) -> bool {
        self.passed == 0 && self.violated.is_empty() && self.not_checked.is_empty()
    }
}

/// A share or mean of what users were given to do.
#[derive(Clone, Debug, PartialEq)]
pub struct MixCheck {
    /// What it is.
    pub name: String,
    /// Trials that have it.
    pub trials: usize,
    /// The least and the largest that were found.
    pub observed: (f64, f64),
    /// The least and the most that is right in a trial: the trial with the fewest inputs is allowed the
    /// most, because chance moves it furthest.
    pub allowed: (f64, f64),
    /// The trials in which it is not.
    pub outside: Vec<u32>,
}

impl MixCheck {
    /// A value of it, as people read it: shares as percentages.
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
        let told = |holds: Option<bool>| {
            let those = these.iter().filter(move |(_, condition)| condition.holds == holds);
            those.map(|(trial, condition)| (*trial, condition.detail.clone())).collect::<Vec<_>>()
        };
        let loaded = loaded(after_load().filter(|one| &one.name == name));
        Check {
            name: name.clone(),
            loaded,
            passed: told(Some(true)).len(),
            violated: told(Some(false)),
            not_checked: told(None),
        }
    };
    names.into_iter().map(check).collect()
}

/// TPC-C numbers its conditions: `11: …`.
fn number(name: &str) -> Option<u32> {
    name.split(':').next()?.parse().ok()
}

/// Data of which a condition does not hold after its load is no data for a trial.
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
