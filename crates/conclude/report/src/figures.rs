//! Selects the charts of a report.

mod capacity;
mod database;
mod over_time;
mod release;
mod storage;

pub(crate) use capacity::of_capacity;
pub(crate) use database::{of_database, over_one_trial};
pub(crate) use over_time::{over_time, users_over_time};
pub(crate) use release::{marks_of_release, of_release, split_series};
pub(crate) use storage::of_storage;

use crate::chart::{Axis, Figure, Forest, ForestRow, Line, Panel, Point, Style, are_numbers, position, share_axes};
use crate::text::{self, Names};
use plimsoll_analysis::compare::{Comparison, notation};
use plimsoll_analysis::grid::{Grid, Row};
use plimsoll_analysis::quantity::Notation;
use plimsoll_analysis::{Analysis, Input, decisions, words};
use plimsoll_model::measure::{Measure, Series, Statistic, Unit};

/// The charts of capacity, storage and databases, over the conditions and over time.
pub(crate) fn figures(input: &Input, analysis: &Analysis) -> Vec<Figure> {
    let tables = analysis.storage.iter().flat_map(|report| &report.tables);
    let storage = tables.filter_map(|table| of_storage(input, table));
    let database = analysis.database.iter().flat_map(|report| {
        [of_database(input, analysis, report), over_one_trial(input, analysis, report)].into_iter().flatten()
    });
    let capacity = analysis.capacity.iter().flat_map(|report| of_capacity(input, report));
    capacity
        .chain(storage)
        .chain(database)
        .chain(over_conditions(input, analysis))
        .chain(over_time(input, false))
        .collect()
}

pub(crate) fn over_conditions(input: &Input, analysis: &Analysis) -> Vec<Figure> {
    let charts = Charts { input, analysis, grid: Grid::new(&input.facts, &input.plan) };
    let series = duration_series(input, analysis);
    let mut figures = Vec::new();
    for row in &charts.grid.rows {
        let durations = series.iter().filter_map(|series| charts.percentiles(row, series));
        let throughput = charts.throughput_and_cost(row);
        if plimsoll_analysis::headline(&input.facts).measure.unit() == Unit::Seconds {
            figures.extend(durations.chain(throughput));
        } else {
            figures.extend(throughput.into_iter().chain(durations));
        }
    }
    with_names_of_their_own(figures)
}

fn with_names_of_their_own(mut figures: Vec<Figure>) -> Vec<Figure> {
    let mut names = Names::default();
    for figure in &mut figures {
        figure.name = names.of_its_own(&figure.name);
    }
    figures
}

/// A forest plot for every measure that is compared and shown, with the name of its file, without extension.
pub(crate) fn forests(input: &Input, analysis: &Analysis) -> Vec<(String, Measure, Forest)> {
    if input.plan.variants.len() < 2 {
        return Vec::new();
    }
    let mut names = Names::default();
    let named = |measure: Measure| {
        let name = text::slug(&format!("{} {}", measure.series, measure.statistic));
        let forest = forest(input, analysis, &measure);
        (names.of_its_own(&format!("compared-{name}")), measure, forest)
    };
    shown_measures(input).into_iter().map(named).collect()
}

/// The measures that decide, then those that the study asks for.
pub(crate) fn shown_measures(input: &Input) -> Vec<Measure> {
    let mut measures = vec![plimsoll_analysis::headline(&input.facts).measure];
    let further = input.facts.decide.iter().map(|decision| &decision.measure).chain(&input.facts.report.measures);
    for measure in further {
        if !measures.contains(measure) {
            measures.push(measure.clone());
        }
    }
    measures
}

