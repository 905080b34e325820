//! Checks, and the groups and scenarios in which they were made.

use serde::{Deserialize, Serialize};

/// The separator before each group of a path.
pub const SEPARATOR: &str = "::";

/// All checks of one thread, or of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Scenarios and paths.
    groups: Vec<(String, String)>,
    checks: Vec<Check>,
}

/// The checks with one name in one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its scenario; empty outside of scenarios.
    pub scenario: String,
    /// The path of the group: `::front::inner`; empty outside of groups.
    pub group: String,
    /// Its name.
    pub name: String,
    /// The number of passes.
    pub passes: u64,
    /// The number of failures.
    pub fails: u64,
}

impl Checks {
    /// Records a group, even if it has no checks.
    pub fn enter(&mut self, scenario: &str, group: &str) {
        let known = self.groups.iter().any(|(of, path)| path == group && of == scenario);
        if !group.is_empty() && !known {
            self.groups.push((scenario.to_owned(), group.to_owned()));
        }
    }

    /// Records a check in this group. Returns its index in [`Self::all`].
    pub fn record(&mut self, scenario: &str, group: &str, name: &str, passed: bool) -> usize {
        let index = self.index(scenario, group, name);
        let check = &mut self.checks[index];
        *if passed { &mut check.passes } else { &mut check.fails } += 1;
        index
    }

    fn index(&mut self, scenario: &str, group: &str, name: &str) -> usize {
        let same = |check: &Check| check.name == name && check.group == group && check.scenario == scenario;
        self.checks.iter().position(same).unwrap_or_else(|| {
            self.enter(scenario, group);
            let [scenario, group, name] = [scenario, group, name].map(str::to_owned);
            self.checks.push(Check { scenario, group, name, passes: 0, fails: 0 });
            self.checks.len() - 1
        })
    }

    /// Merges the checks of another thread.
    pub fn merge(&mut self, other: &Checks) {
        other.groups.iter().for_each(|(scenario, group)| self.enter(scenario, group));
        for Check { scenario, group, name, passes, fails } in &other.checks {
            let index = self.index(scenario, group, name);
            let own = &mut self.checks[index];
            (own.passes, own.fails) = (own.passes + passes, own.fails + fails);
        }
    }

    /// All checks, in the order in which they were first made.
    #[must_use]
    pub fn all(&self) -> &[Check] {
        &self.checks
    }

    /// The checks of each name, of all groups and scenarios together.
    #[must_use]
    pub fn by_name(&self) -> Vec<Check> {
        one_of_each_name(self.checks.iter())
    }

    /// The checks of one group, of all scenarios together.
    #[must_use]
    pub fn of(&self, group: &str) -> Vec<Check> {
        one_of_each_name(self.checks.iter().filter(|check| check.group == group))
    }

    /// The paths of the groups directly inside this one.
    #[must_use]
    pub fn groups_in(&self, group: &str) -> Vec<&str> {
        let mut inner: Vec<&str> = Vec::new();
        for (_, path) in &self.groups {
            let lies_in = path.rsplit_once(SEPARATOR).is_some_and(|(parent, _)| parent == group);
            if lies_in && !inner.contains(&path.as_str()) {
                inner.push(path);
            }
        }
        inner
    }

    /// The checks of some scenarios.
    #[must_use]
    pub fn within(&self, scenarios: impl Fn(&str) -> bool) -> Checks {
        Checks {
            groups: self.groups.iter().filter(|(scenario, _)| scenarios(scenario)).cloned().collect(),
            checks: self.checks.iter().filter(|check| scenarios(&check.scenario)).cloned().collect(),
        }
    }
}

fn one_of_each_name<'a>(checks: impl Iterator<Item = &'a Check>) -> Vec<Check> {
    let mut merged: Vec<Check> = Vec::new();
    for check in checks {
        match merged.iter_mut().find(|known| known.name == check.name) {
            Some(known) => (known.passes, known.fails) = (known.passes + check.passes, known.fails + check.fails),
            None => merged.push(check.clone()),
        }
    }
    merged
}

/// The name of the last group of a path.
#[must_use]
pub fn last_name(path: &str) -> &str {
    path.rsplit_once(SEPARATOR).map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted_by_name_group_and_scenario() {
        let mut checks = Checks::default();
        checks.record("s", "", "one", true);
        checks.record("s", "::a", "one", false);
        checks.enter("s", "::a::empty");
        let mut other = Checks::default();
        other.record("s", "::a", "one", true);
        other.record("t", "::b", "two", true);
        other.record("t", "::a", "one", true);
        checks.merge(&other);
        let counts = |checks: Vec<Check>| -> Vec<(String, u64, u64)> {
            checks.into_iter().map(|check| (check.name, check.passes, check.fails)).collect()
        };
        let (one, two) = ("one".to_owned(), "two".to_owned());
        assert_eq!(checks.all().len(), 4);
        assert_eq!(counts(checks.by_name()), [(one.clone(), 3, 1), (two, 1, 0)]);
        assert_eq!(counts(checks.of("::a")), [(one.clone(), 2, 1)]);
        assert_eq!(checks.groups_in(""), ["::a", "::b"]);
        assert_eq!(checks.groups_in("::a").into_iter().map(last_name).collect::<Vec<_>>(), ["empty"]);
        let of_s = checks.within(|scenario| scenario == "s");
        assert_eq!((counts(of_s.of("::a")), of_s.groups_in("")), (vec![(one, 1, 1)], vec!["::a"]));
    }
}
