//! What people are told of others on the machine.

use plimsoll_analysis::quantity::{percent, show};
use plimsoll_model::host::{CROWDED, OtherProcesses};
use plimsoll_model::measure::Unit;
use plimsoll_model::plan::Plan;
use plimsoll_model::study::StudyFacts;

/// Shares of the processors that others may use: above the first they widen intervals, above the second loads do not
/// count.
pub(crate) const OTHERS: [f64; 2] = [0.03, CROWDED];

/// The busiest processes: `cargo (pid 4121) 0.94 cores, make (pid 4100) 0.02 cores`. Empty if none is busy.
pub(crate) fn busiest(others: &OtherProcesses) -> String {
    let cores = |cores: f64| show(cores, Unit::Cores);
    let names = others.busiest.iter().map(|one| format!("{} (pid {}) {}", one.name, one.pid, cores(one.cores)));
    names.collect::<Vec<String>>().join(", ")
}

/// How the variants of a study share time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSharing {
    /// In turns.
    Turns,
    /// By searches for their capacity.
    Search,
    /// In trials, although they could take turns.
    PossibleTurns,
    /// In trials, because they cannot take turns.
    Trials,
}

impl TimeSharing {
    pub(crate) fn of(plan: &Plan, facts: &StudyFacts) -> TimeSharing {
        match (plan.design.is_trials(), facts.can_take_turns) {
            _ if plan.searches() => TimeSharing::Search,
            (false, _) => TimeSharing::Turns,
            (true, true) => TimeSharing::PossibleTurns,
            (true, false) => TimeSharing::Trials,
        }
    }

    /// The loads of a variant, in a word: `slices`.
    fn loads(self) -> &'static str {
        match self {
            TimeSharing::Turns => "slices",
            TimeSharing::Search => "loads",
            TimeSharing::PossibleTurns | TimeSharing::Trials => "trials",
        }
    }

    /// True if a start has several loads.
    pub(crate) fn has_starts(self) -> bool {
        matches!(self, TimeSharing::Turns | TimeSharing::Search)
    }
}

/// What to say before a run on a machine that others use, and what that will cost. None on a quiet machine.
pub(crate) fn warning(others: &OtherProcesses, sharing: TimeSharing) -> Option<String> {
    let [some, many] = OTHERS;
    let share = others.share();
    if share <= some {
        return None;
    }
    let busiest = busiest(others);
    let busiest = if busiest.is_empty() { String::new() } else { format!(": {busiest}") };
    let stolen = if others.steal_cores / others.processors.max(1) as f64 > some / 2.0 {
        format!(", and the hypervisor takes {} away", show(others.steal_cores, Unit::Cores))
    } else {
        String::new()
    };
    let load = sharing.loads();
    let cost = if share > many {
        let design = if sharing == TimeSharing::PossibleTurns { "; `design = \"turns\"` suffers less" } else { "" };
        format!(
            "intervals will probably be several times as wide as on a quiet machine, and some {load} will not count{design}"
        )
    } else {
        format!("intervals will probably be wider than on a quiet machine, and some {load} may not count")
    };
    let (used, processors, share) = (show(others.cpu_cores, Unit::Cores), others.processors, percent(share));
    Some(format!("others use {used} of {processors} ({share}){busiest}{stolen}\n  {cost}; stop what can be stopped"))
}

/// `others used 0.94 cores`.
pub(crate) fn others_used(cores: f64) -> String {
    format!("others used {}", show(cores, Unit::Cores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::host::BusyProcess;

    fn others(cpu_cores: f64, steal_cores: f64) -> OtherProcesses {
        let busiest = vec![BusyProcess { pid: 4121, name: "rustc".to_owned(), cores: cpu_cores }];
        OtherProcesses { cpu_cores, steal_cores, processors: 2, busiest }
    }

    #[test]
    fn a_warning_says_who_how_much_and_what_it_costs() {
        assert_eq!(warning(&others(0.05, 0.0), TimeSharing::Trials), None);
        for (used, stolen, sharing, expected) in [
            (
                0.2,
                0.0,
                TimeSharing::Turns,
                "others use 0.20 cores of 2 (10 %): rustc (pid 4121) 0.20 cores\n  intervals will probably be wider than \
                 on a quiet machine, and some slices may not count; stop what can be stopped",
            ),
            (
                0.94,
                0.06,
                TimeSharing::PossibleTurns,
                "others use 0.94 cores of 2 (50 %): rustc (pid 4121) 0.94 cores, and the hypervisor takes 0.060 cores \
                 away\n  intervals will probably be several times as wide as on a quiet machine, and some trials will \
                 not count; `design = \"turns\"` suffers less; stop what can be stopped",
            ),
        ] {
            assert_eq!(warning(&others(used, stolen), sharing).as_deref(), Some(expected));
        }
    }
}
