//! Simulations that show that Plimsoll's method holds.
//!
//! Each module of [`sections`] simulates studies in which the truth is known, lets the product
//! decide ([`plimsoll_analysis::decide`], [`plimsoll_analysis::analyse`],
//! [`plimsoll_statistics::steady`]), and counts how often that is right. The program
//! `method-evidence` prints all of it as docs/method-evidence.md; the tests run the same with fewer
//! studies.
//!
//! [`noise_models`] says what noise is like, [`replicates`] runs many studies, [`study`] makes a whole
//! [`Input`](plimsoll_analysis::Input) of one, and [`section`] holds what was found against what is
//! demanded.

pub mod noise_models;
pub mod orders;
pub mod page;
pub mod random;
pub mod replicates;
pub mod rules;
pub mod section;
pub mod sections;
pub mod study;
