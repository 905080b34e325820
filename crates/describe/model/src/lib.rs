//! The nouns and units of a performance study, shared by every other crate.
//!
//! Nothing here does IO, reads a clock, or draws a random number. A study file is read into [`factor`]s and
//! specifications; the plan orders [`start`]s; the generator runs a [`workload`] under a [`load`] profile against a
//! [`system`]; the result is the [`record`]s of a load, from which [`measure`]s are computed. A run reports its
//! progress as [`event`]s.

pub mod agent;
pub mod database;
pub mod event;
pub mod exposed;
pub mod factor;
pub mod feedback;
pub mod flow;
pub mod host;
pub mod job;
pub mod json;
pub mod load;
pub mod look;
pub mod measure;
pub mod objective;
pub mod plan;
pub mod record;
pub mod result;
pub mod sample;
pub mod script;
pub mod search;
pub mod shell;
pub mod sql;
pub mod start;
pub mod storage;
pub mod study;
pub mod suggestion;
pub mod system;
mod target;
pub mod units;
pub mod words;
pub mod workload;
