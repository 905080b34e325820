//! Texts in commands that are printed for people to repeat.

use std::fmt::Display;

/// `text` as one word of a shell: in quotes if it has characters that mean something there.
#[must_use]
pub fn word(text: &dyn Display) -> String {
    let text = text.to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_divide_or_change_them() {
        for (text, shown) in [
            ("study.toml", "study.toml"),
            ("nats://10.0.0.5:4222", "nats://10.0.0.5:4222"),
            ("my study.toml", "'my study.toml'"),
            ("$HOME", "'$HOME'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(word(&text), shown);
        }
    }
}
