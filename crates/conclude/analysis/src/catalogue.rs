//! The measures that a report shows: those that decide, those that the study asks for, and those of
//! every report.

use crate::distinct::distinct;
use crate::input::Input;
use crate::measure::TrialReader;
use crate::samples;
use plimsoll_model::exposed::MetricKind;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::record::{Metric, Part, Subject};
use plimsoll_model::sql::{NEW_ORDER, NEW_ORDER_ROLLBACK};
use plimsoll_model::study::{Decision, StudyFacts};
use std::collections::{BTreeMap, BTreeSet};

/// The statistics of a duration in every report.
const OF_DURATIONS: [Statistic; 7] = [
    Statistic::Avg,
    Statistic::Min,
    Statistic::Med,
    Statistic::Max,
    Statistic::Percentile(90.0),
    Statistic::Percentile(95.0),
    Statistic::Percentile(99.0),
];

/// The statistics of a part of a request.
const OF_PARTS: [Statistic; 3] = [Statistic::Avg, Statistic::Med, Statistic::Percentile(95.0)];

/// The decision that the answer starts with. If the study names none: p95 of the iteration, with a
/// margin that suits tail percentiles.
#[must_use]
pub fn headline(facts: &StudyFacts) -> Decision {
    let fallback =
        || Decision { measure: Measure::new(Series::IterationDuration, Statistic::Percentile(95.0)), margin: 0.1 };
    facts.decide.first().cloned().unwrap_or_else(fallback)
}

/// All measures that decide, with their margins, the headline first; never empty.
#[must_use]
pub fn decisions(facts: &StudyFacts) -> Vec<Decision> {
    if facts.decide.is_empty() { vec![headline(facts)] } else { facts.decide.clone() }
}

/// The margin of `measure`, if it decides.
pub(crate) fn margin(facts: &StudyFacts, measure: &Measure) -> Option<f64> {
    decisions(facts).iter().find(|decision| &decision.measure == measure).map(|decision| decision.margin)
}

