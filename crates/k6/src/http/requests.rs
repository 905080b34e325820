//! What users ask for again and again: made once for all users of a thread.

use super::fetch::{Asked, Target};
use super::headers::Headers;
use crate::operations::Statuses;
use plimsoll_web::{Url, UrlFault};
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

    /// A URL, taken apart.
    pub(crate) fn target(&self, written: &str) -> Result<Rc<Target>, UrlFault> {
        let mut all = self.known.borrow_mut();
        if let Some(known) = all.get(written) {
            return Ok(Rc::clone(&known.target));
        }
        if all.len() == MOST {
            all.clear();
        }
        let url = Rc::new(Url::parse(written)?);
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
        assert!(requests.target("nope").is_err() && requests.known.borrow().len() <= MOST);
    }
}
