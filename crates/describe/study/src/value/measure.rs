//! Measures, as studies name them, and what was meant by other names.

use super::scalar::{Problem, Scalar};
use crate::document::did_you_mean;
use plimsoll_model::factor::Level;
use plimsoll_model::measure::{FORMS, Measure, PERCENTILES, Series};
use serde_json::{Value, json};

impl Scalar for Measure {
    const EXPECTED: &'static str = "a measure such as \"iteration_duration.p95\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        let measure: Measure = text.parse().map_err(|_| {
            let problem = Problem::new(format!("must be a measure, which \"{text}\" is not"));
            let meant = common_measure(text).or_else(|| nearest_measure(text));
            problem.help(meant.unwrap_or_else(|| format!("measures are {FORMS}")))
        })?;
        match &measure.series {
            Series::Custom(_, name) if counterpart_of_k6(name).is_some() => {
                let problem =
                    Problem::new(format!("must be a metric of the script's own, and `{name}` is one of k6's"));
                Err(problem.maybe_help(common_measure(&format!("{name}.{}", measure.statistic))))
            }
            _ => Ok(measure),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "description": FORMS, "pattern": "^[a-z_]+(:.+)?\\.(avg|min|med|max|count|rate|ratio|total|p[0-9.]+)$" })
    }
}

/// The measure that was meant by words that other tools, or people, use for it.
fn common_measure(text: &str) -> Option<String> {
    let (series, statistic) = text.split_once('.').unwrap_or((text, "p95"));
    let (word, name) =
        series.split_once(':').map_or((series, String::new()), |(word, name)| (word, format!(":{name}")));
    let word = word.to_lowercase();
    let series = match word.as_str() {
        "throughput" | "rps" | "qps" | "tps" => return Some("did you mean `iterations.rate`?".to_owned()),
        "notpm" | "tpmc" => return Some("did you mean `new_orders.rate`?".to_owned()),
        "latency" | "latencies" => "request_duration",
        other => match counterpart_of_k6(other) {
            Some(Counterpart::Series(series)) => series,
            Some(Counterpart::Measure(measure)) => return Some(format!("did you mean `{measure}`?")),
            Some(Counterpart::Nothing(instead)) => return Some(instead.to_owned()),
            None => other,
        },
    };
    let statistic = match statistic.to_lowercase().as_str() {
        "mean" | "average" => "avg".to_owned(),
        "median" => "med".to_owned(),
        other => known_percentile(other).unwrap_or_else(|| other.to_owned()),
    };
    let meant = format!("{series}{name}.{statistic}");
    meant.parse::<Measure>().ok().map(|_| format!("did you mean `{meant}`?"))
}

