//! What a client of HTTP needs besides a connection: URLs and the resolution of references,
//! cookies, content codings, and the bodies of forms.
//!
//! Everything here is a pure function of its arguments: nothing is read or sent, and the caller
//! passes the time. So flows and scripts share it, and tests need no server.

pub mod coding;
pub mod cookie;
mod encodings;
pub mod form;
pub mod multipart;
pub mod percent;
pub mod url;

pub use coding::{Coding, CodingFault};
pub use cookie::{Jar, SetCookie, UnixSeconds};
pub use encodings::encodings;
pub use url::{Place, Scheme, Url, UrlFault};
