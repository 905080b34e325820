//! Warns where trials cannot have as many values as the percentiles that decide take.

use crate::document::{Fault, Faults};
use crate::study::Study;
use plimsoll_model::factor::combinations;
use plimsoll_model::load::{Arrivals, LoadModel, LoadProfile, Stop, Think};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::record::Part;
use plimsoll_model::start::Turns;
use plimsoll_model::study::Decision;
use std::time::Duration;

/// Values that must lie beyond a percentile, on its farther side, for it to mean something: the
/// analysis gives no value of a trial that has fewer.
const VALUES_BEYOND: f64 = 10.0;

/// Warns where think time, rate or a number of iterations leaves a trial too few values for a
/// percentile among the measures that decide, once for each of these, with the load that falls short
/// the most. Only load that stays the same is looked at. In turns a variant has all of its slices on a start.
pub(crate) fn warn(study: &Study, faults: &mut Faults) {
    let steps = study.tables.workload.most_steps();
    // The loads of a search last as long as the study says, whether variants alternate or not.
    let turns = study.design().turns().filter(|_| !study.searches());
    let mut least: Option<MaxIterations> = None;
    for assignment in combinations(study.factors.iter()) {
        // What cannot be resolved has been reported.
        let reach = study.tables.load(&assignment, faults).and_then(|load| MaxIterations::of(&load, turns));
        least = match (least, reach) {
            (Some(least), Some(reach)) if reach.iterations < least.iterations => Some(reach),
            (None, reach) => reach,
            (least, _) => least,
        };
    }
    let Some(least) = least else { return };
    for measure in study.decide.iter().map(|decision| &decision.measure) {
        let Some((values, noun, in_iteration)) = values_needed(measure, steps) else { continue };
        let most = (least.iterations * in_iteration + 1e-6).floor();
        if most < values {
            let message = format!("{} takes {values} {noun}; {}", measure.statistic, least.in_words(most));
            let help = match turns {
                None => {
                    "measure for longer or load more, or decide by a percentile nearer to the median: where a trial \
                     has fewer, it has no value"
                }
                Some(_) => {
                    "let a start have more or longer slices (`count` and `slice` of `[turns]`), load more, or decide \
                     by a percentile nearer to the median: where a start has fewer, it has no value"
                }
            };
            faults.add(Fault::warning(&study.tables.load.length_span(), message).help(help));
        }
    }
}

/// How long the measures that decide take for the values of their percentiles, under the condition under which that is
/// longest; none where the load does not tell. Replies of users that think are taken to need as long as the thinking.
pub(crate) fn time_needed(study: &Study) -> Option<Duration> {
    let steps = study.tables.workload.most_steps();
    let needed = |decision: &Decision| {
        let (values, _, in_iteration) = values_needed(&decision.measure, steps)?;
        Some(values / in_iteration)
    };
    let iterations = study.decide.iter().filter_map(needed).max_by(f64::total_cmp)?;
    let mut ignored = Faults::new(study.tables.source.clone());
    let rate = |assignment| match study.tables.load(&assignment, &mut ignored)?.model {
        LoadModel::Open { rate, .. } => Some(rate.start),
        LoadModel::Closed { users, think } => Some(users.start / (2.0 * think.mean())),
    };
    let slowest = combinations(study.factors.iter()).into_iter().filter_map(rate).min_by(f64::total_cmp)?;
    (slowest > 0.0 && slowest.is_finite()).then(|| Duration::from_secs_f64((iterations / slowest).min(LONG)))
}

/// More seconds than any slice has.
const LONG: f64 = 1e6;

/// How many values a percentile takes, what they are, and how many of them an iteration has.
fn values_needed(measure: &Measure, steps: Option<usize>) -> Option<(f64, &'static str, f64)> {
    let Statistic::Percentile(percentile) = measure.statistic else { return None };
    let values = (VALUES_BEYOND / (1.0 - percentile.max(100.0 - percentile) / 100.0)).round();
    match &measure.series {
        Series::IterationDuration => Some((values, "iterations", 1.0)),
        // Nobody knows how many requests an exchange of storage takes.
        Series::PartDuration(Part::Subrequest, _) => None,
        Series::RequestDuration(name)
        | Series::ResponseTime(name)
        | Series::FirstByte(name)
        | Series::PartDuration(_, name) => {
            let in_iteration = steps? as f64;
            Some((values, "requests", if name.is_some() { 1.0 } else { in_iteration }))
        }
        _ => None,
    }
}

/// The most iterations that a trial can have, and what limits them.
struct MaxIterations {
    iterations: f64,
    /// What does them: `1 user with 100 ms of thinking does`.
    does: String,
    /// Over which time, in words, where time is what ends it.
    within: Option<String>,
    /// True if chance draws their number, and may draw one as low as this.
    by_chance: bool,
}

