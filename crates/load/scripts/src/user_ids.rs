//! Which users run which scenario: scenarios that follow one another share them, as in k6.

use plimsoll_k6_run::scenario::Scenario;
use std::collections::BTreeSet;
use std::time::Duration;

/// The number of a user in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UserId {
    /// `__VU`, from 1.
    pub(super) id: u64,
    /// True if no scenario had the user before.
    pub(super) is_new: bool,
}

/// A scenario that has users.
struct Running {
    end: Duration,
    ids: Vec<UserId>,
}

/// The users of each scenario: those of earlier scenarios that are over by then, and otherwise new ones. A user stays on
/// its thread, so the users of a scenario are on the threads in turn, beginning with the first thread.
pub(super) fn user_ids(scenarios: &[Scenario], threads: usize) -> Vec<Vec<UserId>> {
    let mut in_order: Vec<(usize, &Scenario)> = scenarios.iter().enumerate().collect();
    in_order.sort_by_key(|(_, scenario)| scenario.start_time);
    let mut free = vec![BTreeSet::new(); threads];
    let mut running: Vec<Running> = Vec::new();
    let mut all = vec![Vec::new(); scenarios.len()];
    let mut made = 0;
    for (index, scenario) in in_order {
        for over in running.extract_if(.., |other| other.end <= scenario.start_time) {
            for (place, user) in over.ids.iter().enumerate() {
                free[place % threads].insert(user.id);
            }
        }
        let user = |place: u64| match free[place as usize % threads].pop_first() {
            Some(id) => UserId { id, is_new: false },
            None => {
                made += 1;
                UserId { id: made, is_new: true }
            }
        };
        let ids: Vec<UserId> = (0..scenario.executor.most_vus()).map(user).collect();
        running.push(Running { end: scenario.end(), ids: ids.clone() });
        all[index] = ids;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_k6_run::scenario::Executor;

    fn scenario(start: u64, vus: u64) -> Scenario {
        Scenario {
            name: "a".to_owned(),
            executor: Executor::ConstantVus { vus, duration: Duration::from_secs(10) },
            start_time: Duration::from_secs(start),
            graceful_stop: Duration::from_secs(5),
            exec: "default".to_owned(),
            env: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// The numbers of users, with a minus where another scenario had them before.
    fn ids(scenarios: &[Scenario], threads: usize) -> Vec<Vec<i64>> {
        let number = |user: UserId| if user.is_new { user.id as i64 } else { -(user.id as i64) };
        user_ids(scenarios, threads).into_iter().map(|ids| ids.into_iter().map(number).collect()).collect()
    }

    #[test]
    fn scenarios_that_follow_one_another_have_the_same_users() {
        let three = [scenario(15, 3), scenario(0, 2), scenario(14, 1)];
        assert_eq!(ids(&three, 1), [vec![-1, -2, 4], vec![1, 2], vec![3]]);
        assert_eq!(ids(&three, 2), [vec![-1, -2, 4], vec![1, 2], vec![3]]);
        assert_eq!(ids(&[scenario(0, 4), scenario(15, 2), scenario(30, 4)], 3)[2], [-1, -2, -3, -4]);
        assert!(ids(&[], 2).is_empty());
    }
}
