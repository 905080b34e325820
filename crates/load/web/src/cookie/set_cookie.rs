//! The header `Set-Cookie`: RFC 6265, section 5.2.

use super::{UnixSeconds, date};

/// What a server asks a client to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetCookie {
    /// Its name, never empty.
    pub name: String,
    /// Its value as it was sent, quotes included.
    pub value: String,
    /// The domain it is for, in lower case and without a dot before it; else only for the host.
    pub domain: Option<String>,
    /// The path it is for, which begins with `/`; else the folder of the URL that set it.
    pub path: Option<String>,
    /// When it ends; with neither this nor an age, it ends with the jar.
    pub expires: Option<UnixSeconds>,
    /// In how many seconds it ends, which goes before the date. Zero or less removes the cookie.
    pub max_age: Option<i64>,
    /// Whether it goes over TLS only.
    pub secure: bool,
    /// Whether it is hidden from the scripts of a page, of which there are none here.
    pub http_only: bool,
}

impl SetCookie {
    /// Reads what follows `Set-Cookie:`; `None` for what a client has to ignore.
    #[must_use]
    pub fn parse(header: &str) -> Option<SetCookie> {
        let mut parts = header.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (trimmed(name), trimmed(value));
        // RFC 6265bis, section 5.6: control characters would not survive in a request's header.
        let strange = |text: &str| text.chars().any(|c| c.is_control() && c != '\t');
        if name.is_empty() || strange(name) || strange(value) {
            return None;
        }
        let mut cookie = SetCookie { name: name.to_owned(), value: value.to_owned(), ..SetCookie::default() };
        parts.for_each(|attribute| cookie.take(attribute));
        Some(cookie)
    }

    /// The last of two attributes of one name counts; what cannot be read does not.
    fn take(&mut self, attribute: &str) {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let value = trimmed(value);
        match trimmed(name).to_ascii_lowercase().as_str() {
            "expires" => self.expires = date::parse(value).or(self.expires),
            "max-age" => self.max_age = seconds(value).or(self.max_age),
            "domain" if !value.is_empty() => {
                self.domain = Some(value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase());
            }
            "path" => self.path = value.starts_with('/').then(|| value.to_owned()),
            "secure" => self.secure = true,
            "httponly" => self.http_only = true,
            _ => {}
        }
    }

    /// When it ends (section 5.3, step 3); `None`: with the jar.
    pub(super) fn end(&self, now: UnixSeconds) -> Option<UnixSeconds> {
        match self.max_age {
            Some(age) if age <= 0 => Some(UnixSeconds(i64::MIN)),
            Some(age) => Some(UnixSeconds(now.0.saturating_add(age))),
            None => self.expires,
        }
    }
}

/// Only the whitespace of the RFC counts.
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Section 5.2.2; more than fits is as long as can be.
fn seconds(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let longest = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(longest))
}
