//! Formats the comparison of two bundles: for a terminal, as Markdown, and as JSON.

use crate::json::levels;
use crate::page::top::shown_beside_a_change;
use crate::terminal::{aligned, wrapped};
use crate::text::utc;
use askama::Template;
use plimsoll_analysis::compare::FALSE_DISCOVERIES;
use plimsoll_analysis::cross_run::{Basis, Change, CrossRunComparison, Difference, Kind, NOISE_FLOORS, Row};
use plimsoll_analysis::finding::{Finding, Severity};
use plimsoll_analysis::quantity::{confidence, margin, percent};
use plimsoll_analysis::verdict::{Outcome, Verdict};
use plimsoll_analysis::{OrReason, distinct, words};
use plimsoll_model::factor::Assignment;
use plimsoll_model::measure::{Effect, Measure, Unit};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// The version of the JSON format.
const FORMAT: u32 = 1;

/// The text for a missing number.
const NOTHING: &str = "–";

/// The verdicts, a table of the measures that decide, and the important findings, at most 100
/// columns wide.
#[must_use]
pub fn terminal(compared: &CrossRunComparison) -> String {
    let view = View::new(compared);
    let mut text = format!("{}: the second run against the first\n\n", view.title);
    let width = view.runs.iter().map(|run| run.name.chars().count()).max().unwrap_or(0);
    for run in &view.runs {
        writeln!(text, "{:<6}  {:<width$}  {} to {} UTC", run.word, run.name, run.from, run.to).expect(INFALLIBLE);
    }
    text += "\n";
    for line in [&view.about].into_iter().chain(view.answer) {
        writeln!(text, "{}", wrapped(line, "  ")).expect(INFALLIBLE);
    }
    text += "\n";
    text += &aligned(&rows_for_terminal(&view));
    for line in why_open(&view) {
        write!(text, "\n{}", wrapped(&line, "  ")).expect(INFALLIBLE);
    }
    let floors = view.notes.iter().filter(|finding| finding.topic == NOISE_FLOORS);
    for finding in view.severe.iter().chain(floors) {
        let line = format!("{}: {}", finding.severity.name(), finding.sentence);
        write!(text, "\n{}", wrapped(&line, "  ")).expect(INFALLIBLE);
        for evidence in &finding.evidence {
            write!(text, "\n  {}", wrapped(&format!("- {evidence}"), "    ")).expect(INFALLIBLE);
        }
    }
    text
}

/// The same with all tables, as Markdown.
#[must_use]
pub fn markdown(compared: &CrossRunComparison) -> String {
    Markdown { view: &View::new(compared) }.render().expect(INFALLIBLE) + "\n"
}

/// The whole comparison, in base units. New fields keep the version of the format.
#[must_use]
pub fn json(compared: &CrossRunComparison) -> String {
    serde_json::to_string_pretty(&Report::new(compared)).expect("every key is text") + "\n"
}

const INFALLIBLE: &str = "a string takes what is written";

#[derive(Template)]
#[template(path = "cross_run.md")]
struct Markdown<'a> {
    view: &'a View<'a>,
}

/// The content of both terminal and Markdown.
struct View<'a> {
    title: &'a str,
    question: &'a str,
    runs: [RunView<'a>; 2],
    about: String,
    answer: &'a [String],
    /// Problems and cautions.
    severe: Vec<&'a Finding>,
    notes: Vec<&'a Finding>,
    causes: Vec<CauseView<'a>>,
    method: String,
    confidence: String,
    false_discoveries: String,
    /// True if there are changes of ratios to the baseline.
    with_ratios: bool,
    /// True if verdicts judge those.
    on_ratios: bool,
    /// By measure.
    deciding: Vec<Table>,
    /// By variant and condition.
    rest: Vec<Table>,
}

struct RunView<'a> {
    word: &'static str,
    name: &'a str,
    from: String,
    to: String,
}

