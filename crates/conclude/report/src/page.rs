//! The content of a report as texts: the one source of the Markdown and the HTML template.

pub(crate) mod agents;
pub(crate) mod capacity;
mod cells;
pub(crate) mod counts;
mod database;
pub(crate) mod facts;
pub(crate) mod feedback;
mod measured_time;
pub(crate) mod soak;
mod storage;
pub(crate) mod top;

use crate::chart::{Figure, Forest};
use crate::described::ValueRow;
use crate::method::{FloorRow, Gate};
use crate::{described, figures, method, text};
use agents::AgentRow;
use capacity::CapacityView;
use cells::ConditionView;
use counts::CountRow;
pub(crate) use database::Block;
use facts::Fact;
use feedback::FeedbackView;
use plimsoll_analysis::answer::Sentence;
use plimsoll_analysis::capacity::show_value;
use plimsoll_analysis::compare::{Comparison, notation};
use plimsoll_analysis::effect::shown_in;
use plimsoll_analysis::finding::{Finding, Severity};
use plimsoll_analysis::quantity::{Notation, confidence, margin, show};
use plimsoll_analysis::{Analysis, Input, headline, words};
use plimsoll_drawing::{Surface, svg};
use plimsoll_model::measure::{Direction, Measure, Unit};
use plimsoll_model::result::TrialResult;
use plimsoll_model::start::Start;
use soak::SoakView;
use storage::StorageView;
use top::{Brief, DecidingRow};

/// A report.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) question: String,
    pub(crate) answer: Vec<SentenceView>,
    pub(crate) further: Vec<SentenceView>,
    /// True if so many sentences make the answer that only the first has its evidence: the table below has the others'.
    pub(crate) many_sentences: bool,
    pub(crate) one_condition: bool,
    /// The measurement in a sentence: see `top::measured`.
    pub(crate) measured: String,
    /// What to do next; empty where all is decided.
    pub(crate) next: String,
    /// The findings that could overturn the answer, a line each.
    pub(crate) briefs: Vec<Brief>,
    /// The comparisons that decide.
    pub(crate) deciding: Vec<DecidingRow>,
    /// The deciding differences at their own scale.
    pub(crate) chart: Option<ChartView>,
    pub(crate) gate: Option<String>,
    pub(crate) findings: Vec<FindingView>,
    /// How many findings there are: `1 problem, 2 cautions`.
    pub(crate) findings_in_short: String,
    pub(crate) facts: Vec<Fact>,
    /// The confidence of the comparisons: `95 %`.
    pub(crate) confidence: String,
    pub(crate) how_sure: Vec<Fact>,
    pub(crate) capacity: Option<CapacityView>,
    pub(crate) soak: Option<SoakView>,
    pub(crate) feedback: Option<FeedbackView>,
    pub(crate) storage: Option<StorageView>,
    /// The blocks about databases, from top to bottom; empty where there are none.
    pub(crate) database: Vec<Block>,
    /// Where nothing is compared, the values of the one system; their intervals have this confidence.
    pub(crate) values: Vec<ValueRow>,
    pub(crate) confidence_of_values: String,
    pub(crate) comparisons: Vec<ComparisonView>,
    pub(crate) floors: Vec<FloorRow>,
    pub(crate) charts: Vec<ChartView>,
    pub(crate) over_time: Vec<ChartView>,
    /// What a comparison pairs: `pairs of trials`, `starts`.
    pub(crate) pairs: &'static str,
    /// `trial`, or where variants take turns `start`.
    pub(crate) unit: &'static str,
    /// `trial`, or where variants take turns `load`.
    pub(crate) load_unit: &'static str,
    pub(crate) variants: Vec<String>,
    pub(crate) conditions: Vec<ConditionView>,
    pub(crate) comments: Vec<String>,
    pub(crate) action_items: Vec<String>,
    pub(crate) headline: String,
    pub(crate) trials: Vec<TrialView>,
    /// True if the list of trials has a column with the time measured, because those times differ.
    pub(crate) tells_measured_time: bool,
    pub(crate) counts: Vec<CountRow>,
    pub(crate) agents: Vec<AgentRow>,
    pub(crate) notes: Vec<Fact>,
    pub(crate) host: Vec<Fact>,
    pub(crate) versions: Vec<Fact>,
    pub(crate) redo: Vec<String>,
}

/// A sentence of the answer.
pub(crate) struct SentenceView {
    /// The verdict in a word; empty where there is none.
    pub(crate) verdict: String,
    pub(crate) claim: String,
    pub(crate) evidence: String,
    /// The whole sentence.
    pub(crate) whole: String,
}

