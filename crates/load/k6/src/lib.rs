//! Scripts for k6: the modules that they import, and the users that run them. Without sockets: what a script sends goes
//! to whoever runs it, as [`operations`].
//!
//! Where k6's documentation leaves something open, this does what k6 v1.8.1 was seen to do.

mod fetch;
pub mod gjson;
mod hex;
mod modules;
mod native;
pub mod operations;
mod runtime;
mod schema;
pub mod secrets;
#[cfg(test)]
mod testing;
pub mod user;
mod value;

pub use runtime::prepare;

use modules::experimental::{csv, fs, streams};
use modules::{core, crypto, data, encoding, execution, grpc, html, http, metrics, timers, websockets, ws};
use plimsoll_javascript::{NativeModule, Natives};
use plimsoll_model::suggestion::did_you_mean;

/// The names that a misspelt import may stand for.
const NAMES: [&str; 15] = [
    crypto::Crypto::NAME,
    csv::Csv::NAME,
    data::Data::NAME,
    encoding::Encoding::NAME,
    execution::Execution::NAME,
    fs::Fs::NAME,
    grpc::Grpc::NAME,
    html::Html::NAME,
    http::Http::NAME,
    metrics::Metrics::NAME,
    modules::secrets::Secrets::NAME,
    streams::Streams::NAME,
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
        .with::<csv::Csv>()
        .with::<data::Data>()
        .with::<encoding::Encoding>()
        .with::<execution::Execution>()
        .with::<fs::Fs>()
        .with::<grpc::Grpc>()
        .with::<html::Html>()
        .with::<http::Http>()
        .with::<metrics::Metrics>()
        .with::<modules::secrets::Secrets>()
        .with::<streams::Streams>()
        .with::<timers::Timers>()
        .with::<websockets::WebSockets>()
        // Its former name.
        .with_named::<websockets::WebSockets>("k6/experimental/websockets")
        .with::<ws::Ws>()
        .refusing(refusal)
}

/// The reason if a module of k6 is not supported.
fn refusal(name: &str) -> Option<String> {
    let instead = match name {
        "k6/browser" | "k6/experimental/browser" => "there is no browser here",
        "k6/experimental/grpc" => "import `k6/net/grpc`",
        "k6/experimental/timers" => "import `k6/timers`, or use the global functions",
        "k6/experimental/webcrypto" => "use the global `crypto`",
        "k6/cloud" | "k6/experimental/tracing" | "k6/experimental/redis" => "Plimsoll does without it",
        _ if name.starts_with("k6/x/") => "extensions of k6 are programs of their own",
        _ if name.starts_with("k6/") => {
            &did_you_mean(name, NAMES.into_iter()).unwrap_or("Plimsoll does not have it".to_owned())
        }
        _ => return None,
    };
    Some(format!("`{name}` is not supported: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_modules_are_refused_by_name() {
        for name in ["k6/browser", "k6/x/sql", "k6/experimental/redis", "k6/net/dns"] {
            let message = refusal(name).expect("it is one of k6's");
            assert!(message.contains(name) && message.contains("not supported"), "{message}");
        }
        assert_eq!(refusal("k6/htp").as_deref(), Some("`k6/htp` is not supported: did you mean `k6/http`?"));
        assert_eq!(refusal("lodash"), None);
    }
}
