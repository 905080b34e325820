//! Loads whose number of users a control loop changed: its answer, and how much there is to it.
//!
//! The answer is the mean number of users over the loop's last window. It is that of one oscillation, in which every number
//! follows from the ones before it, so that its own spread gives no interval: only several starts do.

use crate::answer::Sentence;
use crate::capacity::in_words;
use crate::estimate::CONFIDENCE;
use crate::estimate::Estimate;
use crate::input::Input;
use crate::numbers::Cell;
use crate::quantity::{confidence, grouped, percent};
use crate::reason::OrReason;
use crate::words;
use plimsoll_model::feedback::{FeedbackEnd, FeedbackRecord, UsersInWindow};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::result::TrialResult;
use plimsoll_model::words::and_list;
use plimsoll_statistics::mean;
use std::time::Duration;

/// The control loops of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedbackReport {
    /// The number of users, as a measure.
    pub measure: Measure,
    /// By condition, then by variant, then by start.
    pub rows: Vec<FeedbackRow>,
}

/// The control loop of a variant on a start.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedbackRow {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants.
    pub variant: usize,
    /// The number of the start.
    pub start: u32,
    /// How long its load took.
    pub took: Duration,
    /// What it did.
    pub record: FeedbackRecord,
}

impl FeedbackRow {
    /// The alerts that fired first, in words: `request duration, p95`; empty where none did.
    #[must_use]
    pub fn first_alerts(&self) -> String {
        let first = self.record.alerts.iter().filter(|alert| alert.first);
        and_list(first.map(|alert| in_words(&alert.condition)))
    }
}

/// The alert that fired for the longest, in words; none where none fired.
#[must_use]
pub fn limited_by(rows: &[&FeedbackRow]) -> Option<String> {
    let alerts = rows.iter().flat_map(|row| &row.record.alerts);
    alerts.max_by_key(|alert| alert.seconds).map(|alert| in_words(&alert.condition))
}

/// How far the fewest and the most users in the window are from their mean: half of their distance, as a share.
#[must_use]
pub fn swing(window: &UsersInWindow) -> f64 {
    f64::from(window.most - window.fewest) / 2.0 / window.mean.max(1.0)
}

/// The change of the number of users over the window by the line through it, as a share of their mean.
#[must_use]
pub fn drift(window: &UsersInWindow) -> f64 {
    window.slope * f64::from(window.seconds) / window.mean.max(1.0)
}

/// The most users that were meant to be at work. Records of earlier versions have only the most that it might have.
pub(crate) fn reached(record: &FeedbackRecord) -> u32 {
    record.reached.unwrap_or(record.rules.most)
}

/// The answer of a control loop as the value of a measure.
pub(crate) fn answer(record: &FeedbackRecord) -> OrReason<f64> {
    match (&record.window, record.end) {
        (Some(window), FeedbackEnd::Flat) => Ok(window.mean),
        (Some(_), FeedbackEnd::Time) => {
            Err("the number of users did not become flat in the time of the load".to_owned())
        }
        (None, _) | (Some(_), FeedbackEnd::NoAlert) => Err(silent_with(record)),
    }
}

/// How far users came without an alert: `no limit was exceeded with up to 800 users`.
fn silent_with(record: &FeedbackRecord) -> String {
    let any_more = if record.first_alert.is_some() { "any more " } else { "" };
    format!("no limit was exceeded {any_more}with up to {} users", grouped(f64::from(reached(record))))
}

/// True if no alert fired, or none any more with the most users.
pub(crate) fn is_silent(record: &FeedbackRecord) -> bool {
    record.first_alert.is_none() || record.end == FeedbackEnd::NoAlert
}

/// What helps where loops have no answer, because no alert fired or because their users did not become flat; none where all
/// have one.
pub(crate) fn remedy<'a>(mut rows: impl Iterator<Item = &'a FeedbackRow> + Clone) -> Option<String> {
    let mut silent = rows.clone().filter(|row| is_silent(&row.record)).peekable();
    if silent.peek().is_some() {
        let all_came = silent.all(|row| reached(&row.record) == row.record.rules.most);
        let first = if all_came { "`most` of `[load]` be larger" } else { "`duration` of `[load]` be longer" };
        return Some(format!("let {first}, users think for less time, or limits be stricter"));
    }
    let is_endless = rows.any(|row| row.record.end == FeedbackEnd::Time);
    is_endless.then(|| "let `duration` of `[load]` be longer".to_owned())
}

