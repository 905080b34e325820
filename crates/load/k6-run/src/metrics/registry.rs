//! The metrics of a run, and their sinks on one thread.

use super::{Contains, Kind, Sink, TagSet, builtin};
use plimsoll_model::suggestion::did_you_mean;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// All metrics of a run. They are known before users run, and the same on all threads.
#[derive(Clone, Debug)]
pub struct Registry {
    metrics: Vec<Metric>,
}

/// A metric.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// How it aggregates its samples.
    pub kind: Kind,
    /// The unit of its samples.
    pub contains: Contains,
    /// Its submetrics, each with a sink of its own.
    pub submetrics: Vec<Submetric>,
}

/// The samples of a metric that have certain tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submetric {
    /// Its name in the script: `http_req_duration{name:login}`.
    pub name: String,
    /// The tags that a sample must have.
    pub tags: Vec<(String, String)>,
}

/// The index of a metric in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MetricId(pub(super) usize);

/// Why a name has no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// It has characters that are not allowed.
    #[error("expected 2 to 128 letters, digits and underscores, and no digit first, found the metric name `{0}`")]
    Strange(String),
    /// The metric exists with another kind.
    #[error("expected one kind for the metric `{name}`, found a {found} beside a {known}")]
    Kind {
        /// The name.
        name: String,
        /// Its kind and unit.
        known: String,
        /// The kind and unit that were asked for.
        found: String,
    },
    /// A later user defines it, and the first one did not.
    #[error(
        "the metric `{0}` was not there when the script was first loaded: make it for all users, outside of functions"
    )]
    Late(String),
    /// The text is no selector of a submetric.
    #[error("expected `metric` or `metric{{tag:value,…}}`, found `{0}`")]
    Selector(String),
    /// There is no metric of that name.
    #[error("expected the name of a metric, found `{name}`, which neither k6 nor the script has{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// A suggestion: "; did you mean `vus`?".
        hint: String,
    },
}

/// The aggregated samples of one thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sinks {
    /// By metric.
    metrics: Vec<OfMetric>,
    /// The same by scenario and group, a sink for each metric; none unless the run asks for them.
    parts: Option<Parts>,
}

/// The sinks of a metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OfMetric {
    /// The sink of all samples.
    whole: Sink,
    submetrics: Vec<Sink>,
}

type Parts = BTreeMap<(String, String), Vec<Sink>>;

impl Default for Registry {
    /// With the metrics that every script has.
    fn default() -> Registry {
        let metric = |(name, kind, contains): &(&str, Kind, Contains)| Metric {
            name: (*name).to_owned(),
            kind: *kind,
            contains: *contains,
            submetrics: Vec::new(),
        };
        let mut registry = Registry { metrics: builtin::ALL.iter().map(metric).collect() };
        // k6 has this one even without a threshold.
        let expected = registry.select("http_req_duration{expected_response:true}");
        expected.expect("the metric is there");
        registry
    }
}

