//! Checks measures of scripts' own metrics against the metrics that the loaded scripts make.

use crate::document::{Diagnostic, Fault, Span, all_of, did_you_mean};
use crate::study::Study;
use plimsoll_model::measure::{Measure, Series};
use plimsoll_model::record::Metric;
use std::collections::BTreeMap;

/// What a script makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptMetrics {
    /// Its file.
    pub script: String,
    /// Its own metrics, by name.
    pub metrics: BTreeMap<String, Metric>,
}

impl ScriptMetrics {
    fn has(&self, (metric, name): (Metric, &str)) -> bool {
        self.metrics.get(name) == Some(&metric)
    }

    /// What was meant by a measure of a metric that it does not make.
    fn instead(&self, measure: &Measure, name: &str) -> String {
        let measures: Vec<String> = self
            .metrics
            .iter()
            .map(|(name, metric)| of_metric(*metric, name, &measure.statistic.to_string()))
            .collect();
        let known = || measures.iter().map(String::as_str);
        if let Some(metric) = self.metrics.get(name) {
            let meant = of_metric(*metric, name, &measure.statistic.to_string());
            format!("`{name}` is a {}: measure `{meant}`", metric.name())
        } else if let Some(meant) = did_you_mean(&measure.to_string(), known()) {
            meant
        } else if measures.is_empty() {
            "the script makes no metrics of its own".to_owned()
        } else {
            format!("of the script's own metrics there are {}", all_of(known()))
        }
    }
}

/// A measure of a metric: with this statistic, or the usual one where the metric does not have it.
fn of_metric(metric: Metric, name: &str, statistic: &str) -> String {
    let wanted = format!("{}:{name}.{statistic}", metric.name());
    let usual = match metric {
        Metric::Counter => "count",
        Metric::Rate => "ratio",
        Metric::Gauge | Metric::Trend => "p95",
    };
    if wanted.parse::<Measure>().is_ok() { wanted } else { format!("{}:{name}.{usual}", metric.name()) }
}

impl Study {
    /// The measures of metrics that scripts do not make. What decides needs all scripts; what is only shown needs one.
    #[must_use]
    pub fn check_metrics(&self, scripts: &[ScriptMetrics]) -> Vec<Diagnostic> {
        let decide = self.decide.iter().map(|decision| (&decision.measure, true));
        let shown = self.report.measures.iter().map(|measure| (measure, false));
        decide.chain(shown).filter_map(|(measure, decides)| self.check_metric(measure, decides, scripts)).collect()
    }

    fn check_metric(&self, measure: &Measure, decides: bool, scripts: &[ScriptMetrics]) -> Option<Diagnostic> {
        let Series::Custom(metric, name) = &measure.series else { return None };
        let lacking: Vec<&ScriptMetrics> = scripts.iter().filter(|script| !script.has((*metric, name))).collect();
        let first = lacking.first().filter(|_| decides || lacking.len() == scripts.len())?;
        let message = format!("`{}` has no {} `{name}`", first.script, metric.name());
        let fault = Fault::error(&self.place_of(&measure.to_string()), message);
        Some(self.tables.source.diagnostic(fault.help(first.instead(measure, name))))
    }

    /// Where a measure stands in the study; its begin, where it is written in another way.
    fn place_of(&self, measure: &str) -> Span {
        let start = self.tables.source.text().find(measure);
        start.map_or(0..0, |start| start..start + measure.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(decide: &str, report: &str) -> Study {
        let text = format!(
            "title = 't'\nquestion = 'q'\n[factors]\nrev = {{ levels = ['a', 'b'], compare = true, baseline = 'a' }}\n\
             [workload]\nscript = 'shop-{{rev}}.js'\n[load]\nusers = 1\nduration = '10s'\n\
             [decide]\nmeasures = [{decide}]\n[report]\nmeasures = [{report}]\n"
        );
        let (study, diagnostics) = crate::read("study.toml", &text, None, std::path::Path::new("."), &[0]);
        study.unwrap_or_else(|| panic!("{diagnostics:?}"))
    }

    fn found(decide: &str, report: &str, scripts: &[&[(&str, Metric)]]) -> Vec<String> {
        let scripts: Vec<ScriptMetrics> = scripts
            .iter()
            .zip(["shop-a.js", "shop-b.js"])
            .map(|(metrics, script)| ScriptMetrics {
                script: script.to_owned(),
                metrics: metrics.iter().map(|(name, metric)| ((*name).to_owned(), *metric)).collect(),
            })
            .collect();
        study(decide, report).check_metrics(&scripts).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_decides_is_made_by_all_scripts_and_what_is_shown_by_one() {
        let (one, both): (&[_], &[_]) =
            (&[("lock", Metric::Trend)], &[("lock", Metric::Trend), ("wait", Metric::Trend)]);
        assert!(found("'trend:lock.p95'", "'trend:wait.p95'", &[one, both]).is_empty());
        let faults = found("'trend:wait.p95'", "", &[one, both]);
        assert!(matches!(&faults[..], [one] if one.contains("`shop-a.js` has no trend `wait`")), "{faults:?}");
        assert_eq!(found("'iterations.rate'", "'trend:lok.p90'", &[one, both]).len(), 1);
    }

    #[test]
    fn a_fault_stands_at_its_measure_and_says_what_was_meant() {
        let script: &[_] = &[("lock", Metric::Trend), ("orders", Metric::Counter)];
        for (measure, help) in [
            ("trend:lok.p90", "did you mean `trend:lock.p90`?"),
            ("trend:orders.p90", "`orders` is a counter: measure `counter:orders.count`"),
            ("gauge:unheard_of.max", "there are `trend:lock.max` and `counter:orders.count`"),
        ] {
            let faults = found(&format!("'{measure}'"), "", &[script]);
            assert!(faults[0].starts_with("study.toml:11:14: error:"), "{faults:?}");
            assert!(faults[0].ends_with(help), "{faults:?}");
        }
        let none = found("'trend:lok.p90'", "", &[&[]]);
        assert!(none[0].ends_with("the script makes no metrics of its own"), "{none:?}");
    }
}