/// How many standard deviations below the mean chance may draw the number of arrivals of a trial.
const DEVIATIONS: f64 = 3.0;

impl MaxIterations {
    /// None where nothing but the system limits them, or the load changes. With turns, those of all slices on a start.
    fn of(load: &LoadProfile, turns: Option<Turns>) -> Option<MaxIterations> {
        let (LoadModel::Closed { users: profile, .. } | LoadModel::Open { rate: profile, .. }) = &load.model;
        if !profile.is_constant() || load.stop.feedback().is_some() {
            return None;
        }
        let (limit, within) = match turns {
            None => (load.stop.limit(), span(load.stop.limit())),
            Some(Turns { count, slice, .. }) => (slice * count, format!("{count} slices of {}", span(slice))),
        };
        let by_time = MaxIterations::by_time(&load.model, limit, within);
        let count = match (load.stop, &load.model) {
            (Stop::Iterations { count, .. }, _) => count as f64,
            (Stop::IterationsPerUser { count, .. }, LoadModel::Closed { users, .. }) => count as f64 * users.start,
            _ => return by_time,
        };
        let by_count = MaxIterations {
            iterations: count,
            does: "a trial of this study does".to_owned(),
            within: None,
            by_chance: false,
        };
        Some(by_time.filter(|by_time| by_time.iterations < count).unwrap_or(by_count))
    }

    fn by_time(model: &LoadModel, limit: Duration, within: String) -> Option<MaxIterations> {
        let (each, does) = match model {
            LoadModel::Closed { users, think } => {
                let (Think::Constant(least) | Think::Uniform { from: least, .. }) = think else { return None };
                let (noun, verb) = if users.start == 1.0 { ("user", "does") } else { ("users", "do") };
                let least_words = if matches!(think, Think::Uniform { .. }) { "at least " } else { "" };
                let think = span(*least);
                let does = format!("{} {noun} with {least_words}{think} of thinking {verb}", users.start);
                (users.start / least.as_secs_f64(), does)
            }
            LoadModel::Open { rate, .. } => {
                let (noun, verb) = if rate.start == 1.0 { ("arrival", "does") } else { ("arrivals", "do") };
                (rate.start, format!("{} {noun} per second {verb}", rate.start))
            }
        };
        // The number of random arrivals has a Poisson distribution, whose variance is its mean.
        let by_chance = matches!(model, LoadModel::Open { arrivals: Arrivals::Poisson, .. });
        let mean = each * limit.as_secs_f64();
        let iterations = if by_chance { (mean - DEVIATIONS * mean.sqrt()).max(0.0) } else { mean };
        // Without think time, only the system limits them.
        each.is_finite().then_some(MaxIterations { iterations, does, within: Some(within), by_chance })
    }

    /// What does how many at most, and in which time.
    fn in_words(&self, most: f64) -> String {
        let within = self.within.as_ref().map_or_else(String::new, |within| format!(" in {within}"));
        match self.by_chance {
            true => format!("{} as few as {most}{within}, by chance", self.does),
            false => format!("{} at most {most}{within}", self.does),
        }
    }
}

/// A span for people: `100 ms`, `1.5 s`.
fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 1.0 { format!("{} ms", span.as_micros() as f64 / 1e3) } else { format!("{seconds} s") }
}

#[cfg(test)]
mod tests {
    use crate::document::{Diagnostic, Severity};
    use std::path::Path;

    /// The faults of a study in trials with this load that decides by these measures.
    fn said(load: &str, measures: &str) -> Vec<String> {
        let line = |found: Diagnostic| format!("{}: {}", found.line, found.message);
        found("design = 'trials'", load, measures).into_iter().map(line).collect()
    }

