//! What a run is to be: options from the command line, the environment, the script and a file, in this order.

use super::exit::{Exit, Failure};
use super::flags::Flags;
use super::outputs::Wanted;
use plimsoll_k6::metrics::Registry;
use plimsoll_k6::options::{OptionFault, Options, Read};
use plimsoll_k6::scenario::Scenario;
use plimsoll_k6::threshold::Limits;
use serde_json::Value;
use std::path::Path;

/// What was settled.
pub(super) struct Settled {
    /// With all defaults.
    pub(super) options: Options,
    pub(super) scenarios: Vec<Scenario>,
    /// What must hold.
    pub(super) limits: Vec<Limits>,
    /// With a part for each threshold that names one.
    pub(super) registry: Registry,
    /// Files that samples go to.
    pub(super) outputs: Vec<Wanted>,
    /// What has no effect.
    pub(super) warnings: Vec<String>,
}

/// Settles what a script with these exports, options and metrics is to do.
pub(super) fn settle(
    flags: &Flags,
    exports: &[String],
    script: Option<&str>,
    registry: &Registry,
) -> Result<Settled, Failure> {
    let script: Option<Value> = script.and_then(|options| serde_json::from_str(options).ok());
    let (mut options, mut warnings) = read(flags, script.as_ref())?;
    let mut registry = registry.clone();
    let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
    let derived = options.scenarios(&exports).map_err(|faults| at_fault(&faults))?;
    warnings.extend(derived.warnings);
    options.scenarios = Some(derived.scenarios.clone());
    let thresholds = options.thresholds.clone().filter(|_| !flags.no_thresholds).unwrap_or_default();
    let limits = thresholds.into_iter().map(|(metric, thresholds)| {
        let fault = |fault: plimsoll_k6::threshold::ThresholdFault| OptionFault {
            option: format!("thresholds.{metric}"),
            what: fault.to_string(),
        };
        Limits::new(&mut registry, &metric, thresholds).map_err(fault)
    });
    let limits = limits.collect::<Result<_, _>>().map_err(|fault| at_fault(&[fault]))?;
    Ok(Settled { options, scenarios: derived.scenarios, limits, registry, outputs: outputs(flags)?, warnings })
}

/// What the command line asks for that needs no script to be refused.
fn outputs(flags: &Flags) -> Result<Vec<Wanted>, Failure> {
    let mut refusals = flags.unsupported.refusals();
    let wanted = flags.out.iter().filter_map(|text| Wanted::parse(text).map_err(|why| refusals.push(why)).ok());
    let wanted: Vec<Wanted> = wanted.collect();
    if refusals.is_empty() { Ok(wanted) } else { Err(Failure::new(Exit::Options, refusals.join("\n"))) }
}

/// The options of all places, one over the other.
fn read(flags: &Flags, script: Option<&Value>) -> Result<(Options, Vec<String>), Failure> {
    let said = flags.options.said();
    let file = flags.config.as_deref().map(config).transpose()?;
    let read = [
        Options::from_texts(said.iter().map(|(name, flag, text)| (*name, *flag, text.as_str()))),
        Options::from_environment(|name| std::env::var(name).ok()),
        script.map(Options::read).unwrap_or_default(),
        file.as_ref().map(Options::read).unwrap_or_default(),
    ];
    let (mut options, mut faults, mut warnings) = (Options::default(), Vec::new(), Vec::new());
    for Read { options: lower, faults: more, ignored } in read {
        options = options.over(lower);
        faults.extend(more);
        warnings.extend(ignored.iter().map(ToString::to_string));
    }
    if faults.is_empty() { Ok((options.over(Options::defaults()), warnings)) } else { Err(at_fault(&faults)) }
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
        let words = ["run", "a.js"].iter().chain(words);
        let flags = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).flags;
        settle(&flags, &["default".to_owned()], Some(&script.to_string()), &Registry::default())
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
}
