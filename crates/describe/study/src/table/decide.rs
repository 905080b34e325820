//! `[decide]`: the measures that answer the question, and the smallest difference that matters.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, all_of, did_you_mean, level_in_words, table};
use crate::table::load::LoadTable;
use crate::value::{Literal, Margin, Scalar};
use plimsoll_model::factor::Level;
use plimsoll_model::measure::{Effect, Measure, Series, Statistic};
use plimsoll_model::study::Decision;
use serde_json::{Value, json};
use toml::de::DeValue;

table! {
    /// What decides the answer. Where nothing is compared, the measures are shown first, and the margins are those of a later `plimsoll compare`.
    struct DecideTable {
        /// The measure that decides. Default: "iteration_duration.p95"; in a search for the capacity, a stress test or by a control loop, what it finds; where each user does one iteration, "elapsed_time.total".
        measure: Option<Literal<Measure>>,
        /// Several measures that decide, instead of `measure`; the first is the headline.
        measures: Option<Vec<Literal<Measure>>>,
        /// The smallest difference that matters, as a share of the baseline; for shares such as `errors.ratio` in their own unit ("0.1%" of all exchanges), for `errors.count` and `failed_iterations.count` a number. Where measures of both kinds decide, it is that of the others. Default: "10%" for percentiles from the 90th on and maxima, "0.1%" for shares such as `errors.ratio`, "5%" for anything else.
        margin: Option<Literal<Margin>>,
        /// The margins of single measures, by their names in quotes; they come before `margin`.
        margins: Option<Margins>,
    }
}

/// Margins by measure, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Margins(Vec<(String, Span, Literal<Margin>)>);

impl FromToml for Margins {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let read = |(name, node): &(&str, Node<'_>)| {
            if matches!(node.value, DeValue::Table(_)) {
                let fault = Fault::error(&node.place(), format!("`{name}` is not a measure"));
                faults.add(fault.help(format!("write measures in quotes, as in `\"{name}.ratio\" = \"0.1%\"`")));
                return None;
            }
            Some(((*name).to_owned(), node.place(), Literal::from_toml(node, faults)?))
        };
        let margins: Vec<Option<_>> = table.entries().iter().map(read).collect();
        margins.into_iter().collect::<Option<_>>().map(Margins)
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "object", "additionalProperties": <Literal<Margin>>::json_schema(schemas) })
    }
}

impl Margins {
    /// The margin of a measure, if it has one of its own.
    fn of(&self, measure: &Measure) -> Option<&Literal<Margin>> {
        let named = |name: &str| name.parse::<Measure>().is_ok_and(|named| named == *measure);
        self.0.iter().find(|(name, ..)| named(name)).map(|(.., margin)| margin)
    }

    /// A margin for what does not decide is a slip, or a measure that was forgotten.
    fn check_names(&self, measures: &[Measure], faults: &mut Faults) {
        for (name, place, _) in &self.0 {
            let measure = Measure::from_level(&Level::Text(name.clone()));
            if measure.is_ok_and(|measure| measures.contains(&measure)) {
                continue;
            }
            let texts: Vec<String> = measures.iter().map(Measure::to_string).collect();
            let known = || texts.iter().map(String::as_str);
            let help = did_you_mean(name, known()).unwrap_or_else(|| format!("what decides is {}", all_of(known())));
            faults.add(Fault::error(place, format!("a margin for `{name}`, which does not decide")).help(help));
        }
    }
}

/// The measure that decides where the study names none.
pub(crate) fn default_measure(load: Option<&LoadTable>) -> Measure {
    if load.is_some_and(LoadTable::is_once) {
        return Measure::new(Series::ElapsedTime, Statistic::Total);
    }
    match load.filter(|load| load.search_span().is_some()) {
        Some(load) if load.is_open() => Measure::new(Series::Capacity, Statistic::Rate),
        Some(_) => Measure::new(Series::Capacity, Statistic::Count),
        None if load.is_some_and(LoadTable::is_feedback) => Measure::new(Series::Capacity, Statistic::Count),
        None => Measure::new(Series::IterationDuration, Statistic::Percentile(95.0)),
    }
}