pub(crate) fn forest(input: &Input, analysis: &Analysis, measure: &Measure) -> Forest {
    let several = input.plan.variants.len() > 2;
    let margin = analysis
        .comparisons
        .iter()
        .find(|one| &one.measure == measure)
        .and_then(|one| one.verdict.as_ref())
        .map(|verdict| verdict.margin);
    let notation = notation(analysis.comparisons.iter().filter(|one| &one.measure == measure));
    let rows = analysis.comparisons.iter().filter(|one| &one.measure == measure).map(|one| {
        let condition = words::condition_in(&input.plan, one.condition);
        let variant = input.plan.variants[one.variant].label();
        let label = if several { format!("{condition}: {variant}") } else { condition };
        forest_row(analysis, one, label, notation)
    });
    let variants = variants(input);
    let against = if several { "the other variants".to_owned() } else { variants[1].clone() };
    Forest {
        title: format!("{}: {against} against {}", words::measure_at_start(measure), variants[0]),
        effect: measure.effect(),
        unit: measure.unit(),
        margin,
        rows: rows.collect(),
        variants,
    }
}

fn forest_row(analysis: &Analysis, comparison: &Comparison, label: String, notation: Notation) -> ForestRow {
    let interval = |one: &Comparison| {
        let interval = one.contrast.as_ref().ok()?.interval.as_ref().ok()?;
        Some((interval.low, interval.high))
    };
    let effect = comparison.measure.effect();
    ForestRow {
        label,
        variant: comparison.variant,
        value: comparison.contrast.as_ref().ok().map(|contrast| contrast.value),
        interval: interval(comparison),
        pairs: comparison.pairs.iter().map(|pair| pair.contrast(effect)).collect(),
        floor: analysis.floor(comparison.condition, &comparison.measure).and_then(interval),
        text: text::comparison(comparison, notation),
    }
}

/// Calls and iterations are drawn separately where their means differ by more than this share.
const APART: f64 = 0.05;

/// The series that decide, iterations, and calls where iterations consist of more.
fn duration_series(input: &Input, analysis: &Analysis) -> Vec<Series> {
    let calls = if input.facts.open_load { Series::ResponseTime(None) } else { Series::RequestDuration(None) };
    let mean = |condition, variant, series: &Series| {
        let measure = Measure::new(series.clone(), Statistic::Avg);
        let summary = analysis.estimate(condition, variant, &measure)?.summary.as_ref().ok()?;
        Some(summary.centre)
    };
    let differ = analysis.cells.iter().any(|cell| {
        let of = |series| mean(cell.condition, cell.variant, series);
        of(&Series::IterationDuration).zip(of(&calls)).is_some_and(|(whole, call)| (whole / call - 1.0).abs() > APART)
    });
    let decide = shown_measures(input).into_iter().take(input.facts.decide.len().max(1));
    let decisive = decide.filter(|measure| measure.unit() == Unit::Seconds).map(|measure| measure.series);
    let further = [Some(Series::IterationDuration), differ.then_some(calls)].into_iter().flatten();
    let mut all: Vec<Series> = Vec::new();
    for series in decisive.chain(further) {
        if !all.contains(&series) {
            all.push(series);
        }
    }
    all
}

struct Charts<'a> {
    input: &'a Input,
    analysis: &'a Analysis,
    grid: Grid,
}

