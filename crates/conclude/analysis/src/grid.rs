//! The conditions of a study, laid out along the axis of a chart.

use crate::words;
use plimsoll_model::factor::{Assignment, Level, Role};
use plimsoll_model::plan::Plan;
use plimsoll_model::study::StudyFacts;

/// The conditions of a study as rows along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The factor on the axis, if there is any condition.
    pub axis: Option<String>,
    /// Its levels, in the order of the axis.
    pub levels: Vec<Level>,
    /// One row for each combination of the other factors.
    pub rows: Vec<Row>,
}

/// The conditions that differ only in the factor on the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The levels that they share; empty when there is only one row.
    pub label: String,
    /// Pairs of the index of a level on the axis and the index of a condition.
    pub places: Vec<(usize, usize)>,
}

impl Grid {
    /// Lays the conditions of `plan` out along the factor that the study names, or else the most
    /// suitable one.
    #[must_use]
    pub fn new(facts: &StudyFacts, plan: &Plan) -> Grid {
        let axis = axis(facts, plan);
        let level_of = |condition: &Assignment| {
            axis.as_deref().and_then(|name| condition.get(name)).cloned().unwrap_or_else(|| no_level(plan))
        };
        let mut levels: Vec<Level> = Vec::new();
        for level in plan.conditions.iter().map(level_of) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        levels.sort_by(|one, other| number(one).total_cmp(&number(other)));
        let mut rows: Vec<(Assignment, Row)> = Vec::new();
        for (index, condition) in plan.conditions.iter().enumerate() {
            let level = level_of(condition);
            let place = (levels.iter().position(|one| *one == level).expect("every level is listed"), index);
            let rest = without(condition, axis.as_deref());
            match rows.iter_mut().find(|(known, _)| *known == rest) {
                Some((_, row)) => row.places.push(place),
                None => {
                    let label = if rest.0.is_empty() { String::new() } else { words::condition(&rest) };
                    rows.push((rest, Row { label, places: vec![place] }));
                }
            }
        }
        let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
        rows.iter_mut().for_each(|row| row.places.sort_unstable());
        Grid { axis, levels, rows }
    }

    /// The level on the axis in words: `10 users`; `all trials`, or `all starts`, without an axis.
    #[must_use]
    pub fn level(&self, index: usize) -> String {
        let level = &self.levels[index];
        self.axis.as_ref().map_or_else(|| level.to_string(), |factor| words::of_factor(factor, level))
    }

    /// True if the levels on the axis are numbers, so that values between them make sense.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        self.levels.iter().all(is_number)
    }
}

/// The factor that the study names; else the last numeric condition; else the last condition.
fn axis(facts: &StudyFacts, plan: &Plan) -> Option<String> {
    let in_plan = |name: &str| plan.conditions.iter().any(|condition| condition.get(name).is_some());
    if let Some(name) = facts.report.axis.as_deref().filter(|name| in_plan(name)) {
        return Some(name.to_owned());
    }
    let conditions = || facts.factors.iter().rev().filter(|factor| factor.role == Role::Condition);
    let numeric = conditions().find(|factor| factor.levels.len() > 1 && factor.levels.iter().all(is_number));
    numeric.or(conditions().next()).map(|factor| factor.name.clone()).filter(|name| in_plan(name))
}

fn is_number(level: &Level) -> bool {
    matches!(level, Level::Integer(_) | Level::Number(_))
}

/// The sort key of a level; words keep their order.
fn number(level: &Level) -> f64 {
    match level {
        Level::Integer(number) => *number as f64,
        Level::Number(number) => *number,
        _ => 0.0,
    }
}

fn no_level(plan: &Plan) -> Level {
    Level::Text(format!("all {}s", words::unit(plan)))
}

fn without(condition: &Assignment, axis: Option<&str>) -> Assignment {
    Assignment(condition.0.iter().filter(|(name, _)| Some(name.as_str()) != axis).cloned().collect())
}
