//! The connections of one thread by number, each with a deadline.
//!
//! The pool does not know which user has which connection: the users of a protocol ([`event_loop`](crate::event_loop))
//! and those of scripts keep that themselves.

use crate::timers::{Alarm, Deadline, Timers};
use plimsoll_model::units::Instant;

/// Slots for connections. Events in `epoll` carry the key of a connection, which distinguishes it from earlier ones in
/// the same slot.
#[derive(Debug)]
pub struct ConnectionPool<C> {
    slots: Vec<Slot<C>>,
    /// Empty slots that [`ConnectionPool::insert`] reuses.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<C> {
    connection: Option<C>,
    /// Counts the connections that the slot has had.
    generation: u32,
    deadline: Deadline,
}

impl<C> Default for ConnectionPool<C> {
    fn default() -> Self {
        ConnectionPool { slots: Vec::new(), free: Vec::new() }
    }
}

impl<C> ConnectionPool<C> {
    /// A pool of `count` slots, numbered from 0, that are filled with [`ConnectionPool::put`].
    #[must_use]
    pub fn with_slots(count: usize) -> ConnectionPool<C> {
        let slot = || Slot { connection: None, generation: 0, deadline: Deadline::default() };
        ConnectionPool { slots: (0..count).map(|_| slot()).collect(), free: Vec::new() }
    }

    /// Puts a connection into any empty slot, or into one more. Returns its number.
    pub fn insert(&mut self, connection: C) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { connection: None, generation: 0, deadline: Deadline::default() });
            self.slots.len() as u32 - 1
        });
        self.renew(slot);
        self.put(slot, connection);
        slot
    }

    /// Takes a connection out that [`ConnectionPool::insert`] put in. Its slot may be used again.
    pub fn remove(&mut self, slot: u32) -> Option<C> {
        let connection = self.take(slot);
        self.free.extend(connection.as_ref().map(|_| slot));
        connection
    }

    /// Prepares a slot for its next connection. Returns that connection's key.
    pub fn renew(&mut self, slot: u32) -> u64 {
        let place = &mut self.slots[slot as usize];
        place.generation = place.generation.wrapping_add(1);
        self.key(slot)
    }

    /// Puts a connection into a slot that was renewed for it.
    pub fn put(&mut self, slot: u32, connection: C) {
        self.slots[slot as usize].connection = Some(connection);
    }

    /// Takes the connection out of a slot, with its deadline. The slot stays reserved.
    pub fn take(&mut self, slot: u32) -> Option<C> {
        let place = &mut self.slots[slot as usize];
        place.deadline.clear();
        place.connection.take()
    }

    /// The connection in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&C> {
        self.slots[slot as usize].connection.as_ref()
    }

    /// The connection in a slot that is known to have one.
    #[inline]
    pub fn connection(&mut self, slot: u32) -> &mut C {
        self.slots[slot as usize].connection.as_mut().expect("the slot has a connection")
    }

    /// The key of the slot's present connection.
    #[inline]
    #[must_use]
    pub fn key(&self, slot: u32) -> u64 {
        u64::from(self.slots[slot as usize].generation) << 32 | u64::from(slot)
    }

    /// The slot of the connection with this key; none if the connection is gone.
    #[inline]
    #[must_use]
    pub fn of_key(&self, key: u64) -> Option<u32> {
        let slot = key as u32;
        let is_there = self.slots.get(slot as usize).is_some_and(|place| place.connection.is_some());
        (is_there && self.key(slot) == key).then_some(slot)
    }

    /// The slots that have a connection.
    #[must_use]
    pub fn occupied(&self) -> Vec<u32> {
        (0..self.len()).filter(|slot| self.get(*slot).is_some()).collect()
    }

    /// How many slots there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// True if no slot has a connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.connection.is_none())
    }

    /// Sets the deadline of a slot. [`Alarm::ConnectDeadline`] is due at `at` or later.
    #[inline]
    pub fn set_deadline(&mut self, slot: u32, at: Instant, timers: &mut Timers) {
        self.slots[slot as usize].deadline.set(at, Alarm::ConnectDeadline(slot), timers);
    }

    /// Removes the deadline of a slot.
    #[inline]
    pub fn clear_deadline(&mut self, slot: u32) {
        self.slots[slot as usize].deadline.clear();
    }

    /// Moves the deadlines of all slots together with [`Timers::shift`].
    pub(crate) fn shift_deadlines(&mut self, by: i64) {
        self.slots.iter_mut().for_each(|slot| slot.deadline.shift(by));
    }

    /// The connections that are there.
    pub fn connections(&mut self) -> impl Iterator<Item = &mut C> {
        self.slots.iter_mut().filter_map(|slot| slot.connection.as_mut())
    }

    /// Handles the alarm of a slot. Returns true if the slot's deadline has passed.
    pub fn has_passed(&mut self, slot: u32, now: Instant, timers: &mut Timers) -> bool {
        self.slots[slot as usize].deadline.has_passed(now, Alarm::ConnectDeadline(slot), timers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_that_of_one_connection_only() {
        let mut pool = ConnectionPool::default();
        let slot = pool.insert('a');
        let key = pool.key(slot);
        assert_eq!((pool.of_key(key), pool.remove(slot)), (Some(slot), Some('a')));
        assert_eq!((pool.of_key(key), pool.remove(slot)), (None, None));
        assert_eq!((pool.insert('b'), pool.insert('c')), (slot, slot + 1));
        assert_eq!((pool.of_key(key), pool.of_key(pool.key(slot)), pool.occupied()), (None, Some(slot), vec![0, 1]));
    }

    #[test]
    fn a_deadline_ends_with_its_connection() {
        let (mut pool, mut timers) = (ConnectionPool::with_slots(2), Timers::default());
        for slot in 0..2 {
            pool.renew(slot);
            pool.put(slot, ());
            pool.set_deadline(slot, Instant(10), &mut timers);
        }
        pool.take(0);
        assert!(!pool.has_passed(0, Instant(10), &mut timers) && pool.has_passed(1, Instant(10), &mut timers));
    }
}