impl Charts<'_> {
    /// Median and tail of the series, and its other statistics that decide.
    fn percentiles(&self, row: &Row, series: &Series) -> Option<Figure> {
        let deciding = decisions(&self.input.facts).into_iter().map(|decision| decision.measure);
        let mut statistics: Vec<Statistic> =
            deciding.filter(|measure| &measure.series == series).map(|measure| measure.statistic).collect();
        for usual in [Statistic::Med, Statistic::Percentile(95.0), Statistic::Percentile(99.0)] {
            if !statistics.iter().any(|known| place_of(*known).total_cmp(&place_of(usual)).is_eq()) {
                statistics.push(usual);
            }
        }
        statistics.sort_by(|one, other| place_of(*one).total_cmp(&place_of(*other)));
        let panel = |one: Statistic| (name_of(one), self.analysis.measure(series, one));
        let panels: Vec<(String, Measure)> = statistics.into_iter().map(panel).collect();
        self.figure(row, &series.to_string(), &words::series_at_start(series), &panels)
    }

    /// The measures that decide and are no duration, then throughput and its cost.
    fn throughput_and_cost(&self, row: &Row) -> Option<Figure> {
        let deciding = decisions(&self.input.facts).into_iter().map(|decision| decision.measure);
        let deciding = deciding.filter(|measure| measure.unit() != Unit::Seconds);
        let mut panels: Vec<(String, Measure)> = deciding.map(|measure| (words::measure(&measure), measure)).collect();
        for (title, series, statistic) in [
            ("iterations per second", Series::Iterations, Statistic::Rate),
            ("CPU of the system, cores", Series::Cpu(None), Statistic::Avg),
            ("memory of the system, peak", Series::Memory(None), Statistic::Max),
        ] {
            let measure = Measure::new(series, statistic);
            if !panels.iter().any(|(_, known)| *known == measure) {
                panels.push((title.to_owned(), measure));
            }
        }
        self.figure(row, "throughput", "Throughput and what it costs", &panels)
    }

    /// The panels; those that decide are marked.
    fn figure(&self, row: &Row, name: &str, title: &str, panels: &[(String, Measure)]) -> Option<Figure> {
        let decisions = decisions(&self.input.facts);
        let mark = |measure: &Measure| {
            let decides = !self.input.plan.describes() && decisions.iter().any(|one| &one.measure == measure);
            if decides { ", decides" } else { "" }
        };
        let mut panels: Vec<Panel> = panels
            .iter()
            .filter_map(|(title, measure)| self.panel(row, &format!("{title}{}", mark(measure)), measure))
            .collect();
        share_axes(&mut panels);
        (!panels.is_empty()).then(|| Figure {
            name: text::slug(&format!("{name} {}", row.label)),
            title: titled(title, row),
            caption: format!(
                "Large dots: geometric mean of the repeats. Small dots: each {}; whiskers: from the least to the largest.",
                words::unit(&self.input.plan)
            ),
            variants: variants(self.input),
            panels,
        })
    }

    fn panel(&self, row: &Row, title: &str, measure: &Measure) -> Option<Panel> {
        let lines: Vec<Line> = (0..self.input.plan.variants.len())
            .map(|variant| Line {
                variant,
                style: if are_numbers(&self.grid.levels) { Style::Joined } else { Style::Apart },
                points: row.places.iter().filter_map(|place| self.point(*place, variant, measure)).collect(),
            })
            .collect();
        Panel::new(title.to_owned(), axis_of(&self.grid), measure.unit(), lines)
    }

    fn point(&self, (level, condition): (usize, usize), variant: usize, measure: &Measure) -> Option<Point> {
        let estimate = self.analysis.estimate(condition, variant, measure)?;
        let summary = estimate.summary.as_ref().ok()?;
        let values = estimate.values.iter().map(|one| one.value).collect();
        Some(Point { x: position(&self.grid.levels, level), centre: summary.centre, values })
    }
}

/// The sort key of a statistic among others of a duration.
fn place_of(statistic: Statistic) -> f64 {
    match statistic {
        Statistic::Percentile(p) => p,
        Statistic::Med => 50.0,
        Statistic::Max => 101.0,
        Statistic::Min => -1.0,
        _ => -2.0,
    }
}

fn name_of(statistic: Statistic) -> String {
    match statistic {
        Statistic::Percentile(50.0) | Statistic::Med => "median".to_owned(),
        Statistic::Percentile(p) => format!("{p}th percentile"),
        Statistic::Max => "largest".to_owned(),
        Statistic::Min => "least".to_owned(),
        _ => "mean".to_owned(),
    }
}

fn axis_of(grid: &Grid) -> Axis {
    Axis::of_levels(grid.axis.as_deref().unwrap_or_default(), &grid.levels)
}

fn titled(title: &str, row: &Row) -> String {
    if row.label.is_empty() { title.to_owned() } else { format!("{title}, {}", row.label) }
}

/// The names of the variants, the baseline first.
pub(crate) fn variants(input: &Input) -> Vec<String> {
    input.plan.variants.iter().map(plimsoll_model::factor::Assignment::label).collect()
}
