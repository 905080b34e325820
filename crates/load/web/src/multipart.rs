//! Bodies of the type `multipart/form-data`: RFC 7578.

use std::fmt;

/// One field of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The name of the field.
    pub name: &'a str,
    /// The name of the file, if it is one.
    pub file: Option<&'a str>,
    /// Its content type, if it is not plain text.
    pub content_type: Option<&'a str>,
    /// Its content.
    pub content: &'a [u8],
}

/// The line between parts, which occurs in none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary(u64);

impl Boundary {
    /// A boundary for these parts; the same for the same seed.
    #[must_use]
    pub fn between(parts: &[Part<'_>], seed: u64) -> Boundary {
        let candidates = (0..=u64::MAX).map(|step| Boundary(seed.wrapping_add(step)));
        let absent = |boundary: &Boundary| {
            let line = boundary.to_string();
            !parts.iter().any(|part| part.content.windows(line.len()).any(|window| window == line.as_bytes()))
        };
        candidates.into_iter().find(absent).expect("parts are too short to hold every boundary")
    }

    /// The content type of a body with this boundary.
    #[must_use]
    pub fn content_type(self) -> String {
        format!("multipart/form-data; boundary={self}")
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "----plimsoll{:016x}", self.0)
    }
}

/// Appends a body of these parts.
pub fn encode(parts: &[Part<'_>], boundary: Boundary, out: &mut Vec<u8>) {
    for part in parts {
        out.extend_from_slice(head(part, boundary).as_bytes());
        out.extend_from_slice(part.content);
        out.extend_from_slice(BEHIND_PART);
    }
    out.extend_from_slice(end(boundary).as_bytes());
}

/// What follows the content of each part.
pub const BEHIND_PART: &[u8] = b"\r\n";

/// What follows all parts.
#[must_use]
pub fn end(boundary: Boundary) -> String {
    format!("--{boundary}--\r\n")
}

/// What comes before the content of a part, for whoever writes that piece by piece.
#[must_use]
pub fn head(part: &Part<'_>, boundary: Boundary) -> String {
    let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quotable(part.name));
    if let Some(file) = part.file {
        head.push_str(&format!("; filename=\"{}\"", quotable(file)));
    }
    if let Some(content_type) = part.content_type {
        // A line break would begin another header.
        head.push_str(&format!("\r\nContent-Type: {}", content_type.replace(['\r', '\n'], " ")));
    }
    head + "\r\n\r\n"
}

/// What may stand in quotes: as the HTML standard has it ("multipart form data"), since RFC 7578
/// leaves the choice.
fn quotable(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOTE: Part<'_> = Part { name: "note", file: None, content_type: None, content: b"one\r\ntwo" };

    fn encoded(parts: &[Part<'_>], boundary: Boundary) -> String {
        let mut out = Vec::new();
        encode(parts, boundary, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn parts_stand_between_boundaries() {
        let document =
            Part { name: "doc", file: Some("a \"b\".pdf"), content_type: Some("application/pdf"), content: b"%PDF" };
        let parts = [NOTE, document];
        let boundary = Boundary::between(&parts, 0xab);
        assert_eq!(boundary.content_type(), "multipart/form-data; boundary=----plimsoll00000000000000ab");
        let expected = "------plimsoll00000000000000ab\r\n\
            Content-Disposition: form-data; name=\"note\"\r\n\r\n\
            one\r\ntwo\r\n\
            ------plimsoll00000000000000ab\r\n\
            Content-Disposition: form-data; name=\"doc\"; filename=\"a %22b%22.pdf\"\r\n\
            Content-Type: application/pdf\r\n\r\n\
            %PDF\r\n\
            ------plimsoll00000000000000ab--\r\n";
        assert_eq!(encoded(&parts, boundary), expected);
    }

    #[test]
    fn a_boundary_stands_in_no_part() {
        let first = Boundary::between(&[], 7);
        let content = format!("…{first}…{}", Boundary(8));
        let part = Part { content: content.as_bytes(), ..NOTE };
        assert_eq!(Boundary::between(&[NOTE, part], 7), Boundary(9));
    }

    #[test]
    fn names_cannot_add_headers() {
        let part = Part { name: "a\"\r\nX: 1", content_type: Some("text/plain\r\nX: 1"), ..NOTE };
        let body = encoded(&[part], Boundary::between(&[part], 0));
        assert!(body.contains("name=\"a%22%0D%0AX: 1\"\r\nContent-Type: text/plain  X: 1\r\n\r\n"), "{body}");
    }

    proptest! {
        #[test]
        fn a_body_comes_apart_into_its_parts(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..5),
            seed in any::<u64>(),
        ) {
            let parts: Vec<Part<'_>> = contents.iter().map(|content| Part { content, ..NOTE }).collect();
            let boundary = Boundary::between(&parts, seed);
            let mut body = b"\r\n".to_vec();
            encode(&parts, boundary, &mut body);
            let line = format!("\r\n--{boundary}");
            let starts: Vec<usize> = (0..body.len()).filter(|at| body[*at..].starts_with(line.as_bytes())).collect();
            prop_assert_eq!(starts.len(), parts.len() + 1);
            for (content, ends) in contents.iter().zip(starts.windows(2)) {
                prop_assert!(body[ends[0]..ends[1]].ends_with(&[b"\r\n\r\n", content.as_slice()].concat()));
            }
        }
    }
}
