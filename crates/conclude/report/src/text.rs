//! Texts that several documents use.

use askama::filters::{Escaper, Html};
use plimsoll_analysis::compare::Comparison;
use plimsoll_analysis::quantity::Notation;
use plimsoll_analysis::{Input, RUN_AGAIN, words};
use plimsoll_model::result::TrialResult;
use std::collections::BTreeSet;
use std::fmt;

/// A name for files: lower-case letters, digits and single hyphens.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').to_owned()
}

/// Names of files or anchors of which no two are the same.
#[derive(Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// This name, or with a number behind it where it is taken: two conditions may differ in signs alone, which no [`slug`] has.
    pub(crate) fn of_its_own(&mut self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.0.contains(name)).expect("there is a number");
        self.0.insert(free.clone());
        free
    }
}

/// A comparison in a line: `+3.1 % (+1.2 % … +5.0 %), n = 5, worse`.
pub(crate) fn comparison(comparison: &Comparison, notation: Notation) -> String {
    let Ok(change) = comparison.change(notation) else { return "no comparison".to_owned() };
    let verdict = comparison.verdict.as_ref().map(|verdict| format!(", {}", verdict.in_words())).unwrap_or_default();
    format!("{change} ({}), n = {}{verdict}", interval(comparison, notation), comparison.pairs.len())
}

/// The interval of a comparison, or the reason why there is none.
pub(crate) fn interval(comparison: &Comparison, notation: Notation) -> String {
    match &comparison.contrast {
        Err(_) => "–".to_owned(),
        Ok(contrast) => match contrast.interval {
            Ok(interval) => comparison.ends(interval, notation).join(" … "),
            Err(_) if contrast.n > 1 => format!("range {}", comparison.ends(contrast.range, notation).join(" … ")),
            Err(_) => "no interval".to_owned(),
        },
    }
}

/// The validity of a trial in a word or two.
pub(crate) fn validity(input: &Input, trial: TrialResult<'_>) -> &'static str {
    if trial.counts() && !input.counts(trial) { RUN_AGAIN } else { words::validity(&trial.validity()) }
}

/// `text` with non-breaking spaces: before percent signs, and in `n = 5`.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%").replace("n = ", "n\u{a0}=\u{a0}")
}

/// `text` for a line of Markdown, in which nothing of it is markup, HTML or the end of a cell.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    // What a system printed is indented below the sentence about it.
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default().to_owned();
    let text = lines.fold(first, |text, line| format!("{text} {}", line.trim_start()));
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '&' if letters.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '#') => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '\\' | '`' | '*' | '[' | ']' | '|' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The same, but words between backticks are code, as in Plimsoll's own texts. Code stands as it is. Where backticks do not
/// come in pairs, or a table would end a cell inside of them, they are letters like any other.
pub(crate) fn with_code(text: &str) -> String {
    let in_line = |code: &str| format!("`{}`", code.replace(char::is_control, " "));
    if text.contains('|') { escaped(text) } else { parts(text, escaped, in_line) }
}

/// `text` for HTML, in which nothing of it is markup; words between backticks are code.
pub(crate) fn html_with_code(text: &str) -> String {
    let plain = |text: &str| {
        let mut escaped = String::new();
        Html.write_escaped_str(&mut escaped, text).expect("a string takes what is written");
        escaped
    };
    parts(text, plain, |code| format!("<code>{}</code>", plain(code)))
}

/// `text` with what is between backticks as `code` has it, and what is not as `plain` has it. Where backticks do not come in
/// pairs, they are letters like any other.
fn parts(text: &str, plain: impl Fn(&str) -> String, code: impl Fn(&str) -> String) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let between = parts.get(1..parts.len() - 1).unwrap_or_default();
    let come_in_pairs = parts.len() % 2 == 1 && between.iter().all(|part| !part.is_empty());
    if !come_in_pairs {
        return plain(text);
    }
    let part = |(index, part): (usize, &&str)| if index % 2 == 0 { plain(part) } else { code(part) };
    parts.iter().enumerate().map(part).collect()
}

/// Escapes the values in templates of Markdown.
#[derive(Clone, Copy)]
pub(crate) struct Markdown;

impl Escaper for Markdown {
    fn write_escaped_str<W: fmt::Write>(&self, mut out: W, text: &str) -> fmt::Result {
        out.write_str(&with_code(text))
    }
}

/// Formats a time in milliseconds since 1970 as `2026-11-21 02:30:05`, UTC.
pub(crate) fn utc(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_| "unknown".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_safe_as_file_names() {
        assert_eq!(slug("latency, connect = every iteration"), "latency-connect-every-iteration");
        assert_eq!(slug("../a:b.p99.9 "), "a-b-p99-9");
    }

    #[test]
    fn no_two_names_are_the_same() {
        let mut names = Names::default();
        let given = ["nice-5", "nice-5", "nice-5", "nice-5-2"].map(|name| names.of_its_own(name));
        assert_eq!(given, ["nice-5", "nice-5-2", "nice-5-3", "nice-5-2-2"]);
    }

    #[test]
    fn nothing_of_a_name_is_markup() {
        assert_eq!(
            escaped("a|b & &lt; <img src=x>\n[x](javascript:y) *z* `n = \"m\"`"),
            "a\\|b & &amp;lt; &lt;img src=x&gt; \\[x\\](javascript:y) \\*z\\* \\`n = \"m\"\\`"
        );
    }

    #[test]
    fn code_stands_as_it_is_and_nothing_hides_in_it() {
        for (text, expected) in [
            ("use `a[0] <b>` or *c*", "use `a[0] <b>` or \\*c\\*"),
            ("`one` and `two`\n`th\nree`", "`one` and `two` `th ree`"),
            ("`open <b>", "\\`open &lt;b&gt;"),
            ("``<b>``", "\\`\\`&lt;b&gt;\\`\\`"),
            ("`a|<b>`", "\\`a\\|&lt;b&gt;\\`"),
            ("`", "\\`"),
            ("", ""),
        ] {
            assert_eq!(with_code(text), expected, "{text}");
        }
    }

    #[test]
    fn code_in_html_is_no_markup_either() {
        for (text, expected) in [
            ("use `a[0] <b>` & *c*", "use <code>a[0] &#60;b&#62;</code> &#38; *c*"),
            ("`open <b>", "`open &#60;b&#62;"),
            ("``<b>``", "``&#60;b&#62;``"),
            ("`a|b`", "<code>a|b</code>"),
        ] {
            assert_eq!(html_with_code(text), expected, "{text}");
        }
    }

    #[test]
    fn times_are_in_utc() {
        assert_eq!(utc(1_700_000_000_000), "2023-11-14 22:13:20");
    }
}
