//! The same report of results that other tools recorded. It has no verdicts, and says what cannot be concluded.

use super::graphs::{self, Graph};
use super::tables::{ChangeRow, ChangeTable};
use super::users::{SupportedUsers, UsersRow};
use super::{CaseView, ReleasePage, TITLE};
use crate::Document;
use crate::chart::{Axis, Figure, Line as DrawnLine, Panel, Point, Style};
use crate::page::facts::{Fact, fact};
use crate::text::{self, Names};
use plimsoll_analysis::compare::FALSE_DISCOVERIES;
use plimsoll_analysis::estimate::summarise;
use plimsoll_analysis::quantity::{change as in_percent, confidence, p_value, percent, show};
use plimsoll_analysis::words::counted;
use plimsoll_model::words::and_list;
use plimsoll_outside::limits::limits;
use plimsoll_outside::{Change, Compared, Line, Recorded, Run, SUPPORTED_USERS, better, title, unit};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the table of all changes.
const CHANGES: &str = "changes";

/// Names in a sentence, at most; tables have all.
const NAMED: usize = 6;

/// The report of two versions of which other tools recorded the results.
#[must_use]
pub fn release_of_outside(compared: &Compared) -> Vec<Document> {
    let graphs = compared.cases.iter().map(|case| graphs(compared, case)).collect();
    let graphs = graphs::with_names_of_their_own(graphs, &[CHANGES]);
    let mut anchors = Names::default();
    let view = |(case, graphs): (&String, &Vec<Graph>)| CaseView {
        title: title_of(case),
        anchor: anchors.of_its_own(&text::slug(&title_of(case))),
        graphs: graphs.iter().map(Graph::view).collect(),
        marks: "Lines: median over the runs; bands: from the least to the largest run.".to_owned(),
        tables: tables(compared, case),
        only: only(compared, case),
    };
    let page = ReleasePage {
        title: format!("{TITLE}: {} against {}", compared.second.name, compared.first.name),
        comments: Vec::new(),
        drafted: comments(compared),
        action_items: Vec::new(),
        drafted_items: action_items(compared),
        setup: setup(compared),
        users: supported_users(compared),
        cases: compared.cases.iter().zip(&graphs).map(view).collect(),
        cannot: limits(compared),
    };
    let mut documents = page.documents();
    documents.extend(graphs.iter().flatten().flat_map(Graph::documents));
    documents.push(Document { path: format!("data/{CHANGES}.csv"), bytes: changes(compared).into_bytes() });
    documents
}

fn title_of(case: &str) -> String {
    if case.is_empty() { "All results".to_owned() } else { case.to_owned() }
}

fn versions(compared: &Compared) -> Vec<String> {
    vec![compared.first.name.clone(), compared.second.name.clone()]
}

/// The measures of a case over time that have a single line, a graph each.
fn graphs(compared: &Compared, case: &str) -> Vec<Graph> {
    let of_versions = [&compared.first, &compared.second].map(|version| &version.cases[case]);
    let names: BTreeSet<&String> = of_versions.iter().copied().flatten().flat_map(|run| run.measures.keys()).collect();
    // Of several lines of a run nobody knows which belongs to which of the other runs.
    let lines_of = |run: &Run, name: &String| run.measures.get(name).map_or(0, |recorded| recorded.lines().count());
    let is_single = |name: &String| of_versions.iter().copied().flatten().all(|run| lines_of(run, name) <= 1);
    let graph = |name: &String| {
        let lines = of_versions.iter().enumerate().map(|(variant, runs)| DrawnLine {
            variant,
            style: Style::Band,
            points: points(runs, name),
        });
        let lines: Vec<DrawnLine> = lines.collect();
        let last = lines.iter().flat_map(|line| &line.points).map(|point| point.x).fold(0.0, f64::max);
        let mut axis = Axis::of_seconds(0.0, last.max(1.0));
        "seconds since the first sample".clone_into(&mut axis.label);
        let panel = Panel::new(String::new(), axis, unit(name), lines)?;
        let figure = Figure {
            name: text::slug(name),
            title: title(name),
            caption: String::new(),
            variants: versions(compared),
            panels: vec![panel],
        };
        Some(Graph::of(case, figure))
    };
    names.into_iter().filter(|name| is_single(name)).filter_map(graph).collect()
}

/// The samples of all runs by the time since the first one: where one run has several in a step, their mean.
fn points(runs: &[Run], name: &str) -> Vec<Point> {
    let recorded = runs.iter().filter_map(|run| run.measures.get(name));
    let lines: Vec<&Line> = recorded.flat_map(Recorded::lines).map(|(_, line)| line).collect();
    let Some(step) = lines.iter().filter_map(|line| line.step()).reduce(f64::max) else { return Vec::new() };
    let mut steps: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for line in lines {
        let zero = line.points.first().map_or(0.0, |(at, _)| *at);
        let mut of_line: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (at, value) in &line.points {
            of_line.entry(((at - zero) / step).round() as i64).or_default().push(*value);
        }
        for (place, values) in of_line {
            steps.entry(place).or_default().push(values.iter().sum::<f64>() / values.len() as f64);
        }
    }
    let point = |(place, values): (i64, Vec<f64>)| {
        Some(Point { x: place as f64 * step, centre: summarise(&values)?.median, values })
    };
    steps.into_iter().filter_map(point).collect()
}

