//! Factors to ordered trials: pure, and the same order for the same seed.
//!
//! The order is that of randomised complete blocks: a *block* holds one trial of
//! each variant under one condition, side by side in time, so that a machine that slows down or
//! warms up does the same to all of them. Each repeat runs one block per condition, in an order of
//! its own.

mod blocks;
mod order;

pub use order::plan;
