//! A run of a script for k6, apart from the script: what goes in (options, which become scenarios) and what comes out
//! (samples in metrics, checks, thresholds, the summary, and samples one by one or by their tags).
//!
//! It needs no JavaScript engine and no socket. Where k6's documentation leaves something open, this does what k6
//! v1.8.1 was seen to do.

pub mod checks;
pub mod duration;
pub mod log_limit;
pub mod metrics;
pub mod options;
pub mod output;
pub mod scenario;
pub mod series;
pub mod summary;
pub mod threshold;
