//! Checks, and the groups in which they were made.

/// What stands between the names of groups, and before each of them.
pub const SEPARATOR: &str = "::";

/// All checks of one thread, or of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    groups: Vec<String>,
    checks: Vec<Check>,
}

/// A check of one name in one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The path of the group: `::front::inner`; empty outside of groups.
    pub group: String,
    /// Its name.
    pub name: String,
    /// How often it passed.
    pub passes: u64,
    /// How often it failed.
    pub fails: u64,
}

impl Checks {
    /// Takes note of a group, so that one without checks is not forgotten.
    pub fn enter(&mut self, group: &str) {
        if !group.is_empty() && !self.groups.iter().any(|known| known == group) {
            self.groups.push(group.to_owned());
        }
    }

    /// Takes note of a check in this group.
    pub fn record(&mut self, group: &str, name: &str, passed: bool) {
        let check = self.check(group, name);
        *if passed { &mut check.passes } else { &mut check.fails } += 1;
    }

    fn check(&mut self, group: &str, name: &str) -> &mut Check {
        let known = self.checks.iter().position(|check| check.name == name && check.group == group);
        let index = known.unwrap_or_else(|| {
            self.enter(group);
            self.checks.push(Check { group: group.to_owned(), name: name.to_owned(), passes: 0, fails: 0 });
            self.checks.len() - 1
        });
        &mut self.checks[index]
    }

    /// Adds those of another thread.
    pub fn merge(&mut self, other: &Checks) {
        other.groups.iter().for_each(|group| self.enter(group));
        for Check { group, name, passes, fails } in &other.checks {
            let own = self.check(group, name);
            (own.passes, own.fails) = (own.passes + passes, own.fails + fails);
        }
    }

    /// All of them, in the order in which they were first made.
    #[must_use]
    pub fn all(&self) -> &[Check] {
        &self.checks
    }

    /// Those of one group.
    pub fn of(&self, group: &str) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.group == group)
    }

    /// The paths of the groups that lie in this one.
    pub fn groups_in(&self, group: &str) -> impl Iterator<Item = &str> {
        let parent = move |path: &&String| path.rsplit_once(SEPARATOR).is_some_and(|(parent, _)| parent == group);
        self.groups.iter().filter(parent).map(String::as_str)
    }
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
    fn checks_are_counted_by_name_and_group() {
        let mut checks = Checks::default();
        checks.record("", "one", true);
        checks.record("::a", "one", false);
        checks.enter("::a::empty");
        let mut other = Checks::default();
        other.record("::a", "one", true);
        other.record("::b", "two", true);
        checks.merge(&other);
        let found: Vec<_> =
            checks.all().iter().map(|check| (&*check.group, &*check.name, check.passes, check.fails)).collect();
        assert_eq!(found, [("", "one", 1, 0), ("::a", "one", 1, 1), ("::b", "two", 1, 0)]);
        assert_eq!(checks.groups_in("").collect::<Vec<_>>(), ["::a", "::b"]);
        assert_eq!(checks.groups_in("::a").map(last_name).collect::<Vec<_>>(), ["empty"]);
        assert_eq!(checks.of("::b").map(|check| check.name.as_str()).collect::<Vec<_>>(), ["two"]);
    }
}
