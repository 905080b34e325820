//! Two bundles of the same study against each other: what differs between them, and by how much
//! their numbers do.
//!
//! Trials of two bundles are not paired: they ran at different times, so whatever drifted in between
//! is in the difference and not in its interval. Welch's t test, on logarithms where measures are
//! compared by their ratio, says how large the difference is. Where the baseline is the same
//! program with the same settings in both bundles, the other variants' ratios to it are compared as
//! well: what drifted falls out of those. They even decide, where nothing but those variants
//! differs. Where nothing differs at all, nothing is better or worse: what moved is drift, or
//! something that no bundle knows of.

mod answer;
mod describe;
mod differences;
mod drift;
mod findings;
mod flow;
mod named_value;
mod rows;
mod sql;
#[cfg(test)]
mod tests;

pub use differences::{Difference, Kind};
pub use findings::NOISE_FLOORS;

use crate::analysis::Analysis;
use crate::compare::Exploratory;
use crate::compare::level;
use crate::effect::{ends_in, shown_in};
use crate::estimate::{Interval, summarise};
use crate::finding::Finding;
use crate::input::Input;
use crate::quantity::Notation;
use crate::reason::OrReason;
use crate::verdict::{Outcome, Verdict};
use crate::words;
use differences::{Differences, differences, distinct, is_same, place, shared};
use plimsoll_model::database::Database;
use plimsoll_model::factor::Assignment;
use plimsoll_model::load::LoadProfile;
use plimsoll_model::measure::Measure;
use plimsoll_model::result::{StartResult, StartTiming};
use plimsoll_model::start::Plan;
use plimsoll_model::system::SystemSpec;
use plimsoll_model::workload::Workload;
use rows::RunPair;

/// What stands for Plimsoll's own path in what was [`ResolvedCell`]: a study says the same, and it is
/// another path on each machine.
pub const THIS_PROGRAM: &str = "{plimsoll}";

/// One of the two bundles.
#[derive(Debug)]
pub struct ComparedRun<'a> {
    /// What it is called in messages.
    pub name: String,
    /// What it holds.
    pub input: &'a Input,
    /// What its trials say.
    pub analysis: &'a Analysis,
    /// What its trials were, each variant under each condition once; or why that is not known.
    pub cells: OrReason<Vec<ResolvedCell>>,
    /// The version of Plimsoll that wrote it.
    pub plimsoll: String,
}

/// What the trials of a variant under a condition were, with every placeholder filled in. Ports
/// that Plimsoll picks, and its own path, are stand-ins.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedCell {
    /// The variant.
    pub variant: Assignment,
    /// The condition.
    pub condition: Assignment,
    /// The systems.
    pub systems: Vec<SystemSpec>,
    /// The databases.
    pub databases: Vec<Database>,
    /// What a user does.
    pub workload: Workload,
    /// How load is offered.
    pub load: LoadProfile,
}

/// Why two bundles must not be compared.
#[derive(Clone, Debug, PartialEq)]
pub enum NotComparable {
    /// They are the same run.
    SameRun,
    /// What they measure is not the same: every difference that forbids it.
    DifferentStudy(Vec<Difference>),
}

/// The second bundle against the first.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossRunComparison {
    /// The title of the study; the first's, where they differ.
    pub title: String,
    /// Its question.
    pub question: String,
    /// Their names.
    pub names: [String; 2],
    /// When the first trial began and the last one ended, in milliseconds since 1970; none where no
    /// trial ran.
    pub ran: [Option<(i64, i64)>; 2],
    /// The two-sided level of every comparison.
    pub alpha: f64,
    /// What may be the reason of a difference: the comparison is about it, if it is one thing.
    pub causes: Vec<Difference>,
    /// What else differs: the comparison is never about it.
    pub minor: Vec<Difference>,
    /// What could not be held against each other: sentences.
    pub unknown: Vec<String>,
    /// Variants and conditions that only one of them has.
    pub left_out: Vec<String>,
    /// What is wrong with one of them, or not whole.
    pub problems: Vec<String>,
    /// What the verdicts are on.
    pub basis: Basis,
    /// The measures that decide: by measure, condition and variant.
    pub rows: Vec<Row>,
    /// All others, in the same order.
    pub rest: Vec<Row>,
    /// How the baseline itself moved, where that is drift or may be: sentences.
    pub drift: Vec<String>,
    /// What the verdicts come to: sentences, by measure and outcome.
    pub answer: Vec<String>,
    /// The noise floors of each bundle.
    pub floors: [Vec<Floor>; 2],
    /// What a reader should know beside the numbers, the gravest first.
    pub findings: Vec<Finding>,
}

/// What verdicts are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The values of both bundles.
    Values,
    /// The ratios (or differences) to the baseline inside each bundle, because nothing differs, or
    /// only other variants than it. The baseline's own change is the drift between the two.
    RatiosToBaseline,
}

