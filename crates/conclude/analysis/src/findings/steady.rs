//! Findings about steadiness: trials that had not settled, and seconds that were cut for it.

use super::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::{change, grouped, percent, show};
use crate::words;
use plimsoll_model::measure::{Measure, Series, Statistic, Unit};
use plimsoll_model::record::Subject;
use plimsoll_model::result::LoadSecond;
use plimsoll_statistics::{Growth, growth, halves as halves_of};
use std::collections::BTreeMap;

/// The p-value at which a difference of two halves is reported: that of three standard errors.
const SIGNIFICANCE: f64 = 0.0027;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [cut(context), unjudged(context), halves(context), backlog(context)].into_iter().flatten().collect()
}

/// The seconds that were cut, and the trial that caused it.
fn cut(context: &Context<'_>) -> Option<Finding> {
    let mut latest: BTreeMap<usize, &TrialReader<'_>> = BTreeMap::new();
    for reader in context.counted().filter(|reader| reader.load().cut > 0) {
        let known = latest.entry(reader.trial().condition()).or_insert(reader);
        if reader.load().summary.steadiness.from > known.load().summary.steadiness.from {
            *known = reader;
        }
    }
    let longest = latest.values().map(|reader| reader.load().cut).max()?;
    let shortest = latest.values().map(|reader| reader.load().cut).min()?;
    let conditions: Vec<usize> = latest.keys().copied().collect();
    let seconds = if shortest == longest { format!("The first {longest} s") } else { format!("Up to {longest} s") };
    let evidence = latest.iter().map(|(condition, reader)| {
        let summary = &reader.load().summary;
        format!(
            "{}: {} s of {} are left out, because {} was steady only from {} on",
            context.condition(*condition),
            reader.load().cut,
            show(summary.timing.window.seconds(), Unit::Seconds),
            context.trial(reader),
            show(summary.steadiness.from.unwrap_or_default().seconds(), Unit::Seconds)
        )
    });
    let unit = context.load_unit();
    Some(Finding {
        severity: Severity::Note,
        topic: "warm-up",
        sentence: format!(
            "{seconds} of the measure phase count for nothing{}, because a {unit} had not settled before; all {unit}s of a \
             condition are cut alike. With a longer warm-up the whole measure phase would count.",
            words::conditions(&context.input.plan, &conditions)
        ),
        evidence: evidence.collect(),
    })
}

/// Trials whose steadiness could not be judged.
fn unjudged(context: &Context<'_>) -> Option<Finding> {
    let mut by_reason: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for reader in context.counted() {
        if let Some(reason) = &reader.load().summary.steadiness.unjudged {
            by_reason.entry(reason).or_default().push(reader.trial().number());
        }
    }
    let trials: usize = by_reason.values().map(Vec::len).sum();
    (trials > 0).then(|| Finding {
        severity: Severity::Note,
        topic: "steadiness not judged",
        sentence: format!(
            "In {trials} of {} it cannot be said whether what was measured had settled.",
            context.counted_loads(context.counted().count())
        ),
        evidence: by_reason
            .iter()
            .map(|(reason, trials)| format!("{}: {reason}", context.list_of_trials(trials)))
            .collect(),
    })
}

/// Compares the first half of the counted seconds with the second, in the series of the headline
/// measure. A growing backlog has a finding of its own.
fn halves(context: &Context<'_>) -> Option<Finding> {
    let headline = crate::catalogue::headline(&context.input.facts);
    let series = SeriesOverTime::of(&headline.measure);
    let margin = if series.decides(&headline.measure) { headline.margin } else { DEFAULT_MARGIN };
    let mut apart: Vec<(f64, String)> = context
        .counted()
        .filter(|reader| is_meant_to_be_steady(reader) && growth_in(context, reader).is_none())
        .filter_map(|reader| {
            let halves =
                halves_of(&series.values(reader)).filter(|halves| halves.first > 0.0 && halves.second > 0.0)?;
            let ratio = halves.second / halves.first;
            if ratio.ln().abs() <= (1.0 + margin / 2.0).ln() || halves.p > SIGNIFICANCE {
                return None;
            }
            let unit = series.measure.unit();
            let text = format!(
                "{}: {} in the first half, {} in the second ({})",
                context.trial(reader),
                show(halves.first, unit),
                show(halves.second, unit),
                change(ratio)
            );
            Some((ratio, text))
        })
        .collect();
    apart.sort_by(|one, other| other.0.ln().abs().total_cmp(&one.0.ln().abs()));
    let (worst, _) = apart.first()?;
    Some(Finding {
        severity: Severity::Caution,
        topic: "not steady",
        sentence: format!(
            "In {} of {} {} changes from the first half of what counts to the second by more than half the margin ({} at \
             worst): what these say depends on how long one measures.",
            apart.len(),
            context.counted_loads(context.counted().count()),
            words::measure(&series.measure),
            change(*worst)
        ),
        evidence: apart.into_iter().map(|(_, text)| text).collect(),
    })
}

