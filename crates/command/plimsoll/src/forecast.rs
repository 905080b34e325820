//! Forecasts while a run is under way: in how much time it will probably decide.

use crate::progress::time;
use plimsoll_analysis::compare::Comparison;
use plimsoll_analysis::forecast::forecast;
use plimsoll_analysis::quantity::margin;
use plimsoll_analysis::verdict::roughly;
use plimsoll_analysis::{Analysis, estimate, words};
use plimsoll_model::event::Event;
use plimsoll_model::start::Plan;
use std::time::{Duration, Instant};

/// Follows a run, and knows after which starts a forecast is worth its time.
pub(crate) struct Forecaster {
    /// The starts of one repeat.
    starts_in_repeat: u32,
    /// The starts that had ended before, and those that have ended since.
    before: u32,
    ended: u32,
    began: Instant,
    /// The time that forecasts have taken.
    spent: Duration,
}

/// The share of a run that forecasts may take: they read the whole bundle, which grows.
const MAX_SHARE: f64 = 0.02;

impl Forecaster {
    pub(crate) fn new(plan: &Plan) -> Forecaster {
        let starts_in_repeat = (plan.starts_in_block() * plan.conditions.len()).max(1) as u32;
        Forecaster { starts_in_repeat, before: 0, ended: 0, began: Instant::now(), spent: Duration::ZERO }
    }

    /// The repeats that have ended, if the event is the end of one, there are enough for an interval, and forecasts have
    /// not taken too much of the run.
    pub(crate) fn repeats_after(&mut self, event: &Event) -> Option<u32> {
        match event {
            Event::RunStarted { already_done, .. } => self.before = *already_done,
            // The first start begins only after the machine was looked at and everything was built.
            Event::StartBegun { .. } if self.ended == 0 => self.began = Instant::now(),
            Event::StartFinished { .. } => {
                self.ended += 1;
                let all = self.before + self.ended;
                let repeats = all / self.starts_in_repeat;
                let enough = repeats >= estimate::MIN_REPEATS as u32;
                let affordable = self.spent <= self.began.elapsed().mul_f64(MAX_SHARE);
                return (enough && affordable && all.is_multiple_of(self.starts_in_repeat)).then_some(repeats);
            }
            _ => {}
        }
        None
    }

    /// Notes that a forecast took so long.
    pub(crate) fn spend(&mut self, took: Duration) {
        self.spent += took;
    }

    /// How long one repeat takes, with starting and stopping its systems.
    pub(crate) fn time_of_repeat(&self) -> Duration {
        let starts = f64::from(self.ended.max(1));
        self.began.elapsed().mul_f64(f64::from(self.starts_in_repeat) / starts)
    }
}

/// The forecast after `done` repeats in a line; none where nothing can be said.
pub(crate) fn in_words(analysis: &Analysis, plan: &Plan, done: u32, time_of_repeat: Duration) -> Option<String> {
    let forecast = forecast(analysis)?;
    let left = plan.repeats.saturating_sub(done) as usize;
    let unit = if plan.design.is_trials() || plan.conditions.len() > 1 { "repeat" } else { "start" };
    let spans = Spans { unit, time_of_repeat };
    let of_plan = match left {
        0 => "the plan is at its end".to_owned(),
        left => format!("the plan has {} left, about {}", spans.units(left), spans.takes(left)),
    };
    let count = forecast.decided.len() + forecast.in_time.len() + forecast.unforeseeable.len();
    let more = |needed: usize| needed.saturating_sub(done as usize).max(1);
    let said = match (forecast.in_time.last(), forecast.unforeseeable.first()) {
        (None, None) => {
            let decided = if count == 1 { margin_of(forecast.decided[0]) } else { "everything".to_owned() };
            format!("{decided} is decided as it stands")
        }
        (Some((one, needed)), _) if count == 1 => match more(*needed) {
            more if more <= left => {
                format!("decides {} in about {} more ({})", margin_of(one), spans.takes(more), spans.units(more))
            }
            more => format!("{} would need about {} more, {}", margin_of(one), spans.units(more), spans.takes(more)),
        },
        (None, Some(one)) if count == 1 => {
            format!("more {unit}s of this kind will probably not decide {}", margin_of(one))
        }
        (longest, _) => {
            let mut parts = vec![format!("{} of {count} comparisons are decided", forecast.decided.len())];
            parts.extend(longest.map(|(one, needed)| {
                let (more, place) = (more(*needed), place(analysis, plan, one));
                let open = forecast.in_time.len();
                format!("{open} more in about {} ({}; {place} takes longest)", spans.takes(more), spans.units(more))
            }));
            if !forecast.unforeseeable.is_empty() {
                parts.push(format!("{} probably not by more {unit}s", forecast.unforeseeable.len()));
            }
            parts.join(", ")
        }
    };
    Some(format!("forecast: {said}; {of_plan}"))
}

