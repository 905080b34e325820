//! Each variant at its best setting, and all variants at the same setting.
//!
//! The largest of several means is biased upward: chance helps the setting that is picked. So each
//! ratio of best settings stands beside a leave-one-out ratio: for each repeat the setting is
//! picked by the other repeats alone, and the value is that of the repeat left out.

use super::ReportContext;
use crate::compare::Contrast;
use crate::estimate::{Interval, interval_of_mean, summarise};
use crate::reason::OrReason;
use std::collections::BTreeMap;

/// Each variant at its best setting, level by level of the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct BestOfGrid {
    /// In the order of the axis.
    pub rows: Vec<BestRow>,
}

/// The setting under which a variant has the highest throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct BestRow {
    /// Index of the level.
    pub level: usize,
    /// The best setting of each variant, or the reason why it has none.
    pub best: Vec<OrReason<Best>>,
    /// Each other variant compared with the baseline.
    pub ratios: Vec<BestRatio>,
}

/// The setting under which a variant carries most.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// Index into the grid's rows.
    pub setting: usize,
    /// The throughput at that setting.
    pub centre: f64,
    /// Its confidence interval.
    pub interval: OrReason<Interval>,
    /// True if its interval lies above those of all other settings.
    pub better_than_all_others: bool,
}

/// The ratio of a variant to the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct BestRatio {
    /// Index into the plan's variants.
    pub variant: usize,
    /// Each at its best setting, picked from all repeats.
    pub best: OrReason<Ratio>,
    /// The leave-one-out ratio: for each repeat, the setting is picked by the other repeats.
    pub leave_one_out: OrReason<Ratio>,
    /// Both at the same setting, for each row of the grid.
    pub same_setting: Vec<OrReason<Ratio>>,
}

/// A ratio of throughputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Ratio of geometric means.
    pub value: f64,
    /// Its confidence interval, or the reason why there is none.
    pub interval: OrReason<Interval>,
}

/// Each variant at its best setting; none where there is only one setting or one variant.
pub(super) fn best(context: &ReportContext<'_>) -> Option<BestOfGrid> {
    let several = context.grid.rows.len() > 1 && context.input.plan.variants.len() > 1;
    let rows = (0..context.grid.levels.len()).map(|level| Level { context, level }.row());
    several.then(|| BestOfGrid { rows: rows.collect() })
}

/// The throughput of a variant at a level of the axis: by setting, then by repeat.
type ThroughputBySetting = BTreeMap<usize, BTreeMap<u32, f64>>;

#[derive(Clone, Copy)]
struct Level<'a> {
    context: &'a ReportContext<'a>,
    level: usize,
}

impl Level<'_> {
    fn row(self) -> BestRow {
        let variants: Vec<ThroughputBySetting> = self.context.variants().map(|variant| self.values(variant)).collect();
        let best: Vec<OrReason<Best>> =
            self.context.variants().map(|variant| self.best(variant, &variants[variant])).collect();
        let ratio = |variant: usize| BestRatio {
            variant,
            best: picked(&variants[variant])
                .zip(picked(&variants[0]))
                .map_or_else(none, |(one, baseline)| ratio(one, baseline)),
            leave_one_out: ratio(&leave_one_out(&variants[variant]), &leave_one_out(&variants[0])),
            same_setting: (0..self.context.grid.rows.len())
                .map(|setting| self.same_setting(setting, variant))
                .collect(),
        };
        BestRow { level: self.level, ratios: self.context.variants().skip(1).map(ratio).collect(), best }
    }

    /// The condition with a setting at this level.
    fn condition(self, setting: usize) -> Option<usize> {
        let places = &self.context.grid.rows[setting].places;
        places.iter().find(|(level, _)| *level == self.level).map(|(_, condition)| *condition)
    }

    fn values(self, variant: usize) -> ThroughputBySetting {
        let plan = &self.context.input.plan;
        let repeat = |number: u32| plan.starts.iter().find(|start| start.number == number).map(|start| start.repeat);
        let of_setting = |setting: usize| {
            let estimate = self.context.numbers.estimate(self.condition(setting)?, variant, self.context.throughput)?;
            let values: BTreeMap<u32, f64> =
                estimate.values.iter().filter_map(|one| Some((repeat(one.trial)?, one.value))).collect();
            (!values.is_empty()).then_some((setting, values))
        };
        (0..self.context.grid.rows.len()).filter_map(of_setting).collect()
    }

    fn best(self, variant: usize, values: &ThroughputBySetting) -> OrReason<Best> {
        let setting = pick(values, None).ok_or("no trial counts")?;
        let estimate =
            |setting: usize| self.context.numbers.estimate(self.condition(setting)?, variant, self.context.throughput);
        let found = estimate(setting).ok_or("no trial counts")?;
        let interval = found.interval.clone();
        let others = values.keys().filter(|other| **other != setting).filter_map(|other| estimate(*other));
        let better_than_all_others = interval.as_ref().is_ok_and(|best| {
            others.into_iter().all(|other| other.interval.as_ref().is_ok_and(|interval| interval.high < best.low))
        });
        Ok(Best {
            setting,
            centre: found.summary.as_ref().map_err(Clone::clone)?.centre,
            interval,
            better_than_all_others,
        })
    }

    /// The ratio at the same setting, block by block.
    fn same_setting(self, setting: usize, variant: usize) -> OrReason<Ratio> {
        let condition = self.condition(setting).ok_or("it has no trials at this load")?;
        let comparison = self.context.numbers.comparison(condition, variant, self.context.throughput);
        let Contrast { value, interval, .. } = comparison.ok_or("it was not compared")?.contrast.clone()?;
        Ok(Ratio { value, interval })
    }
}

fn none() -> OrReason<Ratio> {
    Err("no trial counts".to_owned())
}

/// The setting with the largest centre, without the repeat `but`.
fn pick(values: &ThroughputBySetting, but: Option<u32>) -> Option<usize> {
    let centre = |repeats: &BTreeMap<u32, f64>| {
        let kept: Vec<f64> =
            repeats.iter().filter(|(repeat, _)| Some(**repeat) != but).map(|(_, value)| *value).collect();
        summarise(&kept).map(|summary| summary.centre)
    };
    let centres = values.iter().filter_map(|(setting, repeats)| Some((*setting, centre(repeats)?)));
    centres.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(setting, _)| setting)
}

fn picked(values: &ThroughputBySetting) -> Option<&BTreeMap<u32, f64>> {
    values.get(&pick(values, None)?)
}

/// For each repeat, its value at the setting that the other repeats pick.
fn leave_one_out(values: &ThroughputBySetting) -> BTreeMap<u32, f64> {
    let repeats: Vec<u32> = values.values().flat_map(BTreeMap::keys).copied().collect();
    let value = |repeat: u32| Some((repeat, *values.get(&pick(values, Some(repeat))?)?.get(&repeat)?));
    repeats.into_iter().filter_map(value).collect()
}

/// The ratio by Student's t on the logarithms, repeat by repeat.
fn ratio(one: &BTreeMap<u32, f64>, baseline: &BTreeMap<u32, f64>) -> OrReason<Ratio> {
    let pairs = one.iter().filter_map(|(repeat, value)| Some(value / baseline.get(repeat)?));
    let logarithms: Vec<f64> = pairs.map(f64::ln).filter(|logarithm| logarithm.is_finite()).collect();
    let value = plimsoll_statistics::mean(&logarithms).ok_or("no repeat has both")?.exp();
    let interval = interval_of_mean(&logarithms);
    Ok(Ratio { value, interval: interval.map(|one| Interval { low: one.low.exp(), high: one.high.exp() }) })
}
