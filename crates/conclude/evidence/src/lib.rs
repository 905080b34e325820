//! Simulations that validate Plimsoll's method.
//!
//! Each module of [`sections`] simulates studies whose truth is known, calls the rules of the
//! product ([`plimsoll_analysis::decide`], [`plimsoll_analysis::analyse`],
//! [`plimsoll_statistics::steady`]), and counts how often they are right. The program
//! `method-evidence` prints the results as docs/method-evidence.md; the tests run the same
//! simulations with fewer studies.
//!
//! [`noise_models`] defines the noise, [`replicates`] runs many studies, [`study`] makes a whole
//! [`Input`](plimsoll_analysis::Input) of one, and [`section`] compares the results with the
//! requirements.

pub mod machines;
pub mod noise_models;
pub mod orders;
pub mod page;
pub mod random;
pub mod replicates;
pub mod rules;
pub mod section;
pub mod sections;
pub mod study;
