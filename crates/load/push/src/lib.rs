//! Sends the metrics of a script's run to a server while it goes on: by Prometheus remote write (k6's output
//! `experimental-prometheus-rw`) and by OTLP over HTTP or gRPC (k6's `opentelemetry`).
//!
//! Users add their samples to [series](plimsoll_k6_run::series) and never wait for a server. A thread of its own takes
//! these at intervals and sends what they have come to, so that a value that was lost on the way is made up for by the
//! next one. What is lost in the end is counted, and told by [`Push::finish`].

mod calls;
mod client;
mod otlp;
mod push;
mod remote_write;
mod settings;
mod variables;

pub use push::{Context, Mask, Push};
pub use settings::Settings;
