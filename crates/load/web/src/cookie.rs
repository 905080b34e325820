//! Cookies: RFC 6265, section 5, for a client that knows no list of public suffixes.

mod date;
mod jar;
mod set_cookie;
#[cfg(test)]
mod tests;

pub use jar::Jar;
pub use set_cookie::SetCookie;

/// An instant: seconds since the beginning of 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixSeconds(pub i64);