fn changes_of<'a>(compared: &'a Compared, case: &str) -> impl Iterator<Item = &'a Change> {
    compared.changes.iter().filter(move |change| change.case == case && change.measure != SUPPORTED_USERS)
}

/// A table of each measure with several labels, and one of all others.
fn tables(compared: &Compared, case: &str) -> Vec<ChangeTable> {
    let mut by_measure: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    changes_of(compared, case).for_each(|change| by_measure.entry(&change.measure).or_default().push(change));
    let (single, several): (Vec<_>, Vec<_>) = by_measure.into_iter().partition(|(_, changes)| changes.len() == 1);
    let single: Vec<&Change> = single.into_iter().flat_map(|(_, changes)| changes).collect();
    let of_single = (!single.is_empty()).then(|| table(compared, "Measures".to_owned(), "measure", single));
    let of_several = several.into_iter().map(|(name, changes)| table(compared, title(name), "label", changes));
    of_single.into_iter().chain(of_several).collect()
}

fn table(compared: &Compared, title_of: String, names: &str, mut changes: Vec<&Change>) -> ChangeTable {
    changes.sort_by(|one, other| other.badness().total_cmp(&one.badness()));
    let row = |change: &&Change| {
        let [baseline, value] = change.values.map(|value| show(value, unit(&change.measure)));
        let name = if names == "measure" { name_of(change) } else { change.label.clone() };
        ChangeRow {
            name,
            baseline,
            value,
            change: change.ratio.map_or("–".to_owned(), in_percent),
            interval: interval(change),
            n: change.first.len().min(change.second.len()),
            p: change.adjusted_p.map(p_value).unwrap_or_default(),
            mark: if change.stands_out() { "stands out".to_owned() } else { String::new() },
        }
    };
    let marked = changes.iter().filter(|change| change.stands_out()).count();
    let tested = compared.changes.iter().filter(|change| change.adjusted_p.is_some()).count();
    let [first, second] = [&compared.first.name, &compared.second.name].map(Clone::clone);
    ChangeTable {
        title: title_of,
        names: names.to_owned(),
        baseline: first,
        variant: second,
        confidence: confidence(0.05),
        rows: changes.iter().map(row).collect(),
        note: match tested {
            0 => "No change has an interval, so that none can be told from chance.".to_owned(),
            tested => format!(
                "{marked} of {} stand out: p is adjusted for all {}, so that at most {} of what stands out is chance.",
                changes.len(),
                counted(tested, "change"),
                percent(FALSE_DISCOVERIES)
            ),
        },
    }
}

fn interval(change: &Change) -> String {
    let interval = change.interval.map(|interval| [interval.low, interval.high].map(in_percent).join(" … "));
    interval.unwrap_or_else(|| "no interval".to_owned())
}

/// Labels that one version alone has.
fn only(compared: &Compared, case: &str) -> Vec<String> {
    let of = |is_first: bool| {
        let here = compared.only.iter().filter(|(of, .., first)| of == case && *first == is_first);
        let named = |(_, measure, label, _): &(String, String, String, bool)| match label.as_str() {
            "" => format!("`{}`", title(measure)),
            label => format!("`{label}` of {}", title(measure)),
        };
        let names: Vec<String> = here.map(named).collect();
        let (word, version) =
            if is_first { ("vanished", &compared.first.name) } else { ("appeared", &compared.second.name) };
        (!names.is_empty()).then(|| format!("{word}: {} in {version} alone", and_list(&names)))
    };
    [of(true), of(false)].into_iter().flatten().collect()
}

/// A change in words: `get of avg api times: +10.0 %`.
fn in_a_line(change: &Change) -> String {
    let interval = change.interval.map(|_| format!(" ({})", interval(change))).unwrap_or_default();
    let values = || change.values.map(|value| show(value, unit(&change.measure))).join(" → ");
    format!("{}: {}{interval}", name_of(change), change.ratio.map_or_else(values, in_percent))
}

/// What changes: `get of avg api times`, or `avg api times` where there are no labels.
fn name_of(change: &Change) -> String {
    match change.label.as_str() {
        "" => title(&change.measure),
        label => format!("{label} of {}", title(&change.measure)),
    }
}

/// The first few of them, the largest change first.
fn in_short(mut changes: Vec<&Change>) -> String {
    let size = |change: &Change| change.logarithm().abs();
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut lines: Vec<String> = changes.iter().take(NAMED).map(|change| in_a_line(change)).collect();
    let more = changes.len().saturating_sub(NAMED);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines.join("; ")
}

