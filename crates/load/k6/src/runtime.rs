//! Prepares the runtime of a user: what its script finds without an import.

use crate::modules::globals;
use crate::user::{RunState, User, variables};
use plimsoll_javascript::Prepare;
use rquickjs::object::{Accessor, Property};
use rquickjs::{Ctx, Function, Object, Result, Value};
use std::rc::Rc;
use std::sync::Arc;

/// Prepares the runtime of this user, before its modules run.
#[must_use]
pub fn prepare(user: &Rc<User>) -> Prepare {
    let user = Rc::clone(user);
    Box::new(move |ctx| {
        user.install(ctx);
        let random = Rc::clone(&user);
        let math: Object<'_> = ctx.globals().get("Math")?;
        math.set("random", Function::new(ctx.clone(), move || random.random())?)?;
        globals::install(ctx)?;
        let run = Arc::clone(user.run());
        // Computed when a script reads it: most never do.
        let iteration = Accessor::from(move || user.iteration_number());
        ctx.globals().prop("__ITER", iteration.enumerable().configurable())?;
        install_variables(ctx, run)
    })
}

/// Defines `__ENV`. It is made when the script first reads it, because all variables of a system take much memory for
/// each of thousands of users.
fn install_variables<'js>(ctx: &Ctx<'js>, run: Arc<RunState>) -> Result<()> {
    fn define<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<()> {
        ctx.globals().prop("__ENV", Property::from(value).writable().enumerable().configurable())
    }
    let set = |ctx: Ctx<'js>, value: Value<'js>| -> Result<()> { define(&ctx, value) };
    let get = move |ctx: Ctx<'js>| -> Result<Value<'js>> {
        let value = ctx.json_parse(variables(&run.env))?;
        define(&ctx, value.clone())?;
        Ok(value)
    };
    ctx.globals().prop("__ENV", Accessor::new(get, set).enumerable().configurable())
}