/// A variant under a condition, in one measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The measure.
    pub measure: Measure,
    /// The condition.
    pub condition: Assignment,
    /// The variant.
    pub variant: Assignment,
    /// True if it is the baseline of both studies.
    pub is_baseline: bool,
    /// What the trials of each bundle gave.
    pub values: [Vec<f64>; 2],
    /// The second against the first, or why that cannot be said.
    pub change: OrReason<Change>,
    /// The same of what the variant differs by from the baseline. None for the baseline, and where
    /// the baseline is not the same in both.
    pub against_baseline: Option<OrReason<Change>>,
    /// What follows, for the measures that decide.
    pub verdict: Option<Verdict>,
    /// Whether it stands out, for the others.
    pub exploratory: Option<Exploratory>,
}

/// What the second bundle differs by: a ratio, or a difference in the measure's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The ratio of geometric means, or the difference of means.
    pub value: f64,
    /// How many values of each it comes from.
    pub n: [usize; 2],
    /// Where it lies, or why that cannot be said.
    pub interval: OrReason<Interval>,
    /// The p-value of no difference, by itself.
    pub p: Option<f64>,
}

/// How far the baseline differs from itself inside a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// The measure.
    pub measure: Measure,
    /// The condition.
    pub condition: Assignment,
    /// The duplicate against the baseline, where there is an interval.
    pub interval: Option<Interval>,
}

impl CrossRunComparison {
    /// What the comparison is about: the one thing that differs, or why that cannot be said; and
    /// how far the baseline itself moved, where that is drift.
    #[must_use]
    pub fn about(&self) -> String {
        let about = match self.causes.as_slice() {
            [] => {
                "Nothing differs that the bundles know of, but the time: whatever is seen is drift of the machine, or \
                 something that Plimsoll does not record."
                    .to_owned()
            }
            [one] => format!("One thing differs, and the comparison is about it: {one}."),
            several => {
                let names: Vec<&str> = several.iter().map(|cause| cause.what.as_str()).collect();
                format!(
                    "What made a difference cannot be told apart: {} things differ: {}.",
                    several.len(),
                    names.join("; ")
                )
            }
        };
        [vec![about], self.drift.clone()].concat().join(" ")
    }

    /// The verdicts, on each comparison that decides.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> + Clone {
        self.rows.iter().filter_map(|row| row.verdict.as_ref())
    }

    /// True if nothing differs that could be better or worse.
    #[must_use]
    pub fn nothing_differs(&self) -> bool {
        self.causes.is_empty()
    }

    /// True if both runs gave the same, whatever is judged.
    #[must_use]
    pub fn is_all_equivalent(&self) -> bool {
        let mut outcomes = self.verdicts().map(|verdict| verdict.outcome).peekable();
        outcomes.peek().is_some() && outcomes.all(|outcome| outcome == Outcome::Equivalent)
    }

    /// True if a verdict shows a difference that nothing known is the reason of: it is no variant
    /// that became better or worse.
    #[must_use]
    pub fn is_unexplained(&self, verdict: &Verdict) -> bool {
        self.nothing_differs() && is_shown(verdict)
    }
}

impl Change {
    /// As people read it: `+3.1 %`, `×6.2`, `+0.12 points`.
    #[must_use]
    pub fn shown(&self, measure: &Measure) -> String {
        shown_in(self.value, measure, self.notation())
    }

    /// The notation that suits value and interval.
    fn notation(&self) -> Notation {
        Notation::of(self.interval.iter().map(|interval| interval.high).chain([self.value]))
    }

    /// Both ends of its interval, in one unit, or why there is none.
    ///
    /// # Errors
    /// There are too few values.
    pub fn ends(&self, measure: &Measure) -> OrReason<[String; 2]> {
        self.interval.clone().map(|interval| ends_in(interval, measure, self.notation()))
    }
}

impl Row {
    /// What it is of: `mutex at 10 users`; the variant alone, where there is one condition.
    #[must_use]
    pub fn place(&self) -> String {
        let variant = self.variant.label();
        if self.condition.0.is_empty() {
            variant
        } else {
            format!("{variant} at {}", words::condition(&self.condition))
        }
    }

    /// What stands for the values of each bundle: the geometric mean, the arithmetic one where a
    /// value is zero. None without values.
    #[must_use]
    pub fn centres(&self) -> [Option<f64>; 2] {
        self.values.each_ref().map(|values| summarise(values).map(|summary| summary.centre))
    }

    /// What the verdict is on, or why there is nothing to judge.
    pub fn judged(&self, basis: Basis) -> &OrReason<Change> {
        match (basis, &self.against_baseline) {
            (Basis::RatiosToBaseline, Some(change)) => change,
            _ => &self.change,
        }
    }
}

