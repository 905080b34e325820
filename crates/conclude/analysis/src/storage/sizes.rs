//! Sizes of objects: the factor that they come from, and their labels.

use super::StorageTrial;
use crate::input::Input;
use crate::quantity::grouped;
use plimsoll_model::factor::{Assignment, Level};
use std::collections::BTreeMap;

/// Units of bytes, the largest first; binary ones before decimal ones of about the same size.
const UNITS: [(u64, &str); 8] = [
    (1 << 40, "TiB"),
    (1_000_000_000_000, "TB"),
    (1 << 30, "GiB"),
    (1_000_000_000, "GB"),
    (1 << 20, "MiB"),
    (1_000_000, "MB"),
    (1 << 10, "KiB"),
    (1000, "KB"),
];

/// The sizes of a study.
pub(super) struct Sizes {
    /// The condition that sets the size, if one does.
    factor: Option<String>,
    /// The labels as the study writes them.
    labels: BTreeMap<u64, String>,
}

impl Sizes {
    pub(super) fn new(input: &Input, places: &[StorageTrial<'_>]) -> Sizes {
        let level_of = |place: &StorageTrial<'_>, factor: &str| {
            input.plan.conditions[place.reader.trial().condition()].get(factor).cloned()
        };
        let pairs = |factor: &str| -> Vec<(Level, u64)> {
            places.iter().filter_map(|place| Some((level_of(place, factor)?, place.facts.size))).collect()
        };
        let factors = input.plan.conditions.first().map(|condition| condition.0.as_slice()).unwrap_or_default();
        let of_size = |name: &&String| {
            let pairs = pairs(name);
            let several = pairs.iter().any(|pair| pair.1 != pairs[0].1);
            is_one_to_one(&pairs) && (several || name.contains("size"))
        };
        let factor = factors.iter().map(|(name, _)| name).find(of_size).cloned();
        let written = factor.iter().flat_map(|factor| pairs(factor)).filter_map(|(level, size)| match level {
            Level::Text(text) => Some((size, text)),
            _ => None,
        });
        Sizes { labels: written.collect(), factor }
    }

    /// A condition without its size.
    pub(super) fn without(&self, condition: &Assignment) -> Assignment {
        Assignment(condition.0.iter().filter(|(name, _)| Some(name) != self.factor.as_ref()).cloned().collect())
    }

    /// The label of a size: as the study writes it, or in the largest unit without a fraction where
    /// it writes a number.
    pub(super) fn label(&self, size: u64) -> String {
        self.labels.get(&size).cloned().unwrap_or_else(|| in_units(size))
    }
}

/// A number of bytes without a fraction: `100KB`, `1MiB`, `1,500B`.
pub(super) fn in_units(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or(&(1, "B"));
    format!("{}{name}", grouped((bytes / unit) as f64))
}

/// True if each level has one size, and each size one level.
fn is_one_to_one(pairs: &[(Level, u64)]) -> bool {
    let agree = |(level, size): &(Level, u64)| pairs.iter().all(|other| (other.0 == *level) == (other.1 == *size));
    !pairs.is_empty() && pairs.iter().all(agree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_unit_that_leaves_no_fraction() {
        for (bytes, expected) in [
            (0, "0B"),
            (1500, "1,500B"),
            (100_000, "100KB"),
            (1 << 20, "1MiB"),
            (1_000_000, "1MB"),
            (10_000 << 20, "10,000MiB"),
            (10_000_000_000, "10GB"),
        ] {
            assert_eq!(in_units(bytes), expected);
        }
    }

    #[test]
    fn a_factor_is_that_of_sizes_if_each_level_has_its_own() {
        let pairs = |pairs: &[(i64, u64)]| pairs.iter().map(|(level, size)| (Level::Integer(*level), *size)).collect();
        for (given, expected) in [
            (&[(1, 10), (2, 20), (1, 10)][..], true),
            (&[(1, 10), (2, 10)], false),
            (&[(1, 10), (1, 20)], false),
            (&[], false),
        ] {
            let pairs: Vec<(Level, u64)> = pairs(given);
            assert_eq!(is_one_to_one(&pairs), expected, "{given:?}");
        }
    }
}
