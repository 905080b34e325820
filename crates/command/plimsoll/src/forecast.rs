//! Forecasts while a run is under way: in how much time it will probably decide.

use crate::progress::time;
use plimsoll_analysis::compare::Comparison;
use plimsoll_analysis::forecast::forecast;
use plimsoll_analysis::quantity::margin;
use plimsoll_analysis::verdict::roughly;
use plimsoll_analysis::{Analysis, Goal, estimate, words};
use plimsoll_model::event::Event;
use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::Start;
use std::time::{Duration, Instant};

/// Follows a run, and knows after which starts a forecast is worth its time.
pub(crate) struct Forecaster {
    /// The planned starts that looks have not spared.
    starts: Vec<Start>,
    /// The starts that have ended since the run began or resumed.
    ended: u32,
    began: Instant,
    /// The time that forecasts have taken.
    spent: Duration,
}

/// The share of a run that forecasts may take: they read the whole bundle, which grows.
const MAX_SHARE: f64 = 0.02;

impl Forecaster {
    /// For a run of the plan, of which these looks have been taken before.
    pub(crate) fn new(plan: &Plan, looks: &[Look]) -> Forecaster {
        let starts = plan.clone().without_spared(looks).starts;
        Forecaster { starts, ended: 0, began: Instant::now(), spent: Duration::ZERO }
    }

    /// The repeats that have ended, if the event is the end of the last start of one, there are enough for an interval, and
    /// forecasts have not taken too much of the run.
    pub(crate) fn repeats_after(&mut self, event: &Event) -> Option<u32> {
        match event {
            Event::LookTaken { look, .. } => self.starts.retain(|start| !look.spares(start)),
            // The first start begins only after the machine was looked at and everything was built.
            Event::StartBegun { .. } if self.ended == 0 => self.began = Instant::now(),
            Event::StartFinished { start: number, .. } => {
                self.ended += 1;
                let repeat = self.starts.iter().find(|start| start.number == *number)?.repeat;
                let is_last = self.starts.iter().all(|start| start.repeat != repeat || start.number <= *number);
                let enough = repeat >= estimate::MIN_REPEATS as u32;
                let affordable = self.spent <= self.began.elapsed().mul_f64(MAX_SHARE);
                return (is_last && enough && affordable).then_some(repeat);
            }
            _ => {}
        }
        None
    }

    /// Notes that a forecast took so long.
    pub(crate) fn spend(&mut self, took: Duration) {
        self.spent += took;
    }

    /// The time that the last repeat of the plan takes, with starting and stopping its systems.
    pub(crate) fn time_of_repeat(&self) -> Duration {
        let last = self.starts.iter().map(|start| start.repeat).max();
        let in_last = self.starts.iter().filter(|start| Some(start.repeat) == last).count();
        self.began.elapsed().mul_f64(in_last.max(1) as f64 / f64::from(self.ended.max(1)))
    }
}

/// The forecast of when the goal is reached, after `done` repeats, in a line; none where nothing can be said.
pub(crate) fn in_words(
    (analysis, goal): (&Analysis, Goal),
    plan: &Plan,
    done: u32,
    time_of_repeat: Duration,
) -> Option<String> {
    let forecast = forecast(analysis, goal)?;
    let left = plan.repeats.saturating_sub(done) as usize;
    let unit = if plan.design.is_trials() || plan.conditions.len() > 1 { "repeat" } else { "start" };
    let spans = Spans { unit, time_of_repeat };
    let of_plan = match left {
        0 => "the plan is at its end".to_owned(),
        left => format!("the plan has {} left, about {}", spans.units(left), spans.takes(left)),
    };
    let with_interval = forecast.decided.len() + forecast.in_time.len() + forecast.unforeseeable.len();
    let count = with_interval + forecast.without_interval.len();
    let more = |needed: usize| needed.saturating_sub(done as usize).max(1);
    let said = match (forecast.in_time.last(), forecast.unforeseeable.first()) {
        (None, None) if forecast.without_interval.is_empty() => {
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
            if !forecast.without_interval.is_empty() {
                parts.push(format!("{} without an interval yet", forecast.without_interval.len()));
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
        // Two conditions, the second of which runs no further after four repeats.
        let start = |number: u32| Start {
            number,
            block: number,
            repeat: number.div_ceil(2),
            attempt: 1,
            extended: false,
            position: 1,
            condition: (number % 2) as usize,
            variants: vec![0],
        };
        let starts = (1..=12).map(start).collect();
        let mut forecaster = Forecaster { starts, ended: 0, began: Instant::now(), spent: Duration::ZERO };
        let ended =
            |start| Event::StartFinished { start, validity: Validity::Valid, iterations: 1, errors: 0, others: None };
        let due = |numbers: &[u32], forecaster: &mut Forecaster| -> Vec<Option<u32>> {
            numbers.iter().map(|number| forecaster.repeats_after(&ended(*number))).collect()
        };
        assert_eq!(due(&[4, 5, 6, 99, 7, 8], &mut forecaster), [None, None, Some(3), None, None, Some(4)]);
        let look = Look { repeats: 4, decided: false, conditions: vec![0] };
        assert_eq!(forecaster.repeats_after(&Event::LookTaken { look, spared: 2, time_spared: Duration::ZERO }), None);
        assert_eq!(due(&[9], &mut forecaster), [Some(5)]);
        forecaster.spend(Duration::from_secs(600));
        assert_eq!(due(&[11], &mut forecaster), [None], "too dear for a run that has just begun");
    }
}
