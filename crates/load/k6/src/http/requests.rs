//! What users ask for again and again: made once for all users of a thread.

use super::fault::Fault;
use super::fetch::{Asked, Target};
use super::headers::Headers;
use crate::operations::Statuses;
use plimsoll_web::Url;
use plimsoll_web::url::Parts;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// How many URLs are remembered; those of scripts that never ask for the same one twice are forgotten all at once.
const MOST: usize = 1000;

/// What servers are told, unless the options say otherwise.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// The requests of a thread's users, as far as they have something in common.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The headers of every request.
    pub(crate) headers: Rc<Headers>,
    /// The body of requests that have none.
    pub(crate) no_body: Rc<Vec<u8>>,
    /// Which statuses are none of a failure, unless a script says otherwise.
    pub(crate) expected: Rc<Statuses>,
    known: RefCell<HashMap<Rc<str>, Known>>,
}

/// A URL, and the last request that had nothing else.
#[derive(Debug)]
struct Known {
    target: Rc<Target>,
    plain: Option<Rc<Asked>>,
}

impl Requests {
    pub(crate) fn new(agent: Option<&str>) -> Requests {
        let mut headers = Headers::default();
        headers.set("User-Agent", agent.unwrap_or(USER_AGENT));
        let (no_body, expected, known) = (Rc::default(), Rc::default(), RefCell::default());
        Requests { headers: Rc::new(headers), no_body, expected, known }
    }

    /// A URL, taken apart; a fault for what is none.
    pub(crate) fn target(&self, written: &str) -> Result<Rc<Target>, Fault> {
        let mut all = self.known.borrow_mut();
        if let Some(known) = all.get(written) {
            return Ok(Rc::clone(&known.target));
        }
        if all.len() == MOST {
            all.clear();
        }
        let url = reached(written)?;
        let target = Rc::new(Target { written: written.into(), url });
        all.insert(Rc::clone(&target.written), Known { target: Rc::clone(&target), plain: None });
        Ok(target)
    }

    /// The last request of this URL that had nothing else.
    pub(crate) fn plain(&self, written: &str) -> Option<Rc<Asked>> {
        self.known.borrow().get(written)?.plain.clone()
    }

    /// Keeps a request that has nothing but its URL.
    pub(crate) fn keep_plain(&self, asked: &Rc<Asked>) {
        if let Some(known) = self.known.borrow_mut().get_mut(&*asked.target.written) {
            known.plain = Some(Rc::clone(asked));
        }
    }
}

/// Whom a URL asks. As in k6, one that can be read but leads nowhere is that of a request, which fails.
fn reached(written: &str) -> Result<Result<Rc<Url>, Fault>, Fault> {
    match nowhere(&Parts::split(written.trim())) {
        Some(fault) => Ok(Err(fault)),
        None => Url::parse(written).map(|url| Ok(Rc::new(url))).map_err(|why| Fault::of_url(&why)),
    }
}

/// Why a URL leads nowhere.
fn nowhere(parts: &Parts<'_>) -> Option<Fault> {
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
    fn a_url_is_taken_apart_once_and_forgotten_after_many_others() {
        let requests = Requests::new(None);
        let first = requests.target("http://h/").expect("a URL");
        assert!(Rc::ptr_eq(&first, &requests.target("http://h/").expect("a URL")));
        (0..MOST).for_each(|number| drop(requests.target(&format!("http://h/{number}"))));
        assert!(!Rc::ptr_eq(&first, &requests.target("http://h/").expect("a URL")));
        assert!(requests.target("http://[::1").is_err() && requests.known.borrow().len() <= MOST);
    }

    /// Codes and what is a request as in k6 v1.8.1.
    #[test]
    fn what_leads_nowhere_is_told_from_what_is_no_url() {
        let requests = Requests::new(None);
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
