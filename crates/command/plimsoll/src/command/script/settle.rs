//! Settles the configuration of a run: options from the command line, the environment, the script and a file, in this
//! order of precedence.

use super::exit::{Exit, Failure};
use super::outputs::WantedOutput;
use crate::arguments::Flags;
use plimsoll_k6_run::metrics::Registry;
use plimsoll_k6_run::options::{Derived, OptionFault, Options, Read};
use plimsoll_k6_run::scenario::Scenario;
use plimsoll_k6_run::threshold::{Limits, Threshold, ThresholdFault};
use serde_json::Value;
use std::path::Path;

/// The settled configuration of a run.
pub(super) struct Settled {
    /// The options, with all defaults.
    pub(super) options: Options,
    pub(super) scenarios: Vec<Scenario>,
    /// The thresholds.
    pub(super) limits: Vec<Limits>,
    /// The metrics, with a submetric for each threshold that names one.
    pub(super) registry: Registry,
    /// The files and servers that samples go to.
    pub(super) outputs: Vec<WantedOutput>,
}

/// Settles the run of a script with these exports, options and metrics. Passes options without effect to `warn`, even
/// if something else is wrong.
pub(super) fn settle(
    flags: &Flags,
    exports: &[String],
    script: Option<&str>,
    registry: &Registry,
    warn: &mut dyn FnMut(&str),
) -> Result<Settled, Failure> {
    let script: Option<Value> = script.and_then(|options| serde_json::from_str(options).ok());
    let Read { mut options, mut faults, ignored } = read(flags, script.as_ref())?;
    ignored.iter().for_each(|ignored| warn(&ignored.to_string()));
    let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
    // An option that could not be read would be reported as missing by the scenarios too.
    let derived = if faults.is_empty() { options.scenarios(&exports) } else { Err(Vec::new()) };
    let mut registry = registry.clone();
    let thresholds = options.thresholds.clone().filter(|_| !flags.no_thresholds).unwrap_or_default();
    let limits = limits(thresholds, &mut registry, &mut faults);
    let derived = derived.map_err(|more| faults.extend(more));
    let Some(Derived { scenarios, warnings }) = derived.ok().filter(|_| faults.is_empty()) else {
        return Err(at_fault(&faults));
    };
    warnings.iter().for_each(|warning| warn(warning));
    options.scenarios = Some(scenarios.clone());
    Ok(Settled { options, scenarios, limits, registry, outputs: outputs(flags)? })
}

/// The thresholds with their metrics.
fn limits(
    thresholds: Vec<(String, Vec<Threshold>)>,
    registry: &mut Registry,
    faults: &mut Vec<OptionFault>,
) -> Vec<Limits> {
    let found = thresholds.into_iter().filter_map(|(metric, thresholds)| {
        let option = format!("thresholds.{metric}");
        let fault = |fault: ThresholdFault| faults.push(OptionFault { option, what: fault.to_string() });
        Limits::new(registry, &metric, thresholds).map_err(fault).ok()
    });
    found.collect()
}

/// The outputs of the command line, or why they are refused.
fn outputs(flags: &Flags) -> Result<Vec<WantedOutput>, Failure> {
    let mut refusals = flags.unsupported.refusals();
    let environment: Vec<(String, String)> = super::system_environment().collect();
    let said = flags.outputs().unwrap_or_else(|why| {
        refusals.push(why);
        Vec::new()
    });
    let mut wanted = Vec::new();
    for text in said {
        match WantedOutput::parse(&text, &environment) {
            Ok(output) => wanted.push(output),
            Err(why) => refusals.extend(why),
        }
    }
    if refusals.is_empty() { Ok(wanted) } else { Err(Failure::new(Exit::Options, refusals.join("\n"))) }
}

/// The options of all sources, merged by precedence.
fn read(flags: &Flags, script: Option<&Value>) -> Result<Read, Failure> {
    let said = flags.options.given();
    let file = flags.config.as_deref().map(config).transpose()?;
    let places = [
        Options::from_texts(said.iter().map(|(name, flag, text)| (*name, *flag, text.as_str()))),
        Options::from_environment(|name| std::env::var(name).ok()),
        script.map(Options::read).unwrap_or_default(),
        file.as_ref().map(Options::read).unwrap_or_default(),
    ];
    let mut read = Read::default();
    for Read { options, faults, ignored } in places {
        read.options = read.options.over(options);
        read.faults.extend(faults);
        read.ignored.extend(ignored);
    }
    read.options = read.options.over(Options::defaults());
    Ok(read)
}