/// What decides; `table` is missing when the study says nothing. Where the study compares nothing, no margin is needed.
pub(crate) fn decisions(
    table: Option<&DecideTable>,
    default: Measure,
    compares: bool,
    faults: &mut Faults,
) -> Option<Vec<Decision>> {
    let Some(table) = table else {
        let margin = default_margin(&default)?;
        return Some(vec![Decision { measure: default, margin }]);
    };
    let measures = match (&table.measure, &table.measures) {
        (Some(_), Some(several)) => {
            let span = several.first().map_or(&table.place, |first| &first.span);
            let fault = Fault::error(span, "`decide` has both `measure` and `measures`");
            faults.add(fault.help("put them all into `measures`, the headline first"));
            return None;
        }
        (Some(one), None) => vec![one.value.clone()],
        (None, Some(several)) if several.is_empty() => {
            faults.add(Fault::error(&table.place, "`decide.measures` is empty").help("name at least one measure"));
            return None;
        }
        (None, Some(several)) => several.iter().map(|measure| measure.value.clone()).collect(),
        (None, None) => vec![default],
    };
    check_once(table.measures.iter().flatten(), faults);
    if table.margin_is_of_two_kinds(&measures, faults) {
        return None;
    }
    if let Some(margins) = &table.margins {
        margins.check_names(&measures, faults);
    }
    let decided: Vec<Option<Decision>> =
        measures.iter().map(|measure| table.decision(measure, &measures, compares, faults)).collect();
    decided.into_iter().collect()
}

/// Refuses measures that are named twice, were it by two names.
pub(crate) fn check_once<'a>(measures: impl Iterator<Item = &'a Literal<Measure>>, faults: &mut Faults) {
    let mut seen: Vec<&Measure> = Vec::new();
    for measure in measures {
        if seen.contains(&&measure.value) {
            let fault = Fault::error(&measure.span, format!("`{}` is there twice", measure.value));
            faults.add(fault.label("the same again").help("leave one of them out"));
        }
        seen.push(&measure.value);
    }
}

impl DecideTable {
    /// Whether `margin` would have to be a number of errors and a share of exchanges at once, which
    /// is a fault.
    fn margin_is_of_two_kinds(&self, measures: &[Measure], faults: &mut Faults) -> bool {
        let Some(margin) = &self.margin else { return false };
        let has_own = |measure: &Measure| self.margins.as_ref().is_some_and(|margins| margins.of(measure).is_some());
        let takes_it: Vec<&Measure> =
            measures.iter().filter(|measure| is_meant(measure, measures) && !has_own(measure)).collect();
        let counts = takes_it.iter().filter(|measure| is_count_of_errors(measure)).count();
        let both = counts > 0 && counts < takes_it.len();
        if both {
            let message = "`decide.margin` cannot be a number of errors and a share of exchanges at once";
            let help = "give each its own: `margins = { \"errors.count\" = 3, \"errors.ratio\" = \"0.1%\" }`";
            faults.add(Fault::error(&margin.span, message).help(help));
        }
        both
    }

    fn decision(&self, measure: &Measure, all: &[Measure], compares: bool, faults: &mut Faults) -> Option<Decision> {
        let own = self.margins.as_ref().and_then(|margins| margins.of(measure));
        let margin = match own.or_else(|| self.margin.as_ref().filter(|_| is_meant(measure, all))) {
            Some(margin) => in_its_unit(margin, measure, faults)?,
            None if compares => self.default_of(measure, faults)?,
            None => default_margin(measure).unwrap_or(ONE_ERROR),
        };
        Some(Decision { measure: measure.clone(), margin })
    }

    fn default_of(&self, measure: &Measure, faults: &mut Faults) -> Option<f64> {
        let default = default_margin(measure);
        if default.is_none() {
            let fault = Fault::error(&self.place, format!("`{measure}` decides, and no margin says how many matter"));
            let help = format!("add `margins = {{ \"{measure}\" = 10 }}` with a number, or let `errors.ratio` decide");
            faults.add(fault.help(help));
        }
        default
    }
}

/// Whether `margin` is about `measure`. A share of the baseline is not the share of exchanges that
/// fail: where measures of both kinds decide, it is about the former.
fn is_meant(measure: &Measure, all: &[Measure]) -> bool {
    measure.effect() == Effect::Ratio || all.iter().all(|other| other.effect() == Effect::Difference)
}

fn in_its_unit(margin: &Literal<Margin>, measure: &Measure, faults: &mut Faults) -> Option<f64> {
    let value = match is_count_of_errors(measure) {
        true => margin.value.number(),
        false => margin.value.share(),
    };
    let label = || level_in_words(margin.value.as_written());
    value.map_err(|problem| faults.add(problem.fault(&margin.span, &margin.path).label(label()))).ok()
}

fn is_count_of_errors(measure: &Measure) -> bool {
    matches!(measure.series, Series::Errors | Series::FailedIterations | Series::LostDeliveries)
        && measure.statistic == Statistic::Count
}

/// The margin in a number of errors that a study which compares nothing need not declare.
const ONE_ERROR: f64 = 1.0;

