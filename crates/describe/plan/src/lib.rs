//! Plans the starts of a study in a fair order, and decides what a run does next. Pure: the same
//! seed gives the same result.
//!
//! The order is that of randomised complete blocks: a *block* holds each variant under one
//! condition, close together in time, so that a machine that slows down or warms up affects all of
//! them alike. The baseline is in each block twice: the difference of the two is the noise of the
//! study. Each repeat runs one block per condition, in random order.
//!
//! [`plan`] draws that order. [`next`] is the strategy by which a run carries it out: it takes the
//! plan and the [`Outcomes`] so far and gives the next [`Step`]. It is composed of small
//! strategies: the loads on a start, searches for the capacity, blocks that run again, looks after which a run may end, and
//! when to break off on a machine that is too busy.
//!
//! A [`ControlLoop`] decides within a load, from second to second, how many users there are.

mod blocks;
mod capacity;
mod disturbed;
mod feedback;
mod looks;
mod order;
mod outcomes;
mod slices;
mod spare;
mod step;
mod strategy;

pub use capacity::search;
pub use disturbed::MOST_DISTURBED;
pub use feedback::{Control, ControlLoop};
pub use order::{Options, plan};
pub use outcomes::{EndedLoad, Outcome, Outcomes, Shown};
pub use slices::loads;
pub use spare::{MOST_ATTEMPTS, Retry, left_out};
pub use step::Step;
pub use strategy::{next, remaining};
