//! The cookies of a client: RFC 6265, sections 5.3 and 5.4.

use super::{SetCookie, UnixSeconds};
use crate::url::Place;
use std::cmp::Reverse;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The most cookies of a host or domain: the minimum that section 6.1 demands. One more removes the
/// oldest. Otherwise a server that sets a new name each time would fill the memory of all users.
const MOST_OF_DOMAIN: usize = 50;

/// Longer ones (name and value) are ignored, as browsers do: RFC 6265bis, section 5.6.
const LONGEST: usize = 4096;

/// The cookies of one user.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    /// In the order in which they were first set.
    cookies: Vec<Cookie>,
}

#[derive(Clone, Debug)]
struct Cookie {
    name: Box<str>,
    value: Box<str>,
    domain: Box<str>,
    /// True if only this host gets it, and not its subdomains.
    host_only: bool,
    path: Box<str>,
    secure: bool,
    end: Option<UnixSeconds>,
}

impl Jar {
    /// Takes the header `Set-Cookie` of a reply from this place.
    pub fn receive(&mut self, header: &str, from: Place<'_>, now: UnixSeconds) {
        if let Some(cookie) = SetCookie::parse(header) {
            self.set(&cookie, from, now);
        }
    }

    /// Takes a cookie as if that place had set it. False if it may not: for a domain to
    /// which it does not belong, nor one that is too long.
    pub fn set(&mut self, cookie: &SetCookie, from: Place<'_>, now: UnixSeconds) -> bool {
        let Some((domain, host_only)) = scope(cookie.domain.as_deref().unwrap_or_default(), from.host) else {
            return false;
        };
        // Otherwise an attacker on a plain connection could set cookies for TLS: RFC 6265bis.
        if cookie.name.len() + cookie.value.len() > LONGEST || (cookie.secure && !from.secure) {
            return false;
        }
        let path = cookie.path.as_deref().unwrap_or_else(|| default_path(from.path));
        let known = |kept: &Cookie| (&*kept.name, &*kept.domain, &*kept.path) == (&*cookie.name, domain, path);
        let new = Cookie {
            name: cookie.name.as_str().into(),
            value: cookie.value.as_str().into(),
            domain: domain.into(),
            host_only,
            path: path.into(),
            secure: cookie.secure,
            end: cookie.end(now),
        };
        match (self.cookies.iter().position(known), new.is_over(now)) {
            (Some(place), false) => self.cookies[place] = new,
            (Some(place), true) => drop(self.cookies.remove(place)),
            (None, false) => self.add(new, now),
            (None, true) => {}
        }
        true
    }

    fn add(&mut self, new: Cookie, now: UnixSeconds) {
        let of_domain = |kept: &&Cookie| kept.domain == new.domain;
        if self.cookies.iter().filter(of_domain).count() >= MOST_OF_DOMAIN {
            self.cookies.retain(|kept| !kept.is_over(now));
        }
        if self.cookies.iter().filter(of_domain).count() >= MOST_OF_DOMAIN {
            let oldest = self.cookies.iter().position(|kept| of_domain(&kept)).expect("there are many");
            self.cookies.remove(oldest);
        }
        self.cookies.push(new);
    }

    /// Names and values of the cookies for this place, in the order of section 5.4: longer paths before
    /// shorter ones, then earlier cookies.
    #[must_use]
    pub fn cookies(&self, to: Place<'_>, now: UnixSeconds) -> Vec<(&str, &str)> {
        let mut sent: Vec<&Cookie> = self.cookies.iter().filter(|cookie| cookie.goes_to(to, now)).collect();
        sent.sort_by_key(|cookie| Reverse(cookie.path.len()));
        sent.into_iter().map(|cookie| (&*cookie.name, &*cookie.value)).collect()
    }

    /// Appends the value of the header `Cookie` for this place. False if there is no cookie.
    pub fn write(&self, to: Place<'_>, now: UnixSeconds, out: &mut Vec<u8>) -> bool {
        let sent = self.cookies(to, now);
        for (index, (name, value)) in sent.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            [separator, name, "=", value].iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        }
        !sent.is_empty()
    }

    /// Removes the cookies of this name for this place.
    pub fn remove(&mut self, name: &str, place: Place<'_>, now: UnixSeconds) {
        self.cookies.retain(|cookie| !(&*cookie.name == name && cookie.goes_to(place, now)));
    }

    /// Removes all cookies for this place.
    pub fn clear(&mut self, place: Place<'_>, now: UnixSeconds) {
        self.cookies.retain(|cookie| !cookie.goes_to(place, now));
    }

    /// True without cookies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }
}

impl Cookie {
    fn is_over(&self, now: UnixSeconds) -> bool {
        self.end.is_some_and(|end| end <= now)
    }

    fn goes_to(&self, place: Place<'_>, now: UnixSeconds) -> bool {
        let host = place.host == &*self.domain || (!self.host_only && lies_below(place.host, &self.domain));
        host && path_matches(place.path, &self.path) && (place.secure || !self.secure) && !self.is_over(now)
    }
}

/// The domain of a cookie that a host sets, and whether it is for the host alone; `None` if it may not.
///
/// A name without a dot, such as `com`, is what this jar knows of public suffixes: a host of that
/// name has it for itself, any other may not set it (section 5.3, step 5).
fn scope<'a>(domain: &'a str, host: &'a str) -> Option<(&'a str, bool)> {
    if domain.is_empty() || (domain == host && (is_address(host) || !host.contains('.'))) {
        return Some((host, true));
    }
    let belongs = domain == host || (lies_below(host, domain) && domain.contains('.'));
    belongs.then_some((domain, false))
}

/// Section 5.1.3, without the case in which both are equal.
fn lies_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')) && !is_address(host)
}

fn is_address(host: &str) -> bool {
    let brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    host.parse::<Ipv4Addr>().is_ok() || brackets.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
}

/// Section 5.1.4: the path up to its last slash.
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(slash) if slash > 0 && path.starts_with('/') => &path[..slash],
        _ => "/",
    }
}

/// Section 5.1.4.
fn path_matches(path: &str, cookie: &str) -> bool {
    path.strip_prefix(cookie).is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}