struct CauseView<'a> {
    what: &'a str,
    first: &'a str,
    second: &'a str,
    of: String,
}

struct Table {
    title: String,
    margin: String,
    rows: Vec<RowView>,
}

struct RowView {
    measure: String,
    place: String,
    variant: String,
    condition: String,
    first: String,
    second: String,
    change: String,
    interval: String,
    n: String,
    to_baseline: String,
    /// The change of the ratio to the baseline, without its interval.
    to_baseline_alone: String,
    verdict: String,
    reason: String,
    /// True if the verdict is inconclusive or void.
    is_open: bool,
}

impl<'a> View<'a> {
    fn new(compared: &'a CrossRunComparison) -> View<'a> {
        let (notes, severe) = compared.findings.iter().partition(|finding| finding.severity == Severity::Note);
        View {
            title: &compared.title,
            question: &compared.question,
            runs: [run(compared, 0), run(compared, 1)],
            about: compared.about(),
            answer: &compared.answer,
            severe,
            notes,
            causes: compared.causes.iter().map(|one| cause(one, compared.is_of_one_system())).collect(),
            method: method(compared),
            confidence: confidence(compared.alpha),
            false_discoveries: percent(FALSE_DISCOVERIES),
            with_ratios: compared.rows.iter().any(|row| row.against_baseline.is_some()),
            on_ratios: compared.basis == Basis::RatiosToBaseline,
            deciding: deciding(compared),
            rest: rest(compared),
        }
    }
}

fn run(compared: &CrossRunComparison, index: usize) -> RunView<'_> {
    let time = |time: Option<i64>| time.map_or(NOTHING.to_owned(), utc);
    let ran = compared.ran[index];
    RunView {
        word: ["first", "second"][index],
        name: &compared.names[index],
        from: time(ran.map(|ran| ran.0)),
        to: time(ran.map(|ran| ran.1)),
    }
}

fn cause(cause: &Difference, of_one_system: bool) -> CauseView<'_> {
    let all = || match cause.kind {
        Kind::System | Kind::Study if of_one_system => "the system".to_owned(),
        Kind::System | Kind::Study => "every variant".to_owned(),
        Kind::Machine => "the machine".to_owned(),
        Kind::Generator => "Plimsoll".to_owned(),
    };
    let names = |variants: &Vec<Assignment>| variants.iter().map(Assignment::label).collect::<Vec<_>>().join(", ");
    CauseView {
        what: &cause.what,
        first: &cause.first,
        second: &cause.second,
        of: cause.variants.as_ref().map_or_else(all, names),
    }
}

fn method(compared: &CrossRunComparison) -> String {
    let level = confidence(compared.alpha);
    let common = format!(
        "The second over the first: ratios of geometric means (differences of means where zero is a common value), with \
         {level} intervals by Welch's t test. A trial is one observation; trials of two runs are not paired."
    );
    match compared.basis {
        Basis::Values => common,
        Basis::RatiosToBaseline => format!(
            "{common} {}, so verdicts on the others are on the change of their ratio to the baseline inside each run: what \
             drifted between the runs falls out of it.",
            if compared.nothing_differs() {
                "The baseline is the same in both"
            } else {
                "Nothing differs but variants other than the baseline"
            }
        ),
    }
}

/// `+3.1 %, +1.2 % … +5.0 %`.
fn in_short(change: &Change, measure: &Measure) -> String {
    let value = change.shown(measure);
    change.ends(measure).map_or(value.clone(), |ends| format!("{value}, {}", ends.join(" … ")))
}

fn deciding(compared: &CrossRunComparison) -> Vec<Table> {
    let table = |measure: &Measure| {
        let rows: Vec<&Row> = compared.rows.iter().filter(|row| row.measure == *measure).collect();
        let declared = rows.iter().find_map(|row| row.verdict.as_ref()).map(|verdict| margin(verdict.margin, measure));
        Table {
            title: words::measure(measure),
            margin: declared.unwrap_or_else(|| NOTHING.to_owned()),
            rows: rows.into_iter().map(|row| row_view(compared, row)).collect(),
        }
    };
    distinct(compared.rows.iter().map(|row| &row.measure)).into_iter().map(table).collect()
}

