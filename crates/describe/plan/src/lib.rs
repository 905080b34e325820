//! Factors to starts in a fair order, and what a run does next: pure, and the same for the same seed.
//!
//! The order is that of randomised complete blocks: a *block* holds each variant under one
//! condition, side by side in time, so that a machine that slows down or warms up does the same to
//! all of them. The baseline is in it twice: what the two differ by is the noise of the study. Each
//! repeat runs one block per condition, in an order of its own.
//!
//! [`plan`] draws that order. [`next`] is the strategy by which a run carries it out: it takes the
//! plan and the [`Outcomes`] so far and gives the next [`Step`]. It is put together from small
//! strategies: the loads on a start, blocks that run again, and looks after which a run may end.

mod blocks;
mod looks;
mod order;
mod outcomes;
mod spare;
mod strategy;

pub use order::{Options, plan};
pub use outcomes::{Look, Outcome, Outcomes};
pub use spare::{MOST_ATTEMPTS, Retry, left_out};
pub use strategy::{Step, next, remaining};