pub(crate) struct FindingView {
    pub(crate) severity: &'static str,
    pub(crate) topic: &'static str,
    pub(crate) sentence: String,
    pub(crate) evidence: Vec<String>,
}

/// The comparisons of one measure: each variant with the baseline under each condition.
pub(crate) struct ComparisonView {
    pub(crate) title: String,
    /// Name of its chart's files.
    pub(crate) name: String,
    pub(crate) note: String,
    pub(crate) rows: Vec<ComparisonRow>,
    /// Labels above the strips: the distance from their left end, in percent of their width, and
    /// the text.
    pub(crate) ticks: Vec<(f64, String)>,
    /// The distances of the margin from the left and the right end of the strips, in percent of
    /// their width; for measures that decide.
    pub(crate) margin: Option<(f64, f64)>,
}

pub(crate) struct ComparisonRow {
    pub(crate) condition: String,
    pub(crate) baseline: String,
    pub(crate) variant: String,
    pub(crate) value: String,
    pub(crate) change: String,
    pub(crate) interval: String,
    /// The reason why there is no interval, unless a verdict gives it; or a note that the change
    /// stands out.
    pub(crate) missing: String,
    pub(crate) n: usize,
    pub(crate) verdict: String,
    /// True if a difference may be smaller than the margin.
    pub(crate) uncertain: bool,
    pub(crate) reason: String,
    /// Interval and pairs, without text.
    pub(crate) strip: String,
}

pub(crate) struct ChartView {
    pub(crate) title: String,
    pub(crate) name: String,
    pub(crate) caption: String,
    /// The names of its lines.
    pub(crate) variants: Vec<String>,
    /// One SVG for each panel.
    pub(crate) panels: Vec<String>,
}

pub(crate) struct TrialView {
    pub(crate) number: u32,
    pub(crate) block: u32,
    pub(crate) repeat: u32,
    pub(crate) variant: String,
    pub(crate) condition: String,
    pub(crate) started: String,
    /// The time measured.
    pub(crate) measured: String,
    pub(crate) validity: &'static str,
    pub(crate) remarks: String,
    pub(crate) value: String,
}

impl Page {
    pub(crate) fn new(input: &Input, analysis: &Analysis, gate: Gate) -> Page {
        let compares = input.plan.variants.len() > 1;
        let paragraphs = |text: &str| text.split("\n\n").map(str::trim).map(str::to_owned).collect::<Vec<_>>();
        Page {
            title: input.facts.title.clone(),
            question: input.facts.question.clone(),
            answer: analysis.answer.headline.iter().map(sentence_view).collect(),
            further: analysis.answer.further.iter().map(sentence_view).collect(),
            many_sentences: analysis.answer.headline.len() + analysis.answer.further.len() > MANY_SENTENCES,
            one_condition: input.plan.conditions.len() == 1,
            measured: top::measured(input),
            next: top::next(analysis).unwrap_or_default(),
            briefs: top::briefs(analysis),
            deciding: if compares { top::deciding(input, analysis) } else { Vec::new() },
            chart: deciding_chart(input, analysis),
            gate: (gate == Gate::Asked && compares).then(|| text::unbroken(&method::gate(input, analysis))),
            findings: analysis.findings.iter().map(finding_view).collect(),
            findings_in_short: findings_in_short(&analysis.findings),
            facts: facts::facts(input, analysis),
            confidence: confidence(analysis.alpha),
            how_sure: method::how_sure(input, analysis, gate),
            floors: method::floors(input, analysis),
            capacity: analysis.capacity.as_ref().map(|report| capacity::capacity(input, report)),
            soak: analysis.soak.as_ref().map(|report| soak::soak(input, report)),
            feedback: analysis.feedback.as_ref().map(|report| feedback::feedback(input, report)),
            storage: analysis.storage.as_ref().map(|report| storage::storage(input, report)),
            database: database::blocks(input, analysis),
            values: described::rows(input, analysis),
            confidence_of_values: described::confidence_of_values(),
            comparisons: comparisons(input, analysis),
            charts: figures::over_conditions(input, analysis).iter().map(chart_view).collect(),
            over_time: figures::over_time(input, analysis.feedback.is_some()).iter().map(chart_view).collect(),
            pairs: if input.plan.design.is_trials() { "pairs of trials" } else { "starts" },
            unit: words::unit(&input.plan),
            load_unit: words::load_unit(&input.plan),
            variants: input.plan.variants.iter().map(plimsoll_model::factor::Assignment::label).collect(),
            conditions: cells::conditions(input, analysis),
            comments: input.facts.report.comments.as_deref().map(paragraphs).unwrap_or_default(),
            action_items: input.facts.report.action_items.clone(),
            headline: words::measure(&headline(&input.facts).measure),
            trials: trials(input),
            tells_measured_time: measured_time::range(input).is_some(),
            counts: counts::counts(input),
            agents: agents::agents(input),
            notes: facts::notes(input, analysis),
            host: facts::host(&input.host),
            versions: [facts::versions(&input.versions), facts::commands(input)].concat(),
            redo: facts::redo(input),
        }
    }
}

