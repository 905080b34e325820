//! Bounds what functions of the engine may be asked for that nothing can interrupt.
//!
//! The engine asks whether a user has run for too long at calls and in loops of the script, and while it matches regular
//! expressions. It does not ask in functions of its own that loop. Most of them are bounded by memory, as every turn takes
//! some. These are not: functions that go through an array's holes, of which there may be thousands of millions without
//! any memory, and functions that look for a text in another one.

use rquickjs::{Ctx, Function, Result};

/// The most elements of an array, holes included. Going through so many takes some tenths of a second; if they were no
/// holes, they would take four times the memory that a user has by default.
const MOST_ELEMENTS: u32 = 1 << 24;

/// The most comparisons of characters that looking for a text may take.
const MOST_COMPARISONS: f64 = (1_u64 << 32) as f64;

/// The script that puts functions with bounds in the place of those of the engine.
const SCRIPT: &str = include_str!("bounds.js");

/// Installs the bounds in a runtime.
pub(crate) fn install(ctx: &Ctx<'_>) -> Result<()> {
    let bound: Function<'_> = ctx.eval(SCRIPT)?;
    bound.call((MOST_ELEMENTS, MOST_COMPARISONS))
}