/// The control loops of a study; none for another study.
pub(crate) fn report(input: &Input) -> Option<FeedbackReport> {
    let counting = input.trials().filter(|trial| input.counts(*trial));
    let row = |trial: TrialResult<'_>| {
        Some(FeedbackRow {
            condition: trial.condition(),
            variant: trial.variant(),
            start: trial.number(),
            took: Duration::from(trial.load.summary.timing.window),
            record: trial.load.summary.feedback.clone()?,
        })
    };
    let mut rows: Vec<FeedbackRow> = counting.filter_map(row).collect();
    rows.sort_by_key(|row| (row.condition, row.variant, row.start));
    let measure = Measure::new(Series::Capacity, Statistic::Count);
    (!rows.is_empty()).then_some(FeedbackReport { measure, rows })
}

/// A sentence for each variant under each condition: `The control loop settled around 351 users for v1`.
pub(crate) fn sentences(input: &Input, report: &FeedbackReport, cells: &[Cell]) -> Vec<Sentence> {
    let sentence = |cell: &Cell| {
        let of_cell = |row: &&FeedbackRow| (row.condition, row.variant) == (cell.condition, cell.variant);
        let rows: Vec<&FeedbackRow> = report.rows.iter().filter(of_cell).collect();
        (!rows.is_empty()).then(|| sentence(input, report, cell, &rows))
    };
    cells.iter().filter_map(sentence).collect()
}

fn sentence(input: &Input, report: &FeedbackReport, cell: &Cell, rows: &[&FeedbackRow]) -> Sentence {
    let of = if input.plan.describes() { String::new() } else { format!(" for {}", input.plan.label(cell.variant)) };
    let place = words::conditions(&input.plan, &[cell.condition]);
    let users = |users: f64| grouped(users.round());
    let answered = || rows.iter().filter_map(|row| Some((answer(&row.record).ok()?, row.record.window.as_ref()?)));
    let found: Vec<f64> = answered().map(|(users, _)| users).collect();
    let Some(level) = mean(&found) else {
        let reason = rows.first().and_then(|row| answer(&row.record).err()).unwrap_or_default();
        let claim = format!("The control loop found no number of users{of}{place}");
        return Sentence { outcome: None, claim, evidence: format!("({reason})") };
    };
    let estimate: Option<&Estimate> = cell.estimates.iter().find(|estimate| estimate.measure == report.measure);
    let level = estimate.and_then(|one| one.summary.as_ref().ok()).map_or(level, |summary| summary.centre);
    let interval = estimate.and_then(|estimate| estimate.interval.as_ref().ok());
    let spread = match (interval, found.len()) {
        (Some(interval), n) => format!(
            "{} interval {} to {}, n = {n}",
            confidence(1.0 - CONFIDENCE),
            users(interval.low),
            users(interval.high)
        ),
        (None, 1) => "one control loop, which has no interval".to_owned(),
        (None, n) => format!("{n} control loops, too few for an interval"),
    };
    let fewest = answered().map(|(_, window)| window.fewest).min().unwrap_or_default();
    let most = answered().map(|(_, window)| window.most).max().unwrap_or_default();
    let meanwhile =
        format!("{} to {} users while it took its mean", grouped(f64::from(fewest)), grouped(f64::from(most)));
    let limit = limited_by(rows).map(|alert| format!("limited by {alert}"));
    let evidence: Vec<String> = [spread, meanwhile].into_iter().chain(limit).collect();
    Sentence {
        outcome: None,
        claim: format!("The control loop settled around {} users{of}{place}", users(level)),
        evidence: format!("({})", evidence.join("; ")),
    }
}

/// A row as a line of evidence: `198 users; 120 to 280 in the last 30 min`.
pub(crate) fn in_window(window: &UsersInWindow) -> String {
    format!(
        "{} users on average, {} to {} in the last {} (half the range is {} of the mean), {} by the line through them, {} reversals",
        grouped(window.mean.round()),
        grouped(f64::from(window.fewest)),
        grouped(f64::from(window.most)),
        words::span(Duration::from_secs(u64::from(window.seconds))),
        percent(swing(window)),
        signed(drift(window)),
        grouped(f64::from(window.reversals)),
    )
}

