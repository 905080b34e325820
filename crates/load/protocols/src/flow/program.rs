//! Steps, conditions and loops as one list of operations, so that the position of a user is a number.

use super::check::Condition;
use super::template::ValueRef;
use plimsoll_model::load::Think;

/// The index of an operation.
pub(super) type Address = u32;

/// The most operations in a row without a request or a pause. A user beyond that is in a loop that does
/// nothing, and fails: its thread has other users too.
pub(super) const MOST_STEPS_WITHOUT_WAIT: u32 = 1_000_000;

/// One operation. `end` is the address behind a loop.
#[derive(Debug)]
pub(super) enum Op {
    /// The request of this index.
    Request(u32),
    Pause(Think),
    /// Jumps to `to` unless all conditions of this range hold.
    JumpUnless {
        conditions: (u32, u32),
        to: Address,
    },
    Jump(Address),
    /// Sets the counter of a loop to zero, before the loop.
    ResetCounter(u8),
    /// Counts one more round of a loop with a fixed number of rounds.
    CountRound {
        counter: u8,
        times: u32,
        end: Address,
    },
    /// Takes the next item of a list.
    NextItem {
        counter: u8,
        list: ValueRef,
        item: u16,
        at_most: u32,
        end: Address,
    },
    /// Counts one more round of a loop that its conditions must end before `at_most` rounds.
    LimitRounds {
        counter: u8,
        at_most: u32,
        conditions: (u32, u32),
    },
    /// Ends the block.
    End,
}

/// All blocks of a flow.
#[derive(Default)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) conditions: Vec<Condition>,
    pub(super) on_start: Address,
    pub(super) on_stop: Address,
    /// The address of each action, and the sum of weights up to and including it.
    pub(super) actions: Vec<(Address, u64)>,
}

impl Program {
    pub(super) fn next_address(&self) -> Address {
        self.ops.len() as Address
    }

    /// True if there is nothing to do from here on.
    pub(super) fn is_empty_at(&self, address: Address) -> bool {
        matches!(self.ops[address as usize], Op::End)
    }

    /// Appends an operation, and returns its address.
    pub(super) fn push(&mut self, op: Op) -> Address {
        self.ops.push(op);
        self.next_address() - 1
    }

    /// Sets the target of the loop or branch at an address to the next operation.
    pub(super) fn patch_target(&mut self, at: Address) {
        let next = self.next_address();
        match &mut self.ops[at as usize] {
            Op::JumpUnless { to, .. } | Op::Jump(to) => *to = next,
            Op::CountRound { end, .. } | Op::NextItem { end, .. } => *end = next,
            Op::Request(_) | Op::Pause(_) | Op::ResetCounter(_) | Op::LimitRounds { .. } | Op::End => {}
        }
    }

    /// The conditions of this range.
    pub(super) fn conditions(&self, (from, to): (u32, u32)) -> &[Condition] {
        &self.conditions[from as usize..to as usize]
    }

    /// The request that every iteration begins with, if there is one.
    pub(super) fn first_request(&self) -> Option<u32> {
        match (&*self.actions, self.actions.first().map(|(begin, _)| &self.ops[*begin as usize])) {
            ([_], Some(Op::Request(request))) => Some(*request),
            _ => None,
        }
    }

    /// The action for a number below the sum of all weights.
    pub(super) fn action(&self, drawn: u64) -> Address {
        let index = self.actions.partition_point(|(_, up_to)| *up_to <= drawn);
        self.actions[index.min(self.actions.len() - 1)].0
    }

    /// The sum of all weights.
    pub(super) fn weight(&self) -> u64 {
        self.actions.last().map_or(0, |(_, up_to)| *up_to)
    }
}
