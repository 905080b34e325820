//! References and their resolution: RFC 3986, section 5.2 and appendix B, for any scheme.

use crate::percent;

/// The five parts of a URI or of a reference, as in its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Before the colon.
    pub scheme: Option<&'a str>,
    /// Behind `//`: user, host and port.
    pub authority: Option<&'a str>,
    /// May be empty.
    pub path: &'a str,
    /// Behind `?`.
    pub query: Option<&'a str>,
    /// Behind `#`.
    pub fragment: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Splits any text, as the expression of appendix B does.
    #[must_use]
    pub fn split(text: &'a str) -> Parts<'a> {
        let (text, fragment) = cut(text, '#');
        let (text, query) = cut(text, '?');
        let (scheme, text) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let (authority, path) = match text.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, text),
        };
        Parts { scheme, authority, path, query, fragment }
    }

    /// This reference, resolved against `base` (section 5.2.2, strictly).
    #[must_use]
    pub fn resolved(&self, base: &Parts<'_>) -> String {
        let fragment = self.fragment;
        if self.scheme.is_some() {
            return Parts { path: &without_dots(self.path), ..*self }.joined();
        }
        if self.authority.is_some() {
            return Parts { scheme: base.scheme, path: &without_dots(self.path), ..*self }.joined();
        }
        if self.path.is_empty() {
            return Parts { query: self.query.or(base.query), fragment, ..*base }.joined();
        }
        let path = if self.path.starts_with('/') { self.path.to_owned() } else { merged(base, self.path) };
        Parts { path: &without_dots(&path), query: self.query, fragment, ..*base }.joined()
    }

    /// The text with invalid characters in path and fragment percent-encoded. The query stays as it is
    /// written, as in Go.
    #[must_use]
    pub fn shown(&self) -> String {
        let encoded = |part: &str| percent::repaired(part).unwrap_or_else(|_| part.to_owned());
        let (scheme, path, fragment) =
            (self.scheme.map(str::to_ascii_lowercase), encoded(self.path), self.fragment.map(encoded));
        Parts { scheme: scheme.as_deref(), path: &path, fragment: fragment.as_deref(), ..*self }.joined()
    }

    /// Section 5.3.
    fn joined(&self) -> String {
        let mut text = String::new();
        let parts = [("", self.scheme, ":"), ("//", self.authority, ""), ("", Some(self.path), "")];
        for (before, part, behind) in parts.into_iter().chain([("?", self.query, ""), ("#", self.fragment, "")]) {
            if let Some(part) = part {
                text.extend([before, part, behind]);
            }
        }
        text
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(text, behind)| (text, Some(behind)))
}

/// Section 3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Section 5.2.3.
fn merged(base: &Parts<'_>, path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        return format!("/{path}");
    }
    let folder = base.path.rfind('/').map_or("", |slash| &base.path[..=slash]);
    format!("{folder}{path}")
}

/// Section 5.2.4: removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut input = path;
    while !input.is_empty() {
        // 2A
        if let Some(rest) = input.strip_prefix("../").or_else(|| input.strip_prefix("./")) {
            input = rest;
        // 2B
        } else if input.starts_with("/./") || input == "/." {
            input = rest_from_slash(input, 2);
        // 2C
        } else if input.starts_with("/../") || input == "/.." {
            input = rest_from_slash(input, 3);
            out.truncate(out.rfind('/').unwrap_or(0));
        // 2D
        } else if input == "." || input == ".." {
            input = "";
        // 2E
        } else {
            let from = usize::from(input.starts_with('/'));
            let end = input[from..].find('/').map_or(input.len(), |slash| from + slash);
            out.push_str(&input[..end]);
            input = &input[end..];
        }
    }
    out
}

/// The rest behind the first `taken` bytes, which always begins with a slash.
fn rest_from_slash(input: &str, taken: usize) -> &str {
    if input.len() == taken { "/" } else { &input[taken..] }
}
