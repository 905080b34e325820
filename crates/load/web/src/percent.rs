//! Percent-encoding: RFC 3986, section 2.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// Everything but the unreserved characters (section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The characters that `encodeURIComponent` of a script encodes: fewer than those of [`RESERVED`].
const OF_SCRIPTS: &AsciiSet = &RESERVED.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');

/// Characters that are not allowed anywhere in a URL.
const IMPOSSIBLE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// Encodes a value as a segment of a path, or as a name or value in a query. Only unreserved characters
/// stay, so it decodes to itself anywhere in a URL.
pub fn component(value: &str) -> PercentEncode<'_> {
    utf8_percent_encode(value, RESERVED)
}

/// Encodes a value as `encodeURIComponent` of a script does.
pub(crate) fn component_of_script(value: &str) -> PercentEncode<'_> {
    utf8_percent_encode(value, OF_SCRIPTS)
}

/// Encodes invalid characters in a part of a URL that a person or a server wrote. What is encoded
/// already stays. Control characters are refused: a line break would end the request line.
pub(crate) fn repaired(part: &str) -> Result<String, String> {
    match part.chars().find(char::is_ascii_control) {
        Some(control) => Err(format!("it has the control character {control:?}")),
        None => Ok(utf8_percent_encode(part, IMPOSSIBLE).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_means_itself_anywhere() {
        let cases = [
            ("a-b._~9", "a-b._~9"),
            ("a b", "a%20b"),
            ("a/b?c#d&e=f+g", "a%2Fb%3Fc%23d%26e%3Df%2Bg"),
            ("100%", "100%25"),
            ("ü€", "%C3%BC%E2%82%AC"),
            ("\r\n", "%0D%0A"),
        ];
        for (value, encoded) in cases {
            assert_eq!(component(value).to_string(), encoded, "{value:?}");
        }
    }

    #[test]
    fn repairing_leaves_what_is_right() {
        let right = "/a;b=1,2/c%20d/%zz:@!$&'()*+~[x]";
        assert_eq!(repaired(right).as_deref(), Ok(right));
        assert_eq!(repaired("/a b|{c}/ü").as_deref(), Ok("/a%20b%7C%7Bc%7D/%C3%BC"));
        assert!(repaired("/a\nHost: evil").is_err_and(|why| why.contains("'\\n'")));
    }
}
