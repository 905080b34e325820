//! Steps, conditions and loops as one list of operations, so that the position of a user is a number.

use super::capture::below;
use super::check::Condition;
use super::template::ValueRef;
use plimsoll_engine::schedule::Random;
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
    OpenSocket,
    /// The message of this index, on the socket.
    Message(u32),
    CloseSocket,
    /// Jumps to `to` unless all conditions of this range hold.
    JumpUnless {
        conditions: (u32, u32),
        to: Address,
    },
    Jump(Address),
    /// Jumps to one of these choices, drawn by weight.
    JumpToOneOf(Choices),
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

/// Choices that lie beside each other in a program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choices {
    from: u32,
    to: u32,
}

/// All blocks of a flow.
#[derive(Default)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) conditions: Vec<Condition>,
    pub(super) on_start: Address,
    pub(super) on_stop: Address,
    /// The actions, of which each iteration is one.
    pub(super) actions: Choices,
    /// The address of each choice, and the sum of weights from the first of its choices up to and including it.
    choices: Vec<(Address, u64)>,
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
            Op::Request(_)
            | Op::Pause(_)
            | Op::OpenSocket
            | Op::Message(_)
            | Op::CloseSocket
            | Op::JumpToOneOf(_)
            | Op::ResetCounter(_)
            | Op::LimitRounds { .. }
            | Op::End => {}
        }
    }

    /// Appends choices: the address of each, and its weight.
    pub(super) fn push_choices(&mut self, choices: &[(Address, u32)]) -> Choices {
        let from = self.choices.len() as u32;
        let mut up_to = 0;
        for (address, weight) in choices {
            up_to += u64::from(*weight);
            self.choices.push((*address, up_to));
        }
        Choices { from, to: self.choices.len() as u32 }
    }

    /// The addresses of choices, each with the sum of weights up to and including it.
    pub(super) fn choices(&self, Choices { from, to }: Choices) -> &[(Address, u64)] {
        &self.choices[from as usize..to as usize]
    }

    /// The conditions of this range.
    pub(super) fn conditions(&self, (from, to): (u32, u32)) -> &[Condition] {
        &self.conditions[from as usize..to as usize]
    }

    /// The request that every iteration begins with, if there is one.
    pub(super) fn first_request(&self) -> Option<u32> {
        let [(begin, _)] = self.choices(self.actions) else { return None };
        match self.ops[*begin as usize] {
            Op::Request(request) => Some(request),
            _ => None,
        }
    }

    /// One of these choices, drawn by weight.
    pub(super) fn draw(&self, choices: Choices, random: &mut Random) -> Address {
        let choices = self.choices(choices);
        let weight = choices.last().map_or(0, |(_, up_to)| *up_to);
        let drawn = below(weight as usize, random) as u64;
        let index = choices.partition_point(|(_, up_to)| *up_to <= drawn);
        choices[index.min(choices.len() - 1)].0
    }
}