fn rest(compared: &CrossRunComparison) -> Vec<Table> {
    let mut places: Vec<String> = Vec::new();
    for row in &compared.rest {
        if !places.contains(&row.place()) {
            places.push(row.place());
        }
    }
    let table = |place: String| {
        // A row without a value in either run is left out.
        let rows = compared.rest.iter().filter(|row| row.place() == place && row.centres() != [None, None]);
        Table { rows: rows.map(|row| row_view(compared, row)).collect(), title: place, margin: String::new() }
    };
    places.into_iter().map(table).collect()
}

fn row_view(compared: &CrossRunComparison, row: &Row) -> RowView {
    let unit = row.measure.unit();
    let [first, second] =
        row.centres().map(|centre| centre.map_or(NOTHING.to_owned(), |centre| shown_beside_a_change(centre, unit)));
    let change = |change: &OrReason<Change>| match change {
        Ok(change) => change.shown(&row.measure),
        Err(_) => NOTHING.to_owned(),
    };
    let interval = match &row.change {
        Ok(change) => change.ends(&row.measure).map_or("no interval".to_owned(), |ends| ends.join(" … ")),
        Err(_) => NOTHING.to_owned(),
    };
    let counts = row.values.each_ref().map(Vec::len);
    let to_baseline = match &row.against_baseline {
        Some(Ok(change)) => in_short(change, &row.measure),
        Some(Err(_)) | None => NOTHING.to_owned(),
    };
    let (verdict, reason) = match (&row.verdict, &row.exploratory) {
        (Some(verdict), _) if compared.is_unexplained(verdict) => unexplained(compared, row),
        (Some(verdict), _) => (verdict.in_words(), verdict.reason.clone()),
        (None, Some(exploratory)) => (if exploratory.stands_out { "*" } else { "" }.to_owned(), String::new()),
        (None, None) if row.is_baseline && compared.basis == Basis::RatiosToBaseline => {
            ("drift".to_owned(), "the same in both: its change is what the time between the runs did".to_owned())
        }
        (None, None) => (String::new(), String::new()),
    };
    RowView {
        measure: words::measure(&row.measure),
        place: row.place(),
        variant: row.variant.label(),
        condition: words::condition(&row.condition),
        first,
        second,
        change: change(&row.change),
        interval,
        n: if counts[0] == counts[1] { counts[0].to_string() } else { format!("{}, {}", counts[0], counts[1]) },
        to_baseline,
        to_baseline_alone: row.against_baseline.as_ref().map_or(NOTHING.to_owned(), change),
        verdict,
        reason,
        is_open: row.verdict.as_ref().is_some_and(is_open),
    }
}

fn is_open(verdict: &Verdict) -> bool {
    matches!(verdict.outcome, Outcome::Inconclusive | Outcome::Void)
}

/// The word and the reason for a change without a known cause.
fn unexplained(compared: &CrossRunComparison, row: &Row) -> (String, String) {
    match (row.is_baseline, compared.basis) {
        (true, Basis::RatiosToBaseline) => {
            ("drift".to_owned(), "the same in both: its change is what the time between the runs did".to_owned())
        }
        (false, Basis::RatiosToBaseline) => (
            "moved".to_owned(),
            "nothing known differs: something that is not recorded, or drift that did not meet both \
                                  alike"
                .to_owned(),
        ),
        (_, Basis::Values) => (
            "moved".to_owned(),
            "nothing known differs: drift of the machine, or something that is not recorded".to_owned(),
        ),
    }
}

/// The most reasons that a terminal shows; a table has them all.
const REASONS: usize = 4;

