//! The comparisons of a table: two numbers in one row, or rows of two variants that are equal in
//! everything else.

use crate::cell::{Change, Claim, Form};
use crate::column::Statistic;
use crate::quantity::Quantity;
use crate::row::{Row, Setup};
use plimsoll_analysis::quantity::change as show_change;
use plimsoll_model::measure::Direction;
use plimsoll_statistics::Summary;
use std::collections::{BTreeMap, BTreeSet};

/// Two numbers that a table compares.
#[derive(Clone, Debug)]
pub(crate) struct Comparison<'a> {
    /// The row with the claim, or the row of the variant other than the baseline.
    pub(crate) row: &'a Row,
    /// The lines of all rows behind it.
    pub(crate) lines: Vec<u64>,
    /// The baseline's number.
    pub(crate) from: Option<Quantity>,
    /// The other number.
    pub(crate) to: Option<Quantity>,
    /// The change, published or calculated from the numbers.
    pub(crate) change: Option<Change>,
    /// True if the change is published.
    pub(crate) published: bool,
    /// The table's claim.
    pub(crate) claim: Option<Claim>,
    /// The smaller number of runs of the two sides; `None` if the table does not give it.
    pub(crate) runs: Option<u64>,
    /// The mean and spread of the runs of both sides, where the table gives them.
    pub(crate) spread: Option<[Summary; 2]>,
}

impl Comparison<'_> {
    /// The direction that is better.
    pub(crate) fn direction(&self) -> Option<Direction> {
        self.row.direction()
    }

    /// True if the change is an improvement: by the two numbers where they show it, otherwise by
    /// the published change.
    pub(crate) fn is_better(&self) -> Option<bool> {
        let published = || Some(self.change.as_ref().filter(|change| change.low * change.high > 0.0)?.low > 0.0);
        Some(self.rises().or_else(published)? == (self.direction()? == Direction::Higher))
    }

    /// True if the number is larger than the baseline's; `None` if they are equal within rounding.
    pub(crate) fn rises(&self) -> Option<bool> {
        let (from, to) = self.from.as_ref().zip(self.to.as_ref())?;
        // Rounding preserves order, so numbers a step apart are in the right order.
        let apart = (to.value - from.value).abs() >= (from.half_step + to.half_step) * (1.0 - 1e-9);
        (from.unit == to.unit && !from.bound && !to.bound && apart).then_some(to.value > from.value)
    }

    /// Gives a published size without a sign the direction of its claim: a latency that improves by 20 % falls.
    fn directed(mut self) -> Self {
        let falls = self.published && self.change.as_ref().is_some_and(|change| self.means_a_fall(change));
        if falls {
            let ends = self.from.as_ref().zip(self.to.as_ref());
            let ends = ends.filter(|(from, to)| from.unit == to.unit && from.value > 0.0);
            let actual = ends.map(|(from, to)| to.value / from.value - 1.0);
            self.change = self.change.as_ref().map(|change| change.as_fall(actual));
        }
        self
    }

    /// True if a rise without a sign stands for a fall.
    fn means_a_fall(&self, change: &Change) -> bool {
        let claim = change.said.or(self.claim).filter(|claim| *claim != Claim::Same);
        let Some(claim) = claim.filter(|_| change.form != Form::Signed && change.low > 0.0) else { return false };
        match self.direction() {
            // Numbers that rise make the claim wrong, and not the change.
            Some(direction) => {
                (claim == Claim::Improvement) == (direction == Direction::Lower) && self.rises() != Some(true)
            }
            // Nothing tells which way is better: the size is that of the numbers.
            None => self.rises() == Some(false),
        }
    }

    /// The known numbers: `10,081 → 10,652, +5.7 %`.
    pub(crate) fn numbers(&self) -> String {
        let ends = self.from.as_ref().zip(self.to.as_ref()).map(|(from, to)| format!("{} → {}", from.text, to.text));
        let change = self.change.as_ref().map(|change| change.text.clone());
        ends.into_iter().chain(change).collect::<Vec<_>>().join(", ")
    }

    /// The subject of the comparison with its numbers: `MySQL: 10,081 → 10,652, +5.7 %`.
    pub(crate) fn text(&self) -> String {
        let numbers = self.numbers();
        if numbers.is_empty() { self.row.name() } else { format!("{}: {numbers}", self.row.name()) }
    }
}

/// Groups of rows that are equal in everything but their variant, in the order of the table.
pub(crate) fn groups(rows: &[Row]) -> Vec<Vec<&Row>> {
    by_key(rows, Row::group)
}

/// Groups of rows that have the same key, in the order of the rows.
fn by_key<'a, K: Ord>(rows: impl IntoIterator<Item = &'a Row>, key: impl Fn(&Row) -> K) -> Vec<Vec<&'a Row>> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let place = *places.entry(key(row)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(row);
    }
    groups
}