/// The words for repeats and their time.
struct Spans {
    /// What a repeat is called.
    unit: &'static str,
    time_of_repeat: Duration,
}

impl Spans {
    fn units(&self, count: usize) -> String {
        let unit = self.unit;
        if count == 1 { format!("1 {unit}") } else { format!("{} {unit}s", roughly(count)) }
    }

    fn takes(&self, repeats: usize) -> String {
        time(in_round(self.time_of_repeat * u32::try_from(repeats).unwrap_or(u32::MAX)))
    }
}

/// The margin that a comparison is decided at.
fn margin_of(comparison: &Comparison) -> String {
    let size = comparison.verdict.as_ref().map_or(0.0, |verdict| verdict.margin);
    margin(size, &comparison.measure)
}

/// Names a comparison by what tells it from the others.
fn place(analysis: &Analysis, plan: &Plan, one: &Comparison) -> String {
    let mut names = Vec::new();
    let decides = |one: &&Comparison| one.verdict.is_some();
    if analysis.comparisons.iter().filter(decides).any(|other| other.measure != one.measure) {
        names.push(words::measure(&one.measure));
    }
    if plan.variants.len() > 2 {
        names.push(plan.label(one.variant));
    }
    if plan.conditions.len() > 1 {
        names.push(plan.conditions[one.condition].to_string());
    }
    names.join(", ")
}

/// A span as precise as a forecast is: to 5 seconds below two minutes, to the minute above.
fn in_round(span: Duration) -> Duration {
    let unit = if span < Duration::from_secs(120) { 5 } else { 60 };
    Duration::from_secs((span.as_secs_f64() / f64::from(unit)).ceil() as u64 * unit as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::start::Validity;

    #[test]
    fn spans_are_rounded_up_to_what_a_forecast_knows() {
        for (seconds, expected) in [(1, "5 s"), (61, "1 min 5 s"), (121, "3 min"), (3601, "1 h 1 min")] {
            assert_eq!(time(in_round(Duration::from_secs(seconds))), expected);
        }
    }

    #[test]
    fn a_forecast_is_due_after_each_whole_repeat_from_the_third_on() {
        let mut forecaster =
            Forecaster { starts_in_repeat: 2, before: 0, ended: 0, began: Instant::now(), spent: Duration::ZERO };
        let resumed = Event::RunStarted { starts: 20, already_done: 3, time_under_load: Duration::ZERO };
        assert_eq!(forecaster.repeats_after(&resumed), None);
        let ended =
            || Event::StartFinished { start: 1, validity: Validity::Valid, iterations: 1, errors: 0, others: None };
        let due: Vec<Option<u32>> = (4..=8).map(|_| forecaster.repeats_after(&ended())).collect();
        assert_eq!(due, [None, None, Some(3), None, Some(4)]);
        forecaster.spend(Duration::from_secs(600));
        let due: Vec<Option<u32>> = (9..=10).map(|_| forecaster.repeats_after(&ended())).collect();
        assert_eq!(due, [None, None], "too dear for a run that has just begun");
    }
}