/// The margin where the headline has no series over time: that of a mean.
const DEFAULT_MARGIN: f64 = 0.05;

/// True if the trial is meant to be steady: where load changes by design, so do the measures.
fn is_meant_to_be_steady(reader: &TrialReader<'_>) -> bool {
    let summary = &reader.load().summary;
    summary.steadiness.from.is_some() || summary.steadiness.unjudged.is_some()
}

/// A measure that has a value in each second.
struct SeriesOverTime {
    measure: Measure,
}

impl SeriesOverTime {
    /// The series that represents `measure`: its mean in each second, the throughput, or the mean
    /// of iterations for measures that are neither a duration nor a count.
    fn of(measure: &Measure) -> SeriesOverTime {
        let (series, statistic) = match &measure.series {
            Series::IterationDuration | Series::ConnectDuration | Series::RequestDuration(_) => {
                (measure.series.clone(), Statistic::Avg)
            }
            // Only service times are in the series over time.
            Series::ResponseTime(name) | Series::FirstByte(name) | Series::PartDuration(_, name) => {
                (Series::RequestDuration(name.clone()), Statistic::Avg)
            }
            Series::Requests => (Series::Requests, Statistic::Rate),
            _ => (Series::Iterations, Statistic::Rate),
        };
        SeriesOverTime { measure: Measure::new(series, statistic) }
    }

    /// True if it has the same subject as `measure`, so that the margin of that measure applies.
    fn decides(&self, measure: &Measure) -> bool {
        self.measure.unit() == measure.unit() || measure.series == self.measure.series
    }

    /// Its values in the counted seconds; a mean only has values in seconds with iterations.
    fn values(&self, reader: &TrialReader<'_>) -> Vec<f64> {
        let load = reader.load();
        // The last second is left out if it is incomplete.
        let end = load.summary.timing.window.seconds().floor() as i64;
        let mut seconds: BTreeMap<i64, (f64, u64)> = (load.cut..end).map(|second| (second, (0.0, 0))).collect();
        for row in load.seconds.iter().filter(|row| self.is_about(row)) {
            if let Some((total, count)) = seconds.get_mut(&row.second) {
                *total += row.mean * row.count as f64;
                *count += row.count;
            }
        }
        match self.measure.statistic {
            Statistic::Rate => seconds.values().map(|(_, count)| *count as f64).collect(),
            _ => {
                let timed = seconds.values().filter(|(_, count)| *count > 0);
                timed.map(|(total, count)| total / *count as f64 / 1e9).collect()
            }
        }
    }

    fn is_about(&self, row: &LoadSecond) -> bool {
        match &self.measure.series {
            Series::ConnectDuration => row.subject == Subject::Connect,
            Series::RequestDuration(Some(name)) => row.subject.is_request_named(name),
            Series::RequestDuration(None) | Series::Requests => row.subject.is_request(),
            _ => row.subject == Subject::Iteration,
        }
    }
}

/// The growth of unfinished arrivals over the counted part of a trial under open load, if they
/// grow, and their number at its end.
fn growth_in(context: &Context<'_>, reader: &TrialReader<'_>) -> Option<(Growth, f64)> {
    let (unfinished_by_second, finished) = unfinished_by_second(context, reader)?;
    Some((growth(&unfinished_by_second, finished)?, *unfinished_by_second.last()?))
}

/// The share and number of arrivals that had not begun at the end of a trial, where the share is
/// above a tenth (too much for chance, in a trial of any length).
fn arrivals_not_begun(context: &Context<'_>, reader: &TrialReader<'_>) -> Option<(f64, f64)> {
    let (_, finished) = unfinished_by_second(context, reader)?;
    let load = reader.load();
    let last = load.generator.iter().rfind(|row| load.counts_second(row.second))?;
    let share = last.backlog as f64 / (finished + last.backlog as f64);
    (share > MAX_NOT_BEGUN).then_some((share, last.backlog as f64))
}

