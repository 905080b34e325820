//! Results of two versions that other tools recorded: a folder each, with tables and with time series of Prometheus.
//!
//! `docs/guide.md` describes the folders. [`read`] makes a [`Version`] of one, whatever the files look like; [`compare()`] holds a
//! second version against a first, name by name; [`limits`] says what cannot be concluded from such files. Nothing here gives a
//! verdict: in which order the runs were made, and whether the load generator kept up, no file tells.

mod compare;
mod fault;
mod folder;
pub mod limits;
mod measure;
mod range;
mod recorded;
mod table;

pub use compare::{Change, Compared, compare};
pub use fault::Fault;
pub use folder::{is_outside, read};
pub use measure::{SUPPORTED_USERS, better, title, unit};
pub use recorded::{Case, Line, Recorded, Run, Version};