/// The measures of the analysis, each once; those that decide come first.
pub(crate) fn measures(input: &Input, readers: &[TrialReader<'_>]) -> Vec<Measure> {
    let mut wanted: Vec<Measure> = decisions(&input.facts).into_iter().map(|decision| decision.measure).collect();
    wanted.extend(input.facts.report.measures.iter().cloned());
    wanted.extend(of_every_report(input, readers));
    let mut measures = distinct(wanted);
    let notes = input.notes();
    measures.iter_mut().for_each(|measure| notes.note(measure));
    measures
}

fn of_every_report(input: &Input, readers: &[TrialReader<'_>]) -> Vec<Measure> {
    let mut durations = vec![Series::RequestDuration(None), Series::IterationDuration];
    if input.facts.open_load {
        durations.insert(1, Series::ResponseTime(None));
    }
    if readers.iter().any(|reader| reader.tally(&Subject::Connect).is_some()) {
        durations.push(Series::ConnectDuration);
    }
    let names = request_names(readers);
    if names.len() > 1 {
        durations.extend(names.into_iter().map(|name| Series::RequestDuration(Some(name))));
    }
    let mut measures: Vec<Measure> = durations
        .into_iter()
        .flat_map(|series| OF_DURATIONS.map(|statistic| Measure::new(series.clone(), statistic)))
        .collect();
    measures.extend(of_parts(readers));
    let mut counts = vec![Series::DataReceived, Series::DataSent, Series::Iterations, Series::Requests];
    if recorded(readers).any(|subject| matches!(subject, Subject::Part(Part::Subrequest, _))) {
        counts.push(Series::Subrequests);
    }
    let delivers = recorded(readers).any(|subject| matches!(subject, Subject::Part(Part::Delivery, _)));
    if delivers {
        counts.push(Series::Deliveries);
    }
    if recorded(readers).any(|subject| *subject == Subject::Request(NEW_ORDER.to_owned())) {
        counts.push(Series::NewOrders);
    }
    for series in counts {
        measures.extend([Statistic::Count, Statistic::Rate].map(|statistic| Measure::new(series.clone(), statistic)));
    }
    measures.extend(of_failures(&Series::Errors));
    // Elsewhere an iteration fails only with an exchange, and reports show failed exchanges.
    if readers.iter().any(|reader| !reader.failed_without_exchange().is_empty()) {
        measures.extend(of_failures(&Series::FailedIterations));
    }
    if delivers {
        measures.extend(of_failures(&Series::LostDeliveries));
    }
    measures.extend(of_scripts(readers));
    measures.extend(of_systems(&samples::names_of_systems(input)));
    measures.extend(of_exposed(readers));
    measures
}

fn of_failures(series: &Series) -> [Measure; 2] {
    [Statistic::Count, Statistic::Ratio].map(|statistic| Measure::new(series.clone(), statistic))
}

/// The measures of the parts of each request that were timed separately.
fn of_parts(readers: &[TrialReader<'_>]) -> Vec<Measure> {
    let parts: BTreeSet<(&String, Part)> = recorded(readers)
        .filter_map(|subject| match subject {
            Subject::Part(part, name) => Some((name, *part)),
            _ => None,
        })
        .collect();
    let measures = |(name, part): (&String, Part)| {
        let series = Series::PartDuration(part, Some(name.clone()));
        OF_PARTS.map(|statistic| Measure::new(series.clone(), statistic))
    };
    parts.into_iter().flat_map(measures).collect()
}

/// The checks of scripts, and their own metrics.
fn of_scripts(readers: &[TrialReader<'_>]) -> Vec<Measure> {
    let subjects: BTreeSet<&Subject> = recorded(readers).collect();
    let mut measures = Vec::new();
    if subjects.iter().any(|subject| matches!(subject, Subject::Check(_))) {
        measures.push(Measure::new(Series::Checks(None), Statistic::Ratio));
    }
    for subject in subjects {
        match subject {
            Subject::Check(name) => measures.push(Measure::new(Series::Checks(Some(name.clone())), Statistic::Ratio)),
            Subject::Custom(metric, name) => {
                let series = Series::Custom(*metric, name.clone());
                let statistics: &[Statistic] = match metric {
                    Metric::Counter => &[Statistic::Count, Statistic::Rate],
                    Metric::Rate => &[Statistic::Ratio],
                    Metric::Gauge | Metric::Trend => &OF_DURATIONS,
                };
                measures.extend(statistics.iter().map(|statistic| Measure::new(series.clone(), *statistic)));
            }
            _ => {}
        }
    }
    measures
}

fn of_systems(systems: &[String]) -> Vec<Measure> {
    let mut names = vec![None];
    if systems.len() > 1 {
        names.extend(systems.iter().cloned().map(Some));
    }
    let both =
        |series: Series| [Statistic::Avg, Statistic::Max].map(|statistic| Measure::new(series.clone(), statistic));
    names.into_iter().flat_map(|name| [both(Series::Cpu(name.clone())), both(Series::Memory(name))]).flatten().collect()
}

/// The metrics that systems expose.
fn of_exposed(readers: &[TrialReader<'_>]) -> Vec<Measure> {
    use Statistic::{Avg, Count, Max, Percentile, Rate};
    let kinds: BTreeMap<&str, MetricKind> = readers.iter().flat_map(|reader| reader.exposed().kinds()).collect();
    let measures = |(name, kind): (&str, MetricKind)| {
        let statistics: &[Statistic] = match kind {
            MetricKind::Counter => &[Count, Rate],
            MetricKind::Gauge => &[Avg, Max],
            MetricKind::Histogram => &[Avg, Percentile(50.0), Percentile(95.0), Percentile(99.0), Rate],
            MetricKind::Summary => &[Avg, Rate],
        };
        let series = Series::Exposed(name.to_owned());
        statistics.iter().map(|statistic| Measure::new(series.clone(), *statistic)).collect::<Vec<Measure>>()
    };
    kinds.into_iter().flat_map(measures).collect()
}

/// The subjects of which anything was recorded.
fn recorded<'a>(readers: &'a [TrialReader<'_>]) -> impl Iterator<Item = &'a Subject> {
    let tallies = readers.iter().flat_map(|reader| &reader.load().tallies);
    tallies.filter(|(_, tally)| tally.count() > 0).map(|(subject, _)| subject)
}

fn request_names(readers: &[TrialReader<'_>]) -> BTreeSet<String> {
    recorded(readers)
        .filter_map(|subject| match subject {
            // A handful in each trial: too few for any percentile.
            Subject::Request(name) if name == NEW_ORDER_ROLLBACK => None,
            Subject::Request(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{input, start};

    #[test]
    fn what_decides_comes_first_and_nothing_twice() {
        let mut input = input(1, |_| start(1.0));
        input.facts.report.measures = vec!["iterations.rate".parse().expect("a measure")];
        let readers: Vec<TrialReader<'_>> = input.trials().map(TrialReader::new).collect();
        let names: Vec<String> = measures(&input, &readers).iter().map(ToString::to_string).collect();
        assert_eq!(names[..2], ["iteration_duration.p95", "iterations.rate"]);
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
        assert!(!names.iter().any(|name| name.starts_with("response_time") || name.starts_with("connect")));
    }
}
