//! What scripts for k6 say, and what they get back: as pure functions, without an engine for
//! JavaScript and without sockets.
//!
//! Where k6's documentation leaves something open, this does what k6 v1.8.1 was seen to do.

pub mod checks;
pub mod duration;
pub mod gjson;
pub mod metrics;
pub mod options;
pub mod output;
pub mod scenario;
pub mod summary;
pub mod threshold;
