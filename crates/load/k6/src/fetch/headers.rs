//! The headers of a request, named and ordered as on the wire.

use plimsoll_javascript::busy::spend;

/// Headers of a request, each name once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers(Vec<(String, String)>);

/// Headers that are sent before all others, in this order.
const FIRST: [&str; 3] = ["Host", "User-Agent", "Content-Length"];

impl Headers {
    /// Sets a header, in place of another of that name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        let name = canonical(name);
        spend(self.0.len());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value.into(),
            None => self.0.push((name, value.into())),
        }
    }

    /// Removes headers. The names are in their canonical form.
    pub(crate) fn drop(&mut self, names: &[&str]) {
        self.0.retain(|(name, _)| !names.contains(&name.as_str()));
    }

    /// The value of a header. The name is in its canonical form.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Names and values in the order in which they are sent. An empty `User-Agent` is left out.
    pub(crate) fn into_wire(mut self) -> Vec<(String, String)> {
        let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
        self.0.retain(|(name, value)| name != "User-Agent" || !value.is_empty());
        self.0.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
        self.0
    }

    /// The reason if one of them cannot be sent.
    pub(crate) fn fault(&self) -> Option<String> {
        self.iter().find_map(|(name, value)| {
            if !is_token(name) {
                return Some(format!("expected the name of a header, found {name:?}"));
            }
            let strange = value.chars().find(|c| c.is_control() && *c != '\t');
            strange.map(|c| format!("expected the header `{name}` in one line, found the character {c:?} in it"))
        })
    }
}

/// True if a text can be a method or the name of a header (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(usual)
}

/// A name with capitals where k6 has them: `Content-Type`.
pub(crate) fn canonical(name: &str) -> String {
    if !is_token(name) {
        return name.to_owned();
    }
    let mut begins = true;
    let capital = |c: char| {
        let c = if begins { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        begins = c == '-';
        c
    };
    name.chars().map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_canonical_and_stand_once() {
        let mut headers = Headers::default();
        for (name, value) in [("x-one", "1"), ("accept", "a"), ("X-ONE", "2"), ("content-length", "3"), ("host", "h")] {
            headers.set(name, value);
        }
        headers.set("user-agent", "");
        assert_eq!(headers.get("X-One"), Some("2"));
        let wire = headers.into_wire();
        let wire: Vec<_> = wire.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(wire, ["Host: h", "Content-Length: 3", "Accept: a", "X-One: 2"]);
    }

    #[test]
    fn a_header_that_would_add_lines_is_a_fault() {
        for (name, value) in [("a b", ""), ("", ""), ("A", "1\r\nB: 2"), ("A", "\0")] {
            let mut headers = Headers::default();
            headers.set(name, value);
            assert!(headers.fault().is_some(), "{name:?}: {value:?}");
        }
        let mut headers = Headers::default();
        headers.set("A", "ü\t ");
        assert_eq!(headers.fault(), None);
    }
}