fn config(file: &Path) -> Result<Value, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Options, format!("failed to read options from {}: {error}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

fn at_fault(faults: &[OptionFault]) -> Failure {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Failure::new(Exit::Options, lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn settled(words: &[&str], script: &Value) -> Result<Settled, Failure> {
        warned(words, script).0
    }

    /// The same, with the warnings.
    fn warned(words: &[&str], script: &Value) -> (Result<Settled, Failure>, Vec<String>) {
        let words = ["run", "a.js"].iter().chain(words);
        let flags = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).flags;
        let (exports, mut warnings) = (["default".to_owned()], Vec::new());
        let warn = &mut |warning: &str| warnings.push(warning.to_owned());
        let settled = settle(&flags, &exports, Some(&script.to_string()), &Registry::default(), warn);
        (settled, warnings)
    }

    fn shown(words: &[&str], script: &Value) -> Vec<String> {
        match settled(words, script) {
            Ok(settled) => settled.scenarios.iter().map(ToString::to_string).collect(),
            Err(failure) => panic!("{failure:?}"),
        }
    }

    #[test]
    fn the_command_line_counts_more_than_the_script() {
        let script = json!({ "vus": 4, "stages": [{ "duration": "5s", "target": 2 }] });
        assert_eq!(
            shown(&["-i", "8"], &script),
            ["default: 8 iterations shared among 4 VUs (maxDuration: 10m0s, gracefulStop: 30s)"]
        );
        assert_eq!(shown(&["-d", "3s", "-u", "2"], &script), ["default: 2 looping VUs for 3s (gracefulStop: 30s)"]);
    }

    #[test]
    fn a_file_counts_less_than_the_script() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("options.json");
        std::fs::write(&file, r#"{ "vus": 9, "iterations": 9, "maxRedirects": 3 }"#).expect("a file");
        let words = ["-c", file.to_str().expect("a text")];
        let Ok(settled) = settled(&words, &json!({ "vus": 2 })) else { panic!("it is fine") };
        assert_eq!((settled.options.vus, settled.options.iterations), (Some(2), Some(9)));
        assert_eq!((settled.options.max_redirects, settled.options.batch), (Some(3), Some(20)));
    }

    #[test]
    fn thresholds_make_parts_of_metrics_unless_they_are_left_aside() {
        let script = json!({ "thresholds": { "http_reqs{name:a}": ["count>1"] } });
        let count = |words: &[&str]| settled(words, &script).map(|settled| settled.limits.len()).ok();
        assert_eq!((count(&[]), count(&["--no-thresholds"])), (Some(1), Some(0)));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let Err(failure) = settled(&["-u", "x", "-d", "y"], &json!({ "rps": "z" })) else { panic!("it is wrong") };
        let told = format!("{failure:?}");
        assert!(["--vus", "--duration", "rps"].iter().all(|option| told.contains(option)), "{told}");
        assert!(told.contains("exit: Options"), "{told}");
        let unknown = json!({ "thresholds": { "nope": ["count>1"] } });
        let Err(failure) = settled(&[], &unknown) else { panic!("it is wrong") };
        assert!(format!("{failure:?}").contains("thresholds.nope"), "{failure:?}");
    }

    #[test]
    fn what_has_no_effect_is_told_beside_what_is_wrong() {
        let script = json!({ "duraton": "1s", "thresholds": { "http_reqs": ["count>>1"], "nope": ["count>1"] } });
        let (Err(failure), warnings) = warned(&[], &script) else { panic!("it is wrong") };
        assert!(warnings.len() == 1 && warnings[0].contains("did you mean `duration`?"), "{warnings:?}");
        let told = format!("{failure:?}");
        assert!(["count>>1", "thresholds.nope"].iter().all(|fault| told.contains(fault)), "{told}");
    }
}
