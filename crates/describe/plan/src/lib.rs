//! Factors to ordered trials: pure, and the same order for the same seed.
//!
//! The order is that of randomised complete blocks: a *block* holds one trial of
//! each variant under one condition, side by side in time, so that a machine that slows down or
//! warms up does the same to all of them. The baseline is in it twice: what the two differ by is
//! the noise of the study. Each repeat runs one block per condition, in an order of its own.
//!
//! A trial that does not count makes its whole block run again: [`due`] says which block is next,
//! and [`again`] gives its trials.

mod blocks;
mod order;
mod spare;

pub use order::{Options, plan};
pub use spare::{Again, MOST_ATTEMPTS, Outcome, again, due, left_out};
