//! The conclusion of a study as one value: for exit codes, and for runs that end once every verdict
//! is reached.

use crate::analysis::Analysis;
use crate::verdict::{Outcome, Verdict};

/// The overall result of a set of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Every verdict is better or equivalent; or nothing is compared, and what is described has its values.
    Fine,
    /// A variant is worse.
    Worse,
    /// No variant is shown to be worse, but a verdict is inconclusive or void, or a value of what is described is
    /// missing.
    Open,
}

/// The worst result among `verdicts`.
#[must_use]
pub fn conclusion<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Conclusion {
    verdicts.into_iter().fold(Conclusion::Fine, |so_far, verdict| match (so_far, verdict.outcome) {
        (Conclusion::Worse, _) | (_, Outcome::Worse) => Conclusion::Worse,
        (Conclusion::Open, _) | (_, Outcome::Inconclusive | Outcome::Void) => Conclusion::Open,
        (Conclusion::Fine, Outcome::Better | Outcome::Equivalent) => Conclusion::Fine,
    })
}

impl Analysis {
    /// The verdicts, on each comparison that decides.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> + Clone {
        self.comparisons.iter().filter_map(|comparison| comparison.verdict.as_ref())
    }

    /// The overall result of the verdicts, or of what is described.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        if self.lacks_a_value() { Conclusion::Open } else { conclusion(self.verdicts()) }
    }

    /// True if no verdict is inconclusive or void.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.verdicts().all(|verdict| !matches!(verdict.outcome, Outcome::Inconclusive | Outcome::Void))
    }

    /// What stands over a noise floor in doubt, by the milder rule: differences beyond `it`, and equivalence where there is
    /// any.
    #[must_use]
    pub fn stands_over_floor(&self, it: &str) -> String {
        let equivalence = match self.verdicts().any(|verdict| verdict.holds_despite_floor) {
            true => ", and equivalence where it holds with that added",
            false => "",
        };
        format!("differences that lie wholly beyond {it}{equivalence}")
    }

    /// True if every variant is shown to be non-inferior to the baseline by the margin, in each
    /// measure that decides.
    #[must_use]
    pub fn passes_gate(&self) -> bool {
        self.verdicts().all(|verdict| verdict.not_inferior)
    }
}
