//! The result of a simulation: prose, tables, and numbers checked against requirements.

use crate::replicates::Share;

/// A section of docs/method-evidence.md.
#[derive(Debug)]
pub struct Section {
    /// Its heading, to which docs/method.md links.
    pub title: &'static str,
    /// Its content, in order.
    pub parts: Vec<Part>,
    /// The requirements, and the results.
    pub checks: Vec<Check>,
}

/// A part of a section.
#[derive(Debug)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
}

/// Rows below a head; the first column is text, the others are numbers.
#[derive(Debug)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows, as long as the head.
    pub rows: Vec<Vec<String>>,
}

/// A requirement, and the cells that meet it or do not.
#[derive(Debug)]
pub struct Check {
    /// The name of the number.
    pub what: &'static str,
    /// The requirement.
    pub demand: Demand,
    /// The cells, with the measured share of each.
    pub cells: Vec<(String, Share)>,
}

/// A requirement on a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// A lower bound.
    AtLeast(f64),
    /// An upper bound.
    AtMost(f64),
    /// A range.
    Within(f64, f64),
}

impl Demand {
    /// The distance of a value from the requirement; 0 where it is met.
    #[must_use]
    pub fn missed_by(self, value: f64) -> f64 {
        match self {
            Demand::AtLeast(least) => (least - value).max(0.0),
            Demand::AtMost(most) => (value - most).max(0.0),
            Demand::Within(least, most) => (least - value).max(value - most).max(0.0),
        }
    }

    /// The bound that is closest to a value.
    fn bound(self, value: f64) -> f64 {
        match self {
            Demand::AtLeast(bound) | Demand::AtMost(bound) => bound,
            Demand::Within(least, most) => {
                if value < f64::midpoint(least, most) {
                    least
                } else {
                    most
                }
            }
        }
    }
}

impl Check {
    /// A check of one cell.
    #[must_use]
    pub fn one(what: &'static str, demand: Demand, share: Share) -> Check {
        Check { what, demand, cells: vec![(String::new(), share)] }
    }

    /// The cells that do not meet the requirement.
    #[must_use]
    pub fn failing(&self) -> Vec<&(String, Share)> {
        self.cells.iter().filter(|(_, share)| self.demand.missed_by(share.value()) > 0.0).collect()
    }

    /// The cells that miss the requirement by more than this many standard errors, computed at the
    /// bound.
    #[must_use]
    pub fn clearly_failing(&self, errors: f64) -> Vec<&(String, Share)> {
        let is_clear = |(_, share): &&(String, Share)| {
            let (value, bound) = (share.value(), self.demand.bound(share.value()));
            let error = (bound * (1.0 - bound) / share.of.max(1) as f64).sqrt();
            self.demand.missed_by(value) > errors * error
        };
        self.cells.iter().filter(is_clear).collect()
    }
}

impl Section {
    /// An empty section.
    #[must_use]
    pub fn new(title: &'static str) -> Section {
        Section { title, parts: Vec::new(), checks: Vec::new() }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Section {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, head: &[&str], rows: Vec<Vec<String>>) -> Section {
        let head = head.iter().map(|name| (*name).to_owned()).collect();
        self.parts.push(Part::Table(Table { head, rows }));
        self
    }

    /// Adds a finished table.
    #[must_use]
    pub fn with(mut self, table: Table) -> Section {
        self.parts.push(Part::Table(table));
        self
    }

    /// Adds a check.
    #[must_use]
    pub fn check(mut self, check: Check) -> Section {
        self.checks.push(check);
        self
    }
}

/// A share for a table: `4.8`, in percent.
#[must_use]
pub fn percent(share: Share) -> String {
    if share.of == 0 { "–".to_owned() } else { format!("{:.1}", share.value() * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_is_held_against_the_measured_value() {
        for (demand, value, missed) in [
            (Demand::AtLeast(0.94), 0.95, 0.0),
            (Demand::AtLeast(0.94), 0.93, 0.01),
            (Demand::AtMost(0.05), 0.05, 0.0),
            (Demand::AtMost(0.05), 0.07, 0.02),
            (Demand::Within(0.78, 0.82), 0.8, 0.0),
            (Demand::Within(0.78, 0.82), 0.85, 0.03),
            (Demand::Within(0.78, 0.82), 0.75, 0.03),
        ] {
            assert!((demand.missed_by(value) - missed).abs() < 1e-12, "{demand:?} {value}");
        }
    }

    #[test]
    fn chance_alone_is_no_clear_miss() {
        let check = |hits, of| Check::one("", Demand::AtMost(0.05), Share { hits, of });
        assert_eq!(check(6, 100).failing().len(), 1);
        assert!(check(6, 100).clearly_failing(4.0).is_empty());
        assert_eq!(check(600, 10_000).clearly_failing(4.0).len(), 1);
        assert!(check(0, 0).failing().is_empty());
    }
}