fn deciding_chart(input: &Input, analysis: &Analysis) -> Option<ChartView> {
    let chart = top::chart(input, analysis)?;
    let title = format!("Change: {}", chart.title);
    Some(ChartView {
        name: "answer".to_owned(),
        caption: top::caption(input, &chart, &confidence(analysis.alpha)),
        variants: Vec::new(),
        panels: vec![svg(&chart.draw(), &title, Surface::Page)],
        title,
    })
}

/// `1 problem, 2 cautions, 3 notes`.
fn findings_in_short(findings: &[Finding]) -> String {
    let count = |severity: Severity| {
        let count = findings.iter().filter(|finding| finding.severity == severity).count();
        (count > 0).then(|| words::counted(count, severity.name()))
    };
    let counts = [Severity::Problem, Severity::Caution, Severity::Note].map(count);
    counts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

fn sentence_view(sentence: &Sentence) -> SentenceView {
    SentenceView {
        verdict: sentence.outcome.map(|outcome| outcome.to_string()).unwrap_or_default(),
        claim: text::unbroken(&sentence.claim),
        evidence: text::unbroken(&without_brackets(sentence.evidence.trim_start_matches(": "))),
        whole: text::unbroken(&sentence.to_string()),
    }
}

/// Evidence without the brackets that it begins with, for a line of its own.
fn without_brackets(evidence: &str) -> String {
    let Some(rest) = evidence.strip_prefix('(') else { return evidence.to_owned() };
    let mut open = 1;
    for (place, letter) in rest.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return rest[..place].to_owned() + &rest[place + 1..];
        }
    }
    evidence.to_owned()
}

/// The most lines of evidence per finding; the JSON has all.
const SHOWN: usize = 8;

fn finding_view(finding: &Finding) -> FindingView {
    let mut evidence: Vec<String> = finding.evidence.iter().take(SHOWN).map(|line| text::unbroken(line)).collect();
    if finding.evidence.len() > SHOWN {
        evidence.push(format!("and {} more, in report.json", finding.evidence.len() - SHOWN));
    }
    FindingView {
        severity: finding.severity.name(),
        topic: finding.topic,
        sentence: text::unbroken(&finding.sentence),
        evidence,
    }
}

pub(crate) fn chart_view(figure: &Figure) -> ChartView {
    let panel =
        |panel: &crate::chart::Panel| svg(&panel.draw(), &format!("{}: {}", figure.title, panel.title), Surface::Page);
    ChartView {
        title: figure.title.clone(),
        name: figure.name.clone(),
        caption: figure.caption.clone(),
        variants: figure.variants.clone(),
        panels: figure.panels.iter().map(panel).collect(),
    }
}

/// Up to so many sentences of the answer each have their evidence.
const MANY_SENTENCES: usize = 5;

/// Width of the strips in tables, as in the style sheet.
const STRIP_WIDTH: f64 = 220.0;

fn comparisons(input: &Input, analysis: &Analysis) -> Vec<ComparisonView> {
    let forests = figures::forests(input, analysis);
    forests
        .into_iter()
        .map(|(name, measure, forest)| comparison_view(input, analysis, (name, &measure, &forest)))
        .collect()
}

fn comparison_view(
    input: &Input,
    analysis: &Analysis,
    (name, measure, forest): (String, &Measure, &Forest),
) -> ComparisonView {
    let reach = forest.reach();
    let of_measure: Vec<&Comparison> = analysis.comparisons.iter().filter(|one| &one.measure == measure).collect();
    let notation = notation(of_measure.iter().copied());
    let verdict = of_measure.iter().find_map(|one| one.verdict.as_ref());
    let better = match measure.direction() {
        Direction::Lower => "Less is better",
        Direction::Higher => "More is better",
    };
    let note = match verdict {
        Some(verdict) => {
            format!("{better}; differences below {} do not matter (the margin).", margin(verdict.margin, measure))
        }
        None => format!("{better}; exploratory: shown beside what decides, so without a verdict."),
    };
    let share = |value: f64| reach.share(value) * 100.0;
    ComparisonView {
        name,
        title: forest.title.clone(),
        note,
        rows: of_measure.iter().map(|one| comparison_row(input, analysis, one, (forest, notation))).collect(),
        ticks: reach.ticks(STRIP_WIDTH).into_iter().map(|(value, label)| (share(value), label)).collect(),
        margin: forest.within_margin().map(|(low, high)| (share(low), 100.0 - share(high))),
    }
}

