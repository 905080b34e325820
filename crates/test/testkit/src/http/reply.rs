//! Replies of a server, within the rules of HTTP/1.1 or against them.

use http::StatusCode;
use std::fmt::Write;
use std::time::Duration;

/// A reply, rendered once when the server starts.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    interim: usize,
    cut: Option<usize>,
    raw: Option<Vec<u8>>,
    closing: bool,
    trickle: Option<Trickle>,
}

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked(usize),
    UntilClose,
}

/// How to send a reply in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trickle {
    pub(super) piece: usize,
    pub(super) every: Duration,
}

/// A reply as bytes.
#[derive(Debug)]
pub(super) struct Rendered {
    /// For every method but HEAD.
    pub(super) whole: Vec<u8>,
    /// For HEAD.
    pub(super) head: Vec<u8>,
    /// True if the connection ends after it.
    pub(super) closing: bool,
    /// The pieces to send it in, if any.
    pub(super) trickle: Option<Trickle>,
}

impl Reply {
    /// Status 200 with this body.
    #[must_use]
    pub fn ok(body: impl Into<Vec<u8>>) -> Reply {
        Reply {
            status: 200,
            headers: Vec::new(),
            body: body.into(),
            framing: Framing::Length,
            interim: 0,
            cut: None,
            raw: None,
            closing: false,
            trickle: None,
        }
    }

    /// Status 200 with `bytes` bytes of body: `abc…zabc…`.
    #[must_use]
    pub fn of_size(bytes: usize) -> Reply {
        Reply::ok((b'a'..=b'z').cycle().take(bytes).collect::<Vec<u8>>())
    }

    /// These bytes instead of an HTTP response, then the connection ends.
    #[must_use]
    pub fn garbage(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply { raw: Some(bytes.into()), closing: true, ..Reply::of_size(0) }
    }

    /// With another status. 204 goes without length and body; 304 goes without body but, as real
    /// servers do, with the length that the body would have.
    #[must_use]
    pub fn status(mut self, status: u16) -> Reply {
        self.status = status;
        self
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a chunked body, in chunks of at most `size` bytes.
    ///
    /// # Panics
    /// When `size` is zero.
    #[must_use]
    pub fn chunked(mut self, size: usize) -> Reply {
        assert!(size > 0, "a chunk of zero bytes would end the body");
        self.framing = Framing::Chunked(size);
        self
    }

    /// With a body that ends where the connection ends.
    #[must_use]
    pub fn until_close(mut self) -> Reply {
        self.framing = Framing::UntilClose;
        self.closing = true;
        self
    }

    /// After `count` responses with a status of 1xx.
    #[must_use]
    pub fn after_interim(mut self, count: usize) -> Reply {
        self.interim = count;
        self
    }

    /// Cut short: the connection ends `bytes` after the head.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Reply {
        self.cut = Some(bytes);
        self.closing = true;
        self
    }

    /// With `Connection: close`, and the connection ends after it.
    #[must_use]
    pub fn closing(mut self) -> Reply {
        self.closing = true;
        self.header("Connection", "close")
    }

    /// In pieces of `piece` bytes, with `every` between two pieces.
    ///
    /// # Panics
    /// When `piece` is zero.
    #[must_use]
    pub fn trickled(mut self, piece: usize, every: Duration) -> Reply {
        assert!(piece > 0, "pieces of zero bytes would never end");
        self.trickle = Some(Trickle { piece, every });
        self
    }

    pub(super) fn render(&self) -> Rendered {
        let (whole, head) = match &self.raw {
            Some(raw) => (raw.clone(), raw.clone()),
            None => {
                let head = self.head().into_bytes();
                let mut whole = head.clone();
                whole.extend(self.framed_body());
                whole.truncate(head.len().saturating_add(self.cut.unwrap_or(usize::MAX)));
                (whole, head)
            }
        };
        Rendered { whole, head, closing: self.closing, trickle: self.trickle }
    }

    fn head(&self) -> String {
        let mut head = String::new();
        for number in 0..self.interim {
            head.push_str(
                ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"][number % 2],
            );
        }
        let reason =
            StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Other");
        let _ = write!(head, "HTTP/1.1 {} {reason}\r\n", self.status);
        match self.framing {
            Framing::Length if self.status != 204 => {
                let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
            }
            Framing::Chunked(_) => head.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::Length | Framing::UntilClose => {}
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head + "\r\n"
    }

    fn framed_body(&self) -> Vec<u8> {
        match self.framing {
            _ if matches!(self.status, 204 | 304) => Vec::new(),
            Framing::Length | Framing::UntilClose => self.body.clone(),
            Framing::Chunked(size) => {
                let mut framed = Vec::new();
                for chunk in self.body.chunks(size) {
                    framed.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    framed.extend(chunk);
                    framed.extend(b"\r\n");
                }
                framed.extend(b"0\r\n\r\n");
                framed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn a_body_is_framed_as_asked() {
        let whole = |reply: Reply| text(&reply.render().whole);
        assert_eq!(whole(Reply::ok("hello")), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n1\r\no\r\n0\r\n\r\n";
        assert_eq!(whole(Reply::ok("hello").chunked(4)), chunked);
        assert_eq!(whole(Reply::ok("hello").until_close()), "HTTP/1.1 200 OK\r\n\r\nhello");
        assert_eq!(whole(Reply::ok("hello").cut_after(2)), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
        assert_eq!(whole(Reply::ok("hello").status(204)), "HTTP/1.1 204 No Content\r\n\r\n");
        let unchanged = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(whole(Reply::ok("hello").status(304)), unchanged);
        assert!(whole(Reply::ok("").after_interim(1)).starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"));
    }

    #[test]
    fn head_gets_the_headers_of_the_whole_reply_only() {
        let rendered = Reply::of_size(30).render();
        assert_eq!(text(&rendered.head), "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n");
        assert!(rendered.whole.ends_with(b"yzabcd"));
    }
}
