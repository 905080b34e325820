//! The study file: `study.toml` becomes a [`Study`], with every fault named at once.
//!
//! ```
//! let text = r#"
//! title = "two servers"
//! question = "which one is faster?"
//! factors.server = { levels = ["old", "new"], compare = true, baseline = "old" }
//! workload = { protocol = "http", target = "{web.address}", steps = [{ get = "/" }] }
//! load = { user = 10, duration = "20s" }
//! system.web.start = "./{server} --port {port}"
//! "#;
//! let (study, diagnostics) = plimsoll_study::read("study.toml", text, None, ".".as_ref(), &[0]);
//! assert!(study.is_none());
//! assert_eq!(
//!     diagnostics[0].to_string(),
//!     "study.toml:6:10: error: unknown key `user` in `load`; did you mean `users`?"
//! );
//! ```
//!
//! The way of a study through this crate: [`read`](mod@read) parses the text into a `document` of
//! nodes that know where they stand; each module in `table` reads one table of it, out of the kinds of
//! `value`; `placeholder_check` checks every `{placeholder}`; then `combination_check` resolves every
//! combination of levels once. A [`Study`] resolves its trials again when they run, with the ports that
//! the runner has picked.
//!
//! Nothing here does IO: neither the study file nor what it names is opened.

mod against_itself;
mod combination_check;
mod document;
mod hosts;
mod placeholder_check;
mod quick;
mod quick_load;
mod read;
mod sample_size;
mod schema;
mod script_metrics;
mod study;
mod table;
mod trial_spec;
mod trial_tables;
mod value;

pub use against_itself::against_itself;
pub use document::{Diagnostic, Severity, Span, Style, render};
pub use hosts::may_load;
pub use quick::quick;
pub use read::read;
pub use schema::json_schema;
pub use script_metrics::ScriptMetrics;
pub use study::Study;
pub use table::generator::LostAgent;
pub use table::secret::SecretSource;
pub use trial_spec::TrialSpec;
pub use trial_tables::PortChoice;
pub use value::{Bindings, Place};
