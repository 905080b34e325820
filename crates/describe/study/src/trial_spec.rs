//! A trial with every placeholder filled in.

use plimsoll_model::database::Database;
use plimsoll_model::load::LoadProfile;
use plimsoll_model::search::SearchRange;
use plimsoll_model::system::SystemSpec;
use plimsoll_model::workload::{Connect, Workload};

/// Everything that one trial needs, with every placeholder filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSpec {
    /// The systems that run in it, in the order in which they start.
    pub systems: Vec<SystemSpec>,
    /// The databases of the trial, in the order of the file. Those that the run starts, it starts
    /// before the systems.
    pub databases: Vec<Database>,
    /// What a user does.
    pub workload: Workload,
    /// How load is offered.
    pub load: LoadProfile,
    /// The range of loads of a search for the capacity or a stress test; none where the study names its loads.
    pub search: Option<SearchRange>,
}

impl TrialSpec {
    /// The largest load that is offered: of a search, the largest that is tried.
    #[must_use]
    pub fn largest_load(&self) -> LoadProfile {
        self.search.map_or_else(|| self.load.clone(), |range| range.largest(&self.load))
    }

    /// True if each user has a connection of its own to the target.
    pub(crate) fn has_connections_of_users(&self) -> bool {
        self.workload.target.is_some() && !matches!(self.workload.connect, Connect::Shared(_))
    }

    /// The names of the databases that it has besides that one.
    pub(crate) fn databases_beside(&self, one: &str) -> impl Iterator<Item = String> {
        self.databases.iter().map(|database| &database.name).filter(move |name| *name != one).cloned()
    }
}