/// The margins of the method: what differs less hardly ever matters to anyone, and tails scatter
/// more than centres. None for a number of errors, which depends on how much load there is.
fn default_margin(measure: &Measure) -> Option<f64> {
    if is_count_of_errors(measure) {
        return None;
    }
    let tail = match measure.statistic {
        Statistic::Percentile(percentile) => percentile >= 90.0,
        statistic => statistic == Statistic::Max,
    };
    Some(match (measure.effect(), tail) {
        (Effect::Difference, _) => 0.001,
        (Effect::Ratio, true) => 0.10,
        (Effect::Ratio, false) => 0.05,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};

    fn read(text: &str) -> Vec<(String, f64)> {
        let table: DecideTable = read_table(text);
        let decisions = decisions(Some(&table), default_measure(None), true, &mut no_faults()).expect("decisions");
        decisions.iter().map(|decision| (decision.measure.to_string(), decision.margin)).collect()
    }

    #[test]
    fn margins_depend_on_the_measure_unless_given() {
        assert_eq!(read(""), [("iteration_duration.p95".to_owned(), 0.1)]);
        assert_eq!(read("measure = 'iterations.rate'"), [("iterations.rate".to_owned(), 0.05)]);
        assert_eq!(read("measure = 'errors.ratio'"), [("errors.ratio".to_owned(), 0.001)]);
        let both = read("measures = ['memory.max', 'cpu.avg']\nmargin = '2%'");
        assert_eq!(both, [("memory.max".to_owned(), 0.02), ("cpu.avg".to_owned(), 0.02)]);
    }

    #[test]
    fn measures_have_margins_of_their_own() {
        let text = "measures = ['iterations.rate', 'errors.ratio', 'http_req_duration.p99', 'errors.count']\n\
                    margin = '3%'\n\
                    margins = { 'request_duration.p99' = '20%', 'errors.count' = 12 }";
        let margins: Vec<f64> = read(text).into_iter().map(|(_, margin)| margin).collect();
        assert_eq!(margins, [0.03, 0.001, 0.2, 12.0], "3 % of the baseline is not 3 % of all exchanges");
        let own = read("measures = ['errors.count', 'errors.ratio']\nmargin = 3\nmargins = { 'errors.ratio' = '1%' }");
        assert_eq!(own, [("errors.count".to_owned(), 3.0), ("errors.ratio".to_owned(), 0.01)]);
        assert_eq!(read("measure = 'errors.ratio'\nmargin = '0.5%'"), [("errors.ratio".to_owned(), 0.005)]);
    }

    /// The faults of a table that can be read, in its decisions.
    fn refused(text: &str) -> String {
        let table: DecideTable = read_table(text);
        let mut faults = no_faults();
        assert!(
            decisions(Some(&table), default_measure(None), true, &mut faults).is_none() || faults.has_errors(),
            "{text}"
        );
        faults.into_diagnostics().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn margins_that_do_not_fit_are_named() {
        for (text, says) in [
            ("margin = 5", "write \"5%\""),
            ("measure = 'errors.count'\nmargin = '5%'", "must be a number of errors"),
            ("measure = 'errors.count'", "how many matter"),
            (
                "measures = ['errors.count', 'errors.ratio']\nmargin = 3",
                "`margins = { \"errors.count\" = 3, \"errors.ratio\" = \"0.1%\" }`",
            ),
            ("measures = ['cpu.avg', 'memory.max', 'cpu.avg']", "`cpu.avg` is there twice"),
            ("measures = ['http_req_duration.p95', 'request_duration.p95']", "`request_duration.p95` is there twice"),
            ("margins = { 'iterations.rate' = '5%' }", "which does not decide"),
            ("margins = { 'iteration_duration.p96' = '5%' }", "did you mean `iteration_duration.p95`?"),
            ("margins = { 'iteration_duration.p95' = 5 }", "must be above 0 and at most 1"),
        ] {
            assert!(refused(text).contains(says), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn a_margin_of_nothing_is_refused_with_the_reason() {
        for margin in ["0", "'0%'", "0.0", "-0.05", "'-5%'"] {
            for text in [format!("margin = {margin}"), format!("margins = {{ 'cpu.avg' = {margin} }}")] {
                let faults = faults_of::<DecideTable>(&text);
                assert!(faults.len() == 1 && faults[0].contains("must be above 0"), "{text}: {faults:?}");
                assert!(faults[0].contains("two variants could never be equivalent"), "{text}: {faults:?}");
            }
        }
        assert_eq!(faults_of::<DecideTable>("margin = nan").len(), 1);
        assert!(faults_of::<DecideTable>("margins = { errors.ratio = '1%' }")[0].contains("in quotes"));
    }

    #[test]
    fn wrong_measures_and_margins_are_named() {
        let faults = faults_of::<DecideTable>("measure = 'iteration_duration.p0'\nmargin = '0%'");
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