impl Registry {
    /// A metric of the script: the one of that name, or a new one.
    pub fn register(&mut self, name: &str, kind: Kind, contains: Contains) -> Result<MetricId, NameFault> {
        if let Some(MetricId(id)) = self.id(name) {
            let known = &self.metrics[id];
            if (known.kind, known.contains) == (kind, contains) {
                return Ok(MetricId(id));
            }
            let known = format!("{} of {} values", known.kind, known.contains);
            return Err(NameFault::Kind {
                name: name.to_owned(),
                known,
                found: format!("{kind} of {contains} values"),
            });
        }
        let usual = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !(2..=128).contains(&name.len())
            || !name.chars().all(usual)
            || name.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(NameFault::Strange(name.to_owned()));
        }
        self.metrics.push(Metric { name: name.to_owned(), kind, contains, submetrics: Vec::new() });
        Ok(MetricId(self.metrics.len() - 1))
    }

    /// The metric of a threshold's selector. If it names tags, also the index of the submetric, which gets a
    /// sink.
    pub fn select(&mut self, selector: &str) -> Result<(MetricId, Option<usize>), NameFault> {
        let strange = || NameFault::Selector(selector.to_owned());
        let (name, tags) = match selector.split_once('{') {
            None if selector.contains('}') => return Err(strange()),
            None => (selector, None),
            Some((name, tags)) => (name, Some(tags.strip_suffix('}').and_then(tags_of).ok_or_else(strange)?)),
        };
        let id = self.id(name).ok_or_else(|| self.unknown(name))?;
        let Some(tags) = tags else { return Ok((id, None)) };
        let submetrics = &mut self.metrics[id.0].submetrics;
        let index = submetrics.iter().position(|known| known.name == selector).unwrap_or_else(|| {
            submetrics.push(Submetric { name: selector.to_owned(), tags });
            submetrics.len() - 1
        });
        Ok((id, Some(index)))
    }

    fn unknown(&self, name: &str) -> NameFault {
        let hint = did_you_mean(name, self.metrics.iter().map(|metric| metric.name.as_str()));
        NameFault::Unknown { name: name.to_owned(), hint: hint.map(|hint| format!("; {hint}")).unwrap_or_default() }
    }

    /// The metric of this name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<MetricId> {
        self.metrics.iter().position(|metric| metric.name == name).map(MetricId)
    }

    /// A metric.
    #[must_use]
    pub fn metric(&self, MetricId(id): MetricId) -> &Metric {
        &self.metrics[id]
    }

    /// True for a metric of the script's own.
    #[must_use]
    #[inline]
    pub fn is_custom(&self, MetricId(id): MetricId) -> bool {
        id >= builtin::ALL.len()
    }

    /// All metrics, in the order in which they were defined.
    pub fn iter(&self) -> impl Iterator<Item = (MetricId, &Metric)> {
        self.metrics.iter().enumerate().map(|(id, metric)| (MetricId(id), metric))
    }
}

/// The tags of a selector: `a:b, "c":"d"`. At least one.
fn tags_of(text: &str) -> Option<Vec<(String, String)>> {
    let plain = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    text.split(',').map(|tag| tag.split_once(':').map(|(name, value)| (plain(name), plain(value)))).collect()
}

impl Metric {
    #[inline(never)]
    fn add_to_submetrics(&self, sinks: &mut [Sink], value: f64, tags: &TagSet<'_>, at: Duration) {
        let taking = self.submetrics.iter().zip(sinks).filter(|(submetric, _)| submetric.takes(tags));
        taking.for_each(|(_, sink)| sink.add(value, at));
    }
}

impl Submetric {
    fn takes(&self, tags: &TagSet<'_>) -> bool {
        self.tags.iter().all(|(name, value)| tags.get(name) == Some(value))
    }
}

impl Sinks {
    /// Empty sinks for all metrics of a registry.
    #[must_use]
    pub fn new(registry: &Registry) -> Sinks {
        let of_metric = |metric: &Metric| OfMetric {
            whole: Sink::new(metric.kind),
            submetrics: vec![Sink::new(metric.kind); metric.submetrics.len()],
        };
        Sinks { metrics: registry.metrics.iter().map(of_metric).collect(), parts: None }
    }

    /// Sinks that also aggregate the samples of each scenario and group.
    #[must_use]
    pub fn by_group(registry: &Registry) -> Sinks {
        Sinks { parts: Some(Parts::new()), ..Sinks::new(registry) }
    }

    /// Adds samples of one instant of the run with the same tags.
    #[inline]
    pub fn add(&mut self, registry: &Registry, samples: &[(MetricId, f64)], tags: &TagSet<'_>, at: Duration) {
        for (MetricId(id), value) in samples {
            let OfMetric { whole, submetrics } = &mut self.metrics[*id];
            whole.add(*value, at);
            if !submetrics.is_empty() {
                registry.metrics[*id].add_to_submetrics(submetrics, *value, tags, at);
            }
        }
        if self.parts.is_some() {
            self.add_to_parts(registry, samples, tags, at);
        }
    }

