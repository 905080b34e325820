//! The account of what was sent in a load.

use super::{ErrorKind, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What became of everything that was sent under one name in a load: requests, or attempts to connect. Each has one
/// end, so that `carried + sent = answered + failed + abandoned + in flight` ([`Account::holds`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Under way when the load began: users that stay brought them from the load before.
    pub carried: u64,
    /// Handed over to the socket, or to the client library that does the work.
    pub sent: u64,
    /// Ended as expected.
    pub answered: u64,
    /// Failed after they were sent, by kind. What was never sent is in no account.
    pub failed: BTreeMap<ErrorKind, u64>,
    /// Given up by their user before they ended: a script that threw, or closed a stream. Their end is not known.
    pub abandoned: u64,
    /// Under way when the load ended.
    pub in_flight: u64,
}

impl Account {
    /// Counts the end of one that was sent.
    #[inline]
    pub fn ended(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => self.answered += 1,
            Outcome::Failed(kind) => *self.failed.entry(kind).or_default() += 1,
        }
    }

    /// True if everything that was sent has one end.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.carried + self.sent == self.answered + self.all_failed() + self.abandoned + self.in_flight
    }

    /// True if nothing was sent and nothing ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Account::default()
    }

    /// Adds the account of other users in the same load.
    pub fn merge(&mut self, other: &Account) {
        self.carried += other.carried;
        self.sent += other.sent;
        self.answered += other.answered;
        other.failed.iter().for_each(|(kind, count)| *self.failed.entry(*kind).or_default() += count);
        self.abandoned += other.abandoned;
        self.in_flight += other.in_flight;
    }

    /// This account and that of the next load of the same users, as of one load.
    #[must_use]
    pub fn and(mut self, later: &Account) -> Account {
        let carried = self.carried;
        self.merge(later);
        Account { carried, in_flight: later.in_flight, ..self }
    }

    fn all_failed(&self) -> u64 {
        self.failed.values().sum()
    }
}

impl fmt::Display for Account {
    /// All figures in words: `3 carried over and 100 sent, of which 90 were answered, 8 failed (6 closed, 2 timeout), 0
    /// were given up and 4 were under way at the end`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.carried > 0 {
            write!(f, "{} carried over and ", self.carried)?;
        }
        write!(f, "{} sent, of which {} were answered, {} failed", self.sent, self.answered, self.all_failed())?;
        if !self.failed.is_empty() {
            let kinds: Vec<String> = self.failed.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            write!(f, " ({})", kinds.join(", "))?;
        }
        write!(f, ", {} were given up and {} were under way at the end", self.abandoned, self.in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let failed = BTreeMap::from([(ErrorKind::Timeout, 2), (ErrorKind::Closed, 6)]);
        Account { carried: 3, sent: 100, answered: 90, failed, abandoned: 1, in_flight: 4 }
    }

    #[test]
    fn everything_that_was_sent_has_one_end() {
        assert!(account().holds());
        assert!(!Account { sent: 101, ..account() }.holds());
        assert!(!Account { answered: 91, ..account() }.holds());
        let text = "3 carried over and 100 sent, of which 90 were answered, 8 failed (2 timeout, 6 closed), 1 were given up \
                    and 4 were under way at the end";
        assert_eq!(account().to_string(), text);
    }

    #[test]
    fn accounts_of_users_and_of_later_loads_hold_together() {
        let mut of_all = account();
        of_all.merge(&account());
        assert!(of_all.holds());
        assert_eq!((of_all.sent, of_all.carried, of_all.failed[&ErrorKind::Closed]), (200, 6, 12));
        let later = Account { carried: 4, sent: 10, answered: 14, ..Account::default() };
        let together = account().and(&later);
        assert!(later.holds() && together.holds());
        assert_eq!((together.carried, together.sent, together.in_flight), (3, 110, 0));
    }
}
