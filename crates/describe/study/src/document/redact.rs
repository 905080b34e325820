//! Hides passwords that an author has written into the study, so that no message repeats them.

use std::ops::Range;

/// Replaces passwords by stars: in addresses, `SCHEME://USER:PASSWORD@…` and `password=…`, and as the
/// value of a key. Every other byte keeps its position.
pub(crate) fn masked(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (begin, _) in text.match_indices("://") {
        let address = word(text, begin + 3);
        let user = address.rfind('@').map(|at| &address[..at]);
        if let Some((name, password)) = user.and_then(|user| user.split_once(':')) {
            let from = begin + 3 + name.len() + 1;
            bytes[from..from + password.len()].fill(b'*');
        }
    }
    for (begin, key) in text.match_indices("password=") {
        let from = begin + key.len();
        let password = word(text, from).split('&').next().unwrap_or_default();
        bytes[from..from + password.len()].fill(b'*');
    }
    for (begin, key) in SECRETS.iter().flat_map(|key| text.match_indices(key)) {
        let Some(value) = quoted_value(text, begin + key.len()) else { continue };
        // A value of a user is no secret itself.
        if !text[value.clone()].contains('{') {
            bytes[value].fill(b'*');
        }
    }
    String::from_utf8(bytes).expect("whole characters make room for stars")
}

/// Keys whose values are secrets.
const SECRETS: [&str; 2] = ["password", "bearer"];

/// The range of the quoted value whose key ends at `from`.
fn quoted_value(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text[from..].trim_start().strip_prefix('=')?.trim_start();
    let inside = rest.strip_prefix(['"', '\''])?;
    let begin = text.len() - inside.len();
    Some(begin..begin + inside.find(['"', '\''])?)
}

/// The text from `from` to the next space or quote.
fn word(text: &str, from: usize) -> &str {
    let rest = &text[from..];
    &rest[..rest.find(|c: char| c.is_whitespace() || "\"'`".contains(c)).unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_stars_and_all_else_stays_where_it_is() {
        for (text, shown) in [
            ("url = \"mysql://a:sécret@h/b\" # x", "url = \"mysql://a:*******@h/b\" # x"),
            ("'postgresql://a:p@ss/w:rd@h:5/b'", "'postgresql://a:*********@h:5/b'"),
            ("postgresql://a@h/b?password=x&socket=/s", "postgresql://a@h/b?password=*&socket=/s"),
            ("http://127.0.0.1:80/", "http://127.0.0.1:80/"),
            ("a://", "a://"),
            ("auth = { password = 'hunter2' }", "auth = { password = '*******' }"),
            ("bearer=\"a b\" # x", "bearer=\"***\" # x"),
            ("password = '{$account.password}'", "password = '{$account.password}'"),
            ("password = ", "password = "),
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
