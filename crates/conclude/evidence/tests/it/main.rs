//! The simulations and the pages about them, and input that no study should give.

mod bad_input;
mod pages;
mod simulations;
