//! k6 itself: the same script, against a server like the first one.

use super::corpus::Case;
use super::wire::Servers;
use super::{Outcome, checks};
use crate::common::Started;
use plimsoll_testkit::skipped;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that scripts are held against: `bench/install k6` installs it.
const VERSION: &str = "v1.8.1";

/// k6 as a program.
pub(crate) struct K6(PathBuf);

impl K6 {
    /// Finds it where the benchmarks have it, or on the path; says where it is not there.
    pub(crate) fn find() -> Option<K6> {
        let of_benchmarks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bench/.peers/bin/k6");
        let on_path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&on_path).map(|folder| folder.join("k6"));
        let found = std::iter::once(of_benchmarks).chain(on_path).find(|path| path.is_file());
        let is_right = |path: &PathBuf| {
            let told = Command::new(path).arg("version").output().map(|output| output.stdout).unwrap_or_default();
            String::from_utf8_lossy(&told).contains(VERSION)
        };
        let found = found.filter(is_right).map(K6);
        if found.is_none() {
            skipped(format!("scripts beside k6: there is no k6 {VERSION} (bench/install k6)"));
        }
        found
    }

    pub(crate) fn run(&self, case: &Case) -> Outcome {
        let (place, servers) = (case.place(), Servers::start());
        let mut command = Command::new(&self.0);
        command.args(["run", "--quiet", "--no-usage-report", "--summary-export", "summary.json"]);
        command.args(servers.variables().iter().flat_map(|variable| ["-e", variable]));
        command.args(case.flags.split_whitespace()).arg(&case.file).current_dir(place.path(".")).stdin(Stdio::null());
        let ended = Started::new(command).end();
        let summary =
            place.has("summary.json").then(|| serde_json::from_str(&place.read("summary.json")).expect("JSON"));
        Outcome { ended, wire: servers.seen(), summary }
    }
}

/// How what came of a script here differs from what came of it there.
pub(crate) fn differences(here: &Outcome, there: &Outcome) -> Vec<String> {
    let differ = |what: &str, here: String, there: String| {
        (here != there).then(|| format!("{what}\n  here   {here}\n  in k6  {there}"))
    };
    let text = |value: &dyn std::fmt::Debug| format!("{value:?}");
    let found = [
        differ("exit code", text(&here.ended.code()), text(&there.ended.code())),
        differ("requests", here.wire.requests.join("\n         "), there.wire.requests.join("\n         ")),
        differ("messages", here.wire.others.join("\n         "), there.wire.others.join("\n         ")),
        differ("checks", text(&checks(here.summary.as_ref())), text(&checks(there.summary.as_ref()))),
        differ("keys of the summary", text(&keys(here.summary.as_ref())), text(&keys(there.summary.as_ref()))),
    ];
    let mut found: Vec<String> = found.into_iter().flatten().collect();
    if let Some(last) = found.last_mut() {
        *last += &format!("\n-- here\n{}\n-- in k6\n{}", here.ended.stderr, there.ended.stderr);
    }
    found
}

/// The metrics of a summary with what is said of each, and its groups and checks.
fn keys(summary: Option<&Value>) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let Some(summary) = summary else { return keys };
    for (name, metric) in summary["metrics"].as_object().into_iter().flatten() {
        // Users are counted once a second: a run as short as these may have no such sample.
        if !name.starts_with("vus") {
            keys.extend(metric.as_object().into_iter().flatten().map(|(value, _)| format!("{name}.{value}")));
        }
    }
    groups(&summary["root_group"], &mut keys);
    keys
}

fn groups(group: &Value, keys: &mut BTreeSet<String>) {
    for (_, check) in group["checks"].as_object().into_iter().flatten() {
        keys.insert(format!("check {} {} {}", check["path"], check["passes"], check["fails"]));
    }
    for (_, inner) in group["groups"].as_object().into_iter().flatten() {
        keys.insert(format!("group {}", inner["path"]));
        groups(inner, keys);
    }
}
