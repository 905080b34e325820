//! Texts that several documents use.

use plimsoll_analysis::compare::Comparison;
use plimsoll_analysis::quantity::Notation;
use plimsoll_analysis::{Input, RUN_AGAIN, words};
use plimsoll_model::result::TrialResult;

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
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
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
    fn nothing_of_a_name_is_markup() {
        assert_eq!(
            escaped("a|b <img src=x>\n[x](javascript:y) *z* `n = \"m\"`"),
            "a\\|b &lt;img src=x&gt; \\[x\\](javascript:y) \\*z\\* \\`n = \"m\"\\`"
        );
    }

    #[test]
    fn times_are_in_utc() {
        assert_eq!(utc(1_700_000_000_000), "2023-11-14 22:13:20");
    }
}
