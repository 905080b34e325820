//! A soak test: what changes over the time of a load that stays the same for hours.
//!
//! The measure phase is cut into windows of equal length, and their first half is compared with their second, with the
//! autocorrelation of the windows in the error ([`plimsoll_statistics::halves`]).

use crate::answer::Sentence;
use crate::estimate::{CONFIDENCE, MIN_REPEATS};
use crate::input::Input;
use crate::measure::TrialReader;
use crate::quantity::{change, confidence, percent, show};
use crate::samples;
use crate::words;
use plimsoll_model::measure::{Direction, Measure, Series, Statistic, Unit};
use plimsoll_model::record::Subject;
use plimsoll_model::result::LoadSecond;
use plimsoll_model::sample::ProcessSample;
use plimsoll_model::workload::Protocol;
use plimsoll_statistics::{Halves, TTest, halves, later_halves, mean, one_sample};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most windows: with more, what swings slowly would pass for many independent values.
const WINDOWS: usize = 60;

/// A change below this is not told, and one whose interval lies below it on both sides is none.
const MATERIAL: f64 = 0.05;

/// The share of the change between the halves that must come within the second half for it to go on, and must not for it to have
/// ended. It is 1/2 for what changes at the same pace all the time.
const GOES_ON: f64 = 0.25;

/// What changes over the time of the loads.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakReport {
    /// The length of the longest measure phase.
    pub length: Duration,
    /// By condition, then by variant, then by measure.
    pub rows: Vec<SoakRow>,
}

/// A measure over the time of the loads of a variant under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakRow {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants.
    pub variant: usize,
    /// The measure.
    pub measure: Measure,
    /// Its mean in the first half of the time, in its unit: the geometric mean over the loads.
    pub first: f64,
    /// The same in the second half.
    pub second: f64,
    /// The number of loads.
    pub loads: usize,
    /// The ratio of the second half to the first.
    pub change: Change,
    /// The same within the second half, of its own two halves; none where it is too short.
    pub within_second: Option<Change>,
    /// The judgement of it.
    pub trend: Trend,
}

/// The ratio of a later time to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The ratio.
    pub ratio: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Change {
    fn of(logarithm: &TTest) -> Change {
        let interval = logarithm.interval(CONFIDENCE);
        Change { ratio: logarithm.estimate.exp(), low: interval.low.exp(), high: interval.high.exp() }
    }

    /// The change with its interval: `+39 % (95 % interval +31 % to +45 %)`.
    fn in_words(&self) -> String {
        let [ratio, low, high] = [self.ratio, self.low, self.high].map(change);
        format!("{ratio} ({} interval {low} to {high})", confidence(1.0 - CONFIDENCE))
    }

    /// True if the interval leaves out that nothing changed.
    fn is_clear(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// The judgement of a change over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// It changes by 5 % or more, and still did in the second half.
    GoesOn,
    /// It changed by 5 % or more, and within the second half by less than a quarter of that.
    Settled,
    /// It changed by 5 % or more; whether it still did in the second half cannot be told.
    Changed,
    /// It changes by less than 5 %, by the whole interval.
    Stays,
    /// The interval is too wide to tell.
    Unclear,
}

impl SoakRow {
    /// True if the change is for the worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        match self.measure.direction() {
            Direction::Lower => self.change.ratio > 1.0,
            Direction::Higher => self.change.ratio < 1.0,
        }
    }

    /// True if it changes by 5 % or more.
    #[must_use]
    pub fn changes(&self) -> bool {
        matches!(self.trend, Trend::GoesOn | Trend::Changed | Trend::Settled)
    }

    /// A rank by which what a reader must know comes first: what becomes worse, and of that what goes on.
    pub(crate) fn urgency(&self) -> (bool, u8) {
        let by_trend = match self.trend {
            Trend::GoesOn => 0,
            Trend::Changed => 1,
            Trend::Settled => 2,
            Trend::Stays | Trend::Unclear => 3,
        };
        (!self.is_worse(), by_trend)
    }
}

