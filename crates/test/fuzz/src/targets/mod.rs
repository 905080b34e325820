//! The targets, by what they parse.

mod audit;
mod bundle;
mod exposition;
mod feed;
mod grpc;
mod http;
mod json;
mod outside;
mod script;
mod sql;
mod study;
mod web;
mod websocket;

use crate::Target;

/// All targets.
pub const TARGETS: [Target; 23] = [
    target("study", study::study, 100),
    target("http_response", http::response, 20_000),
    target("http2_frames", grpc::frames, 20_000),
    target("hpack", grpc::header_block, 20_000),
    target("grpc_reflection", grpc::reflection, 5_000),
    target("websocket_handshake", websocket::handshake, 5_000),
    target("websocket_frames", websocket::frames, 20_000),
    target("postgresql", sql::postgresql, 1_000),
    target("mysql", sql::mysql, 1_000),
    target("json_path", json::json_path, 1_000),
    target("gjson", json::gjson, 5_000),
    target("cookies", web::cookies, 5_000),
    target("url", web::url, 5_000),
    target("coding", web::coding, 2_000),
    target("exposition", exposition::exposition, 5_000),
    target("bundle", bundle::bundle, 300),
    target("report", bundle::report, 50),
    target("audit", audit::audit, 200),
    target("outside", outside::outside, 200),
    target("javascript", script::javascript, 300),
    target("typescript", script::typescript, 300),
    target("feed_csv", feed::csv, 5_000),
    target("feed_json", feed::json, 5_000),
];

const fn target(name: &'static str, run: fn(&[u8]), mutations: u32) -> Target {
    Target { name, run, mutations }
}

/// The first byte of an input, which chooses between ways to run a parser, and the rest.
fn chosen(input: &[u8]) -> (u8, &[u8]) {
    input.split_first().map_or((0, input), |(first, rest)| (*first, rest))
}

/// The input as text. What is no UTF-8 is replaced: a parser of text does not see it.
fn text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// The first line of a text and the rest.
fn first_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// The pieces in which a server's bytes arrive.
fn pieces(way: u8, bytes: &[u8]) -> std::slice::Chunks<'_, u8> {
    bytes.chunks([1, 7, 16 * 1024, usize::MAX][usize::from(way % 4)])
}