    #[inline(never)]
    fn add_to_parts(&mut self, registry: &Registry, samples: &[(MetricId, f64)], tags: &TagSet<'_>, at: Duration) {
        let (scenario, group) = (tags.get("scenario").unwrap_or_default(), tags.get("group").unwrap_or_default());
        let all_of_scenario = (!group.is_empty()).then_some("");
        for group in all_of_scenario.into_iter().chain([group]) {
            let key = (scenario.to_owned(), group.to_owned());
            let empty = || registry.metrics.iter().map(|metric| Sink::new(metric.kind)).collect();
            let part = self.parts.get_or_insert_default().entry(key).or_insert_with(empty);
            samples.iter().for_each(|(MetricId(id), value)| part[*id].add(*value, at));
        }
    }

    /// True if they are those of the metrics of a registry: what comes from another process need not be.
    #[must_use]
    pub fn are_of(&self, registry: &Registry) -> bool {
        let is_kind = |sink: &Sink, metric: &Metric| sink.kind() == metric.kind;
        let fits = |(own, metric): (&OfMetric, &Metric)| {
            let submetrics = &metric.submetrics;
            is_kind(&own.whole, metric)
                && own.submetrics.len() == submetrics.len()
                && own.submetrics.iter().all(|sink| is_kind(sink, metric))
        };
        let whole = |part: &[Sink]| {
            part.len() == registry.metrics.len()
                && part.iter().zip(&registry.metrics).all(|(sink, metric)| is_kind(sink, metric))
        };
        self.metrics.len() == registry.metrics.len()
            && self.metrics.iter().zip(&registry.metrics).all(fits)
            && self.parts.iter().flat_map(BTreeMap::values).all(|part| whole(part))
    }

    /// Merges the sinks of another thread.
    pub fn merge(&mut self, other: &Sinks) {
        for (own, other) in self.metrics.iter_mut().zip(&other.metrics) {
            own.whole.merge(&other.whole);
            own.submetrics.iter_mut().zip(&other.submetrics).for_each(|(own, other)| own.merge(other));
        }
        for (key, others) in other.parts.iter().flatten() {
            let parts = self.parts.get_or_insert_default();
            match parts.get_mut(key) {
                Some(own) => own.iter_mut().zip(others).for_each(|(own, other)| own.merge(other)),
                None => drop(parts.insert(key.clone(), others.clone())),
            }
        }
    }

