//! The option `httpDebug`: what is sent and received, as log lines.

use crate::operations::{HttpReply, HttpRequest, K6};
use crate::user::User;
use plimsoll_javascript::{EventLoop, Level};
use rquickjs::{Ctx, Result};

/// The parts of requests and responses that log lines show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpDebug {
    Nothing,
    Heads,
    /// Heads and bodies.
    All,
}

impl HttpDebug {
    /// What the options of a user ask for.
    pub(super) fn of(user: &User) -> HttpDebug {
        match user.options().http_debug.as_deref() {
            None | Some("" | "false") => HttpDebug::Nothing,
            Some("full") => HttpDebug::All,
            Some(_) => HttpDebug::Heads,
        }
    }

    #[cold]
    pub(super) fn show_request(self, ctx: &Ctx<'_>, request: &HttpRequest) -> Result<()> {
        let HttpRequest { method, url, headers, body, .. } = request;
        let head = format!("{method} {} HTTP/1.1\r\n{headers}", url.target());
        self.show(ctx, "Request", &head, body)
    }

    #[cold]
    pub(super) fn show_reply(self, ctx: &Ctx<'_>, reply: &HttpReply) -> Result<()> {
        self.show(ctx, "Response", &reply.head.text, &reply.body)
    }

    fn show(self, ctx: &Ctx<'_>, what: &str, head: &str, body: &[u8]) -> Result<()> {
        let head = head.trim_end().replace('\r', "");
        let body = if self == HttpDebug::All { String::from_utf8_lossy(body) } else { "".into() };
        EventLoop::<K6>::of(ctx)?.log(Level::Info, format!("{what}:\n{head}\n\n{body}").trim_end());
        Ok(())
    }
}
