//! Compares two bundles of the same study: the differences between their systems and machines, and
//! the change of their numbers.
//!
//! Trials of two bundles are not paired: they ran at different times, so drift between the two runs
//! is part of the difference and not of its interval. Welch's t test, on logarithms where measures
//! are compared by their ratio, gives the size of the difference. Where the baseline is the same
//! program with the same settings in both bundles, the other variants' ratios to it are compared as
//! well: drift cancels out of those. Those ratios even decide, where nothing but those variants
//! differs. Where nothing differs at all, nothing is better or worse: a change is drift, or comes
//! from something that no bundle records.

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
use crate::distinct::distinct;
use crate::effect::{ends_in, shown_in};
use crate::estimate::{Interval, centre};
use crate::finding::Finding;
use crate::input::Input;
use crate::quantity::Notation;
use crate::reason::OrReason;
use crate::verdict::{Outcome, Verdict};
use crate::words;
use differences::{Differences, differences, is_same, place, shared};
use plimsoll_model::database::Database;
use plimsoll_model::factor::Assignment;
use plimsoll_model::load::LoadProfile;
use plimsoll_model::measure::Measure;
use plimsoll_model::plan::Plan;
use plimsoll_model::result::{StartResult, StartTiming};
use plimsoll_model::system::SystemSpec;
use plimsoll_model::workload::Workload;
use rows::RunPair;

/// The placeholder for Plimsoll's own path in a [`ResolvedCell`]: the path differs between machines
/// although the study is the same.
pub const THIS_PROGRAM: &str = "{plimsoll}";

/// One of the two bundles.
#[derive(Debug)]
pub struct ComparedRun<'a> {
    /// Its name in messages.
    pub name: String,
    /// Its contents.
    pub input: &'a Input,
    /// The analysis of its trials.
    pub analysis: &'a Analysis,
    /// Its cells, each variant under each condition once; or the reason why they are unknown.
    pub cells: OrReason<Vec<ResolvedCell>>,
    /// The version of Plimsoll that wrote it.
    pub plimsoll: String,
}

/// The specification of the trials of a variant under a condition, with every placeholder filled
/// in. Ports that Plimsoll picks, and its own path, are replaced by stand-ins.
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
    /// The work of a user.
    pub workload: Workload,
    /// The load profile.
    pub load: LoadProfile,
}

/// The reason why two bundles must not be compared.
#[derive(Clone, Debug, PartialEq)]
pub enum NotComparable {
    /// Both are copies of the same run.
    SameRun,
    /// They measure different things: every difference that forbids the comparison.
    DifferentStudy(Vec<Difference>),
}

/// The second bundle compared with the first.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossRunComparison {
    /// The title of the study; the first's, where they differ.
    pub title: String,
    /// Its question.
    pub question: String,
    /// The names of the bundles.
    pub names: [String; 2],
    /// When the first trial began and the last one ended, in milliseconds since 1970; none where no
    /// trial ran.
    pub ran: [Option<(i64, i64)>; 2],
    /// The two-sided level of every comparison.
    pub alpha: f64,
    /// Differences that may cause a change in the numbers: the comparison is about it, if there is
    /// only one.
    pub causes: Vec<Difference>,
    /// Other differences, which the comparison is never about.
    pub minor: Vec<Difference>,
    /// Facts that could not be compared: sentences.
    pub unknown: Vec<String>,
    /// Variants and conditions that only one bundle has.
    pub left_out: Vec<String>,
    /// Damage and gaps in one of the bundles.
    pub problems: Vec<String>,
    /// The quantity that the verdicts judge.
    pub basis: Basis,
    /// The measures that decide: by measure, condition and variant.
    pub rows: Vec<Row>,
    /// All other measures, in the same order.
    pub rest: Vec<Row>,
    /// The change of the baseline itself, where that is or may be drift: sentences.
    pub drift: Vec<String>,
    /// The answer: sentences, by measure and outcome.
    pub answer: Vec<String>,
    /// The noise floors of each bundle.
    pub floors: [Vec<Floor>; 2],
    /// Findings that a reader should know beside the numbers, the most severe first.
    pub findings: Vec<Finding>,
}

/// The quantity that verdicts judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The values of both bundles.
    Values,
    /// The ratios (or differences) to the baseline inside each bundle, because nothing differs, or
    /// only variants other than the baseline. The baseline's own change is the drift between the
    /// two.
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
    /// The values of the trials of each bundle.
    pub values: [Vec<f64>; 2],
    /// The second bundle compared with the first, or the reason why the change is unknown.
    pub change: OrReason<Change>,
    /// The change of the variant's difference from the baseline. None for the baseline, and where
    /// the baseline is not the same in both.
    pub against_baseline: Option<OrReason<Change>>,
    /// The verdict, for the measures that decide.
    pub verdict: Option<Verdict>,
    /// The exploratory result, for the other measures.
    pub exploratory: Option<Exploratory>,
}