    /// The warnings about a study with this line for its design.
    fn found(design: &str, load: &str, measures: &str) -> Vec<Diagnostic> {
        let text = format!(
            "title = 't'\nquestion = 'q'\n{design}\n[factors]\n\
             p = {{ levels = ['/a', '/b'], compare = true, baseline = '/a' }}\n\
             users = [5, 1, 50]\nseconds = [10]\n[workload]\nprotocol = 'http'\ntarget = 'localhost:80'\n\
             steps = [{{ get = '{{p}}' }}, {{ get = '/{{users}}{{seconds}}' }}]\n[load]\n{load}\n[decide]\nmeasures = [{measures}]"
        );
        let (study, diagnostics) = crate::read("study.toml", &text, None, Path::new("/"), &[0]);
        assert!(study.is_some(), "{diagnostics:?}");
        assert!(diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning));
        diagnostics
    }

    #[test]
    fn what_a_trial_cannot_have_is_named_with_the_reason() {
        const P95: &str = "'iteration_duration.p95'";
        let closed = "users = '{users}'\nthink = '100ms'\nduration = '{seconds}s'";
        for (load, measures, says) in [
            (closed, P95, "15: p95 takes 200 iterations; 1 user with 100 ms of thinking does at most 100 in 10 s"),
            (closed, "'iteration_duration.p5'", "15: p5 takes 200 iterations; 1 user with 100 ms"),
            (
                closed,
                "'request_duration.p99'",
                "15: p99 takes 1000 requests; 1 user with 100 ms of thinking does at most 200",
            ),
            (
                "users = 2\nthink = { uniform = ['1s', '3s'] }\nduration = '1m'",
                P95,
                "15: p95 takes 200 iterations; 2 users with at least 1 s of thinking do at most 120 in 60 s",
            ),
            (
                "rate = 19.5\nduration = '10s'",
                "'response_time:GET {p}.p95'",
                "14: p95 takes 200 requests; 19.5 arrivals per second do at most 195 in 10 s",
            ),
            (
                "rate = 50\narrivals = 'poisson'\nduration = '4s'",
                P95,
                "15: p95 takes 200 iterations; 50 arrivals per second do as few as 157 in 4 s, by chance",
            ),
            (
                "users = 3\niterations_per_user = 20\nduration = '9s'",
                P95,
                "15: p95 takes 200 iterations; a trial of this study does at most 60",
            ),
            (
                "rate = 9\niterations = 500\nduration = '9s'",
                P95,
                "15: p95 takes 200 iterations; 9 arrivals per second do at most 81",
            ),
        ] {
            let said = said(load, measures);
            assert!(matches!(said.as_slice(), [only] if only.starts_with(says)), "{load}: {said:?}");
        }
    }

    #[test]
    fn in_turns_the_slices_of_a_start_count_and_not_the_duration_of_the_load() {
        const P99: &str = "'iteration_duration.p99'";
        for (design, load, says) in [
            ("", "rate = 10\nduration = '110s'", "10 arrivals per second do at most 800 in 40 slices of 2 s"),
            (
                "turns = { count = 8, slice = '300ms' }",
                "rate = 100\nduration = '10s'",
                "100 arrivals per second do at most 240 in 8 slices of 300 ms",
            ),
        ] {
            let found = found(design, load, P99);
            let [only] = found.as_slice() else { panic!("{load}: {found:?}") };
            assert_eq!(only.message, format!("p99 takes 1000 iterations; {says}"));
            let help = only.help.as_deref().unwrap_or_default();
            assert!(help.contains("`count` and `slice` of `[turns]`"), "{help}");
        }
        let long = found("turns = { count = 100, slice = '2s' }", "rate = 10\nduration = '5s'", P99);
        assert!(long.is_empty(), "2000 in all: {long:?}");
    }

    #[test]
    fn of_requests_in_loops_nobody_knows_how_many_there_are() {
        let of = |steps: &str| {
            let text = format!(
                "title = 't'\nquestion = 'q'\nfactors.p = {{ levels = ['a', 'b'], compare = true, baseline = 'a' }}\n\
                 [workload]\nprotocol = 'http'\ntarget = 'localhost:80'\nsteps = [{steps}]\n\
                 [load]\nrate = 10\nduration = '10s'\n[decide]\nmeasure = 'request_duration:GET /{{p}}.p95'"
            );
            crate::read("study.toml", &text, None, Path::new("/"), &[0]).1.len()
        };
        assert_eq!(of("{ get = '/{p}' }, { pause = '1ms' }"), 1);
        assert_eq!(of("{ repeat = 3, steps = [{ get = '/{p}' }] }"), 0);
        assert_eq!(of("{ get = '/{p}' }, { pause = '1ms' }, { get = '/{p}' }"), 0);
    }

    #[test]
    fn what_a_trial_may_have_is_not_doubted() {
        const P95: &str = "'iteration_duration.p95'";
        for (load, measures) in [
            ("users = 1\nduration = '1s'", P95),
            ("users = 2\nthink = '100ms'\nduration = '10s'", P95),
            ("users = 1\nthink = '100ms'\nduration = '10s'", "'iteration_duration.med', 'iterations.rate'"),
            ("users = 1\nthink = '100ms'\nduration = '10s'", "'request_duration.p95'"),
            ("users = 1\nthink = { exponential = '1s' }\nduration = '10s'", P95),
            ("users = 1\nthink = '1s'\nstages = [{ ramp = '9s', to = 900 }]", P95),
            ("rate = 20\nduration = '10s'", P95),
            ("rate = 50\narrivals = 'poisson'\nduration = '5s'", P95),
        ] {
            assert_eq!(said(load, measures), [""; 0], "{load}");
        }
    }
}
