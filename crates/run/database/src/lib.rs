//! Databases as systems: initialised and loaded once, kept as a snapshot, restored before every
//! start, started with the study's settings, sampled while they run.
//!
//! [`Databases`] belongs to a run and knows the data on the disk. [`Databases::prepare`] prepares one
//! database for one start. Servers that were there before are not touched: data lies in folders that
//! Plimsoll made and marked, and a folder without that mark is refused.

mod account;
mod counter_sampler;
mod counters;
mod data_builder;
mod data_folder;
mod databases;
mod disk;
mod disk_space;
mod engine;
mod error;
mod external;
mod inspect;
mod mark;
mod programs;
mod ready;
mod refused_login;
mod rejected_settings;
mod run_program;
mod safety;
mod scratch;
mod settings;
mod shared_memory;
mod study_command;
mod tables;

pub use counter_sampler::{CounterSampler, CounterSeries};
pub use databases::{Databases, OnDataEvent, PreparedDatabase, Restored, check};
pub use disk_space::{check_disk_space_of_starts, expected_size};
pub use error::DatabaseError;
pub use inspect::{check_connections, check_expected, conditions, evaluate_conditions, evaluate_expected, facts};
pub use refused_login::refused_login;
pub use safety::risky_settings_of_load;
pub use scratch::{remove_all_leftovers, remove_leftovers};
