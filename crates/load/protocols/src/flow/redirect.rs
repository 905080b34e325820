//! Resolves redirects and links. They must lead to the same server.

use super::compile::CompiledFlow;
use super::reply::Reply;
use super::request::Request;
use plimsoll_engine::protocol::Failure;
use plimsoll_model::record::ErrorKind;
use plimsoll_web::{Place, Url};

/// A request that follows a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Path and query.
    pub(super) target: String,
    /// True if it is a GET whatever the first request was (RFC 9110, section 15.4), without a body.
    pub(super) drops_body: bool,
    /// The number of redirects followed so far, this one included.
    pub(super) count: u8,
}

impl Redirect {
    /// The redirect of a reply; `None` if there is none to follow. A status that the step expects is not
    /// followed.
    pub(super) fn after(
        flow: &CompiledFlow,
        request: &Request,
        before: Option<&Redirect>,
        reply: &Reply,
    ) -> Result<Option<Redirect>, Failure> {
        let drops_body = match reply.status {
            301 | 302 => &*request.method == "POST" || before.is_some_and(|redirect| redirect.drops_body),
            303 => true,
            307 | 308 => before.is_some_and(|redirect| redirect.drops_body),
            _ => return Ok(None),
        };
        if flow.redirects == 0 || request.checks.status.contains(&reply.status) {
            return Ok(None);
        }
        let Some(location) = reply.header("location").next() else { return Ok(None) };
        let count = before.map_or(0, |redirect| redirect.count);
        if count == flow.redirects {
            let (most, location) = (flow.redirects, String::from_utf8_lossy(location));
            let detail = format!("expected at most {most} redirects in a row, found another one to `{location}`");
            return Err(Failure::new(ErrorKind::Redirect, detail));
        }
        let here = flow.origin.resolve(&reply.target).map_err(|fault| no_url(&fault))?;
        let target = target_on(&flow.origin, &here, &String::from_utf8_lossy(location))?;
        Ok(Some(Redirect { target, drops_body, count: count + 1 }))
    }
}

/// Resolves a reference from `here`, and returns path and query. It must lead to the same server.
pub(super) fn target_on(origin: &Url, here: &Url, reference: &str) -> Result<String, Failure> {
    let there = here.resolve(reference).map_err(|fault| no_url(&fault))?;
    if there.is_same_origin(origin) {
        return Ok(there.target());
    }
    let detail =
        format!("expected a link to the same server, found `{there}`: flows go to the workload's target alone");
    Err(Failure::new(ErrorKind::Redirect, detail))
}

fn no_url(fault: &dyn std::fmt::Display) -> Failure {
    Failure::new(ErrorKind::Redirect, fault.to_string())
}

/// The parts of this target that decide about cookies.
pub(super) fn place<'a>(origin: &'a Url, target: &'a str) -> Place<'a> {
    Place { path: target.split('?').next().unwrap_or_default(), ..origin.place() }
}
