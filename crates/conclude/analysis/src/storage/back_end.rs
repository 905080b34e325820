//! The known facts about the back ends: where they are, and what lies between them and a disk.

use super::StorageTrial;
use super::sizes::in_units;
use crate::distinct::distinct;
use crate::input::Input;
use plimsoll_model::storage::{FileSystem, StorageFacts};
use plimsoll_model::words::and_list;

/// The known facts about a variant's back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackEnd {
    /// The variant.
    pub name: String,
    /// The facts, a short text each.
    pub facts: Vec<String>,
}

/// The fact that a server runs on this machine: its numbers involve no network.
pub(crate) const LOOPBACK: &str = "target = loopback";

/// The back end of each variant that has facts.
pub(super) fn back_ends(input: &Input, places: &[StorageTrial<'_>]) -> Vec<BackEnd> {
    let of_variant = |variant: usize| {
        let of = places.iter().filter(|place| place.reader.trial().variant() == variant).map(|place| place.facts);
        let facts = described(&of.collect::<Vec<_>>())?;
        Some(BackEnd { name: input.plan.label(variant), facts })
    };
    (0..input.plan.variants.len()).filter_map(of_variant).collect()
}

fn described(trials: &[&StorageFacts]) -> Option<Vec<String>> {
    let first = trials.first()?;
    let each = |of: &dyn Fn(&StorageFacts) -> String| and_list(distinct(trials.iter().map(|facts| of(facts))));
    let mut facts = vec![format!("{} {}", first.kind, first.place)];
    facts.extend(first.file_system.as_ref().map(file_system));
    facts.extend(is_loopback(first).then(|| LOOPBACK.to_owned()));
    facts.push(
        if first.page_cache { "behind the page cache of this machine" } else { "no page cache on this side" }
            .to_owned(),
    );
    facts.push(format!("mode {}", each(&|facts| facts.mode.clone())));
    facts.push(format!("content: {}", each(&|facts| facts.payload.clone())));
    facts.push(format!("blocks of {}", each(&|facts| in_units(facts.block))));
    facts.extend(first.details.iter().cloned());
    Some(facts)
}

/// True if the back end is a server on this machine.
pub(crate) fn is_loopback(facts: &StorageFacts) -> bool {
    let is_plain = facts.kind == "directory" && facts.file_system.as_ref().is_none_or(|one| !one.network);
    facts.on_this_machine && !is_plain
}

fn file_system(one: &FileSystem) -> String {
    let FileSystem { kind, source, options, mount_point, .. } = one;
    let network = match (&one.server, one.network) {
        (Some(server), _) => format!(", a network file system of {server}"),
        (None, true) => ", a network file system".to_owned(),
        (None, false) => String::new(),
    };
    format!("on {kind} ({source} at {mount_point}; {options}){network}")
}