/// The reasons of open verdicts, each once; where there are many, the place that lists them.
fn why_open(view: &View<'_>) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in view.deciding.iter().flat_map(|table| &table.rows).filter(|row| row.is_open) {
        match reasons.iter_mut().find(|(reason, _)| *reason == row.reason) {
            Some((_, places)) => places.push(&row.place),
            None => reasons.push((&row.reason, vec![&row.place])),
        }
    }
    if reasons.len() > REASONS {
        return vec!["Why each open verdict is open stands in the table that --out FILE writes.".to_owned()];
    }
    let line = |(reason, places): (&str, Vec<&str>)| match places[..] {
        [place] => format!("open, {place}: {reason}"),
        _ => format!("open, {}: {reason}", words::counted(places.len(), "row")),
    };
    reasons.into_iter().map(line).collect()
}

/// The rows of the terminal's table. The interval is that of the judged change; a ratio to the
/// baseline that is not judged has a column of its own.
fn rows_for_terminal(view: &View<'_>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for table in &view.deciding {
        let judged = if view.on_ratios { "to the baseline" } else { "interval" };
        let mut head = vec![&table.title, "first", "second", "change", judged, "n", "verdict"];
        let beside = view.with_ratios && !view.on_ratios;
        if beside {
            head.insert(5, "to baseline");
        }
        if !rows.is_empty() {
            rows.push(vec![String::new(); head.len()]);
        }
        rows.push(head.into_iter().map(str::to_owned).collect());
        for row in &table.rows {
            let second = if view.on_ratios { &row.to_baseline } else { &row.interval };
            let mut cells = vec![&row.place, &row.first, &row.second, &row.change, second, &row.n, &row.verdict];
            if beside {
                cells.insert(5, &row.to_baseline_alone);
            }
            rows.push(cells.into_iter().cloned().collect());
        }
    }
    rows
}

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    title: &'a str,
    question: &'a str,
    first: RunRow<'a>,
    second: RunRow<'a>,
    about: String,
    answer: &'a [String],
    confidence: f64,
    basis: &'static str,
    differences: Vec<DifferenceRow<'a>>,
    minor_differences: Vec<DifferenceRow<'a>>,
    unknown: &'a [String],
    left_out: &'a [String],
    problems: &'a [String],
    comparisons: Vec<ComparisonRow>,
    exploratory: Vec<ComparisonRow>,
    findings: Vec<FindingRow<'a>>,
}

#[derive(Serialize)]
struct RunRow<'a> {
    bundle: &'a str,
    from_utc: Option<String>,
    to_utc: Option<String>,
    noise_floors: Vec<FloorRow>,
}

#[derive(Serialize)]
struct FloorRow {
    measure: String,
    condition: Value,
    interval: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct DifferenceRow<'a> {
    kind: &'static str,
    what: &'a str,
    first: &'a str,
    second: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    variants: Option<Vec<Value>>,
}

#[derive(Serialize)]
struct ComparisonRow {
    measure: String,
    unit: Unit,
    effect: Effect,
    variant: Value,
    condition: Value,
    is_baseline: bool,
    first: Vec<f64>,
    second: Vec<f64>,
    change: ChangeRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_to_baseline: Option<ChangeRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<VerdictRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stands_out: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adjusted_p: Option<f64>,
}

#[derive(Default, Serialize)]
struct ChangeRow {
    value: Option<f64>,
    interval: Option<[f64; 2]>,
    p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<String>,
}

#[derive(Serialize)]
struct VerdictRow {
    outcome: String,
    material: Option<bool>,
    not_inferior: bool,
    margin: f64,
    adjusted_p: Option<f64>,
    reason: String,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    gravity: &'static str,
    topic: &'static str,
    sentence: &'a str,
    evidence: &'a [String],
}

