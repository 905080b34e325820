//! Warnings on the console of a script.

use super::User;
use rquickjs::{Ctx, Function, Object, Result};

/// Writes a warning to the console of the script. Of the same text, only the first few are written.
pub(crate) fn warn(ctx: &Ctx<'_>, text: &str) -> Result<()> {
    warn_of_kind(ctx, text, text)
}

/// Writes a warning to the console of the script. Of the same kind, only the first few are written.
pub(crate) fn warn_of_kind(ctx: &Ctx<'_>, kind: &str, text: &str) -> Result<()> {
    let Some(suffix) = User::of(ctx)?.run().log_limit.admit(kind) else { return Ok(()) };
    let console: Object<'_> = ctx.globals().get("console")?;
    console.get::<_, Function<'_>>("warn")?.call((format!("{text}{suffix}"),))
}
