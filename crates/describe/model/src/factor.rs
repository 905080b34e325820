//! Factors: what a study varies, their levels, and assignments of levels to factors.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One value that a factor can take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)] // written by the program only, in the bundle; a person writes TOML values
pub enum Level {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Bool(value) => value.fmt(f),
            Level::Integer(value) => value.fmt(f),
            Level::Number(value) => value.fmt(f),
            Level::Text(value) => f.write_str(value),
        }
    }
}

/// Something that the study varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// The name, as used in `{name}` placeholders.
    pub name: String,
    /// The levels in the order of the study file; never empty.
    pub levels: Vec<Level>,
    /// Whether the study compares its levels or holds each fixed while it compares others.
    pub role: Role,
}

impl Factor {
    /// Whether its levels are compared.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        matches!(self.role, Role::Compared { .. })
    }

    /// The levels in the order in which combinations use them: a baseline first, then the others in the study's order.
    fn ordered_levels(&self) -> Vec<&Level> {
        let mut levels: Vec<&Level> = self.levels.iter().collect();
        if let Role::Compared { baseline } = self.role {
            let first = levels.remove(baseline);
            levels.insert(0, first);
        }
        levels
    }
}

/// Every combination of the levels of `factors`; the last factor changes fastest. The first
/// combination has every baseline. Without factors there is one combination, which is empty.
#[must_use]
pub fn combinations<'a>(factors: impl IntoIterator<Item = &'a Factor>) -> Vec<Assignment> {
    factors.into_iter().fold(vec![Assignment::default()], |before, factor| {
        let levels = factor.ordered_levels();
        let with = |level: &Level| Assignment(vec![(factor.name.clone(), level.clone())]);
        before.iter().flat_map(|start| levels.iter().map(move |level| start.and(&with(level)))).collect()
    })
}

/// What a factor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Its levels are compared: they make the variants.
    Compared {
        /// Index of the level that the others are compared with.
        baseline: usize,
    },
    /// Its levels are the conditions under which variants are compared.
    Condition,
}

/// One level for each of some factors, in the study's order: a variant, a condition, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Assignment(pub Vec<(String, Level)>);

impl Assignment {
    /// The level of the factor `name`, if it is part of the assignment.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Level> {
        self.0.iter().find(|(factor, _)| factor == name).map(|(_, level)| level)
    }

    /// Both assignments together, `self` first.
    #[must_use]
    pub fn and(&self, other: &Assignment) -> Assignment {
        Assignment(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The levels without the names of factors: `mutex`; `the system` if there are none, as where nothing is compared.
    /// Numbers and switches keep the name of
    /// their factor, because they say nothing without it: `mutex, pool = 10`, `fsync = off`.
    #[must_use]
    pub fn label(&self) -> String {
        if self.0.is_empty() {
            return "the system".to_owned();
        }
        let named = |(factor, level): &(String, Level)| match level {
            Level::Text(text) if !is_switch(text) && !is_quantity(text) => text.clone(),
            level => format!("{factor} = {level}"),
        };
        self.0.iter().map(named).collect::<Vec<String>>().join(", ")
    }
}

/// True for `4`, `-1`, `10ms`, `50 %` and `0.006`; false for `2.1` and `3fa9c12`, which are names of versions.
fn is_quantity(text: &str) -> bool {
    let number = text.trim_start_matches(['-', '+']);
    let number = number.strip_prefix("0.").unwrap_or(number);
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < number.len() && !unit.contains(|c: char| c.is_ascii_digit() || c == '.')
}

fn is_switch(text: &str) -> bool {
    ["on", "off", "yes", "no", "true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

impl fmt::Display for Assignment {
    /// `mode = mutex, users = 10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (factor, level)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{factor} = {level}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(pairs: &[(&str, i64)]) -> Assignment {
        Assignment(pairs.iter().map(|(name, level)| ((*name).to_owned(), Level::Integer(*level))).collect())
    }

    #[test]
    fn an_assignment_reads_as_the_study_writes_it() {
        let both = assignment(&[("users", 10)]).and(&assignment(&[("size", 4)]));
        assert_eq!(both.to_string(), "users = 10, size = 4");
        assert_eq!(both.label(), "users = 10, size = 4");
        assert_eq!(Assignment::default().label(), "the system");
        let mode = Assignment(vec![("mode".to_owned(), Level::Text("mutex".to_owned()))]);
        assert_eq!(mode.and(&both).label(), "mutex, users = 10, size = 4");
        let switched = Assignment(vec![("fsync".to_owned(), Level::Text("off".to_owned()))]);
        assert_eq!(switched.label(), "fsync = off");
        for (level, label) in
            [("4", "rev = 4"), ("0.006", "rev = 0.006"), ("0.6.1", "0.6.1"), ("2.1", "2.1"), ("3fa9c12", "3fa9c12")]
        {
            let rev = Assignment(vec![("rev".to_owned(), Level::Text(level.to_owned()))]);
            assert_eq!(rev.label(), label);
        }
        assert_eq!(both.get("size"), Some(&Level::Integer(4)));
        assert_eq!(both.get("mode"), None);
    }

    #[test]
    fn combinations_start_with_every_baseline_and_keep_the_studys_order() {
        let factor = |name: &str, levels: &[i64], role| Factor {
            name: name.to_owned(),
            levels: levels.iter().copied().map(Level::Integer).collect(),
            role,
        };
        let factors = [factor("a", &[1, 2, 3], Role::Compared { baseline: 1 }), factor("b", &[7, 8], Role::Condition)];
        let levels = |assignment: &Assignment| {
            assignment.0.iter().map(|(_, level)| level.to_string()).collect::<Vec<_>>().join(", ")
        };
        let levels: Vec<String> = combinations(&factors).iter().map(levels).collect();
        assert_eq!(levels, ["2, 7", "2, 8", "1, 7", "1, 8", "3, 7", "3, 8"]);
        assert_eq!(combinations([]), [Assignment::default()]);
    }
}
