//! Where redirects and links lead: to the same server, or nowhere.

use super::compile::CompiledFlow;
use super::reply::Reply;
use super::request::Request;
use plimsoll_engine::protocol::Failure;
use plimsoll_model::record::ErrorKind;
use plimsoll_web::{Place, Url};

/// A request that follows a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    /// Path and query.
    pub(super) target: String,
    /// True if it is a GET whatever the first request was (RFC 9110, section 15.4), without a body.
    pub(super) drops_body: bool,
    /// How many redirects were followed.
    pub(super) count: u8,
}

impl Hop {
    /// Where the reply leads; `None` where it is no redirect that is to be followed: those whose
    /// status the step expects are not.
    pub(super) fn after(
        plan: &CompiledFlow,
        request: &Request,
        before: Option<&Hop>,
        reply: &Reply,
    ) -> Result<Option<Hop>, Failure> {
        let drops_body = match reply.status {
            301 | 302 => &*request.method == "POST" || before.is_some_and(|hop| hop.drops_body),
            303 => true,
            307 | 308 => before.is_some_and(|hop| hop.drops_body),
            _ => return Ok(None),
        };
        if plan.redirects == 0 || request.checks.status.contains(&reply.status) {
            return Ok(None);
        }
        let Some(location) = reply.header("location").next() else { return Ok(None) };
        let count = before.map_or(0, |hop| hop.count);
        if count == plan.redirects {
            let (most, location) = (plan.redirects, String::from_utf8_lossy(location));
            let detail = format!("expected at most {most} redirects in a row, found another one to `{location}`");
            return Err(Failure::new(ErrorKind::Redirect, detail));
        }
        let here = plan.origin.resolve(&reply.target).map_err(|fault| no_url(&fault))?;
        let target = target_on(&plan.origin, &here, &String::from_utf8_lossy(location))?;
        Ok(Some(Hop { target, drops_body, count: count + 1 }))
    }
}

/// Path and query of where a reference leads from `here`, which must be the same server.
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

/// What cookies of this target go by.
pub(super) fn place<'a>(origin: &'a Url, target: &'a str) -> Place<'a> {
    Place { path: target.split('?').next().unwrap_or_default(), ..origin.place() }
}
