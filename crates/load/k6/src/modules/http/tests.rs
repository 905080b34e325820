//! Scripts in the engine, with functions in place of sockets.

mod bodies;
mod cookies;
mod hops;
mod responses;
mod sampling;

use crate::operations::{HttpFault, HttpFaultKind, HttpResponse};
use crate::testing::{TIMINGS, TestUser};
use plimsoll_model::units::Instant;

/// A user of a script whose default function is `{body}`.
fn user(body: &str) -> TestUser {
    TestUser::of(&format!("import http from 'k6/http'; export default function () {{ {body} }}"))
}

/// A response without a reply.
fn fault(kind: HttpFaultKind) -> HttpResponse {
    let detail = "because of this".to_owned();
    HttpResponse {
        outcome: Err(HttpFault { kind, detail }),
        remote: None,
        tls: None,
        timings: TIMINGS,
        done: Instant::default(),
    }
}