fn comments(compared: &Compared) -> Vec<String> {
    let of_case = |case: &String| {
        let all: Vec<&Change> = compared.changes.iter().filter(|change| change.case == *case).collect();
        let tested = all.iter().filter(|change| change.adjusted_p.is_some()).count();
        let out: Vec<&Change> = all.iter().copied().filter(|change| change.stands_out()).collect();
        let summary = match (tested, out.len()) {
            _ if all.is_empty() => None,
            (0, _) => Some(format!(
                "{}: {}, none of which can be told from chance. The largest are {}.",
                title_of(case),
                counted(all.len(), "change"),
                in_short(all)
            )),
            (tested, 0) => {
                let others = all.len() - tested;
                let untold = match others {
                    0 => String::new(),
                    others => format!(", and {others} cannot be told from chance"),
                };
                Some(format!("{}: none of {} stands out{untold}.", title_of(case), counted(tested, "change")))
            }
            (_, count) => Some(format!(
                "{}: {count} of {} {} out ({}).",
                title_of(case),
                counted(tested, "change"),
                if count == 1 { "stands" } else { "stand" },
                in_short(out)
            )),
        };
        let only = only(compared, case).into_iter().map(|line| format!("{}: {line}.", title_of(case)));
        summary.into_iter().chain(only).collect::<Vec<String>>()
    };
    compared.cases.iter().flat_map(of_case).map(|comment| text::unbroken(&comment)).collect()
}

fn action_items(compared: &Compared) -> Vec<String> {
    let worse: Vec<&Change> = compared
        .changes
        .iter()
        .filter(|change| change.stands_out() && better(&change.measure).is_some() && change.badness() > 0.0)
        .collect();
    let look = (!worse.is_empty()).then(|| format!("Look at what became worse: {}.", in_short(worse)));
    let again =
        "Conclude nothing from these files alone: let a study run both versions in turns, and repeat it.".to_owned();
    look.into_iter().chain([again]).map(|item| text::unbroken(&item)).collect()
}

fn setup(compared: &Compared) -> Vec<Fact> {
    let runs = |version: &plimsoll_outside::Version| {
        let of_case = |case: &String| {
            let runs = counted(version.cases[case].len(), "run");
            if case.is_empty() { runs } else { format!("{runs} of {case}") }
        };
        compared.cases.iter().map(of_case).collect::<Vec<String>>().join(", ")
    };
    let mut setup = vec![
        fact("Load-test version", "not known: the results are those of another tool"),
        fact(compared.first.name.clone(), runs(&compared.first)),
        fact(compared.second.name.clone(), runs(&compared.second)),
    ];
    for (version, other) in [(&compared.first, &compared.second), (&compared.second, &compared.first)] {
        let alone = version.cases.keys().filter(|case| !other.cases.contains_key(*case));
        let names: Vec<String> = alone.cloned().collect();
        let left_out = format!("not compared, {} has no such case", other.name);
        setup.extend((!names.is_empty()).then(|| fact(format!("{} of {}", names.join(", "), version.name), left_out)));
    }
    setup
}

fn supported_users(compared: &Compared) -> Option<SupportedUsers> {
    let row = |change: &Change| {
        let condition = [title_of(&change.case), change.label.clone()];
        let named = condition.into_iter().filter(|part| !part.is_empty()).collect::<Vec<String>>().join(", ");
        UsersRow {
            condition: named,
            carried: change.values.iter().map(|value| show(*value, unit(SUPPORTED_USERS))).collect(),
            changes: vec![[
                format!("{} ({})", change.ratio.map_or("–".to_owned(), in_percent), interval(change)),
                if change.stands_out() { "no verdict; stands out" } else { "no verdict" }.to_owned(),
            ]],
            limits: vec!["not known".to_owned()],
        }
    };
    let rows: Vec<UsersRow> =
        compared.changes.iter().filter(|change| change.measure == SUPPORTED_USERS).map(row).collect();
    (!rows.is_empty()).then(|| SupportedUsers { noun: "users", variants: versions(compared), rows })
}

/// Every change in base units.
fn changes(compared: &Compared) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = [
        "case",
        "measure",
        "label",
        "first",
        "second",
        "ratio",
        "low",
        "high",
        "adjusted_p",
        "runs_first",
        "runs_second",
    ];
    table.write_record(header).expect(INFALLIBLE);
    let shown = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    for change in &compared.changes {
        let numbers = [Some(change.values[0]), Some(change.values[1]), change.ratio];
        let ends = [change.interval.map(|one| one.low), change.interval.map(|one| one.high), change.adjusted_p];
        let names = [change.case.clone(), change.measure.clone(), change.label.clone()];
        let runs = [change.first.len(), change.second.len()].map(|runs| runs.to_string());
        let record = names.into_iter().chain(numbers.into_iter().chain(ends).map(shown)).chain(runs);
        table.write_record(record).expect(INFALLIBLE);
    }
    String::from_utf8(table.into_inner().expect(INFALLIBLE)).expect("text was written")
}

const INFALLIBLE: &str = "a vector takes what is written";