/// The counterpart of a metric of k6.
#[derive(Clone, Copy)]
enum Counterpart {
    /// A series with the same statistics.
    Series(&'static str),
    /// One measure, whatever the statistic.
    Measure(&'static str),
    /// Nothing that is the same: what to measure instead.
    Nothing(&'static str),
}

/// The counterpart of k6's own metric of this name, where it has another name here.
fn counterpart_of_k6(name: &str) -> Option<Counterpart> {
    Some(match name {
        "http_req_duration" | "grpc_req_duration" => Counterpart::Series("request_duration"),
        "http_req_waiting" => Counterpart::Series("time_to_first_byte"),
        "http_req_connecting" | "http_req_tls_handshaking" => Counterpart::Series("connect_duration"),
        "http_req_blocked" | "http_req_sending" | "http_req_receiving" => Counterpart::Nothing(
            "it is not kept apart: measure `request_duration.p95`, `time_to_first_byte.p95` or `connect_duration.p95`",
        ),
        "http_reqs" => Counterpart::Measure("requests.rate"),
        "http_req_failed" => Counterpart::Measure("errors.ratio"),
        "dropped_iterations" => Counterpart::Measure("failed_iterations.count"),
        "checks" => Counterpart::Measure("checks.ratio"),
        "group_duration" => Counterpart::Nothing(
            "groups are not timed apart: let the script add their times to a Trend, and measure `trend:NAME.p95`",
        ),
        "vus" | "vus_max" => Counterpart::Nothing("how many users there are is what `load` says, and no result"),
        _ => return None,
    })
}

/// The statistic nearest to `95th`, `95%`, `p(95)` or `p99.999`.
fn known_percentile(text: &str) -> Option<String> {
    let digits = text.trim_start_matches('p').trim_end_matches("th").trim_end_matches('%');
    let number: f64 = digits.trim_start_matches('(').trim_end_matches(')').parse().ok()?;
    match number {
        0.0 => Some("min".to_owned()),
        100.0 => Some("max".to_owned()),
        _ => (0.0..100.0)
            .contains(&number)
            .then(|| format!("p{}", number.clamp(*PERCENTILES.start(), *PERCENTILES.end()))),
    }
}

/// The measure that was meant, when its series is misspelt or its statistic fits another.
fn nearest_measure(text: &str) -> Option<String> {
    const SERIES: [&str; 23] = [
        "iteration_duration",
        "request_duration",
        "grpc_req_duration",
        "http_req_duration",
        "response_time",
        "time_to_first_byte",
        "connect_duration",
        "open_duration",
        "data_duration",
        "sync_duration",
        "close_duration",
        "subrequest_duration",
        "iterations",
        "requests",
        "subrequests",
        "new_orders",
        "data_received",
        "data_sent",
        "errors",
        "failed_iterations",
        "checks",
        "cpu",
        "memory",
    ];
    const STATISTICS: [&str; 11] = ["avg", "min", "med", "max", "p90", "p95", "p99", "p99.9", "count", "rate", "ratio"];
    let (series, statistic) = text.split_once('.').unwrap_or((text, "p95"));
    let all = SERIES.iter().flat_map(|series| STATISTICS.iter().map(move |statistic| format!("{series}.{statistic}")));
    let all: Vec<String> = all.filter(|measure| measure.parse::<Measure>().is_ok()).collect();
    let same_statistic = all.iter().filter(|measure| measure.ends_with(&format!(".{statistic}")));
    let same_series = all.iter().filter(|measure| measure.starts_with(&format!("{series}.")));
    let near = did_you_mean(&format!("{series}.{statistic}"), same_statistic.map(String::as_str));
    near.or_else(|| same_series.map(|measure| format!("did you mean `{measure}`?")).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_measure_finds_its_neighbour() {
        for (wrong, near) in [
            ("iteration_duratoin.p95", "iteration_duration.p95"),
            ("iterations.p95", "iterations.count"),
            ("iteration_duration", "iteration_duration.p95"),
            ("cpu.rate", "cpu.avg"),
        ] {
            assert!(nearest_measure(wrong).expect(wrong).contains(near), "{wrong}: {:?}", nearest_measure(wrong));
        }
        assert_eq!(nearest_measure("beauty.most"), None);
    }

    #[test]
    fn a_measure_by_a_common_name_is_recognised() {
        for (common, ours) in [
            ("request_duration.95th", "request_duration.p95"),
            ("request_duration.p99.999", "request_duration.p99.99"),
            ("request_duration.p100", "request_duration.max"),
            ("throughput", "iterations.rate"),
            ("rps", "iterations.rate"),
            ("latency", "request_duration.p95"),
            ("latency.median", "request_duration.med"),
            ("http_req_duration.p(95)", "request_duration.p95"),
            ("http_req_waiting:cart.p95", "time_to_first_byte:cart.p95"),
            ("http_req_tls_handshaking.avg", "connect_duration.avg"),
            ("http_reqs.rate", "requests.rate"),
            ("http_req_failed.rate", "errors.ratio"),
            ("checks.rate", "checks.ratio"),
            ("dropped_iterations.count", "failed_iterations.count"),
        ] {
            assert_eq!(common_measure(common), Some(format!("did you mean `{ours}`?")), "{common}");
        }
        for other in ["beauty", "iterations.p95", "request_duration.infth", "request_duration.-5th"] {
            assert_eq!(common_measure(other), None, "{other}");
        }
    }

    #[test]
    fn a_metric_of_k6_is_none_of_the_scripts_own() {
        let read = |text: &str| Measure::from_level(&Level::Text(text.to_owned()));
        assert!(read("trend:waiting.p95").is_ok());
        for text in ["trend:http_req_waiting.p95", "trend:group_duration.p95", "counter:http_reqs.rate"] {
            assert!(read(text).is_err(), "{text}");
        }
        let help = common_measure("group_duration.avg").expect("a word on it");
        assert!(help.contains("a Trend"), "{help}");
    }
}
