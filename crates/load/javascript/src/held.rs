//! The limit on the memory that natives hold for a user, such as bodies of requests and responses, and pages.
//!
//! The engine counts what it allocates itself and nothing else. So natives keep what may become large in [`HeldBytes`],
//! or beside a [`Held`] amount. Both count towards the [`HeldMemory`] of their user for as long as they are there. A native
//! that has got more asks [`HeldMemory::look`].

use rquickjs::{Ctx, Exception, JsLifetime, Result};
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

/// Natives may hold so many times the memory of the script.
pub const HELD_OF_MEMORY: usize = 4;

/// The message of the exception in a user for whom natives hold too much.
pub(crate) const EXCEEDED: &str = "too much memory outside of the engine";

/// The memory that natives hold for a user, in bytes.
#[derive(Debug)]
pub struct HeldMemory {
    held: Cell<usize>,
    most: usize,
    /// Garbage is collected when this much is held: a native's part of an object seems small to the engine, which is in no
    /// hurry to free it where it is part of a circle.
    collect_at: Cell<usize>,
}

/// The userdata of a runtime by which natives find the memory that they hold.
#[derive(JsLifetime)]
struct CurrentHeldMemory(Rc<HeldMemory>);

impl HeldMemory {
    /// For a user whose script may take `memory` bytes.
    #[must_use]
    pub fn beside(memory: usize) -> Rc<HeldMemory> {
        let most = memory.saturating_mul(HELD_OF_MEMORY);
        Rc::new(HeldMemory { held: Cell::new(0), most, collect_at: Cell::new(memory) })
    }

    /// That of the running user.
    ///
    /// # Errors
    /// The runtime is none of a [`crate::Vm`].
    pub fn of(ctx: &Ctx<'_>) -> Result<Rc<HeldMemory>> {
        let found = ctx.userdata::<CurrentHeldMemory>().map(|current| Rc::clone(&current.0));
        found.ok_or_else(|| Exception::throw_internal(ctx, "this native is for users"))
    }

    pub(crate) fn install(self: Rc<Self>, ctx: &Ctx<'_>) {
        let stored = ctx.store_userdata(CurrentHeldMemory(self));
        assert!(stored.is_ok(), "nobody holds userdata of a context that is being made");
    }

    /// The most bytes that may be held.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// True if more is held than may be.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.held.get() > self.most
    }

    /// Collects garbage if much is held.
    ///
    /// # Errors
    /// Thereafter still more is held than may be. Uncaught, that ends the user.
    pub fn look(&self, ctx: &Ctx<'_>) -> Result<()> {
        if self.held.get() <= self.collect_at.get() { Ok(()) } else { self.collect(ctx) }
    }

    #[cold]
    fn collect(&self, ctx: &Ctx<'_>) -> Result<()> {
        ctx.run_gc();
        let held = self.held.get();
        self.collect_at.set((held + held / 2).clamp(self.most / HELD_OF_MEMORY, self.most));
        if self.is_exceeded() { Err(Exception::throw_internal(ctx, EXCEEDED)) } else { Ok(()) }
    }
}

/// An amount of memory that counts as held for a user.
#[derive(Debug)]
pub struct Held {
    amount: usize,
    memory: Rc<HeldMemory>,
}

impl Held {
    /// Nothing yet.
    #[must_use]
    pub fn nothing(memory: &Rc<HeldMemory>) -> Held {
        Held { amount: 0, memory: Rc::clone(memory) }
    }

    /// The memory in which it counts.
    #[must_use]
    pub fn memory(&self) -> &HeldMemory {
        &self.memory
    }

    /// Counts so many bytes from now on.
    pub fn set(&mut self, amount: usize) {
        self.memory.held.set(self.memory.held.get() - self.amount + amount);
        self.amount = amount;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes that count as held for a user, with all the room that was made for them.
#[derive(Debug, Default)]
pub struct HeldBytes {
    bytes: Vec<u8>,
    /// None for bytes that are nobody's.
    held: Option<Held>,
}

impl HeldBytes {
    /// Bytes that are held for a user.
    #[must_use]
    pub fn new(bytes: Vec<u8>, memory: &Rc<HeldMemory>) -> HeldBytes {
        let mut new = HeldBytes { held: Some(Held::nothing(memory)), bytes };
        new.count();
        new
    }

    /// Appends bytes.
    pub fn extend(&mut self, more: &[u8]) {
        if self.bytes.capacity() - self.bytes.len() < more.len() {
            // Not twice the room, as a vector takes by itself: it may be large.
            self.bytes.reserve_exact(more.len().max(self.bytes.len() / 4));
        }
        self.bytes.extend_from_slice(more);
        self.count();
    }

    /// Takes the bytes out: they are not held any more.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.bytes);
        self.count();
        bytes
    }

    /// Puts other bytes in the place of these.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
        self.count();
    }

    fn count(&mut self) {
        if let Some(held) = &mut self.held {
            held.set(self.bytes.capacity());
        }
    }
}

/// Bytes that are nobody's.
impl From<Vec<u8>> for HeldBytes {
    fn from(bytes: Vec<u8>) -> HeldBytes {
        HeldBytes { bytes, held: None }
    }
}

/// The copy counts too.
impl Clone for HeldBytes {
    fn clone(&self) -> HeldBytes {
        match &self.held {
            Some(held) => HeldBytes::new(self.bytes.clone(), &held.memory),
            None => HeldBytes::from(self.bytes.clone()),
        }
    }
}

impl Deref for HeldBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for HeldBytes {
    fn eq(&self, other: &HeldBytes) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for HeldBytes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_for_as_long_as_they_are_there() {
        let memory = HeldMemory::beside(25);
        let held = || memory.held.get();
        let mut first = HeldBytes::new(vec![0; 40], &memory);
        assert_eq!((held(), memory.most()), (40, 100));
        first.extend(&[1]);
        assert_eq!((held(), first.len()), (50, 41), "a quarter more");
        let second = HeldBytes::new(vec![0; 51], &memory);
        assert!(memory.is_exceeded());
        assert_eq!((first.take().len(), held()), (41, 51));
        first.replace(vec![0; 7]);
        assert_eq!(held(), 58);
        drop((first, second));
        assert_eq!(held(), 0);
        let mut nobodys = HeldBytes::from(vec![0; 3]);
        nobodys.extend(&[0; 3]);
        assert_eq!((nobodys.len(), nobodys.take().len(), held()), (6, 6, 0));
        let mut page = Held::nothing(&memory);
        page.set(30);
        page.set(20);
        assert_eq!(held(), 20);
        drop(page);
        assert_eq!(held(), 0);
    }
}
