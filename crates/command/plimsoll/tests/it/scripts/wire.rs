//! The servers that scripts are run against, and what they have seen, without what no two clients have in common.

use plimsoll_testkit::grpc::{Counter, Mode};
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use plimsoll_testkit::websocket::SocketEvent;
use plimsoll_testkit::{Record, Request, websocket};
use std::net::SocketAddr;
use std::time::Duration;

/// One of each kind.
pub(crate) struct Servers {
    http: Server,
    sockets: websocket::Server,
    secure_sockets: websocket::Server,
    calls: Counter,
}

impl Servers {
    pub(crate) fn start() -> Servers {
        let sockets = websocket::Server::start().expect("a server");
        let secure_sockets = websocket::Server::start_tls().expect("a server");
        Servers { http: pages(), sockets, secure_sockets, calls: Counter::start(Mode::Mutex).expect("a server") }
    }

    /// What scripts have in `__ENV`.
    pub(crate) fn variables(&self) -> [String; 4] {
        let Servers { http, sockets, secure_sockets, calls } = self;
        [
            format!("URL=http://{}", http.address()),
            format!("SOCKETS=ws://{}", sockets.address()),
            format!("SECURE_SOCKETS=wss://{}", secure_sockets.address()),
            format!("CALLS={}", calls.address()),
        ]
    }

    /// What they have seen, in an order that does not depend on when it came.
    pub(crate) fn seen(&self) -> Wire {
        let Servers { http, sockets, secure_sockets, calls } = self;
        let messages = [sockets.received(), secure_sockets.received()].concat();
        // When a server hears of the end of a socket, its client may be gone already.
        let messages =
            messages.iter().filter(|message| !matches!(message.event, SocketEvent::Close(_) | SocketEvent::Cut));
        let messages = messages.map(|message| format!("{:?}", message.event));
        let openings = [sockets, secure_sockets].map(|server| seen(server.record(), server.address())).concat();
        let mut others: Vec<String> = messages.chain(openings).chain(seen(calls.record(), calls.address())).collect();
        others.sort();
        let mut requests = seen(http.record(), http.address());
        requests.sort();
        Wire { requests, others }
    }
}

/// Lines of what servers have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    /// Of HTTP.
    pub(crate) requests: Vec<String>,
    /// Of sockets and gRPC.
    pub(crate) others: Vec<String>,
}

/// Requests that came to a server.
fn seen(record: &Record, address: SocketAddr) -> Vec<String> {
    let requests = record.first_requests();
    requests.iter().map(|request| line(request).replace(&address.to_string(), "SERVER")).collect()
}

const PAGE: &str = r#"<html><head><title>A page</title></head><body><h1>Hello</h1>
<a href="/text?from=link">first</a> <a href="/other">second</a>
<ul><li>one</li><li>two</li></ul>
<form method="post" action="/sent"><input name="user" value="ann"><input type="hidden" name="token" value="t1">
<input type="submit" value="go"></form></body></html>"#;

const JSON: &str = r#"{"name":"ann","items":[{"id":1,"price":2.5},{"id":2,"price":4}],"ok":true}"#;

/// `hello, packed`, by gzip.
const PACKED: [u8; 33] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xd7, 0x51, 0x28, 0x48,
    0x4c, 0xce, 0x4e, 0x4d, 0x01, 0x00, 0xeb, 0xa1, 0xea, 0x08, 0x0d, 0x00, 0x00, 0x00,
];

/// A server that answers each path in its own way.
fn pages() -> Server {
    let text = || Reply::ok("hello").header("Content-Type", "text/plain");
    let to = |status, place: &str| Behaviour::at_once(Reply::ok("").status(status).header("Location", place));
    let json = Reply::ok(JSON).header("Content-Type", "application/json").header("x-answer-ID", "42");
    let cookie = text().header("Set-Cookie", "session=abc; Path=/").header("Set-Cookie", "theme=dark; HttpOnly");
    let packed = text_of(PACKED.to_vec()).header("Content-Encoding", "gzip");
    Server::builder(Behaviour::at_once(Reply::ok("fine")))
        .at("/text", Behaviour::at_once(text()))
        .at("/json", Behaviour::at_once(json))
        .at("/page", Behaviour::at_once(Reply::ok(PAGE).header("Content-Type", "text/html")))
        .at("/cookie", Behaviour::at_once(cookie))
        .at("/gzip", Behaviour::at_once(packed))
        .at("/redirect", to(302, "/text"))
        .at("/see-other", to(303, "text"))
        .at("/temporary", to(307, "/text"))
        .at("/loop", to(302, "/loop"))
        .at("/status/404", Behaviour::at_once(Reply::ok("none").status(404)))
        .at("/status/500", Behaviour::at_once(Reply::ok("broken").status(500)))
        .at("/slow", Behaviour::after(Duration::from_secs(2), text()))
        .start()
        .expect("a server")
}

fn text_of(body: Vec<u8>) -> Reply {
    Reply::ok(body).header("Content-Type", "text/plain")
}

fn line(request: &Request) -> String {
    let Request { method, path, .. } = request;
    if let Some(coding) = request.header("content-encoding") {
        // No two compress alike.
        return format!("{method} {path} packed by {coding}");
    }
    let boundary = request.header("content-type").and_then(|kind| kind.split_once("boundary="));
    let mut headers: Vec<String> = request.headers.iter().filter_map(|(name, value)| header(name, value)).collect();
    if boundary.is_some() {
        // Boundaries are as long as each client likes.
        headers.retain(|header| !header.starts_with("content-length"));
    }
    headers.sort();
    let body = String::from_utf8_lossy(&request.body);
    let line = format!("{method} {path} [{}] {}", headers.join(" | "), body.escape_debug());
    boundary.map_or(line.clone(), |(_, boundary)| line.replace(boundary, "BOUNDARY"))
}

/// A header, unless it says who the client is; of cookies, the order is free.
fn header(name: &str, value: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "user-agent" if value.contains("k6/") || value.starts_with("plimsoll") => None,
        // Of sockets and gRPC: made anew for each, or left to the client.
        "sec-websocket-key" | "grpc-timeout" | "te" | "grpc-accept-encoding" => None,
        "user-agent" if value.is_empty() || value.contains("grpc") => None,
        "cookie" => {
            let mut cookies: Vec<&str> = value.split("; ").collect();
            cookies.sort_unstable();
            Some(format!("{name}: {}", cookies.join("; ")))
        }
        _ => Some(format!("{name}: {value}")),
    }
}
