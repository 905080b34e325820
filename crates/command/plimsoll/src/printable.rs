//! Texts on a terminal, which obeys nothing in them but colours: servers, scripts and systems wrote parts of them.

use std::borrow::Cow;

/// `text` with pictures in place of control characters. Line breaks, tabs and colours (`ESC [ … m`) stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = colour(rest).unwrap_or(0);
        if length > 0 {
            shown.push_str(&rest[..length]);
        } else {
            shown.push(picture(letter));
        }
        rest = &rest[length.max(letter.len_utf8())..];
    }
    Cow::Owned(shown)
}

/// The length of the colour at the begin of `text`, if there is one.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

/// What is shown for a character: a control picture of Unicode for one that a terminal would obey.
fn picture(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        '\0'..='\x1f' => char::from_u32(0x2400 + letter as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '␡',
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_but_colours() {
        for (text, shown) in [
            ("plain: ü €\n\tand more", "plain: ü €\n\tand more"),
            ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
            ("\x1b[1;32m", "\x1b[1;32m"),
            ("a\rb\x07\x7f", "a␍b␇␡"),
            // Clear the screen, set the title, move the cursor, in seven bits and in eight.
            ("\x1b[2J", "␛[2J"),
            ("\x1b]0;title\x07", "␛]0;title␇"),
            ("\x1b[10;10H\u{9b}2J", "␛[10;10H\u{fffd}2J"),
            ("\x1b[", "␛["),
            ("\x1b", "␛"),
            ("\x1b[31ü", "␛[31ü"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