/// The rows of each variant of a group, the variant that comes first in the table first.
pub(crate) fn variants<'a>(group: &[&'a Row]) -> Vec<(&'a str, Vec<&'a Row>)> {
    let mut variants: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in group {
        let Some(name) = row.variant.as_deref() else { continue };
        match variants.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => variants.push((name, vec![row])),
        }
    }
    variants
}

/// All comparisons of the table.
pub(crate) fn comparisons(rows: &[Row]) -> Vec<Comparison<'_>> {
    // Rows of one variant that were set up in different ways are no repeated runs: each way is a group.
    let cells = groups(rows).into_iter().flat_map(|group| split(&group, Row::setup));
    let mut comparisons: Vec<Comparison<'_>> = cells.flat_map(|cell| between_rows(&cell)).collect();
    let covered: BTreeSet<u64> = comparisons.iter().flat_map(|comparison| comparison.lines.clone()).collect();
    comparisons.extend(rows.iter().filter(|row| !covered.contains(&row.line)).filter_map(in_one_row));
    comparisons.sort_by_key(|comparison| comparison.row.line);
    comparisons
}

/// The rows of a group by those of the names in `said` under which a variant has several levels. What differs between
/// variants alone keeps no rows apart: a version that ran on another machine is compared all the same.
pub(crate) fn split<'a>(group: &[&'a Row], said: impl Fn(&Row) -> Setup) -> Vec<Vec<&'a Row>> {
    let mut several: BTreeSet<String> = BTreeSet::new();
    for (_, rows) in variants(group) {
        let first = said(rows[0]);
        for &row in &rows[1..] {
            several.extend(differing(&first, &said(row)));
        }
    }
    by_key(group.iter().copied(), |row| {
        let mut levels = said(row);
        levels.retain(|name, _| several.contains(name));
        levels
    })
}

/// The names whose levels differ, or of which one side alone has a level.
fn differing(one: &Setup, other: &Setup) -> BTreeSet<String> {
    one.keys().chain(other.keys()).filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

/// The comparison within a row that has a baseline, a change or a claim of its own.
fn in_one_row(row: &Row) -> Option<Comparison<'_>> {
    let to = row.centre().filter(|_| row.baseline.is_some()).cloned();
    if to.is_none() && row.change.is_none() && row.claim.is_none() {
        return None;
    }
    let change = row.change.clone().or_else(|| ratio(row.baseline.as_ref()?, to.as_ref()?));
    let comparison = Comparison {
        row,
        lines: vec![row.line],
        from: row.baseline.clone(),
        to,
        change,
        published: row.change.is_some(),
        claim: row.claim,
        runs: row.runs,
        spread: None,
    };
    Some(comparison.directed())
}

/// The comparison of each other variant with the first, unless its row has its own baseline.
fn between_rows<'a>(group: &[&'a Row]) -> Vec<Comparison<'a>> {
    let variants = variants(group);
    let Some(((_, baseline), others)) = variants.split_first() else { return Vec::new() };
    let others = others.iter().filter(|(_, rows)| rows.iter().all(|row| row.baseline.is_none()));
    others.filter_map(|(_, rows)| between(baseline, rows)).collect()
}

