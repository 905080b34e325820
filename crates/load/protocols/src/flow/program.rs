//! Steps, conditions and loops as one list of operations, so that where a user stands is a number.

use super::check::Condition;
use super::template::Place;
use plimsoll_model::load::Think;

/// Where an operation stands.
pub(super) type Address = u32;

/// Operations in a row without a request or a pause after which a user is in a loop that does
/// nothing: its thread has other users too.
pub(super) const MOST_IN_A_ROW: u32 = 1_000_000;

/// One operation. `end` is where to go on when a loop is over.
#[derive(Debug)]
pub(super) enum Op {
    /// The request of this index.
    Request(u32),
    Pause(Think),
    /// Goes on at `to` unless all conditions of this range hold.
    Unless {
        conditions: (u32, u32),
        to: Address,
    },
    Jump(Address),
    /// Before a loop: this counter is zero.
    Zero(u8),
    /// Counts one more time of a loop that goes round so often.
    Repeat {
        counter: u8,
        times: u32,
        end: Address,
    },
    /// Takes the next item of a list.
    Each {
        counter: u8,
        list: Place,
        item: u16,
        at_most: u32,
        end: Address,
    },
    /// Counts one more time of a loop that has to end by its conditions, this range.
    Bound {
        counter: u8,
        at_most: u32,
        conditions: (u32, u32),
    },
    /// The block is over.
    End,
}

/// All blocks of a flow.
#[derive(Default)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) conditions: Vec<Condition>,
    pub(super) on_start: Address,
    pub(super) on_stop: Address,
    /// Where each action begins, and the sum of weights up to it and including it.
    pub(super) actions: Vec<(Address, u64)>,
}

impl Program {
    pub(super) fn here(&self) -> Address {
        self.ops.len() as Address
    }

    /// True if there is nothing to do from here on.
    pub(super) fn is_empty_at(&self, address: Address) -> bool {
        matches!(self.ops[address as usize], Op::End)
    }

    /// Appends an operation, and says where it stands.
    pub(super) fn push(&mut self, op: Op) -> Address {
        self.ops.push(op);
        self.here() - 1
    }

    /// Lets the loop or branch at an address go on here.
    pub(super) fn close(&mut self, at: Address) {
        let here = self.here();
        match &mut self.ops[at as usize] {
            Op::Unless { to, .. } | Op::Jump(to) => *to = here,
            Op::Repeat { end, .. } | Op::Each { end, .. } => *end = here,
            Op::Request(_) | Op::Pause(_) | Op::Zero(_) | Op::Bound { .. } | Op::End => {}
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
