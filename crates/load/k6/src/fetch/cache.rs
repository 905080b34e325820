//! Requests that users make again and again, built once for all users of a thread.

use super::fault::Fault;
use super::headers::Headers;
use super::request::{ScriptRequest, Target};
use crate::operations::Statuses;
use plimsoll_javascript::HeldBytes;
use plimsoll_web::Url;
use plimsoll_web::url::Parts;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The most URLs that are kept. One more clears the cache: such scripts rarely use a URL twice.
const MOST: usize = 1000;

/// The `User-Agent` of scripts whose options set none.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// What the requests of a thread's users share.
#[derive(Debug)]
pub(crate) struct RequestCache {
    /// The headers of every request.
    pub(crate) headers: Rc<Headers>,
    /// The body of requests that have none.
    pub(crate) no_body: Rc<HeldBytes>,
    /// The expected statuses of scripts that set none.
    pub(crate) expected: Rc<Statuses>,
    entries: RefCell<HashMap<Rc<str>, Entry>>,
}

/// A URL, and the last request that consisted of nothing else.
#[derive(Debug)]
struct Entry {
    target: Rc<Target>,
    url_only: Option<Rc<ScriptRequest>>,
}

impl RequestCache {
    pub(crate) fn new(agent: Option<&str>) -> RequestCache {
        let mut headers = Headers::default();
        headers.set("User-Agent", agent.unwrap_or(USER_AGENT));
        let (no_body, expected, entries) = (Rc::default(), Rc::default(), RefCell::default());
        RequestCache { headers: Rc::new(headers), no_body, expected, entries }
    }

    /// A URL, parsed. A fault for a text that is no URL.
    pub(crate) fn target(&self, written: &str) -> Result<Rc<Target>, Fault> {
        let mut entries = self.entries.borrow_mut();
        if let Some(entry) = entries.get(written) {
            return Ok(Rc::clone(&entry.target));
        }
        if entries.len() == MOST {
            entries.clear();
        }
        let url = parse(written)?;
        let target = Rc::new(Target { written: written.into(), url });
        entries.insert(Rc::clone(&target.written), Entry { target: Rc::clone(&target), url_only: None });
        Ok(target)
    }

    /// The last request that consisted of this URL alone.
    pub(crate) fn url_only(&self, written: &str) -> Option<Rc<ScriptRequest>> {
        self.entries.borrow().get(written)?.url_only.clone()
    }

    /// Keeps a request that consists of its URL alone.
    pub(crate) fn keep_url_only(&self, request: &Rc<ScriptRequest>) {
        if let Some(entry) = self.entries.borrow_mut().get_mut(&*request.target.written) {
            entry.url_only = Some(Rc::clone(request));
        }
    }
}

/// Parses a URL. As in k6, one that can be parsed but leads nowhere makes a request, which fails.
fn parse(written: &str) -> Result<Result<Rc<Url>, Fault>, Fault> {
    match leads_nowhere(&Parts::split(written.trim())) {
        Some(fault) => Ok(Err(fault)),
        None => Url::parse(written).map(|url| Ok(Rc::new(url))).map_err(|why| Fault::of_url(&why)),
    }
}

/// The reason if a URL leads nowhere.
fn leads_nowhere(parts: &Parts<'_>) -> Option<Fault> {
    let scheme = parts.scheme.unwrap_or_default().to_ascii_lowercase();
    if !["http", "https"].contains(&scheme.as_str()) {
        let first = parts.path.split('/').next().unwrap_or_default();
        // `127.0.0.1:80/` begins with no scheme, and a path without one cannot begin like this (RFC 3986, 4.2).
        let is_no_url = parts.scheme.is_none() && parts.authority.is_none() && first.contains(':');
        return (!is_no_url).then(|| Fault::of_scheme(&scheme));
    }
    let authority = parts.authority.unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    if address.is_empty() {
        return Some(Fault::other("http: no Host in request URL"));
    }
    let (_, port) = address.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && port.parse::<u16>().is_err())
        .then(|| Fault::of_address(format!("dial tcp: address {port}: invalid port")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_parsed_once_until_the_cache_is_full() {
        let requests = RequestCache::new(None);
        let first = requests.target("http://h/").expect("a URL");
        assert!(Rc::ptr_eq(&first, &requests.target("http://h/").expect("a URL")));
        (0..MOST).for_each(|number| drop(requests.target(&format!("http://h/{number}"))));
        assert!(!Rc::ptr_eq(&first, &requests.target("http://h/").expect("a URL")));
        assert!(requests.target("http://[::1").is_err() && requests.entries.borrow().len() <= MOST);
    }

    /// As in k6 v1.8.1: the codes, and which texts make a request.
    #[test]
    fn urls_that_lead_nowhere_make_requests_and_other_texts_do_not() {
        let requests = RequestCache::new(None);
        for (written, code) in [
            ("", 1000),
            ("nope/x", 1000),
            ("//h/x", 1000),
            ("undefined/a:b", 1000),
            ("localhost:80/x", 1000),
            ("ftp://h/", 1000),
            ("http://", 1000),
            ("http:///x", 1000),
            ("http://h:99999/", 1210),
        ] {
            let target = requests.target(written).unwrap_or_else(|fault| panic!("{written}: {fault:?}"));
            assert_eq!(target.url.as_ref().map_err(|fault| fault.code), Err(code), "{written}");
        }
        for written in ["127.0.0.1:80/x", "http://[::1", "http://h:x/"] {
            assert_eq!(requests.target(written).expect_err(written).code, 1020, "{written}");
        }
        assert!(requests.target("http://[::1]:80/").expect("a URL").url.is_ok());
    }
}