fn between<'a>(baseline: &[&'a Row], rows: &[&'a Row]) -> Option<Comparison<'a>> {
    let (from, to) = (middle(baseline)?, middle(rows)?);
    let published = rows.iter().find_map(|row| row.change.clone());
    let comparison = Comparison {
        row: rows[0],
        lines: baseline.iter().chain(rows).map(|row| row.line).collect(),
        published: published.is_some(),
        change: Some(published.or_else(|| ratio(&from, &to))?),
        from: Some(from),
        to: Some(to),
        claim: rows.iter().find_map(|row| row.claim),
        runs: runs(baseline).zip(runs(rows)).map(|(one, other)| one.min(other)),
        spread: spread(baseline).zip(spread(rows)).map(|(one, other)| [one, other]),
    };
    Some(comparison.directed())
}

/// The spread of the runs: from the mean and sd of one row, or from a row for each run.
fn spread(rows: &[&Row]) -> Option<Summary> {
    if let [row] = rows {
        let (mean, sd) = row.get(Statistic::Mean).zip(row.get(Statistic::Sd))?;
        let n = row.runs.filter(|_| row.requests.is_none())?;
        return Some(Summary { mean: mean.value, sd: sd.value, n: usize::try_from(n).ok()? });
    }
    let values: Vec<f64> = rows.iter().map(|row| row.centre().map(|centre| centre.value)).collect::<Option<_>>()?;
    Summary::of(&values)
}

/// The mean of the rows' numbers: a row for each run, or one for all.
fn middle(rows: &[&Row]) -> Option<Quantity> {
    if let [row] = rows {
        return row.centre().cloned();
    }
    let centres: Vec<&Quantity> = rows.iter().filter_map(|row| row.centre()).collect();
    let first = centres.first()?;
    let mean = |of: fn(&Quantity) -> f64| centres.iter().map(|one| of(one)).sum::<f64>() / centres.len() as f64;
    centres.iter().all(|one| one.unit == first.unit).then(|| {
        let mean = Quantity::calculated(mean(|one| one.value), mean(|one| one.half_step), first.unit);
        Quantity { text: format!("{} (mean of {})", mean.text, centres.len()), ..mean }
    })
}

/// The number of runs behind the rows of a variant: as the rows give it, or a row each.
pub(crate) fn runs(rows: &[&Row]) -> Option<u64> {
    match rows {
        [row] => row.runs,
        rows => Some(rows.iter().map(|row| row.runs.unwrap_or(1)).sum()),
    }
}

fn ratio(from: &Quantity, to: &Quantity) -> Option<Change> {
    let sound = from.unit == to.unit && from.value > 0.0 && to.value > 0.0 && !from.bound && !to.bound;
    sound.then(|| {
        let half_step = (from.half_step / from.value + to.half_step / to.value) * to.value / from.value;
        let ratio = to.value / from.value;
        Change { half_step, text: show_change(ratio), ..Change::calculated(ratio - 1.0) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::read;

    fn texts(table: &str) -> Vec<String> {
        let table = read(table).unwrap_or_else(|faults| panic!("{faults:?}"));
        comparisons(&table.rows).iter().map(Comparison::text).collect()
    }

    #[test]
    fn numbers_of_one_row_are_compared() {
        assert_eq!(
            texts("measure,baseline,value,improvement\nPeak RPS,140,180,+29%\nCPU,13%,20%,\n"),
            ["Peak RPS: 140 → 180, +29%", "CPU: 13% → 20%, +53.8 %"]
        );
    }

    #[test]
    fn variants_are_compared_with_the_first_under_each_condition() {
        let table = "measure,variant,users,mean\nd,a,10,2 ms\nd,b,10,3 ms\nd,a,20,4 ms\nd,b,20,4 ms\nd,c,20,2 ms\n";
        assert_eq!(
            texts(table),
            [
                "b, d, 10 users: 2 ms → 3 ms, +50.0 %",
                "b, d, 20 users: 4 ms → 4 ms, ±0.0 %",
                "c, d, 20 users: 4 ms → 2 ms, −50.0 %"
            ]
        );
    }

    #[test]
    fn rows_of_single_runs_are_taken_together() {
        let table = read("variant,value\na,1 s\na,3 s\nb,4 s\nb,4 s\n").expect("a table");
        let comparisons = comparisons(&table.rows);
        assert_eq!(comparisons[0].text(), "b: 2.00 s (mean of 2) → 4.00 s (mean of 2), +100 %");
        assert_eq!(comparisons[0].runs, Some(2));
    }

    #[test]
    fn settings_of_a_grid_are_kept_apart() {
        let table = "variant,settings,value\na,t=0,10/s\na,t=8,5/s\nb,t=0,10/s\nb,t=8,7/s\n";
        assert_eq!(texts(table), ["b: 10/s → 10/s, ±0.0 %", "b: 5/s → 7/s, +40.0 %"]);
    }

    #[test]
    fn what_differs_between_variants_alone_keeps_no_rows_apart() {
        let table = "operation,size,variant,mode,target,median\nread,1GB,old,cold,host a,10 s\n\
                     read,1GB,old,warm,host a,0.2 s\nread,1GB,new,cold,host b,12 s\nread,1GB,new,warm,host b,0.1 s\n";
        assert_eq!(texts(table), ["new, 1GB, read: 10 s → 12 s, +20.0 %", "new, 1GB, read: 0.2 s → 0.1 s, −50.0 %"]);
        let table = "variant,settings,value\n10 connections,pool=10; t=0,10/s\n10 connections,pool=10; t=8,5/s\n\
                     30 connections,T=0; pool=30,10/s\n30 connections,T=8; pool=30,7/s\n";
        assert_eq!(texts(table), ["30 connections: 10/s → 10/s, ±0.0 %", "30 connections: 5/s → 7/s, +40.0 %"]);
        let table = "variant,mode,target,value\na,cold,host a,10/s\na,warm,host b,50/s\na,cold,host b,12/s\n\
                     b,cold,host b,9/s\nb,warm,host b,60/s\n";
        assert_eq!(texts(table), ["b: 12/s → 9/s, −25.0 %", "b: 50/s → 60/s, +20.0 %"], "both differ within a variant");
    }

    #[test]
    fn cold_and_warm_are_no_repeated_runs() {
        let table = "operation,size,variant,mode,median\nread,1GB,disk,cold,10 s\nread,1GB,disk,warm,0.2 s\n\
                     read,1GB,nfs,cold,12 s\nread,1GB,nfs,warm,0.1 s\n";
        assert_eq!(texts(table), ["nfs, 1GB, read: 10 s → 12 s, +20.0 %", "nfs, 1GB, read: 0.2 s → 0.1 s, −50.0 %"]);
    }
}
