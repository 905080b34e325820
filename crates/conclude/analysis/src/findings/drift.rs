//! Drift of the machine during the run.

use super::{Context, Finding, Severity};
use crate::quantity::change;
use crate::words;
use plimsoll_statistics::{TTest, mean};

/// Fewest trials of the baseline for a test of drift.
const MIN_TRIALS: usize = 6;

/// A drift is reported at this p-value or below.
const SIGNIFICANCE: f64 = 0.01;

/// Regresses the headline measure of the baseline on time, each condition around its own mean.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let points = points(context);
    let Some(line) = fit(&points, context.input.plan.conditions.len()) else { return Vec::new() };
    let measure = crate::catalogue::headline(&context.input.facts).measure;
    let unit = words::unit(&context.input.plan);
    let hours = line.span / 3.6e6;
    let (who, consequence) = match context.input.plan.describes() {
        true => (
            "The system",
            "What is described is the mean over that time; a run at another time can differ from it as much.",
        ),
        false => (
            "The baseline",
            "Pairs side by side take most of that out of the comparisons; the values of single conditions keep \
             it.",
        ),
    };
    let drift = Finding {
        severity: Severity::Caution,
        topic: "drift",
        sentence: format!(
            "{who} drifted over the run: its value ({}) changed by {} from the first to the last {unit}. {consequence}",
            words::measure(&measure),
            change((line.slope * line.span).exp())
        ),
        evidence: vec![format!(
            "correlation of its logarithm with time {:.2} over {} {unit}s in {hours:.1} hours (p = {:.4})",
            line.correlation,
            points.len(),
            line.p
        )],
    };
    vec![drift]
}

/// Pairs of the time in milliseconds and the logarithm of the value less the mean of its condition.
fn points(context: &Context<'_>) -> Vec<(f64, f64)> {
    let measure = crate::catalogue::headline(&context.input.facts).measure;
    let mut points = Vec::new();
    for condition in 0..context.input.plan.conditions.len() {
        let of_condition: Vec<(f64, f64)> = context
            .counted()
            .filter(|reader| reader.is_of(condition, 0))
            .filter_map(|reader| {
                let value = reader.value(&measure).ok().filter(|value| *value > 0.0)?;
                Some((reader.trial().start.summary.timing.started_unix_ms as f64, value.ln()))
            })
            .collect();
        let logs: Vec<f64> = of_condition.iter().map(|point| point.1).collect();
        let Some(centre) = mean(&logs) else { continue };
        points.extend(of_condition.into_iter().map(|(time, log)| (time, log - centre)));
    }
    points
}

struct Trend {
    slope: f64,
    span: f64,
    correlation: f64,
    p: f64,
}

/// The least-squares line through `points`, if its slope is significant. Each condition's mean has
/// cost a degree of freedom.
fn fit(points: &[(f64, f64)], conditions: usize) -> Option<Trend> {
    let df = points.len().checked_sub(conditions + 1).filter(|df| *df > 0)?;
    if points.len() < MIN_TRIALS {
        return None;
    }
    let (times, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (time, value) = (mean(&times)?, mean(&values)?);
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(t, v)| of(t - time, v - value)).sum::<f64>();
    let (tt, vv, tv) = (sum(&|t, _| t * t), sum(&|_, v| v * v), sum(&|t, v| t * v));
    if tt <= 0.0 || vv <= 0.0 {
        return None;
    }
    let correlation = tv / (tt * vv).sqrt();
    let t = correlation * (df as f64 / (1.0 - correlation * correlation).max(1e-12)).sqrt();
    let p = TTest { estimate: t, standard_error: 1.0, df: df as f64 }.p_two_sided(0.0);
    let span = times.iter().copied().fold(f64::MIN, f64::max) - times.iter().copied().fold(f64::MAX, f64::min);
    (p < SIGNIFICANCE).then_some(Trend { slope: tv / tt, span, correlation, p })
}
