//! The bundle: the folder that holds all results of a run.
//!
//! ```text
//! BUNDLE/
//!   manifest.jsonl    first the format, then one line for each sealed part with its hashes
//!   study.toml        the study as written
//!   study.json        what a report needs to know of it
//!   plan.json         every start as planned, in order
//!   host.json         the machine
//!   versions.json     what was run
//!   events.jsonl      everything that happened, with the time
//!   build-NAME.log    what builds wrote
//!   starts/0001/      one folder a start: summary, interval logs, series, outputs
//! ```
//!
//! It only ever grows. A start is written into a folder with a temporary name, synced, renamed, and only then entered
//! in the manifest. So `kill -9` at any instant leaves complete starts intact. [`BundleWriter`] subscribes to the
//! events of a run and writes them; [`read`] reads back everything that is intact and names the damage. docs/bundle.md
//! describes every file for those who want to read it with other tools.

mod conceal;
mod consistency;
mod earlier;
mod error;
mod files;
mod interval_log;
mod manifest;
mod note;
mod origin;
mod read;
mod run_folder;
mod start;
mod tables;
mod writer;

pub use error::BundleError;
pub use note::Note;
pub use origin::{is_bundle, written_by};
pub use read::{Contents, design_of, read};
pub use run_folder::RunFolder;
pub use writer::{BundleWriter, folder_time};

/// The version of the format that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 3;
