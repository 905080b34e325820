//! Bodies of the type `application/x-www-form-urlencoded`.

use percent_encoding::percent_encode_byte;

/// The type of such a body.
pub const CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// Appends names and values: a space is `+`, whatever is not unreserved in RFC 3986 is
/// percent-encoded. Readers by the WHATWG's URL standard take that, and write `*` and `~` otherwise.
pub fn encode<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>, out: &mut Vec<u8>) {
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        write(name, out);
        out.push(b'=');
        write(value, out);
    }
}

/// Names and values as a query, sorted by name.
#[must_use]
pub fn sorted_query(mut fields: Vec<(String, String)>) -> String {
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut out = Vec::new();
    encode(fields.iter().map(|(name, value)| (name.as_str(), value.as_str())), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends a name or a value.
pub fn write(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b' ' => out.push(b'+'),
            b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ if byte.is_ascii_alphanumeric() => out.push(byte),
            _ => out.extend_from_slice(percent_encode_byte(byte).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::percent_decode;
    use proptest::prelude::*;

    fn encoded(fields: &[(&str, &str)]) -> String {
        let mut out = Vec::new();
        encode(fields.iter().copied(), &mut out);
        String::from_utf8(out).expect("forms are ASCII")
    }

    #[test]
    fn fields_stand_side_by_side() {
        assert_eq!(encoded(&[]), "");
        assert_eq!(
            encoded(&[("a", "1"), ("a", ""), ("b c", "x&y=z+ü/\r\n~")]),
            "a=1&a=&b+c=x%26y%3Dz%2B%C3%BC%2F%0D%0A~"
        );
    }

    proptest! {
        #[test]
        fn a_form_reads_back(fields in prop::collection::vec((any::<String>(), any::<String>()), 1..5)) {
            let borrowed: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let decode = |text: &str| {
                let spaced = text.replace('+', " ");
                percent_decode(spaced.as_bytes()).decode_utf8().expect("UTF-8 as before").into_owned()
            };
            let encoded = encoded(&borrowed);
            let read = encoded.split('&').map(|field| field.split_once('=').expect("a name and a value"));
            let read: Vec<_> = read.map(|(name, value)| (decode(name), decode(value))).collect();
            prop_assert_eq!(read, fields);
        }
    }
}