    /// The scenarios with sinks of their own. The empty name stands for code outside of scenarios.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flatten().filter(|((_, group), _)| group.is_empty()).map(|((name, _), _)| name.as_str())
    }

    /// The sinks of a group in a scenario, by metric; none without a sample.
    #[must_use]
    pub fn part(&self, scenario: &str, group: &str) -> &[Sink] {
        let key = (scenario.to_owned(), group.to_owned());
        self.parts.as_ref().and_then(|parts| parts.get(&key)).map_or(&[], Vec::as_slice)
    }

    /// The sink of a metric, or of one of its submetrics.
    #[must_use]
    pub fn get(&self, MetricId(id): MetricId, submetric: Option<usize>) -> &Sink {
        let OfMetric { whole, submetrics } = &self.metrics[id];
        submetric.map_or(whole, |index| &submetrics[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submetrics_take_samples_with_their_tags() {
        let mut registry = Registry::default();
        let (id, login) = registry.select("http_reqs{name:login, \"method\":\"GET\"}").expect("a metric");
        assert_eq!(registry.select("http_reqs"), Ok((id, None)));
        let mut sinks = Sinks::new(&registry);
        let tags: [&[(&str, &str)]; 4] = [
            &[("name", "login"), ("method", "GET"), ("status", "200")],
            &[("name", "login"), ("method", "POST")],
            &[("method", "GET")],
            &[],
        ];
        tags.iter().for_each(|tags| sinks.add(&registry, &[(id, 1.0)], &TagSet::own(tags), Duration::ZERO));
        let mut merged = sinks.clone();
        merged.merge(&sinks);
        assert_eq!((sinks.get(id, None).samples(), sinks.get(id, login).samples()), (4, 1));
        assert_eq!((merged.get(id, None).samples(), merged.get(id, login).samples()), (8, 2));
    }

    #[test]
    fn sinks_cross_to_another_process_as_they_are() {
        let mut registry = Registry::default();
        let own = registry.register("own_trend", Kind::Trend, Contains::Default).expect("a metric");
        let mut sinks = Sinks::by_group(&registry);
        let tags: &[(&str, &str)] = &[("scenario", "one"), ("group", "::front")];
        for value in [0.0, -3.5, 1e-9, 7.0, 7.0, 1e12] {
            let samples = [(own, value), (builtin::VUS, value), (builtin::HTTP_REQS, 1.0)];
            sinks.add(&registry, &samples, &TagSet::own(tags), Duration::from_secs(1));
        }
        let bytes = rmp_serde::to_vec_named(&sinks).expect("plain data");
        let crossed: Sinks = rmp_serde::from_slice(&bytes).expect("its own bytes");
        assert_eq!(format!("{crossed:?}"), format!("{sinks:?}"));
        assert!(crossed.are_of(&registry));
        assert!(!crossed.are_of(&Registry::default()) && !Sinks::new(&Registry::default()).are_of(&registry));
    }

    #[test]
    fn scenarios_and_groups_are_kept_apart_where_that_is_wanted() {
        let registry = Registry::default();
        let tags: [&[(&str, &str)]; 4] = [
            &[("scenario", "one"), ("group", "")],
            &[("scenario", "one"), ("group", "::front")],
            &[("scenario", "one"), ("group", "::front::inner")],
            &[("group", "::setup")],
        ];
        let counted = |mut sinks: Sinks| {
            let one = [(builtin::HTTP_REQS, 1.0)];
            tags.iter().for_each(|tags| sinks.add(&registry, &one, &TagSet::own(tags), Duration::ZERO));
            let mut merged = sinks.clone();
            merged.merge(&sinks);
            let samples =
                |scenario, group| merged.part(scenario, group).get(builtin::HTTP_REQS.0).map_or(0, Sink::samples);
            [samples("one", ""), samples("one", "::front"), samples("one", "::front::inner"), samples("", "::setup")]
        };
        assert_eq!(counted(Sinks::by_group(&registry)), [6, 2, 2, 2]);
        assert_eq!(counted(Sinks::new(&registry)), [0; 4]);
    }

    #[test]
    fn names_are_checked() {
        let mut registry = Registry::default();
        let own = registry.register("my_trend", Kind::Trend, Contains::Time).expect("a metric");
        assert_eq!(registry.register("my_trend", Kind::Trend, Contains::Time), Ok(own));
        let vus = registry.id("vus").expect("built in");
        assert_eq!(registry.register("vus", Kind::Gauge, Contains::Default), Ok(vus));
        let faults = [("my_trend", Kind::Counter), ("a", Kind::Counter), ("1a", Kind::Counter), ("a-b", Kind::Counter)]
            .map(|(name, kind)| registry.register(name, kind, Contains::Default).expect_err(name).to_string());
        assert_eq!(
            faults[0],
            "expected one kind for the metric `my_trend`, found a counter of default values beside a trend of time values"
        );
        assert!(faults[1..].iter().all(|fault| fault.contains("letters, digits and underscores")), "{faults:?}");
        for selector in ["vus{a}", "vus{a:b", "vus}", "vus{}", "vus{a:b}c"] {
            assert_eq!(registry.select(selector), Err(NameFault::Selector(selector.to_owned())));
        }
        let unknown =
            |selector: &str, registry: &mut Registry| registry.select(selector).expect_err(selector).to_string();
        assert!(unknown("nope{a:b}", &mut registry).ends_with("found `nope`, which neither k6 nor the script has"));
        assert!(unknown("http_req_duraton", &mut registry).ends_with("; did you mean `http_req_duration`?"));
    }
}