/// Holds `second` against `first`.
///
/// # Errors
/// They are one run, or what they measure is not the same: all that differs, at once.
pub fn compare_runs(first: &ComparedRun<'_>, second: &ComparedRun<'_>) -> Result<CrossRunComparison, NotComparable> {
    if is_same_run(first.input, second.input) {
        return Err(NotComparable::SameRun);
    }
    let shared = shared(first, second);
    let Differences { forbidding, causes, minor, unknown } = differences(first, second, &shared);
    if !forbidding.is_empty() {
        return Err(NotComparable::DifferentStudy(forbidding));
    }
    let pinned = baseline_is_pinned(first, second, &causes);
    let basis = basis(&causes, pinned, &first.input.plan.variants[0], &shared);
    let alpha = level(&first.input.plan).min(level(&second.input.plan));
    let pair = RunPair { first, second, pinned, basis, nothing_differs: causes.is_empty(), alpha };
    let (rows, rest) = pair.rows(&shared);
    let facts = &first.input.facts;
    let plan = Plan { conditions: distinct(shared.iter().map(|(_, condition)| condition)), ..first.input.plan.clone() };
    let mut compared = CrossRunComparison {
        title: facts.title.clone(),
        question: facts.question.clone(),
        names: [first.name.clone(), second.name.clone()],
        ran: [ran(first.input), ran(second.input)],
        alpha: pair.alpha,
        causes,
        minor,
        unknown,
        left_out: left_out(first, second),
        problems: [problems(first), problems(second)].concat(),
        basis,
        drift: drift::drift(&rows, &pair),
        answer: answer::answer(&rows, &pair, &plan),
        rows,
        rest,
        floors: [pair.floors_of(first), pair.floors_of(second)],
        findings: Vec::new(),
    };
    compared.findings = findings::findings(&compared);
    Ok(compared)
}

fn is_shown(verdict: &Verdict) -> bool {
    matches!(verdict.outcome, Outcome::Better | Outcome::Worse)
}

/// A run is told by when its trials began, to the millisecond.
fn is_same_run(first: &Input, second: &Input) -> bool {
    let starts = |input: &Input| -> Vec<(u32, i64)> {
        let summaries = input.starts.iter().map(|start| &start.summary);
        summaries.map(|summary| (summary.start.number, summary.timing.started_unix_ms)).collect()
    };
    let (one, other) = (starts(first), starts(second));
    one.iter().any(|start| other.contains(start))
}

/// True if the baseline is the same program, started in the same way, in both bundles.
fn baseline_is_pinned(first: &ComparedRun<'_>, second: &ComparedRun<'_>, causes: &[Difference]) -> bool {
    let (one, other) = (&first.input.plan.variants[0], &second.input.plan.variants[0]);
    let touched = causes.iter().any(|cause| cause.kind == Kind::System && cause.touches(one));
    is_same(one, other) && !touched && programs_are_known(first, one) && programs_are_known(second, other)
}

/// True if the hash of each program that a variant starts is in the bundle.
fn programs_are_known(run: &ComparedRun<'_>, variant: &Assignment) -> bool {
    let cells = run.cells.as_deref().unwrap_or_default();
    let mut systems =
        cells.iter().filter(|cell| is_same(&cell.variant, variant)).flat_map(|cell| &cell.systems).peekable();
    let known = |system: &SystemSpec| {
        let versions = run.input.versions.iter().filter(|version| version.name == system.name);
        versions.filter(|version| version.sha256.is_some()).count() > 0
    };
    systems.peek().is_some() && systems.all(known)
}

fn basis(causes: &[Difference], pinned: bool, baseline: &Assignment, shared: &[(Assignment, Assignment)]) -> Basis {
    let others = shared.iter().any(|(variant, _)| !is_same(variant, baseline));
    let all_of_others = causes.iter().all(|cause| !cause.touches(baseline));
    if pinned && others && all_of_others { Basis::RatiosToBaseline } else { Basis::Values }
}

fn ran(input: &Input) -> Option<(i64, i64)> {
    let first = input.starts.iter().map(|start| start.summary.timing.started_unix_ms).min()?;
    let ended = |start: &StartResult| {
        let StartTiming { started_unix_ms, took } = start.summary.timing;
        started_unix_ms + i64::try_from(took.0 / 1_000_000).unwrap_or(0)
    };
    Some((first, input.starts.iter().map(ended).max()?))
}

fn left_out(first: &ComparedRun<'_>, second: &ComparedRun<'_>) -> Vec<String> {
    let only = |run: &ComparedRun<'_>, other: &ComparedRun<'_>| {
        let (plan, there) = (&run.input.plan, &other.input.plan);
        let conditions = plan.conditions.iter().filter(|one| place(&there.conditions, one).is_none());
        let variants = plan.variants.iter().filter(|one| place(&there.variants, one).is_none());
        let lines = variants
            .map(|variant| format!("the variant {}", variant.label()))
            .chain(conditions.map(|condition| format!("the condition {}", words::condition(condition))));
        lines.map(|what| format!("{what} is in {} only", run.name)).collect::<Vec<_>>()
    };
    [only(first, second), only(second, first)].concat()
}

fn problems(run: &ComparedRun<'_>) -> Vec<String> {
    run.input.problems.iter().map(|problem| format!("{}: {problem}", run.name)).collect()
}