/// A share with its sign: `+4.1 %`.
#[must_use]
pub fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{input, start};
    use plimsoll_model::feedback::{AlertTime, FeedbackRules};
    use plimsoll_model::objective::Condition;
    use plimsoll_model::study::Decision;

    fn record(mean: f64, end: FeedbackEnd) -> FeedbackRecord {
        let seconds = Duration::from_secs;
        let rules =
            FeedbackRules { step: 8, most: 500, rest: seconds(2), over: seconds(60), window: seconds(1800), flat: 0.2 };
        let window = UsersInWindow { seconds: 1800, mean, fewest: 150, most: 250, slope: 0.001, reversals: 40 };
        let alerts = vec![
            AlertTime { condition: Condition::Errors, seconds: 3, first: true },
            AlertTime {
                condition: Condition::Duration("request_duration.p95".parse().expect("a measure")),
                seconds: 700,
                first: false,
            },
        ];
        FeedbackRecord { rules, end, reached: Some(472), first_alert: Some(90), window: Some(window), alerts }
    }

    /// Two variants, five starts of each, with what `of` says of the start.
    fn told(of: impl Fn(u32) -> FeedbackRecord) -> crate::Analysis {
        let mut input = input(5, |number| {
            let mut result = start(1.0);
            result.loads[0].summary.feedback = Some(of(number));
            result
        });
        let measure = Measure::new(Series::Capacity, Statistic::Count);
        input.facts.decide = vec![Decision { measure, margin: 0.05 }];
        analyse(&input)
    }

    fn topics(analysis: &crate::Analysis) -> Vec<&str> {
        let topics = analysis.findings.iter().filter(|finding| finding.topic.contains("control loop"));
        topics.map(|finding| finding.topic).collect()
    }

    #[test]
    fn what_each_version_supports_is_said_with_what_limits_it() {
        let analysis =
            told(|number| record(200.0 + f64::from(number % 2) * 20.0 + f64::from(number), FeedbackEnd::Flat));
        let sentences: Vec<String> = analysis.answer.further.iter().map(ToString::to_string).collect();
        let first = sentences.iter().find(|one| one.starts_with("The control loop settled")).expect("a sentence");
        for part in [
            "settled around 22",
            "95 % interval",
            "n = 5",
            "150 to 250 users while it took its mean",
            "limited by",
            "p95",
        ] {
            assert!(first.contains(part), "{part}: {first}");
        }
        assert_eq!(topics(&analysis), ["control loop swings", "control loop"]);
        let comparison = analysis.comparison(0, 1, &Measure::new(Series::Capacity, Statistic::Count));
        assert!(comparison.is_some_and(|one| one.pairs.len() == 5));
    }

    #[test]
    fn a_loop_without_an_answer_has_no_part_in_the_range_of_users() {
        let analysis = told(|number| match number {
            1 => {
                let mut record = record(200.0, FeedbackEnd::Time);
                let window = record.window.as_mut().expect("a window");
                (window.fewest, window.most) = (0, 472);
                record
            }
            _ => record(200.0 + f64::from(number), FeedbackEnd::Flat),
        });
        let sentences: Vec<String> = analysis.answer.further.iter().map(ToString::to_string).collect();
        let first = sentences.iter().find(|one| one.starts_with("The control loop settled")).expect("a sentence");
        for part in ["n = 4", "150 to 250 users while it took its mean"] {
            assert!(first.contains(part), "{part}: {first}");
        }
    }

    #[test]
    fn a_loop_without_an_alert_or_an_end_has_no_answer_and_says_why() {
        let silent = |end, reached, says: &str, remedy: &str| {
            let (window, first_alert, alerts) = (None, None, Vec::new());
            let analysis =
                told(|_| FeedbackRecord { window, first_alert, alerts: alerts.clone(), reached, ..record(1.0, end) });
            let text = format!("{:?}", analysis.answer);
            assert!(text.contains(says), "{text}");
            let finding = analysis.findings.iter().find(|one| one.topic == "control loop without an alert");
            assert!(finding.is_some_and(|one| one.sentence.contains(remedy)), "{finding:?}");
            let next = analysis.next.as_ref().expect("a next step").alternative.clone();
            assert!(next.contains(says) && next.contains(remedy), "{next}");
        };
        let (all, larger) = ("no limit was exceeded with up to 500 users", "let `most` of `[load]` be larger");
        silent(FeedbackEnd::NoAlert, Some(500), all, larger);
        silent(FeedbackEnd::Time, None, all, larger);
        let some = "no limit was exceeded with up to 472 users";
        silent(FeedbackEnd::Time, Some(472), some, "let `duration` of `[load]` be longer");
        let late = told(|_| FeedbackRecord { reached: Some(500), ..record(490.0, FeedbackEnd::NoAlert) });
        assert!(format!("{:?}", late.answer).contains("exceeded any more with up to 500 users"), "{:?}", late.answer);
        let analysis = told(|_| record(200.0, FeedbackEnd::Time));
        assert!(topics(&analysis).contains(&"control loop without an end"), "{:?}", topics(&analysis));
    }

    #[test]
    fn users_that_drift_within_what_the_loop_calls_flat_are_a_finding() {
        let drifting = |_| {
            let mut record = record(200.0, FeedbackEnd::Flat);
            record.window.as_mut().expect("a window").slope = 0.15;
            record
        };
        let full = |_| {
            let mut record = record(200.0, FeedbackEnd::Flat);
            record.rules.most = 250;
            record
        };
        assert!(topics(&told(full)).contains(&"control loop at its most users"));
        // 0.15 users a second are 270 in half an hour.
        assert!(topics(&told(drifting)).contains(&"control loop drifts"));
    }
}
