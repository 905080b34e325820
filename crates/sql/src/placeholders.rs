//! Placeholders as every server understands them.

/// The same statement with `$1`, `$2`, … for its `?`s.
///
/// Those in strings, names and comments stay, and so do the operators `?|` and `?&`; `??` is the
/// operator `?`.
pub(crate) fn numbered(sql: &str) -> String {
    let mut numbered = String::with_capacity(sql.len() + 8);
    let (mut rest, mut count) = (sql, 0);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => string_length(rest, ends_in_e(&numbered)),
            '"' => quoted_length(rest, '"'),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment_length(rest),
            '$' => dollar_length(rest),
            '?' if rest.starts_with("??") => {
                numbered.push('?');
                rest = &rest[2..];
                continue;
            }
            '?' if is_placeholder(&rest[1..]) => {
                count += 1;
                numbered.push_str(&format!("${count}"));
                rest = &rest[1..];
                continue;
            }
            _ => first.len_utf8(),
        };
        numbered.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    numbered
}

/// Whether a `?` is a placeholder, from what follows: `?||` is one that something is appended to.
fn is_placeholder(after: &str) -> bool {
    !after.starts_with('&') && (!after.starts_with('|') || after.starts_with("||"))
}

/// Whether the string that follows is one like `E'it\'s'`.
fn ends_in_e(before: &str) -> bool {
    let mut before = before.chars().rev();
    matches!(before.next(), Some('e' | 'E')) && before.next().is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// A string with its quotes; a backslash hides what follows it in some.
fn string_length(rest: &str, has_escapes: bool) -> usize {
    if !has_escapes {
        return quoted_length(rest, '\'');
    }
    let mut is_hidden = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_hidden => is_hidden = false,
            '\\' => is_hidden = true,
            '\'' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// What is quoted, with its quotes. A doubled quote looks like the end of one and the begin of
/// another, which comes to the same.
fn quoted_length(rest: &str, quote: char) -> usize {
    rest[1..].find(quote).map_or(rest.len(), |end| end + 2)
}

/// A comment in slashes and stars, which may contain others.
fn comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let step = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// A string between two `$tag$`, or the `$` alone.
fn dollar_length(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$') else { return 1 };
    let tag = &rest[..end + 2];
    let is_tag = tag[1..=end].chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag[1..].starts_with(|c: char| c.is_ascii_digit());
    if !is_tag {
        return 1;
    }
    rest[tag.len()..].find(tag).map_or(rest.len(), |at| at + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn placeholders_are_counted_from_one() {
        assert_eq!(numbered("UPDATE a SET x = ? WHERE id=?"), "UPDATE a SET x = $1 WHERE id=$2");
        assert_eq!(numbered("SELECT left(?||c,?)"), "SELECT left($1||c,$2)");
    }

    #[test]
    fn what_is_quoted_or_a_comment_stays() {
        for sql in [
            "SELECT 'what?', 'it''s ?'",
            r"SELECT E'it\'s ?'",
            "SELECT \"a?\" FROM t",
            "SELECT 1 -- ?\n+ 1",
            "SELECT /* ? /* ? */ ? */ 1",
            "SELECT $$ ? $$, $a$ ? $$ ? $a$",
            "SELECT a ?| b, a ?& b",
            "SELECT 'open ?",
            "SELECT /* open ?",
        ] {
            assert_eq!(numbered(sql), sql);
        }
    }

    #[test]
    fn what_follows_a_quote_counts_again() {
        assert_eq!(numbered(r"SELECT '\', ?"), r"SELECT '\', $1");
        assert_eq!(numbered(r"SELECT E'\\', ?"), r"SELECT E'\\', $1");
        assert_eq!(numbered("SELECT 'a''?', ? /* ? */, ? -- ?\n, ?"), "SELECT 'a''?', $1 /* ? */, $2 -- ?\n, $3");
        assert_eq!(numbered("SELECT $1$2, ?"), "SELECT $1$2, $1");
    }

    #[test]
    fn a_doubled_placeholder_is_an_operator() {
        assert_eq!(numbered("SELECT a ?? 'key' AND b = ?"), "SELECT a ? 'key' AND b = $1");
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(sql in "[ae?'\"$/*\\-\n|ü\\\\]{0,30}") {
            let _ = numbered(&sql);
        }
    }
}
