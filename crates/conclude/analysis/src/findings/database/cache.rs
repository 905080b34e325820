//! Findings about the server's own cache: whether it holds the data.

use crate::database::DatabaseReport;
use crate::findings::{Context, Finding, Severity};
use crate::quantity::show;
use plimsoll_model::measure::Unit;
use std::collections::BTreeMap;

/// Hit ratio from which on the data counts as being in memory.
const IN_MEMORY_HIT_RATIO: f64 = 0.995;

/// The settings for the size of the server's own cache.
const CACHE_SIZE_SETTINGS: [&str; 2] = ["innodb_buffer_pool_size", "shared_buffers"];

/// Compares the size of the data with the server's own cache. The files can be larger than the
/// data, because they include logs.
pub(super) fn in_memory(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let (mut fitting, mut larger) = (Vec::new(), Vec::new());
    for ((database, cache, in_force, size), least) in caches(context, report) {
        let Some(room) = bytes(in_force) else { continue };
        let fits = size as f64 <= room || least.is_some_and(|least| least >= IN_MEMORY_HIT_RATIO);
        let plain = in_force.parse::<u64>().is_ok();
        let shown = if plain { show(room, Unit::Bytes) } else { in_force.to_owned() };
        let hits = least.map(|least| format!("; it answers {:.2} % of page requests, or more", least * 100.0));
        let those = if fits { &mut fitting } else { &mut larger };
        those.push(format!(
            "{database}: {} of files before a trial, logs included; {cache} = {shown}{}",
            show(size as f64, Unit::Bytes),
            hits.unwrap_or_default()
        ));
    }
    let (topic, sentence, evidence) = if larger.is_empty() {
        (
            "data in memory",
            "The server's cache holds the data, or all of it that is asked for: after the first seconds reads come from \
             memory. The numbers tell of processors, locks and the log, not of reading from disks.",
            fitting,
        )
    } else {
        (
            "data larger than the cache",
            "With these settings the data is larger than the server's cache: some reads leave the server, and the page \
             cache of the machine or its disk answers them.",
            larger,
        )
    };
    (!evidence.is_empty()).then(|| Finding { severity: Severity::Note, topic, sentence: sentence.to_owned(), evidence })
}

/// A database with its cache setting, the size of the cache and of the data.
type Cache<'a> = (&'a str, &'a str, &'a str, u64);

/// The caches, each with its lowest hit ratio, where that is known.
fn caches<'a>(context: &'a Context<'_>, report: &DatabaseReport) -> BTreeMap<Cache<'a>, Option<f64>> {
    let mut caches: BTreeMap<Cache<'_>, Option<f64>> = BTreeMap::new();
    for reader in context.counted() {
        let cell = report.cells.iter().find(|cell| reader.is_of(cell.condition, cell.variant));
        for facts in reader.trial().databases() {
            let cache = facts.settings.iter().find(|setting| CACHE_SIZE_SETTINGS.contains(&setting.name.as_str()));
            let Some((cache, size)) = cache.zip(facts.size) else { continue };
            let hits = cell.and_then(|cell| Some(cell.statistic(&facts.name, "hit ratio")?.mean));
            let least = caches.entry((&facts.name, &cache.name, &cache.in_force, size)).or_default();
            *least = [*least, hits].into_iter().flatten().reduce(f64::min);
        }
    }
    caches
}

/// Parses bytes as servers write them: `536870912`, `512M`, `128MB`, `16 GB`.
pub(super) fn bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let power = match text[end..].trim().trim_end_matches(['b', 'B']).to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(number * 1024_f64.powi(power))
}
