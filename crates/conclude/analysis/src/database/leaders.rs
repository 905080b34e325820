//! The variant with the highest throughput over ranges of load, and the loads at which that
//! changes. Nothing is claimed where intervals overlap.

use super::ReportContext;
use crate::estimate::Interval;
use crate::extremes::{extremes, runs};
use crate::grid::Row;
use crate::order;
use crate::quantity::{MULTIPLE, multiple, show, size_of_change};
use crate::reason::OrReason;
use plimsoll_model::words::and_list;
use std::ops::Range;

/// The sentences about each setting.
pub(super) fn sentences(context: &ReportContext<'_>) -> Vec<String> {
    if context.input.plan.variants.len() < 2 {
        return Vec::new();
    }
    let of_row = |row| {
        let ahead = AlongAxis { context, row };
        let sentences_of_setting = ahead.leader_by_range().into_iter().chain(ahead.crossovers());
        sentences_of_setting.map(|sentence| with_setting(&ahead.row.label, &sentence)).collect::<Vec<_>>()
    };
    context.grid.rows.iter().flat_map(of_row).collect()
}

/// The sentence with its setting, if there is one. A variant's name keeps its first letter as it
/// is.
fn with_setting(setting: &str, sentence: &str) -> String {
    match sentence.split_once(' ') {
        _ if !setting.is_empty() => format!("With {setting}, {sentence}"),
        Some(("which", rest)) => format!("Which {rest}"),
        Some(("the", rest)) => format!("The {rest}"),
        _ => sentence.to_owned(),
    }
}

/// The variants along the axis, at one setting.
struct AlongAxis<'a> {
    context: &'a ReportContext<'a>,
    row: &'a Row,
}

impl AlongAxis<'_> {
    fn name(&self, variant: usize) -> String {
        self.context.input.plan.label(variant)
    }

    fn interval(&self, place: usize, variant: usize) -> OrReason<Interval> {
        let condition = self.row.places[place].1;
        if (1..self.context.input.plan.variants.len())
            .any(|other| order::sequential(self.context.input, condition, other))
        {
            return Err("variants did not take turns".to_owned());
        }
        let estimate = self.context.numbers.estimate(condition, variant, self.context.throughput);
        let interval = estimate.ok_or("no trial ran")?.interval.clone();
        interval.map_err(|reason| format!("{} has no interval ({reason})", self.name(variant)))
    }

    fn level(&self, place: usize) -> String {
        self.context.grid.level(self.row.places[place].0)
    }

    /// A range of places on the axis, as in a sentence.
    fn at(&self, places: &Range<usize>) -> String {
        match places.len() {
            1 => format!("at {}", self.level(places.start)),
            all if all == self.row.places.len() => "at every load".to_owned(),
            _ => format!("from {} to {}", self.level(places.start), self.level(places.end - 1)),
        }
    }

    /// The variant with the highest throughput, for each range of places with the same answer.
    fn leader_by_range(&self) -> Vec<String> {
        // Extremes take less for better.
        let turned = |interval: Interval| Interval { low: -interval.high, high: -interval.low };
        let first = (0..self.row.places.len()).map(|place| {
            let intervals = self.context.variants().map(|variant| self.interval(place, variant).map(turned));
            extremes(intervals).map(|extremes| extremes.first)
        });
        runs(first).iter().map(|(places, first)| self.sentence(places, first)).collect()
    }

    fn sentence(&self, places: &Range<usize>, first: &OrReason<Vec<usize>>) -> String {
        let at = self.at(places);
        let names =
            |variants: &[usize]| and_list(variants.iter().map(|variant| self.name(*variant)).collect::<Vec<_>>());
        match first.as_ref().map(Vec::as_slice) {
            Err(reason) => format!("which variant carries most {at} cannot be said: {reason}."),
            Ok(&[only]) => {
                let ends = crate::distinct::distinct([places.start, places.end - 1]);
                let lead_over_second: Vec<String> =
                    ends.into_iter().filter_map(|place| self.lead_over_second(place, only)).collect();
                format!("{} carries most {at}: {}.", self.name(only), lead_over_second.join(", "))
            }
            Ok(several) => {
                format!("the intervals of {} overlap {at}: none of them is shown to carry most.", names(several))
            }
        }
    }

    /// The lead over the second: `12 % more than inputQ at 8 threads (1,200 against 1,071 /s)`.
    fn lead_over_second(&self, place: usize, leader_by_range: usize) -> Option<String> {
        let condition = self.row.places[place].1;
        let centre = |variant| self.context.centre(condition, variant);
        let others = self.context.variants().filter(|variant| *variant != leader_by_range);
        let (variant, lead_over_second) = others
            .filter_map(|variant| Some((variant, centre(variant)?)))
            .max_by(|one, other| one.1.total_cmp(&other.1))?;
        let (leader_by_range, unit) = (centre(leader_by_range)?, self.context.throughput.unit());
        let lead = leader_by_range / lead_over_second;
        let by = if lead < MULTIPLE {
            format!("{} more than", size_of_change(lead))
        } else {
            format!("{} times as much as", multiple(lead))
        };
        Some(format!(
            "{by} {} at {} ({} against {})",
            self.name(variant),
            self.level(place),
            show(leader_by_range, unit),
            show(lead_over_second, unit)
        ))
    }

    /// The places where two variants swap. There is nothing between levels that are words.
    fn crossovers(&self) -> Vec<String> {
        let variants = self.context.input.plan.variants.len();
        let pairs = (0..variants).flat_map(|one| (one + 1..variants).map(move |other| (one, other)));
        let numeric = self.context.grid.is_numeric();
        pairs.filter(|_| numeric).flat_map(|(one, other)| self.crossovers_of(one, other)).collect()
    }

    fn crossovers_of(&self, one: usize, other: usize) -> Vec<String> {
        let ahead: Vec<(usize, usize)> = (0..self.row.places.len())
            .filter_map(|place| {
                let (first, second) = (self.interval(place, one).ok()?, self.interval(place, other).ok()?);
                let ahead = if first.low > second.high { one } else { other };
                (first.low > second.high || second.low > first.high).then_some((place, ahead))
            })
            .collect();
        let changes = ahead.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        changes
            .map(|pair| {
                let ((before, first), (after, then)) = (pair[0], pair[1]);
                format!(
                    "the lines of {} and {} cross between {}, where {} carries more, and {}, where {} does.",
                    self.name(one),
                    self.name(other),
                    self.level(before),
                    self.name(first),
                    self.level(after),
                    self.name(then)
                )
            })
            .collect()
    }
}
