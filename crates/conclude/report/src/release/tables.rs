//! Tables by change: of each value of a label, as handlers of an API or methods of a store, and of requests by their names.

use super::{Case, is_unbounded};
use crate::figures;
use crate::page::top;
use crate::text;
use plimsoll_analysis::Input;
use plimsoll_analysis::compare::{Comparison, FALSE_DISCOVERIES, notation};
use plimsoll_analysis::exposed::exposing;
use plimsoll_analysis::quantity::{confidence, p_value, percent};
use plimsoll_analysis::words::{self, counted};
use plimsoll_model::exposed::ExposedSeries;
use plimsoll_model::measure::{Direction, Effect, Measure, Series, Statistic};
use plimsoll_model::result::TrialResult;
use plimsoll_model::words::and_list;
use std::collections::BTreeMap;

/// A table of one statistic, a row for each name, the worst change first.
pub(super) struct ChangeTable {
    pub(super) title: String,
    /// The heading of the names: `handler`.
    pub(super) names: String,
    pub(super) baseline: String,
    pub(super) variant: String,
    /// The confidence of the intervals: `95 %`.
    pub(super) confidence: String,
    pub(super) rows: Vec<ChangeRow>,
    /// How many stand out, and how chance is kept from making them.
    pub(super) note: String,
}

pub(super) struct ChangeRow {
    pub(super) name: String,
    pub(super) baseline: String,
    pub(super) value: String,
    pub(super) change: String,
    pub(super) interval: String,
    pub(super) n: usize,
    pub(super) p: String,
    /// The verdict, or that it stands out.
    pub(super) mark: String,
}

/// The names that are the rows of a table.
enum Names {
    /// The values of the label by which a metric is split.
    Labels(ExposedSeries),
    /// The names of requests, as the load generator timed them.
    Requests,
}

/// The statistics that tables are of. One that a metric's kind does not have gives no comparison, and no table.
const STATISTICS: [Statistic; 2] = [Statistic::Avg, Statistic::Percentile(99.0)];

/// None where the number of users was not given: each version was measured around its own capacity, so under another load.
pub(super) fn of_case(case: &Case<'_>) -> Vec<ChangeTable> {
    if is_unbounded(case.part) {
        return Vec::new();
    }
    let of_names = |names: Names| {
        let of_statistic = |statistic| {
            let variants = 1..case.part.input.plan.variants.len();
            variants.filter_map(|variant| table(case, &names, statistic, variant)).collect::<Vec<ChangeTable>>()
        };
        let tables: Vec<ChangeTable> = STATISTICS.into_iter().flat_map(of_statistic).collect();
        // Of counters, which have neither means nor percentiles.
        if tables.is_empty() { of_statistic(Statistic::Rate) } else { tables }
    };
    all_names(case).into_iter().flat_map(of_names).collect()
}

fn all_names(case: &Case<'_>) -> Vec<Names> {
    let split = figures::split_series(&case.part.input).into_iter().map(Names::Labels);
    split.chain([Names::Requests]).collect()
}

impl Names {
    /// The name in a table for what is measured of a series; none where it is no row of it.
    fn row<'s>(&self, of: &'s Series) -> Option<&'s str> {
        match (self, of) {
            (Names::Labels(series), Series::Exposed(name)) => {
                series.is_named(name).then(|| label_of(name, &series.name))
            }
            (Names::Requests, Series::RequestDuration(name)) => name.as_deref(),
            _ => None,
        }
    }

    fn title(&self, statistic: Statistic) -> String {
        match self {
            Names::Labels(series) => format!("{} by {}, {}", series.name, self.heading(), in_words(statistic)),
            Names::Requests => format!("requests by name, {}", in_words(statistic)),
        }
    }

    fn heading(&self) -> &str {
        match self {
            Names::Labels(series) => series.by.as_deref().unwrap_or_default(),
            Names::Requests => "request",
        }
    }
}

/// `createPost` of `api[createPost]`.
fn label_of<'a>(name: &'a str, series: &str) -> &'a str {
    name.strip_prefix(series).and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']')).unwrap_or(name)
}

fn in_words(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Avg => "mean",
        Statistic::Rate => "per second",
        _ => "99th percentile",
    }
}

/// The comparisons of a variant that belong to a table, each with its name, the worst first.
fn named<'a>(
    case: &'a Case<'_>,
    names: &Names,
    statistic: Statistic,
    variant: usize,
) -> Vec<(&'a str, &'a Comparison)> {
    let all = case.part.analysis.comparisons.iter();
    let here = all.filter(|one| (one.condition, one.variant) == (case.condition, variant));
    let with_value = here.filter(|one| one.measure.statistic == statistic && one.contrast.is_ok());
    let mut named: Vec<(&str, &Comparison)> =
        with_value.filter_map(|one| Some((names.row(&one.measure.series)?, one))).collect();
    named.sort_by(|(_, one), (_, other)| badness(other).total_cmp(&badness(one)));
    named
}

/// How much worse a variant is: a number that orders comparisons of measures with the same direction.
pub(super) fn badness(comparison: &Comparison) -> f64 {
    let Ok(contrast) = &comparison.contrast else { return f64::NEG_INFINITY };
    let size = match comparison.measure.effect() {
        Effect::Ratio => contrast.value.ln(),
        Effect::Difference => contrast.value,
    };
    match comparison.measure.direction() {
        Direction::Lower => size,
        Direction::Higher => -size,
    }
}

