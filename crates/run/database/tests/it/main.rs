//! Databases as a run uses them, with real servers of both kinds.

mod common;
mod faults;
mod kept;
mod life;
mod safety;
