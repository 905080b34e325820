//! The header `Set-Cookie`: RFC 6265, section 5.2.

use super::{UnixSeconds, date};

/// A cookie that a server sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetCookie {
    /// Its name, never empty.
    pub name: String,
    /// Its value as it was sent, quotes included.
    pub value: String,
    /// Its domain, in lower case and without a leading dot; without one, it is for the host only.
    pub domain: Option<String>,
    /// Its path, which begins with `/`; without one, the folder of the URL that set it.
    pub path: Option<String>,
    /// Its expiry; with neither this nor an age, it lives as long as the jar.
    pub expires: Option<UnixSeconds>,
    /// Its age in seconds, which takes precedence over the expiry. Zero or less removes the cookie.
    pub max_age: Option<i64>,
    /// True if it is sent over TLS only.
    pub secure: bool,
    /// True if it is hidden from the scripts of a page, of which there are none here.
    pub http_only: bool,
}

impl SetCookie {
    /// Parses the text behind `Set-Cookie:`; `None` for a header that clients must ignore.
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

    /// Of two attributes with one name the last counts; malformed ones are ignored.
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

    /// Its end (section 5.3, step 3); `None` for the lifetime of the jar.
    pub(super) fn end(&self, now: UnixSeconds) -> Option<UnixSeconds> {
        match self.max_age {
            Some(age) if age <= 0 => Some(UnixSeconds(i64::MIN)),
            Some(age) => Some(UnixSeconds(now.0.saturating_add(age))),
            None => self.expires,
        }
    }
}

/// Trims the whitespace of the RFC.
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Section 5.2.2. Too large numbers are the largest possible.
fn seconds(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let longest = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(longest))
}
