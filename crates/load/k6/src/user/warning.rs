//! Warnings about a script.

use super::User;
use crate::operations::K6;
use plimsoll_javascript::{EventLoop, Level};
use rquickjs::{Ctx, Result};

/// Logs a warning about the script. Of the same text, only the first few are logged.
pub(crate) fn warn(ctx: &Ctx<'_>, text: &str) -> Result<()> {
    warn_of_kind(ctx, text, text)
}

/// Logs a warning about the script. Of the same kind, only the first few are logged.
pub(crate) fn warn_of_kind(ctx: &Ctx<'_>, kind: &str, text: &str) -> Result<()> {
    let Some(suffix) = User::of(ctx)?.run().log_limit.admit(kind) else { return Ok(()) };
    EventLoop::<K6>::of(ctx)?.log(Level::Warn, &format!("{text}{suffix}"));
    Ok(())
}
