//! What is known of scripts before anything runs.

use plimsoll_model::workload::{Steps, Workload};
use plimsoll_study::{ScriptMetrics, Study};

/// The metrics that scripts make, of each that can be loaded.
pub(crate) fn metrics(study: &Study, workloads: impl Iterator<Item = Workload>) -> Vec<ScriptMetrics> {
    let mut seen: Vec<Workload> = Vec::new();
    let mut all = Vec::new();
    for workload in workloads {
        let Steps::Script(script) = &workload.steps else { continue };
        if seen.contains(&workload) {
            continue;
        }
        let file = script.entry.strip_prefix(study.folder()).unwrap_or(&script.entry).display().to_string();
        all.extend(plimsoll_load::metrics(&workload).map(|metrics| ScriptMetrics { script: file, metrics }));
        seen.push(workload);
    }
    all
}