/// The results of a soak test; none for another study.
pub(crate) fn report(input: &Input, readers: &[TrialReader<'_>]) -> Option<SoakReport> {
    let counted: Vec<&TrialReader<'_>> = readers.iter().filter(|reader| input.facts.soak && reader.counts()).collect();
    let length = counted.iter().map(|reader| reader.load().summary.timing.window).max()?;
    let mut cells: BTreeMap<(usize, usize), Vec<&TrialReader<'_>>> = BTreeMap::new();
    for reader in counted {
        cells.entry((reader.trial().condition(), reader.trial().variant())).or_default().push(reader);
    }
    let rows = cells.into_iter().flat_map(|((condition, variant), readers)| {
        let of = |measure: Measure| row(condition, variant, &readers, measure);
        measures(input, &readers).into_iter().filter_map(of).collect::<Vec<SoakRow>>()
    });
    Some(SoakReport { length: length.into(), rows: rows.collect() })
}

/// What is looked at over time: a duration, throughput, and the memory and CPU of each system.
fn measures(input: &Input, readers: &[&TrialReader<'_>]) -> Vec<Measure> {
    // The iterations of scripts may sleep.
    let durations = match input.facts.protocol {
        Protocol::Script => vec![Measure::new(Series::RequestDuration(None), Statistic::Avg)],
        _ => [Statistic::Avg, Statistic::Percentile(95.0)]
            .map(|statistic| Measure::new(Series::IterationDuration, statistic))
            .into(),
    };
    let all = readers.iter().flat_map(|reader| samples::processes(reader.trial()));
    let systems: BTreeSet<&str> = all.map(|(_, sample)| sample.system.as_str()).collect();
    let of_system = |system: &str| {
        let name = || Some(system.to_owned());
        [Series::Memory(name()), Series::Cpu(name())].map(|series| Measure::new(series, Statistic::Avg))
    };
    let throughput = Measure::new(Series::Requests, Statistic::Rate);
    durations.into_iter().chain([throughput]).chain(systems.into_iter().flat_map(of_system)).collect()
}

fn row(condition: usize, variant: usize, readers: &[&TrialReader<'_>], measure: Measure) -> Option<SoakRow> {
    let all: Vec<Vec<f64>> = readers.iter().map(|reader| windows(&by_second(reader, &measure))).collect();
    let found: Vec<(Halves, TTest)> = all
        .iter()
        .filter_map(|windows| halves(windows).and_then(|halves| Some((halves, halves.log_ratio()?))))
        .collect();
    let later = all.iter().filter_map(|windows| later_halves(windows)?.log_ratio());
    let logarithm = combined(&found.iter().map(|(_, ratio)| *ratio).collect::<Vec<TTest>>())?;
    let (overall, within_second) = (Change::of(&logarithm), combined(&later.collect::<Vec<TTest>>()));
    let within_second = within_second.as_ref().map(Change::of);
    let middle = |of: fn(&Halves) -> f64| {
        mean(&found.iter().map(|(halves, _)| of(halves).ln()).collect::<Vec<f64>>()).map(f64::exp)
    };
    Some(SoakRow {
        condition,
        variant,
        first: middle(|halves| halves.first)?,
        second: middle(|halves| halves.second)?,
        loads: found.len(),
        trend: trend(&overall, within_second.as_ref()),
        change: overall,
        within_second,
        measure,
    })
}

fn trend(overall: &Change, within_second: Option<&Change>) -> Trend {
    let is_material = !(1.0 - MATERIAL..1.0 + MATERIAL).contains(&overall.ratio);
    // Of the change between the halves, in its direction.
    let share = |later: f64| later.ln() / overall.ratio.ln();
    let goes_on = |later: &Change| later.is_clear() && share(later.ratio) >= GOES_ON;
    let has_ended = |later: &Change| share(later.low).max(share(later.high)) < GOES_ON;
    if overall.is_clear() && is_material {
        match within_second {
            Some(later) if goes_on(later) => Trend::GoesOn,
            Some(later) if has_ended(later) => Trend::Settled,
            _ => Trend::Changed,
        }
    } else if overall.low > 1.0 - MATERIAL && overall.high < 1.0 + MATERIAL {
        Trend::Stays
    } else {
        Trend::Unclear
    }
}

/// One estimate from those of several loads: by their spread, or by their own errors where they are too few for that.
fn combined(of_loads: &[TTest]) -> Option<TTest> {
    let estimates: Vec<f64> = of_loads.iter().map(|one| one.estimate).collect();
    if estimates.len() >= MIN_REPEATS {
        return one_sample(&estimates);
    }
    let squares: f64 = of_loads.iter().map(|one| one.standard_error * one.standard_error).sum();
    Some(TTest {
        estimate: mean(&estimates)?,
        standard_error: squares.sqrt() / estimates.len() as f64,
        df: of_loads.iter().map(|one| one.df).sum(),
    })
}

/// The means of consecutive windows; what does not fill the last one is left out.
fn windows(values: &[f64]) -> Vec<f64> {
    values.chunks_exact(values.len().div_ceil(WINDOWS).max(1)).filter_map(mean).collect()
}

/// The values of a measure in the whole seconds of the measure phase.
fn by_second(reader: &TrialReader<'_>, measure: &Measure) -> Vec<f64> {
    let of_system = |system: &Option<String>, of: fn(&ProcessSample) -> f64| {
        samples::by_second(reader.trial(), system.as_deref(), of).into_values().collect()
    };
    match (&measure.series, measure.statistic) {
        (Series::Memory(system), _) => of_system(system, |sample| sample.resident as f64),
        (Series::Cpu(system), _) => of_system(system, |sample| sample.cpu_cores),
        (Series::Requests, _) => {
            of_load(reader, Subject::is_request, |rows| Some(rows.iter().map(|row| row.count as f64).sum()))
        }
        (Series::RequestDuration(_), _) => of_load(reader, Subject::is_request, mean_duration),
        (_, Statistic::Avg) => of_load(reader, |subject| *subject == Subject::Iteration, mean_duration),
        _ => of_load(
            reader,
            |subject| *subject == Subject::Iteration,
            |rows| rows.iter().find(|row| row.count > 0).map(|row| row.p95 as f64 / 1e9),
        ),
    }
}

/// A value for each whole second of the measure phase, from its rows of some subjects; seconds without a value are left out.
fn of_load(
    reader: &TrialReader<'_>,
    is_about: fn(&Subject) -> bool,
    value: fn(&[&LoadSecond]) -> Option<f64>,
) -> Vec<f64> {
    let load = reader.load();
    let end = load.summary.timing.window.seconds().floor() as i64;
    let mut seconds: BTreeMap<i64, Vec<&LoadSecond>> = (load.cut..end).map(|second| (second, Vec::new())).collect();
    for row in load.seconds.iter().filter(|row| is_about(&row.subject)) {
        if let Some(rows) = seconds.get_mut(&row.second) {
            rows.push(row);
        }
    }
    seconds.values().filter_map(|rows| value(rows)).collect()
}

fn mean_duration(rows: &[&LoadSecond]) -> Option<f64> {
    let count: u64 = rows.iter().map(|row| row.count).sum();
    let total: f64 = rows.iter().map(|row| row.mean * row.count as f64).sum();
    (count > 0).then(|| total / count as f64 / 1e9)
}

/// Sentences for each variant under each condition: what changes over the time of a load, and what does not.
pub(crate) fn sentences(input: &Input, report: &SoakReport) -> Vec<Sentence> {
    let mut cells: BTreeMap<(usize, usize), Vec<&SoakRow>> = BTreeMap::new();
    for row in &report.rows {
        cells.entry((row.condition, row.variant)).or_default().push(row);
    }
    let of_cell = |rows: &Vec<&SoakRow>| {
        let mut changing: Vec<&&SoakRow> = rows.iter().filter(|row| row.changes()).collect();
        changing.sort_by_key(|row| row.urgency());
        let changes = changing.into_iter().map(|row| sentence_of_change(input, report, row));
        changes.chain([sentence_of_the_others(input, report, rows)]).collect::<Vec<Sentence>>()
    };
    cells.values().flat_map(of_cell).collect()
}

fn sentence_of_change(input: &Input, report: &SoakReport, row: &SoakRow) -> Sentence {
    let who = if input.plan.describes() { "the system".to_owned() } else { input.plan.label(row.variant) };
    let unit = row.measure.unit();
    Sentence {
        outcome: None,
        claim: format!(
            "{}: over {} of load {who} changes by {}{}, from the first half to the second{}",
            words::measure_at_start(&row.measure),
            words::span(report.length),
            change(row.change.ratio),
            words::conditions(&input.plan, &[row.condition]),
            match row.trend {
                Trend::GoesOn => ", and goes on",
                Trend::Changed => "; whether it goes on cannot be told",
                _ => "",
            }
        ),
        evidence: format!(
            "({} interval {} to {}; {}, then {})",
            confidence(1.0 - CONFIDENCE),
            change(row.change.low),
            change(row.change.high),
            show(row.first, unit),
            show(row.second, unit)
        ),
    }
}

fn sentence_of_the_others(input: &Input, report: &SoakReport, rows: &[&SoakRow]) -> Sentence {
    let (condition, variant) = rows.first().map_or((0, 0), |row| (row.condition, row.variant));
    let of = if input.plan.describes() { String::new() } else { format!(" of {}", input.plan.label(variant)) };
    let place = words::conditions(&input.plan, &[condition]);
    let named = |trend: Trend, says: &str| {
        let names = rows.iter().filter(|row| row.trend == trend).map(|row| words::measure(&row.measure));
        let names = names.collect::<Vec<String>>().join("; ");
        (!names.is_empty()).then(|| format!("{says} {names}"))
    };
    let less = format!("less than {} either way:", percent(MATERIAL));
    let parts = [named(Trend::Stays, &less), named(Trend::Unclear, "the intervals are too wide to tell of")];
    let evidence = parts.into_iter().flatten().collect::<Vec<String>>().join("; ");
    let other = if rows.iter().any(|row| row.changes()) { "nothing else" } else { "nothing" };
    let claim = format!(
        "Over {} of load{of}{place} {other} is seen to change by {} or more",
        words::span(report.length),
        percent(MATERIAL)
    );
    Sentence { outcome: None, claim, evidence: if evidence.is_empty() { evidence } else { format!("({evidence})") } }
}

/// A line of evidence: `memory of web: 28.1 MB in the first half of the time, 39.0 MB in the second: +39 % (…); within the second
/// half +12 % (…); 5.4 MB per hour`.
pub(crate) fn evidence(row: &SoakRow, length: Duration) -> String {
    let unit = row.measure.unit();
    let within = row.within_second.map(|later| format!("; within the second half {}", later.in_words()));
    // The middles of both halves are half of the time apart.
    let per_hour = (row.second - row.first) / (length.as_secs_f64() / 7200.0);
    let may_go_on = matches!(row.trend, Trend::GoesOn | Trend::Changed) && unit == Unit::Bytes && per_hour > 0.0;
    let per_hour = may_go_on.then(|| format!("; {} per hour", show(per_hour, unit)));
    format!(
        "{}: {} in the first half of the time, {} in the second: {}{}{}",
        words::measure(&row.measure),
        show(row.first, unit),
        show(row.second, unit),
        row.change.in_words(),
        within.unwrap_or_default(),
        per_hour.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, Severity};
    use crate::testing::{input, start};
    use crate::{Analysis, analyse};
    use plimsoll_model::result::StartResult;
    use plimsoll_model::units::Nanos;

    /// Two minutes of load, with so many bytes of memory and so long iterations in each second.
    fn soaked(memory: impl Fn(f64) -> f64, seconds: impl Fn(f64) -> f64) -> StartResult {
        let mut result = start(1.0);
        result.loads[0].summary.timing.window = Nanos(120_000_000_000);
        let wobble = |second: i64| 1.0 + ((second * 7 + 3) % 5 - 2) as f64 / 200.0;
        let row = |second: i64| LoadSecond {
            count: 100,
            mean: seconds(second as f64) * wobble(second) * 1e9,
            p95: (seconds(second as f64) * wobble(second) * 2e9) as u64,
            ..LoadSecond::empty(second, Subject::Iteration)
        };
        result.loads[0].seconds = (0..120).map(row).collect();
        let sample = |second: i64| ProcessSample {
            at: second as f64 + 1.0,
            system: "web".to_owned(),
            cpu_cores: 0.5 * wobble(second),
            resident: (memory(second as f64) * wobble(second + 1)) as u64,
            ..ProcessSample::default()
        };
        result.processes = (0..120).map(sample).collect();
        result
    }

    fn analysed(repeats: u32, make: impl Fn(u32) -> StartResult) -> Analysis {
        let mut input = input(repeats, make);
        input.facts.soak = true;
        analyse(&input)
    }

    fn trend_of(analysis: &Analysis, variant: usize, measure: &str) -> Trend {
        let rows = &analysis.soak.as_ref().expect("a soak test").rows;
        let wanted: Measure = measure.parse().expect("a measure");
        rows.iter().find(|row| row.variant == variant && row.measure == wanted).expect("a row").trend
    }

    fn finding(analysis: &Analysis) -> Option<&Finding> {
        analysis.findings.iter().find(|finding| finding.topic == "changes over time")
    }

    #[test]
    fn what_grows_is_told_apart_from_what_settles_and_from_what_stays() {
        let leaks = |second: f64| 1e8 * (1.0 + second / 120.0);
        let fills = |second: f64| 1e8 * (2.0 - (-second / 15.0).exp());
        let analysis = analysed(3, |number| match number % 2 {
            1 => soaked(leaks, |_| 0.01),
            _ => soaked(fills, |second| if second > 40.0 { 0.012 } else { 0.01 }),
        });
        assert_eq!(trend_of(&analysis, 0, "memory:web.avg"), Trend::GoesOn);
        assert_eq!(trend_of(&analysis, 1, "memory:web.avg"), Trend::Settled);
        assert_eq!(trend_of(&analysis, 0, "iteration_duration.avg"), Trend::Stays);
        assert_eq!(trend_of(&analysis, 1, "iteration_duration.p95"), Trend::Settled);
        assert_eq!(trend_of(&analysis, 0, "cpu:web.avg"), Trend::Stays);
        let found = finding(&analysis).expect("a finding");
        assert_eq!(found.severity, Severity::Problem);
        assert!(found.sentence.starts_with("Over a load of 2 min"), "{found:?}");
        assert!(
            found.evidence[0].starts_with("old, all trials: mean memory of web: 125 MB in the first half"),
            "{found:?}"
        );
        assert!(found.evidence[0].ends_with("; 3.00 GB per hour"), "{found:?}");
        let told: Vec<String> = analysis.answer.further.iter().map(ToString::to_string).collect();
        assert_eq!(
            told[..2],
            [
                "Mean memory of web: over 2 min of load old changes by +40.1 %, from the first half to the second, and goes on \
                 (95 % interval +40.1 % to +40.1 %; 125 MB, then 175 MB).",
                "Over 2 min of load of old nothing else is seen to change by 5 % or more (less than 5 % either way: iterations, \
                 mean; iterations, p95; mean CPU of web)."
            ]
        );
    }

    #[test]
    fn one_load_tells_by_the_noise_within_it() {
        let analysis = analysed(1, |_| soaked(|_| 1e8, |second| 0.01 * (1.0 + second / 600.0)));
        assert_eq!(trend_of(&analysis, 0, "iteration_duration.avg"), Trend::GoesOn);
        assert_eq!(trend_of(&analysis, 0, "memory:web.avg"), Trend::Stays);
        assert!(finding(&analysis).is_some());
        let still = analysed(1, |_| soaked(|_| 1e8, |_| 0.01));
        assert_eq!(finding(&still), None);
        assert!(
            still.answer.further[0].claim.contains("nothing is seen to change by 5 % or more"),
            "{:?}",
            still.answer
        );
    }

    #[test]
    fn what_grows_by_jumps_goes_on_and_what_nobody_can_tell_is_said() {
        // A leak whose memory comes and goes in slow steps, as a collector of garbage does.
        let leak = |second: f64| 1e7 * (3.0 + second / 10.0 + 0.3 * (second / 3.0).sin());
        let analysis = analysed(1, |_| soaked(leak, |_| 0.01));
        assert_eq!(trend_of(&analysis, 0, "memory:web.avg"), Trend::GoesOn);
    }

    #[test]
    fn a_change_goes_on_or_has_ended_only_where_that_is_shown() {
        let change = |ratio, low, high| Change { ratio, low, high };
        let doubled = change(2.0, 1.5, 2.6);
        let of = |later: Change| trend(&doubled, Some(&later));
        assert_eq!(of(change(1.3, 1.2, 1.4)), Trend::GoesOn);
        assert_eq!(of(change(1.03, 0.98, 1.1)), Trend::Settled);
        assert_eq!(of(change(0.97, 0.9, 1.04)), Trend::Settled);
        assert_eq!(of(change(1.3, 0.6, 3.0)), Trend::Changed);
        assert_eq!(trend(&doubled, None), Trend::Changed);
        assert_eq!(trend(&change(0.952, 0.92, 0.99), None), Trend::Unclear, "less than 5 %");
        assert_eq!(trend(&change(1.02, 0.99, 1.04), None), Trend::Stays);
    }

    #[test]
    fn where_nothing_is_compared_what_changes_for_the_worse_comes_first() {
        let mut input = crate::testing::describing(1, |_| {
            let mut result = soaked(|second| 1e8 * (1.0 + second / 120.0), |_| 0.01);
            for sample in &mut result.processes {
                sample.cpu_cores *= 1.0 - sample.at / 400.0;
            }
            result
        });
        input.facts.soak = true;
        let analysis = analyse(&input);
        let told: Vec<&str> = analysis.answer.headline.iter().map(|one| one.claim.as_str()).collect();
        assert!(told[0].starts_with("Mean memory of web:") && told[1].starts_with("Mean CPU of web:"), "{told:?}");
        assert!(analysis.answer.further[0].claim.starts_with("Iterations, p95:"), "{:?}", analysis.answer);
    }

    #[test]
    fn a_study_that_is_no_soak_test_has_no_report_of_one() {
        assert_eq!(analyse(&input(3, |_| soaked(|_| 1e8, |_| 0.01))).soak, None);
    }
}