impl<'a> Report<'a> {
    fn new(compared: &'a CrossRunComparison) -> Report<'a> {
        let finding = |finding: &'a Finding| FindingRow {
            gravity: finding.severity.name(),
            topic: finding.topic,
            sentence: &finding.sentence,
            evidence: &finding.evidence,
        };
        Report {
            format: FORMAT,
            title: &compared.title,
            question: &compared.question,
            first: run_row(compared, 0),
            second: run_row(compared, 1),
            about: compared.about(),
            answer: &compared.answer,
            confidence: 1.0 - compared.alpha,
            basis: match compared.basis {
                Basis::Values => "values",
                Basis::RatiosToBaseline => "ratios_to_baseline",
            },
            differences: compared.causes.iter().map(difference_row).collect(),
            minor_differences: compared.minor.iter().map(difference_row).collect(),
            unknown: &compared.unknown,
            left_out: &compared.left_out,
            problems: &compared.problems,
            comparisons: compared.rows.iter().map(|row| comparison_row(compared, row)).collect(),
            exploratory: compared.rest.iter().map(|row| comparison_row(compared, row)).collect(),
            findings: compared.findings.iter().map(finding).collect(),
        }
    }
}

fn run_row(compared: &CrossRunComparison, index: usize) -> RunRow<'_> {
    let ran = compared.ran[index];
    let floor = |floor: &plimsoll_analysis::cross_run::Floor| FloorRow {
        measure: floor.measure.to_string(),
        condition: levels(&floor.condition),
        interval: floor.interval.map(|interval| [interval.low, interval.high]),
    };
    RunRow {
        bundle: &compared.names[index],
        from_utc: ran.map(|ran| utc(ran.0)),
        to_utc: ran.map(|ran| utc(ran.1)),
        noise_floors: compared.floors[index].iter().map(floor).collect(),
    }
}

fn difference_row(difference: &Difference) -> DifferenceRow<'_> {
    DifferenceRow {
        kind: match difference.kind {
            Kind::Study => "study",
            Kind::System => "system",
            Kind::Machine => "machine",
            Kind::Generator => "generator",
        },
        what: &difference.what,
        first: &difference.first,
        second: &difference.second,
        variants: difference.variants.as_ref().map(|variants| variants.iter().map(levels).collect()),
    }
}

fn comparison_row(compared: &CrossRunComparison, row: &Row) -> ComparisonRow {
    let [first, second] = row.values.clone();
    ComparisonRow {
        measure: row.measure.to_string(),
        unit: row.measure.unit(),
        effect: row.measure.effect(),
        variant: levels(&row.variant),
        condition: levels(&row.condition),
        is_baseline: row.is_baseline,
        first,
        second,
        change: change_row(&row.change),
        change_to_baseline: row.against_baseline.as_ref().map(change_row),
        verdict: row.verdict.as_ref().map(|verdict| VerdictRow {
            outcome: match compared.is_unexplained(verdict) {
                true => "moved".to_owned(),
                false => verdict.outcome.to_string(),
            },
            material: verdict.material,
            not_inferior: verdict.not_inferior,
            margin: verdict.margin,
            adjusted_p: verdict.adjusted_p,
            reason: match compared.is_unexplained(verdict) {
                true => unexplained(compared, row).1,
                false => verdict.reason.clone(),
            },
        }),
        stands_out: row.exploratory.map(|exploratory| exploratory.stands_out),
        adjusted_p: row.exploratory.map(|exploratory| exploratory.adjusted_p),
    }
}

fn change_row(change: &OrReason<Change>) -> ChangeRow {
    match change {
        Err(reason) => ChangeRow { none: Some(reason.clone()), ..ChangeRow::default() },
        Ok(change) => ChangeRow {
            value: Some(change.value),
            interval: change.interval.as_ref().ok().map(|interval| [interval.low, interval.high]),
            p: change.p,
            none: change.interval.as_ref().err().cloned(),
        },
    }
}