/// Share of arrivals that a system which carries its load never leaves.
const MAX_NOT_BEGUN: f64 = 0.1;

/// The number of unfinished arrivals after each counted second of a trial under open load, and the
/// total number of finished ones.
fn unfinished_by_second(context: &Context<'_>, reader: &TrialReader<'_>) -> Option<(Vec<f64>, f64)> {
    if !context.input.facts.open_load {
        return None;
    }
    let load = reader.load();
    let rows = load.generator.iter().filter(|row| load.counts_second(row.second));
    let unfinished_by_second: Vec<f64> = rows.map(|row| (row.users + row.backlog) as f64).collect();
    let ended = load.seconds.iter().filter(|row| row.subject == Subject::Iteration && load.counts_second(row.second));
    let finished: f64 = ended.map(|row| row.count as f64).sum();
    Some((unfinished_by_second, finished))
}

/// Open load above the capacity of the system.
fn backlog(context: &Context<'_>) -> Option<Finding> {
    let mut growing: Vec<(f64, String)> = context
        .counted()
        .filter(|reader| is_meant_to_be_steady(reader))
        .filter_map(|reader| {
            let grown = growth_in(context, reader).map(|(growth, at_the_end)| (growth.share, at_the_end));
            let (share, at_the_end) = grown.or_else(|| arrivals_not_begun(context, reader))?;
            let text = format!(
                "{}: {} of the arrivals were left over, {} at the end",
                context.trial(reader),
                percent(share),
                grouped(at_the_end)
            );
            Some((share, text))
        })
        .collect();
    growing.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (worst, _) = growing.first()?;
    Some(Finding {
        // Under overload, a response time measures the length of the trial.
        severity: match crate::catalogue::headline(&context.input.facts).measure.series {
            Series::ResponseTime(_) => Severity::Problem,
            _ => Severity::Caution,
        },
        topic: "a growing backlog",
        sentence: format!(
            "In {} of {} more arrived than was finished (up to {} of it was left over): the load is above what the system \
             carries, so durations grow with the time that one measures.",
            growing.len(),
            context.counted_loads(context.counted().count()),
            percent(*worst)
        ),
        evidence: growing.into_iter().map(|(_, text)| text).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::finding::{Finding, Severity};
    use crate::testing::{input, start};
    use crate::{Input, analyse};
    use plimsoll_model::record::Subject;
    use plimsoll_model::result::{GeneratorRow, LoadSecond, StartResult};
    use plimsoll_model::units::Nanos;

    fn finding(input: &Input, topic: &str) -> Option<Finding> {
        analyse(input).findings.into_iter().find(|finding| finding.topic == topic)
    }

    /// A trial of 20 s whose iterations took so many milliseconds in each second, on average.
    fn by_second(milliseconds: impl Fn(i64) -> f64) -> StartResult {
        let mut result = start(1.0);
        result.loads[0].summary.timing.window = Nanos(20_000_000_000);
        let row = |second| LoadSecond {
            count: 100,
            mean: milliseconds(second) * 1e6,
            ..LoadSecond::empty(second, Subject::Iteration)
        };
        result.loads[0].seconds = (0..20).map(row).collect();
        result
    }

    /// Around `mean` by a few percent, as it would be in a steady trial.
    fn noisy(mean: f64, second: i64) -> f64 {
        mean * (1.0 + ((second * 7 + 3) % 5 - 2) as f64 / 50.0)
    }

    #[test]
    fn a_cut_is_told_with_the_trial_that_asked_for_it() {
        let mut input = input(3, |_| by_second(|second| noisy(10.0, second)));
        assert_eq!(finding(&input, "warm-up"), None);
        input.starts.iter_mut().for_each(|result| result.loads[0].cut = 2);
        input.starts[3].loads[0].summary.steadiness.from = Some(Nanos(1_500_000_000));
        let finding = finding(&input, "warm-up").expect("a finding");
        assert_eq!(finding.severity, Severity::Note);
        assert!(
            finding.sentence.starts_with("The first 2 s of the measure phase count for nothing, because"),
            "{finding:?}"
        );
        assert_eq!(
            finding.evidence,
            [
                "all trials: 2 s of 20.0 s are left out, because trial 4 (new, all trials) was steady only from 1.50 s on"
            ]
        );
    }

    #[test]
    fn trials_that_were_not_judged_are_told_with_the_reason() {
        let mut input = input(4, |_| start(1.0));
        for result in &mut input.starts[1..] {
            result.loads[0].summary.steadiness.from = None;
            result.loads[0].summary.steadiness.unjudged = Some("it was too short".to_owned());
        }
        let finding = finding(&input, "steadiness not judged").expect("a finding");
        assert!(finding.sentence.starts_with("In 7 of 8 trials it cannot be said"), "{finding:?}");
        assert_eq!(finding.evidence, ["7 trials: it was too short"]);
    }

    #[test]
    fn halves_that_differ_by_more_than_chance_and_half_the_margin_are_found() {
        // The margin of the headline, p95 of the iteration, is 10 %.
        for (later, expected) in [(1.0, false), (1.03, false), (1.08, true), (0.9, true)] {
            let input = input(3, |number| {
                by_second(|second| noisy(if number == 4 && second >= 10 { 10.0 * later } else { 10.0 }, second))
            });
            let found = finding(&input, "not steady");
            assert_eq!(found.is_some(), expected, "{later}: {found:?}");
            if let Some(found) = found {
                assert_eq!((found.severity, found.evidence.len()), (Severity::Caution, 1));
                assert!(
                    found.evidence[0].starts_with("trial 4 (new, all trials): 10.0 ms in the first half"),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn halves_are_those_of_what_counts_and_only_where_load_is_constant() {
        let mut input = input(3, |_| by_second(|second| noisy(if second < 10 { 14.0 } else { 10.0 }, second)));
        assert!(finding(&input, "not steady").is_some());
        input.starts.iter_mut().for_each(|result| result.loads[0].cut = 10);
        assert_eq!(finding(&input, "not steady"), None);
        input.starts.iter_mut().for_each(|result| {
            result.loads[0].cut = 0;
            result.loads[0].summary.steadiness.from = None;
        });
        assert_eq!(finding(&input, "not steady"), None, "load that is meant to change");
    }

    #[test]
    fn throughput_stands_for_measures_without_a_series_of_their_own() {
        let mut input = input(3, |_| by_second(|second| noisy(10.0, second)));
        input.facts.decide[0].measure = "memory.max".parse().expect("a measure");
        for row in input.starts[2].loads[0].seconds.iter_mut().filter(|row| row.second >= 10) {
            row.count = 80 + row.second as u64 % 3;
        }
        let found = finding(&input, "not steady").expect("a finding");
        assert!(found.sentence.contains("iterations per second"), "{found:?}");
    }

    #[test]
    fn open_load_above_what_the_system_carries_is_found() {
        let mut input = input(3, |number| {
            let mut result = by_second(|second| noisy(10.0, second));
            let row = |second: i64| {
                let users = if number == 5 { 40 + 10 * second as u64 } else { 40 + second as u64 % 3 };
                GeneratorRow { second, users, ..GeneratorRow::default() }
            };
            result.loads[0].generator = (0..20).map(row).collect();
            result
        });
        assert_eq!(finding(&input, "a growing backlog"), None, "users of a closed loop are meant to be at work");
        input.facts.open_load = true;
        for row in input.starts[4].loads[0].seconds.iter_mut().filter(|row| row.second >= 10) {
            row.mean *= 2.0;
        }
        assert_eq!(finding(&input, "not steady"), None, "the backlog says it");
        let found = finding(&input, "a growing backlog").expect("a finding");
        assert_eq!(found.evidence, ["trial 5 (old, all trials): 9.1 % of the arrivals were left over, 230 at the end"]);
    }

    #[test]
    fn a_backlog_is_found_in_trials_too_short_for_a_trend() {
        let mut input = input(3, |_| {
            let mut result = start(1.0); // 100 iterations in 2 s
            let row = |second: i64| GeneratorRow {
                second,
                users: 1,
                backlog: 50 * (second as u64 + 1),
                ..GeneratorRow::default()
            };
            result.loads[0].generator = (0..2).map(row).collect();
            result
        });
        input.facts.open_load = true;
        let found = finding(&input, "a growing backlog").expect("a finding");
        assert!(found.evidence[0].contains("50 % of the arrivals were left over, 100 at the end"), "{found:?}");
    }
}
