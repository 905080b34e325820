//! Breaking off a run where the machine is busy with something else.
//!
//! A block is *disturbed* if one of its starts is void because the generator fell behind while others used the
//! processors. Such blocks run again, but if one disturbed block follows another, so will the next: the run would spend
//! its time on loads that do not count, and be left with a pair or two. Three in a row are the sign. Where one block in
//! four is disturbed, which the spare blocks just make up for, three in a row come in one of 64 places; where three in
//! four are, which no number of spare blocks makes up for, the run ends within the first few blocks.
//!
//! A run that goes on after that begins to count again: someone has looked at the machine.

use crate::outcomes::Outcomes;

/// The disturbed blocks in a row after which a run breaks off.
pub const MOST_DISTURBED: usize = 3;

/// True if the last [`MOST_DISTURBED`] blocks that began were disturbed.
pub(crate) fn is_disturbed(outcomes: &Outcomes) -> bool {
    let blocks = outcomes.recent_blocks();
    blocks.len() >= MOST_DISTURBED && blocks.iter().rev().take(MOST_DISTURBED).all(|block| block.disturbed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcomes::Outcome::{self, Counts, Disturbed, DoesNotCount};
    use plimsoll_model::start::Start;

    /// Starts of two to a block, which ended like this.
    fn outcomes(ended: &[Outcome]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for (number, outcome) in (1..).zip(ended) {
            let (repeat, attempt, extended, condition) = (1, 1, false, 0);
            let (block, position, variants) = (u32::div_ceil(number, 2), (number + 1) % 2 + 1, vec![0]);
            let start = Start { number, block, repeat, attempt, extended, position, condition, variants };
            outcomes.stopped(start, *outcome);
        }
        outcomes
    }

    #[test]
    fn three_disturbed_blocks_in_a_row_are_enough_and_no_others() {
        for (ended, expected) in [
            (&[][..], false),
            (&[Disturbed, Disturbed, Disturbed, Disturbed], false),
            (&[Disturbed, Counts, Counts, Disturbed, Disturbed], true),
            (&[Disturbed, Counts, Counts, Disturbed, DoesNotCount, Disturbed], true),
            (&[Disturbed, Counts, Counts, Disturbed, Counts, Counts], false),
            (&[Disturbed, Counts, Counts, Disturbed, Counts, Counts, Disturbed], false),
            (&[DoesNotCount; 6], false),
        ] {
            assert_eq!(is_disturbed(&outcomes(ended)), expected, "{ended:?}");
        }
    }

    #[test]
    fn a_run_that_goes_on_begins_to_count_again() {
        let mut outcomes = outcomes(&[Disturbed; 6]);
        assert!(is_disturbed(&outcomes));
        outcomes.went_on();
        assert!(!is_disturbed(&outcomes));
    }
}