fn table(case: &Case<'_>, names: &Names, statistic: Statistic, variant: usize) -> Option<ChangeTable> {
    let named = named(case, names, statistic, variant);
    // A single name is no table: it is the whole.
    if named.len() < 2 {
        return None;
    }
    let notation = notation(named.iter().map(|(_, one)| *one));
    let row = |(name, one): &(&str, &Comparison)| {
        let [baseline, value] = top::values(one);
        ChangeRow {
            name: (*name).to_owned(),
            baseline,
            value,
            change: one.change(notation).unwrap_or_else(|_| "–".to_owned()),
            interval: text::interval(one, notation),
            n: one.pairs.len(),
            p: one.exploratory.map(|one| p_value(one.adjusted_p)).unwrap_or_default(),
            mark: mark(one),
        }
    };
    let plan = &case.part.input.plan;
    let marked = named.iter().filter(|(_, one)| stands_out(one)).count();
    let tested = case.part.analysis.comparisons.iter().filter(|one| one.exploratory.is_some()).count();
    Some(ChangeTable {
        title: names.title(statistic),
        names: names.heading().to_owned(),
        baseline: plan.label(0),
        variant: plan.label(variant),
        confidence: confidence(case.part.analysis.alpha),
        rows: named.iter().map(row).collect(),
        note: format!(
            "{marked} of {} stand out: p is adjusted for all {} of the study that do not decide, so that at most {} of what \
             stands out is chance.{}",
            named.len(),
            counted(tested, "comparison"),
            percent(FALSE_DISCOVERIES),
            match (names, statistic) {
                (Names::Labels(_), Statistic::Percentile(_)) =>
                    " Quantiles are known up to their bucket: two in one look alike.",
                _ => "",
            }
        ),
    })
}

/// The verdict, or that the difference stands out among all that do not decide.
fn mark(comparison: &Comparison) -> String {
    match &comparison.verdict {
        Some(verdict) => verdict.outcome.to_string(),
        None if stands_out(comparison) => "stands out".to_owned(),
        None => String::new(),
    }
}

fn stands_out(comparison: &Comparison) -> bool {
    comparison.exploratory.is_some_and(|one| one.stands_out)
}

/// The means that are rows of tables and do not decide; none where there are no tables.
fn means<'a>(case: &'a Case<'_>) -> impl Iterator<Item = &'a Comparison> {
    let names = all_names(case);
    let is_row = move |measure: &Measure| {
        measure.statistic == Statistic::Avg && names.iter().any(|names| names.row(&measure.series).is_some())
    };
    let has_tables = !is_unbounded(case.part);
    let here = case.part.analysis.comparisons.iter().filter(move |one| has_tables && one.condition == case.condition);
    here.filter(move |one| one.exploratory.is_some() && is_row(&one.measure))
}

/// The number of means that are rows of tables and do not decide.
pub(super) fn rows_compared(case: &Case<'_>) -> usize {
    means(case).count()
}

/// The means that stand out among them, the worst first.
pub(super) fn standing_out<'a>(case: &'a Case<'_>) -> Vec<&'a Comparison> {
    let mut found: Vec<&Comparison> = means(case).filter(|one| stands_out(one)).collect();
    found.sort_by(|one, other| badness(other).total_cmp(&badness(one)));
    found
}

/// The names of metrics that not all versions expose. A name appeared or vanished where it was there in each load of the one
/// version, and is no change to zero; a rare one may be missing by chance.
pub(super) fn only_in_some(case: &Case<'_>) -> Vec<Only> {
    let input: &Input = &case.part.input;
    let variants = input.plan.variants.len();
    let is_here = |trial: &TrialResult<'_>| trial.condition() == case.condition && trial.variant() < variants;
    let trials = || input.trials().filter(|trial| is_here(trial) && input.counts(*trial));
    let mut loads: BTreeMap<usize, usize> = BTreeMap::new();
    trials().for_each(|trial| *loads.entry(trial.variant()).or_default() += 1);
    let mut names: BTreeMap<(Vec<usize>, Fate), Vec<String>> = BTreeMap::new();
    for (name, of) in exposing(trials()).into_iter().filter(|(_, of)| of.len() < loads.len()) {
        let is_always_there = of.iter().all(|(variant, count)| count == &loads[variant]);
        let fate = match (is_always_there, of.contains_key(&0)) {
            (false, _) => Fate::Rare,
            (true, true) => Fate::Vanished,
            (true, false) => Fate::Appeared,
        };
        names.entry((of.into_keys().collect(), fate)).or_default().push(format!("`{name}`"));
    }
    let only = |((of, fate), names): ((Vec<usize>, Fate), Vec<String>)| {
        let labels: Vec<String> = of.iter().map(|one| input.plan.label(*one)).collect();
        let (names, labels) = (and_list(&names), and_list(&labels));
        let line = match fate {
            Fate::Vanished => format!("vanished: {names} exposed by {labels} alone"),
            Fate::Appeared => format!("appeared: {names} exposed by {labels} alone"),
            Fate::Rare => format!("rare, so that chance may be the reason: {names} in some loads of {labels} alone"),
        };
        Only { fate, line }
    };
    names.into_iter().map(only).collect()
}

/// Names that not all versions have, in words.
pub(super) struct Only {
    pub(super) fate: Fate,
    pub(super) line: String,
}

/// The reason why a name is missing in a version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    Vanished,
    Appeared,
    /// It is missing in some loads of the version that has it too.
    Rare,
}

/// A comparison in words: `` `api[unread]`, mean: −45 % (−48 … −41 %) ``.
pub(super) fn in_a_line(comparison: &Comparison) -> String {
    let notation = comparison.notation();
    let change = comparison.change(notation).unwrap_or_else(|_| "–".to_owned());
    format!("{}: {change} ({})", words::measure(&comparison.measure), text::interval(comparison, notation))
}
