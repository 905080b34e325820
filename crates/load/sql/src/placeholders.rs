//! Finds the placeholders of statements, and rewrites `?` as PostgreSQL's `$1`, `$2`, ….

use plimsoll_model::database::Engine;

/// The number of parameters of a statement: the number of its `?`, or the largest `$n` of PostgreSQL.
#[must_use]
pub fn placeholders(sql: &str, engine: Engine) -> usize {
    let (mut count, mut largest) = (0, 0);
    for piece in pieces(sql, engine) {
        match piece {
            Piece::Placeholder => count += 1,
            Piece::Numbered(number) => largest = number.parse().unwrap_or(0).max(largest),
            Piece::Operator | Piece::Text(_) => {}
        }
    }
    count.max(largest)
}

/// Rewrites the placeholders `?` of a statement as PostgreSQL's `$1`, `$2`, ….
///
/// A `?` in a string, name or comment stays, and so do the operators `?|` and `?&`. `??` becomes the
/// operator `?`.
pub(crate) fn numbered(sql: &str) -> String {
    let (mut numbered, mut count) = (String::with_capacity(sql.len() + 8), 0);
    for piece in pieces(sql, Engine::Postgresql) {
        match piece {
            Piece::Placeholder => {
                count += 1;
                numbered.push_str(&format!("${count}"));
            }
            Piece::Operator => numbered.push('?'),
            Piece::Numbered(number) => {
                numbered.push('$');
                numbered.push_str(number);
            }
            Piece::Text(text) => numbered.push_str(text),
        }
    }
    numbered
}

enum Piece<'a> {
    /// `?`
    Placeholder,
    /// `$1`, without its sign.
    Numbered(&'a str),
    /// `??`
    Operator,
    /// Anything else: a string, a comment, a character.
    Text(&'a str),
}

fn pieces(sql: &str, engine: Engine) -> impl Iterator<Item = Piece<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &sql[at..];
        let (length, piece) = match (engine, rest.chars().next()?) {
            (Engine::Postgresql, first) => postgresql(&sql[..at], rest, first),
            (Engine::Mariadb | Engine::Mysql, '?') => (1, Piece::Placeholder),
            (Engine::Mariadb | Engine::Mysql, first) => text(rest, mariadb_length(rest, first)),
        };
        at += length;
        Some(piece)
    })
}

fn postgresql<'a>(before: &str, rest: &'a str, first: char) -> (usize, Piece<'a>) {
    let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    let length = match first {
        '?' if rest.starts_with("??") => return (2, Piece::Operator),
        '?' if is_placeholder(&rest[1..]) => return (1, Piece::Placeholder),
        '$' if digits > 0 => return (1 + digits, Piece::Numbered(&rest[1..=digits])),
        '$' => dollar_length(rest),
        '\'' if !ends_in_e(before) => quoted_length(rest, '\''),
        '\'' => escaped_length(rest, '\''),
        '"' => quoted_length(rest, '"'),
        '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
        '/' if rest.starts_with("/*") => comment_length(rest),
        _ => first.len_utf8(),
    };
    text(rest, length)
}

fn mariadb_length(rest: &str, first: char) -> usize {
    match first {
        '\'' | '"' => escaped_length(rest, first),
        '`' => quoted_length(rest, '`'),
        '#' => rest.find('\n').unwrap_or(rest.len()),
        // `--1` is two minus signs, not a comment.
        '-' if rest.starts_with("--") && !rest[2..].starts_with(|c: char| !c.is_whitespace()) => {
            rest.find('\n').unwrap_or(rest.len())
        }
        '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
        _ => first.len_utf8(),
    }
}

fn text(rest: &str, length: usize) -> (usize, Piece<'_>) {
    (length, Piece::Text(&rest[..length]))
}

/// True if a `?` is a placeholder, by the text after it. In `?||` it is one: a concatenation follows.
fn is_placeholder(after: &str) -> bool {
    !after.starts_with('&') && (!after.starts_with('|') || after.starts_with("||"))
}

/// True if the next string has escapes, like `E'it\'s'`.
fn ends_in_e(before: &str) -> bool {
    let mut before = before.chars().rev();
    matches!(before.next(), Some('e' | 'E')) && before.next().is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// The length of a string with its quotes, in which a backslash escapes the next character.
fn escaped_length(rest: &str, quote: char) -> usize {
    let mut is_hidden = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_hidden => is_hidden = false,
            '\\' => is_hidden = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a quoted text with its quotes. A doubled quote ends one text and begins another, which gives
/// the same result.
fn quoted_length(rest: &str, quote: char) -> usize {
    rest[1..].find(quote).map_or(rest.len(), |end| end + 2)
}

/// The length of a comment in `/* */`, which may contain others.
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

/// The length of a string between two `$tag$`, or of the `$` alone.
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

    #[test]
    fn placeholders_are_counted_as_the_server_would() {
        let counts = |sql: &str| [Engine::Postgresql, Engine::Mariadb].map(|engine| placeholders(sql, engine));
        assert_eq!(counts("SELECT ?, '?', ? /* ? */"), [2, 2]);
        assert_eq!(counts("SELECT $2 + $1 + $2"), [2, 0]);
        assert_eq!(counts(r"SELECT 'it\'s ?'"), [1, 0]);
        assert_eq!(counts("SELECT `?`, \"?\" # ?\n, ? -- ?"), [3, 1]);
        assert_eq!(counts("SELECT 1--?, 2"), [0, 1]);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(sql in "[ae?1'\"$/*\\-#`\n|ü\\\\]{0,30}") {
            let _ = numbered(&sql);
            let _ = placeholders(&sql, Engine::Mariadb);
        }
    }
}
