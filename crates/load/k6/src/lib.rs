//! What scripts for k6 say, and what they get back: its modules as natives for an engine, its options and
//! metrics, and what is shown of them. Without sockets: what is sent are [`operations`].
//!
//! Where k6's documentation leaves something open, this does what k6 v1.8.1 was seen to do.

pub mod checks;
pub mod core;
pub mod crypto;
pub mod data;
pub mod duration;
pub mod encoding;
pub mod execution;
pub mod gjson;
mod globals;
pub mod grpc;
pub mod html;
pub mod http;
mod listeners;
pub mod metrics;
mod module;
pub mod operations;
pub mod options;
pub mod output;
pub mod plan;
pub mod recording;
pub mod repeats;
pub mod scenario;
mod socket;
#[cfg(test)]
mod stand;
pub mod summary;
pub mod threshold;
pub mod timers;
pub mod user;
mod value;
pub mod websockets;
pub mod ws;

use plimsoll_javascript::{NativeModule, Natives, nearest};

/// The modules of two words or more: those that a name may be a slip of.
const NAMES: [&str; 11] = [
    crypto::Crypto::NAME,
    data::Data::NAME,
    encoding::Encoding::NAME,
    execution::Execution::NAME,
    grpc::Grpc::NAME,
    html::Html::NAME,
    http::Http::NAME,
    metrics::Metrics::NAME,
    timers::Timers::NAME,
    websockets::WebSockets::NAME,
    ws::Ws::NAME,
];

/// The modules that scripts for k6 import.
#[must_use]
pub fn natives() -> Natives {
    Natives::default()
        .with::<core::Core>()
        .with::<crypto::Crypto>()
        .with::<data::Data>()
        .with::<encoding::Encoding>()
        .with::<execution::Execution>()
        .with::<grpc::Grpc>()
        .with::<html::Html>()
        .with::<http::Http>()
        .with::<metrics::Metrics>()
        .with::<timers::Timers>()
        .with::<websockets::WebSockets>()
        // As it was called before.
        .with_named::<websockets::WebSockets>("k6/experimental/websockets")
        .with::<ws::Ws>()
        .refusing(refusal)
}

/// Why a module of k6 is not there.
fn refusal(name: &str) -> Option<String> {
    let instead = match name {
        "k6/browser" | "k6/experimental/browser" => "there is no browser here",
        "k6/experimental/grpc" => "import `k6/net/grpc`",
        "k6/experimental/timers" => "import `k6/timers`, or use the global functions",
        "k6/experimental/webcrypto" => "use the global `crypto`",
        "k6/experimental/fs" => "read files with `open()` while the script loads",
        "k6/experimental/csv" => "read the file with `open()` while the script loads, and split its lines",
        "k6/cloud" | "k6/experimental/tracing" | "k6/experimental/redis" | "k6/secrets" => "Plimsoll does without it",
        _ if name.starts_with("k6/x/") => "extensions of k6 are programs of their own",
        _ if name.starts_with("k6/") => {
            &nearest(name, NAMES.into_iter()).unwrap_or("Plimsoll does not have it".to_owned())
        }
        _ => return None,
    };
    Some(format!("`{name}` is not supported: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_are_not_there_are_refused_by_name() {
        for name in ["k6/browser", "k6/x/sql", "k6/experimental/redis", "k6/net/dns"] {
            let told = refusal(name).expect("it is one of k6's");
            assert!(told.contains(name) && told.contains("not supported"), "{told}");
        }
        assert_eq!(refusal("k6/htp").as_deref(), Some("`k6/htp` is not supported: did you mean `k6/http`?"));
        assert_eq!(refusal("lodash"), None);
    }
}