/// The change from the first bundle to the second: a ratio, or a difference in the measure's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The ratio of geometric means, or the difference of means.
    pub value: f64,
    /// The number of values from each bundle.
    pub n: [usize; 2],
    /// Its confidence interval, or the reason why there is none.
    pub interval: OrReason<Interval>,
    /// The unadjusted p-value of the null hypothesis of no difference.
    pub p: Option<f64>,
}

/// The difference of the baseline from itself inside a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// The measure.
    pub measure: Measure,
    /// The condition.
    pub condition: Assignment,
    /// The interval of the duplicate compared with the baseline, where there is one.
    pub interval: Option<Interval>,
}

impl CrossRunComparison {
    /// The subject of the comparison: the one thing that differs, or why there is none; and the
    /// baseline's own change, where that is drift.
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

    /// True if there is no difference that could make a variant better or worse.
    #[must_use]
    pub fn nothing_differs(&self) -> bool {
        self.causes.is_empty()
    }

    /// True if both runs are equivalent in every comparison.
    #[must_use]
    pub fn is_all_equivalent(&self) -> bool {
        let mut outcomes = self.verdicts().map(|verdict| verdict.outcome).peekable();
        outcomes.peek().is_some() && outcomes.all(|outcome| outcome == Outcome::Equivalent)
    }

    /// True if the runs describe one system, so that only they are held against each other.
    #[must_use]
    pub fn is_of_one_system(&self) -> bool {
        self.rows.iter().all(|row| !row.is_baseline && row.variant.0.is_empty())
    }

    /// True if a verdict shows a difference without a known cause: no variant became better or
    /// worse then.
    #[must_use]
    pub fn is_unexplained(&self, verdict: &Verdict) -> bool {
        self.nothing_differs() && is_shown(verdict)
    }
}

impl Change {
    /// Formats the change: `+3.1 %`, `×6.2`, `+0.12 points`.
    #[must_use]
    pub fn shown(&self, measure: &Measure) -> String {
        shown_in(self.value, measure, self.notation())
    }

    /// The notation that suits value and interval.
    fn notation(&self) -> Notation {
        Notation::of(self.interval.iter().map(|interval| interval.high).chain([self.value]))
    }

    /// Formats both ends of its interval in one unit.
    ///
    /// # Errors
    /// There are too few values.
    pub fn ends(&self, measure: &Measure) -> OrReason<[String; 2]> {
        self.interval.clone().map(|interval| ends_in(interval, measure, self.notation()))
    }
}

impl Row {
    /// Its variant and condition: `mutex at 10 users`; the variant alone, where there is one
    /// condition.
    #[must_use]
    pub fn place(&self) -> String {
        let variant = self.variant.label();
        if self.condition.0.is_empty() {
            variant
        } else {
            format!("{variant} at {}", words::condition(&self.condition))
        }
    }

    /// The centre of the values of each bundle, of which the change is made: the geometric means, whose ratio it is;
    /// the arithmetic ones where it is a difference. None without values.
    #[must_use]
    pub fn centres(&self) -> [Option<f64>; 2] {
        self.values.each_ref().map(|values| centre(values, self.measure.effect()))
    }

    /// The change that the verdict judges, or the reason why there is none.
    pub fn judged(&self, basis: Basis) -> &OrReason<Change> {
        match (basis, &self.against_baseline) {
            (Basis::RatiosToBaseline, Some(change)) => change,
            _ => &self.change,
        }
    }
}

/// Compares `second` with `first`.
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
    let pinned = !describe_one_system(first, second) && baseline_is_pinned(first, second, &causes);
    let basis = basis(&causes, pinned, &first.input.plan.variants[0], &shared);
    let alpha = level(&first.input.plan).min(level(&second.input.plan));
    let pair = RunPair { first, second, pinned, basis, nothing_differs: causes.is_empty(), alpha };
    let (rows, rest) = pair.rows(&shared);
    let facts = &first.input.facts;
    let plan = Plan {
        conditions: distinct(shared.iter().map(|(_, condition)| condition.clone())),
        ..first.input.plan.clone()
    };
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

/// True if both studies compare nothing: then there is no baseline whose change could be told from a variant's.
fn describe_one_system(first: &ComparedRun<'_>, second: &ComparedRun<'_>) -> bool {
    first.input.plan.describes() && second.input.plan.describes()
}

fn is_shown(verdict: &Verdict) -> bool {
    matches!(verdict.outcome, Outcome::Better | Outcome::Worse)
}

/// True if both have the same trials: a run is identified by the begin of its trials, to the
/// millisecond.
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