fn comparison_row(
    input: &Input,
    analysis: &Analysis,
    one: &Comparison,
    (forest, notation): (&Forest, Notation),
) -> ComparisonRow {
    let place = analysis
        .comparisons
        .iter()
        .filter(|other| other.measure == one.measure)
        .position(|other| other == one)
        .expect("a comparison is one of its measure's");
    let title = format!("{}: {}", forest.rows[place].label, forest.rows[place].text);
    let strip = forest.rows[place].strip(forest.reach(), STRIP_WIDTH, 26.0);
    let [baseline, value] = top::values(one);
    let dash = || "–".to_owned();
    let contrast = one.contrast.as_ref();
    let missing = contrast.err().or_else(|| contrast.ok()?.interval.as_ref().err());
    let stands_out = one.exploratory.filter(|one| one.stands_out).map(|_| "stands out".to_owned());
    let reason = one.verdict.as_ref().map(|verdict| &verdict.reason).or(missing).cloned().or(stands_out.clone());
    let ranked =
        contrast.ok().and_then(|contrast| contrast.ranked).and_then(|ranked| Some((ranked.value, ranked.interval?)));
    let ranked = ranked.map(|(value, interval)| {
        format!("by ranks {} ({})", shown_in(value, &one.measure, notation), one.ends(interval, notation).join(" … "))
    });
    ComparisonRow {
        condition: words::condition_in(&input.plan, one.condition),
        baseline,
        variant: input.plan.label(one.variant),
        value,
        change: one.change(notation).unwrap_or_else(|_| dash()),
        interval: text::interval(one, notation),
        missing: missing.filter(|_| one.verdict.is_none()).cloned().or(stands_out).unwrap_or_default(),
        n: one.pairs.len(),
        verdict: one.verdict.as_ref().map(|verdict| verdict.outcome.to_string()).unwrap_or_default(),
        uncertain: one.verdict.as_ref().is_some_and(|verdict| verdict.material == Some(false)),
        reason: [reason, ranked].into_iter().flatten().collect::<Vec<String>>().join("; "),
        strip: svg(&strip, &title, Surface::Page),
    }
}

fn trials(input: &Input) -> Vec<TrialView> {
    let measure = headline(&input.facts).measure;
    let view = |trial: TrialResult<'_>| {
        let Start { number, block, repeat, .. } = *trial.identity();
        let value = plimsoll_analysis::measure::TrialReader::new(trial).value(&measure);
        TrialView {
            number,
            block,
            repeat,
            variant: input.plan.label(trial.variant()),
            condition: words::condition_in(&input.plan, trial.condition()),
            started: text::utc(trial.start.summary.timing.started_unix_ms),
            measured: show(measured_time::of(trial).as_secs_f64(), Unit::Seconds),
            validity: text::validity(input, trial),
            remarks: remarks(trial, value.as_ref().err()),
            value: match value {
                Ok(value) if input.counts(trial) => show_value(input, value, &measure),
                _ => "–".to_owned(),
            },
        }
    };
    input.trials().map(view).collect()
}

/// The reasons why a trial does not count, in short, and its warnings; for one that counts, the reason for a missing value
/// too. Each once.
fn remarks(trial: TrialResult<'_>, missing: Option<&String>) -> String {
    let validity = trial.validity();
    let missing = missing.filter(|_| validity.counts());
    let reasons = validity.reasons().iter().map(|reason| in_short(reason));
    let mut remarks: Vec<&str> = Vec::new();
    for remark in reasons.chain(trial.warnings().chain(missing).map(String::as_str)) {
        if !remarks.iter().any(|known| known.contains(remark)) {
            remarks.push(remark);
        }
    }
    remarks.join("; ")
}

/// A reason for which a trial does not count, without what follows its first semicolon: what helps, or the last output of a
/// system. The findings have it as a whole.
fn in_short(reason: &str) -> &str {
    reason.split_once("; ").map_or(reason, |(fact, _)| fact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_loses_the_brackets_around_it_and_no_others() {
        for (evidence, expected) in [
            ("(+3.1 %, interval +1.2 % to +5.0 %, n = 5)", "+3.1 %, interval +1.2 % to +5.0 %, n = 5"),
            (
                "(the least certain, at 10 users (connect = kept), is +5.7 % to +9.9 %; n = 5); worse by 5 %",
                "the least certain, at 10 users (connect = kept), is +5.7 % to +9.9 %; n = 5; worse by 5 %",
            ),
            ("+3.1 % (n = 5)", "+3.1 % (n = 5)"),
            ("", ""),
        ] {
            assert_eq!(without_brackets(evidence), expected);
        }
    }
}
